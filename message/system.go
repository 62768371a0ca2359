package message

// Init opens every user turn; the newest one counts (M-16 to M-24). The lists
// without omitempty are written as [] when nil, the others left out when empty.
type Init struct {
	APIKeySource          string        `json:"apiKeySource"`        // where the key is from (M-17)
	Version               string        `json:"claude_code_version"` // the compatibility number of W-5
	CWD                   string        `json:"cwd"`
	Tools                 []string      `json:"tools"` // after deny rules and restriction; Agent is listed as Task (M-18)
	MCPServers            []ServerState `json:"mcp_servers"`
	Model                 string        `json:"model"`
	PermissionMode        string        `json:"permissionMode"`
	SlashCommands         []string      `json:"slash_commands"`
	OutputStyle           string        `json:"output_style"`
	Skills                []string      `json:"skills"`
	Plugins               []PluginRef   `json:"plugins"`
	Agents                []string      `json:"agents"` // always there: W-222
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

// Kind implements Message.
func (*Init) Kind() (typ, subtype string) { return "system", "init" }
