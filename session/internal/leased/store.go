package leased

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/place"
)

// Config is what every store in a database can be told.
type Config struct {
	// Project keeps all sessions under this name instead of their working
	// directory.
	Project string
	// Lease is how long a holder that gives no sign keeps a session.
	Lease time.Duration
	// Timeout bounds one operation of the database.
	Timeout time.Duration
	// Holder is how other processes are told of this one.
	Holder string
	// Place names the database in errors and in the places of blobs.
	Place string
}

// Defaults. A process that was killed is followed within the five seconds that
// a run waits for a session (S-27).
const (
	DefaultLease   = 4 * time.Second
	DefaultTimeout = 30 * time.Second
	minLease       = 100 * time.Millisecond
)

// Check fills in defaults. The error is a *session.OptionError.
func (c *Config) Check() error {
	switch {
	case c.Lease == 0:
		c.Lease = DefaultLease
	case c.Lease < minLease:
		return &session.OptionError{Field: "Config.Lease", Value: c.Lease.String(), Reason: "must be at least " + minLease.String()}
	}
	switch {
	case c.Timeout == 0:
		c.Timeout = DefaultTimeout
	case c.Timeout < 0:
		return &session.OptionError{Field: "Config.Timeout", Value: c.Timeout.String(), Reason: "must not be negative"}
	}
	if c.Holder == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Holder = fmt.Sprintf("process %d on host %s", os.Getpid(), host)
	}
	if strings.ContainsRune(c.Holder+c.Project, 0) {
		return &session.OptionError{Field: "Config", Value: c.Holder + c.Project, Reason: "must not contain a NUL character"}
	}
	return nil
}

// Store is a session.Store and a session.Finder on a database.
type Store struct {
	db    DB
	c     Config
	beats beats
}

var (
	_ session.Store  = (*Store)(nil)
	_ session.Keeper = (*Store)(nil)
	_ session.Tailer = (*journal)(nil)
)

// New returns the store of a database, with a Config that was checked.
func New(db DB, c Config) *Store {
	s := &Store{db: db, c: c}
	s.beats.store = s
	return s
}

// Close closes the database. Leases that are held run out.
func (s *Store) Close() error {
	s.beats.end()
	return s.db.Close()
}

// Open opens a session; see session.Store.
func (s *Store) Open(ctx context.Context, id string, o session.OpenOptions) (session.Journal, error) {
	id, err := session.ParseID(id)
	if err != nil {
		return nil, err
	}
	key := Key{ID: id}
	if o.Project != "" {
		key.Project = o.Project
	} else if key.Project, err = s.project(o.Dir); err != nil {
		return nil, err
	}
	// What no wait can change is said at once.
	st, holder, err := s.look(ctx, key)
	switch {
	case errors.Is(err, ErrNone):
		if !o.Create {
			return nil, session.ErrNotFound
		}
	case err != nil:
		return nil, err
	case st.Size > 0 && o.Create:
		return nil, session.ErrExists
	case st.Size == 0 && !o.Create && holder == "":
		return nil, session.ErrNotFound
	}
	j := &journal{store: s, key: key, owner: uuid.NewString(), wait: o.Wait}
	if _, err := j.hold(ctx, j.wait); err != nil {
		return nil, err
	}
	if exists := j.at.Size > 0; exists == o.Create {
		_ = j.Close()
		if exists {
			return nil, session.ErrExists
		}
		return nil, session.ErrNotFound
	}
	return j, nil
}

// project is where the sessions of a directory are.
func (s *Store) project(dir string) (string, error) {
	if s.c.Project != "" {
		return s.c.Project, nil
	}
	if !filepath.IsAbs(dir) {
		return "", &session.OptionError{Field: "OpenOptions.Dir", Value: dir, Reason: "must be an absolute path"}
	}
	return place.Canonical(dir), nil
}

