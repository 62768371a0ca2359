//go:build unix

package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
	"golang.org/x/sys/unix"
)

// patience is how long a test waits for something that must happen at once;
// the machine may be very slow.
const patience = 60 * time.Second

func (s *session) bash(input any) (text string, isError bool, out bashOutput) {
	s.t.Helper()
	if command, ok := input.(string); ok {
		input = in{"command": command}
	}
	type answer struct {
		r   *tool.Result
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := s.call("Bash", input)
		done <- answer{r, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			s.t.Fatalf("Bash %v: %v", input, a.err)
		}
		if err := json.Unmarshal(a.r.Structured, &out); err != nil {
			s.t.Fatal(err)
		}
		return a.r.Content[0].Text(), a.r.IsError, out
	case <-time.After(patience):
		s.t.Fatalf("Bash %v has not returned", input)
	}
	panic("unreachable")
}

func (s *session) bashTool() *Bash {
	tl, _, _ := s.tools.Get("Bash")
	return tl.(*Bash)
}

// gone waits until no process has the id that a command wrote into a file.
func (s *session) gone(file string) {
	s.t.Helper()
	pid := s.pid(file)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !running(pid) {
			return
		}
	}
	s.t.Errorf("process %d still runs", pid)
}

func (s *session) pid(file string) int {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		data, _ := os.ReadFile(s.path(file))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			return pid
		}
	}
	s.t.Fatalf("no process id in %s", file)
	return 0
}

// running reports whether the process exists and is no zombie: where nobody
// collects orphans, a killed one stays as that.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestBashResults(t *testing.T) {
	s := newSession(t)
	for _, test := range []struct {
		name    string
		ids     []string
		command string
		text    string
		isError bool
	}{
		{"output", []string{"T-121"}, "echo hello", "hello", false},
		{"streams in order of arrival", []string{"T-121"}, "echo a; echo b >&2; echo c; echo d >&2", "a\nb\nc\nd", false},
		{"silence", []string{"T-129", "B-109"}, "true", "(no output)", false},
		{"only blanks", []string{"T-129", "B-109"}, "printf ' \\n\\n'", "(no output)", false},
		{"leading blanks stay", nil, "printf '  a\\n\\n'", "  a", false},
		{"failure", []string{"T-115", "T-116"}, "echo out; echo err >&2; exit 3", "Exit code 3\nout\nerr", true},
		{"silent failure", []string{"T-116", "B-109"}, "false", "Exit code 1\n(no output)", true},
		{"no match", []string{"T-115"}, "echo a | grep b", "(no output: No matches found)", false},
		{"grep that fails", []string{"T-115"}, "grep x /does/not/exist 2>/dev/null", "Exit code 2\n(no output)", true},
		{"unknown program", []string{"T-116"}, "no-such-program 2>/dev/null", "Exit code 127\n(no output)", true},
		{"signal", nil, "kill -KILL $$", "Exit code 137\n(no output)", true},
		{"an option as command", nil, "-x 2>/dev/null", "Exit code 127\n(no output)", true},
		{"not UTF-8", []string{"B-107"}, `printf 'a\377b'`, "a\uFFFDb", false},
		{"empty input", []string{"T-128", "B-106"}, `read x; echo "got:$x"; cat; echo end`, "got:\nend", false},
		{"no terminal", []string{"B-106"}, `(: </dev/tty) 2>/dev/null || echo none`, "none", false},
		{"stdout reopened", nil, "echo a; echo b | tee /dev/stderr >/dev/null; echo c", "a\nb\nc", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if len(test.ids) > 0 {
				conform.Covers(t, test.ids...)
			}
			text, isError, out := s.bash(test.command)
			if text != test.text || isError != test.isError {
				t.Errorf("got %q, error %v; want %q, %v", text, isError, test.text, test.isError)
			}
			if out.Interrupted || out.TimedOutAfterMs != 0 || out.Stderr != "" {
				t.Errorf("output %+v", out)
			}
		})
	}
}

