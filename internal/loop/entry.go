package loop

import (
	"time"

	"github.com/turnwright/turnwright/message"
)

// EntryKind names what an Entry records.
type EntryKind string

// Chain entries are the history in the clients' layout; own entries are the
// machine's (design decision 3).
const (
	KindUser      EntryKind = "user"
	KindAssistant EntryKind = "assistant"
	KindSystem    EntryKind = "system"
	KindOpen      EntryKind = "open"
	KindInput     EntryKind = "input"
	KindCall      EntryKind = "call"
	KindTurn      EntryKind = "turn"
	KindElide     EntryKind = "elide"
	KindState     EntryKind = "state"
)

// Entry is one durable fact. Exactly one of the pointers is set, by Kind.
type Entry struct {
	Kind      EntryKind
	Time      time.Time
	UUID      string // of chain entries: the uuid of the stream message
	User      *UserEntry
	Assistant *AssistantEntry
	System    *SystemEntry
	Open      *Settings
	Input     *InputEntry
	Call      *CallEntry
	Turn      *TurnEntry
	Elide     *ElideEntry
	State     *StateNote
}

// Chain reports whether the entry is part of the history.
func (e Entry) Chain() bool {
	return e.Kind == KindUser || e.Kind == KindAssistant || e.Kind == KindSystem
}

// UserEntry is a prompt, a tool result or a text that no person wrote.
type UserEntry struct {
	Content    message.Content
	Meta       bool // no person wrote it
	Summary    bool // a compaction's summary
	Synthetic  bool
	Origin     *message.Origin
	ToolUseID  string // of a tool result
	Structured []byte // tool_use_result
	CopiedFrom string // kept over a compaction: the uuid it had
}

// unclassified reports a message that no person wrote and whose source is not
// known. The others say in their text where they are from.
func (u *UserEntry) unclassified() bool {
	return u.Synthetic && (u.Origin == nil || u.Origin.Kind == message.OriginUnclassified)
}

// AssistantEntry is a response, or a notice of ours in its shape.
type AssistantEntry struct {
	Message    message.APIMessage
	Notice     bool // an API error told to the user, never sent (L-107)
	Error      message.ErrorCategory
	Aborted    bool
	CopiedFrom string
}

// SystemEntry is a compaction boundary.
type SystemEntry struct {
	Trigger   string
	PreTokens int64
}

// Settings are the session's settings; the last one wins.
type Settings struct {
	Format    int    `json:"format"` // of the journal, 1
	SessionID string `json:"session,omitempty"`
	Model     string `json:"model,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Version   string `json:"version,omitempty"` // of the program that wrote it
	Limits
	Run
}

// Limits are the caps of a process's run of the session, so that the journal says
// what a cap was. "" is none.
type Limits struct {
	MaxTurns     string `json:"maxTurns,omitempty"`     // tool turns of a user turn
	MaxBudgetUSD string `json:"maxBudgetUsd,omitempty"` // of the process's run
}

// Run is what else a process's run of the session decides by, as it takes effect:
// with it a journal can be replayed exactly. Journals of before have none of it,
// which Width tells: it is never 0 otherwise.
type Run struct {
	Width         int   `json:"width,omitempty"`
	StopBlockCap  int   `json:"stopBlockCap,omitempty"`  // negative: none
	CompactAt     int64 `json:"compactAt,omitempty"`     // tokens, 0: never
	SchemaRetries int   `json:"schemaRetries,omitempty"` // 0 without Schema
	Schema        bool  `json:"schema,omitempty"`
	Steer         bool  `json:"steer,omitempty"`
	BatchHooks    bool  `json:"batchHooks,omitempty"`
	StopHooks     bool  `json:"stopHooks,omitempty"`
}

// InputEntry is a queued message, or with Dropped the end of one. With First it
// stands at the front of the queue.
type InputEntry struct {
	Input
	First   bool `json:"first,omitempty"`
	Dropped bool `json:"dropped,omitempty"`
}

// CallEntry is a decision on calls.
type CallEntry struct {
	Op     CallOp
	Calls  []Call // CallsRequested: the calls of a response, in order
	Key    string // the others: which call
	Input  []byte // CallAllowed: the final input when it was changed
	Reason string
	Denial *message.PermissionDenial // CallDenied
}

// CallOp is what a CallEntry records.
type CallOp string

// The three ops.
const (
	CallsRequested CallOp = "requested"
	CallAllowed    CallOp = "allowed" // also the intent: it may have run
	CallDenied     CallOp = "denied"
)

// TurnEntry is the machine's small state; with the end of a user turn also
// its result.
type TurnEntry struct {
	Turn   Turn
	Result *message.Result
}

// ElideEntry replaces tool outputs when a request is assembled.
type ElideEntry struct{ UUIDs []string }

// StateNote is something a tool wants to remember; the last one of a key wins.
// The machine only passes it on.
type StateNote struct {
	Key   string
	Value []byte
}
