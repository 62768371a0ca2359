package leased

import (
	"context"
	"errors"
	"time"

	"github.com/turnwright/turnwright/session"
)

// Key names a session.
type Key struct{ Project, ID string }

// Lease is the right to write to a session, as the database has it.
type Lease struct {
	Session int64  // number of the session's row; never used for another one
	Epoch   int64  // goes up whenever the lease is taken
	Owner   string // the journal that took it, a UUID
}

// State is what the database knows of a session.
type State struct {
	Session int64
	Epoch   int64
	Version int64 // changes with every append
	Size    int64 // bytes of all lines and their newlines
	Own     bool  // the last append was made by the one who asks
}

// Found is a session in a list.
type Found struct {
	session.Info
	Spoken bool // it has a message, not only metadata (S-36)
}

// Lines is one append.
type Lines struct {
	Lines  [][]byte
	Size   int64 // with newlines
	Spoken bool  // as in Found
	Sync   bool
}

// DB is one database. Each method is one transaction that needs the client only
// once, at its start: a client that stops in the middle of a method must not
// hold what others wait for. Errors are those of the driver; ErrFenced and
// ErrNone stand for themselves.
type DB interface {
	// Look returns a session's state and who holds it, "" for nobody; ErrNone
	// when there is no row.
	Look(ctx context.Context, k Key) (s State, holder string, err error)
	// Take takes the lease for owner, who is called holder: when nobody has it,
	// owner itself has it, or it has run out. The row is made if it is missing.
	// other is who has it when it cannot be taken. A lease that ends later than
	// its length allows, because the clock was set back, is cut to that length.
	Take(ctx context.Context, k Key, owner, holder string, length time.Duration) (s State, other string, err error)
	// Renew makes leases last from now on, those that still are their owner's.
	Renew(ctx context.Context, all []Lease) error
	// Give ends a lease if it still is its owner's, and removes a session that
	// has neither lines nor blobs (K-291).
	Give(ctx context.Context, l Lease) error
	// Check returns the state if the lease still holds, else ErrFenced.
	Check(ctx context.Context, l Lease) (State, error)
	// Append adds lines at the end, renews the lease and returns the new state,
	// or ErrFenced. Without lines it makes durable what was written before.
	Append(ctx context.Context, l Lease, lines Lines) (State, error)
	// Add adds lines at the end without a lease, or returns ErrNone for a session
	// without lines. It is nobody's append.
	Add(ctx context.Context, k Key, lines Lines) error
	// Delete removes a session, or returns ErrNone for one without lines. Who
	// holds it keeps the lease, on a session without lines and blobs.
	Delete(ctx context.Context, k Key) error
	// Cut removes the lines behind at and gives the session a new version, or
	// returns ErrFenced.
	Cut(ctx context.Context, l Lease, at State) error
	// PutBlob stores or replaces a blob, or returns ErrFenced.
	PutBlob(ctx context.Context, l Lease, name string, data []byte) error
	// Blob returns a blob, or ErrNone.
	Blob(ctx context.Context, k Key, name string) ([]byte, error)
	// Read returns the lines that begin at or after the byte from and before
	// the byte to, in order.
	Read(ctx context.Context, number, from, to int64) ([][]byte, error)
	// Ends returns the first and the last n bytes of a session, or all when there
	// are fewer; ErrNone for one without lines. A listing calls it for each
	// session, so it asks the database once.
	Ends(ctx context.Context, k Key, n int64) (head, tail []byte, err error)
	// List returns the sessions that have lines: with id "" of any id, with nil
	// projects of all projects.
	List(ctx context.Context, id string, projects []string) ([]Found, error)

	// Code is the symbol of an error for session.IOError, or "".
	Code(err error) string
	// Unsure reports an error of Append after which the lines may be there.
	Unsure(err error) bool
	// Close closes all connections.
	Close() error
}

var (
	// ErrFenced means that the lease is no longer the caller's.
	ErrFenced = errors.New("the lease was taken by somebody else")
	// ErrNone means that there is no such row.
	ErrNone = errors.New("no such row")
)

// Piece is a part of a line at one end of a session.
type Piece struct {
	Tail bool
	Text []byte
}

// Join makes the ends of a session, of at most n bytes each, of its pieces in
// order; without any there is no session.
func Join(pieces []Piece, n int64) (head, tail []byte, err error) {
	if len(pieces) == 0 {
		return nil, nil, ErrNone
	}
	for _, p := range pieces {
		end := &head
		if p.Tail {
			end = &tail
		}
		*end = append(append(*end, p.Text...), '\n')
	}
	return head[:min(n, int64(len(head)))], tail, nil
}

// Places are where the lines of an append begin, from the first one's place on.
func (l Lines) Places(from int64) []int64 {
	places := make([]int64, len(l.Lines))
	for i, line := range l.Lines {
		places[i] = from
		from += int64(len(line)) + 1
	}
	return places
}
