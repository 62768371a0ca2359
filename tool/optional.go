package tool

import (
	"context"
	"encoding/json"

	"github.com/turnwright/turnwright/permission"
)

// Accesser is implemented by tools that can say what a call is going to do.
// Without it a call has no accesses and only rules by tool name and modes
// decide about it. The input has passed Registry.Prepare. An error becomes an
// is_error tool_result; the call does not run.
type Accesser interface {
	Accesses(input json.RawMessage) ([]permission.Access, error)
}

// Locator is implemented by tools whose relative paths start elsewhere than in
// the session's directory: Bash, whose directory changes stay (T-109). The
// answer is absolute; "" is the session's. It is asked before a call is judged,
// so that rules see the files that the call will touch.
type Locator interface {
	WorkDir(env *Env) string
}

// Normalizer is implemented by tools whose input is put into a fixed form
// before hooks, rules and the call see it: Read, Write and Edit make file_path
// absolute (T-22). The input has passed the schema.
type Normalizer interface {
	Normalize(env *Env, input json.RawMessage) (json.RawMessage, error)
}

// Recoverer is implemented by tools that can find out after a crash what
// became of a call that was allowed and left no result (design decision 15).
// ok is false when that cannot be told.
type Recoverer interface {
	Recover(ctx context.Context, c *Call) (r *Result, ok bool)
}

// Closer is implemented by tools that hold something for a session, such as
// processes started with "&". Close is called when the session ends; it frees
// everything and waits for it.
type Closer interface{ Close() error }
