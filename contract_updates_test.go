package turnwright_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// together has the model run commands in one response.
func together(commands ...string) agenttest.Step {
	var calls []agenttest.Step
	for _, c := range commands {
		calls = append(calls, agenttest.Call("Bash", string(mustJSON(map[string]string{"command": c}))))
	}
	return agenttest.Blocks(calls...)
}

func bashRules(behavior permission.Behavior, to string, contents ...string) turnwright.PermissionUpdate {
	u := turnwright.PermissionUpdate{Type: permission.UpdateAddRules, Behavior: behavior, Destination: to}
	for _, c := range contents {
		u.Rules = append(u.Rules, permission.RuleValue{ToolName: "Bash", RuleContent: c})
	}
	return u
}

// answering answers each question with the next answer and notes the commands.
func answering(asked *[]string, answers ...turnwright.PermissionAnswer) func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
	return func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		*asked = append(*asked, commandOf(r.Input))
		if len(answers) == 0 {
			return turnwright.PermissionAnswer{}, errors.New("one question too many")
		}
		a := answers[0]
		answers = answers[1:]
		return a, nil
	}
}

// TestUpdatesHoldAtOnce: what an answer changes counts for the next call of the
// same response, and for the rest of the session.
func TestUpdatesHoldAtOnce(t *testing.T) {
	yes := func(u ...turnwright.PermissionUpdate) turnwright.PermissionAnswer {
		return turnwright.PermissionAnswer{Allow: true, Updates: u}
	}
	for _, test := range []struct {
		name    string
		ids     []string
		answers []turnwright.PermissionAnswer
		asked   string
		denied  string
	}{
		{"allow", []string{"P-122", "P-129", "P-116", "O-53"}, []turnwright.PermissionAnswer{yes(bashRules("allow", "", "expr *"))}, "expr 1", ""},
		{"deny", []string{"P-122", "P-129"}, []turnwright.PermissionAnswer{yes(bashRules("deny", "session", "expr 2", "expr 3"))}, "expr 1", "expr 2,expr 3"},
		{"in order", []string{"W-126"}, []turnwright.PermissionAnswer{
			yes(
				bashRules("allow", "session", "expr *"),
				turnwright.PermissionUpdate{Type: permission.UpdateRemoveRules, Behavior: "allow", Rules: []permission.RuleValue{{ToolName: "Bash", RuleContent: "expr *"}}},
				bashRules("allow", "session", "expr 3"),
			), {},
		}, "expr 1,expr 2", "expr 2"},
		{"a mode", []string{"P-122", "P-129", "P-15"}, []turnwright.PermissionAnswer{yes(turnwright.PermissionUpdate{Type: permission.UpdateSetMode, Mode: turnwright.ModeDontAsk})}, "expr 1", "expr 2,expr 3"},
		{"none with a denial", []string{"P-117"}, []turnwright.PermissionAnswer{{Updates: []turnwright.PermissionUpdate{bashRules("allow", "", "expr *")}}, {Allow: true}, {Allow: true}}, "expr 1,expr 2,expr 3", "expr 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conform.Covers(t, test.ids...)
			o := base(t, agenttest.NewServer(t, agenttest.Script(together("expr 1", "expr 2"), together("expr 3"), agenttest.Text("done"))))
			var asked []string
			o.CanUseTool = answering(&asked, test.answers...)
			out := query(t, "go", o)
			var denied []string
			for _, d := range out.result.PermissionDenials {
				denied = append(denied, commandOf(d.ToolInput))
			}
			if strings.Join(asked, ",") != test.asked || strings.Join(denied, ",") != test.denied {
				t.Errorf("asked %q, want %q; denied %q, want %q", asked, test.asked, denied, test.denied)
			}
			if len(files(t, o.CWD)) > 0 {
				t.Errorf("written: %q", files(t, o.CWD))
			}
		})
	}
}

