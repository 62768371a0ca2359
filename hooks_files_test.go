//go:build unix

package turnwright_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestCommandHooksBlock: which commands keep a call from running.
func TestCommandHooksBlock(t *testing.T) {
	conform.Covers(t, "B-065", "H-41", "H-42", "H-43", "H-44", "H-45", "H-46", "H-73")
	const deny = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"by JSON"}}`
	for name, tt := range map[string]struct {
		script string
		ran    bool
		told   string // the model when it did not run, else the user
	}{
		"deny without event name, exit 2": {`echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'; echo by stderr >&2; exit 2`, false, "by stderr"},
		"exit 2":                          {`exit 2`, false, "no reason"},
		"deny":                            {`echo '` + deny + `'`, false, "by JSON"},
		"deny after a banner":             {`echo hello; echo '` + deny + `'`, true, ""},
		"deny, exit 1":                    {`echo '` + deny + `'; exit 1`, false, "by JSON"},
		"exit 1":                          {`echo oh >&2; exit 1`, true, "PreToolUse:note hook error\nFailed with non-blocking status code: oh"},
		"not valid":                       {`echo '{"decision":1}'`, true, "decision"},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			out, srv := hooked(t, &notes, "x", func(o *turnwright.Options) {
				o.AllowedTools = []string{"note"}
				raw, _ := json.Marshal(tt.script)
				o.HookFiles = fileHooks(t, `{"PreToolUse":[{"matcher":"note","hooks":[{"type":"command","command":`+string(raw)+`}]}]}`)
			})
			told := strings.Join(out.infos(), "\n")
			if !tt.ran {
				told, _ = toolText(t, srv)
			}
			if (len(notes) == 1) != tt.ran || !strings.Contains(told, tt.told) || tt.told == "" && told != "" {
				t.Errorf("ran %v, told %q", len(notes) == 1, told)
			}
		})
	}
}

// TestCommandHooksInSession: where commands run, what they see of the session
// and what they leave for later commands.
func TestCommandHooksInSession(t *testing.T) {
	conform.Covers(t, "H-22", "H-27", "H-28", "H-30", "H-68", "T-112")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	commands := []string{"cd sub", "printenv FROM_HOOK", "git push"}
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if n := r.Turn(); n < len(commands) {
			return agenttest.Call("Bash", string(mustJSON(map[string]string{"command": commands[n]})))
		}
		return agenttest.Text("done")
	}))
	o := base(t, srv)
	o.CWD, o.AllowedTools, o.Store = dir, []string{"Bash"}, nil
	o.HookFiles = fileHooks(t, `{
		"SessionStart": [{"matcher":"startup","hooks":[{"type":"command","command":"echo 'export FROM_HOOK=\"hello you\"' >> \"$CLAUDE_ENV_FILE\""}]}],
		"PostToolUse": [{"matcher":"Bash","hooks":[{"type":"command","command":"pwd >> \"$CLAUDE_PROJECT_DIR/dirs\""}]}],
		"PreToolUse": [{"hooks":[
			{"type":"command","if":"Bash(git push *)","command":"echo 'no pushes' >&2; exit 2"},
			{"type":"command","if":"Edit(*.go)","command":"exit 2"},
			{"type":"command","async":true,"command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"additionalContext\":\"from behind\"}}'"}]}],
		"UserPromptSubmit": [{"hooks":[{"type":"command","command":"f=$(sed -n 's/.*\"transcript_path\":\"\\([^\"]*\\)\".*/\\1/p'); test -s \"$f\" && echo \"transcript is there\""}]}]
	}`)
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Ask(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	requests := srv.Requests()
	if got := requests[0].UserText(); !strings.Contains(got, "transcript is there") {
		t.Errorf("the prompt: %q", got)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "dirs")); err != nil || string(raw) != dir+"/sub\n"+dir+"/sub\n" {
		t.Errorf("%q, %v", raw, err)
	}
	if got := requests[2].LastToolResults()[0].Text; got != "hello you" {
		t.Errorf("the variable: %q", got)
	}
	if got := requests[3].LastToolResults()[0].Text; got != "no pushes" {
		t.Errorf("the push: %q", got)
	}
	// What the background hook says comes with the first prompt after its end.
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := s.Ask(t.Context(), "and now?"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(srv.Last().Body), "from behind") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the background hook is not heard")
		}
	}
}

