package hook

import "time"

// Event is a moment at which hooks run (section 6 of the contract). Names are
// case-sensitive (H-3).
type Event string

// The events. Those whose feature is not built yet are accepted and fire with
// it.
const (
	PreToolUse          Event = "PreToolUse"          // before a validated call (H-73)
	PermissionRequest   Event = "PermissionRequest"   // somebody is about to be asked, or cannot be (H-74)
	PermissionDenied    Event = "PermissionDenied"    // a classifier denied a call (H-75)
	PostToolUse         Event = "PostToolUse"         // a tool succeeded (H-76)
	PostToolUseFailure  Event = "PostToolUseFailure"  // a started tool failed (H-77)
	PostToolBatch       Event = "PostToolBatch"       // all calls of a response are done (H-78)
	UserPromptSubmit    Event = "UserPromptSubmit"    // a prompt was submitted (H-79)
	UserPromptExpansion Event = "UserPromptExpansion" // a typed command expands (H-80)
	SessionStart        Event = "SessionStart"        // a session starts or goes on (H-81)
	SessionEnd          Event = "SessionEnd"          // a session ends (H-82)
	Setup               Event = "Setup"               // H-83
	Stop                Event = "Stop"                // the main agent has finished its answer (H-84)
	StopFailure         Event = "StopFailure"         // an API error ended the turn (H-85)
	SubagentStart       Event = "SubagentStart"       // H-86
	SubagentStop        Event = "SubagentStop"        // H-87
	PreCompact          Event = "PreCompact"          // H-88
	PostCompact         Event = "PostCompact"         // H-89
	Notification        Event = "Notification"        // H-90
	InstructionsLoaded  Event = "InstructionsLoaded"  // H-91
	ConfigChange        Event = "ConfigChange"        // H-92
	CwdChanged          Event = "CwdChanged"          // H-93
	FileChanged         Event = "FileChanged"         // H-94
	DirectoryAdded      Event = "DirectoryAdded"      // H-95
	TaskCreated         Event = "TaskCreated"         // H-96
	TaskCompleted       Event = "TaskCompleted"       // H-97
	Elicitation         Event = "Elicitation"         // H-98
	ElicitationResult   Event = "ElicitationResult"   // H-99
	WorktreeCreate      Event = "WorktreeCreate"      // H-100
	WorktreeRemove      Event = "WorktreeRemove"      // H-101
	MessageDisplay      Event = "MessageDisplay"      // H-102
	TeammateIdle        Event = "TeammateIdle"        // H-103
)

// blocking says what exit code 2 and a decision of "block" do at an event.
type blocking int

const (
	never      blocking = iota // nothing
	told                       // nothing, and the user is shown standard error
	denies                     // the call is denied
	blocks                     // what was about to happen does not
	declines                   // the question of a server is declined
	everything                 // every exit code but 0 fails (H-100)
)

// facts are what tells events apart.
type facts struct {
	subject   bool     // a matcher is compared with a field of the input (H-18, H-20)
	plainOnly bool     // a matcher is a list only without "-", blanks and "," (H-17)
	types     []string // of handlers that the event takes (H-39)
	exit2     blocking
	muted     bool          // systemMessage and continue are discarded (H-124)
	goesOn    bool          // continue is discarded (H-124)
	context   bool          // plain standard output is context (H-42)
	silent    bool          // no hook_started (H-131)
	rules     bool          // the field "if" is looked at (H-22)
	limit     time.Duration // of a handler that has none of its own; 0: defaultTimeout (H-62)
}

// Types of handlers (H-25).
const (
	typeCommand = "command"
	typeHTTP    = "http"
	typeMCP     = "mcp_tool"
	typePrompt  = "prompt"
	typeAgent   = "agent"
)

var (
	allTypes   = []string{typeCommand, typeHTTP, typeMCP, typePrompt, typeAgent}
	startTypes = []string{typeCommand, typeMCP}
	plainTypes = []string{typeCommand, typeHTTP, typeMCP}
)

