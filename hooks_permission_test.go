package turnwright_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// TestPermissionRequestHooks: hooks answer for whoever would be asked, beside
// the callback or in its place.
func TestPermissionRequestHooks(t *testing.T) {
	conform.Covers(t, "H-74", "H-113", "H-114", "H-115", "P-35", "P-113", "P-122", "W-150", "W-165")
	allow := &hook.Answer{Allow: true}
	never := func(ctx context.Context, _ turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		<-ctx.Done() // withdrawn when the hook has decided
		return turnwright.PermissionAnswer{}, ctx.Err()
	}
	var heard chan struct{} // closed when the hooks have run: an answer before that would withdraw them
	yes := func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		<-heard
		return turnwright.PermissionAnswer{Allow: true}, nil
	}
	for name, tt := range map[string]struct {
		answers []*hook.Answer
		set     func(*turnwright.Options)
		notes   string
		told    string
		fired   bool
		halted  bool
	}{
		"allow, nobody to ask":  {answers: []*hook.Answer{allow}, notes: "x", fired: true},
		"deny, nobody to ask":   {answers: []*hook.Answer{{Message: "closed"}, allow}, told: "closed", fired: true},
		"deny without a word":   {answers: []*hook.Answer{{}}, told: "PermissionRequest hook", fired: true},
		"nothing decided":       {answers: []*hook.Answer{nil}, told: "no way to ask", fired: true},
		"allow before callback": {answers: []*hook.Answer{allow}, set: func(o *turnwright.Options) { o.CanUseTool = never }, notes: "x", fired: true},
		"the callback decides":  {answers: []*hook.Answer{nil}, set: func(o *turnwright.Options) { o.CanUseTool = yes }, notes: "x", fired: true},
		"interrupt":             {answers: []*hook.Answer{{Message: "stop it", Interrupt: true}}, told: "stop it", fired: true, halted: true},
		"another input":         {answers: []*hook.Answer{{Allow: true, UpdatedInput: json.RawMessage(`{"text":"y"}`)}}, notes: "y", fired: true},
		"an invalid input":      {answers: []*hook.Answer{{Allow: true, UpdatedInput: json.RawMessage(`{"texts":"y"}`)}}, told: "text", fired: true},
		"an input that a rule denies": {
			answers: []*hook.Answer{{Allow: true, UpdatedInput: json.RawMessage(`{"text":"evil"}`)}}, told: "note(text:evil)", fired: true,
			set: func(o *turnwright.Options) { o.DisallowedTools = []string{"note(text:evil)"} },
		},
		"allowed anyway": {answers: []*hook.Answer{{}}, set: func(o *turnwright.Options) { o.AllowedTools = []string{"note"} }, notes: "x"},
		"denied anyway":  {answers: []*hook.Answer{allow}, set: func(o *turnwright.Options) { o.DisallowedTools = []string{"note(text:x)"} }, told: "denied"},
		"dontAsk":        {answers: []*hook.Answer{allow}, set: func(o *turnwright.Options) { o.PermissionMode = turnwright.ModeDontAsk }, told: "dontAsk"},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			fired := false
			heard = make(chan struct{})
			out, srv := hooked(t, &notes, "x", func(o *turnwright.Options) {
				var funcs []hook.Func
				for _, a := range tt.answers {
					funcs = append(funcs, hook.On(func(_ context.Context, in *hook.PermissionRequestInput) (hook.Output, error) {
						if in.ToolName != "note" || string(in.ToolInput) != `{"text":"x"}` {
							t.Errorf("%+v", in)
						}
						return hook.Output{Answer: a}, nil
					}))
				}
				funcs = append(funcs, func(context.Context, hook.Input, string) (hook.Output, error) {
					fired = true
					close(heard)
					return hook.Output{}, nil
				})
				o.Hooks = on(hook.PermissionRequest, funcs...)
				if tt.set != nil {
					tt.set(o)
				}
			})
			if strings.Join(notes, " ") != tt.notes || fired != tt.fired {
				t.Errorf("notes %q, fired %v", notes, fired)
			}
			if halted := out.result.TerminalReason == message.TerminalAbortedTools; halted != tt.halted {
				t.Errorf("%+v", out.result)
			}
			if tt.told != "" && !tt.halted {
				if text, _ := toolText(t, srv); !strings.Contains(text, tt.told) {
					t.Errorf("told %q", text)
				}
			}
		})
	}
	// A change of the mode holds from the next call on.
	var notes []string
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("note", `{"text":"1"}`), agenttest.Call("Write", `{"file_path":"new.txt","content":"x"}`), agenttest.Text("done"),
	))
	o := base(t, srv)
	o.CustomTools = []turnwright.Tool{note(&notes)}
	o.Hooks = on(hook.PermissionRequest, hook.On(func(_ context.Context, in *hook.PermissionRequestInput) (hook.Output, error) {
		if in.ToolName != "note" {
			t.Errorf("asked about %s", in.ToolName)
		}
		return hook.Output{Answer: &hook.Answer{Allow: true, Updates: []permission.Update{{Type: "setMode", Mode: permission.ModeAcceptEdits, Destination: "session"}}}}, nil
	}))
	if out := query(t, "go", o); len(out.result.PermissionDenials) > 0 {
		t.Errorf("%+v", out.result)
	}
}

