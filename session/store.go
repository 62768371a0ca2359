package session

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Store is a place for sessions. Implementations are safe for concurrent use.
type Store interface {
	// Open opens a session for writing and takes its lock. It returns *IDError
	// for an id that is no UUID (S-4), ErrNotFound, ErrExists or *LockedError
	// where those apply. An id is the same in upper and lower case.
	Open(ctx context.Context, id string, o OpenOptions) (Journal, error)
}

// OpenOptions says how to open a session.
type OpenOptions struct {
	// Dir is the working directory that the session belongs to, absolute.
	Dir string
	// Project is where a session is that Finder found, or where a new one is to
	// be made, as it stands in Info.Project; "": where Dir says.
	Project string
	// Create: true, the session must not exist yet (S-6); false, it must.
	Create bool
	// Wait is how long to wait for a session that another holds (S-27). Zero
	// does not wait. It counts again each time that the lock is taken anew
	// after Release.
	Wait time.Duration
}

// Journal is one open session. Lines are complete JSON objects without the
// newline. One goroutine uses a Journal at a time.
type Journal interface {
	// Append writes all lines with one write, in order (S-20). With sync they
	// survive power loss when it returns; without, they survive the process.
	// Without lines it writes nothing; with sync it then makes durable what
	// was appended before. A new session leaves nothing behind until the first
	// line (K-291).
	//
	// After a *SyncError the lines are written, but not durable. After any
	// other error none of them is there, and the same Append may be tried
	// again: *OptionError for a line that is no JSON object on one line,
	// *IOError for trouble with the disk, ErrChanged or *LockedError when
	// somebody else took the session over while it was released, ErrClosed.
	// The context ends the wait for the lock, never a write.
	Append(ctx context.Context, lines [][]byte, sync bool) error
	// Load yields every readable line from the start, without its newline. A
	// line that is no JSON object is yielded with a *LineError, and reading
	// goes on (S-21); any other error ends it. Blank lines are left out. The
	// caller may keep the bytes. A session without lines yields nothing.
	Load(ctx context.Context) iter.Seq2[[]byte, error]
	// PutBlob stores a large output beside the session and returns where a
	// person or a tool finds it (S-17). The name is one path element; a name
	// that is there already gets the new contents. A blob becomes durable with
	// the next Append that syncs.
	PutBlob(ctx context.Context, name string, data []byte) (string, error)
	// Release gives back the lock and every handle while the session is idle;
	// the next call takes them again and fails with *LockedError if somebody
	// else holds the session then. If somebody else wrote meanwhile, Append
	// returns ErrChanged until Load has been read to its end.
	Release() error
	// Close releases for good: Append, Load and PutBlob return ErrClosed
	// after it. Closing twice is no error.
	Close() error
}

// Errors of a Store, for errors.Is.
var (
	// ErrNotFound means that there is no session with this id, or none with
	// any line, in the project that OpenOptions.Dir belongs to.
	ErrNotFound = errors.New("no conversation found with this session id")
	// ErrExists means that a new session cannot have an id that has lines
	// already (S-6).
	ErrExists = errors.New("a session with this id exists already")
)

// LockedError says who holds a session (S-27). ID is the session's id, Holder
// is a text for people, such as "process 4711 on host build-2 since …".
type LockedError struct{ ID, Holder string }

func (e *LockedError) Error() string {
	return "session " + e.ID + " is in use by " + e.Holder
}
