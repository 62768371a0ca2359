package hook

import (
	"encoding/json"
	"fmt"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// Input is what hooks are told of an event: a pointer to the struct that is
// named after it, such as *PreToolUseInput. Its JSON form is what commands read
// from standard input. All hooks of an event share it, so it must not be
// changed.
type Input interface {
	// Event is the event.
	Event() Event
	// Subject is the field that matchers are compared with; "" where the event
	// has none (H-18, H-20).
	Subject() string
	// Head returns what the inputs of all events have.
	Head() *Base
}

// Base is what the inputs of all events have. Fields with omitempty are there
// where they apply.
type Base struct {
	SessionID      string          `json:"session_id"`
	TranscriptPath string          `json:"transcript_path"` // "": the session is in no file
	CWD            string          `json:"cwd"`
	EventName      Event           `json:"hook_event_name"`
	PromptID       string          `json:"prompt_id,omitempty"` // uuid of the message that began the turn
	PermissionMode permission.Mode `json:"permission_mode,omitempty"`
	Effort         *Effort         `json:"effort,omitempty"`
	AgentID        string          `json:"agent_id,omitempty"` // only inside a subagent
	AgentType      string          `json:"agent_type,omitempty"`
}

// Head implements Input.
func (b *Base) Head() *Base { return b }

// Effort is how much the model is asked to think.
type Effort struct {
	Level string `json:"level"`
}

// Encode returns the JSON form of an input.
func Encode(in Input) (json.RawMessage, error) {
	in.Head().EventName = in.Event()
	return message.Encode(in)
}

// PreToolUseInput is a call that is about to be judged (H-73).
type PreToolUseInput struct {
	Base
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
}

// PermissionRequestInput is a call that needs an answer (H-74).
type PermissionRequestInput struct {
	Base
	ToolName    string              `json:"tool_name"`
	ToolInput   json.RawMessage     `json:"tool_input"`
	Suggestions []permission.Update `json:"permission_suggestions,omitempty"`
}

// PermissionDeniedInput is a call that a classifier denied (H-75).
type PermissionDeniedInput struct {
	Base
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	Reason    string          `json:"reason"`
}

// PostToolUseInput is a call that succeeded (H-76).
type PostToolUseInput struct {
	Base
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolResponse json.RawMessage `json:"tool_response"` // structured where the tool has such an output (T-28)
	ToolUseID    string          `json:"tool_use_id"`
	DurationMS   int64           `json:"duration_ms"`
}

// PostToolUseFailureInput is a call that started and failed (H-77).
type PostToolUseFailureInput struct {
	Base
	ToolName    string          `json:"tool_name"`
	ToolInput   json.RawMessage `json:"tool_input"`
	ToolUseID   string          `json:"tool_use_id"`
	Error       string          `json:"error"` // what the model is told, the middle cut out above 10,000 characters (H-112)
	IsInterrupt bool            `json:"is_interrupt,omitempty"`
	DurationMS  int64           `json:"duration_ms"`
}

// PostToolBatchInput is all calls of a response (H-78).
type PostToolBatchInput struct {
	Base
	ToolCalls []BatchCall `json:"tool_calls"`
}

// BatchCall is one of them. Its response is what the model sees (T-28).
type BatchCall struct {
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolResponse json.RawMessage `json:"tool_response,omitempty"`
}

// UserPromptSubmitInput is a prompt that is about to be sent (H-79).
type UserPromptSubmitInput struct {
	Base
	Prompt       string `json:"prompt"`
	SessionTitle string `json:"session_title,omitempty"`
}

// UserPromptExpansionInput is a typed command that expands (H-80).
type UserPromptExpansionInput struct {
	Base
	ExpansionType string `json:"expansion_type"` // slash_command, mcp_prompt
	CommandName   string `json:"command_name"`
	CommandArgs   string `json:"command_args"`
	CommandSource string `json:"command_source,omitempty"`
	Prompt        string `json:"prompt"`
}

// SessionStartInput is a session that begins or goes on (H-81).
type SessionStartInput struct {
	Base
	Source       string `json:"source"` // startup, resume, clear, compact, fork (S-49)
	Model        string `json:"model,omitempty"`
	SessionTitle string `json:"session_title,omitempty"`
}

// SessionEndInput is a session that ends (H-82).
type SessionEndInput struct {
	Base
	Reason string `json:"reason"` // clear, resume, logout, prompt_input_exit, other
}

// SetupInput is a run that prepares a machine (H-83).
type SetupInput struct {
	Base
	Trigger string `json:"trigger"` // init, maintenance
}

// StopInput is an answer that is finished (H-84).
type StopInput struct {
	Base
	StopHookActive       bool             `json:"stop_hook_active"` // a Stop hook made the agent go on
	LastAssistantMessage string           `json:"last_assistant_message,omitempty"`
	BackgroundTasks      []BackgroundTask `json:"background_tasks,omitempty"`
	SessionCrons         []SessionCron    `json:"session_crons,omitempty"`
}

// BackgroundTask is something that runs beside the conversation (H-129).
type BackgroundTask struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Description string `json:"description"`
	Command     string `json:"command,omitempty"`
	AgentType   string `json:"agent_type,omitempty"`
	Server      string `json:"server,omitempty"`
	Tool        string `json:"tool,omitempty"`
	Name        string `json:"name,omitempty"`
}

// Capped shortens the texts of tasks (H-129).
func Capped(s string) string {
	const most = 1000
	rs := []rune(s)
	if len(rs) <= most {
		return s
	}
	return string(rs[:most]) + fmt.Sprintf("… [+%d chars]", len(rs)-most)
}

