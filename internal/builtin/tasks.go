package builtin

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/tool"
)

// taskType is the type of all tasks of Bash (T-138).
const taskType = "local_bash"

// task is a command in the background.
type task struct {
	id, command, description, file string

	stop     chan struct{} // closed by halt
	stopOnce sync.Once
	done     chan struct{} // closed when it has ended; the fields below are set then
	status   tool.TaskStatus
	code     int
	why      string // what ended it, for people
}

func (t *task) halt() { t.stopOnce.Do(func() { close(t.stop) }) }

func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// state is the status as TaskOutput shows it.
func (t *task) state() string {
	if !t.ended() {
		return "running"
	}
	if t.status == tool.TaskStopped {
		return "killed"
	}
	return string(t.status)
}

// taskList holds the tasks of a session in order of their start.
type taskList struct {
	mu    sync.Mutex
	tasks []*task
}

func (l *taskList) find(id string) *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.tasks, func(t *task) bool { return t.id == id })
	if i < 0 {
		return nil
	}
	return l.tasks[i]
}

// unknown is the error for an id that no task has (T-141).
func (l *taskList) unknown(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "task_id: there is no background task %q.", firstRunes(id, 100))
	n := 0
	for _, t := range l.tasks {
		if t.ended() {
			continue
		}
		if n++; n == 1 {
			b.WriteString(" Running tasks:")
		}
		fmt.Fprintf(&b, "\n- %s: %s", t.id, t.description)
	}
	if n == 0 {
		b.WriteString(" No background task is running.")
	}
	return errors.New(b.String())
}

// adopt makes a running command a task of the session and tells the session.
// From now on a goroutine of its own waits for it.
func (b *Bash) adopt(c *tool.Call, p *command) *task {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	t := &task{
		id: "b" + hex.EncodeToString(id[:]), command: p.in.Command, description: p.in.Description, file: p.out.path(),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if t.description == "" {
		t.description = firstLine(p.in.Command, 80)
	}
	b.tasks.mu.Lock()
	b.tasks.tasks = append(b.tasks.tasks, t)
	b.tasks.mu.Unlock()
	sink := c.Env.Tasks
	sink.Started(tool.Task{ID: t.id, Type: taskType, ToolUseID: c.ID, Description: t.description, OutputFile: t.file})
	b.active.Go(func() { // the call that adopts is active itself, so Close still waits
		b.supervise(t, p)
		close(t.done)
		sink.Ended(t.id, tool.TaskEnd{Status: t.status, Summary: t.summary()})
	})
	return t
}

// supervise waits for the end of a task.
func (b *Bash) supervise(t *task, p *command) {
	end, kill, why := &ending{}, true, ""
	select {
	case <-p.tree.Exited():
		kill = false
	case <-t.stop:
		why = "stopped"
	case <-b.stop:
		why = "stopped at the end of the session"
	case <-p.tooMuch:
		why = fmt.Sprintf("killed: it wrote more than %d bytes", p.out.max())
	}
	b.finish(p, end, kill)
	p.dropReport()
	t.code, t.why = end.code, why
	if err := p.out.done(); err != nil {
		t.why = strings.TrimPrefix(t.why+"; its output was cut short: "+err.Error(), "; ")
	}
	_, quiet := meaningOfOne(t.command)
	switch {
	case kill:
		t.status = tool.TaskStopped
	case t.code == 0, t.code == 1 && quiet:
		t.status = tool.TaskCompleted
	default:
		t.status = tool.TaskFailed
	}
}

// summary says in one line what ended and how.
func (t *task) summary() string {
	text := fmt.Sprintf("Background command %q ", firstLine(t.description, 80))
	switch t.status {
	case tool.TaskStopped:
		return text + "was " + t.why
	case tool.TaskFailed:
		text += "failed"
	default:
		text += "completed"
	}
	text += fmt.Sprintf(" with exit code %d", t.code)
	if t.why != "" {
		text += " (" + t.why + ")"
	}
	return text
}

// firstLine returns the first line of s, cut to about n characters.
func firstLine(s string, n int) string {
	line, _, more := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD")), "\n")
	short := firstRunes(line, n)
	if more || short != line {
		short += "…"
	}
	return short
}

// background answers a call whose command was started in the background
// (T-130).
func (b *Bash) background(c *tool.Call, p *command) (*tool.Result, error) {
	t := b.adopt(c, p)
	text := fmt.Sprintf("Command is running in the background with id %s. Its output goes to %s, which can be read at any time. "+
		"You will be told when it ends; TaskStop stops it.", t.id, t.file)
	out := bashOutput{BackgroundTaskID: t.id, RawOutputPath: t.file, Stderr: p.notice}
	return backgroundResult(p, text, out)
}

// moved answers a call whose command reached its time limit and goes on
// (T-131).
func (b *Bash) moved(c *tool.Call, p *command, end *ending) (*tool.Result, error) {
	t := b.adopt(c, p)
	out := bashOutput{
		BackgroundTaskID: t.id, RawOutputPath: t.file, TimedOutAfterMs: end.timeout.Milliseconds(),
		Stderr: p.notice, Stdout: trimEnd(p.out.soFar(previewSize)),
	}
	text := fmt.Sprintf("Command did not complete within its %vs timeout and was moved to the background with id %s. Its output goes to %s, which can be read at any time. "+
		"You will be told when it ends; TaskStop stops it.", float64(end.timeout)/float64(time.Second), t.id, t.file)
	if out.Stdout != "" {
		text += "\n\nIts output so far:\n" + out.Stdout
	}
	return backgroundResult(p, text, out)
}

func backgroundResult(p *command, text string, out bashOutput) (*tool.Result, error) {
	out.BackgroundCwdHint = "Session cwd remains " + p.dir + "; directory changes made by the backgrounded command do not apply to subsequent commands."
	for _, line := range []string{out.BackgroundCwdHint, out.Stderr} {
		if line != "" {
			text += "\n" + line
		}
	}
	return bashResult(text, false, out)
}
