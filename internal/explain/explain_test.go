package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// lines are the lines of a session whose only user turn ended so.
func lines(t testing.TB, end loop.Ending, open loop.Settings, change func(*loop.Turn)) [][]byte {
	t.Helper()
	w := journal.Writer{SessionID: "s"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out [][]byte
	put := func(e loop.Entry) {
		at = at.Add(time.Second)
		e.Time = at
		line, err := w.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	put(loop.Entry{Kind: loop.KindOpen, Open: &open})
	put(loop.Entry{Kind: loop.KindInput, Input: &loop.InputEntry{Input: loop.Input{ID: "u1", Content: message.TextContent("do it")}}})
	turn := loop.Turn{State: loop.Model, Seq: 1, Input: "u1", Started: at}
	put(loop.Entry{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Turn: turn}})
	put(loop.Entry{Kind: loop.KindUser, UUID: "u1", User: &loop.UserEntry{Content: message.TextContent("do it")}})
	put(loop.Entry{Kind: loop.KindAssistant, UUID: "a1", Assistant: &loop.AssistantEntry{Message: message.APIMessage{
		ID: "m1", Type: "message", Role: message.RoleAssistant, Model: "m", Content: []message.Block{message.NewText("hi"), message.NewToolUse("t1", "Bash", nil)},
	}}})
	put(loop.Entry{Kind: loop.KindUser, UUID: "r1", User: &loop.UserEntry{ToolUseID: "t1", Content: message.BlockContent(message.NewToolResult("t1", message.TextContent("Killed: the process was told to end"), true))}})
	if change != nil {
		change(&turn)
	}
	turn.State, turn.Input, turn.Ending = loop.Idle, "", &end
	var res *message.Result
	if !end.Silent {
		res = &message.Result{Subtype: end.Subtype, IsError: end.Subtype != message.Success || end.IsError, TerminalReason: end.Terminal, Errors: end.Errors, Result: end.Text, StopReason: turn.StopReason}
		if res.Subtype == message.Success && res.Result == nil {
			res.Result = new("")
		}
	}
	put(loop.Entry{Kind: loop.KindTurn, Turn: &loop.TurnEntry{Turn: turn, Result: res}})
	return out
}

func seq(lines [][]byte) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// TestEveryTerminalReason: whatever the loop can end with is explained, also what
// only later pieces bring about. The endings that a run can have today are proven
// by runs (TestExplainEndings).
func TestEveryTerminalReason(t *testing.T) {
	conform.Covers(t, "L-60")
	ende := message.ErrorDuringExecution
	for _, tt := range []struct {
		end    loop.Ending
		change func(*loop.Turn)
		want   string // path, field, value, limit
		next   string
	}{
		{loop.Ending{Subtype: message.Success, Terminal: message.TerminalCompleted}, func(t *loop.Turn) { t.StopReason = new("end_turn") }, "natural stop_reason end_turn ", ""},
		{loop.Ending{Subtype: message.Success, Terminal: message.TerminalCompleted}, func(t *loop.Turn) { t.StopReason = new("refusal") }, "refused stop_reason refusal ", "--fork-session"},
		{loop.Ending{Subtype: message.Success, IsError: true, Terminal: message.TerminalCompleted}, func(t *loop.Turn) { t.StopReason = new("model_context_window_exceeded") }, "cut_off stop_reason model_context_window_exceeded ", "Split"},
		{loop.Ending{Subtype: message.ErrorMaxTurns, Terminal: message.TerminalMaxTurns, Errors: []string{"Reached maximum number of turns (3)"}}, func(t *loop.Turn) { t.ToolTurns = 3 }, "cap max_turns 3 3", "--max-turns 8"},
		{loop.Ending{Subtype: message.ErrorMaxBudgetUSD, Terminal: message.TerminalBudgetExhausted, Errors: []string{"Reached maximum budget ($0.5)"}}, func(t *loop.Turn) { t.Spend.USD = 0.75 }, "budget max_budget_usd 0.75 0.5", "--max-budget-usd 1 "},
		{loop.Ending{Subtype: message.ErrorMaxStructuredOutputRetries, Terminal: message.TerminalStructuredOutputRetries}, func(t *loop.Turn) { t.Attempts = 6 }, "schema structured_output no output fitted 6 attempts", "MAX_STRUCTURED_OUTPUT_RETRIES"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalAbortedStreaming, By: "interrupt"}, nil, "interrupted interrupt while the model answered ", "next message"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalAbortedTools}, nil, "interrupted interrupt while tools ran ", "next message"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalAbortedTools, By: "approval callback"}, nil, "interrupted approval callback while tools ran ", ""},
		{loop.Ending{Subtype: message.Success, Terminal: message.TerminalToolDeferred}, nil, "deferred deferred_tool_use  ", "the tool of the call"},
		{loop.Ending{Subtype: message.Success, IsError: true, Terminal: message.TerminalToolDeferredUnavailable}, nil, "deferred deferred_tool_use  ", ""},
		{loop.Ending{Subtype: message.Success, Terminal: message.TerminalHookStopped, By: "Stop hook: done"}, nil, "hook continue Stop hook: done ", "hook"},
		{loop.Ending{Subtype: message.Success, Terminal: message.TerminalStopHookPrevented}, nil, "hook continue false ", "hook"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalPromptTooLong}, func(t *loop.Turn) {
			t.Tokens, t.Spend.Models = 250, map[string]message.ModelUsage{"m": {ContextWindow: 200}}
		}, "context context_tokens 250 200", "larger window"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalRapidRefillBreaker}, nil, "context context_tokens 0 ", "larger window"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalBlockingLimit}, nil, "context context_tokens 0 ", "larger window"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalImageError, Status: 400}, nil, "image api_error_status 400 ", "image"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalModelError, Status: 404}, nil, "model_error model chosen ", "--model"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalMalformedToolUse}, func(t *loop.Turn) { t.Malformed = 2 }, "malformed malformed responses in a row 3 3", "simpler"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalTurnSetupFailed, Errors: []string{"ENOSPC"}}, nil, "setup journal ENOSPC ", "disk"},
		{loop.Ending{Subtype: message.Success, IsError: true, Terminal: message.TerminalAPIError}, nil, "api_error stream broke after part of the answer ", "Nothing is lost"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalAPIError, Status: 529}, nil, "api_error api_error_status 529 ", "later"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalAPIError, Status: 429}, nil, "api_error api_error_status 429 ", "rate limit"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalAPIError, Status: 403}, nil, "api_error api_error_status 403 ", "key"},
		{loop.Ending{Subtype: ende, Terminal: message.TerminalAPIError}, nil, "api_error api_error_status none: no answer ", "network"},
		{loop.Ending{Subtype: message.Success, Text: new("Blank prompt")}, nil, "local prompt Blank prompt ", ""},
		{loop.Ending{Subtype: ende, By: "end of the process", NoStop: true}, nil, "process_ended process end of the process ", "go on"},
		{loop.Ending{Subtype: ende, Silent: true, By: "end of the process"}, nil, "process_ended process end of the process ", "go on"},
		{loop.Ending{Subtype: ende, Terminal: "of a later version"}, nil, "unknown terminal_reason of a later version ", ""},
	} {
		e, err := Journal("s", seq(lines(t, tt.end, loop.Settings{Format: 1, Model: "chosen"}, tt.change)))
		if err != nil || len(e.UserTurns) != 1 {
			t.Fatalf("%+v: %+v, %v", tt.end, e, err)
		}
		u := e.UserTurns[0]
		if got := strings.Join([]string{string(u.Path), u.Field, u.Value, u.Limit}, " "); got != tt.want {
			t.Errorf("%s/%s: %q, want %q", tt.end.Subtype, tt.end.Terminal, got, tt.want)
		}
		next := strings.Join(u.Next, "\n")
		if !strings.Contains(next, tt.next) || !strings.Contains(next, "See what this call did before it is repeated: Bash") || u.Why == "" {
			t.Errorf("%s/%s: why %q, next %q", tt.end.Subtype, tt.end.Terminal, u.Why, u.Next)
		}
	}
}

