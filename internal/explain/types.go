package explain

import (
	"time"

	"github.com/turnwright/turnwright/message"
)

// Path is the way a user turn ended.
type Path string

// The paths.
const (
	Natural      Path = "natural"       // the model answered without asking for a tool
	Refused      Path = "refused"       // the model declined
	CutOff       Path = "cut_off"       // the output limit or the window ended the answer
	Cap          Path = "cap"           // the cap of tool turns
	Budget       Path = "budget"        // the budget
	Interrupted  Path = "interrupted"   // somebody interrupted, or a denial did
	Hook         Path = "hook"          // a hook ended the turn
	Deferred     Path = "deferred"      // a hook left a call open
	Schema       Path = "schema"        // no output fitted the schema
	APIError     Path = "api_error"     // the model's API failed for good
	ModelError   Path = "model_error"   // the model is unknown, or gave up
	Context      Path = "context"       // the conversation does not fit the window
	Image        Path = "image"         // the API could not read an image
	Malformed    Path = "malformed"     // calls that could not be run, again and again
	Setup        Path = "setup"         // the session could not be saved (Durability: Strict)
	Local        Path = "local"         // answered without the model
	ProcessEnded Path = "process_ended" // the process ended in the middle
	Unfinished   Path = "unfinished"    // it runs, or its process ended and nobody has resumed it
	Unknown      Path = "unknown"       // the journal does not tell
)

// Explanation is what a journal tells of its session.
type Explanation struct {
	SessionID string     `json:"session_id"`
	UserTurns []UserTurn `json:"user_turns"`        // in order
	Waiting   []string   `json:"waiting,omitempty"` // prompts that were queued and never begun
	Skipped   int        `json:"skipped_lines,omitempty"`
	// Foreign: another program wrote the session; costs and decisions are not
	// known.
	Foreign bool `json:"foreign,omitempty"`
}

// UserTurn is one message and everything until its result.
type UserTurn struct {
	UUID   string    `json:"uuid,omitempty"`
	Prompt string    `json:"prompt"`           // its beginning
	Origin string    `json:"origin,omitempty"` // who wrote it, when it was not a person
	Begun  time.Time `json:"begun,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`

	Path           Path                   `json:"path"`
	Subtype        message.Subtype        `json:"subtype,omitempty"` // "": there was no result
	TerminalReason message.TerminalReason `json:"terminal_reason,omitempty"`
	StopReason     string                 `json:"stop_reason,omitempty"`
	IsError        bool                   `json:"is_error,omitempty"`
	Errors         []string               `json:"errors,omitempty"`

	// What decided: a field of the result, of the options or of the run, and its
	// value; Limit is what it was held against, "" where nothing was.
	Field string `json:"field"`
	Value string `json:"value"`
	Limit string `json:"limit,omitempty"`

	Why  string   `json:"why"`            // one sentence
	Next []string `json:"next,omitempty"` // what to do, most useful first

	ToolTurns  int        `json:"tool_turns"`
	CostUSD    float64    `json:"cost_usd"` // of this user turn, with its subagents
	DurationMS int64      `json:"duration_ms"`
	APIMS      int64      `json:"duration_api_ms"`
	Responses  []Response `json:"responses"`
}

// Response is one answer of the model and the calls in it.
type Response struct {
	At         time.Time     `json:"at,omitzero"` // when it was there
	Model      string        `json:"model,omitempty"`
	StopReason string        `json:"stop_reason,omitempty"`
	Text       string        `json:"text,omitempty"`      // its beginning
	ToolTurn   int           `json:"tool_turn,omitempty"` // its number in the user turn, from 1; 0: it is none
	Usage      message.Usage `json:"usage"`
	CostUSD    float64       `json:"cost_usd"`
	APIMS      int64         `json:"duration_api_ms"`
	Calls      []Call        `json:"calls,omitempty"`

	message string // its id
}

// Outcome is what became of a call.
type Outcome string

// The outcomes.
const (
	OK          Outcome = "ok"
	Failed      Outcome = "error"        // it ran, or could not: the tool said so
	Denied      Outcome = "denied"       // rules, a hook or a person
	NotExecuted Outcome = "not_executed" // it never started
	Killed      Outcome = "killed"       // the end of the process cut it off
	Lost        Outcome = "unknown"      // it may have run
	Open        Outcome = "open"         // there is no result
)

// Call is one tool call.
type Call struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Input      string  `json:"input"`            // its beginning
	Reason     string  `json:"reason,omitempty"` // which step decided on it, and why
	Outcome    Outcome `json:"outcome"`
	Result     string  `json:"result,omitempty"` // its beginning
	DurationMS int64   `json:"duration_ms,omitempty"`

	key     string
	started time.Time
	denied  bool
}