// SessionCron is a prompt that is sent again and again (H-129).
type SessionCron struct {
	ID        string `json:"id"`
	Schedule  string `json:"schedule"`
	Recurring bool   `json:"recurring"`
	Prompt    string `json:"prompt"`
}

// StopFailureInput is a turn that an API error ended (H-85).
type StopFailureInput struct {
	Base
	Error                string `json:"error"` // a category of M-27
	ErrorDetails         string `json:"error_details,omitempty"`
	LastAssistantMessage string `json:"last_assistant_message,omitempty"`
}

// SubagentStartInput is a subagent that starts; Base names it (H-86).
type SubagentStartInput struct{ Base }

// SubagentStopInput is a subagent that has finished; Base names it (H-87).
type SubagentStopInput struct {
	Base
	StopHookActive       bool             `json:"stop_hook_active"`
	LastAssistantMessage string           `json:"last_assistant_message,omitempty"`
	BackgroundTasks      []BackgroundTask `json:"background_tasks,omitempty"`
	SessionCrons         []SessionCron    `json:"session_crons,omitempty"`
	AgentTranscriptPath  string           `json:"agent_transcript_path"`
}

// PreCompactInput is a compaction that is about to run (H-88).
type PreCompactInput struct {
	Base
	Trigger            string `json:"trigger"`             // manual, auto
	CustomInstructions string `json:"custom_instructions"` // "" for auto
}

// PostCompactInput is a compaction that ran (H-89).
type PostCompactInput struct {
	Base
	Trigger        string `json:"trigger"`
	CompactSummary string `json:"compact_summary"`
}

// NotificationInput is something that a person should know (H-90).
type NotificationInput struct {
	Base
	Message          string `json:"message"`
	Title            string `json:"title,omitempty"`
	NotificationType string `json:"notification_type"`
}

// InstructionsLoadedInput is an instruction file that was loaded (H-91).
type InstructionsLoadedInput struct {
	Base
	FilePath        string   `json:"file_path"`
	MemoryType      string   `json:"memory_type"` // User, Project, Local, Managed
	LoadReason      string   `json:"load_reason"` // session_start, nested_traversal, path_glob_match, include, compact
	Globs           []string `json:"globs,omitempty"`
	TriggerFilePath string   `json:"trigger_file_path,omitempty"`
	ParentFilePath  string   `json:"parent_file_path,omitempty"`
}

// ConfigChangeInput is a settings or skill file that changed (H-92).
type ConfigChangeInput struct {
	Base
	Source   string `json:"source"` // user_settings, project_settings, local_settings, policy_settings, skills
	FilePath string `json:"file_path,omitempty"`
}

// CwdChangedInput is a change of the working directory (H-93).
type CwdChangedInput struct {
	Base
	OldCWD string `json:"old_cwd"`
	NewCWD string `json:"new_cwd"`
}

// FileChangedInput is a watched file that changed (H-94).
type FileChangedInput struct {
	Base
	FilePath string `json:"file_path"`
	Change   string `json:"event"` // change, add, unlink
}

// DirectoryAddedInput is a working directory that was added (H-95).
type DirectoryAddedInput struct {
	Base
	Directory string `json:"directory"`
	Source    string `json:"source"` // slash_command, register_repo_root
}

// TaskInput is a task of the to-do list.
type TaskInput struct {
	TaskID          string `json:"task_id"`
	TaskSubject     string `json:"task_subject"`
	TaskDescription string `json:"task_description,omitempty"`
	TeammateName    string `json:"teammate_name,omitempty"`
}

// TaskCreatedInput is a task that was made (H-96).
type TaskCreatedInput struct {
	Base
	TaskInput
}

// TaskCompletedInput is a task that is being completed (H-97).
type TaskCompletedInput struct {
	Base
	TaskInput
}

// ElicitationInput is a question of an MCP server (H-98).
type ElicitationInput struct {
	Base
	MCPServerName   string          `json:"mcp_server_name"`
	Message         string          `json:"message"`
	Mode            string          `json:"mode,omitempty"`
	URL             string          `json:"url,omitempty"`
	ElicitationID   string          `json:"elicitation_id,omitempty"`
	RequestedSchema json.RawMessage `json:"requested_schema,omitempty"`
}

// ElicitationResultInput is the answer to it (H-99).
type ElicitationResultInput struct {
	Base
	MCPServerName string          `json:"mcp_server_name"`
	Action        string          `json:"action"` // accept, decline, cancel
	Content       json.RawMessage `json:"content,omitempty"`
	Mode          string          `json:"mode,omitempty"`
	ElicitationID string          `json:"elicitation_id,omitempty"`
}

// WorktreeCreateInput asks for a worktree (H-100).
type WorktreeCreateInput struct {
	Base
	Name string `json:"name"`
}

// WorktreeRemoveInput is a worktree that is removed (H-101).
type WorktreeRemoveInput struct {
	Base
	WorktreePath string `json:"worktree_path"`
}

// MessageDisplayInput is text of the assistant that is shown (H-102).
type MessageDisplayInput struct {
	Base
	TurnID    string `json:"turn_id"`
	MessageID string `json:"message_id"`
	Index     int    `json:"index"`
	Final     bool   `json:"final"`
	Delta     string `json:"delta"`
}

// TeammateIdleInput is a member of a team without work (H-103).
type TeammateIdleInput struct {
	Base
	TeammateName string `json:"teammate_name"`
}