// TestDeniedToolIsWithdrawn: a tool that an answer denies altogether is not
// offered again, until another answer takes that back.
func TestDeniedToolIsWithdrawn(t *testing.T) {
	conform.Covers(t, "T-10", "M-18", "P-122", "P-129")
	all := permission.RuleValue{ToolName: "Bash"}
	deny := turnwright.PermissionUpdate{Type: permission.UpdateAddRules, Behavior: "deny", Rules: []permission.RuleValue{all}}
	back := turnwright.PermissionUpdate{Type: permission.UpdateRemoveRules, Behavior: "deny", Rules: []permission.RuleValue{all}}
	write := agenttest.Call("Write", `{"file_path":"a","content":"b"}`)
	srv := agenttest.NewServer(t, agenttest.Script(
		together("expr 1", "expr 2"), agenttest.Call("Bash", `{"command":"expr 3"}`), agenttest.Text("one"), write, agenttest.Text("two"),
	))
	o := base(t, srv)
	var asked []string
	o.CanUseTool = answering(&asked, turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{deny}}, turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{back}})
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var inits []bool
	for _, prompt := range []string{"first", "second"} {
		if _, err := s.Send(t.Context(), turnwright.Input{Text: prompt}); err != nil {
			t.Fatal(err)
		}
		for m, err := range s.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if init, ok := m.(*message.Init); ok {
				inits = append(inits, slices.Contains(init.Tools, "Bash"))
			}
			if _, ok := m.(*turnwright.ResultMessage); ok {
				break
			}
		}
	}
	var offered []bool
	for _, r := range srv.Requests() {
		offered = append(offered, slices.Contains(r.ToolNames(), "Bash"))
	}
	if !slices.Equal(offered, []bool{true, false, false, false, true}) || !slices.Equal(inits, []bool{true, false}) {
		t.Errorf("offered %v, init %v", offered, inits)
	}
	if got := srv.Requests()[2].LastToolResults()[0]; !got.IsError || !strings.Contains(got.Text, "deny rule") {
		t.Errorf("called all the same: %+v", got)
	}
}

// files are the names of all files below a directory.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestModeUpdates are told on the stream; the mode that skips everything needs
// its option here as well.
func TestModeUpdates(t *testing.T) {
	conform.Covers(t, "P-23", "P-122", "M-69")
	for mode, want := range map[turnwright.PermissionMode]string{turnwright.ModeAcceptEdits: "acceptEdits", turnwright.ModeBypassPermissions: "", "sometimes": ""} {
		o := base(t, agenttest.NewServer(t, bashCalls("expr 1", "touch made")))
		o.Env["IS_SANDBOX"] = "1"
		var asked []string
		o.CanUseTool = answering(&asked, turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{{Type: permission.UpdateSetMode, Mode: mode, Destination: "session"}}})
		var lines []string
		o.Stderr = func(line string) { lines = append(lines, line) }
		out := query(t, "go", o)
		told := ""
		for _, m := range out.messages {
			if s, ok := m.(*message.Status); ok {
				told += s.PermissionMode
			}
		}
		if told != want || (len(asked) == 1) != (want != "") || (len(lines) == 1) != (want == "") {
			t.Errorf("%s: told %q, asked %q, warned %q", mode, told, asked, lines)
		}
	}
}

// TestUpdatesAreKept: the suggestion of a prompt, given back, is written to the
// local settings; so is what goes to the other files, and nothing else.
func TestUpdatesAreKept(t *testing.T) {
	conform.Covers(t, "P-123", "P-127", "O-55", "P-126")
	o := base(t, agenttest.NewServer(t, bashCalls("expr 1", "expr 1", "expr 2")))
	local := filepath.Join(o.CWD, ".claude", "settings.local.json")
	if err := os.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(local, []byte("{\n  \"model\": \"opus\"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	asked := 0
	o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		if asked++; asked == 1 {
			return turnwright.PermissionAnswer{Allow: true, Updates: r.Suggestions}, nil
		}
		return turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{
			bashRules("allow", "session", "expr 3"), bashRules("deny", "userSettings", "expr 4"),
			{Type: permission.UpdateSetMode, Mode: turnwright.ModePlan, Destination: "projectSettings"},
		}}, nil
	}
	query(t, "go", o)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	for path, want := range map[string]string{
		local: "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(expr 1)\"\n    ]\n  }\n}\n",
		filepath.Join(o.CWD, ".claude", "settings.json"):           "{\n  \"permissions\": {\n    \"defaultMode\": \"plan\"\n  }\n}\n",
		filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "settings.json"): "{\n  \"permissions\": {\n    \"deny\": [\n      \"Bash(expr 4)\"\n    ]\n  }\n}\n",
	} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s: %s, %v; want %s", path, text, err, want)
		}
	}
	if got := files(t, o.CWD); len(got) != 2 {
		t.Errorf("files %q", got)
	}
}

