package loop

import (
	"time"

	"github.com/turnwright/turnwright/message"
)

// Event is something that happened: a command of the user, or the outcome of
// exactly one effect (then ID is that effect's id).
type Event interface{ event() }

// Input is one user message.
type Input struct {
	ID        string          `json:"uuid"` // its uuid, unique in the session
	Content   message.Content `json:"content"`
	Origin    *message.Origin `json:"origin,omitempty"`
	Synthetic bool            `json:"isSynthetic,omitempty"`
	NoQuery   bool            `json:"noQuery,omitempty"` // stored without starting a turn (L-191)
	Steer     *bool           `json:"steer,omitempty"`   // absorb into a running turn; nil: as the session says
}

// Spend is the running total of the whole tree (L-222).
type Spend struct {
	USD    float64                       `json:"usd"`
	Models map[string]message.ModelUsage `json:"models,omitempty"`
}

// Commands.
type (
	// Send queues a user message.
	Send struct{ Input Input }
	// Interrupt ends the running user turn. Reply names the receipt in Ready.Replies.
	Interrupt struct {
		Reply       string
		CancelQueue bool
	}
	// Spent tells that the tree's total changed elsewhere and reached the cap (L-45).
	Spent struct{ Spend Spend }
	// Configure changes the session's settings: model from the next model call
	// on (L-114), mode from the next check on. Empty fields stay. With Tell a
	// changed mode is shown (M-69).
	Configure struct {
		Model, Mode string
		Tell        bool
	}
	// Abort ends the running user turn with an ending of the driver's, such as
	// a journal that cannot be written or a lost channel.
	Abort struct{ Ending Ending }
	// Hooks says from now on whether the effects of hooks are wanted.
	Hooks struct{ Batch, Stop bool }
	// EndInput says that nothing more will be sent: the session closes when the
	// running user turn and the queue are done.
	EndInput struct{}
	// Close ends the session; a running user turn is interrupted first. With
	// Killed it is the end of the process, and the user turn has no result
	// (L-208).
	Close struct{ Killed bool }
)

// Outcomes.
type (
	// Admitted lets the input start its turn. Content replaces the prompt when
	// not zero; Before and Context are texts that no person wrote, put before and
	// behind it.
	Admitted struct {
		ID      string
		Init    *message.Init
		Content message.Content
		Before  []message.Block
		Context []message.Block
	}
	// Local ends the user turn without a model (L-192, L-219, local commands):
	// the prompt does not enter the history unless Keep is set.
	Local struct {
		ID      string
		Init    *message.Init
		Notices []message.Message
		Text    string
		Keep    bool
		// Ending says how the user turn ends; nil: with a plain success.
		Ending *Ending
	}
	// Preceded puts another input before the one that is to be admitted, which
	// waits for a turn of its own (H-122).
	Preceded struct {
		ID    string
		Input Input
	}
	// Response is a model's answer: whole, broken after completed blocks, or
	// aborted. Calls are the facts of its tool_use blocks, in order.
	Response struct {
		ID         string
		MsgID      string
		Model      string
		Blocks     []message.Block
		Calls      []Call
		Text       string // its text blocks joined
		Stop       string // "" when none arrived
		StopSeq    *string
		Usage      message.Usage
		StartUsage message.Usage
		Spend      Spend
		Tokens     int64 // of the context after this response
		APITime    time.Duration
		FirstEvent time.Duration // from the request to message_start, 0: unknown
		SentAt     time.Time
		Aborted    bool
		Broken     *Broken
	}
	// Failed is a model request that left nothing usable (L-64).
	Failed struct {
		ID       string
		Text     string // rendered (L-109)
		Category message.ErrorCategory
		Status   int                    // HTTP status, 0: none
		Terminal message.TerminalReason // "": api_error
		Model    string
		Spend    Spend
		APITime  time.Duration
	}
	// TooLong is a request that does not fit the model's window (L-100).
	TooLong struct {
		ID      string
		Text    string
		Model   string
		Status  int
		APITime time.Duration
		Spend   Spend
	}
	// BudgetReached is a request that a strict budget did not allow.
	BudgetReached struct {
		ID    string
		Spend Spend
	}
	// Cancelled is the outcome of a cancelled effect that has nothing to tell.
	// A cancelled admission rather has Admitted or Local, which carry the init
	// that every user turn begins with (L-2).
	Cancelled struct{ ID string }
	// Decided is the permission decision on a call. For an allowed call the
	// entry it makes is the durable intent: from then on it may have run.
	Decided struct {
		Key     string // the call's key
		Allow   bool
		Input   []byte          // the final input, nil: as the model wrote it
		Reason  string          // which step decided, and why
		Content message.Content // what the model gets when denied
		Denial  *message.PermissionDenial
		Notices []message.Message // emitted before the result
		Context []message.Block   // put behind the result of a denied call (H-52)
		// Defer leaves the call open and ends the user turn. It counts for the only
		// call of a response; the driver sees to that (L-140).
		Defer bool
		Halt  *Ending // end the user turn after this
	}
	// Finished is the outcome of a run call. Context are texts that no person
	// wrote; the model gets them after the results of the response's calls.
	Finished struct {
		Key        string
		Content    message.Content
		IsError    bool
		Structured []byte // tool_use_result, nil: none
		State      []StateNote
		Context    []message.Block // put behind the result (H-52)
		Halt       *Ending
		Spend      *Spend // set by calls that spend (children)
		Valid      bool   // of an internal call: the structured output is valid (L-151)
	}
	// Batched is the outcome of the hooks after a batch.
	Batched struct {
		ID      string
		Context []message.Block
		Halt    *Ending
	}
	// Stopped is the outcome of the Stop hooks: Block goes on with that text.
	Stopped struct {
		ID    string
		Block string
		Halt  *Ending
	}
	// Compacted is the outcome of a compaction: the summary, and the index of
	// the first kept history item. Err says that it failed (Blocked: a hook
	// stopped it).
	Compacted struct {
		ID        string
		Summary   string
		KeepFrom  int
		PreTokens int64
		Tokens    int64
		Trigger   string
		Err       string
		Blocked   bool
		Spend     Spend
		APITime   time.Duration
	}
)

// Broken says how a response broke after completed blocks (L-93 to L-95).
type Broken struct {
	Notice   string // the text of L-95
	Status   int
	Category message.ErrorCategory
}

func (Send) event()          {}
func (Interrupt) event()     {}
func (Spent) event()         {}
func (Configure) event()     {}
func (Abort) event()         {}
func (Hooks) event()         {}
func (EndInput) event()      {}
func (Close) event()         {}
func (Admitted) event()      {}
func (Local) event()         {}
func (Preceded) event()      {}
func (Response) event()      {}
func (Failed) event()        {}
func (TooLong) event()       {}
func (BudgetReached) event() {}
func (Cancelled) event()     {}
func (Decided) event()       {}
func (Finished) event()      {}
func (Batched) event()       {}
func (Stopped) event()       {}
func (Compacted) event()     {}
