package turnwright_test

import (
	"context"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// TestDefer: a deferred call ends the run and waits for the next prompt, in
// another process too, where the hooks are asked again.
func TestDefer(t *testing.T) {
	conform.Covers(t, "H-108", "H-109", "H-106", "L-139", "L-140", "L-141", "W-161", "W-273")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Text("I note it."), agenttest.CallID("toolu_1", "note", `{"text":"x"}`)), agenttest.Text("noted"),
	))
	o := base(t, srv)
	var notes []string
	asked := 0
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
	decision := hook.Defer
	o.Hooks = on(hook.PreToolUse, hook.On(func(_ context.Context, in *hook.PreToolUseInput) (hook.Output, error) {
		if asked++; in.ToolUseID != "toolu_1" || string(in.ToolInput) != `{"text":"x"}` {
			t.Errorf("asked about %+v", in)
		}
		return hook.Output{Permission: decision, UpdatedInput: mustJSON(map[string]string{"text": "y"})}, nil
	}))
	deferred := func(out outcome, reason string) {
		t.Helper()
		r := out.result
		d := r.DeferredToolUse
		if r.Subtype != turnwright.Success || r.StopReason == nil || *r.StopReason != reason || string(r.TerminalReason) != reason ||
			d == nil || d.ID != "toolu_1" || d.Name != "note" || string(d.Input) != `{"text":"x"}` || r.IsError != (reason != "tool_deferred") {
			t.Fatalf("%+v, %+v", r, d)
		}
	}
	out := query(t, "go", o)
	deferred(out, "tool_deferred")
	if out.err != nil || *out.result.Result != "I note it." || srv.Count() != 1 || len(notes) > 0 || strings.Contains(out.shape(), "user") {
		t.Fatalf("%v, %s", out.err, out.shape())
	}
	o.Resume = out.result.SessionID
	// Once more, and then in a session without the tool.
	deferred(query(t, "go on", o), "tool_deferred")
	gone := o
	gone.CustomTools = nil
	gone.AllowedTools = nil
	n := asked
	deferred(query(t, "go on", gone), "tool_deferred_unavailable")
	if asked != n || srv.Count() != 1 {
		t.Errorf("asked %d times, %d requests", asked, srv.Count())
	}
	decision = ""
	out = query(t, "and now", o)
	if !out.resultOK() || *out.result.Result != "noted" || strings.Join(notes, " ") != "y" || srv.Count() != 2 || asked != 3 {
		t.Errorf("notes %q, %d requests, asked %d times: %+v", notes, srv.Count(), asked, out.result)
	}
	if res := srv.Last().LastToolResults(); len(res) != 1 || res[0].Text != "noted 1" || !strings.Contains(srv.Last().UserText(), "and now") {
		t.Errorf("%+v", srv.Last().Messages())
	}
}

// TestDeferOfSeveral: one of several calls cannot be deferred.
func TestDeferOfSeveral(t *testing.T) {
	conform.Covers(t, "H-108", "L-140")
	var notes []string
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Call("note", `{"text":"1"}`), agenttest.Call("note", `{"text":"2"}`)), agenttest.Text("done"),
	))
	o := base(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
	o.Hooks = on(hook.PreToolUse, answers(hook.Output{Permission: hook.Defer}))
	out := query(t, "go", o)
	if len(notes) != 2 || out.result.TerminalReason != message.TerminalCompleted || len(out.infos()) != 2 || !strings.Contains(out.infos()[0], "deferred") {
		t.Errorf("notes %q, told %q", notes, out.infos())
	}
}
