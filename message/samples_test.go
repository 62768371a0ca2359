package message

import "encoding/json"

// samples has for every message type at least one value with every field set.
// They are the golden files' content.
func samples() []Message {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	head := Header{UUID: "0e1a6f0c-0d6b-4c39-9a43-1f0c2b7d8a11", SessionID: "5b2f8a0e-6c1d-4f7e-8b3a-9d0c1e2f3a4b"}
	usage := Usage{
		InputTokens: 12, OutputTokens: 34, CacheCreationInputTokens: 56, CacheReadInputTokens: 78,
		CacheCreation: CacheCreation{Ephemeral5m: 50, Ephemeral1h: 6},
		ServerToolUse: ServerToolUse{WebSearchRequests: 1, WebFetchRequests: 2},
		ServiceTier:   "standard", Speed: "standard", InferenceGeo: "eu", Iterations: raw(`[{"input_tokens":12}]`),
	}
	origin := &Origin{
		Kind: OriginPeer, Server: "srv", Subkind: "sub", From: "a", FromMode: "default", Name: "n",
		FromSession: "s", SenderTaskID: "t", Body: "b",
	}
	result := func(s Subtype, terminal TerminalReason) Result {
		return Result{
			Subtype: s, DurationMS: 1200, DurationAPIMS: 900, NumTurns: 4, ToolTurns: 3,
			StopReason: new("end_turn"), TotalCostUSD: new(0.0123), Usage: &usage,
			ModelUsage: map[string]ModelUsage{
				"model-b": {InputTokens: 1},
				"model-a": {
					InputTokens: 12, OutputTokens: 34, CacheReadInputTokens: 78, CacheCreationInputTokens: 56,
					WebSearchRequests: 1, CostUSD: 0.0123, ContextWindow: 200000, MaxOutputTokens: 64000,
					CanonicalModel: "model-a-20260101", Provider: "anthropic",
				},
			},
			PermissionDenials: []PermissionDenial{{ToolName: "Bash", ToolUseID: "toolu_1", ToolInput: raw(`{"command":"rm x"}`)}},
			TerminalReason:    terminal, Origin: origin, Header: head,
		}
	}
	failed := func(s Subtype, terminal TerminalReason, text string) *Result {
		r := result(s, terminal)
		r.IsError, r.Errors = true, []string{text}
		return &r
	}
	success := result(Success, TerminalCompleted)
	success.Result = new("Fixed. All tests pass.")
	success.StructuredOutput = raw(`{"files":["auth.ts"]}`)
	success.UserMessageUUID, success.RequestSentWallMS = "7f3c", 1767225600000
	success.TTFTMS, success.TTFTStreamMS = new(int64(800)), new(int64(300))
	deferred := result(Success, TerminalToolDeferred)
	deferred.Result, deferred.StopReason = new(""), new("tool_deferred")
	deferred.DeferredToolUse = &ToolUse{ID: "toolu_2", Name: "Deploy", Input: raw(`{"to":"prod"}`)}
	apiError := failed(ErrorDuringExecution, TerminalAPIError, "API Error: 529 Overloaded")
	apiError.APIErrorStatus = new(529)

	return []Message{
		&Init{
			APIKeySource: "ANTHROPIC_API_KEY", Version: "2.1.0", CWD: "/home/ada/shop",
			Tools: []string{"Task", "Bash", "Read"}, MCPServers: []ServerState{{"db", "connected"}},
			Model: "model-a", PermissionMode: "default", SlashCommands: []string{"compact"},
			OutputStyle: "default", Skills: []string{"review"}, Plugins: []PluginRef{{"p", "/p"}},
			Agents: []string{"explorer"}, Betas: []string{"beta-1"},
			Capabilities: []string{"interrupt_receipt_v1"}, TerminalSlashCommands: []string{"config"},
			PluginErrors:    []PluginError{{"q", "not_found", "no such plugin"}},
			MCPServerErrors: []ServerError{{"x", "invalid_config", "no command"}}, Header: head,
		},
		&Assistant{
			Message: APIMessage{
				ID: "msg_1", Type: "message", Role: RoleAssistant, Model: "model-a",
				Content: []Block{
					NewThinking("", "sig=="), NewRedactedThinking("data=="), NewText("Let me look at <auth.ts>.\nÜ\u2028"),
					NewToolUse("toolu_1", "Bash", raw(`{"command":"npm test"}`)),
				},
				StopReason: new("tool_use"), StopSequence: new("END"), Usage: usage,
			},
			ParentToolUseID: new("toolu_0"), Error: CategoryRateLimit, Aborted: true,
			Timestamp: "2026-01-01T00:00:00.000Z", ContextUsage: raw(`{"model":"model-a","total_tokens":9}`), Header: head,
		},
		&User{
			Message: UserBody{Role: RoleUser, Content: BlockContent(
				NewToolResult("toolu_1", TextContent("2 failed"), true),
				NewToolResult("toolu_2", BlockContent(NewText("ok"), NewImage("image/png", "iVBORw0=")), false),
				NewToolResult("toolu_3", Content{}, false),
			)},
			ParentToolUseID: new("toolu_0"), IsSynthetic: true, IsReplay: true, ShouldQuery: new(false),
			ToolUseResult: raw(`{"stdout":"2 failed","stderr":"","interrupted":false}`), Origin: origin,
			Timestamp: "2026-01-01T00:00:00.000Z", Header: head,
		},
		&User{Message: UserBody{Role: RoleUser, Content: TextContent("Fix the failing tests")}, Header: head},
		&StreamEvent{
			Event:           raw(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`),
			ParentToolUseID: new("toolu_0"), TTFTMS: new(int64(300)), Header: head,
		},
		&success, &deferred, apiError,
		failed(ErrorMaxTurns, TerminalMaxTurns, "Reached maximum number of turns (4)"),
		failed(ErrorMaxBudgetUSD, TerminalBudgetExhausted, "Reached maximum budget ($0.01)"),
		failed(ErrorMaxStructuredOutputRetries, TerminalStructuredOutputRetries, "no valid value"),

		&CompactBoundary{Metadata: CompactMetadata{Trigger: "auto", PreTokens: 150000}, Header: head},
		&Status{Status: new("compacting"), PermissionMode: "plan", Header: head},
		&Informational{Content: "hi", Level: "notice", ToolUseID: "toolu_1", PreventContinuation: true, Header: head},
		&LocalCommandOutput{Content: "cost: $0", Header: head},
		&CommandsChanged{Commands: []SlashCommand{{"review", "Review a change.", "<path>", []string{"rv"}}}, Header: head},
		&ConversationReset{NewConversationID: "c2", Header: head},
		&ThinkingTokens{EstimatedTokens: 120, EstimatedTokensDelta: 20, Header: head},
		&WorkerShuttingDown{Reason: "host_exit", Header: head},
		&SessionStateChanged{State: "idle", Header: head},
		&Notification{Key: "k", Text: "t", Priority: "high", Color: "red", TimeoutMS: new(int64(5000)), Header: head},
		&MemoryRecall{Mode: "auto", Memories: []json.RawMessage{raw(`{"path":"a.md"}`)}, Header: head},
		&ElicitationComplete{MCPServerName: "db", ElicitationID: "e1", Header: head},

		&APIRetry{Attempt: 1, MaxRetries: 10, RetryDelayMS: 500, ErrorStatus: new(529), Error: CategoryOverloaded, Header: head},
		&PermissionDenied{
			ToolName: "Bash", ToolUseID: "toolu_1", AgentID: "a1", DecisionReasonType: "rule",
			DecisionReason: "Bash(rm *)", Message: "Denied.", Header: head,
		},
		&RateLimitEvent{Info: RateLimitInfo{
			Status: "allowed_warning", ResetsAt: new(int64(1767225600)), RateLimitType: "five_hour", Utilization: new(0.9),
			OverageStatus: "rejected", OverageResetsAt: new(int64(1767225601)), OverageDisabledReason: "off",
		}, Header: head},
		&AuthStatus{IsAuthenticating: true, Output: []string{"Opening the browser"}, Error: "none", Header: head},

		&HookStarted{HookID: "h1", HookName: "PreToolUse:Bash", HookEvent: "PreToolUse", Header: head},
		&HookProgress{HookID: "h1", HookName: "PreToolUse:Bash", HookEvent: "PreToolUse", Stdout: "o", Stderr: "e", Output: "oe", Header: head},
		&HookResponse{
			HookID: "h1", HookName: "PreToolUse:Bash", HookEvent: "PreToolUse", Output: "oe", Stdout: "o", Stderr: "e",
			ExitCode: new(0), Outcome: "success", Header: head,
		},
		&PluginInstall{Status: "failed", Name: "p", Error: "offline", Header: head},

		&ToolProgress{
			ToolUseID: "toolu_1", ToolName: "Bash", ParentToolUseID: new("toolu_0"), ElapsedTimeSeconds: 30.5, TaskID: "t1",
			Heartbeat: true, SubagentType: "explorer", SubagentRetry: &SubagentRetry{
				AgentID: "a1", Attempt: 1, MaxRetries: 10, RetryDelayMS: 500, ErrorStatus: new(429), ErrorCategory: CategoryRateLimit,
			}, Header: head,
		},
		&ToolUseSummary{Summary: "Read 3 files", PrecedingToolUseIDs: []string{"toolu_1"}, Header: head},
		&TaskStarted{
			TaskID: "t1", ToolUseID: "toolu_1", Description: "npm run dev", TaskType: "local_bash",
			IsBackgrounded: new(true), SpawnDepth: 1, Header: head,
		},
		&TaskProgress{
			TaskID: "t1", ToolUseID: "toolu_1", Description: "look", SubagentType: "explorer",
			Usage: TaskUsage{TotalTokens: 900, ToolUses: 3, DurationMS: 4000}, LastToolName: "Read", Summary: "half done", Header: head,
		},
		&TaskUpdated{TaskID: "t1", Patch: TaskPatch{
			Status: "failed", Description: new("d"), EndTime: new(int64(1767225600000)), TotalPausedMS: new(int64(0)),
			Error: new("exit 1"), IsBackgrounded: new(false),
		}, Header: head},
		&TaskNotification{
			TaskID: "t1", ToolUseID: "toolu_1", Status: "stopped", OutputFile: "/tmp/t1", Summary: "stopped",
			Usage: &TaskUsage{TotalTokens: 900, ToolUses: 3, DurationMS: 4000}, Header: head,
		},
		&BackgroundTasksChanged{Tasks: []BackgroundTask{{"t1", "local_bash", "npm run dev"}}, Header: head},

		&PromptSuggestion{Suggestion: "Run the linter", Header: head},
		&FilesPersisted{
			Files: []PersistedFile{{"a.ts", "f1"}}, Failed: []FailedFile{{"b.ts", "disk full"}},
			ProcessedAt: "2026-01-01T00:00:00.000Z", Header: head,
		},
		&MirrorError{Error: "timeout", Key: MirrorKey{ProjectKey: "-home-ada", SessionID: "s", Subpath: "agents/a1"}, Header: head},
		&TranscriptMirror{FilePath: "/home/ada/.claude/projects/p/s.jsonl", Entries: []json.RawMessage{raw(`{"type":"user"}`)}, Header: head},

		&ControlRequest{RequestID: "req_1_0a1b2c3d", Request: raw(`{"subtype":"interrupt"}`)},
		&ControlResponse{Response: ControlAnswer{Subtype: ControlSuccess, RequestID: "req_1_0a1b2c3d", Response: raw(`{"still_queued":[]}`)}},
		&ControlResponse{Response: ControlAnswer{
			Subtype: ControlError, RequestID: "req_1_0a1b2c3d", Error: "unknown subtype",
			PendingPermissionRequests: []json.RawMessage{raw(`{"type":"control_request"}`)},
		}},
		&ControlCancelRequest{RequestID: "req_1_0a1b2c3d"},
		&KeepAlive{},
		&Unknown{Type: "system", Subtype: "not_yet_known", Header: head},
		&Unknown{Type: "not_yet_known", Header: head},
	}
}
