package tool

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// Tool is something that the model can call. Call may be called from several
// goroutines at once when the tool is Concurrent. An error returned by Call
// becomes an is_error tool_result with the error's text (L-137).
type Tool interface {
	Spec() Spec
	Call(ctx context.Context, c *Call) (*Result, error)
}

// Spec describes a tool to the model and to the loop.
type Spec struct {
	Name        string
	Description string
	InputSchema json.RawMessage // JSON Schema of an object; nil: an object without properties
	Traits      Traits
	Timeout     time.Duration // of one call; 0: none
	Aliases     []string      // old names that calls and rules may still use
	OpenInput   bool          // unknown input properties are passed through instead of rejected (T-19)
}

// Traits are three independent promises of a tool (design decision 14).
type Traits struct {
	ReadOnly   bool // changes nothing: permission and plan mode look at it
	Concurrent bool // may run beside other concurrent calls of the same response
	Repeatable bool // may be run again after a crash without harm
}

// Call is one call of a tool. Input has passed the schema.
type Call struct {
	ID    string          // the tool_use id
	Key   string          // idempotency key, the same when the call is repeated after a crash
	Name  string          // the name the model used
	Input json.RawMessage // final input: as the model wrote it, or as a rule changed it
	Env   *Env
	// Approved are the accesses of the call as they were judged when it was
	// allowed, for a tool that says what it accesses (Accesser). A path's Target is
	// where it led then: a tool works on that, whatever links say by now. nil:
	// nobody judged the call, and the tool resolves paths itself.
	Approved []permission.Access
}

// Env is what a call knows of its session.
type Env struct {
	Dir       string   // the session's working directory, absolute
	Dirs      []string // the additional working directories, absolute (P-96)
	SessionID string
	State     *State                                                  // what tools of this session remember
	Getenv    func(string) string                                     // environment of the session; never nil
	Environ   func() []string                                         // for processes the tool starts; never nil
	PutBlob   func(name string, data []byte) (path string, err error) // large outputs; never nil

	// Tasks is told of work that goes on after its call; nil: there must be none.
	Tasks Tasks
	// ReadDenied reports whether a deny rule covers reading a file (T-65, T-71,
	// T-95); nil: none does. The path is absolute.
	ReadDenied func(path string) bool
	// NeedsRead reports whether a file must have been read before it may be
	// edited or overwritten (T-64); nil: every file must. The path is absolute.
	NeedsRead func(path string) bool
	// BeforeChange is told of a file that the call is about to change or to
	// create, so that its state now can be put back later (S-109); nil: nobody
	// wants to know. path is the file as the call names it, target the same with
	// every link followed; both are absolute. With an error the file must be left
	// as it is. The built-in tools call it; what other tools do not tell is not
	// part of file checkpoints.
	BeforeChange func(path, target string) error
}

// Result is what a call returns.
type Result struct {
	Content    []message.Block // for the model: text, image …; empty: a placeholder says so
	IsError    bool
	Structured json.RawMessage // tool_use_result (M-37), nil: none
}

// Text returns a result of one text block.
func Text(s string) *Result { return &Result{Content: []message.Block{message.NewText(s)}} }

// Errorf-style failures are ordinary errors returned from Call.

// State is a concurrency-safe map of what a session's tools remember, by key.
// Values are JSON so that they can be stored with the session.
type State struct {
	mu    sync.Mutex
	m     map[string]json.RawMessage
	dirty map[string]bool
}