// TestStopSeesTasks: a Stop hook is told what runs in the background.
func TestStopSeesTasks(t *testing.T) {
	conform.Covers(t, "H-84", "H-129", "W-145")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"sleep 600","run_in_background":true,"description":"a long nap"}`), agenttest.Text("done"),
	))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	var tasks []hook.BackgroundTask
	o.Hooks = on(hook.Stop, hook.On(func(_ context.Context, in *hook.StopInput) (hook.Output, error) {
		tasks = in.BackgroundTasks
		return hook.Output{}, nil
	}))
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 1 || tasks[0].ID == "" || tasks[0].Type != "local_bash" || tasks[0].Status != "running" || tasks[0].Description != "a long nap" {
		t.Errorf("%+v", tasks)
	}
}

// TestDocumentedHooks runs the commands that docs/hooks.md shows.
func TestDocumentedHooks(t *testing.T) {
	raw, err := os.ReadFile("docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := page{name: "docs/hooks.md", text: string(raw)}.fenced("json")
	if len(blocks) != 5 {
		t.Fatalf("%d blocks of JSON", len(blocks))
	}
	var all []hook.File
	for _, b := range blocks {
		all = append(all, fileHooks(t, b.text)...)
	}
	srv := agenttest.NewServer(t, bashCalls("npm test -- --fast", "mkdir node_modules", "touch done.txt"))
	o := base(t, srv)
	dir := t.TempDir()
	o.CWD, o.HookFiles, o.AllowedTools = dir, all[:2], []string{"Bash"}
	query(t, "go", o)
	if got := srv.Requests()[1].LastToolResults()[0].Text; got != `node_modules is missing: run "npm ci" first.` {
		t.Errorf("npm test: %q", got)
	}
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	var in hook.PostToolUseInput
	if err := json.Unmarshal([]byte(lines[0]), &in); err != nil || len(lines) != 2 || in.ToolName != "Bash" {
		t.Errorf("%v: %s", err, log)
	}
	srv = agenttest.NewServer(t, agenttest.Script(agenttest.Text("Finished."), agenttest.Call("Bash", `{"command":"touch done.txt"}`), agenttest.Text("Now it is.")))
	o = base(t, srv)
	o.HookFiles, o.AllowedTools = all[2:3], []string{"Bash"}
	if out := query(t, "go", o); *out.result.Result != "Now it is." || !strings.Contains(srv.Requests()[1].UserText(), "Write done.txt before you stop.") {
		t.Errorf("%+v", out.result)
	}
	// The same question to a model, and the request.
	srv = judged(t, always(agenttest.Text(`{"ok":false,"reason":"Name the tests."}`)), agenttest.Text("Finished."), agenttest.Text("I ran none."))
	o = base(t, srv)
	o.HookFiles, o.Env["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"] = all[4:], "1"
	if out := query(t, "go", o); *out.result.Result != "I ran none." || !strings.Contains(ofHooks(srv)[0].UserText(), `The event: {"session_id"`) {
		t.Errorf("%+v", out.result)
	}
	set, err := hook.NewSet(hook.Config{Files: all[3:4]})
	if err != nil {
		t.Fatal(err)
	}
	if h := set.Match(&hook.PreToolUseInput{ToolName: "Bash"})[0]; h.HTTP.URL != "https://hooks.example.com/check" || h.HTTP.Header(func(string) string { return "t0" }).Get("Authorization") != "Bearer t0" {
		t.Errorf("%+v", h.HTTP)
	}
}
