//go:build unix

package hookrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/hookrun"
	"github.com/turnwright/turnwright/message"
)

// world is a runner and what it has told.
type world struct {
	*hookrun.Runner
	t   *testing.T
	dir string

	mu    sync.Mutex
	shown []message.Message
	saved map[string]string
	woken chan string
	// onEmit looks at what is shown; nil: nobody does.
	onEmit func(message.Message)
	// ask answers for the model.
	ask func(ctx context.Context, q hookrun.Question) (string, error)
}

// newWorld returns a runner with the hooks of a user's settings file.
func newWorld(t *testing.T, hooks string) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, saved: map[string]string{}, woken: make(chan string, 9)}
	w.Runner = hookrun.New(hookrun.Config{
		SessionID: "s1", ProjectDir: dir, Show: true,
		Environ: func() []string {
			return []string{"PATH=" + os.Getenv("PATH"), "FROM=inside", "FROM=outside", "CLAUDE_ENV_FILE=/dev/null"}
		},
		Emit: func(m message.Message) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.shown = append(w.shown, m)
			if w.onEmit != nil {
				w.onEmit(m)
			}
		},
		Save: func(name string, data []byte) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.saved[name] = string(data)
			return "/saved/" + name, nil
		},
		NewID:   func() string { return strconv.FormatInt(time.Now().UnixNano(), 36) },
		EnvFile: func() string { return filepath.Join(dir, "env") },
		Wake:    func(text string) { w.woken <- text },
		Client:  func() (*http.Client, error) { return http.DefaultClient, nil },
		Ask:     func(ctx context.Context, q hookrun.Question) (string, error) { return w.ask(ctx, q) },
	})
	file, problems := hook.Parse(hook.SourceUser, "settings.json", json.RawMessage(hooks))
	for _, p := range problems {
		t.Fatal(p)
	}
	set, err := hook.NewSet(hook.Config{Files: []hook.File{file}})
	if err != nil {
		t.Fatal(err)
	}
	w.Use(set)
	t.Cleanup(w.Close)
	return w
}

// run runs the hooks of an event.
func (w *world) run(in hook.Input) hook.Merged {
	return w.Run(w.t.Context(), in, hookrun.Call{Dir: w.dir})
}

// command is the hooks of an event with one shell command and further fields.
func command(ev hook.Event, script, more string) string {
	raw, _ := json.Marshal(script)
	return `{"` + string(ev) + `":[{"hooks":[{"type":"command","command":` + string(raw) + more + `}]}]}`
}

func (w *world) read(name string) string {
	raw, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Error(err)
	}
	return string(raw)
}

// gone reports, after a moment, whether the process whose number is in a file
// has ended.
func (w *world) gone(name string) {
	w.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(w.read(name)))
	if err != nil || pid <= 1 {
		w.t.Fatalf("%v: no number", err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Errorf("process %d of %s is still there", pid, name)
			return
		}
	}
}

// isZombie reports a process that has ended and that its new parent has not
// asked about.
func isZombie(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(raw), ") Z ")
}