func TestBashEnvironment(t *testing.T) {
	conform.Covers(t, "T-122", "K-260")
	s := newSession(t)
	text, _, _ := s.bash(`echo "$CLAUDECODE $CLAUDE_CODE_CHILD_SESSION $CLAUDE_CODE_SESSION_ID $TURNWRIGHT_TOOL_CALL_KEY"; pwd`)
	if want := "1 1 session-1 key-1\n" + s.env.Dir; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// TestBashSession: a command has no terminal to ask for a password, also where
// the runtime has one, because it is in a session of its own.
func TestBashSession(t *testing.T) {
	conform.Covers(t, "T-128", "B-106")
	s := newSession(t)
	s.bash("sleep 300 & echo $! >pid; echo $$ >shell")
	sid, err := unix.Getsid(s.pid("pid"))
	if shell := s.pid("shell"); err != nil || sid != shell {
		t.Errorf("session %d, %v; want %d", sid, err, shell)
	}
	if group, err := syscall.Getpgid(s.pid("pid")); err != nil || group != sid {
		t.Errorf("group %d, %v; want %d", group, err, sid)
	}
}

func TestBashShell(t *testing.T) {
	conform.Covers(t, "T-108")
	s := newSession(t)
	own := s.write("bin/myshell", "#!/bin/sh\necho \"own: $2\"\n")
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	s.vars["CLAUDE_CODE_SHELL"] = own
	if text, _, _ := s.bash("hi"); text != "own: hi" {
		t.Errorf("got %q", text)
	}
	s.vars["CLAUDE_CODE_SHELL"] = "/does/not/exist"
	s.fails("Bash", in{"command": "x"}, "CLAUDE_CODE_SHELL", "/does/not/exist")
	delete(s.vars, "CLAUDE_CODE_SHELL")

	fakeBash := s.write("bin/bash", "#!/bin/sh\nprintf 'SHELL: %s\\n' \"${2##* }\"\n")
	if err := os.Chmod(fakeBash, 0o755); err != nil {
		t.Fatal(err)
	}
	s.vars["SHELL"] = fakeBash
	if text, _, _ := s.bash("hi"); text != "SHELL: hi" {
		t.Errorf("got %q", text)
	}
	s.vars["SHELL"] = own // neither bash nor zsh
	if text, _, _ := s.bash("echo $((1+1))"); text != "2" {
		t.Errorf("got %q", text)
	}
}

// TestBashShellOrder: without a setting the first of zsh and bash in PATH runs
// commands.
func TestBashShellOrder(t *testing.T) {
	conform.Covers(t, "T-108")
	s := newSession(t)
	shells := map[string]string{}
	for _, name := range []string{"sh", "fish", "bash", "zsh"} {
		shells[name] = s.write("bin/"+name, "#!/bin/sh\n")
		if err := os.Chmod(shells[name], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", s.path("bin"))
	for _, shell := range []string{"", "/bin/sh", shells["fish"]} {
		s.vars["SHELL"] = shell
		if got, err := findShell(s.env); got != shells["zsh"] {
			t.Errorf("SHELL=%q: %q, %v; want zsh", shell, got, err)
		}
	}
	s.vars["SHELL"] = shells["bash"]
	if got, err := findShell(s.env); got != shells["bash"] {
		t.Errorf("SHELL is bash: %q, %v", got, err)
	}
	delete(s.vars, "SHELL")
	for _, gone := range []string{"zsh", "bash"} {
		if err := os.Remove(shells[gone]); err != nil {
			t.Fatal(err)
		}
		got, err := findShell(s.env)
		switch {
		case gone == "zsh" && got != shells["bash"]:
			t.Errorf("without zsh: %q, %v", got, err)
		case gone == "bash" && (err == nil || !strings.Contains(err.Error(), "CLAUDE_CODE_SHELL")):
			t.Errorf("without both: %q, %v", got, err)
		}
	}
}

// TestBashOwnInput: a command reads nothing of what waits on the standard input
// of the program that it runs in.
func TestBashOwnInput(t *testing.T) {
	conform.Covers(t, "B-106", "T-128")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const waiting = "not for the command\n"
	if _, err := w.WriteString(waiting); err != nil {
		t.Fatal(err)
	}
	w.Close()
	own := os.Stdin
	defer func() { os.Stdin = own }()
	os.Stdin = r
	s := newSession(t)
	for _, command := range []string{"cat", "read -r x; echo \"$x\"", "sh -c 'cat'", "cat & wait"} {
		if text, _, _ := s.bash(command); strings.Contains(text, "not for") {
			t.Errorf("%s: read %q", command, text)
		}
	}
	if left, err := io.ReadAll(r); err != nil || string(left) != waiting {
		t.Errorf("left for the program: %q, %v", left, err)
	}
}

func TestBashInput(t *testing.T) {
	s := newSession(t)
	t.Run("not built yet", func(t *testing.T) {
		s.fails("Bash", in{"command": "true", "run_in_background": true}, "run_in_background", "no background work")
		s.fails("Bash", in{"command": "true", "dangerouslyDisableSandbox": "true"}, "dangerouslyDisableSandbox")
		s.bash(in{"command": "true", "run_in_background": false, "description": "does nothing"})
	})
	t.Run("bad", func(t *testing.T) {
		conform.Covers(t, "T-18", "T-19")
		s.fails("Bash", in{}, "command: required")
		s.fails("Bash", in{"command": ""}, "command")
		s.fails("Bash", in{"command": " \n"}, "command: is empty")
		s.fails("Bash", in{"command": "a\x00b"}, "NUL")
		s.fails("Bash", in{"command": "true", "timeout": 0}, "timeout")
		s.fails("Bash", in{"command": "true", "cmd": "x"}, "cmd: unknown property")
	})
	t.Run("very long", func(t *testing.T) {
		if runtime.GOOS == "linux" {
			s.fails("Bash", in{"command": "echo " + strings.Repeat("x", 200_000)}, "argument list too long")
		}
	})
	t.Run("directory gone", func(t *testing.T) {
		env := *s.env
		env.Dir = s.path("gone")
		_, err := s.bashTool().Call(t.Context(), &tool.Call{Input: json.RawMessage(`{"command":"true"}`), Env: &env})
		if err == nil || !strings.Contains(err.Error(), env.Dir) {
			t.Errorf("got %v", err)
		}
	})
	a, err := s.bashTool().Accesses(json.RawMessage(`{"command":"ls -l"}`))
	if want := (permission.Access{Kind: permission.Exec, Target: "ls -l", Written: "ls -l"}); err != nil || len(a) != 1 || a[0] != want {
		t.Errorf("accesses %+v, %v", a, err)
	}
}

func TestBashTimeouts(t *testing.T) {
	conform.Covers(t, "T-114")
	vars := map[string]string{}
	env := &tool.Env{Getenv: func(k string) string { return vars[k] }}
	for _, test := range []struct {
		def, most string
		ms        float64
		want      time.Duration
	}{
		{"", "", 0, 2 * time.Minute},
		{"", "", 1500, 1500 * time.Millisecond},
		{"", "", 600_001, 10 * time.Minute},
		{"", "", 1e300, 10 * time.Minute},
		{"5000", "", 0, 5 * time.Second},
		{"5000", "1000", 60_000, 5 * time.Second},
		{"900000", "", 0, 15 * time.Minute},
		{"900000", "", 900_000, 15 * time.Minute},
		{"", "3000000", 2_000_000, 2_000_000 * time.Millisecond},
		{"x", "-5", 0, 2 * time.Minute},
		{"9223372036854775807", "", 0, time.Duration(1<<53/1_000_000) * time.Millisecond},
	} {
		vars["BASH_DEFAULT_TIMEOUT_MS"], vars["BASH_MAX_TIMEOUT_MS"] = test.def, test.most
		if got := commandTimeout(env, test.ms); got != test.want {
			t.Errorf("default %q, maximum %q, %v ms: %v, want %v", test.def, test.most, test.ms, got, test.want)
		}
	}
	for d, want := range map[time.Duration]string{
		2 * time.Minute: "2m 0s", 30 * time.Second: "30s", 90 * time.Second: "1m 30s", time.Hour + time.Second: "1h 0m 1s", 250 * time.Millisecond: "250ms",
	} {
		if got := spelledDuration(d); got != want {
			t.Errorf("%v is %q", d, got)
		}
	}
}

// The commands that are killed wait for ever by themselves; that a call returns
// at all is the proof that the limit works.
func TestBashTimesOut(t *testing.T) {
	for name, test := range map[string]struct {
		ids     []string
		command string
		part    string
	}{
		"a pipeline":                  {[]string{"B-100", "T-133"}, "echo $$ >pid; echo before; sleep 300 | cat; true", "before"},
		"a tree that ignores SIGTERM": {[]string{"B-101"}, "sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 300; done' & trap '' TERM; echo before; wait; sleep 300", "before"},
		"a flood":                     {[]string{"B-103"}, "echo $$ >pid; cat /dev/zero | tr '\\0' a", "aaaa"},
	} {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, test.ids...)
			s := newSession(t)
			text, isError, out := s.bash(in{"command": test.command, "timeout": 1000})
			if !isError || !strings.HasPrefix(text, "Command timed out after 1s\n") || !strings.Contains(text, test.part) {
				t.Errorf("got error %v, %.300q", isError, text)
			}
			if !out.Interrupted || out.TimedOutAfterMs != 1000 {
				t.Errorf("output %.300v", out)
			}
			if len(text) > 11_000 {
				t.Errorf("%d bytes of text", len(text))
			}
			s.gone("pid")
		})
	}
}

