//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// process is the command in a process of its own, in a directory of its own.
type process struct {
	*exec.Cmd
	t      *testing.T
	stderr bytes.Buffer
}

// command prepares the command with a scripted model. What it writes to
// standard output is the test's business; without a test's own standard input
// there is none.
func command(t *testing.T, srv *agenttest.Server, args ...string) *process {
	t.Helper()
	p := &process{t: t, Cmd: exec.CommandContext(t.Context(), "turnwright", args...)}
	p.Dir = t.TempDir()
	p.Env = os.Environ()
	for k, v := range clean(p.Dir) {
		p.Env = append(p.Env, k+"="+v)
	}
	p.Env = append(p.Env, "ANTHROPIC_BASE_URL="+srv.URL())
	p.Stderr = &p.stderr
	p.WaitDelay = time.Minute
	return p
}

// end waits for the process and returns its exit code.
func (p *process) end() int {
	p.t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// waitFor waits until the condition holds, for as long as a slow machine may take.
func (p *process) waitFor(failure string, holds func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s\n%s", failure, &p.stderr)
		}
	}
}

// child waits for the number of the process that the tool has started.
func (p *process) child() (pid int) {
	p.t.Helper()
	p.waitFor("the tool has not started", func() bool {
		text, err := os.ReadFile(filepath.Join(p.Dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil && pid > 0
	})
	return pid
}

func (p *process) gone(pid int) {
	p.t.Helper()
	p.waitFor(fmt.Sprintf("process %d is still there", pid), func() bool {
		return syscall.Kill(pid, 0) != nil || zombie(pid)
	})
}

// sleeper calls Bash with a command that has a child and does not end.
const sleeper = `{"command":"sleep 600 & echo $! > pid.new; mv pid.new pid; wait"}`

// TestSignals ends a run whose tool would go on for ten minutes. The exit code
// says how; the tool's processes are gone, on Linux also one that has left its
// process group, and so are its temporary files.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		code   int
		result bool
	}{
		{"interrupt", syscall.SIGINT, 1, true},
		{"terminate", syscall.SIGTERM, 143, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conform.Covers(t, "K-204", "K-205", "L-207", "W-382", "T-127")
			tool := sleeper
			if runtime.GOOS == "linux" {
				tool = strings.Replace(sleeper, `"sleep`, `"setsid -f sh -c 'echo $$ > far; sleep 600; true'; until [ -s far ]; do sleep 0.1; done; sleep`, 1)
			}
			srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Bash", tool), agenttest.Text("It was not run.")))
			p := command(t, srv, "-p", "go", "--allowedTools", "Bash", "--output-format", "json")
			temp := t.TempDir()
			p.Env = append(p.Env, "TMPDIR="+temp)
			var out bytes.Buffer
			p.Stdout = &out
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			pid := p.child()
			if err := p.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			if code := p.end(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			p.gone(pid)
			if text, err := os.ReadFile(filepath.Join(p.Dir, "far")); err == nil {
				far, _ := strconv.Atoi(strings.TrimSpace(string(text)))
				p.gone(far)
			} else if runtime.GOOS == "linux" {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
				t.Errorf("temporary files are left: %q", left)
			}
			if got := strings.Contains(out.String(), `"type":"result"`); got != tt.result {
				t.Errorf("result written: %v\n%s", got, &out)
			}
			if p.stderr.Len() > 0 {
				t.Errorf("stderr: %s", &p.stderr)
			}
			if n := srv.Count(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestSecondInterrupt ends the process at once while the first interrupt is
// still being handled: here its result waits for a reader who never comes.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-205", "L-207")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Blocks(
		agenttest.Text(strings.Repeat("more than a pipe holds ", 20_000)),
		agenttest.Call("Bash", sleeper),
	)))
	p := command(t, srv, "-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json", "--verbose")
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	pid := p.child()
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.gone(pid)
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.waitFor("the process goes on", func() bool { return zombie(p.Process.Pid) || syscall.Kill(p.Process.Pid, 0) != nil })
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(rest), `"type":"result"`) {
		t.Error("a result was written after the second interrupt")
	}
	if code := p.end(); code != 130 {
		t.Errorf("exit code %d\n%s", code, &p.stderr)
	}
}