// events has every event there is.
var events = map[Event]facts{
	PreToolUse:          {subject: true, types: allTypes, exit2: denies, rules: true},
	PermissionRequest:   {subject: true, types: allTypes, rules: true},
	PermissionDenied:    {subject: true, types: allTypes, rules: true},
	PostToolUse:         {subject: true, types: allTypes, exit2: blocks, rules: true},
	PostToolUseFailure:  {subject: true, types: allTypes, exit2: blocks, rules: true},
	PostToolBatch:       {types: allTypes, exit2: blocks},
	UserPromptSubmit:    {types: allTypes, exit2: blocks, context: true, limit: promptTimeout},
	UserPromptExpansion: {subject: true, types: allTypes, exit2: blocks, context: true},
	SessionStart:        {subject: true, types: startTypes, exit2: told, context: true},
	SessionEnd:          {subject: true, types: plainTypes, muted: true, silent: true, limit: EndTimeout},
	Setup:               {subject: true, types: startTypes, exit2: told},
	Stop:                {types: allTypes, exit2: blocks},
	StopFailure:         {subject: true, plainOnly: true, types: plainTypes, muted: true},
	SubagentStart:       {subject: true, types: plainTypes},
	SubagentStop:        {subject: true, types: allTypes, exit2: blocks},
	PreCompact:          {subject: true, types: plainTypes, exit2: blocks, muted: true, silent: true},
	PostCompact:         {subject: true, types: plainTypes, muted: true, silent: true},
	Notification:        {subject: true, types: plainTypes, muted: true, silent: true},
	InstructionsLoaded:  {subject: true, types: plainTypes, muted: true},
	ConfigChange:        {subject: true, types: plainTypes, exit2: blocks, muted: true},
	CwdChanged:          {types: plainTypes, goesOn: true},
	FileChanged:         {subject: true, plainOnly: true, types: plainTypes, goesOn: true},
	DirectoryAdded:      {subject: true, types: plainTypes, goesOn: true},
	TaskCreated:         {types: allTypes, exit2: blocks, goesOn: true},
	TaskCompleted:       {types: allTypes, exit2: blocks},
	Elicitation:         {subject: true, types: plainTypes, exit2: declines, muted: true},
	ElicitationResult:   {subject: true, types: plainTypes, exit2: declines, muted: true},
	WorktreeCreate:      {types: plainTypes, exit2: everything, muted: true},
	WorktreeRemove:      {types: plainTypes, muted: true},
	MessageDisplay:      {types: plainTypes, muted: true, limit: displayTimeout},
	TeammateIdle:        {types: allTypes, exit2: blocks},
}

// Known reports whether there is such an event.
func (e Event) Known() bool {
	_, ok := events[e]
	return ok
}

// Silent reports whether running hooks of the event are not shown on the
// stream, also where hook events are asked for (H-131).
func (e Event) Silent() bool { return events[e].silent }

// Time limits of handlers that have none of their own (H-62, H-63).
const (
	defaultTimeout = 600 * time.Second
	promptTimeout  = 30 * time.Second
	displayTimeout = 10 * time.Second
	askTimeout     = 30 * time.Second // of a question to a model
	agentTimeout   = 60 * time.Second // of one that may look at files first
	// EndTimeout is what the hooks of SessionEnd have together.
	EndTimeout = 1500 * time.Millisecond
	// MaxEndTimeout is the most that a hook of a settings file can raise
	// EndTimeout to.
	MaxEndTimeout = 60 * time.Second
)

// timeoutOf returns the time limit of a handler of a file that has none of its
// own (H-62).
func timeoutOf(ev Event, typ string) time.Duration {
	switch typ {
	case typePrompt:
		return askTimeout
	case typeAgent:
		return agentTimeout
	}
	return ev.Timeout()
}

// Timeout returns the time limit of a callback or a command that has none of its
// own (H-62).
func (e Event) Timeout() time.Duration {
	if f := events[e]; f.limit != 0 {
		return f.limit
	}
	return defaultTimeout
}
