package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/message"
)

// TestLive reads what a person sees of two calls that run side by side.
func TestLive(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	l := &live{w: &out, width: 50, cost: func() float64 { return 0.0123 }, now: func() time.Time { return now }}
	l.show(&message.Init{})
	l.show(&message.Assistant{Message: message.APIMessage{Content: []message.Block{
		message.NewToolUse("1", "Bash", json.RawMessage(`{"command":"go test ./...\nfalse"}`)),
		message.NewToolUse("2", "Read", json.RawMessage(`{"file_path":"/a/very/long/path/to/a/file/that/does/not/fit.go"}`)),
	}}})
	result := func(id string, isError bool) {
		l.show(&message.User{Message: message.UserBody{Content: message.BlockContent(message.NewToolResult(id, message.TextContent("x"), isError))}})
	}
	now = now.Add(1500 * time.Millisecond)
	result("2", false)
	now = now.Add(time.Minute)
	l.show(&message.PermissionDenied{ToolName: "Bash", Message: "no rule allows \x1b[2J the command, and nobody can be asked"})
	result("1", true)
	stop := "end_turn"
	r := &message.Result{Subtype: message.Success, StopReason: &stop, ToolTurns: 1, DurationMS: 61_500, TotalCostUSD: new(0.0123)}
	r.SessionID = "id"
	l.show(r)
	l.summary(r)
	const want = "… thinking\r\x1b[K" +
		"… Bash go test ./... false, and 1 more\r\x1b[K" +
		"✓ Read /a/very/long/path/to/a/fi…  1.5 s  $0.0123\n" +
		"… Bash go test ./... false\r\x1b[K" +
		"! Bash is denied: no rule allows  [2J the command, and nobody can be asked\n" +
		"… Bash go test ./... false\r\x1b[K" +
		"✗ Bash go test ./... false    1 min 01 s  $0.0123\n" +
		"… thinking\r\x1b[K" +
		"1 tool turn, 1 min 01 s, $0.0123, session id\n" +
		"Why it stopped: the model answered without asking for a tool, after 1 tool turn.\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	// A failure is told once: its text where the answer would be, its name in the
	// error, and no third time.
	out.Reset()
	failed := &message.Result{Subtype: message.ErrorDuringExecution, IsError: true, TerminalReason: message.TerminalAPIError, Errors: []string{"it broke"}}
	l.summary(failed)
	if text := out.String() + failureLine(failed, true); strings.Contains(text, "it broke") || !strings.Contains(text, "error_during_execution (api_error)") {
		t.Errorf("%q", text)
	}
	if text := failureLine(failed, false); !strings.Contains(text, "it broke") {
		t.Errorf("%q", text)
	}
	var none *live // nothing is shown where there is no terminal
	none.show(r)
	none.summary(r)
}
