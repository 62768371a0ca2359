//go:build unix

package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
)

// sink is what a session is told of background work.
type sink struct {
	t       testing.TB
	mu      sync.Mutex
	started map[string]tool.Task
	ended   map[string]tool.TaskEnd
	more    chan struct{} // closed at the next end
}

func (s *sink) Started(task tool.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.started[task.ID]; twice {
		s.t.Errorf("task %s started twice", task.ID)
	}
	s.started[task.ID] = task
}

func (s *sink) Ended(id string, end tool.TaskEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.started[id]; !ok {
		s.t.Errorf("task %s ended before its start", id)
	}
	if _, twice := s.ended[id]; twice {
		s.t.Errorf("task %s ended twice", id)
	}
	s.ended[id] = end
	close(s.more)
	s.more = make(chan struct{})
}

// end waits for the end of a task.
func (s *sink) end(id string) tool.TaskEnd {
	s.t.Helper()
	for late := time.After(patience); ; {
		s.mu.Lock()
		end, ok := s.ended[id]
		more := s.more
		s.mu.Unlock()
		if ok {
			return end
		}
		select {
		case <-more:
		case <-late:
			s.t.Fatalf("task %s has not ended", id)
		}
	}
}

func withTasks(t testing.TB) (*session, *sink) {
	s := newSession(t)
	k := &sink{t: t, started: map[string]tool.Task{}, ended: map[string]tool.TaskEnd{}, more: make(chan struct{})}
	s.env.Tasks = k
	return s, k
}

// holds waits until a file has text in it.
func holds(t testing.TB, file, text string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if raw, _ := os.ReadFile(file); strings.Contains(string(raw), text) {
			return
		}
	}
	raw, err := os.ReadFile(file)
	t.Fatalf("%s has %q, %v; want %q", file, raw, err, text)
}

func TestBackground(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		status  tool.TaskStatus
		summary string
		output  string
	}{
		"success":      {"echo one; echo two >&2", tool.TaskCompleted, `Background command "it" completed with exit code 0`, "one\ntwo\n"},
		"failure":      {"echo one; exit 7", tool.TaskFailed, `Background command "it" failed with exit code 7`, "one\n"},
		"no match":     {"echo a | grep b", tool.TaskCompleted, `Background command "it" completed with exit code 1`, ""},
		"signal":       {"kill -KILL $$", tool.TaskFailed, `Background command "it" failed with exit code 137`, ""},
		"its own kids": {"sleep 300 & echo left", tool.TaskCompleted, `Background command "it" completed with exit code 0`, "left\n"},
		"much":         {"head -c 3000000 /dev/zero | tr '\\0' a", tool.TaskCompleted, `Background command "it" completed with exit code 0`, strings.Repeat("a", 3_000_000)},
	} {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, "T-130", "T-134", "T-121")
			s, k := withTasks(t)
			text, isError, out := s.bash(in{"command": test.command, "description": "it", "run_in_background": true})
			id := out.BackgroundTaskID
			if isError || id == "" || !strings.Contains(text, id) || !strings.Contains(text, out.RawOutputPath) || !filepath.IsAbs(out.RawOutputPath) {
				t.Errorf("got %q, %+v", text, out)
			}
			if want := "Session cwd remains " + s.env.Dir + "; directory changes made by the backgrounded command do not apply to subsequent commands."; !strings.Contains(text, want) || out.BackgroundCwdHint != want {
				t.Errorf("got %q, hint %q", text, out.BackgroundCwdHint)
			}
			if end := k.end(id); end.Status != test.status || end.Summary != test.summary {
				t.Errorf("got %+v", end)
			}
			task := k.started[id]
			if want := (tool.Task{ID: id, Type: "local_bash", ToolUseID: "toolu_1", Description: "it", OutputFile: out.RawOutputPath}); task != want {
				t.Errorf("got %+v, want %+v", task, want)
			}
			if raw, err := os.ReadFile(task.OutputFile); err != nil || string(raw) != test.output {
				t.Errorf("the file has %.50q (%d bytes), %v", raw, len(raw), err)
			}
		})
	}
}

