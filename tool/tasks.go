package tool

// Task is work that a call started and that goes on after the call has
// returned (T-130).
type Task struct {
	ID          string // unique in the session
	Type        string // "local_bash" for a shell command (T-138)
	ToolUseID   string // of the call that started it
	Description string // for people and the model, in a few words
	OutputFile  string // absolute path of the file that its output goes to
}

// TaskStatus says how a task ended.
type TaskStatus string

// The endings of a task (T-138).
const (
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskStopped   TaskStatus = "stopped" // killed: by TaskStop, a limit or the end of the session
)

// TaskEnd is the end of a task.
type TaskEnd struct {
	Status  TaskStatus
	Summary string // one line: what ended and how, with the exit code
}

// Tasks is how a tool tells its session of background work. The session shows
// it on the stream, and the end of a task reaches the model as a user turn of
// its own (T-139). Both methods may be called from any goroutine, also after
// the session has ended; they do not block.
type Tasks interface {
	// Started announces a task. Its call may still be running.
	Started(t Task)
	// Ended reports the end of a task that was announced, once.
	Ended(id string, end TaskEnd)
}
