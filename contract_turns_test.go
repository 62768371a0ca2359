package turnwright_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// The contract_*_test.go files go through docs/contract/loop.md and
// messages.md from outside: only the public API, the real client and tools,
// and a server that refuses what the API would refuse.

// start opens a session that the test closes at its end.
func start(t *testing.T, o turnwright.Options) *turnwright.Session {
	t.Helper()
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// send sends text and returns its uuid.
func send(t *testing.T, s *turnwright.Session, text string) string {
	t.Helper()
	id, err := s.Send(t.Context(), turnwright.Input{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// readTurn reads to the next result.
func readTurn(t *testing.T, s *turnwright.Session) outcome {
	t.Helper()
	var out outcome
	for m, err := range s.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out.add(m)
		if out.result != nil {
			return out
		}
	}
	t.Fatalf("the messages ended without a result: %s", out.shape())
	return out
}

// readAll reads until the session closes itself.
func readAll(t *testing.T, s *turnwright.Session) outcome {
	t.Helper()
	s.EndInput()
	var out outcome
	for m, err := range s.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out.add(m)
	}
	return out
}

// assistants are the assistant messages of a run.
func (o *outcome) assistants() []*turnwright.AssistantMessage {
	var all []*turnwright.AssistantMessage
	for _, m := range o.messages {
		if a, ok := m.(*turnwright.AssistantMessage); ok {
			all = append(all, a)
		}
	}
	return all
}

// results are all results of a run.
func (o *outcome) results() []*turnwright.ResultMessage {
	var all []*turnwright.ResultMessage
	for _, m := range o.messages {
		if r, ok := m.(*turnwright.ResultMessage); ok {
			all = append(all, r)
		}
	}
	return all
}

// retries are the api_retry messages of a run.
func (o *outcome) retries() []*message.APIRetry {
	var all []*message.APIRetry
	for _, m := range o.messages {
		if r, ok := m.(*message.APIRetry); ok {
			all = append(all, r)
		}
	}
	return all
}

// unpaired returns the calls that were shown without exactly one result that
// was shown before the result message (M-105), and results without a call.
func (o *outcome) unpaired() []string {
	shown, answered := map[string]int{}, map[string]int{}
	for _, m := range o.messages {
		switch m := m.(type) {
		case *turnwright.AssistantMessage:
			for _, u := range m.ToolUses() {
				shown[u.ID]++
			}
		case *turnwright.UserMessage:
			for _, r := range m.ToolResults() {
				answered[r.ToolUseID]++
			}
		}
		if _, end := m.(*turnwright.ResultMessage); end {
			break
		}
	}
	var bad []string
	for id, n := range shown {
		if n != 1 || answered[id] != 1 {
			bad = append(bad, fmt.Sprintf("%s shown %d, answered %d", id, n, answered[id]))
		}
	}
	for id := range answered {
		if shown[id] == 0 {
			bad = append(bad, id+" answered, never shown")
		}
	}
	return bad
}

// withNote adds the tools note and echo, approved.
func withNote(o *turnwright.Options, notes *[]string) {
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(notes), echo()}, []string{"note", "echo"}
}

func noteCall(text string) agenttest.Step {
	return agenttest.Call("note", fmt.Sprintf(`{"text":%q}`, text))
}

// TestContractHistory sends responses of every kind of block: each comes back
// unchanged and directly followed by one user message with the results of all
// its calls, in their order.
func TestContractHistory(t *testing.T) {
	conform.Covers(t, "L-1", "L-4", "L-6", "L-7", "L-13", "L-14", "L-69", "L-81", "M-31", "M-106", "B-128")
	srv := agenttest.NewServer(t, agenttest.StrictEcho(), agenttest.Script(
		agenttest.Blocks(
			agenttest.Thinking("first", "sig-1"), agenttest.Text("looking"), agenttest.Redacted("hidden"),
			noteCall("a"), agenttest.Thinking("", "sig-2"), noteCall("fail"),
		),
		agenttest.Blocks(
			agenttest.Raw(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`),
			agenttest.Raw(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`),
			agenttest.Text("found"), noteCall("b"),
		),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.Tools = []string{"Bash", "Edit", "Read"}
	out := query(t, "go", o)
	if out.err != nil {
		t.Fatal(out.err)
	}
	if want := "init assistant(thinking,text,redacted_thinking,note,thinking,note) user(ok) user(error) " +
		"assistant(server_tool_use,web_search_tool_result,text,note) user(ok) assistant(text) result(success)"; out.shape() != want {
		t.Errorf("stream:\n got %s\nwant %s", out.shape(), want)
	}
	last := srv.Last().Messages()
	if len(last) != 5 {
		t.Fatalf("the last request has %d messages, not 5", len(last))
	}
	for i, role := range []string{"user", "assistant", "user", "assistant", "user"} {
		if last[i].Role != role {
			t.Errorf("message %d has role %s, not %s", i, last[i].Role, role)
		}
	}
	var calls, results []string
	for _, b := range last[1].Content {
		if b.Type == "tool_use" {
			calls = append(calls, b.ID)
		}
	}
	for _, b := range last[2].Content {
		if b.Type == "tool_result" {
			results = append(results, b.ToolUseID)
		}
	}
	if len(calls) != 2 || fmt.Sprint(calls) != fmt.Sprint(results) {
		t.Errorf("calls %q, results %q", calls, results)
	}
	for i, r := range srv.Requests() {
		if r.FirstUserText() != "go" || r.SystemText() == "" || len(r.ToolNames()) != 5 {
			t.Errorf("request %d: prompt %q, %d tools, system %q", i, r.FirstUserText(), len(r.ToolNames()), r.SystemText())
		}
	}
	if len(notes) != 2 {
		t.Errorf("notes %q", notes)
	}
}

// TestContractInit begins every user turn with an init of the session, before
// anything else of that turn.
func TestContractInit(t *testing.T) {
	conform.Covers(t, "L-2", "L-12", "L-187", "M-24", "M-21", "M-18", "M-23", "M-12")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Text("one"), noteCall("x"), agenttest.Text("two"),
		agenttest.HTTPError(400, "invalid_request_error", "no"), agenttest.Text("four"),
	))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.Tools, o.DisallowedTools = []string{"Bash", "Edit", "Read"}, []string{"Edit"}
	s := start(t, o)
	for i, want := range []string{
		"init assistant(text) result(success)",
		"init assistant(note) user(ok) assistant(text) result(success)",
		"init assistant(text) result(error_during_execution)",
		"init assistant(text) result(success)",
	} {
		send(t, s, fmt.Sprint("prompt ", i))
		out := readTurn(t, s)
		if out.shape() != want {
			t.Errorf("turn %d: %s, want %s", i, out.shape(), want)
		}
		in := out.messages[0].(*turnwright.InitMessage)
		if in.SessionID != s.ID() || out.result.SessionID != s.ID() {
			t.Errorf("turn %d: session ids %s and %s, not %s", i, in.SessionID, out.result.SessionID, s.ID())
		}
		if got := strings.Join(slices.Sorted(slices.Values(in.Tools)), " "); got != "Bash Read echo note" {
			t.Errorf("turn %d: tools %q", i, got)
		}
		if got := strings.Join(in.Capabilities, " "); got != "interrupt_receipt_v1 interrupt_cancel_queued_v1" {
			t.Errorf("turn %d: capabilities %q", i, got)
		}
	}
}

// TestContractNoLimits goes on for as long as the model asks for tools: a day
// and dozens of turns.
func TestContractNoLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-11", "L-23", "L-41", "L-8")
		const turns = 48
		srv, o := inMemory(t, agenttest.KeepRequests(1), agenttest.NoValidate(), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			if r.Turn() == turns {
				return agenttest.Usage(agenttest.Text("done"), 100_000_000, 1, 0, 0, 0)
			}
			return agenttest.Usage(agenttest.Call("slow", `{}`), 1_000_000, 1, 0, 0, 0)
		}))
		o.CustomTools = []turnwright.Tool{turnwright.NewTool("slow", "Takes half an hour.", func(ctx context.Context, _ struct{}) (string, error) {
			time.Sleep(30 * time.Minute)
			return "", ctx.Err()
		})}
		o.AllowedTools = []string{"slow"}
		begin := time.Now()
		out := query(t, "go", o)
		if out.err != nil || out.result.NumTurns != turns+1 || out.result.ToolTurns != turns || srv.Count() != turns+1 {
			t.Errorf("%+v after %d requests, %v", out.result, srv.Count(), out.err)
		}
		if d := time.Since(begin); d < turns*30*time.Minute {
			t.Errorf("it took %v", d)
		}
		if r := out.result; r.DurationMS < turns*1_800_000 || r.DurationAPIMS > 1_800_000 {
			t.Errorf("duration %d ms, of it %d in API calls", r.DurationMS, r.DurationAPIMS)
		}
	})
}