// TestStreamIsNotHeld reads each line of a pipe while the run still waits for
// the model, and then goes away.
func TestStreamIsNotHeld(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "B-199", "M-1", "K-153")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"echo hello"}`),
		agenttest.Never(),
	))
	p := command(t, srv, "-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json", "--verbose")
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{`"subtype":"init"`, `"type":"assistant"`, `"type":"user"`} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("got %q, want a line with %s (%v)\n%s", lines.Text(), want, lines.Err(), &p.stderr)
		}
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("after the end: %s", lines.Text())
	}
	if code := p.end(); code != 143 {
		t.Errorf("exit code %d", code)
	}
}

// TestReaderGone is "turnwright … | head -1": the run ends quietly, and with it
// the tool that runs then.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "B-199", "K-159")
	read := make(chan struct{}) // closed when the reader has gone
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if r.Turn() == 0 {
			<-read
		}
		return agenttest.Call("Bash", sleeper)
	}))
	p := command(t, srv, "-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json", "--verbose")
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"subtype":"init"`) {
		t.Errorf("first line: %s, %v", lines.Text(), lines.Err())
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	close(read)
	if code := p.end(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if p.stderr.Len() > 0 {
		t.Errorf("stderr: %s", &p.stderr)
	}
	if text, err := os.ReadFile(filepath.Join(p.Dir, "pid")); err == nil {
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		p.gone(pid)
	}
	if n := srv.Count(); n > 1 {
		t.Errorf("%d requests", n)
	}
}

// TestReaderGoneInSilence has the reader go away while a tool runs that says
// nothing: on Linux the run ends then, and not at the next line.
func TestReaderGoneInSilence(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("noticed at the next line only")
	}
	pipe := func() (r, w *os.File, err error) { return os.Pipe() }
	socket := func() (r, w *os.File, err error) { // what some clients use in place of a pipe
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return nil, nil, err
		}
		syscall.CloseOnExec(fds[0]) // else the command itself holds the other end
		syscall.CloseOnExec(fds[1])
		return os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w"), nil
	}
	for _, tt := range []struct {
		name string
		ends func() (r, w *os.File, err error)
		args []string
	}{
		{"text", pipe, []string{"-p", "go"}},
		{"json", pipe, []string{"-p", "go", "--output-format", "json"}},
		{"stream-json", pipe, []string{"-p", "go", "--output-format", "stream-json", "--verbose"}},
		{"streaming", pipe, []string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}},
		{"text, socket", socket, []string{"-p", "go"}},
		{"streaming, socket", socket, []string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conform.Covers(t, "K-159", "W-383")
			srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Call("Bash", sleeper)))
			p := command(t, srv, append(tt.args, "--allowedTools", "Bash")...)
			r, w, err := tt.ends()
			if err != nil {
				t.Fatal(err)
			}
			p.Stdout = w
			if tt.args[0] != "-p" { // its input stays open
				in, err := p.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(in, `{"type":"user","message":{"role":"user","content":"go"}}`+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			pid := p.child()
			r.Close()
			if code := p.end(); code != 1 || p.stderr.Len() > 0 {
				t.Errorf("exit code %d, stderr %q", code, &p.stderr)
			}
			p.gone(pid)
			if n := srv.Count(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestSilentStdin does not wait for a standard input that stays open and says
// nothing, when there is a prompt.
func TestSilentStdin(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-8")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Text("Hello.")))
	p := command(t, srv, "-p", "the prompt")
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 || out.String() != "Hello.\n" || p.stderr.Len() > 0 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, &out, &p.stderr)
	}
	if got := srv.Last().UserText(); got != "the prompt" {
		t.Errorf("prompt %q", got)
	}
}

// TestOddStdin starts with a standard input that cannot be read, that is no
// text source, and that is closed.
func TestOddStdin(t *testing.T) {
	t.Parallel()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, tt := range []struct {
		name   string
		stdin  *os.File
		stderr string
	}{
		{"directory", dir, "Warning: standard input could not be read"},
		{"none", nil, ""}, // the null device
	} {
		t.Run(tt.name, func(t *testing.T) {
			conform.Covers(t, "K-7")
			srv := agenttest.NewServer(t, agenttest.Script(agenttest.Text("Hello.")))
			p := command(t, srv, "-p", "the prompt")
			if tt.stdin != nil {
				p.Stdin = tt.stdin
			}
			var out bytes.Buffer
			p.Stdout = &out
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if code := p.end(); code != 0 || out.String() != "Hello.\n" {
				t.Errorf("exit code %d, stdout %q", code, &out)
			}
			if got := p.stderr.String(); !strings.Contains(got, tt.stderr) || tt.stderr == "" && got != "" {
				t.Errorf("stderr %q", got)
			}
			if got := srv.Last().UserText(); got != "the prompt" {
				t.Errorf("prompt %q", got)
			}
		})
	}
}

// TestLongArgument hands over as much as one argument can hold.
func TestLongArgument(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-31")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Text("Hello.")))
	long := strings.Repeat("ä", 60<<10) // 120 KiB; Linux takes 128
	p := command(t, srv, "-p", "hi", "--system-prompt", long)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, &p.stderr)
	}
	if srv.Last().SystemText() != long {
		t.Error("the system prompt is another one")
	}
}
