package turnwright_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// wire is a result as a consumer of the JSON stream sees it.
func wire(t *testing.T, r *turnwright.ResultMessage) map[string]any {
	t.Helper()
	raw, err := message.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(raw, &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestContractEndings ends a user turn in every way that this version has and
// looks at what the result says and holds.
func TestContractEndings(t *testing.T) {
	limit := func(s agenttest.Step) agenttest.Step { return agenttest.StopReason(s, "max_tokens") }
	for _, tt := range []struct {
		name    string
		set     func(*turnwright.Options)
		steps   []agenttest.Step
		subtype message.Subtype
		isError bool
		reason  message.TerminalReason
		stop    any // nil: null
	}{
		{"text", nil, []agenttest.Step{agenttest.Text("x")}, turnwright.Success, false, "completed", "end_turn"},
		{"refusal", nil, []agenttest.Step{agenttest.StopReason(agenttest.Text("no"), "refusal")}, turnwright.Success, false, "completed", "refusal"},
		{"used-up continuations", nil, []agenttest.Step{limit(agenttest.Text("x")), limit(agenttest.Text("x")), limit(agenttest.Text("x")), limit(agenttest.Text("x"))}, turnwright.Success, true, "completed", "max_tokens"},
		{"cap", func(o *turnwright.Options) { o.MaxTurns = new(0) }, []agenttest.Step{noteCall("x")}, turnwright.ErrorMaxTurns, true, "max_turns", "tool_use"},
		{"budget", func(o *turnwright.Options) { o.MaxBudgetUSD = new(0.1) }, []agenttest.Step{dear(agenttest.Text("x"))}, turnwright.ErrorMaxBudgetUSD, true, "budget_exhausted", "end_turn"},
		{"api", nil, []agenttest.Step{agenttest.HTTPError(400, "invalid_request_error", "x")}, turnwright.ErrorDuringExecution, true, "api_error", nil},
		{"api after a turn", nil, []agenttest.Step{noteCall("x"), agenttest.HTTPError(400, "invalid_request_error", "x")}, turnwright.ErrorDuringExecution, true, "api_error", "tool_use"},
		{"model", nil, []agenttest.Step{agenttest.HTTPError(404, "not_found_error", "model: x")}, turnwright.ErrorDuringExecution, true, "model_error", nil},
		{"too long", nil, []agenttest.Step{agenttest.HTTPError(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")}, turnwright.ErrorDuringExecution, true, "prompt_too_long", nil},
		{"malformed", nil, []agenttest.Step{agenttest.Call("nosuch", `{}`), agenttest.Call("note", `[1]`), agenttest.Call("note", `{"text":`)}, turnwright.ErrorDuringExecution, true, "malformed_tool_use_exhausted", "tool_use"},
		{"deny with interrupt", func(o *turnwright.Options) {
			o.AllowedTools = nil
			o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
				return turnwright.PermissionAnswer{Interrupt: true, Message: "stop here"}, nil
			}
		}, []agenttest.Step{noteCall("x")}, turnwright.ErrorDuringExecution, true, "aborted_tools", "tool_use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conform.Covers(t, "L-12", "L-54", "L-55", "L-56", "L-57", "L-58", "L-59", "L-60", "L-67", "L-71", "L-72", "L-74", "L-147", "M-53", "M-54", "M-55", "M-58", "M-62", "M-63", "M-67", "M-105")
			srv := agenttest.NewServer(t, agenttest.Script(tt.steps...))
			o := base(t, srv)
			var notes []string
			withNote(&o, &notes)
			if tt.set != nil {
				tt.set(&o)
			}
			out := query(t, "go", o)
			r := out.result
			if r == nil || len(out.results()) != 1 || out.messages[len(out.messages)-1] != turnwright.Message(r) {
				t.Fatalf("%s, %v", out.shape(), out.err)
			}
			keys := wire(t, r)
			if keys["subtype"] != string(tt.subtype) || keys["is_error"] != tt.isError || keys["terminal_reason"] != string(tt.reason) || keys["stop_reason"] != tt.stop {
				t.Errorf("subtype %v, is_error %v, terminal_reason %v, stop_reason %v", keys["subtype"], keys["is_error"], keys["terminal_reason"], keys["stop_reason"])
			}
			for _, k := range []string{"duration_ms", "duration_api_ms", "num_turns", "tool_turns", "total_cost_usd", "usage", "modelUsage", "permission_denials", "uuid", "session_id", "stop_reason"} {
				if v, ok := keys[k]; !ok || v == nil && k != "stop_reason" {
					t.Errorf("%s is missing", k)
				}
			}
			for _, k := range []string{"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation", "server_tool_use", "service_tier"} {
				if v, ok := keys["usage"].(map[string]any)[k]; !ok || v == nil {
					t.Errorf("usage.%s is missing", k)
				}
			}
			_, hasResult := keys["result"]
			errs, _ := keys["errors"].([]any)
			if ok := tt.subtype == turnwright.Success; hasResult != ok || (len(errs) > 0) == ok || len(errs) > 0 && errs[0] == "" {
				t.Errorf("result %v, errors %v", keys["result"], keys["errors"])
			}
			if tt.subtype != turnwright.Success && r.Text() != "" {
				t.Errorf("the text of an error is %q", r.Text())
			}
			if (out.err != nil) != tt.isError {
				t.Errorf("the iterator's error is %v", out.err)
			}
			if bad := out.unpaired(); len(bad) > 0 {
				t.Errorf("unpaired: %q", bad)
			}
		})
	}
}

// TestContractContinuations joins an answer that was cut at the output limit,
// three times at most.
func TestContractContinuations(t *testing.T) {
	limit := func(text string) agenttest.Step { return agenttest.StopReason(agenttest.Text(text), "max_tokens") }
	conform.Covers(t, "L-18", "L-73", "L-74", "L-83", "M-58")
	t.Run("joined", func(t *testing.T) {
		srv := agenttest.NewServer(t, agenttest.StrictEcho(), limit("a"), limit("b"), limit("c"), agenttest.Text("d"))
		out := query(t, "go", base(t, srv))
		if out.err != nil || *out.result.Result != "abcd" || out.result.NumTurns != 1 || srv.Count() != 4 {
			t.Errorf("%+v, %d requests, %v", out.result, srv.Count(), out.err)
		}
	})
	t.Run("used up", func(t *testing.T) {
		srv := agenttest.NewServer(t, limit("a"), limit("b"), limit("c"), limit("d"), agenttest.Text("again"))
		s := start(t, base(t, srv))
		send(t, s, "go")
		out := readTurn(t, s)
		r := out.result
		if r.Subtype != turnwright.Success || !r.IsError || *r.Result != "abcd" || *r.StopReason != "max_tokens" || r.TerminalReason != message.TerminalCompleted || srv.Count() != 4 {
			t.Errorf("%+v, %d requests", r, srv.Count())
		}
		categories := 0
		for _, a := range out.assistants() {
			if a.Error == "max_output_tokens" {
				categories++
			}
		}
		if categories != 1 {
			t.Errorf("%d assistant messages with the error max_output_tokens: %s", categories, out.shape())
		}
		send(t, s, "next") // its own three continuations
		if r := readTurn(t, s).result; r.IsError || *r.Result != "again" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("texts only", func(t *testing.T) {
		srv := agenttest.NewServer(t, agenttest.Blocks(agenttest.Thinking("secret", "s"), agenttest.Text("one "), agenttest.Redacted("x"), agenttest.Text("two")))
		if out := query(t, "go", base(t, srv)); *out.result.Result != "one two" {
			t.Errorf("result %q", *out.result.Result)
		}
		srv = agenttest.NewServer(t, agenttest.Thinking("secret", "s"))
		if out := query(t, "go", base(t, srv)); out.err != nil || *out.result.Result != "" {
			t.Errorf("result %q, %v", *out.result.Result, out.err)
		}
	})
}

// TestContractStopReasons decides by the calls that are there, not by the stop
// reason alone.
func TestContractStopReasons(t *testing.T) {
	reason := agenttest.StopReason
	for _, tt := range []struct {
		name  string
		first agenttest.Step
		ran   bool
		ends  bool // with the first response
		stop  string
	}{
		{"tool_use", noteCall("x"), true, false, "end_turn"},
		{"a call with end_turn", reason(noteCall("x"), "end_turn"), true, false, "end_turn"},
		{"a call with an unknown reason", reason(noteCall("x"), "from_the_future"), true, false, "end_turn"},
		{"a call with stop_sequence", reason(noteCall("x"), "stop_sequence"), true, false, "end_turn"},
		{"a call with refusal", reason(agenttest.Blocks(agenttest.Text("no"), noteCall("x")), "refusal"), false, true, "refusal"},
		{"tool_use without a call", reason(agenttest.Text("hm"), "tool_use"), false, true, "tool_use"},
		{"unknown", reason(agenttest.Text("hm"), "from_the_future"), false, true, "from_the_future"},
		{"stop_sequence", agenttest.StopSequence(agenttest.Text("hm"), "END"), false, true, "stop_sequence"},
		{"server tools only", agenttest.Blocks(
			agenttest.Raw(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`),
			agenttest.Raw(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`), agenttest.Text("hm")), false, true, "end_turn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conform.Covers(t, "L-68", "L-69", "L-70", "L-71", "L-80", "L-81", "L-82", "M-105")
			srv := agenttest.NewServer(t, agenttest.Script(tt.first, agenttest.Text("after"), agenttest.Text("after")))
			o := base(t, srv)
			var notes []string
			withNote(&o, &notes)
			s := start(t, o)
			send(t, s, "go")
			out := readTurn(t, s)
			r := out.result
			if r.IsError || *r.StopReason != tt.stop || (len(notes) == 1) != tt.ran || (srv.Count() == 1) != tt.ends {
				t.Errorf("%s: %+v, notes %q, %d requests", out.shape(), r, notes, srv.Count())
			}
			if bad := out.unpaired(); len(bad) > 0 {
				t.Errorf("unpaired: %q", bad)
			}
			send(t, s, "and then?")
			if r := readTurn(t, s).result; r.IsError {
				t.Errorf("the next prompt: %+v", r)
			}
		})
	}
}

// TestContractCutCalls runs what is complete and tells the model of the rest;
// cut calls alone cost neither a turn nor a continuation.
func TestContractCutCalls(t *testing.T) {
	conform.Covers(t, "L-75", "L-138", "M-105")
	limit := func(s agenttest.Step) agenttest.Step { return agenttest.StopReason(s, "max_tokens") }
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.CutInput("note", `{"text":"lo`),
		noteCall("a"),
		agenttest.CutInput("note", `{"text":"lo`),
		limit(agenttest.Blocks(noteCall("b"), agenttest.CutInput("note", `{"te`))),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.MaxTurns = new(2)
	out := query(t, "go", o)
	if out.err != nil || fmt.Sprint(notes) != "[a b]" || out.result.ToolTurns != 2 {
		t.Errorf("%+v, notes %q, %v", out.result, notes, out.err)
	}
	second := srv.Requests()[1]
	last := second.Messages()[1].Content
	if in := string(last[len(last)-1].Input); in != "{}" {
		t.Errorf("the cut call went back with input %s", in)
	}
	if r := second.LastToolResults(); len(r) != 1 || !r[0].IsError || !strings.Contains(r[0].Text, "max_tokens") && !strings.Contains(r[0].Text, "cut") {
		t.Errorf("%+v", r)
	}
	if bad := out.unpaired(); len(bad) > 0 {
		t.Errorf("unpaired: %q", bad)
	}
}

// TestContractMalformed gives up after three responses of nothing but
// malformed calls, not after three in all.
func TestContractMalformed(t *testing.T) {
	conform.Covers(t, "L-137", "L-138", "M-104")
	bad := agenttest.Blocks(agenttest.Call("nosuch", `{}`), agenttest.Call("note", `"text"`))
	srv := agenttest.NewServer(t, agenttest.Script(bad, bad, agenttest.Blocks(agenttest.Call("nosuch", `{}`), noteCall("x")), bad, bad, agenttest.Text("done")))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	if out := query(t, "go", o); out.err != nil || len(notes) != 1 {
		t.Errorf("%s, %v", out.shape(), out.err)
	}
	srv = agenttest.NewServer(t, agenttest.Forever(bad))
	o.Env["ANTHROPIC_BASE_URL"] = srv.URL()
	out := query(t, "go", o)
	if out.result.TerminalReason != message.TerminalMalformedToolUse || srv.Count() != 3 {
		t.Errorf("%+v after %d requests", out.result, srv.Count())
	}
}

// TestContractEmptyReply asks twice again when a reply is broken, and takes an
// empty answer for what it is.
func TestContractEmptyReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-68", "B-005", "B-006", "B-007")
		srv, o := inMemory(t, agenttest.Forever(agenttest.Empty()))
		if out := query(t, "go", o); out.result.Subtype != turnwright.ErrorDuringExecution || srv.Count() != 3 {
			t.Errorf("%+v after %d requests", out.result, srv.Count())
		}
		srv, o = inMemory(t, agenttest.Script(agenttest.Usage(agenttest.Empty(), 9, 2, 0, 0, 0)))
		if out := query(t, "go", o); out.err != nil || srv.Count() != 1 || *out.result.Result != "" {
			t.Errorf("%+v, %v", out.result, out.err)
		}
	})
}

// TestContractClock measures the times that a result reports.
func TestContractClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "M-57", "M-59", "M-60", "M-44", "W-273")
		_, o := inMemory(t, agenttest.Script(
			agenttest.DelayEach(agenttest.DeltaSize(agenttest.Call("nap", `{}`), 0), time.Second), // six events
			agenttest.Delay(agenttest.Text("done"), 3*time.Second),
		))
		o.CustomTools = []turnwright.Tool{turnwright.NewTool("nap", "Sleeps.", func(context.Context, struct{}) (string, error) {
			time.Sleep(10 * time.Second)
			return "", nil
		})}
		o.AllowedTools, o.IncludePartialMessages = []string{"nap"}, true
		begin := time.Now().UnixMilli()
		out := query(t, "go", o)
		r := out.result
		if r.DurationMS != 19_000 || r.DurationAPIMS != 9_000 {
			t.Errorf("duration %d ms, of it %d in API calls", r.DurationMS, r.DurationAPIMS)
		}
		if r.TTFTMS == nil || *r.TTFTMS != 6000 || r.TTFTStreamMS == nil || *r.TTFTStreamMS != 1000 {
			t.Errorf("ttft_ms %v, ttft_stream_ms %v", r.TTFTMS, r.TTFTStreamMS)
		}
		if r.UserMessageUUID == "" || r.RequestSentWallMS != begin {
			t.Errorf("user_message_uuid %q, request_sent_wall_ms %d, began at %d", r.UserMessageUUID, r.RequestSentWallMS, begin)
		}
		for _, m := range out.messages {
			if e, ok := m.(*turnwright.StreamEventMessage); ok && e.TTFTMS != nil && *e.TTFTMS != 1000 && *e.TTFTMS != 3000 {
				t.Errorf("ttft_ms of an event: %d", *e.TTFTMS)
			}
		}
		_, o = inMemory(t, agenttest.Script(agenttest.HTTPError(400, "invalid_request_error", "x")))
		if r := query(t, "go", o).result; r.UserMessageUUID != "" || r.RequestSentWallMS != 0 {
			t.Errorf("an API error has user_message_uuid %q, request_sent_wall_ms %d", r.UserMessageUUID, r.RequestSentWallMS)
		}
	})
}

// TestContractDocs keeps the user's page on endings complete.
func TestContractDocs(t *testing.T) {
	conform.Covers(t, "L-76")
	page, err := os.ReadFile("docs/why-did-it-stop.md")
	if err != nil {
		t.Fatal(err)
	}
	var maxTokens string
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "`max_tokens`") {
			maxTokens += line
		}
	}
	if !strings.Contains(maxTokens, "split the task") {
		t.Errorf("max_tokens is not explained as a sign that the task should be split: %q", maxTokens)
	}
	for _, want := range []string{
		string(turnwright.Success), string(turnwright.ErrorMaxTurns), string(turnwright.ErrorMaxBudgetUSD), string(turnwright.ErrorDuringExecution), string(turnwright.ErrorMaxStructuredOutputRetries),
		string(message.TerminalCompleted), string(message.TerminalMaxTurns), string(message.TerminalBudgetExhausted), string(message.TerminalAbortedStreaming), string(message.TerminalAbortedTools),
		string(message.TerminalAPIError), string(message.TerminalModelError), string(message.TerminalPromptTooLong), string(message.TerminalMalformedToolUse),
	} {
		if !strings.Contains(string(page), "`"+want+"`") {
			t.Errorf("the page has no %q", want)
		}
	}
}