// TestForeign: of a session without our lines the messages tell.
func TestForeign(t *testing.T) {
	const (
		user   = `{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hello"}}`
		calls  = `{"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-01-02T03:04:06.000Z","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":6}}}`
		result = `{"type":"user","uuid":"r1","parentUuid":"a1","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]}}`
		answer = `{"type":"assistant","uuid":"a2","parentUuid":"r1","timestamp":"2026-01-02T03:04:09.000Z","message":{"id":"m2","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{}}}`
		failed = `{"type":"assistant","uuid":"a3","parentUuid":"r1","timestamp":"2026-01-02T03:04:09.000Z","isApiErrorMessage":true,"error":"rate_limit","message":{"id":"m3","type":"message","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error: 429"}],"stop_reason":"stop_sequence","usage":{}}}`
	)
	for want, given := range map[string][]string{
		"natural 1 4000":    {user, calls, result, answer},
		"unfinished 1 1000": {user, calls},
		"unfinished 0 0":    {user},
		"api_error 1 1000":  {user, calls, result, failed},
	} {
		var raw [][]byte
		for _, l := range given {
			raw = append(raw, []byte(l))
		}
		e, err := Journal("s", seq(raw))
		if err != nil || !e.Foreign || len(e.UserTurns) != 1 {
			t.Fatalf("%s: %+v, %v", want, e, err)
		}
		u := e.UserTurns[0]
		raw2, _ := json.Marshal([]any{u.ToolTurns, u.DurationMS})
		if got := string(u.Path) + " " + strings.Trim(strings.ReplaceAll(string(raw2), ",", " "), "[]"); got != want || u.Prompt != "hello" || u.Why == "" {
			t.Errorf("%s, want %s: %+v", got, want, u)
		}
	}
}

// FuzzJournal: any lines are explained or refused, in both forms.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(strings.Join([]string{`{"type":"user","uuid":"u","message":{"role":"user","content":"x"}}`, `{"type":"turnwright","kind":"turn","v":1,"turn":{"state":"tools","input":"u","counts":true}}`, `{"type":"turnwright","kind":"turn","v":1,"turn":{"state":"idle"}}`}, "\n")))
	for _, l := range [][][]byte{
		lines(f, loop.Ending{Subtype: message.Success, Terminal: message.TerminalCompleted}, loop.Settings{Format: 1}, nil),
		lines(f, loop.Ending{Subtype: message.ErrorDuringExecution, Silent: true}, loop.Settings{Format: 1}, nil),
	} {
		var all []byte
		for _, line := range l {
			all = append(append(all, line...), '\n')
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var ls [][]byte
		for l := range strings.SplitSeq(string(raw), "\n") {
			ls = append(ls, []byte(l))
		}
		e, err := Journal("s", seq(ls))
		if err != nil {
			return
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
		var b strings.Builder
		if err := e.Text(&b, true); err != nil {
			t.Error(err)
		}
		for _, u := range e.UserTurns {
			if u.Path == "" || u.Why == "" {
				t.Errorf("%+v", u)
			}
		}
	})
}