// TestCommandGets: a command's input, directory and environment.
func TestCommandGets(t *testing.T) {
	conform.Covers(t, "H-26", "H-27", "H-28", "H-29", "H-30", "H-42", "H-81", "K-260", "K-261", "O-109")
	w := newWorld(t, command(hook.SessionStart, `cat > in; pwd > pwd; env > env.txt; tty > tty; echo "to the model"; echo "to the log" >&2`, ""))
	m := w.run(&hook.SessionStartInput{Base: hook.Base{SessionID: "s1", CWD: w.dir}, Source: "startup"})
	if len(m.Contexts) != 1 || m.Contexts[0] != "to the model" || len(m.Notices) != 0 {
		t.Errorf("%+v", m)
	}
	var in map[string]any
	if err := json.Unmarshal([]byte(w.read("in")), &in); err != nil || in["source"] != "startup" || in["hook_event_name"] != "SessionStart" {
		t.Errorf("%v: %v", err, in)
	}
	if w.read("pwd") != w.dir+"\n" || !strings.Contains(w.read("tty"), "not a tty") {
		t.Errorf("in %q on %q", w.read("pwd"), w.read("tty"))
	}
	env := "\n" + w.read("env.txt")
	for _, want := range []string{"FROM=outside", "CLAUDE_PROJECT_DIR=" + w.dir, "CLAUDE_CODE_SESSION_ID=s1", "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_ENV_FILE=" + w.dir + "/env"} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("no %s in %s", want, env)
		}
	}
	// Other events have no file for variables; a program gets its arguments as
	// they are.
	w = newWorld(t, `{"Stop":[{"hooks":[{"type":"command","command":"sh","args":["-c","printf '%s|' \"$0\" \"$@\" > args; env > env.txt","${CLAUDE_PROJECT_DIR}/a b","$HOME;x"]}]}]}`)
	if m := w.run(&hook.StopInput{}); m.Block || len(m.Notices) > 0 {
		t.Errorf("%+v", m)
	}
	if got := w.read("args"); got != w.dir+"/a b|$HOME;x|" {
		t.Errorf("arguments %q", got)
	}
	if strings.Contains(w.read("env.txt"), "CLAUDE_ENV_FILE") {
		t.Error("Stop has a file for variables")
	}
	w = newWorld(t, `{}`)
	file, _ := hook.Parse(hook.SourcePlugin, "hooks.json", json.RawMessage(`{"Stop":[{"hooks":[
		{"type":"command","command":"echo","args":["${CLAUDE_PLUGIN_ROOT} ${CLAUDE_PLUGIN_DATA}"]},
		{"type":"command","command":"echo \"$CLAUDE_PLUGIN_ROOT ${CLAUDE_PLUGIN_DATA}\""}]}]}`))
	file.PluginRoot, file.PluginData = "/plugin/root", "/plugin/data"
	set, err := hook.NewSet(hook.Config{Files: []hook.File{file}})
	if err != nil {
		t.Fatal(err)
	}
	w.Use(set)
	w.run(&hook.StopInput{})
	for _, m := range w.shown {
		if r, ok := m.(*message.HookResponse); ok && r.Stdout != "/plugin/root /plugin/data\n" {
			t.Errorf("a plugin's hook wrote %q", r.Stdout)
		}
	}
	w = newWorld(t, command(hook.Stop, `echo "${CLAUDE_PROJECT_DIR}" > dir; test -n "$BASH_VERSION" && echo bash >> dir`, `,"shell":"bash"`))
	if w.run(&hook.StopInput{}); w.read("dir") != w.dir+"\nbash\n" {
		t.Errorf("%q", w.read("dir"))
	}
}

// TestCommandFails: what a command that cannot be started or fails is worth.
func TestCommandFails(t *testing.T) {
	conform.Covers(t, "H-45", "H-46", "H-57", "M-83")
	w := newWorld(t, `{"PreToolUse":[{"hooks":[
		{"type":"command","command":"/no/such/program","args":[]},
		{"type":"command","command":"echo first >&2; echo second >&2; exit 7"},
		{"type":"command","command":"kill -9 $$"},
		{"type":"command","command":"sleep 0.1; echo no >&2; exit 2"}]}]}`)
	m := w.run(&hook.PreToolUseInput{ToolName: "Bash"})
	if m.Permission != hook.Deny || m.Reason != "no" || len(m.Notices) != 3 {
		t.Fatalf("%+v", m)
	}
	for i, want := range []string{"could not be started", "PreToolUse:Bash hook error\nFailed with non-blocking status code: first", "137"} {
		if !strings.Contains(m.Notices[i].Text, want) || strings.Contains(m.Notices[i].Text, "second") {
			t.Errorf("%q", m.Notices[i].Text)
		}
	}
	outcomes := map[string]int{}
	for _, m := range w.shown {
		if r, ok := m.(*message.HookResponse); ok {
			outcomes[r.Outcome]++
		}
	}
	if outcomes["error"] != 3 || outcomes["success"] != 1 {
		t.Errorf("%v", outcomes)
	}
}

// TestCommandTimeouts: hooks that stop themselves or sleep are killed when
// their time is over, all at once, with their children, and decide nothing.
func TestCommandTimeouts(t *testing.T) {
	conform.Covers(t, "H-57", "H-64", "B-072")
	var hooks []string
	for i := range 4 {
		n := strconv.Itoa(i)
		hooks = append(hooks,
			`{"type":"command","timeout":1,"command":"echo $$ > stop`+n+`; kill -STOP $$; echo '{\"decision\":\"block\"}'"}`,
			`{"type":"command","timeout":1,"command":"sleep 600 & echo $! > sleep`+n+`; trap '' TERM; echo '{\"decision\":\"block\"}'; wait"}`)
	}
	w := newWorld(t, `{"PreToolUse":[{"hooks":[`+strings.Join(hooks, ",")+`]}]}`)
	start := time.Now()
	m := w.run(&hook.PreToolUseInput{ToolName: "Bash"})
	if took := time.Since(start); took < time.Second || took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if m.Permission != "" || m.Stop || len(m.Notices) != 8 || !strings.Contains(m.Notices[0].Text, "1s") {
		t.Errorf("%+v", m)
	}
	for i := range 4 {
		w.gone("stop" + strconv.Itoa(i))
		w.gone("sleep" + strconv.Itoa(i))
	}
	for _, m := range w.shown {
		if r, ok := m.(*message.HookResponse); ok && (r.Outcome != "cancelled" || r.ExitCode != nil) {
			t.Errorf("%+v", r)
		}
	}
	// Whoever waits no longer gets it back at once.
	w = newWorld(t, command(hook.Stop, `echo $$ > pid; exec sleep 600`, ""))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	start = time.Now()
	if m := w.Run(ctx, &hook.StopInput{}, hookrun.Call{Dir: w.dir}); m.Block || time.Since(start) > time.Minute {
		t.Errorf("%+v after %v", m, time.Since(start))
	}
	w.gone("pid")
}

