package agenttest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

const (
	echoThought  = `{"type":"thinking","thinking":"first","signature":"sig1"}`
	echoText     = `{"type":"text","text":"look"}`
	echoRedacted = `{"type":"redacted_thinking","data":"ZA=="}`
	echoCallA    = `{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}`
	echoThought2 = `{"type":"thinking","thinking":"second","signature":"sig2"}`
	echoCallB    = `{"type":"tool_use","id":"b","name":"Bash","input":{"command":"pwd"}}`
	adaptive     = `"thinking":{"type":"adaptive"}`
)

func TestStrictEcho(t *testing.T) {
	conform.Covers(t, "B-128")
	answer := Blocks(Thinking("first", "sig1"), Text("look"), Redacted("ZA=="), CallID("a", "Bash", `{"command":"ls"}`),
		Thinking("second", "sig2"), CallID("b", "Bash", `{"command":"pwd"}`))
	results := user(result("a"), result("b"))
	loop := func(blocks ...string) string { return conv(hello, assistant(blocks...), results) }
	over := func(blocks ...string) string {
		return conv(hello, assistant(blocks...), results, assistant(textBlock("done")), hello)
	}
	other := func(body string) string { return strings.Replace(body, "test-model", "other-model", 1) }
	whole := []string{echoThought, echoText, echoRedacted, echoCallA, echoThought2, echoCallB}
	for _, tt := range []struct {
		name, body, path, message string
	}{
		{"unchanged", with(loop(whole...), bashDef, adaptive), "", ""},
		{"other spelling of the same", with(loop(echoThought, `{"text":"\u006cook","type":"text","citations":null}`, echoRedacted, echoCallA, echoThought2, marked(echoCallB, "")), bashDef, adaptive), "", ""},
		{"over two messages", with(conv(hello, assistant(whole[:3]...), assistant(whole[3:]...), results), bashDef, adaptive), "", ""},
		{"more before and after", with(conv(hello, assistant(append([]string{textBlock("x")}, append(whole, textBlock("y"))...)...), results), bashDef, adaptive), "", ""},
		{"thinking changed", with(loop(strings.Replace(echoThought, "first", "First", 1), echoText, echoRedacted, echoCallA, echoThought2, echoCallB), bashDef, adaptive), "messages.1.content.0", "cannot be modified"},
		{"signature changed", with(loop(echoThought, echoText, echoRedacted, echoCallA, strings.Replace(echoThought2, "sig2", "sig3", 1), echoCallB), bashDef, adaptive), "messages.1.content.4", "cannot be modified"},
		{"redacted left out", with(loop(echoThought, echoText, echoCallA, echoThought2, echoCallB), bashDef, adaptive), "messages.1.content.2", "cannot be modified"},
		{"all thinking left out", with(loop(echoText, echoCallA, echoCallB), bashDef, adaptive), "messages.1.content.1", "is missing"},
		{"text changed", with(loop(echoThought, textBlock("looked"), echoRedacted, echoCallA, echoThought2, echoCallB), bashDef, adaptive), "messages.1.content.1", "was changed or left out"},
		{"input changed", with(loop(echoThought, echoText, echoRedacted, strings.Replace(echoCallA, "ls", "ls -l", 1), echoThought2, echoCallB), bashDef, adaptive), "messages.1.content.3", "was changed or left out"},
		{"call left out", with(conv(hello, assistant(echoThought, echoText, echoRedacted, echoCallA), user(result("a"))), bashDef, adaptive), "messages.1.content.0", "is missing"},
		{"order changed", with(loop(echoThought, echoText, echoRedacted, echoCallB, echoThought2, echoCallA), bashDef, adaptive), "messages.1.content.3", "is not in its place"},
		{"block put between", with(loop(echoThought, textBlock("x"), echoText, echoRedacted, echoCallA, echoThought2, echoCallB), bashDef, adaptive), "messages.1.content.1", "is not in its place"},
		{"loop over, thinking left out", with(over(echoText, echoCallA, echoCallB), bashDef, adaptive), "", ""},
		{"loop over, thinking half left out", with(over(echoText, echoCallA, echoThought2, echoCallB), bashDef, adaptive), "messages.1.content.1", "cannot be modified"},
		{"loop over, call changed", with(over(echoText, strings.Replace(echoCallA, "ls", "rm", 1), echoCallB), bashDef, adaptive), "messages.1.content.1", "was changed"},
		{"other model, thinking left out", other(with(loop(echoText, echoCallA, echoCallB), bashDef, adaptive)), "", ""},
		{"thinking off, left out", with(loop(echoText, echoCallA, echoCallB), bashDef), "", ""},
		{"foreign history", with(conv(hello, assistant(use("elsewhere")), user(result("elsewhere"))), bashDef, adaptive), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewServer(t, StrictEcho(), ExpectInvalid(), answer, Text("done"))
			post(t, s, streaming(conv(hello), bashDef, adaptive))
			r := post(t, s, tt.body)
			if tt.message == "" {
				if r.status != 200 {
					t.Errorf("status %d: %s", r.status, r.body)
				}
				return
			}
			_, message, _ := errorOf(t, r)
			if r.status != 400 || !strings.HasPrefix(message, tt.path+": ") || !strings.Contains(message, tt.message) {
				t.Errorf("status %d: %s; want %s: … %s", r.status, message, tt.path, tt.message)
			}
		})
	}
}

