package message

// ToolProgress is a sign of life of a running tool (M-87, M-88).
type ToolProgress struct {
	ToolUseID          string         `json:"tool_use_id"`
	ToolName           string         `json:"tool_name"`
	ParentToolUseID    *string        `json:"parent_tool_use_id"`
	ElapsedTimeSeconds float64        `json:"elapsed_time_seconds"`
	TaskID             string         `json:"task_id,omitempty"`
	Heartbeat          bool           `json:"heartbeat,omitempty"` // the one that is sent every 30 s
	SubagentType       string         `json:"subagent_type,omitempty"`
	SubagentRetry      *SubagentRetry `json:"subagent_retry,omitempty"`
	Header
}

// SubagentRetry is an APIRetry inside a subagent.
type SubagentRetry struct {
	AgentID       string        `json:"agent_id"`
	Attempt       int           `json:"attempt"` // 1 is the first retry
	MaxRetries    int           `json:"max_retries"`
	RetryDelayMS  int64         `json:"retry_delay_ms"`
	ErrorStatus   *int          `json:"error_status"` // null: no HTTP status
	ErrorCategory ErrorCategory `json:"error_category"`
}

// Kind implements Message.
func (*ToolProgress) Kind() (typ, subtype string) { return "tool_progress", "" }

// ToolUseSummary sums up a group of calls in one line (M-89).
type ToolUseSummary struct {
	Summary             string   `json:"summary"`
	PrecedingToolUseIDs []string `json:"preceding_tool_use_ids"`
	Header
}

// Kind implements Message.
func (*ToolUseSummary) Kind() (typ, subtype string) { return "tool_use_summary", "" }

// TaskStarted tells of a background shell or a subagent (M-91).
type TaskStarted struct {
	TaskID         string `json:"task_id"`
	ToolUseID      string `json:"tool_use_id,omitempty"`
	Description    string `json:"description"`
	TaskType       string `json:"task_type,omitempty"` // local_bash, local_agent, remote_agent
	IsBackgrounded *bool  `json:"is_backgrounded,omitempty"`
	SpawnDepth     int    `json:"spawn_depth,omitempty"` // of a local_agent; 1 was spawned by the main conversation
	Header
}

// Kind implements Message.
func (*TaskStarted) Kind() (typ, subtype string) { return "system", "task_started" }

// TaskProgress tells how far a task is (M-92).
type TaskProgress struct {
	TaskID       string    `json:"task_id"`
	ToolUseID    string    `json:"tool_use_id,omitempty"`
	Description  string    `json:"description"`
	SubagentType string    `json:"subagent_type,omitempty"`
	Usage        TaskUsage `json:"usage"`
	LastToolName string    `json:"last_tool_name,omitempty"`
	Summary      string    `json:"summary,omitempty"`
	Header
}

// TaskUsage is what a task has used.
type TaskUsage struct {
	TotalTokens int64 `json:"total_tokens"`
	ToolUses    int   `json:"tool_uses"`
	DurationMS  int64 `json:"duration_ms"`
}

// Kind implements Message.
func (*TaskProgress) Kind() (typ, subtype string) { return "system", "task_progress" }

// TaskUpdated changes what is known of a task: the fields that Patch has
// replace those of the task with the same id (M-93).
type TaskUpdated struct {
	TaskID string    `json:"task_id"`
	Patch  TaskPatch `json:"patch"`
	Header
}

// TaskPatch has the changed fields of a task.
type TaskPatch struct {
	Status         string  `json:"status,omitempty"` // pending, running, completed, failed, killed; paused is understood
	Description    *string `json:"description,omitempty"`
	EndTime        *int64  `json:"end_time,omitempty"` // milliseconds since the Unix epoch
	TotalPausedMS  *int64  `json:"total_paused_ms,omitempty"`
	Error          *string `json:"error,omitempty"`
	IsBackgrounded *bool   `json:"is_backgrounded,omitempty"`
}

// Kind implements Message.
func (*TaskUpdated) Kind() (typ, subtype string) { return "system", "task_updated" }

// TaskNotification tells that a task ended (M-94).
type TaskNotification struct {
	TaskID     string     `json:"task_id"`
	ToolUseID  string     `json:"tool_use_id,omitempty"`
	Status     string     `json:"status"`      // completed, failed, stopped
	OutputFile string     `json:"output_file"` // path of its full output
	Summary    string     `json:"summary"`
	Usage      *TaskUsage `json:"usage,omitempty"`
	Header
}

// Kind implements Message.
func (*TaskNotification) Kind() (typ, subtype string) { return "system", "task_notification" }

// BackgroundTasksChanged has the full set of running background tasks (M-96).
type BackgroundTasksChanged struct {
	Tasks []BackgroundTask `json:"tasks"`
	Header
}

// BackgroundTask is one running background task.
type BackgroundTask struct {
	TaskID      string `json:"task_id"`
	TaskType    string `json:"task_type"`
	Description string `json:"description"`
}

// Kind implements Message.
func (*BackgroundTasksChanged) Kind() (typ, subtype string) {
	return "system", "background_tasks_changed"
}