// TestNotificationHooks: a question that nobody answers for a while is told.
func TestNotificationHooks(t *testing.T) {
	conform.Covers(t, "H-90", "H-125", "W-149")
	for _, tt := range []struct {
		answered time.Duration
		off      string
		told     int32
	}{{5 * time.Second, "", 0}, {time.Hour, "", 1}, {time.Hour, "1", 0}} {
		synctest.Test(t, func(t *testing.T) {
			_, o := inMemory(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Text("done")))
			o.CustomTools = []turnwright.Tool{echo()}
			o.Env["CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS"] = tt.off
			o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
				time.Sleep(tt.answered)
				return turnwright.PermissionAnswer{Allow: true}, nil
			}
			var told atomic.Int32
			start := time.Now()
			o.Hooks = hook.Table{hook.Notification: {{Matcher: "permission_prompt", Hooks: []hook.Func{hook.On(func(_ context.Context, in *hook.NotificationInput) (hook.Output, error) {
				told.Add(1)
				if took := time.Since(start); took < 6*time.Second || took > 7*time.Second || !strings.Contains(in.Message, "echo") {
					t.Errorf("after %v: %+v", took, in)
				}
				return hook.Output{Stop: true, SystemMessage: "x"}, nil
			})}}}}
			if out := query(t, "go", o); !out.resultOK() || told.Load() != tt.told || len(out.infos()) > 0 {
				t.Errorf("answered after %v: told %d times, %+v", tt.answered, told.Load(), out.result)
			}
		})
	}
}

// TestHookLostChannel: hooks that cannot be reached any more end the turn, once.
func TestHookLostChannel(t *testing.T) {
	conform.Covers(t, "B-172", "W-378")
	var notes []string
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Call("note", `{"text":"x"}`)))
	o := base(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
	o.Hooks = on(hook.PreToolUse, func(context.Context, hook.Input, string) (hook.Output, error) {
		return hook.Output{}, fmt.Errorf("the host is gone: %w", turnwright.ErrChannelLost)
	})
	if out := query(t, "go", o); srv.Count() != 1 || len(notes) > 0 || out.result.TerminalReason != message.TerminalAbortedTools {
		t.Errorf("%d requests, %+v", srv.Count(), out.result)
	}
}

// TestSetHooks: the callbacks of a session can be replaced while it runs.
func TestSetHooks(t *testing.T) {
	conform.Covers(t, "H-9")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if len(r.LastToolResults()) == 0 {
			return agenttest.Call("echo", `{"text":"x"}`)
		}
		return agenttest.Text("done")
	}))
	o := base(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var events []string
	record := func(_ context.Context, in hook.Input, _ string) (hook.Output, error) {
		events = append(events, hook.Name(in))
		return hook.Output{}, nil
	}
	for _, table := range []hook.Table{nil, {
		hook.PreToolUse: {{Hooks: []hook.Func{record}}}, hook.PostToolBatch: {{Hooks: []hook.Func{record}}}, hook.Stop: {{Hooks: []hook.Func{record}}},
	}, {hook.Stop: {{Hooks: []hook.Func{record}}}}, nil} {
		if err := s.SetHooks(table); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ask(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(events, " "); got != "PreToolUse:echo PostToolBatch Stop Stop" {
		t.Errorf("%s", got)
	}
	if err := s.SetHooks(hook.Table{"Nope": nil}); err == nil || !strings.Contains(err.Error(), "Nope") {
		t.Errorf("%v", err)
	}
}
