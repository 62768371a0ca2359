package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/session"
)

// Sweep removes sessions of which nothing was changed since the given time, with
// all that is kept beside them and their file checkpoints (S-32), and returns how
// many it removed.
//
// It takes only files that have the name of a session and that this program began
// (S-10): those begin with a line of its own. It takes none that some process has
// open in a running turn, or that this process has open at all (S-33). What cannot
// be looked at stays. It ends with the context.
func (s *Store) Sweep(ctx context.Context, before time.Time) (removed int, err error) {
	projects, err := s.projects()
	if err != nil {
		return 0, err
	}
	for _, project := range projects {
		names, err := s.readDir(filepath.Join(s.dir, "projects", project))
		if err != nil {
			continue
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return removed, context.Cause(ctx)
			}
			id, isTranscript := strings.CutSuffix(name, ".jsonl")
			if lower, err := session.ParseID(id); !isTranscript || err != nil || lower != id {
				continue
			}
			if s.sweepOne(ctx, project, id, before) {
				removed++
			}
		}
	}
	return removed, nil
}

// sweepOne removes a session that is old; it is looked at again under its lock.
func (s *Store) sweepOne(ctx context.Context, project, id string, before time.Time) bool {
	path := s.transcript(project, id)
	if !s.old(project, id, before) || !s.began(path) || opened.has(path) {
		return false
	}
	l, err := s.lock(ctx, project, id, 0)
	if err != nil {
		return false
	}
	defer l.release()
	if opened.has(path) || !s.old(project, id, before) {
		return false
	}
	files.take()
	defer files.give()
	if s.fs.Remove(path) != nil {
		return false
	}
	_ = s.removeBeside(project, id) // what is left is nobody's, and harmless
	return true
}

// old reports that neither the transcript nor anything in the session's directory
// or among its checkpoints was changed since.
func (s *Store) old(project, id string, before time.Time) bool {
	info, err := s.fs.Stat(s.transcript(project, id))
	if err != nil || !info.Mode.IsRegular() || !info.ModTime.Before(before) {
		return false
	}
	const deep = 8 // levels; a link may lead round
	return s.allOld(filepath.Join(s.dir, "projects", project, id), before, deep) && s.allOld(s.checkpoints(id), before, deep)
}

func (s *Store) allOld(path string, before time.Time, deep int) bool {
	info, err := s.fs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil || deep == 0:
		return false
	case !info.Mode.IsDir():
		return info.ModTime.Before(before)
	}
	names, err := s.fs.ReadDir(path)
	if err != nil {
		return false
	}
	for _, name := range names {
		if !s.allOld(filepath.Join(path, name), before, deep-1) {
			return false
		}
	}
	return true
}

// ownLine is how a session begins that this program began, as it writes it.
const ownLine = `{"type":"turnwright"`

// began reports that this program began the session.
func (s *Store) began(path string) bool {
	files.take()
	defer files.give()
	f, err := s.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	head := make([]byte, len(ownLine))
	n, err := f.ReadAt(head, 0)
	return (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(head[:n], []byte(ownLine))
}

// checkpoints is the directory of a session's file checkpoints (K-293).
func (s *Store) checkpoints(id string) string { return filepath.Join(s.dir, "file-history", id) }

// opened counts the journals that this process has open, idle ones too, by the
// transcript's path.
var opened = paths{n: map[string]int{}}

type paths struct {
	mu sync.Mutex
	n  map[string]int
}

func (p *paths) has(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n[path] > 0
}

func (p *paths) add(path string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n[path] += n; p.n[path] <= 0 {
		delete(p.n, path)
	}
}