// TestGrandchild: the output counts when the hook itself exits, whatever it has
// started and left; that ends with the session.
func TestGrandchild(t *testing.T) {
	conform.Covers(t, "B-073")
	w := newWorld(t, command(hook.Stop, `sleep 300 & echo $! > pid; (setsid sleep 300 & echo $! > pid2); echo '{"decision":"block","reason":"now"}'`, `,"timeout":200`))
	start := time.Now()
	m := w.run(&hook.StopInput{})
	if !m.Block || m.Reason != "now" || time.Since(start) > time.Minute {
		t.Errorf("%+v after %v", m, time.Since(start))
	}
	if pid, _ := strconv.Atoi(strings.TrimSpace(w.read("pid"))); syscall.Kill(pid, 0) != nil {
		t.Error("the child was killed before the end of the session")
	}
	w.Close()
	w.gone("pid")
	if _, err := os.Stat("/proc/self/stat"); err == nil { // a new session is found on Linux only
		w.gone("pid2")
	}
	if m := w.run(&hook.StopInput{}); m.Block || len(m.Notices) != 1 {
		t.Errorf("after the end: %+v", m)
	}
}

// TestLargeOutput: an output that is too long for the model is saved; one
// without end is bounded, and a hook that reads nothing is not waited for.
func TestLargeOutput(t *testing.T) {
	conform.Covers(t, "H-53")
	w := newWorld(t, command(hook.UserPromptSubmit, `head -c 12000 /dev/zero | tr '\0' x`, ""))
	m := w.run(&hook.UserPromptSubmitInput{Prompt: strings.Repeat("a long prompt ", 100_000)})
	if len(m.Contexts) != 1 || len(m.Contexts[0]) > 2500 || !strings.Contains(m.Contexts[0], "/saved/hook-") || len(w.saved) != 1 {
		t.Fatalf("%.3000q", m.Contexts)
	}
	for _, text := range w.saved {
		if text != strings.Repeat("x", 12000) {
			t.Errorf("saved %d bytes", len(text))
		}
	}
	w = newWorld(t, command(hook.UserPromptSubmit, `printf '%10000s' x`, ""))
	if m := w.run(&hook.UserPromptSubmitInput{}); len(w.saved) != 0 || len(m.Contexts) != 1 {
		t.Errorf("%d saved, %v", len(w.saved), m.Contexts)
	}
	w = newWorld(t, command(hook.PostToolUse, `yes 2>/dev/null | head -c 5000000; echo z >&2; exit 2`, `,"timeout":300`))
	if m := w.run(&hook.PostToolUseInput{ToolName: "x"}); !m.Block || m.Reason != "z" {
		t.Errorf("%+v", m)
	}
	for _, m := range w.shown {
		if r, ok := m.(*message.HookResponse); ok && len(r.Stdout) != 1<<20 {
			t.Errorf("%d bytes of output", len(r.Stdout))
		}
	}
}