// projects are where the sessions of a directory and of the other worktrees of
// its repository are, its own first.
func (s *Store) projects(ctx context.Context, dir string) ([]string, error) {
	own, err := s.project(dir)
	if err != nil || s.c.Project != "" {
		return []string{own}, err
	}
	all := []string{own}
	for _, path := range place.Worktrees(ctx, dir) {
		if p, err := s.project(path); err == nil && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all, nil
}

func (s *Store) look(ctx context.Context, key Key) (st State, holder string, err error) {
	err = s.do(ctx, "read", func(ctx context.Context) error {
		st, holder, err = s.db.Look(ctx, key)
		return err
	})
	return st, holder, err
}

// do runs one operation of the database within the store's time. An error is
// ErrFenced, ErrNone, the context's or a *session.IOError.
func (s *Store) do(ctx context.Context, op string, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	err := f(limited)
	switch {
	case err == nil, errors.Is(err, ErrFenced), errors.Is(err, ErrNone):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	code := s.db.Code(err)
	if limited.Err() != nil {
		err = fmt.Errorf("no answer within %v: %w", s.c.Timeout, err)
	}
	return &session.IOError{Op: op, Path: s.c.Place, Code: code, Err: err}
}

// Find looks a session up; see session.Finder.
func (s *Store) Find(ctx context.Context, id, dir string) (session.Info, error) {
	id, err := session.ParseID(id)
	if err != nil {
		return session.Info{}, err
	}
	near, err := s.projects(ctx, dir)
	if err != nil {
		return session.Info{}, err
	}
	found, err := s.list(ctx, id, nil)
	if err != nil {
		return session.Info{}, err
	}
	for _, project := range near {
		for _, f := range found {
			if f.Project == project {
				return f.Info, nil
			}
		}
	}
	found = slices.DeleteFunc(found, func(f Found) bool { return !f.Spoken })
	if len(found) != 1 {
		return session.Info{}, session.ErrNotFound
	}
	return found[0].Info, nil
}

// List returns sessions; see session.Finder.
func (s *Store) List(ctx context.Context, dir string) ([]session.Info, error) {
	var near []string
	if dir != "" {
		var err error
		if near, err = s.projects(ctx, dir); err != nil {
			return nil, err
		}
	}
	found, err := s.list(ctx, "", near)
	if err != nil {
		return nil, err
	}
	infos := make([]session.Info, len(found))
	for i, f := range found {
		infos[i] = f.Info
	}
	return session.Newest(infos), nil
}

func (s *Store) list(ctx context.Context, id string, projects []string) (found []Found, err error) {
	err = s.do(ctx, "read", func(ctx context.Context) error {
		found, err = s.db.List(ctx, id, projects)
		return err
	})
	return found, err
}

// Read yields a session's lines; see session.Finder. A reader that takes its
// time holds nothing.
func (s *Store) Read(ctx context.Context, info session.Info) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		st, err := s.lookUp(ctx, info)
		if err != nil {
			yield(nil, err)
			return
		}
		s.lines(ctx, st, yield)
	}
}

// lookUp is look for a session that was found.
func (s *Store) lookUp(ctx context.Context, info session.Info) (State, error) {
	st, _, err := s.look(ctx, Key{Project: info.Project, ID: info.ID})
	if errors.Is(err, ErrNone) || err == nil && st.Size == 0 {
		return st, session.ErrNotFound
	}
	return st, err
}

// Ends returns a session's beginning and end; see session.Finder.
func (s *Store) Ends(ctx context.Context, info session.Info, n int) (head, tail []byte, err error) {
	if n <= 0 {
		_, err := s.lookUp(ctx, info)
		return nil, nil, err
	}
	err = s.do(ctx, "read", func(ctx context.Context) error {
		head, tail, err = s.db.Ends(ctx, Key{Project: info.Project, ID: info.ID}, int64(n))
		return err
	})
	if errors.Is(err, ErrNone) {
		err = session.ErrNotFound
	}
	return head, tail, err
}

// chunk is how many bytes of lines are read at once, and more only where a
// single line is longer.
const chunk = 1 << 20

// lines yields what the state describes, and reports whether all was taken.
func (s *Store) lines(ctx context.Context, st State, yield func([]byte, error) bool) bool {
	n := 0
	for from := int64(0); from < st.Size; {
		var part [][]byte
		err := ctx.Err()
		if err != nil {
			err = context.Cause(ctx)
		} else {
			err = s.do(ctx, "read", func(ctx context.Context) error {
				var err error
				part, err = s.db.Read(ctx, st.Session, from, min(from+chunk, st.Size))
				return err
			})
		}
		if err == nil && len(part) == 0 {
			err = session.ErrNotFound // removed while it was read
		}
		if err != nil {
			yield(nil, err)
			return false
		}
		for _, line := range part {
			n++
			from += int64(len(line)) + 1
			var bad error
			if err := session.CheckLine(line); err != nil {
				bad = &session.LineError{Line: n, Err: err}
			}
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return false
			}
			if !yield(line, bad) {
				return false
			}
		}
	}
	return true
}

// blobPath is where a blob is, for people and for Blob.
func (s *Store) blobPath(k Key, name string) string {
	return s.c.Place + "#" + k.Project + "/" + k.ID + "/tool-results/" + name
}

// Blob returns what PutBlob stored under the path that it returned.
func (s *Store) Blob(ctx context.Context, path string) (data []byte, err error) {
	none := &session.OptionError{Field: "path", Value: path, Reason: "is not the place of a blob in " + s.c.Place}
	rest, ok := strings.CutPrefix(path, s.c.Place+"#")
	at, name, ok2 := cutLast(rest, "/tool-results/")
	project, id, ok3 := cutLast(at, "/")
	if !ok || !ok2 || !ok3 {
		return nil, none
	}
	if id, err = session.ParseID(id); err != nil {
		return nil, none
	}
	err = s.do(ctx, "read", func(ctx context.Context) error {
		data, err = s.db.Blob(ctx, Key{Project: project, ID: id}, name)
		return err
	})
	if errors.Is(err, ErrNone) {
		return nil, session.ErrNotFound
	}
	return data, err
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// spoken reports a line that may be a message.
func spoken(line []byte) bool {
	for _, form := range [...]string{`"type":"user"`, `"type":"assistant"`, `"type": "user"`, `"type": "assistant"`} {
		if bytes.Contains(line, []byte(form)) {
			return true
		}
	}
	return false
}

func newLines(lines [][]byte, sync bool) Lines {
	l := Lines{Lines: lines, Sync: sync}
	for _, line := range lines {
		l.Size += int64(len(line)) + 1
		l.Spoken = l.Spoken || spoken(line)
	}
	return l
}
