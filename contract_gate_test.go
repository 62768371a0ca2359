package turnwright_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// bashCalls has the model run each command in a response of its own.
func bashCalls(commands ...string) agenttest.Option {
	var steps []agenttest.Step
	for _, c := range commands {
		steps = append(steps, agenttest.Call("Bash", string(mustJSON(map[string]string{"command": c, "description": "does " + c}))))
	}
	return agenttest.Script(append(steps, agenttest.Text("done"))...)
}

// TestCallbackSeesWhatIsLeft: only calls that nothing decides are asked about,
// with what is needed to decide.
func TestCallbackSeesWhatIsLeft(t *testing.T) {
	conform.Covers(t, "P-115", "P-114", "P-76", "P-77", "O-52", "O-54", "B-061")
	outside := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := base(t, agenttest.NewServer(t, bashCalls("ls", "expr 1 + 1", "expr 2", "cat "+outside, "false && expr 1 + 1")))
	o.AllowedTools, o.DisallowedTools = []string{"Bash(expr 1 *)"}, []string{"Bash(false:*)"}
	var asked []turnwright.PermissionRequest
	o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		asked = append(asked, r)
		return turnwright.PermissionAnswer{Message: "no"}, nil
	}
	out := query(t, "go", o)
	if len(asked) != 2 || len(out.result.PermissionDenials) != 3 {
		t.Fatalf("asked %+v, denials %+v", asked, out.result.PermissionDenials)
	}
	expr, cat := asked[0], asked[1]
	if !strings.Contains(string(expr.Input), `"expr 2"`) || expr.Description != "does expr 2" || expr.Title != "Allow Bash: expr 2?" || expr.DisplayName != "Bash" || expr.BlockedPath != "" || expr.AgentID != "" {
		t.Errorf("asked %+v", expr)
	}
	if len(expr.Suggestions) != 1 || expr.Suggestions[0].Rules[0] != (permission.RuleValue{ToolName: "Bash", RuleContent: "expr 2"}) || expr.Suggestions[0].Destination != "localSettings" {
		t.Errorf("suggested %+v", expr.Suggestions)
	}
	if real, err := filepath.EvalSymlinks(outside); err != nil || cat.BlockedPath != real {
		t.Errorf("blocked path %q, want %q", cat.BlockedPath, outside)
	}
	if expr.RequestID == "" || expr.RequestID == cat.RequestID {
		t.Errorf("request ids %q and %q", expr.RequestID, cat.RequestID)
	}
}

// TestCallbackCanApprove what no rule and no mode approves.
func TestCallbackCanApprove(t *testing.T) {
	conform.Covers(t, "P-111", "P-113", "P-116")
	srv := agenttest.NewServer(t, bashCalls("rmdir .", "echo approved $((1+1))"))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	var asked []string
	o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		asked = append(asked, r.Reason)
		return turnwright.PermissionAnswer{Allow: true, Input: json.RawMessage(`{"command":"echo instead"}`)}, nil
	}
	out := query(t, "go", o)
	if len(asked) != 1 || !strings.Contains(asked[0], "removes .") || len(out.result.PermissionDenials) > 0 {
		t.Errorf("asked %q, denials %v", asked, out.result.PermissionDenials)
	}
	if got := srv.Requests()[1].LastToolResults()[0].Text; got != "instead" {
		t.Errorf("the changed command gave %q", got)
	}
}

// TestUpdatedInputIsChecked: an answer cannot change a call into a denied one.
func TestUpdatedInputIsChecked(t *testing.T) {
	conform.Covers(t, "P-119")
	srv := agenttest.NewServer(t, bashCalls("expr 1"))
	o := base(t, srv)
	o.DisallowedTools = []string{"Bash(touch *)"}
	o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		return turnwright.PermissionAnswer{Allow: true, Input: json.RawMessage(`{"command":"true && touch made"}`)}, nil
	}
	query(t, "go", o)
	if r := srv.Last().LastToolResults()[0]; !r.IsError || !strings.Contains(r.Text, "touch *") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(o.CWD, "made")); err == nil {
		t.Error("the denied command ran")
	}
}

