package loop

import (
	"time"

	"github.com/turnwright/turnwright/message"
)

// State is where the machine stands.
type State string

// The nine states.
const (
	Idle    State = "idle"
	Admit   State = "admit"
	Model   State = "model"
	Tools   State = "tools"
	Batch   State = "batch"
	Compact State = "compact"
	Stop    State = "stop"
	Settle  State = "settle"
	Closed  State = "closed"
)

// Fault is why a call cannot run; the driver says it, the machine never parses.
type Fault string

// The faults.
const (
	FaultNone      Fault = ""
	FaultUnknown   Fault = "unknown"   // no tool of that name (T-16)
	FaultMalformed Fault = "malformed" // the input is not a JSON object (L-138)
	FaultCut       Fault = "cut"       // cut off by max_tokens (L-75)
	FaultRepeated  Fault = "repeated"  // the response before broke off too, and made the same call (L-94)
)

// CallStatus is where a call stands.
type CallStatus string

// A queued call is checked when its window comes; a running one was allowed.
const (
	Queued  CallStatus = "queued"
	Running CallStatus = "running"
	Done    CallStatus = "done"
)

// Call is one tool call of the open response.
type Call struct {
	ID         string     `json:"id"` // the tool_use id
	Name       string     `json:"name"`
	Concurrent bool       `json:"concurrent,omitempty"`
	Repeatable bool       `json:"repeatable,omitempty"`
	Spawns     bool       `json:"spawns,omitempty"`   // an Agent call: it makes model requests of its own
	Internal   bool       `json:"internal,omitempty"` // StructuredOutput: no tool turn (L-158)
	Fault      Fault      `json:"fault,omitempty"`
	FaultText  string     `json:"faultText,omitempty"`
	Key        string     `json:"key"` // names the call's effects; unique in the session
	Status     CallStatus `json:"status,omitempty"`
	Valid      bool       `json:"valid,omitempty"` // internal: the value was accepted
	Final      []byte     `json:"-"`               // the input to run with, when a decision changed it
}

// Turn is the machine's small state: all of it but history, queue and calls.
type Turn struct {
	State State  `json:"state"`
	Seq   int64  `json:"seq"`             // number of the last effect that was awaited
	Await string `json:"await,omitempty"` // id of the effect awaited in admit, model, batch, compact, stop; kept while settling

	Input     string          `json:"input,omitempty"` // uuid of the message that started the user turn
	Origin    *message.Origin `json:"origin,omitempty"`
	Synthetic bool            `json:"synthetic,omitempty"`
	Started   time.Time       `json:"started,omitzero"`
	Inited    bool            `json:"inited,omitempty"` // init was emitted

	ToolTurns int  `json:"toolTurns,omitempty"`
	Counts    bool `json:"counts,omitempty"` // the open response is a tool turn
	Final     bool `json:"final,omitempty"`  // a final response came

	Continues    int  `json:"continues,omitempty"`
	Pauses       int  `json:"pauses,omitempty"`
	Malformed    int  `json:"malformed,omitempty"`
	Broken       int  `json:"broken,omitempty"` // responses in a row that broke off after a complete call
	StopBlocks   int  `json:"stopBlocks,omitempty"`
	Attempts     int  `json:"attempts,omitempty"` // failed structured output attempts
	CompactFails int  `json:"compactFails,omitempty"`
	Refills      int  `json:"refills,omitempty"`      // in a row: the context was full again right after a compaction
	SinceCompact int  `json:"sinceCompact,omitempty"` // responses since the last compaction
	Compacted    bool `json:"compacted,omitempty"`    // a compaction took place in this user turn
	Recovering   bool `json:"recovering,omitempty"`   // the compaction answers a full window; until the next response

	StopReason *string       `json:"stopReason,omitempty"`
	Text       string        `json:"text,omitempty"` // of the last response: all parts of it so far (L-73)
	Usage      message.Usage `json:"usage,omitzero"`
	APITime    time.Duration `json:"apiTime,omitempty"`
	TTFT       *int64        `json:"ttft,omitempty"`
	TTFTStream *int64        `json:"ttftStream,omitempty"`
	SentAt     time.Time     `json:"sentAt,omitzero"`

	Tokens int64 `json:"tokens,omitempty"` // of the context, as last known
	Spend  Spend `json:"spend,omitzero"`   // running total of the tree in this process

	// Deferred is a call that a hook left open (H-108): the next user turn goes on
	// with it. It is kept while no user turn runs, and until that one begins.
	Deferred *Call `json:"deferred,omitempty"`

	Ending  *Ending `json:"ending,omitempty"`  // while settling
	Closing bool    `json:"closing,omitempty"` // the session closes when the user turn ends
	Drain   bool    `json:"drain,omitempty"`   // the session closes when turn and queue are done
}

// Ending is how a user turn ends. It is what explain tells.
type Ending struct {
	Subtype  message.Subtype        `json:"subtype"`
	Terminal message.TerminalReason `json:"terminal,omitempty"`
	IsError  bool                   `json:"isError,omitempty"`
	Errors   []string               `json:"errors,omitempty"`
	Text     *string                `json:"text,omitempty"`    // success: replaces the answer's text
	Status   int                    `json:"status,omitempty"`  // HTTP status of an API failure
	NoStop   bool                   `json:"noStop,omitempty"`  // stop_reason is null
	Refusal  string                 `json:"refusal,omitempty"` // what calls that never started are told: "Not executed: " + this
	LetRun   bool                   `json:"letRun,omitempty"`  // running calls end by themselves (decision 53)
	By       string                 `json:"by,omitempty"`      // who ended it, where that is not the loop: "Stop hook", "interrupt", "approval callback"
	Silent   bool                   `json:"silent,omitempty"`  // there is no result: the process is ended (L-208)
}

// EffectKind is the kind of work that is owed.
type EffectKind string

// The kinds.
const (
	DoAdmit   EffectKind = "admit"
	DoModel   EffectKind = "model"
	DoCheck   EffectKind = "check"
	DoRun     EffectKind = "run"
	DoBatch   EffectKind = "batch"
	DoCompact EffectKind = "compact"
	DoStop    EffectKind = "stop"
)

// Effect is one piece of work that is owed. ID is the await id, or for check
// and run the call's key.
type Effect struct {
	Kind EffectKind
	ID   string
}

// Reply answers a command.
type Reply struct {
	ID          string
	Running     bool     // a user turn was running
	StillQueued []string // uuids that will still run (L-196)
	Cancelled   []string // uuids that were dropped
}

// Ready is what a step owes the driver, to be done in this order.
type Ready struct {
	Entries []Entry           // 1. write these, in one write
	Emit    []message.Message // 2. hand these to the stream
	Replies []Reply           // 3. answer commands
	Want    []Effect          // 4. make the running work equal to this set
}