// TestLocalFileIsExcluded: a local settings file that an answer makes in a
// repository does not get into it; settings do not say where that is written.
func TestLocalFileIsExcluded(t *testing.T) {
	conform.Covers(t, "C-20")
	for to, want := range map[string]string{"localSettings": "**/.claude/settings.local.json\n", "projectSettings": "", "session": ""} {
		o := base(t, agenttest.NewServer(t, bashCalls("expr 1")))
		home, elsewhere := t.TempDir(), t.TempDir()
		o.Env["HOME"], o.Env["XDG_CONFIG_HOME"] = home, ""
		put(t, filepath.Join(o.CWD, ".git", "HEAD"), "ref: refs/heads/main\n")
		put(t, projectFile(&o), string(mustJSON(map[string]any{"env": map[string]string{"XDG_CONFIG_HOME": elsewhere}})))
		var asked []string
		o.CanUseTool = answering(&asked, turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{bashRules("allow", to, "expr 1")}})
		query(t, "go", o)
		got, _ := os.ReadFile(filepath.Join(home, ".config", "git", "ignore"))
		if len(asked) != 1 || string(got) != want || len(files(t, elsewhere)) > 0 {
			t.Errorf("%s: asked %v, excludes %q, elsewhere %v", to, asked, got, files(t, elsewhere))
		}
	}
}

// TestUpdatesThatFail are told, and the answer stands: one that cannot be made is
// left out, one that cannot be written holds for the session.
func TestUpdatesThatFail(t *testing.T) {
	conform.Covers(t, "P-122", "P-123")
	o := base(t, agenttest.NewServer(t, bashCalls("expr 1", "expr 2")))
	settings := filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "settings.json")
	if err := os.WriteFile(settings, []byte("{broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	var lines []string
	o.Stderr = func(line string) {
		if strings.HasPrefix(line, "A permission update") { // the broken file is told of as well
			lines = append(lines, line)
		}
	}
	var asked []string
	o.CanUseTool = answering(&asked, turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{
		bashRules("allow", "policySettings", "expr 2"), bashRules("allow", "userSettings", "expr 2"),
	}})
	out := query(t, "go", o)
	if len(asked) != 1 || len(out.result.PermissionDenials) > 0 {
		t.Errorf("asked %q, denials %v", asked, out.result.PermissionDenials)
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "policySettings") || !strings.Contains(lines[1], settings) {
		t.Errorf("warned %q", lines)
	}
	if text, _ := os.ReadFile(settings); string(text) != "{broken" {
		t.Errorf("the broken file became %s", text)
	}
}

