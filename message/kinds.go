package message

// kinds makes an empty message by wire type and subtype. Results and unknown
// messages are not here: see newMessage.
var kinds = map[[2]string]func() Message{
	{"prompt_suggestion", ""}:              func() Message { return new(PromptSuggestion) },
	{"transcript_mirror", ""}:              func() Message { return new(TranscriptMirror) },
	{"control_request", ""}:                func() Message { return new(ControlRequest) },
	{"control_response", ""}:               func() Message { return new(ControlResponse) },
	{"control_cancel_request", ""}:         func() Message { return new(ControlCancelRequest) },
	{"keep_alive", ""}:                     func() Message { return new(KeepAlive) },
	{"assistant", ""}:                      func() Message { return new(Assistant) },
	{"user", ""}:                           func() Message { return new(User) },
	{"stream_event", ""}:                   func() Message { return new(StreamEvent) },
	{"rate_limit_event", ""}:               func() Message { return new(RateLimitEvent) },
	{"auth_status", ""}:                    func() Message { return new(AuthStatus) },
	{"conversation_reset", ""}:             func() Message { return new(ConversationReset) },
	{"tool_progress", ""}:                  func() Message { return new(ToolProgress) },
	{"tool_use_summary", ""}:               func() Message { return new(ToolUseSummary) },
	{"system", "files_persisted"}:          func() Message { return new(FilesPersisted) },
	{"system", "mirror_error"}:             func() Message { return new(MirrorError) },
	{"system", "hook_started"}:             func() Message { return new(HookStarted) },
	{"system", "hook_progress"}:            func() Message { return new(HookProgress) },
	{"system", "hook_response"}:            func() Message { return new(HookResponse) },
	{"system", "plugin_install"}:           func() Message { return new(PluginInstall) },
	{"system", "api_retry"}:                func() Message { return new(APIRetry) },
	{"system", "permission_denied"}:        func() Message { return new(PermissionDenied) },
	{"system", "informational"}:            func() Message { return new(Informational) },
	{"system", "status"}:                   func() Message { return new(Status) },
	{"system", "compact_boundary"}:         func() Message { return new(CompactBoundary) },
	{"system", "local_command_output"}:     func() Message { return new(LocalCommandOutput) },
	{"system", "commands_changed"}:         func() Message { return new(CommandsChanged) },
	{"system", "thinking_tokens"}:          func() Message { return new(ThinkingTokens) },
	{"system", "worker_shutting_down"}:     func() Message { return new(WorkerShuttingDown) },
	{"system", "session_state_changed"}:    func() Message { return new(SessionStateChanged) },
	{"system", "notification"}:             func() Message { return new(Notification) },
	{"system", "memory_recall"}:            func() Message { return new(MemoryRecall) },
	{"system", "elicitation_complete"}:     func() Message { return new(ElicitationComplete) },
	{"system", "init"}:                     func() Message { return new(Init) },
	{"system", "task_started"}:             func() Message { return new(TaskStarted) },
	{"system", "task_progress"}:            func() Message { return new(TaskProgress) },
	{"system", "task_updated"}:             func() Message { return new(TaskUpdated) },
	{"system", "task_notification"}:        func() Message { return new(TaskNotification) },
	{"system", "background_tasks_changed"}: func() Message { return new(BackgroundTasksChanged) },
}

// newMessage returns an empty message of the Go type that the wire names stand
// for. Only system messages and results have subtypes; elsewhere a stray one is
// an unknown key.
func newMessage(typ, subtype string) Message {
	if typ == "result" {
		return &Result{Subtype: Subtype(subtype)}
	}
	key := [2]string{typ, subtype}
	if typ != "system" {
		key[1] = ""
	}
	if made, ok := kinds[key]; ok {
		return made()
	}
	return &Unknown{Type: typ, Subtype: subtype}
}
