package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/safeopen"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

// TaskStop ends a background command (T-140).
type TaskStop struct{ bash *Bash }

// NewTaskStop returns the tool for the tasks of the session's Bash.
func NewTaskStop(b *Bash) *TaskStop { return &TaskStop{b} }

// Spec describes the tool.
func (*TaskStop) Spec() tool.Spec {
	return tool.Spec{
		Name:        "TaskStop",
		Aliases:     []string{"KillShell", "KillBash"},
		Description: "Stops a running background command by its task id.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"task_id":{"type":"string","description":"Id of the background task"},` +
			`"shell_id":{"type":"string","description":"Old name of task_id"}},` +
			`"additionalProperties":false}`),
	}
}

type taskStopOutput struct {
	Message  string `json:"message"`
	TaskID   string `json:"task_id"`
	TaskType string `json:"task_type"`
	Command  string `json:"command,omitempty"`
}

// Call stops the task and waits until all its processes have ended.
func (s *TaskStop) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	var in struct {
		TaskID  string `json:"task_id"`
		ShellID string `json:"shell_id"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("TaskStop: %w", err)
	}
	id := in.TaskID
	switch {
	case id == "":
		id = in.ShellID
	case in.ShellID != "" && in.ShellID != id:
		return nil, fmt.Errorf("task_id: %q and shell_id %q are two tasks; give one", id, in.ShellID)
	}
	if id == "" {
		return nil, errors.New("task_id: is missing")
	}
	t := s.bash.tasks.find(id)
	if t == nil {
		return nil, s.bash.tasks.unknown(id)
	}
	if t.ended() {
		return nil, fmt.Errorf("task_id: task %s is not running any more (status: %s)", id, t.state())
	}
	t.halt()
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	out := taskStopOutput{Message: fmt.Sprintf("Stopped task %s (%s)", id, t.description), TaskID: id, TaskType: taskType, Command: t.command}
	if t.status != tool.TaskStopped {
		out.Message = fmt.Sprintf("Task %s (%s) had just ended with exit code %d", id, t.description, t.code)
	}
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewText(out.Message)}, Structured: raw}, nil
}

// TaskOutput shows the output and the state of a background command (T-142).
type TaskOutput struct{ bash *Bash }

// NewTaskOutput returns the tool for the tasks of the session's Bash.
func NewTaskOutput(b *Bash) *TaskOutput { return &TaskOutput{b} }

// maxTaskWait is the longest wait of one TaskOutput call, in milliseconds.
const maxTaskWait = 600_000

// Spec describes the tool.
func (*TaskOutput) Spec() tool.Spec {
	return tool.Spec{
		Name:    "TaskOutput",
		Aliases: []string{"BashOutput"},
		Description: "Shows the state and the output of a background command. Deprecated: read the output file that the command's result names. " +
			"With block, the default, it waits for the end of the command, for at most timeout milliseconds (30000).",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"task_id":{"type":"string","minLength":1,"description":"Id of the background task"},` +
			`"block":{"type":"boolean","description":"Whether to wait for the end; default true"},` +
			`"timeout":{"type":"number","minimum":0,"maximum":600000,"description":"Longest wait in milliseconds; default 30000"}},` +
			`"required":["task_id"],"additionalProperties":false}`),
		Traits: tool.Traits{ReadOnly: true, Concurrent: true, Repeatable: true},
	}
}

type taskOutput struct {
	RetrievalStatus string     `json:"retrieval_status"` // success, timeout or not_ready
	Task            taskReport `json:"task"`
}

type taskReport struct {
	TaskID      string `json:"task_id"`
	TaskType    string `json:"task_type"`
	Status      string `json:"status"` // running, completed, failed or killed
	Description string `json:"description"`
	Output      string `json:"output"`
	ExitCode    *int   `json:"exitCode,omitempty"`
}

// Call waits as asked and returns the state and the output so far.
func (o *TaskOutput) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	in := struct {
		TaskID  string  `json:"task_id"`
		Block   bool    `json:"block"`
		Timeout float64 `json:"timeout"`
	}{Block: true, Timeout: 30_000}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("TaskOutput: %w", err)
	}
	t := o.bash.tasks.find(in.TaskID)
	if t == nil {
		return nil, o.bash.tasks.unknown(in.TaskID)
	}
	out := taskOutput{RetrievalStatus: "success"}
	if !t.ended() {
		out.RetrievalStatus = "not_ready"
		if in.Block {
			timer := time.NewTimer(time.Duration(min(in.Timeout, maxTaskWait) * float64(time.Millisecond)))
			defer timer.Stop()
			select {
			case <-t.done:
				out.RetrievalStatus = "success"
			case <-timer.C:
				out.RetrievalStatus = "timeout"
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
	text, err := fileExcerpt(t.file, min(inlineSuccess, readBack(c.Env)))
	if err != nil {
		text = "(the output cannot be read: " + err.Error() + ")"
	}
	out.Task = taskReport{TaskID: t.id, TaskType: taskType, Status: t.state(), Description: t.description, Output: text}
	if t.ended() && t.status != tool.TaskStopped {
		out.Task.ExitCode = &t.code
	}
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewText(out.text(t.file))}, Structured: raw}, nil
}

// text is what the model sees.
func (o *taskOutput) text(file string) string {
	var b strings.Builder
	tag := func(name, value string) { fmt.Fprintf(&b, "<%s>%s</%s>\n", name, value, name) }
	tag("retrieval_status", o.RetrievalStatus)
	tag("task_id", o.Task.TaskID)
	tag("task_type", o.Task.TaskType)
	tag("status", o.Task.Status)
	if o.Task.ExitCode != nil {
		tag("exit_code", fmt.Sprint(*o.Task.ExitCode))
	}
	tag("output_file", file)
	if output := trimEnd(o.Task.Output); output != "" {
		tag("output", "\n"+output+"\n")
	} else {
		tag("output", "(no output)")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fileExcerpt returns about limit characters of a file: half from its start and
// half from its end.
func fileExcerpt(path string, limit int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", safeopen.Cause(err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", safeopen.Cause(err)
	}
	var o output
	const part = headSize // more than the longest excerpt in bytes
	read := func(at int64) ([]byte, error) {
		buf := make([]byte, min(part, size))
		n, err := f.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, safeopen.Cause(err)
		}
		return buf[:n], nil
	}
	o.size = size
	if o.head, err = read(0); err != nil {
		return "", err
	}
	if size > part {
		if o.tail, err = read(size - part); err != nil {
			return "", err
		}
	}
	if text, ok := o.text(limit); ok {
		return text, nil
	}
	end := o.tail
	if len(end) == 0 {
		end = o.head
	}
	head, tail := firstRunes(clean(o.head), limit-limit/2), lastRunes(clean(end), limit/2)
	return fmt.Sprintf("%s\n\n... [%d bytes truncated] ...\n\n%s", head, max(0, size-int64(len(head)+len(tail))), tail), nil
}

var _, _ tool.Tool = (*TaskStop)(nil), (*TaskOutput)(nil)
