package turnwright_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

// job is a tool whose calls return at once and work on in the background for
// the seconds of their input. Close stops what still works.
type job struct {
	stop chan struct{}
	left sync.WaitGroup
	once sync.Once
}

func newJob() *job { return &job{stop: make(chan struct{})} }

func (*job) Spec() tool.Spec {
	return tool.Spec{Name: "job", Description: "Works.", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"seconds":{"type":"number"},"end":{"type":"string"}},"required":["seconds"]}`)}
}

func (j *job) Call(_ context.Context, c *tool.Call) (*tool.Result, error) {
	var in struct {
		Seconds float64
		End     tool.TaskStatus
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, err
	}
	if in.End == "" {
		in.End = tool.TaskCompleted
	}
	id, tasks := "task-"+c.ID, c.Env.Tasks
	tasks.Started(tool.Task{ID: id, Type: "local_bash", ToolUseID: c.ID, Description: "a job", OutputFile: "/out/" + id})
	j.left.Go(func() {
		select {
		case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
			tasks.Ended(id, tool.TaskEnd{Status: in.End, Summary: "the job is over"})
		case <-j.stop:
			tasks.Ended(id, tool.TaskEnd{Status: tool.TaskStopped, Summary: "the job was stopped"})
		}
		tasks.Ended(id, tool.TaskEnd{Status: tool.TaskCompleted, Summary: "again"}) // changes nothing
	})
	return tool.Text("started"), nil
}

func (j *job) Close() error {
	j.once.Do(func() { close(j.stop) })
	j.left.Wait()
	return nil
}

// TestTaskEndsInTime: a background task that ends within the grace time after
// the result leads to a user turn of its own.
func TestTaskEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "T-138", "T-139", "L-211", "M-66", "M-91", "M-97", "M-93", "M-94", "M-96", "W-273", "W-293", "W-296", "W-297")
		srv, o := inMemory(t, agenttest.Script(
			agenttest.Call("job", `{"seconds":3}`), agenttest.Text("It works."), agenttest.Text("It is done."),
		))
		o.CustomTools, o.AllowedTools = []turnwright.Tool{newJob()}, []string{"job"}
		out := query(t, "go", o)
		const want = "init assistant(job) task_started background_tasks_changed user(ok) assistant(text) result(success) " +
			"task_updated background_tasks_changed task_notification init user() assistant(text) result(success)"
		if got := out.shape(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		var sets []int
		var results []*message.Result
		for _, m := range out.messages {
			switch m := m.(type) {
			case *message.TaskStarted:
				if !strings.HasPrefix(m.TaskID, "task-toolu_") || m.TaskType != "local_bash" || m.Description != "a job" || m.IsBackgrounded == nil || !*m.IsBackgrounded || "task-"+m.ToolUseID != m.TaskID {
					t.Errorf("task_started %+v", m)
				}
			case *message.TaskUpdated:
				if m.Patch.Status != "completed" || m.Patch.EndTime == nil || *m.Patch.EndTime != time.Now().UnixMilli() {
					t.Errorf("task_updated %+v", m)
				}
			case *message.TaskNotification:
				if m.Status != "completed" || m.Summary != "the job is over" || m.OutputFile != "/out/"+m.TaskID {
					t.Errorf("task_notification %+v", m)
				}
			case *message.BackgroundTasksChanged:
				sets = append(sets, len(m.Tasks))
			case *message.Result:
				results = append(results, m)
			case *message.User:
				if m.Origin != nil && (m.Origin.Kind != "task-notification" || !m.IsSynthetic || m.IsReplay) {
					t.Errorf("user message %+v", m)
				}
			}
		}
		if len(sets) != 2 || sets[0] != 1 || sets[1] != 0 {
			t.Errorf("sets of tasks: %v", sets)
		}
		if len(results) != 2 || results[0].Origin != nil || results[1].Origin == nil || results[1].Origin.Kind != "task-notification" {
			t.Errorf("origins of the results: %+v", results)
		}
		last := srv.Last().Messages()
		text := last[len(last)-1].Content[0].Text
		for _, part := range []string{"no human input has occurred", "<status>completed</status>", "/out/task-toolu_", "the job is over"} {
			if !strings.Contains(text, part) {
				t.Errorf("the model is told %q, without %q", text, part)
			}
		}
	})
}

// TestTaskIsStopped: a task that goes on is stopped five seconds after the
// final result, once the input has ended.
func TestTaskIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "T-137", "L-210", "W-380")
		_, o := inMemory(t, agenttest.Script(
			agenttest.Call("job", `{"seconds":600}`), agenttest.Text("It works."),
		))
		o.CustomTools, o.AllowedTools = []turnwright.Tool{newJob()}, []string{"job"}
		start := time.Now()
		out := query(t, "go", o)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		const want = "init assistant(job) task_started background_tasks_changed user(ok) assistant(text) result(success) " +
			"task_updated background_tasks_changed task_notification"
		if got := out.shape(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, m := range out.messages {
			switch m := m.(type) {
			case *message.TaskUpdated:
				if m.Patch.Status != "killed" {
					t.Errorf("task_updated %+v", m)
				}
			case *message.TaskNotification:
				if m.Status != "stopped" {
					t.Errorf("task_notification %+v", m)
				}
			}
		}
	})
}

// TestTaskInSession: without an end of the input a task may run as long as it
// likes. Its user turn does not take the place of one that was asked for.
func TestTaskInSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "T-139", "L-211")
		_, o := inMemory(t, agenttest.Script(
			agenttest.Call("job", `{"seconds":600,"end":"failed"}`), agenttest.Text("It works."),
			agenttest.Text("The job failed."), agenttest.Text("You are welcome."),
		))
		o.CustomTools, o.AllowedTools = []turnwright.Tool{newJob()}, []string{"job"}
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Ask(t.Context(), "go"); err != nil || *r.Result != "It works." {
			t.Errorf("%v, %v", r, err)
		}
		time.Sleep(time.Hour)
		if r, err := s.Ask(t.Context(), "thanks"); err != nil || *r.Result != "You are welcome." {
			t.Errorf("%v, %v", r, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestTaskAtClose: closing stops the tasks; nothing waits and nothing is asked.
func TestTaskAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "T-138")
		srv, o := inMemory(t, agenttest.Script(
			agenttest.Call("job", `{"seconds":600}`), agenttest.Text("It works."),
		))
		o.CustomTools, o.AllowedTools = []turnwright.Tool{newJob()}, []string{"job"}
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ask(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 0 || srv.Count() != 2 {
			t.Errorf("it took %v and %d requests", took, srv.Count())
		}
	})
}

// TestBackgroundCommand runs a real command in the background: its end comes as
// a user turn, in which its output can be fetched.
func TestBackgroundCommand(t *testing.T) {
	conform.Covers(t, "T-130", "T-138", "T-139", "T-142")
	var task string
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		text := r.UserText()
		switch _, rest, ended := strings.Cut(text, "<task-id>"); {
		case r.Turn() == 0:
			return agenttest.Call("Bash", `{"command":"echo from behind","run_in_background":true}`)
		case ended && task == "":
			task, _, _ = strings.Cut(rest, "</task-id>")
			return agenttest.Call("TaskOutput", `{"task_id":"`+task+`"}`)
		case task != "":
			return agenttest.Text(r.LastToolResults()[0].Text)
		}
		return agenttest.Text("It runs.")
	}))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	out := query(t, "go", o)
	results := out.results()
	if out.err != nil || len(results) != 2 {
		t.Fatalf("%s, %v", out.shape(), out.err)
	}
	if last := results[1]; last.Origin == nil || last.Origin.Kind != "task-notification" || !strings.Contains(*last.Result, "from behind") {
		t.Errorf("the last result: %+v", last)
	}
	for _, m := range out.messages {
		if n, ok := m.(*message.TaskNotification); ok && (n.Status != "completed" || n.TaskID != task) {
			t.Errorf("task_notification %+v, want of %s", n, task)
		}
	}
}

// TestOutputsCanBeRead: a result that is too long is kept in a file, which the
// model may read without approval although it lies elsewhere; other files there
// it may not.
func TestOutputsCanBeRead(t *testing.T) {
	conform.Covers(t, "T-117", "T-58", "S-17")
	var saved string
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		switch r.Turn() {
		case 0:
			return agenttest.Call("Bash", `{"command":"seq 20000"}`)
		case 1:
			text := r.LastToolResults()[0].Text
			_, rest, _ := strings.Cut(text, "saved in ")
			saved, _, _ = strings.Cut(rest, "\n")
			return agenttest.Blocks(
				agenttest.Call("Read", string(mustJSON(map[string]any{"file_path": saved, "offset": 19999, "limit": 1}))),
				agenttest.Call("Read", string(mustJSON(map[string]any{"file_path": saved + "/../other"}))),
			)
		}
		return agenttest.Text("done")
	}))
	o := onDisk(t, srv)
	o.AllowedTools = []string{"Bash"}
	out := query(t, "go", o)
	results := srv.Last().LastToolResults()
	if len(results) != 2 || results[0].IsError || !strings.Contains(results[0].Text, "19999\t19999") || !results[1].IsError {
		t.Errorf("%s: %+v", out.shape(), results)
	}
	if len(out.result.PermissionDenials) != 1 {
		t.Errorf("denials %v", out.result.PermissionDenials)
	}
}
