package hook

import "path/filepath"

// The methods of Input, an event a line.

func (*PreToolUseInput) Event() Event          { return PreToolUse }
func (*PermissionRequestInput) Event() Event   { return PermissionRequest }
func (*PermissionDeniedInput) Event() Event    { return PermissionDenied }
func (*PostToolUseInput) Event() Event         { return PostToolUse }
func (*PostToolUseFailureInput) Event() Event  { return PostToolUseFailure }
func (*PostToolBatchInput) Event() Event       { return PostToolBatch }
func (*UserPromptSubmitInput) Event() Event    { return UserPromptSubmit }
func (*UserPromptExpansionInput) Event() Event { return UserPromptExpansion }
func (*SessionStartInput) Event() Event        { return SessionStart }
func (*SessionEndInput) Event() Event          { return SessionEnd }
func (*SetupInput) Event() Event               { return Setup }
func (*StopInput) Event() Event                { return Stop }
func (*StopFailureInput) Event() Event         { return StopFailure }
func (*SubagentStartInput) Event() Event       { return SubagentStart }
func (*SubagentStopInput) Event() Event        { return SubagentStop }
func (*PreCompactInput) Event() Event          { return PreCompact }
func (*PostCompactInput) Event() Event         { return PostCompact }
func (*NotificationInput) Event() Event        { return Notification }
func (*InstructionsLoadedInput) Event() Event  { return InstructionsLoaded }
func (*ConfigChangeInput) Event() Event        { return ConfigChange }
func (*CwdChangedInput) Event() Event          { return CwdChanged }
func (*FileChangedInput) Event() Event         { return FileChanged }
func (*DirectoryAddedInput) Event() Event      { return DirectoryAdded }
func (*TaskCreatedInput) Event() Event         { return TaskCreated }
func (*TaskCompletedInput) Event() Event       { return TaskCompleted }
func (*ElicitationInput) Event() Event         { return Elicitation }
func (*ElicitationResultInput) Event() Event   { return ElicitationResult }
func (*WorktreeCreateInput) Event() Event      { return WorktreeCreate }
func (*WorktreeRemoveInput) Event() Event      { return WorktreeRemove }
func (*MessageDisplayInput) Event() Event      { return MessageDisplay }
func (*TeammateIdleInput) Event() Event        { return TeammateIdle }

func (in *PreToolUseInput) Subject() string          { return in.ToolName }
func (in *PermissionRequestInput) Subject() string   { return in.ToolName }
func (in *PermissionDeniedInput) Subject() string    { return in.ToolName }
func (in *PostToolUseInput) Subject() string         { return in.ToolName }
func (in *PostToolUseFailureInput) Subject() string  { return in.ToolName }
func (*PostToolBatchInput) Subject() string          { return "" }
func (*UserPromptSubmitInput) Subject() string       { return "" }
func (in *UserPromptExpansionInput) Subject() string { return in.CommandName }
func (in *SessionStartInput) Subject() string        { return in.Source }
func (in *SessionEndInput) Subject() string          { return in.Reason }
func (in *SetupInput) Subject() string               { return in.Trigger }
func (*StopInput) Subject() string                   { return "" }
func (in *StopFailureInput) Subject() string         { return in.Error }
func (in *SubagentStartInput) Subject() string       { return in.AgentType }
func (in *SubagentStopInput) Subject() string        { return in.AgentType }
func (in *PreCompactInput) Subject() string          { return in.Trigger }
func (in *PostCompactInput) Subject() string         { return in.Trigger }
func (in *NotificationInput) Subject() string        { return in.NotificationType }
func (in *InstructionsLoadedInput) Subject() string  { return in.LoadReason }
func (in *ConfigChangeInput) Subject() string        { return in.Source }
func (*CwdChangedInput) Subject() string             { return "" }
func (in *FileChangedInput) Subject() string         { return filepath.Base(in.FilePath) }
func (in *DirectoryAddedInput) Subject() string      { return in.Source }
func (*TaskCreatedInput) Subject() string            { return "" }
func (*TaskCompletedInput) Subject() string          { return "" }
func (in *ElicitationInput) Subject() string         { return in.MCPServerName }
func (in *ElicitationResultInput) Subject() string   { return in.MCPServerName }
func (*WorktreeCreateInput) Subject() string         { return "" }
func (*WorktreeRemoveInput) Subject() string         { return "" }
func (*MessageDisplayInput) Subject() string         { return "" }
func (*TeammateIdleInput) Subject() string           { return "" }