// TestCallbackWaits: an answer may take as long as it takes; only the end of
// the query ends the wait.
func TestCallbackWaits(t *testing.T) {
	conform.Covers(t, "P-118")
	t.Run("for an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, o := inMemory(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Text("done")))
			o.CustomTools = []turnwright.Tool{echo()}
			o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
				time.Sleep(100 * time.Hour)
				return turnwright.PermissionAnswer{Allow: true}, nil
			}
			if out := query(t, "go", o); out.err != nil || len(out.result.PermissionDenials) > 0 {
				t.Errorf("%+v, %v", out.result, out.err)
			}
		})
	})
	t.Run("or the end", func(t *testing.T) {
		o := base(t, agenttest.NewServer(t, agenttest.Forever(agenttest.Call("echo", `{"text":"x"}`))))
		o.CustomTools = []turnwright.Tool{echo()}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var ended error
		done := make(chan struct{})
		o.CanUseTool = func(ctx context.Context, _ turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
			defer close(done)
			cancel()
			<-ctx.Done()
			ended = ctx.Err()
			return turnwright.PermissionAnswer{}, ended
		}
		for range turnwright.Query(ctx, "go", o) {
		}
		<-done
		if ended == nil {
			t.Error("the callback's context did not end")
		}
	})
}

// TestCommandsAreJudgedWhereTheyRun: after a kept "cd" a relative path is what
// it is from there, for the working directories and for the rules.
func TestCommandsAreJudgedWhereTheyRun(t *testing.T) {
	conform.Covers(t, "T-109", "P-76")
	srv := agenttest.NewServer(t, bashCalls("cat ../f.txt", "cd sub", "cat ../f.txt", "cat secret.txt", "cat ../../outside.txt", "cat g.txt"))
	o := base(t, srv)
	o.CWD = filepath.Join(t.TempDir(), "project")
	o.DisallowedTools = []string{"Read(./sub/secret.txt)"}
	for _, name := range []string{"f.txt", "../f.txt", "../outside.txt", "sub/g.txt", "sub/secret.txt"} {
		path := filepath.Join(o.CWD, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out := query(t, "go", o); out.err != nil {
		t.Fatal(out.err)
	}
	requests := srv.Requests()[1:]
	for i, want := range []string{"", "(no output)", "content of f.txt", "", "", "content of sub/g.txt"} {
		r := requests[i].LastToolResults()[0]
		if r.IsError != (want == "") || want != "" && r.Text != want || strings.Contains(r.Text, "content of ") != strings.HasPrefix(want, "content") {
			t.Errorf("command %d: error %v, %q; want %q", i, r.IsError, r.Text, want)
		}
	}
}

// TestModesOfCommands runs real commands in each mode.
func TestModesOfCommands(t *testing.T) {
	conform.Covers(t, "P-8", "P-9", "P-10", "P-15", "P-66", "O-49", "O-50", "B-063")
	for mode, want := range map[turnwright.PermissionMode]string{
		turnwright.ModeDefault:     "ls",
		turnwright.ModeAcceptEdits: "ls touch",
		turnwright.ModePlan:        "ls",
		turnwright.ModeDontAsk:     "ls expr",
	} {
		o := base(t, agenttest.NewServer(t, bashCalls("ls", "touch made", "expr 1")))
		o.PermissionMode = mode
		if mode == turnwright.ModeDontAsk || mode == turnwright.ModePlan {
			o.AllowedTools = []string{"Bash(expr *)"}
		}
		out := query(t, "go", o)
		denied := map[string]bool{}
		for _, d := range out.result.PermissionDenials {
			var in struct{ Command string }
			if err := json.Unmarshal(d.ToolInput, &in); err != nil || d.ToolName != "Bash" || d.ToolUseID == "" {
				t.Errorf("denial %+v, %v", d, err)
			}
			denied[strings.Fields(in.Command)[0]] = true
		}
		var ran []string
		for _, name := range []string{"ls", "touch", "expr"} {
			if !denied[name] {
				ran = append(ran, name)
			}
		}
		_, err := os.Stat(filepath.Join(o.CWD, "made"))
		if got := strings.Join(ran, " "); got != want || (err == nil) == denied["touch"] || out.result.Subtype != turnwright.Success {
			t.Errorf("%s: ran %q, want %q; made: %v", mode, got, want, err)
		}
	}
}
