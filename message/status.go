package message

import "encoding/json"

// Informational is a status line, a hook's block reason or command output (M-70).
type Informational struct {
	Content             string `json:"content"`
	Level               string `json:"level"` // info, notice, suggestion, warning
	ToolUseID           string `json:"tool_use_id,omitempty"`
	PreventContinuation bool   `json:"prevent_continuation,omitempty"`
	Header
}

// Kind implements Message.
func (*Informational) Kind() (typ, subtype string) { return "system", "informational" }

// Status brackets a phase such as "compacting" (M-69): null ends it. It also
// tells of a changed permission mode.
type Status struct {
	Status         *string `json:"status"`
	PermissionMode string  `json:"permissionMode,omitempty"`
	Header
}

// Kind implements Message.
func (*Status) Kind() (typ, subtype string) { return "system", "status" }

// CompactBoundary marks a compaction that ran (M-68).
type CompactBoundary struct {
	Metadata CompactMetadata `json:"compact_metadata"`
	Header
}

// CompactMetadata says why a compaction ran and how large the context was.
type CompactMetadata struct {
	Trigger   string `json:"trigger"`    // manual, auto
	PreTokens int64  `json:"pre_tokens"` // size of the context before
}

// Kind implements Message.
func (*CompactBoundary) Kind() (typ, subtype string) { return "system", "compact_boundary" }

// LocalCommandOutput is the output of a command that ran without the model
// (M-71).
type LocalCommandOutput struct {
	Content string `json:"content"`
	Header
}

// Kind implements Message.
func (*LocalCommandOutput) Kind() (typ, subtype string) { return "system", "local_command_output" }

// CommandsChanged has the full list of commands; it replaces any cache (M-72).
type CommandsChanged struct {
	Commands []SlashCommand `json:"commands"`
	Header
}

// SlashCommand describes a command or skill that a user can call by name.
type SlashCommand struct {
	Name         string   `json:"name"` // without the slash
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
}

// Kind implements Message.
func (*CommandsChanged) Kind() (typ, subtype string) { return "system", "commands_changed" }

// ConversationReset tells that the conversation was cleared (M-73). Its header
// has the old session id. NewConversationID is not the id of the new session:
// later messages carry that one.
type ConversationReset struct {
	NewConversationID string `json:"new_conversation_id"`
	Header
}

// Kind implements Message.
func (*ConversationReset) Kind() (typ, subtype string) { return "conversation_reset", "" }

// ThinkingTokens estimates how much the model has thought (M-74).
type ThinkingTokens struct {
	EstimatedTokens      int64 `json:"estimated_tokens"`       // of the current thinking block so far
	EstimatedTokensDelta int64 `json:"estimated_tokens_delta"` // since the event before
	Header
}

// Kind implements Message.
func (*ThinkingTokens) Kind() (typ, subtype string) { return "system", "thinking_tokens" }

// WorkerShuttingDown tells that the loop ends after the current turn (M-75).
type WorkerShuttingDown struct {
	Reason string `json:"reason"` // in snake_case, such as host_exit
	Header
}

// Kind implements Message.
func (*WorkerShuttingDown) Kind() (typ, subtype string) { return "system", "worker_shutting_down" }

// SessionStateChanged tells what the session does (M-102).
type SessionStateChanged struct {
	State string `json:"state"` // idle, running, requires_action
	Header
}

// Kind implements Message.
func (*SessionStateChanged) Kind() (typ, subtype string) { return "system", "session_state_changed" }

// Notification is a short text for the user interface (M-102).
type Notification struct {
	Key       string `json:"key"` // a later one with the same key replaces it
	Text      string `json:"text"`
	Priority  string `json:"priority"`
	Color     string `json:"color,omitempty"`
	TimeoutMS *int64 `json:"timeout_ms,omitempty"` // how long to show it, in milliseconds
	Header
}

// Kind implements Message.
func (*Notification) Kind() (typ, subtype string) { return "system", "notification" }

// MemoryRecall tells which memories were put before the model (M-102).
type MemoryRecall struct {
	Mode     string            `json:"mode"`
	Memories []json.RawMessage `json:"memories"`
	Header
}

// Kind implements Message.
func (*MemoryRecall) Kind() (typ, subtype string) { return "system", "memory_recall" }

// ElicitationComplete tells that an MCP server's question was answered out of
// band (M-102).
type ElicitationComplete struct {
	MCPServerName string `json:"mcp_server_name"`
	ElicitationID string `json:"elicitation_id"`
	Header
}

// Kind implements Message.
func (*ElicitationComplete) Kind() (typ, subtype string) { return "system", "elicitation_complete" }
