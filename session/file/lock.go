package file

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
)

const (
	firstPoll = 2 * time.Millisecond
	lastPoll  = 100 * time.Millisecond
	// patience is how long to wait for others that remove a dead lock, however
	// short the caller's own wait is: they need microseconds.
	patience = time.Second
	// attempts bounds how often one try follows a lock that changes under it.
	attempts = 20
)

// errBusy means that the state of a lock could not be told at this moment.
var errBusy = errors.New("the lock is being taken over")

// owner is what this process has in one configuration home: the file that is
// flock'ed while the process holds any lock there.
type owner struct {
	key ownerKey
	ref int // users, under owners.mu

	mu   sync.Mutex
	name string   // of the owner file, "" = none
	file vfs.File // open and flock'ed
	held map[string]struct{}
	lost []vfs.File // former owner files that somebody removed with all locks
	none bool       // the file system knows no flock
}

type ownerKey struct {
	fs  vfs.FS
	dir string
}

// owners finds the owner of a home, for all stores of the process. An owner is
// there only while somebody uses it.
var owners = struct {
	mu sync.Mutex
	of map[ownerKey]*owner
}{of: map[ownerKey]*owner{}}

func useOwner(f vfs.FS, dir string) *owner {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	key := ownerKey{fs: f, dir: dir}
	o := owners.of[key]
	if o == nil {
		o = &owner{key: key, held: map[string]struct{}{}}
		owners.of[key] = o
	}
	o.ref++
	return o
}

func (o *owner) done() {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	if o.ref--; o.ref == 0 {
		delete(owners.of, o.key)
	}
}

// lease is a lock that is held.
type lease struct {
	o    *owner
	path string
	file vfs.File // with the lock on it, where there are no hard links
}

// holder is what stands in an owner's file.
type holder struct {
	Program string `json:"program"`
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	Start   string `json:"start"`
}

func (s *Store) lockPath(project, id string) string {
	return filepath.Join(s.dir, "turnwright", "locks", project, id+".lock")
}

// lock waits for the lock of a session: *session.LockedError when others keep
// it, *session.IOError when it cannot be taken at all.
func (s *Store) lock(ctx context.Context, project, id string, wait time.Duration) (*lease, error) {
	start := time.Now()
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		l, err := s.tryLock(project, id)
		left := wait - time.Since(start)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, errBusy):
			left = max(wait, patience) - time.Since(start)
			err = &session.LockedError{ID: id, Holder: "another process that is just opening it"}
		case !isLocked(err):
			return nil, lockError(s.lockPath(project, id), err)
		}
		if left <= 0 {
			return nil, err
		}
		timer := time.NewTimer(min(poll, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// lockError marks an error of the disk as one that concerns the lock.
func lockError(path string, err error) error {
	if e, ok := errors.AsType[*session.IOError](err); ok {
		return &session.IOError{Op: "lock", Path: e.Path, Code: e.Code, Err: e.Err}
	}
	return ioError("lock", path, err)
}

func isLocked(err error) bool {
	_, ok := errors.AsType[*session.LockedError](err)
	return ok
}

// tryLock tries once.
func (s *Store) tryLock(project, id string) (_ *lease, err error) {
	files.take() // for the files that are opened for a moment here
	defer files.give()
	o := useOwner(s.fs, s.dir)
	o.mu.Lock()
	defer func() {
		if err != nil {
			o.retire()
		}
		o.mu.Unlock()
		if err != nil {
			o.done()
		}
	}()
	path := s.lockPath(project, id)
	if _, mine := o.held[path]; mine {
		return nil, &session.LockedError{ID: id, Holder: fmt.Sprintf("this process (%d)", os.Getpid())}
	}
	l := &lease{o: o, path: path}
	if err := s.link(l, id); err != nil {
		return nil, err
	}
	o.held[path] = struct{}{}
	return l, nil
}

// link puts the lock's name on the disk; the owner's mutex is held.
func (s *Store) link(l *lease, id string) error {
	for range attempts {
		if err := s.ensureOwner(l.o); err != nil {
			return err
		}
		if l.o.none {
			s.lockless.Do(func() {
				s.warn("sessions: " + s.dir + " is on a file system without locks; two processes can open one session")
			})
			return nil
		}
		err := s.fs.Link(l.o.name, l.path)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrExist):
			err = s.removeDead(l.path, id)
		case errors.Is(err, fs.ErrNotExist):
			err = s.mendPlaces(l)
		case linkless(err):
			return s.lockFile(l, id)
		}
		switch {
		case isLocked(err), errors.Is(err, errBusy):
			return err
		case err != nil:
			return ioError("lock", l.path, err)
		}
	}
	return errBusy
}

// mendPlaces makes the directory of a lock, and replaces an owner file that
// somebody removed.
func (s *Store) mendPlaces(l *lease) error {
	if err := s.mkdirAll(filepath.Dir(l.path)); err != nil {
		return err
	}
	if _, err := s.fs.Stat(l.o.name); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for path := range l.o.held {
		if s.fs.Link(path, l.o.name) == nil {
			return nil // a lock is the same file
		}
	}
	// Kept open, for locks that are still there under other names.
	l.o.lost = append(l.o.lost, l.o.file)
	l.o.file, l.o.name = nil, ""
	return nil
}

