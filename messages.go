package turnwright

import (
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

// PermissionRequest is a call that CanUseTool decides on (O-52), and
// PermissionAnswer the decision (O-53).
type (
	PermissionRequest = engine.AskRequest
	PermissionAnswer  = engine.AskAnswer
	PermissionUpdate  = permission.Update // in a request: what would spare it next time
)

// Errors for errors.Is.
var (
	// ErrClosed is returned by the methods of a closed Session.
	ErrClosed = engine.ErrClosed
	// ErrChannelLost, returned by CanUseTool, ends the user turn: there is
	// nobody left to ask.
	ErrChannelLost = engine.ErrChannelLost
)