// TestBackgroundWhileRunning reads the file of a running command, and the end
// of the session ends it.
func TestBackgroundWhileRunning(t *testing.T) {
	conform.Covers(t, "T-130", "T-128", "T-134")
	s, k := withTasks(t)
	mkdir(t, s.path("sub"))
	_, _, out := s.bash(in{"command": "cd sub; echo $$ >../pid; echo begun; (setsid sh -c 'echo $$ >../pid2; exec sleep 300' &) ; sleep 300", "run_in_background": true})
	holds(t, out.RawOutputPath, "begun\n")
	if text, _, _ := s.bash("pwd"); text != s.env.Dir {
		t.Errorf("the directory of the command in the background was taken over: %q", text)
	}
	s.pid("pid")
	s.pid("pid2")
	if err := s.bashTool().Close(); err != nil {
		t.Error(err)
	}
	s.gone("pid")
	s.gone("pid2")
	k.mu.Lock()
	defer k.mu.Unlock()
	if end := k.ended[out.BackgroundTaskID]; end.Status != tool.TaskStopped || !strings.Contains(end.Summary, "end of the session") {
		t.Errorf("got %+v", end)
	}
	if left, _ := filepath.Glob(filepath.Join(s.bashTool().opts.TempDir, "*")); len(left) > 0 {
		t.Errorf("files left: %q", left)
	}
}

