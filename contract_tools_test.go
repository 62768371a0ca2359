package turnwright_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// TestContractResultOrder gives the results to the model in the order of the
// calls, whatever order they finish in, and shows each when its call is done.
func TestContractResultOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-7", "L-131", "L-132", "L-136", "M-36", "M-109")
		srv, o := inMemory(t, agenttest.Script(
			agenttest.Blocks(
				agenttest.CallID("toolu_3", "wait", `{"seconds":3}`), agenttest.CallID("toolu_1", "wait", `{"seconds":1}`),
				agenttest.CallID("toolu_2", "wait", `{"seconds":2}`),
			),
			agenttest.Text("done"),
		))
		o.CustomTools = []turnwright.Tool{turnwright.NewTool("wait", "Waits.", func(_ context.Context, in struct {
			Seconds int `json:"seconds"`
		},
		) (int, error) {
			time.Sleep(time.Duration(in.Seconds) * time.Second)
			return in.Seconds, nil
		}, turnwright.ReadOnly())}
		o.AllowedTools = []string{"wait"}
		begin := time.Now()
		var shown []string
		for m, err := range turnwright.Query(t.Context(), "go", o) {
			if err != nil {
				t.Fatal(err)
			}
			if u, ok := m.(*turnwright.UserMessage); ok {
				for _, r := range u.ToolResults() {
					shown = append(shown, fmt.Sprintf("%s after %v", r.ToolUseID, time.Since(begin)))
				}
			}
		}
		if got := strings.Join(shown, ", "); got != "toolu_1 after 1s, toolu_2 after 2s, toolu_3 after 3s" {
			t.Errorf("shown: %s", got)
		}
		var sent []string
		for _, r := range srv.Last().LastToolResults() {
			sent = append(sent, r.ToolUseID+"="+r.Text)
		}
		if got := strings.Join(sent, " "); got != "toolu_3=3 toolu_1=1 toolu_2=2" {
			t.Errorf("sent: %s", got)
		}
	})
}

// TestContractBuiltinsInOrder runs state-changing built-in tools one at a time
// in the order of the response, and a read after a change sees the change.
func TestContractBuiltinsInOrder(t *testing.T) {
	conform.Covers(t, "L-131", "L-133", "L-135", "L-136", "L-14")
	srv := agenttest.NewServer(t)
	o := base(t, srv)
	file := filepath.Join(o.CWD, "f")
	if err := os.WriteFile(file, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	srv = agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Read", `{"file_path":"f"}`),
		agenttest.Blocks(
			agenttest.Call("Bash", `{"command":"sleep 0.2; test ! -e g; echo $?"}`),
			agenttest.Call("Bash", `{"command":"touch g; exit 7"}`),
			agenttest.Call("Edit", `{"file_path":"f","old_string":"one","new_string":"two"}`),
			agenttest.Call("Read", `{"file_path":"f"}`),
			agenttest.Call("Bash", `{"command":"cat f; ls g"}`),
		),
		agenttest.Text("done"),
	))
	o.Env["ANTHROPIC_BASE_URL"] = srv.URL()
	o.AllowedTools = []string{"Bash", "Edit", "Read"}
	if out := query(t, "go", o); out.err != nil {
		t.Fatal(out.err)
	}
	for i, want := range []string{"0", "7", "f", "two", "two\ng"} {
		r := srv.Last().LastToolResults()[i]
		if !strings.Contains(r.Text, want) || r.IsError != (i == 1) {
			t.Errorf("result %d: %+v, want %q", i, r, want)
		}
	}
}