// TestContractCounting counts turns, not requests and not messages: retries,
// continuations and failed attempts add nothing.
func TestContractCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-15", "L-17", "L-18", "L-20", "L-22", "L-31", "L-73", "L-77", "L-83")
		srv, o := inMemory(t, agenttest.StrictEcho(), agenttest.Script(
			agenttest.HTTPError(529, "overloaded_error", "busy"),
			agenttest.Blocks(noteCall("a"), noteCall("b"), noteCall("c")),
			agenttest.StopReason(agenttest.Text("thinking about it \n"), "pause_turn"),
			agenttest.Call("echo", `{"text":"x"}`),
			agenttest.StreamError(agenttest.Text("gone"), 2, "api_error", "sorry"),
			agenttest.StopReason(agenttest.Text("The answer "), "max_tokens"),
			agenttest.StopReason(agenttest.Text("is 4"), "max_tokens"),
			agenttest.Text("2."),
		))
		var notes []string
		withNote(&o, &notes)
		o.MaxTurns = new(2)
		out := query(t, "go", o)
		if out.err != nil {
			t.Fatal(out.err)
		}
		r := out.result
		if r.NumTurns != 3 || r.ToolTurns != 2 || srv.Count() != 8 {
			t.Errorf("num_turns %d, tool_turns %d, %d requests", r.NumTurns, r.ToolTurns, srv.Count())
		}
		if r.Result == nil || *r.Result != "The answer is 42." {
			t.Errorf("result %v", r.Result)
		}
		byID := map[string]bool{}
		for _, a := range out.assistants() {
			if len(a.ToolUses()) > 0 {
				byID[a.Message.ID] = true
			}
		}
		if len(byID) != r.ToolTurns {
			t.Errorf("%d ids of messages with calls, %d tool turns", len(byID), r.ToolTurns)
		}
		// A paused response is sent back as it is: no user message is added.
		paused := srv.Requests()[3].Messages()
		if m := paused[len(paused)-1]; m.Role != "assistant" || m.Content[0].Text != "thinking about it" {
			t.Errorf("after pause_turn the request ends with %+v", m)
		}
	})
}

