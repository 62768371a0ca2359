package session

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Store is a place for sessions. Implementations are safe for concurrent use.
type Store interface {
	// Open opens a session for writing and takes its lock. It returns
	// ErrNotFound, ErrExists or *LockedError where those apply.
	Open(ctx context.Context, id string, o OpenOptions) (Journal, error)
}

// OpenOptions says how to open a session.
type OpenOptions struct {
	Dir    string        // working directory that the session belongs to, absolute
	Create bool          // true: it must not exist yet (S-6); false: it must exist
	Wait   time.Duration // how long to wait for the lock (S-27)
}

// Journal is one open session. Lines are complete JSON objects without the
// newline. One goroutine uses a Journal at a time.
type Journal interface {
	// Append writes all lines with one write, in order. With sync they survive
	// power loss when it returns; without, they survive the process. A new
	// session leaves nothing behind until the first Append (K-291).
	Append(ctx context.Context, lines [][]byte, sync bool) error
	// Load yields every readable line from the start. A line that is no JSON
	// object is yielded with a *LineError, and reading goes on (S-21).
	Load(ctx context.Context) iter.Seq2[[]byte, error]
	// PutBlob stores a large output beside the session and returns where a
	// person or a tool finds it (design decision 4).
	PutBlob(ctx context.Context, name string, data []byte) (string, error)
	// Release gives back the lock and every handle while the session is idle;
	// the next call takes them again and fails if the session was taken over.
	Release() error
	Close() error
}

// Errors of a Store, for errors.Is.
var (
	ErrNotFound = errors.New("no conversation found with this session id")
	ErrExists   = errors.New("a session with this id exists already")
)

// LockedError says who holds a session (S-27).
type LockedError struct{ ID, Holder string }

func (e *LockedError) Error() string {
	return "session " + e.ID + " is in use by " + e.Holder
}

// LineError is an unreadable line of a journal.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return "unreadable line" }
func (e *LineError) Unwrap() error { return e.Err }
