package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/place"
)

// syncedDirs remembers for which project directories the directories above
// were synced, so that it happens once and not with each new session.
type syncedDirs struct {
	mu    sync.Mutex
	done  map[string]bool
	extra []string // directories above the home that got a new name
}

// Open opens a session; see session.Store. A session is looked for in the
// project directory of o.Dir only, or in o.Project.
//
// When the lock cannot be taken because of the disk (full, read-only), Open
// warns and succeeds, so that the run goes on (S-24): Load works then, and each
// Append tries the lock again and fails with a *session.IOError until it works.
func (s *Store) Open(ctx context.Context, id string, o session.OpenOptions) (session.Journal, error) {
	id, err := session.ParseID(id)
	if err != nil {
		return nil, err
	}
	var project string
	var size int64
	if o.Project != "" {
		project = o.Project
		size, err = s.sizeOf(project, id)
	} else {
		project, size, err = s.find(o.Dir, id)
	}
	switch {
	case err != nil:
		return nil, err
	case o.Create && size > 0:
		return nil, session.ErrExists
	case !o.Create && size == 0 && !s.beingMade(project, id):
		return nil, session.ErrNotFound
	}
	j := &journal{
		store:   s,
		project: project,
		dir:     filepath.Join(s.dir, "projects", project),
		id:      id,
		wait:    o.Wait,
		fresh:   o.Create,
	}
	j.path = filepath.Join(j.dir, id+".jsonl")
	opened.add(j.path, 1)
	err = j.wake(ctx)
	if err != nil && canReadOnly(err) {
		s.warn("session " + id + " cannot be locked, nothing is written until it can: " + err.Error())
		return j, nil
	}
	switch {
	case err != nil:
		_ = j.Close()
		return nil, err
	case o.Create && j.known > 0:
		_ = j.Close()
		return nil, session.ErrExists
	case !o.Create && j.known == 0:
		_ = j.Close()
		return nil, session.ErrNotFound
	}
	return j, nil
}

// canReadOnly reports an error of the disk that concerns the lock only.
func canReadOnly(err error) bool {
	e, ok := errors.AsType[*session.IOError](err)
	return ok && e.Op == "lock"
}

// find returns the project directory that has the session, or that it would be
// made in, and the size of its file.
func (s *Store) find(dir, id string) (project string, size int64, err error) {
	names, err := s.names(dir)
	if err != nil {
		return "", 0, err
	}
	for _, name := range names {
		if size, err := s.sizeOf(name, id); err != nil || size > 0 {
			return name, size, err
		}
	}
	return names[0], 0, nil
}

// names are the names that a project directory may have.
func (s *Store) names(dir string) ([]string, error) {
	if s.fixed != "" {
		return []string{s.fixed}, nil
	}
	if !filepath.IsAbs(dir) {
		return nil, &session.OptionError{Field: "OpenOptions.Dir", Value: dir, Reason: "must be an absolute path"}
	}
	path := place.Canonical(dir)
	names := []string{convertName(path)}
	if other := convertUTF16(path); other != names[0] {
		names = append(names, other)
	}
	return names, nil
}

// sizeOf is the size of a session's file; 0 where there is none.
func (s *Store) sizeOf(project, id string) (int64, error) {
	info, err := s.stat(project, id)
	return info.Size, err
}

func (s *Store) stat(project, id string) (vfs.Info, error) {
	path := s.transcript(project, id)
	info, err := s.fs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return vfs.Info{}, nil
	case err != nil:
		return vfs.Info{}, ioError("open", path, err)
	case !info.Mode.IsRegular():
		return vfs.Info{}, ioError("open", path, errNotRegular)
	}
	return info, nil
}

func (s *Store) transcript(project, id string) string {
	return filepath.Join(s.dir, "projects", project, id+".jsonl")
}

// beingMade reports that somebody holds a session without lines: who waits for
// it may see the first ones.
func (s *Store) beingMade(project, id string) bool {
	_, err := s.fs.Stat(s.lockPath(project, id))
	return err == nil
}

// mkdirAll makes a directory below the configuration home and all above it,
// for the owner only.
func (s *Store) mkdirAll(dir string) error {
	err := s.fs.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		parent := filepath.Dir(dir)
		if parent == dir {
			return ioError("mkdir", dir, err)
		}
		if err := s.mkdirAll(parent); err != nil {
			return err
		}
		err = s.fs.Mkdir(dir, 0o700)
	}
	switch {
	case err == nil:
		s.synced.mu.Lock()
		s.synced.done = nil
		if len(dir) < len(s.dir) {
			s.synced.extra = append(s.synced.extra, filepath.Dir(dir))
		}
		s.synced.mu.Unlock()
		return nil
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	// A read-only disk may say so of a directory that is there.
	if info, statErr := s.fs.Stat(dir); statErr == nil && info.Mode.IsDir() {
		return nil
	}
	return ioError("mkdir", dir, err)
}

// syncAbove makes the names of a project directory and of those above durable.
func (s *Store) syncAbove(project string) error {
	s.synced.mu.Lock()
	defer s.synced.mu.Unlock()
	if s.synced.done[project] {
		return nil
	}
	for _, dir := range append([]string{filepath.Join(s.dir, "projects"), s.dir, filepath.Dir(s.dir)}, s.synced.extra...) {
		if err := s.fs.SyncDir(dir); err != nil {
			return ioError("sync", dir, err)
		}
	}
	if s.synced.done == nil {
		s.synced.done = map[string]bool{}
	}
	s.synced.done[project], s.synced.extra = true, nil
	return nil
}

var errNotRegular = errors.New("not a regular file")
