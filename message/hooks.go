package message

// HookStarted tells that a hook began to run (M-81, M-84, M-85).
type HookStarted struct {
	HookID    string `json:"hook_id"`
	HookName  string `json:"hook_name"`
	HookEvent string `json:"hook_event"`
	Header
}

// Kind implements Message.
func (*HookStarted) Kind() (typ, subtype string) { return "system", "hook_started" }

// HookProgress has what a running hook has written so far (M-82).
type HookProgress struct {
	HookID    string `json:"hook_id"`
	HookName  string `json:"hook_name"`
	HookEvent string `json:"hook_event"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Output    string `json:"output"` // both, as they came
	Header
}

// Kind implements Message.
func (*HookProgress) Kind() (typ, subtype string) { return "system", "hook_progress" }

// HookResponse tells how a hook ended (M-83).
type HookResponse struct {
	HookID    string `json:"hook_id"`
	HookName  string `json:"hook_name"`
	HookEvent string `json:"hook_event"`
	Output    string `json:"output"` // both, as they came
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  *int   `json:"exit_code,omitempty"` // nil: no process, or it was killed
	Outcome   string `json:"outcome"`             // success, error, cancelled
	Header
}

// Kind implements Message.
func (*HookResponse) Kind() (typ, subtype string) { return "system", "hook_response" }

// PluginInstall tells of plugins that are installed before the first turn
// (M-86). Started and completed bracket the others.
type PluginInstall struct {
	Status string `json:"status"` // started, installed, failed, completed
	Name   string `json:"name,omitempty"`
	Error  string `json:"error,omitempty"`
	Header
}

// Kind implements Message.
func (*PluginInstall) Kind() (typ, subtype string) { return "system", "plugin_install" }
