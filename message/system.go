package message

// Init opens every user turn (M-16 to M-24).
type Init struct {
	APIKeySource          string        `json:"apiKeySource"`
	Version               string        `json:"claude_code_version"`
	CWD                   string        `json:"cwd"`
	Tools                 []string      `json:"tools"`
	MCPServers            []ServerState `json:"mcp_servers"`
	Model                 string        `json:"model"`
	PermissionMode        string        `json:"permissionMode"`
	SlashCommands         []string      `json:"slash_commands"`
	OutputStyle           string        `json:"output_style"`
	Skills                []string      `json:"skills"`
	Plugins               []PluginRef   `json:"plugins"`
	Agents                []string      `json:"agents,omitempty"`
	Betas                 []string      `json:"betas,omitempty"`
	Capabilities          []string      `json:"capabilities,omitempty"`
	TerminalSlashCommands []string      `json:"terminal_slash_commands,omitempty"`
	PluginErrors          []PluginError `json:"plugin_errors,omitempty"`
	MCPServerErrors       []ServerError `json:"mcp_server_errors,omitempty"`
	Header
}

// ServerState names an MCP server and its state (M-19).
type ServerState struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// ServerError is a configuration fault of an MCP server (M-20).
type ServerError struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// PluginRef names a loaded plugin.
type PluginRef struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// PluginError is a fault of a plugin (M-20).
type PluginError struct {
	Plugin  string `json:"plugin"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// APIRetry announces a retried model request, before the wait (M-76).
type APIRetry struct {
	Attempt      int           `json:"attempt"`     // 1 is the first retry
	MaxRetries   int           `json:"max_retries"` // the retries allowed
	RetryDelayMS int64         `json:"retry_delay_ms"`
	ErrorStatus  *int          `json:"error_status"` // null: no HTTP status
	Error        ErrorCategory `json:"error"`
	Header
}

// PermissionDenied tells of a call that was denied without a prompt (M-78).
type PermissionDenied struct {
	ToolName           string `json:"tool_name"`
	ToolUseID          string `json:"tool_use_id"`
	AgentID            string `json:"agent_id,omitempty"`
	DecisionReasonType string `json:"decision_reason_type,omitempty"`
	DecisionReason     string `json:"decision_reason,omitempty"`
	Message            string `json:"message"`
	Header
}

// Informational is a status line, a hook's block reason or command output (M-70).
type Informational struct {
	Content             string `json:"content"`
	Level               string `json:"level"` // info, notice, suggestion, warning
	ToolUseID           string `json:"tool_use_id,omitempty"`
	PreventContinuation bool   `json:"prevent_continuation,omitempty"`
	Header
}

// Status brackets a phase such as "compacting" (M-69).
type Status struct {
	Status         *string `json:"status"`
	PermissionMode string  `json:"permissionMode,omitempty"`
	Header
}

// CompactBoundary marks a compaction that ran (M-68).
type CompactBoundary struct {
	Metadata CompactMetadata `json:"compact_metadata"`
	Header
}

// CompactMetadata says why a compaction ran and how large the context was.
type CompactMetadata struct {
	Trigger   string `json:"trigger"` // manual, auto
	PreTokens int64  `json:"pre_tokens"`
}

func (*Init) Kind() (string, string)             { return "system", "init" }
func (*APIRetry) Kind() (string, string)         { return "system", "api_retry" }
func (*PermissionDenied) Kind() (string, string) { return "system", "permission_denied" }
func (*Informational) Kind() (string, string)    { return "system", "informational" }
func (*Status) Kind() (string, string)           { return "system", "status" }
func (*CompactBoundary) Kind() (string, string)  { return "system", "compact_boundary" }