// TestContractDecisions lets rules, mode and callback decide together, and
// tells the model, the stream and the result about every denial.
func TestContractDecisions(t *testing.T) {
	allow := func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		return turnwright.PermissionAnswer{Allow: true}, nil
	}
	for _, tt := range []struct {
		name string
		set  func(*turnwright.Options)
		runs bool
		kind string // decision_reason_type of permission_denied; "": none is emitted
		text string // of the result
	}{
		{"nothing said", func(*turnwright.Options) {}, false, "mode", "note"},
		{"allowed", func(o *turnwright.Options) { o.AllowedTools = []string{"note"} }, true, "", "noted 1"},
		{"callback", func(o *turnwright.Options) { o.CanUseTool = allow }, true, "", "noted 1"},
		{"callback denies", func(o *turnwright.Options) {
			o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
				return turnwright.PermissionAnswer{Message: "ask me tomorrow"}, nil
			}
		}, false, "", "ask me tomorrow"},
		{"callback fails", func(o *turnwright.Options) {
			o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
				return turnwright.PermissionAnswer{}, errors.New("the form did not load")
			}
		}, false, "", "note"},
		{"callback panics", func(o *turnwright.Options) {
			o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
				panic("in the callback")
			}
		}, false, "", "note"},
		{"dontAsk", func(o *turnwright.Options) { o.PermissionMode, o.CanUseTool = turnwright.ModeDontAsk, allow }, false, "mode", "note"},
		{"dontAsk, allowed", func(o *turnwright.Options) {
			o.PermissionMode, o.AllowedTools = turnwright.ModeDontAsk, []string{"note"}
		}, true, "", "noted 1"},
		{"plan", func(o *turnwright.Options) { o.PermissionMode = turnwright.ModePlan }, false, "mode", "note"},
		{"bypass", func(o *turnwright.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions, o.Env["IS_SANDBOX"] = turnwright.ModeBypassPermissions, true, "1"
		}, true, "", "noted 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conform.Covers(t, "L-142", "L-143", "L-145", "L-147", "M-61", "M-78", "M-104", "M-105", "M-108")
			srv := agenttest.NewServer(t, agenttest.Script(agenttest.CallID("toolu_x", "note", `{"text":"x"}`), agenttest.Text("I see.")))
			o := base(t, srv)
			var notes []string
			o.CustomTools = []turnwright.Tool{note(&notes)}
			tt.set(&o)
			out := query(t, "go", o)
			if out.err != nil || (len(notes) == 1) != tt.runs {
				t.Fatalf("%s, notes %q, %v", out.shape(), notes, out.err)
			}
			want := "init assistant(note) user(ok) assistant(text) result(success)"
			if !tt.runs {
				want = strings.Replace(want, "user(ok)", "user(error)", 1)
				if tt.kind != "" {
					want = strings.Replace(want, "user(", "permission_denied user(", 1)
				}
			}
			if out.shape() != want {
				t.Errorf("%s, want %s", out.shape(), want)
			}
			got := srv.Last().LastToolResults()[0]
			if got.ToolUseID != "toolu_x" || got.IsError == tt.runs || !strings.Contains(got.Text, tt.text) {
				t.Errorf("%+v", got)
			}
			for _, m := range out.messages {
				if d, ok := m.(*message.PermissionDenied); ok && (d.ToolName != "note" || d.ToolUseID != "toolu_x" || d.DecisionReasonType != tt.kind || d.Message != got.Text) {
					t.Errorf("%+v; the model got %q", d, got.Text)
				}
			}
			denials := out.result.PermissionDenials
			if tt.runs != (len(denials) == 0) || len(denials) > 0 && (denials[0].ToolUseID != "toolu_x" || denials[0].ToolName != "note" || string(denials[0].ToolInput) != `{"text":"x"}`) {
				t.Errorf("permission_denials %+v", denials)
			}
		})
	}
}

// TestContractRuleDenies denies by a rule what an approval would allow, and
// takes a tool that is denied as a whole from the model.
func TestContractRuleDenies(t *testing.T) {
	conform.Covers(t, "L-142", "L-143", "M-18", "M-61", "M-104")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("note", `{"text":"x"}`), agenttest.Text("I see.")))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.DisallowedTools = []string{"note"}
	o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		return turnwright.PermissionAnswer{Allow: true}, nil
	}
	out := query(t, "go", o)
	if out.err != nil || len(notes) > 0 || !srv.Last().LastToolResults()[0].IsError {
		t.Errorf("%s, notes %q, %v", out.shape(), notes, out.err)
	}
	if got := strings.Join(srv.Last().ToolNames(), " "); strings.Contains(got, "note") {
		t.Errorf("offered: %s", got)
	}
	for _, name := range out.messages[0].(*turnwright.InitMessage).Tools {
		if name == "note" {
			t.Error("init lists a tool that is denied")
		}
	}
}

