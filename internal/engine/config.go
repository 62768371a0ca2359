package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/budget"
	"github.com/turnwright/turnwright/internal/checkpoint"
	"github.com/turnwright/turnwright/internal/instructions"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/tool"
)

// Config is everything a session needs. The public API fills it.
type Config struct {
	Loop      loop.Config
	Dir       string // working directory, absolute
	Version   string // of the program, for the journal
	ModelName string // at the start
	Mode      permission.Mode

	Model     model.Model
	Catalog   *model.Catalog
	Call      model.CallOptions // retries and timeouts; the callbacks are the engine's
	MaxTokens int               // cap on max_tokens, 0: the model's
	System    []message.Block
	Prelude   []message.Block // stands before the first user message, outside the chain
	Betas     []string
	Cache     CacheMode

	Instructions *instructions.Set // nil: none

	Tools *tool.Registry
	// Rules are the permission rules now, and what there is to tell of how they
	// changed since the last call. It is called at the start of each
	// turn and before each decision, from any goroutine (C-19).
	Rules func() (p *permission.Policy, news []string)
	Dirs  []string // additional working directories of the start, absolute (P-96)
	// RelaxedEdits needs a file to have been read before it is edited only
	// where reading it would need approval, or Read is not offered (T-64).
	RelaxedEdits bool
	Ask          func(context.Context, AskRequest) (AskAnswer, error) // nil: nobody can be asked
	AskTogether  bool                                                 // ask about several calls at once (P-121)
	Admit        func([]permission.Update) []permission.Update        // those that may be suggested and made; nil: all
	Keep         func(permission.Update) error                        // writes an update where it belongs (P-123); nil: kept nowhere
	CheckMode    func(permission.Mode) error                          // refuses modes for an answer; nil: none

	Hooks      *hook.Set // at the start; nil: none
	HookEvents bool      // runs of hooks are shown (O-93)
	// HookClient sends the requests of HTTP hooks; nil: no such hook can run.
	HookClient func() (*http.Client, error)
	// HookModel is the model that a hook's name for it means; "" is a small one.
	HookModel func(name string) (string, error)

	Resume     *Resume       // nil: a new session
	Title      string        // of a session that has none (S-47)
	Store      session.Store // nil: nothing is kept
	Sync       SyncPolicy
	Strict     bool          // Durability: Strict (decision 51)
	GitBranch  func() string // of the working directory now, asked at each prompt; nil: not known (K-346)
	Ledger     *budget.Ledger
	Partial    bool                        // stream events (O-92)
	Init       func() message.Init         // the facts that do not change in the session
	Warn       func(string)                // diagnostics; nil: dropped
	Debug      func(category, text string) // the debug log; nil: none
	DebugClose func() error
	WaitWarn   func() // waits until what was warned of has been told; nil: nothing to wait for
	Getenv     func(string) string
	Environ    func() []string
	QueueBytes int // bound of the output queue, 0: 8 MiB

	// Checkpoints keep the states of files that tools change; nil: none (S-109).
	Checkpoints *checkpoint.History

	Now     func() time.Time // nil: time.Now
	NewUUID func() [16]byte  // nil: random
}

// CacheMode says which prompt cache marks are set (L-184).
type CacheMode int

// The modes.
const (
	Cache5m CacheMode = iota
	Cache1h
	CacheOff
)

// SyncPolicy says when the journal is synced to disk (design decision 3).
type SyncPolicy int

// The policies.
const (
	SyncTurn   SyncPolicy = iota // before a call that is not repeatable, and at the end of a user turn
	SyncAlways                   // after every write
	SyncNever
)

// AskRequest is a call that somebody must decide on (O-52, P-114).
type AskRequest struct {
	ToolName  string
	ToolUseID string
	Input     json.RawMessage
	Reason    string // why it was not decided
	// RequestID names this question; a call that is asked about twice has two.
	RequestID string
	AgentID   string // of the subagent that makes the call; "": the main loop
	// BlockedPath is the path outside the working directories that stands in
	// the way, absolute; "": none.
	BlockedPath string
	// Suggestions are changes that would spare the question next time.
	Suggestions []permission.Update
	// Title, DisplayName and Description are for people: the question in one
	// line, the tool's name, and what the model says that the call is for.
	Title, DisplayName, Description string
}

// AskAnswer is the decision (O-53).
type AskAnswer struct {
	Allow     bool
	Input     json.RawMessage // allow: replaces the input; nil: as it was
	Message   string          // deny: told to the model
	Interrupt bool            // deny: also ends the user turn (L-147)
	// Updates are changes that come with an allow, made in order before the call
	// runs (P-129).
	Updates []permission.Update
}

const defaultQueueBytes = 8 << 20

// stopGrace is how long a cancelled call may take to come back before it is
// given up.
const stopGrace = time.Second

func (c *Config) fill() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewUUID == nil {
		c.NewUUID = newUUID
	}
	if c.QueueBytes == 0 {
		c.QueueBytes = defaultQueueBytes
	}
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	if c.Environ == nil {
		c.Environ = func() []string { return nil }
	}
	if c.Ledger == nil {
		c.Ledger = budget.New(c.Loop.MaxBudgetUSD, budget.Observed)
	}
}

// newUUID returns a random UUID of version 4.
func newUUID() (u [16]byte) {
	rand.Read(u[:]) // never fails (crypto/rand)
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}