func TestBackgroundRefused(t *testing.T) {
	conform.Covers(t, "T-135")
	schema := func(b *Bash) string { return string(b.Spec().InputSchema) }
	off := NewBash(BashOptions{NoBackground: true})
	defer off.Close()
	if strings.Contains(schema(off), "run_in_background") || !strings.Contains(schema(NewBash(BashOptions{})), "run_in_background") {
		t.Error("the field is offered against the option")
	}
	s, k := withTasks(t)
	s.env.Tasks = nil
	s.fails("Bash", in{"command": "true", "run_in_background": true}, "run_in_background", "no background work")
	s.env.Tasks = k
	_, err := off.Call(t.Context(), &tool.Call{Input: json.RawMessage(`{"command":"true","run_in_background":true}`), Env: s.env})
	if err == nil {
		t.Error("runs in the background")
	}
	r, err := off.Call(t.Context(), &tool.Call{Input: json.RawMessage(`{"command":"echo begun; cat /dev/zero >/dev/null","timeout":200}`), Env: s.env})
	if err != nil || !r.IsError || r.Content[0].Text() != "Command timed out after 200ms\nbegun" || len(k.started) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestTimeoutMoves(t *testing.T) {
	conform.Covers(t, "T-131", "T-134", "T-141", "T-140")
	s, k := withTasks(t)
	mkdir(t, s.path("sub"))
	text, isError, out := s.bash(in{"command": "cd sub; echo $$ >../pid; echo begun; until [ -e go ]; do sleep 0.05; done; echo more; exit 3", "timeout": 1500})
	id := out.BackgroundTaskID
	for _, part := range []string{
		"Command did not complete within its 1.5s timeout and was moved to the background", id, out.RawOutputPath, "\nbegun\n",
		"Session cwd remains " + s.env.Dir + "; directory changes made by the backgrounded command do not apply to subsequent commands.",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	if isError || out.TimedOutAfterMs != 1500 || out.Stdout != "begun" || out.Interrupted {
		t.Errorf("error %v, %+v", isError, out)
	}
	if text, _, _ := s.bash("pwd"); text != s.env.Dir {
		t.Errorf("the directory is %q", text)
	}
	s.fails("TaskStop", in{"task_id": "nobody"}, "nobody", id+": cd sub;")
	s.write("sub/go", "")
	if end := k.end(id); end.Status != tool.TaskFailed || !strings.HasSuffix(end.Summary, "failed with exit code 3") {
		t.Errorf("got %+v", end)
	}
	holds(t, out.RawOutputPath, "begun\nmore\n")
	s.fails("TaskStop", in{"task_id": id}, id, "not running", "failed")
	s.fails("TaskStop", in{"task_id": "nobody"}, "No background task is running")
}

// TestNeverMoved: what must be killed at its time limit.
func TestNeverMoved(t *testing.T) {
	conform.Covers(t, "T-132", "T-133")
	for command, want := range map[string]bool{
		"make": true, "echo a; sleep 5": true, "cat .gitignore": true, "echo gitea": true, "npm run x && make -j2 | tee log": true,
		"sleep 5": false, "sleep 5; make": false, "/bin/sleep 5 && make": false, "FOO=1 sleep 5": false,
		"git pull": false, "make && git push": false, "cd x; (while true; do git fetch; done)": false, "sudo git pull": false,
		"sh -c 'cd x && git pull'": false, "/usr/bin/git gc": false, "x=$(git log)": false, "find . | xargs git add": false,
		"if true; then": false, "echo 'x": false, "a && ": false, "": true,
	} {
		if got := movable(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
	s, k := withTasks(t)
	text, isError, out := s.bash(in{"command": "sleep 300", "timeout": 1000})
	if !isError || text != "Command timed out after 1s\n(no output)" || !out.Interrupted || len(k.started) > 0 {
		t.Errorf("got %q, %+v", text, out)
	}
}

func TestTaskStop(t *testing.T) {
	conform.Covers(t, "T-140", "T-4")
	for _, name := range []string{"TaskStop", "KillShell", "KillBash"} {
		t.Run(name, func(t *testing.T) {
			s, k := withTasks(t)
			// Deaf to SIGTERM, and with a child outside its group.
			_, _, out := s.bash(in{"command": "trap '' TERM; (setsid sh -c 'echo $$ >pid2; exec sleep 300' &); echo $$ >pid; while :; do sleep 1; done", "description": "deaf", "run_in_background": true})
			s.pid("pid")
			s.pid("pid2")
			field := "task_id"
			if name == "KillShell" {
				field = "shell_id"
			}
			r, err := s.call(name, in{field: out.BackgroundTaskID})
			if err != nil {
				t.Fatal(err)
			}
			var got taskStopOutput
			if err := json.Unmarshal(r.Structured, &got); err != nil {
				t.Fatal(err)
			}
			if got.TaskID != out.BackgroundTaskID || got.TaskType != "local_bash" || !strings.HasPrefix(got.Command, "trap ") || !strings.Contains(got.Message, "Stopped task "+got.TaskID) || r.Content[0].Text() != got.Message {
				t.Errorf("got %+v", got)
			}
			if running(s.pid("pid")) || running(s.pid("pid2")) {
				t.Error("still runs")
			}
			if end := k.end(out.BackgroundTaskID); end != (tool.TaskEnd{Status: tool.TaskStopped, Summary: `Background command "deaf" was stopped`}) {
				t.Errorf("got %+v", end)
			}
		})
	}
	s, _ := withTasks(t)
	s.fails("TaskStop", in{}, "task_id", "missing")
	s.fails("TaskStop", in{"task_id": "a", "shell_id": "b"}, "task_id", "shell_id")
	s.fails("TaskStop", in{"task_id": "a", "x": 1}, "x: unknown")
}

func TestTaskOutput(t *testing.T) {
	conform.Covers(t, "T-142", "T-141", "T-38")
	s, k := withTasks(t)
	ask := func(input in) (string, taskOutput) {
		t.Helper()
		r, err := s.call("BashOutput", input)
		if err != nil {
			t.Fatal(err)
		}
		var out taskOutput
		if err := json.Unmarshal(r.Structured, &out); err != nil {
			t.Fatal(err)
		}
		return r.Content[0].Text(), out
	}
	_, _, started := s.bash(in{"command": "echo begun; until [ -e go ]; do sleep 0.05; done; seq 20000; exit 4", "run_in_background": true})
	id := started.BackgroundTaskID
	holds(t, started.RawOutputPath, "begun\n")
	text, out := ask(in{"task_id": id, "block": false})
	if out.RetrievalStatus != "not_ready" || out.Task.Status != "running" || out.Task.Output != "begun\n" || out.Task.ExitCode != nil || !strings.Contains(text, "<output>\nbegun\n</output>") {
		t.Errorf("got %+v, %q", out, text)
	}
	if _, out = ask(in{"task_id": id, "timeout": 50}); out.RetrievalStatus != "timeout" {
		t.Errorf("got %+v", out)
	}
	s.write("go", "")
	text, out = ask(in{"task_id": id, "timeout": 60000})
	if out.RetrievalStatus != "success" || out.Task.Status != "failed" || out.Task.ExitCode == nil || *out.Task.ExitCode != 4 {
		t.Errorf("got %.300v", out)
	}
	if !strings.HasPrefix(out.Task.Output, "begun\n1\n2\n") || !strings.HasSuffix(out.Task.Output, "\n20000\n") || !strings.Contains(out.Task.Output, "bytes truncated] ...") || len(out.Task.Output) > 30_100 {
		t.Errorf("%d bytes of output", len(out.Task.Output))
	}
	if !strings.Contains(text, "<exit_code>4</exit_code>") || !strings.Contains(text, started.RawOutputPath) {
		t.Errorf("got %.300q", text)
	}
	k.end(id)
	s.fails("TaskOutput", in{"task_id": "nobody"}, "nobody", "No background task is running")
	s.fails("TaskOutput", in{"task_id": "nobody", "timeout": 600001}, "timeout")
	s.fails("TaskOutput", in{}, "task_id")
	tl, spec, _ := s.tools.Get("TaskOutput")
	if tl == nil || spec.Traits != (tool.Traits{ReadOnly: true, Concurrent: true, Repeatable: true}) {
		t.Errorf("traits %+v", spec.Traits)
	}
}

// TestTooMuch: a command that writes without end is killed at the limit,
// wherever it runs, and the file is no longer than it.
func TestTooMuch(t *testing.T) {
	conform.Covers(t, "T-120", "B-103")
	s, k := withTasks(t)
	b := s.bashTool()
	b.opts.killSize = 3 << 20
	text, isError, out := s.bash("echo $$ >pid; cat /dev/zero | tr '\\0' a")
	if !isError || !strings.HasPrefix(text, "Command was killed: it wrote more than 3145728 bytes\naaaa") || !out.Interrupted {
		t.Errorf("got %.200q", text)
	}
	s.gone("pid")
	_, _, out = s.bash(in{"command": "echo $$ >pid2; cat /dev/zero | tr '\\0' a", "run_in_background": true})
	if end := k.end(out.BackgroundTaskID); end.Status != tool.TaskStopped || !strings.Contains(end.Summary, "wrote more than 3145728 bytes") {
		t.Errorf("got %+v", end)
	}
	s.gone("pid2")
	if info, err := os.Stat(out.RawOutputPath); err != nil || info.Size() > 32<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestTaskFileLost: a task whose file cannot be written says so.
func TestTaskFileLost(t *testing.T) {
	s, _ := withTasks(t)
	s.vars["CLAUDE_CODE_TMPDIR"] = s.path("missing")
	s.fails("Bash", in{"command": "true", "run_in_background": true}, "run_in_background", s.path("missing"))
	if text, _, _ := s.bash("echo works"); text != "works" {
		t.Errorf("in the foreground: %q", text)
	}
	var o output
	dir := t.TempDir()
	o.tempDir = tempIn(dir)
	if err := o.keepAll(); err != nil {
		t.Fatal(err)
	}
	o.spill.Close()
	o.write([]byte("x"))
	if err := o.done(); err == nil {
		t.Error("the failure is not told")
	}
}

// TestMovedOutput: the file of a moved command has all that it wrote before and
// after, or says what is missing.
func TestMovedOutput(t *testing.T) {
	for _, before := range []int{0, 10, headSize, headSize + 1, 3 * headSize} {
		o := &output{tempDir: tempIn(t.TempDir())}
		want := strings.Repeat("b", before) + strings.Repeat("a", 1000)
		o.write([]byte(want[:before]))
		if err := o.keepAll(); err != nil {
			t.Fatal(err)
		}
		o.write([]byte(want[before : before+500]))
		o.write([]byte(want[before+500:]))
		if err := o.done(); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(o.path()); err != nil || string(raw) != want {
			t.Errorf("%d bytes before: the file has %d bytes, %v", before, len(raw), err)
		}
	}
	o := &output{tempDir: tempIn(t.TempDir())}
	piece := make([]byte, 1<<20)
	for range 65 {
		o.write(piece)
	}
	if err := o.keepAll(); err != nil {
		t.Fatal(err)
	}
	o.write([]byte("END"))
	raw, err := os.ReadFile(o.path())
	if err != nil || !strings.HasSuffix(string(raw), "\n\n... [1048576 bytes were not kept] ...\n\nEND") {
		t.Errorf("got %q, %v", raw[max(0, len(raw)-100):], err)
	}
	o.close()
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestManyTasks starts and stops tasks side by side.
func TestManyTasks(t *testing.T) {
	s, k := withTasks(t)
	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		wg.Go(func() {
			raw, _ := json.Marshal(in{"command": fmt.Sprintf("echo %d; sleep 300; true", i), "run_in_background": true})
			r, err := s.bashTool().Call(t.Context(), &tool.Call{ID: fmt.Sprint("t", i), Key: fmt.Sprint("k", i), Input: raw, Env: s.env})
			if err != nil {
				t.Error(err)
				return
			}
			var out bashOutput
			_ = json.Unmarshal(r.Structured, &out)
			ids[i] = out.BackgroundTaskID
			holds(t, out.RawOutputPath, fmt.Sprintln(i))
			if i%2 == 0 {
				if _, err := NewTaskStop(s.bashTool()).Call(t.Context(), &tool.Call{Input: json.RawMessage(`{"task_id":"` + ids[i] + `"}`), Env: s.env}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_ = s.bashTool().Close()
	if len(k.started) != len(ids) || len(k.ended) != len(ids) || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) {
		t.Errorf("%d started, %d ended, ids %q", len(k.started), len(k.ended), ids)
	}
}