// TestContractLongDecision waits for an approval as long as it takes, and only
// an interrupt ends the wait.
func TestContractLongDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-146", "M-116")
		_, o := inMemory(t, agenttest.Forever(agenttest.Blocks(noteCall("x"), noteCall("y"))))
		var notes []string
		o.CustomTools, o.MaxTurns = []turnwright.Tool{note(&notes)}, new(1)
		o.CanUseTool = func(ctx context.Context, _ turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
			select {
			case <-ctx.Done():
				return turnwright.PermissionAnswer{}, ctx.Err()
			case <-time.After(30 * 24 * time.Hour):
				return turnwright.PermissionAnswer{Allow: true}, nil
			}
		}
		s := start(t, o)
		send(t, s, "go")
		if out := readTurn(t, s); len(notes) != 2 || out.result.ToolTurns != 1 {
			t.Errorf("%s, notes %q", out.shape(), notes)
		}
		send(t, s, "again")
		time.Sleep(time.Hour)
		if _, err := s.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		out := readTurn(t, s)
		if out.result.TerminalReason != message.TerminalAbortedTools || len(notes) != 2 || time.Since(begin) > 2*time.Second {
			t.Errorf("%s, notes %q", out.shape(), notes)
		}
		if bad := out.unpaired(); len(bad) > 0 {
			t.Errorf("unpaired: %q", bad)
		}
	})
}

// TestContractChangedInput runs a call with the input of the approval; model
// and stream keep what the model wrote.
func TestContractChangedInput(t *testing.T) {
	conform.Covers(t, "L-148", "M-33")
	srv := agenttest.NewServer(t, agenttest.StrictEcho(), agenttest.Script(noteCall("hers"), agenttest.Text("done")))
	o := base(t, srv)
	var notes []string
	o.CustomTools = []turnwright.Tool{note(&notes)}
	o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		return turnwright.PermissionAnswer{Allow: true, Input: json.RawMessage(`{"text":"ours"}`)}, nil
	}
	out := query(t, "go", o)
	if out.err != nil || fmt.Sprint(notes) != "[ours]" {
		t.Errorf("notes %q, %v", notes, out.err)
	}
	if in := string(out.assistants()[0].ToolUses()[0].Input); in != `{"text":"hers"}` {
		t.Errorf("the stream shows %s", in)
	}
	if in := string(srv.Last().Messages()[1].Content[0].Input); in != `{"text":"hers"}` {
		t.Errorf("the model sees %s", in)
	}
}

// TestContractHandlerFailures turns every failure of a handler into a result
// that the model can read; the loop goes on.
func TestContractHandlerFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-137", "L-234", "M-104")
		fails := func(name string, fn func(context.Context) (any, error), opts ...turnwright.ToolOption) turnwright.Tool {
			return turnwright.NewTool(name, "Test.", func(ctx context.Context, _ struct{}) (any, error) { return fn(ctx) }, opts...)
		}
		all := []turnwright.Tool{
			fails("error", func(context.Context) (any, error) { return nil, errors.New("disk on fire") }),
			fails("panic", func(context.Context) (any, error) { panic("oh no") }),
			fails("nil", func(context.Context) (any, error) {
				m := map[string]map[string]int{}
				m["none"]["x"] = 1
				return nil, nil
			}),
			fails("late", func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, turnwright.ToolTimeout(time.Minute)),
			fails("unwritable", func(context.Context) (any, error) { return make(chan int), nil }),
			fails("number", func(context.Context) (any, error) { return 42, nil }),
			fails("object", func(context.Context) (any, error) { return map[string]bool{"ok": true}, nil }),
			fails("text", func(context.Context) (any, error) { return "plain", nil }),
			fails("empty", func(context.Context) (any, error) { return "", nil }),
		}
		want := []string{"disk on fire", "panic", "nil", "late", "unwritable", "42", `{"ok":true}`, "plain", ""}
		var steps []agenttest.Step
		var names []string
		for _, tl := range all {
			names = append(names, tl.Spec().Name)
			steps = append(steps, agenttest.Call(tl.Spec().Name, `{}`))
		}
		srv, o := inMemory(t, agenttest.Script(agenttest.Blocks(steps...), agenttest.Text("done")))
		o.CustomTools, o.AllowedTools = all, names
		if out := query(t, "go", o); out.err != nil {
			t.Fatal(out.err)
		}
		for i, r := range srv.Last().LastToolResults() {
			if r.IsError != (i < 5) || !strings.Contains(r.Text, want[i]) {
				t.Errorf("%s: error %v, text %q", names[i], r.IsError, r.Text)
			}
		}
	})
}