func TestBashCancelled(t *testing.T) {
	conform.Covers(t, "B-100", "T-26")
	s := newSession(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *tool.Result, 1)
	go func() {
		r, err := s.bashTool().Call(ctx, &tool.Call{Input: json.RawMessage(`{"command":"echo before; (sh -c 'echo $PPID' >pid; sleep 300); true"}`), Env: s.env})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	s.pid("pid")
	cancel()
	select {
	case r := <-done:
		if text := r.Content[0].Text(); !r.IsError || !strings.HasPrefix(text, "Command was interrupted") || !strings.HasSuffix(text, "\nbefore") {
			t.Errorf("got %q", text)
		}
		if !strings.Contains(string(r.Structured), `"interrupted":true`) {
			t.Errorf("output %s", r.Structured)
		}
	case <-time.After(patience):
		t.Fatal("the call has not returned")
	}
	s.gone("pid")
	if _, err := s.bashTool().Call(ctx, &tool.Call{Input: json.RawMessage(`{"command":"true"}`), Env: s.env}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}

// TestBashLeftovers: processes that outlive the shell keep its output open. The
// call returns all the same, the next works, and Close ends them.
func TestBashLeftovers(t *testing.T) {
	for name, test := range map[string]struct{ command, text string }{
		"background":       {"sleep 300 & echo $! >pid", "(no output)"},
		"in a subshell":    {"(sleep 300 & echo $! >pid) ; echo done", "done"},
		"output elsewhere": {"nohup sleep 300 >/dev/null 2>&1 & echo $! >pid", "(no output)"},
		"still writing":    {"(while :; do echo more; sleep 1; done) & echo $! >pid; echo first", ""},
	} {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, "B-099", "T-128")
			s := newSession(t)
			text, isError, _ := s.bash(test.command)
			if isError || test.text != "" && text != test.text {
				t.Errorf("got %q, error %v", text, isError)
			}
			pid := s.pid("pid")
			if !running(pid) {
				t.Error("what was left running is gone before the session's end")
			}
			if text, _, _ := s.bash("echo next"); text != "next" {
				t.Errorf("the next call gives %q", text)
			}
			if err := s.bashTool().Close(); err != nil {
				t.Error(err)
			}
			s.gone("pid")
			s.fails("Bash", in{"command": "true"}, "closed")
		})
	}
}

