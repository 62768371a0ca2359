package turnwright

import (
	"encoding/json"

	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// Message is one message of the stream; switch on its type.
type Message = message.Message

// The messages that a program most often looks at. The others are in package
// message.
type (
	InitMessage          = message.Init
	AssistantMessage     = message.Assistant
	UserMessage          = message.User
	StreamEventMessage   = message.StreamEvent
	ResultMessage        = message.Result
	APIRetryMessage      = message.APIRetry
	InformationalMessage = message.Informational
)

// Content blocks and their parts.
type (
	Block   = message.Block
	Content = message.Content
	Usage   = message.Usage
)

// How a user turn ended (L-54).
const (
	Success                         = message.Success
	ErrorMaxTurns                   = message.ErrorMaxTurns
	ErrorMaxBudgetUSD               = message.ErrorMaxBudgetUSD
	ErrorDuringExecution            = message.ErrorDuringExecution
	ErrorMaxStructuredOutputRetries = message.ErrorMaxStructuredOutputRetries
)

// Tools. See package tool for the interface.
type (
	Tool       = tool.Tool
	ToolResult = tool.Result
)

// PermissionMode is the overall level of oversight (O-37).
type PermissionMode = permission.Mode

// The permission modes.
const (
	ModeDefault           = permission.ModeDefault
	ModeAcceptEdits       = permission.ModeAcceptEdits
	ModePlan              = permission.ModePlan
	ModeDontAsk           = permission.ModeDontAsk
	ModeBypassPermissions = permission.ModeBypass
)

// PermissionRequest is a call that CanUseTool decides on (O-52).
type PermissionRequest struct {
	ToolName  string
	ToolUseID string
	Input     json.RawMessage
	Reason    string // why nothing else decided it
	// RequestID names this question; a call that is asked about twice has two.
	RequestID string
	AgentID   string // of the subagent that makes the call; "": the main loop
	// BlockedPath is the path outside the working directories that stands in
	// the way, absolute; "": none.
	BlockedPath string
	// Suggestions are changes that would spare the question next time.
	Suggestions []PermissionUpdate
	// Title, DisplayName and Description are for people: the question in one
	// line, the tool's name, and what the model says that the call is for.
	Title, DisplayName, Description string
}

// PermissionAnswer is the decision on a call (O-53). Its zero value denies.
type PermissionAnswer struct {
	Allow     bool
	Input     json.RawMessage // allow: replaces the input; nil: as it was
	Message   string          // deny: told to the model; "": a text that the user declined
	Interrupt bool            // deny: also ends the user turn (L-147)
	// Updates are changes of the permissions that come with an allow: the
	// suggestions of the request, or others. They are made in order before the
	// call runs, and hold from then on (P-129). Those for settings files are
	// written there; what cannot be made is told on Options.Stderr.
	Updates []PermissionUpdate
}

// PermissionUpdate is a change of the permissions.
type PermissionUpdate = permission.Update

// Errors for errors.Is.
var (
	// ErrClosed is returned by the methods of a closed Session.
	ErrClosed = engine.ErrClosed
	// ErrChannelLost, returned by CanUseTool, ends the user turn: there is
	// nobody left to ask.
	ErrChannelLost = engine.ErrChannelLost
)
