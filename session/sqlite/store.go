package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/leased"
)

// Config says how sessions are kept. The zero value is fine.
type Config struct {
	// Project keeps all sessions under this name. Empty: under the working
	// directory that they belong to.
	Project string
	// Lease is how long a process that gives no sign of life keeps a session:
	// after it another one may take it over. A holder gives a sign four times
	// as often. Zero: 4 s. At least 100 ms.
	Lease time.Duration
	// Timeout bounds one operation, waiting for other writers included. Zero:
	// 30 s.
	Timeout time.Duration
	// Holder is what others are told while this process holds a session. Empty:
	// "process PID on host NAME".
	Holder string
}

// Store keeps sessions in a database file. It implements session.Store and
// session.Keeper, and is safe for concurrent use. A session that is released or
// closed holds nothing open; the few connections to the file are the store's,
// and are closed when it was not used for half a minute.
type Store struct{ s *leased.Store }

var (
	_ session.Store  = (*Store)(nil)
	_ session.Keeper = (*Store)(nil)
)

// Open opens the database file, makes or updates its tables, and returns the
// store. A file that is missing is made, with the directories above it, for the
// owner only. An error is a *session.OptionError for the path or a field of
// Config, or a *session.IOError.
func Open(ctx context.Context, path string, c Config) (*Store, error) {
	if path == "" {
		return nil, &session.OptionError{Field: "path", Value: path, Reason: "must name a file"}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, &session.OptionError{Field: "path", Value: path, Reason: err.Error()}
	}
	lc := leased.Config{Project: c.Project, Lease: c.Lease, Timeout: c.Timeout, Holder: c.Holder, Place: path}
	if err := lc.Check(); err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, &session.IOError{Op: "open", Path: path, Err: err}
	}
	d, err := newDB(path, lc.Timeout)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, lc.Timeout)
		defer cancel()
		if err = d.migrate(limited); err != nil {
			_ = d.Close()
		}
	}
	switch {
	case err == nil:
		return &Store{leased.New(d, lc)}, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, &session.IOError{Op: "open", Path: path, Code: d.Code(err), Err: err}
}

// create makes the file before SQLite does, which would let others read it: the
// files that it puts beside this one get the same mode (S-22).
func create(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// The name survives a power loss, as the lines do. Not every system can do
	// that.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// Close closes the file. Sessions that are still held are free for others when
// their leases run out.
func (s *Store) Close() error { return s.s.Close() }

// Open opens a session; see session.Store. The session is looked for in the
// project of o.Dir only, or in o.Project.
func (s *Store) Open(ctx context.Context, id string, o session.OpenOptions) (session.Journal, error) {
	return s.s.Open(ctx, id, o)
}

// Find looks a session up; see session.Finder.
func (s *Store) Find(ctx context.Context, id, dir string) (session.Info, error) {
	return s.s.Find(ctx, id, dir)
}

// List returns sessions; see session.Finder.
func (s *Store) List(ctx context.Context, dir string) ([]session.Info, error) {
	return s.s.List(ctx, dir)
}

// Read yields a session's lines; see session.Finder.
func (s *Store) Read(ctx context.Context, i session.Info) iter.Seq2[[]byte, error] {
	return s.s.Read(ctx, i)
}

// Ends returns a session's beginning and end; see session.Finder.
func (s *Store) Ends(ctx context.Context, i session.Info, n int) (head, tail []byte, err error) {
	return s.s.Ends(ctx, i, n)
}

// Projects returns names of projects; see session.Keeper.
func (s *Store) Projects(ctx context.Context, dir string, worktrees bool) ([]string, error) {
	return s.s.Projects(ctx, dir, worktrees)
}

// Stat tells of one session; see session.Keeper.
func (s *Store) Stat(ctx context.Context, project, id string) (session.Info, error) {
	return s.s.Stat(ctx, project, id)
}

// Add appends lines without the session's lease; see session.Keeper.
func (s *Store) Add(ctx context.Context, i session.Info, lines [][]byte) error {
	return s.s.Add(ctx, i, lines)
}

// Delete removes a session with its lines and blobs; see session.Keeper.
func (s *Store) Delete(ctx context.Context, i session.Info) error { return s.s.Delete(ctx, i) }

// Blob returns a large output by the place that the session's lines name. The
// error is session.ErrNotFound when there is none, a *session.OptionError for a
// text that names no place in this database.
func (s *Store) Blob(ctx context.Context, place string) ([]byte, error) { return s.s.Blob(ctx, place) }
