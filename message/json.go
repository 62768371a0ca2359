package message

// encoding/json on a message does what Marshal and Decode do. UnmarshalJSON
// fails with ErrOtherType when the JSON is a message of another type.

// MarshalJSON is Marshal.
func (m PromptSuggestion) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *PromptSuggestion) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m TranscriptMirror) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *TranscriptMirror) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ControlRequest) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ControlRequest) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ControlResponse) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ControlResponse) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ControlCancelRequest) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ControlCancelRequest) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m KeepAlive) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *KeepAlive) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m Assistant) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *Assistant) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m User) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *User) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m StreamEvent) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *StreamEvent) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m RateLimitEvent) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *RateLimitEvent) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m AuthStatus) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *AuthStatus) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ConversationReset) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ConversationReset) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ToolProgress) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ToolProgress) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ToolUseSummary) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ToolUseSummary) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m FilesPersisted) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *FilesPersisted) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m MirrorError) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *MirrorError) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m HookStarted) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *HookStarted) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m HookProgress) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *HookProgress) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m HookResponse) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *HookResponse) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m PluginInstall) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *PluginInstall) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m APIRetry) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *APIRetry) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m PermissionDenied) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *PermissionDenied) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m Informational) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *Informational) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m Status) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *Status) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m CompactBoundary) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *CompactBoundary) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m LocalCommandOutput) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *LocalCommandOutput) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m CommandsChanged) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *CommandsChanged) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ThinkingTokens) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ThinkingTokens) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m WorkerShuttingDown) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *WorkerShuttingDown) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m SessionStateChanged) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *SessionStateChanged) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m Notification) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *Notification) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m MemoryRecall) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *MemoryRecall) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m ElicitationComplete) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *ElicitationComplete) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m Init) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *Init) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m TaskStarted) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *TaskStarted) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m TaskProgress) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *TaskProgress) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m TaskUpdated) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *TaskUpdated) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m TaskNotification) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *TaskNotification) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m BackgroundTasksChanged) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *BackgroundTasksChanged) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m Result) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *Result) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }

// MarshalJSON is Marshal.
func (m Unknown) MarshalJSON() ([]byte, error) { return Marshal(&m) }

// UnmarshalJSON is Decode for this type.
func (m *Unknown) UnmarshalJSON(b []byte) error { return unmarshal(b, m) }