// ensureOwner makes the process's owner file.
func (s *Store) ensureOwner(o *owner) error {
	if o.file != nil || o.none {
		return nil
	}
	dir := filepath.Join(s.dir, "turnwright", "owners")
	if err := s.mkdirAll(dir); err != nil {
		return err
	}
	s.sweepOwners(dir)
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	name := filepath.Join(dir, fmt.Sprintf("%d-%s", os.Getpid(), hex.EncodeToString(random[:])))
	f, err := s.fs.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return ioError("lock", name, err)
	}
	ok, err := f.TryLock(true)
	switch {
	case err != nil && flockless(err):
		o.none = true
		err = nil
	case err == nil && !ok: // a sweep of another process looks at it just now
		err = errBusy
	case err == nil:
		_, err = f.Write(describeSelf())
		if err == nil {
			o.file, o.name = f, name
			return nil
		}
	}
	_ = f.Close()
	_ = s.fs.Remove(name)
	return ioErrorUnlessBusy(name, err)
}

func ioErrorUnlessBusy(name string, err error) error {
	if errors.Is(err, errBusy) {
		return err
	}
	return ioError("lock", name, err)
}

func describeSelf() []byte {
	host, _ := os.Hostname()
	text, _ := json.Marshal(holder{ // cannot fail: strings and a number
		Program: "turnwright", PID: os.Getpid(), Host: host,
		Start: time.Now().UTC().Format(time.RFC3339),
	})
	return append(text, '\n')
}

// sweepOwners removes the files of owners that died. It is a courtesy: nothing
// depends on it, so errors do not matter.
func (s *Store) sweepOwners(dir string) {
	names, err := s.fs.ReadDir(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if dead, _ := s.probe(path); dead {
			_ = s.fs.Remove(path)
		}
	}
}

// probe tells whether the owner of a lock or owner file is dead, and else who
// it is. A file that is gone is neither: fs.ErrNotExist.
func (s *Store) probe(path string) (dead bool, who string) {
	f, err := s.fs.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, ""
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if free, err := f.TryLock(false); err != nil || free {
		return err == nil, ""
	}
	var text [1024]byte
	n, _ := f.ReadAt(text[:], 0)
	var h holder
	if json.Unmarshal(text[:n], &h) != nil || h.PID == 0 {
		return false, "another process"
	}
	return false, fmt.Sprintf("process %d on %s (since %s)", h.PID, h.Host, h.Start)
}

// removeDead removes a lock whose owner is dead: nil means try again.
func (s *Store) removeDead(path, id string) error {
	dead, who := s.probe(path)
	switch {
	case who != "":
		return &session.LockedError{ID: id, Holder: who}
	case !dead:
		if _, err := s.fs.Stat(path); err == nil {
			return errBusy // cannot be opened or asked
		}
		return nil // given back meanwhile
	}
	// Only the holder of this file removes dead locks, and nobody links over a
	// name that exists; so what is found dead now is dead when it is removed.
	guard, err := s.fs.OpenFile(filepath.Join(s.dir, "turnwright", "locks", "takeover"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer guard.Close() //nolint:errcheck // nothing was written
	if ok, err := guard.TryLock(true); err != nil || !ok {
		return errBusy
	}
	if dead, _ := s.probe(path); dead {
		return s.fs.Remove(path)
	}
	return nil
}

// lockFile locks a file of its own for the session, where there are no links.
func (s *Store) lockFile(l *lease, id string) error {
	f, err := s.fs.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.mkdirAll(filepath.Dir(l.path)); err != nil {
			return err
		}
		f, err = s.fs.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return ioError("lock", l.path, err)
	}
	ok, err := f.TryLock(true)
	if err == nil && !ok {
		_, who := s.probe(l.path)
		err = &session.LockedError{ID: id, Holder: who}
		if who == "" {
			err = errBusy
		}
	}
	if err == nil {
		// Its former owner removes the name before it lets the lock go.
		var mine, now vfs.Info
		if mine, err = f.Stat(); err == nil {
			if now, err = s.fs.Stat(l.path); err != nil || now.ID != mine.ID {
				err = errBusy
			}
		}
	}
	if err == nil {
		err = s.fs.Truncate(l.path, 0)
	}
	if err == nil {
		_, err = f.Write(describeSelf())
	}
	if err != nil {
		_ = f.Close()
		if isLocked(err) {
			return err
		}
		return ioErrorUnlessBusy(l.path, err)
	}
	l.file = f
	return nil
}

// release gives the lock back. If its name cannot be removed it is dead as soon
// as this process holds nothing else, and is taken over then.
func (l *lease) release() {
	o := l.o
	files.take()
	defer files.give()
	o.mu.Lock()
	switch {
	case l.file != nil:
		_ = o.key.fs.Remove(l.path)
		_ = l.file.Close()
	case o.file != nil:
		o.removeOwn(l.path)
	}
	delete(o.held, l.path)
	o.retire()
	o.mu.Unlock()
	o.done()
}

// removeOwn removes the name of a lock, unless somebody put his own there.
func (o *owner) removeOwn(path string) {
	mine, err := o.file.Stat()
	if err != nil {
		return
	}
	if now, err := o.key.fs.Stat(path); err == nil && now.ID == mine.ID {
		_ = o.key.fs.Remove(path)
	}
}

// retire removes the owner file when no lock needs it; the mutex is held.
func (o *owner) retire() {
	if len(o.held) > 0 {
		return
	}
	for _, f := range o.lost {
		_ = f.Close()
	}
	o.lost = nil
	if o.file != nil {
		_ = o.key.fs.Remove(o.name)
		_ = o.file.Close()
		o.file, o.name = nil, ""
	}
}