func TestBashClosedWhileRunning(t *testing.T) {
	s := newSession(t)
	done := make(chan string, 1)
	go func() {
		r, err := s.bashTool().Call(t.Context(), &tool.Call{Input: json.RawMessage(`{"command":"echo $$ >pid; sleep 300"}`), Env: s.env})
		if err != nil {
			t.Error(err)
			done <- ""
			return
		}
		done <- r.Content[0].Text()
	}()
	s.pid("pid")
	_ = s.bashTool().Close()
	select {
	case text := <-done:
		if !strings.HasPrefix(text, "Command was interrupted") {
			t.Errorf("got %q", text)
		}
	case <-time.After(patience):
		t.Fatal("the call has not returned")
	}
	s.gone("pid")
}

func TestBashLongOutput(t *testing.T) {
	s := newSession(t)
	t.Run("success", func(t *testing.T) {
		conform.Covers(t, "T-117")
		text, isError, out := s.bash("printf 'x%.0s' $(seq 30000)")
		if isError || len(text) != 30_000 || out.PersistedOutputPath != "" {
			t.Errorf("at the limit: %d characters, error %v", len(text), isError)
		}
		text, isError, out = s.bash("seq 20000")
		blob := string(s.blobs["bash-toolu_1.txt"])
		if isError || len(text) > 2600 || !strings.Contains(text, "Its first 2000 characters:\n1\n2\n3\n") || !strings.Contains(text, "/blobs/bash-toolu_1.txt") {
			t.Errorf("error %v, text %.300q", isError, text)
		}
		if !strings.HasPrefix(blob, "1\n2\n") || !strings.HasSuffix(blob, "\n20000\n") || len(blob) != 108894 {
			t.Errorf("saved %d bytes", len(blob))
		}
		if out.PersistedOutputPath != filepath.Join("/blobs", "bash-toolu_1.txt") || out.PersistedOutputSize != int64(len(blob)) || len(out.Stdout) > 2600 {
			t.Errorf("output %.500v", out)
		}
	})
	t.Run("failure", func(t *testing.T) {
		conform.Covers(t, "T-118")
		clear(s.blobs)
		text, isError, _ := s.bash("seq 20000; exit 9")
		if !isError || !strings.HasPrefix(text, "Exit code 9\n1\n2\n") || !strings.HasSuffix(text, "\n19999\n20000") || len(text) > 10_200 {
			t.Errorf("error %v, %d bytes: %.60q", isError, len(text), text)
		}
		if !strings.Contains(text, fmt.Sprintf("... [%d characters truncated] ...", 108_894-10_000)) || len(s.blobs) > 0 || strings.Contains(text, "/blobs") {
			t.Errorf("text %q, %d files", text[4900:5200], len(s.blobs))
		}
	})
	t.Run("one line of 80 MB", func(t *testing.T) {
		conform.Covers(t, "T-117", "B-104")
		text, isError, out := s.bash(in{"command": "head -c 80000000 /dev/zero | tr '\\0' a", "timeout": 600_000})
		if isError || len(text) > 2600 || out.PersistedOutputSize != spillSize || !strings.Contains(text, "80000000 bytes") {
			t.Errorf("error %v, %d bytes, saved %d: %.200q", isError, len(text), out.PersistedOutputSize, text)
		}
		clear(s.blobs)
	})
	t.Run("characters", func(t *testing.T) {
		conform.Covers(t, "B-107")
		for shift := range 4 {
			text, _, _ := s.bash(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; for i in $(seq 400); do printf '😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀'; done; exit 1", shift))
			if !utf8.ValidString(text) || strings.ContainsRune(text, '\uFFFD') || !strings.Contains(text, "truncated") {
				t.Errorf("shift %d: %.40q … %q", shift, text, text[len(text)-20:])
			}
		}
	})
	t.Run("less read back", func(t *testing.T) {
		conform.Covers(t, "T-119")
		s.vars["BASH_MAX_OUTPUT_LENGTH"] = "100"
		if text, _, out := s.bash("seq 200"); out.PersistedOutputPath == "" {
			t.Errorf("got %q", text)
		}
		s.vars["BASH_MAX_OUTPUT_LENGTH"] = "150000" // raises nothing
		if _, _, out := s.bash("seq 20000"); out.PersistedOutputPath == "" {
			t.Error("more is inline than the ceiling")
		}
	})
	t.Run("not saved", func(t *testing.T) {
		save := s.env.PutBlob
		defer func() { s.env.PutBlob = save }()
		s.env.PutBlob = func(string, []byte) (string, error) { return "", errors.New("disk full") }
		text, isError, _ := s.bash("seq 20000")
		if isError || !strings.Contains(text, "disk full") || !strings.HasPrefix(text, "1\n2\n") || !strings.Contains(text, "\n20000\n") {
			t.Errorf("error %v, %.100q", isError, text)
		}
	})
}

// TestBashKeepsNothing counts what many calls leave behind in this process.
func TestBashKeepsNothing(t *testing.T) {
	conform.Covers(t, "B-105")
	s := newSession(t)
	s.env.PutBlob = func(name string, _ []byte) (string, error) { return "/blobs/" + name, nil }
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	many := func() {
		for range 15 {
			s.bash("head -c 1000000 /dev/zero | tr '\\0' a")
		}
	}
	many()
	first, goroutines := heap(), runtime.NumGoroutine()
	many()
	if second := heap(); second > first+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes over 15 MB of output", first, second)
	}
	if err := s.bashTool().Close(); err != nil {
		t.Fatal(err)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if left, _ := filepath.Glob(filepath.Join(s.bashTool().opts.TempDir, "*")); len(left) > 0 {
		t.Errorf("files left: %q", left)
	}
}

func TestReadPipe(t *testing.T) {
	conform.Covers(t, "B-093")
	s := newSession(t)
	path := s.path("p")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.fails("Read", in{"file_path": path}, path, "named pipe")
		s.fails("Edit", edit(path, "a", "b"), path, "named pipe")
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("a named pipe blocks")
	}
}
