package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

// backgroundGrace is how long the end of the input waits for tasks that still
// run when everything that was asked has its result (T-137).
const backgroundGrace = 5 * time.Second

// tasks is the set of background tasks of a session. It implements tool.Tasks.
type tasks struct {
	s *Session

	mu      sync.Mutex // held over what is emitted too, so that sets are shown in order
	live    []tool.Task
	closing bool // what ends now ends because the session does
}

var _ tool.Tasks = (*tasks)(nil)

// Started shows a new task (M-91) and the new set (M-96).
func (t *tasks) Started(task tool.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = append(t.live, task)
	t.s.outputs.add(task.OutputFile)
	t.s.emit(&message.TaskStarted{
		TaskID: task.ID, ToolUseID: task.ToolUseID, Description: task.Description,
		TaskType: task.Type, IsBackgrounded: new(true),
	})
	t.changed()
}

// Ended shows the end of a task (M-93, M-94) and tells the model in a user turn
// of its own (T-139). A task that was stopped gets no such turn: who stopped it
// knows.
func (t *tasks) Ended(id string, end tool.TaskEnd) {
	task, closing, ok := t.remove(id, end)
	if !ok {
		return
	}
	if end.Status != tool.TaskStopped && !closing {
		_ = t.s.Send(loop.Input{
			ID: uuidText(t.s.cfg.NewUUID()), Synthetic: true,
			Origin:  &message.Origin{Kind: message.OriginTaskNotification},
			Content: message.TextContent(notification(task, end)),
		}) // a closed session has no model to tell
	}
	t.s.look()
}

func (t *tasks) remove(id string, end tool.TaskEnd) (task tool.Task, closing, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.live, func(l tool.Task) bool { return l.ID == id })
	if i < 0 {
		return task, false, false
	}
	task = t.live[i]
	t.live = slices.Delete(t.live, i, i+1)
	patch := message.TaskPatch{Status: string(end.Status), EndTime: new(t.s.cfg.Now().UnixMilli())}
	switch end.Status {
	case tool.TaskStopped:
		patch.Status = "killed"
	case tool.TaskFailed:
		patch.Error = new(end.Summary)
	}
	t.s.emit(&message.TaskUpdated{TaskID: id, Patch: patch})
	t.changed()
	t.s.emit(&message.TaskNotification{
		TaskID: id, ToolUseID: task.ToolUseID, Status: string(end.Status),
		OutputFile: task.OutputFile, Summary: end.Summary,
	})
	return task, t.closing, true
}

// changed shows the whole set. It needs t.mu.
func (t *tasks) changed() {
	set := make([]message.BackgroundTask, len(t.live))
	for i, l := range t.live {
		set[i] = message.BackgroundTask{TaskID: l.ID, TaskType: l.Type, Description: l.Description}
	}
	t.s.emit(&message.BackgroundTasksChanged{Tasks: set})
}

func (t *tasks) running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.live) > 0
}

func (t *tasks) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// notification is the text for the model. It says that nobody spoke, so that
// it is not taken for an answer of the user (L-211).
func notification(task tool.Task, end tool.TaskEnd) string {
	var b strings.Builder
	b.WriteString("This message is not from the user: no human input has occurred. A background task has ended.\n<task-notification>\n")
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "<%s>%s</%s>\n", name, value, name)
		}
	}
	field("task-id", task.ID)
	field("tool-use-id", task.ToolUseID)
	field("status", string(end.Status))
	field("summary", end.Summary)
	field("output-file", task.OutputFile)
	b.WriteString("</task-notification>")
	return b.String()
}

// look lets the actor look whether the session is done.
func (s *Session) look() { s.deliver(posted{}, false) }

// drain decides, when there is nothing to do, whether the input has ended for
// good: at once where nothing runs in the background, else after a grace time
// in which the end of a task may lead to a user turn more (T-137). It needs
// s.mu and returns the event that ends the session, or nil.
func (s *Session) drain() loop.Event {
	idle := s.machine.State() == loop.Idle && len(s.running) == 0
	if !s.inputEnded || s.drained || !idle || !s.tasks.running() {
		if s.grace != nil {
			s.grace.Stop()
			s.grace = nil
		}
		if !s.inputEnded || s.drained || !idle {
			return nil
		}
		s.drained = true
		return loop.EndInput{}
	}
	if s.grace == nil {
		s.grace = time.AfterFunc(backgroundGrace, func() {
			s.tasks.close()
			_ = s.closeTools() // reported by Close
			s.look()
		})
	}
	return nil
}