// What a client may make of an answer that did not come whole is its own
// affair, and so is the input of a call that the output limit cut.
func TestStrictEchoForgives(t *testing.T) {
	call := func(input string) string { return `{"type":"tool_use","id":"a","name":"Write","input":` + input + `}` }
	cut := StopReason(CallID("a", "Write", `{"path":"x"}`), "max_tokens")
	for _, tt := range []struct {
		name string
		step Step
		back string
	}{
		{"cut connection", CutAfterEvent(Blocks(Text("lost"), CallID("a", "Write", `{"path":"x"}`)), AfterBlocks(1)), call(`{}`)},
		{"cut call, input replaced", cut, call(`{}`)},
		{"cut call, input kept", cut, call(`{"path":"x"}`)},
		{"input that is no object", CallID("a", "Write", `[1]`), call(`{}`)},
		{"input that is no JSON", CallID("a", "Write", `{"path`), call(`{}`)},
		{"empty text left out", Blocks(Text(""), CallID("a", "Write", `{}`), Text("\n")), call(`{}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewServer(t, StrictEcho(), tt.step, Text("done"))
			post(t, s, streaming(conv(hello), bashDef))
			if r := post(t, s, with(conv(hello, assistant(tt.back), user(result("a"))), bashDef)); r.status != 200 {
				t.Errorf("status %d: %s", r.status, r.body)
			}
		})
	}
}

// An answer that the client did not wait for is not compared either.
func TestStrictEchoForgetsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Start(InMemory(), StrictEcho(), DelayEach(Blocks(Text("look"), CallID("a", "Bash", `{}`)), time.Minute), Text("done"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if r := postContext(t, ctx, s, streaming(conv(hello), bashDef), goodHeader()); r.err == nil {
			t.Fatal("the answer came whole")
		}
		synctest.Wait() // the server has noticed
		if r := post(t, s, with(conv(hello, assistant(textBlock("lo"), `{"type":"tool_use","id":"a","name":"Bash","input":{}}`), user(result("a"))), bashDef)); r.status != 200 {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	})
}

// A paused answer that comes back at the end is a continuation, which models
// without prefill accept; any other text there is not.
func TestPausedTurnIsNoPrefill(t *testing.T) {
	s := NewServer(t, ExpectInvalid(), StopReason(Text("searching"), "pause_turn"), Text("found"))
	body := func(text string) string {
		return strings.Replace(with(conv(hello, assistant(textBlock(text)))), "test-model", "claude-opus-5", 1)
	}
	post(t, s, with(conv(hello)))
	if r := post(t, s, body("searching for")); r.status != 400 || !strings.Contains(r.body, "does not support assistant message prefill") {
		t.Errorf("prefill: status %d: %s", r.status, r.body)
	}
	if r := post(t, s, body("searching")); r.status != 200 {
		t.Errorf("continuation: status %d: %s", r.status, r.body)
	}
}