// TestUpdatedDirectories: a directory that an answer adds is one for the file
// tools and for commands, until another takes it away.
func TestUpdatedDirectories(t *testing.T) {
	conform.Covers(t, "P-122", "P-96", "P-99")
	more := t.TempDir()
	if err := os.WriteFile(filepath.Join(more, "f.txt"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	read := "cat " + filepath.Join(more, "f.txt")
	o := base(t, agenttest.NewServer(t, bashCalls(read, read, "cd "+more+" && pwd", "cat f.txt", "expr 1", read)))
	dirs := func(typ string) turnwright.PermissionAnswer {
		return turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{{Type: typ, Directories: []string{more}}}}
	}
	var asked []string
	o.CanUseTool = answering(&asked, dirs(permission.UpdateAddDirectories), dirs(permission.UpdateRemoveDirectories), turnwright.PermissionAnswer{})
	out := query(t, "go", o)
	if !slices.Equal(asked, []string{read, "expr 1", read}) || len(out.result.PermissionDenials) != 1 {
		t.Errorf("asked %q, denials %v", asked, out.result.PermissionDenials)
	}
}

// TestGrantsEndWithTheProcess: what an answer allowed for the session is asked
// about again when the session goes on elsewhere; its mode goes on.
func TestGrantsEndWithTheProcess(t *testing.T) {
	conform.Covers(t, "S-42", "P-6", "S-40")
	for mode, kept := range map[turnwright.PermissionMode]turnwright.PermissionMode{
		turnwright.ModeAcceptEdits: turnwright.ModeAcceptEdits, turnwright.ModeDontAsk: turnwright.ModeDontAsk,
		turnwright.ModePlan: turnwright.ModeDefault, turnwright.ModeBypassPermissions: turnwright.ModeDefault,
	} {
		o := onDisk(t, agenttest.NewServer(t, bashCalls("expr 1")))
		o.Env["IS_SANDBOX"], o.AllowDangerouslySkipPermissions = "1", true
		var asked []string
		o.CanUseTool = answering(&asked, turnwright.PermissionAnswer{Allow: true, Updates: []turnwright.PermissionUpdate{
			bashRules("allow", "session", "expr *"), {Type: permission.UpdateSetMode, Mode: mode},
		}})
		first := query(t, "go", o)
		if len(asked) != 1 {
			t.Fatalf("asked %q", asked)
		}
		o.Resume = first.result.SessionID
		for chosen, want := range map[turnwright.PermissionMode]turnwright.PermissionMode{"": kept, turnwright.ModePlan: turnwright.ModePlan} {
			again := o
			again.PermissionMode, again.ForkSession = chosen, true
			srv := agenttest.NewServer(t, bashCalls("expr 2"))
			again.Env = base(t, srv).Env
			again.Env["CLAUDE_CONFIG_DIR"], again.Env["IS_SANDBOX"] = o.Env["CLAUDE_CONFIG_DIR"], "1"
			again.AllowDangerouslySkipPermissions = false
			again.CanUseTool = answering(&asked, turnwright.PermissionAnswer{})
			asked = nil
			out := query(t, "go on", again)
			if got := initOf(t, out).PermissionMode; string(got) != string(want) {
				t.Errorf("%s, then %q: goes on as %s, want %s", mode, chosen, got, want)
			}
			if len(out.result.PermissionDenials) != 1 || (len(asked) == 1) == (want == turnwright.ModeDontAsk) {
				t.Errorf("%s, then %q: asked %q, denied %v", mode, chosen, asked, out.result.PermissionDenials)
			}
		}
	}
}

// TestOneQuestionAtATime: parallel calls are asked about one after the other,
// and an answer may decide the calls that wait; with the option all are asked
// about at once.
func TestOneQuestionAtATime(t *testing.T) {
	conform.Covers(t, "P-121", "P-129")
	calls := agenttest.Blocks(agenttest.Call("echo", `{"text":"a"}`), agenttest.Call("echo", `{"text":"b"}`), agenttest.Call("echo", `{"text":"c"}`))
	for name, tt := range map[string]struct {
		parallel    bool
		updates     []turnwright.PermissionUpdate
		asked, most int32
	}{
		"one at a time":   {false, nil, 3, 1},
		"decided by rule": {false, []turnwright.PermissionUpdate{{Type: permission.UpdateAddRules, Behavior: "allow", Rules: []permission.RuleValue{{ToolName: "echo"}}}}, 1, 1},
		"all at once":     {true, nil, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, o := inMemory(t, agenttest.Script(calls, agenttest.Text("done")))
				o.CustomTools, o.ParallelCanUseTool = []turnwright.Tool{echo()}, tt.parallel
				var now, most, asked atomic.Int32
				var mu sync.Mutex
				o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
					asked.Add(1)
					mu.Lock()
					most.Store(max(most.Load(), now.Add(1)))
					mu.Unlock()
					time.Sleep(time.Minute)
					now.Add(-1)
					return turnwright.PermissionAnswer{Allow: true, Updates: tt.updates}, nil
				}
				out := query(t, "go", o)
				if asked.Load() != tt.asked || most.Load() != tt.most || len(out.result.PermissionDenials) > 0 {
					t.Errorf("asked %d times, %d at once, denials %v", asked.Load(), most.Load(), out.result.PermissionDenials)
				}
			})
		})
	}
}

