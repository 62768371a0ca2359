package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/place"
)

var (
	_ session.Finder = (*Store)(nil)
	_ session.Tailer = (*journal)(nil)
)

// Find looks a session up; see session.Finder.
func (s *Store) Find(ctx context.Context, id, dir string) (session.Info, error) {
	id, err := session.ParseID(id)
	if err != nil {
		return session.Info{}, err
	}
	names, err := s.names(dir)
	if err != nil {
		return session.Info{}, err
	}
	for _, name := range append(names, s.worktrees(ctx, dir)...) {
		switch info, err := s.info(name, id); {
		case err != nil:
			return session.Info{}, err
		case info.Size > 0:
			return info, nil
		}
	}
	projects, err := s.projects()
	if err != nil {
		return session.Info{}, err
	}
	var found []session.Info
	for _, name := range projects {
		if info, err := s.info(name, id); err == nil && info.Size > 0 && s.hasMessages(ctx, info) {
			found = append(found, info)
		}
	}
	if len(found) != 1 {
		return session.Info{}, session.ErrNotFound
	}
	return found[0], nil
}

// List returns sessions; see session.Finder.
func (s *Store) List(ctx context.Context, dir string) ([]session.Info, error) {
	var names []string
	var err error
	if dir == "" {
		names, err = s.projects()
	} else if names, err = s.names(dir); err == nil {
		names = append(names, s.worktrees(ctx, dir)...)
	}
	if err != nil {
		return nil, err
	}
	var found []session.Info
	for _, project := range names {
		files, err := s.readDir(filepath.Join(s.dir, "projects", project))
		if err != nil && dir != "" {
			return nil, err
		} // else one directory that cannot be read does not hide the others (S-72)
		for _, f := range files {
			name, ok := strings.CutSuffix(f, ".jsonl")
			if id, err := session.ParseID(name); !ok || err != nil || id != name {
				continue
			}
			if info, err := s.info(project, name); err == nil && info.Size > 0 {
				found = append(found, info)
			}
		}
	}
	return session.Newest(found), nil
}

// Read yields a session's lines; see session.Finder. The file is opened for
// each part, so that a reader that takes its time holds nothing.
func (s *Store) Read(ctx context.Context, info session.Info) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		readLines(ctx, info.Size, func(buf []byte, off int64) (int, bool, error) {
			n, err := s.readAt(info, buf, off)
			return n, errors.Is(err, io.EOF), notEOF(err)
		}, yield)
	}
}

// Ends returns a session's beginning and end; see session.Finder.
func (s *Store) Ends(_ context.Context, info session.Info, n int) (head, tail []byte, err error) {
	head = make([]byte, min(int64(n), info.Size))
	got, err := s.readAt(info, head, 0)
	head = head[:got]
	if err = notEOF(err); err != nil || info.Size <= int64(n) {
		return head, head, err
	}
	tail = make([]byte, n)
	got, err = s.readAt(info, tail, info.Size-int64(n))
	return head, tail[:got], notEOF(err)
}

// Tail returns the last bytes; see session.Tailer.
func (j *journal) Tail(_ context.Context, n int) ([]byte, error) {
	info, err := j.store.info(j.project, j.id)
	if err != nil {
		return nil, err
	}
	tail := make([]byte, min(int64(n), info.Size))
	got, err := j.store.readAt(info, tail, info.Size-int64(len(tail)))
	return tail[:got], notEOF(err)
}

func (s *Store) readAt(info session.Info, buf []byte, off int64) (int, error) {
	path := s.transcript(info.Project, info.ID)
	files.take()
	defer files.give()
	f, err := s.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, session.ErrNotFound
	}
	if err != nil {
		return 0, ioError("open", path, err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	n, err := f.ReadAt(buf, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = ioError("read", path, err)
	}
	return n, err
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *Store) info(project, id string) (session.Info, error) {
	i, err := s.stat(project, id)
	return session.Info{ID: id, Project: project, Modified: i.ModTime, Size: i.Size}, err
}

// hasMessages reports a session with something said in it: a file with
// metadata only is no conversation (S-36).
func (s *Store) hasMessages(ctx context.Context, info session.Info) bool {
	for line, err := range s.Read(ctx, info) {
		if err == nil && (strings.Contains(string(line), `"type":"user"`) || strings.Contains(string(line), `"type":"assistant"`) ||
			strings.Contains(string(line), `"type": "user"`) || strings.Contains(string(line), `"type": "assistant"`)) {
			return true
		}
	}
	return false
}

// projects are the names of all project directories.
func (s *Store) projects() ([]string, error) { return s.readDir(filepath.Join(s.dir, "projects")) }

// readDir lists a directory; one that is missing, and a file, is empty.
func (s *Store) readDir(dir string) ([]string, error) {
	info, err := s.fs.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir() {
		return nil, nil
	}
	names, err := s.fs.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, ioError("open", dir, err)
	}
	return names, nil
}

// worktrees are the project names of the other worktrees of dir's repository.
func (s *Store) worktrees(ctx context.Context, dir string) (names []string) {
	if s.fixed != "" {
		return nil
	}
	own, err := s.names(dir)
	if err != nil {
		return nil
	}
	for _, path := range place.Worktrees(ctx, dir) {
		more, err := s.names(path)
		if err != nil {
			continue
		}
		for _, name := range more {
			if !slices.Contains(own, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