// TestContractAtomicTurn resolves every call of a response once its tools
// start, whatever happens to one of them, before a limit ends the loop.
func TestContractAtomicTurn(t *testing.T) {
	conform.Covers(t, "L-19", "L-26", "L-28", "L-135", "M-105")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Call("nosuch", `{}`), noteCall("fail"), noteCall("a"), noteCall("b")),
		agenttest.Blocks(noteCall("never"), noteCall("never")),
		agenttest.Text("resumed"),
	))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.MaxTurns = new(1)
	s := start(t, o)
	send(t, s, "go")
	out := readTurn(t, s)
	want := "init assistant(nosuch,note,note,note) user(error) user(error) user(ok) user(ok) assistant(note,note) user(error) user(error) result(error_max_turns)"
	if out.shape() != want {
		t.Errorf("stream:\n got %s\nwant %s", out.shape(), want)
	}
	if fmt.Sprint(notes) != "[a b]" {
		t.Errorf("notes %q", notes)
	}
	if bad := out.unpaired(); len(bad) > 0 {
		t.Errorf("unpaired: %q", bad)
	}
	send(t, s, "go on") // the history is valid, and says what did not run
	if out := readTurn(t, s); out.result.IsError || *out.result.Result != "resumed" {
		t.Errorf("%+v", out.result)
	}
	for i, r := range srv.Last().LastToolResults() {
		if !r.IsError || !strings.HasPrefix(r.Text, "Not executed") {
			t.Errorf("refused call %d: %+v", i, r)
		}
	}
}

// TestContractLeavingEarly leaves the loop at each message in turn. In a
// synctest bubble a goroutine that stays is a failure of the test.
func TestContractLeavingEarly(t *testing.T) {
	conform.Covers(t, "L-63", "L-62", "L-235")
	for leave := range 9 {
		synctest.Test(t, func(t *testing.T) {
			_, o := inMemory(t, agenttest.Forever(agenttest.Call("slow", `{}`)))
			o.CustomTools = []turnwright.Tool{turnwright.NewTool("slow", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return "", ctx.Err()
			})}
			o.AllowedTools, o.MaxTurns = []string{"slow"}, new(3)
			n := 0
			for range turnwright.Query(t.Context(), "go", o) {
				if n == leave {
					break
				}
				n++
			}
			if n != leave {
				t.Errorf("left after %d messages, not %d", n, leave)
			}
		})
	}
	t.Run("session", func(t *testing.T) {
		srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
		s := start(t, base(t, srv))
		for i := range 3 { // a result does not close the session
			send(t, s, fmt.Sprint("prompt ", i))
			readTurn(t, s)
		}
	})
}