// TestDenialsAreTold: every denial is in the result, in order, with what the
// model asked for; those without a question are told on the stream with their
// reason.
func TestDenialsAreTold(t *testing.T) {
	conform.Covers(t, "M-78", "W-300", "W-270", "P-134", "P-135", "P-136", "P-138", "M-61", "L-143")
	commands := []string{"expr 1", "expr 2", "expr 3", "expr 4"}
	for _, withCallback := range []bool{true, false} {
		srv := agenttest.NewServer(t, bashCalls(commands...))
		o := base(t, srv)
		o.DisallowedTools, o.AllowedTools = []string{"Bash(expr 2)"}, []string{"Bash(expr 4)"}
		var asked []string
		if withCallback {
			o.CanUseTool = answering(&asked, turnwright.PermissionAnswer{Message: "not that"}, turnwright.PermissionAnswer{Allow: true, Input: []byte(`{"command":"expr 2"}`)})
		}
		out := query(t, "go", o)
		var denied, told []string
		for _, d := range out.result.PermissionDenials {
			denied = append(denied, commandOf(d.ToolInput))
			if d.ToolName != "Bash" || d.ToolUseID == "" {
				t.Errorf("%+v", d)
			}
		}
		for _, m := range out.messages {
			if d, ok := m.(*message.PermissionDenied); ok {
				told = append(told, d.DecisionReasonType)
				if d.ToolName != "Bash" || d.ToolUseID == "" || d.DecisionReason == "" || d.AgentID != "" {
					t.Errorf("%+v", d)
				}
				if !slices.ContainsFunc(srv.Requests(), func(r *agenttest.Request) bool {
					results := r.LastToolResults()
					return len(results) > 0 && results[0].IsError && results[0].Text == d.Message
				}) {
					t.Errorf("the model was not told %q", d.Message)
				}
				if rule := strings.Contains(d.Message, `"Bash(expr 2)"`); rule != (d.DecisionReasonType == "rule") || !strings.Contains(d.Message, "again") || !strings.Contains(d.Message, "Bash") {
					t.Errorf("told the model %q", d.Message)
				}
			}
		}
		wantDenied, wantTold := "expr 1,expr 2", "rule"
		if !withCallback {
			wantDenied, wantTold = "expr 1,expr 2,expr 3", "mode,rule,mode"
		}
		if strings.Join(denied, ",") != wantDenied || strings.Join(told, ",") != wantTold {
			t.Errorf("callback %v: denied %q, told %q", withCallback, denied, told)
		}
		if withCallback && !slices.Equal(asked, []string{"expr 1", "expr 3"}) {
			t.Errorf("asked %q", asked)
		}
	}
}

// TestBypassHeedsRules: also in the mode that skips permissions a deny rule
// denies, an ask rule asks, and so does what only an answer approves.
func TestBypassHeedsRules(t *testing.T) {
	conform.Covers(t, "O-48", "P-17", "P-29", "P-30")
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
	o := base(t, agenttest.NewServer(t, bashCalls("rmdir .", "expr 1", "expr 2", "expr 3")))
	o.PermissionMode, o.AllowDangerouslySkipPermissions, o.Env["IS_SANDBOX"] = turnwright.ModeBypassPermissions, true, "1"
	o.DisallowedTools = []string{"Bash(expr 2)"}
	var asked []string
	o.CanUseTool = answering(&asked,
		turnwright.PermissionAnswer{Allow: true, Input: []byte(`{"command":"echo"}`), Updates: []turnwright.PermissionUpdate{bashRules("ask", "session", "expr 1")}},
		turnwright.PermissionAnswer{})
	out := query(t, "go", o)
	if !slices.Equal(asked, []string{"rmdir .", "expr 1"}) || len(out.result.PermissionDenials) != 2 {
		t.Errorf("asked %q, denials %v", asked, out.result.PermissionDenials)
	}
}

// commandOf is the command of a Bash input.
func commandOf(input json.RawMessage) string {
	var in struct{ Command string }
	_ = json.Unmarshal(input, &in)
	return in.Command
}