// TestBackground: nobody waits for an async hook; what it says comes later, and
// at the end it is killed.
func TestBackground(t *testing.T) {
	conform.Covers(t, "H-68", "H-69", "H-70", "H-72", "H-131", "M-82", "M-85")
	w := newWorld(t, `{"PreToolUse":[{"hooks":[
		{"type":"command","async":true,"command":"while ! test -e go; do sleep 0.01; done; echo '{\"continue\":false,\"decision\":\"block\",\"systemMessage\":\"m\",\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"additionalContext\":\"c\"}}'; echo said > said; sleep 0.2; echo x > done"},
		{"type":"command","asyncRewake":true,"command":"while ! test -e go; do sleep 0.01; done; echo 'wake up' >&2; exit 2"}]}]}`)
	if m := w.run(&hook.PreToolUseInput{ToolName: "Bash"}); m.Permission != "" || m.Stop || len(m.Contexts) > 0 {
		t.Errorf("%+v", m)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-w.woken; got != "wake up" {
		t.Errorf("woken with %q", got)
	}
	var late hook.Merged
	for deadline := time.Now().Add(20 * time.Second); len(late.Contexts) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		late = w.Late()
	}
	if len(late.Contexts) != 1 || late.Contexts[0] != "c" || late.Stop || late.Block || len(late.Notices) != 1 || late.Notices[0].Text != "PreToolUse:Bash: m" {
		t.Errorf("%+v", late)
	}
	if again := w.Late(); len(again.Contexts) > 0 {
		t.Errorf("twice: %+v", again)
	}

	w = newWorld(t, command(hook.Notification, `echo $$ > pid; exec sleep 600`, `,"async":true`))
	w.run(&hook.NotificationInput{})
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile(filepath.Join(w.dir, "pid")); err == nil && len(raw) > 1 {
			break
		}
	}
	w.Close()
	w.gone("pid")
	if len(w.shown) != 1 {
		t.Fatalf("%d messages", len(w.shown))
	}
	if r, ok := w.shown[0].(*message.HookResponse); !ok || r.Outcome != "cancelled" {
		t.Errorf("%+v", w.shown[0])
	}
}

// TestProgress: a slow command's output is shown while it runs, where the event
// shows anything.
func TestProgress(t *testing.T) {
	conform.Covers(t, "M-81", "M-82", "M-83", "M-85", "H-130", "H-131", "W-292")
	// The command goes on when its first outputs have been shown.
	w := newWorld(t, command(hook.Stop, `echo out; echo err >&2; while ! test -e go; do sleep 0.01; done; echo late`, ""))
	w.onEmit = func(m message.Message) {
		if p, ok := m.(*message.HookProgress); ok && len(p.Output) == 8 {
			_ = os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600)
		}
	}
	w.run(&hook.StopInput{})
	if len(w.shown) < 3 {
		t.Fatalf("%d messages", len(w.shown))
	}
	p := &message.HookProgress{}
	for _, m := range w.shown {
		if next, ok := m.(*message.HookProgress); ok && next.Stderr != "" {
			p = next
			break
		}
	}
	if p.HookName != "Stop" || p.HookEvent != "Stop" || p.Stdout != "out\n" || p.Stderr != "err\n" || len(p.Output) != 8 {
		t.Errorf("%+v", p)
	}
	r, ok := w.shown[len(w.shown)-1].(*message.HookResponse)
	if !ok || r.HookID != p.HookID || r.Stdout != "out\nlate\n" || *r.ExitCode != 0 || r.Outcome != "success" {
		t.Errorf("%+v", w.shown)
	}
	w = newWorld(t, command(hook.PreCompact, "echo out; sleep 1.2; echo late", ""))
	if w.run(&hook.PreCompactInput{Trigger: "auto"}); len(w.shown) != 0 {
		t.Errorf("%d messages", len(w.shown))
	}
}

// TestOnce: a skill's handler that says so runs once; the word means nothing
// elsewhere.
func TestOnce(t *testing.T) {
	conform.Covers(t, "H-22")
	raw := json.RawMessage(command(hook.PreToolUse, `echo x >> ran`, `,"once":true`))
	for source, want := range map[hook.Source]string{hook.SourceSkill: "x\n", hook.SourceUser: "x\nx\n"} {
		w := newWorld(t, `{}`)
		file, _ := hook.Parse(source, "f", raw)
		set, err := hook.NewSet(hook.Config{Files: []hook.File{file}})
		if err != nil {
			t.Fatal(err)
		}
		w.Use(set)
		w.run(&hook.PreToolUseInput{ToolName: "Bash"})
		w.run(&hook.PreToolUseInput{ToolName: "Bash"})
		if got := w.read("ran"); got != want {
			t.Errorf("%s: %q", source, got)
		}
	}
	// The condition of a handler is asked about with its rule.
	w := newWorld(t, command(hook.PreToolUse, `echo x >> ran`, `,"if":"Bash(git *)"`))
	for _, holds := range []bool{false, true} {
		w.Run(t.Context(), &hook.PreToolUseInput{ToolName: "Bash"}, hookrun.Call{Dir: w.dir, Matches: func(rule string) bool { return holds && rule == "Bash(git *)" }})
		if _, err := os.Stat(filepath.Join(w.dir, "ran")); (err == nil) != holds {
			t.Errorf("holds %v: %v", holds, err)
		}
	}
}
