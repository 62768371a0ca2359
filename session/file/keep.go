package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
)

var _ session.Keeper = (*Store)(nil)

// Projects returns names of project directories; see session.Keeper.
func (s *Store) Projects(ctx context.Context, dir string, worktrees bool) ([]string, error) {
	if dir == "" {
		return s.projects()
	}
	names, err := s.names(dir)
	if err == nil && worktrees {
		names = append(names, s.worktrees(ctx, dir)...)
	}
	return names, err
}

// Stat tells of one session; see session.Keeper.
func (s *Store) Stat(_ context.Context, project, id string) (session.Info, error) {
	id, err := session.ParseID(id)
	if err != nil {
		return session.Info{}, err
	}
	info, err := s.info(project, id)
	if err == nil && info.Size == 0 { // also a file that somebody only made (K-291, K-392)
		err = session.ErrNotFound
	}
	return info, err
}

// Add appends lines as the official clients do: without a lock, in one write
// (K-306); see session.Keeper.
func (s *Store) Add(_ context.Context, info session.Info, lines [][]byte) error {
	if err := session.CheckLines(lines); err != nil || len(lines) == 0 {
		return err
	}
	path := s.transcript(info.Project, info.ID)
	files.take()
	defer files.give()
	f, err := s.fs.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return session.ErrNotFound
	}
	if err != nil {
		return ioError("open", path, err)
	}
	err = addTo(f, path, lines)
	if cerr := f.Close(); err == nil {
		err = ioError("write", path, cerr)
	}
	return err
}

func addTo(f vfs.File, path string, lines [][]byte) error {
	is, err := f.Stat()
	if err != nil {
		return ioError("open", path, err)
	}
	if is.Size == 0 {
		return session.ErrNotFound
	}
	noLine, err := endsOpen(f, is.Size)
	if err != nil {
		return ioError("read", path, err)
	}
	var b []byte
	if noLine {
		b = append(b, '\n') // torn, or being written: it is not ours to cut off
	}
	for _, line := range lines {
		b = append(append(b, line...), '\n')
	}
	n, err := f.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return ioError("write", path, err)
}

// Delete removes the transcript, then <project>/<id>/ with the session's large
// outputs and subagents, what was cut off of torn lines, and the session's file
// checkpoints (S-80, K-393); see session.Keeper.
func (s *Store) Delete(ctx context.Context, info session.Info) error {
	is, err := s.Stat(ctx, info.Project, info.ID)
	if err != nil {
		return err
	}
	files.take()
	defer files.give()
	path := s.transcript(info.Project, is.ID)
	switch err := s.fs.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return session.ErrNotFound
	case err != nil:
		return ioError("remove", path, err)
	}
	return s.removeBeside(info.Project, is.ID)
}

// removeBeside removes what is kept beside a transcript, and the checkpoints
// unless another project has a session with this id.
func (s *Store) removeBeside(project, id string) error {
	dir := filepath.Join(s.dir, "projects", project)
	errs := []error{s.removeAll(filepath.Join(dir, id))}
	names, err := s.readDir(dir)
	errs = append(errs, err)
	for _, name := range names {
		if of, _, ok := strings.Cut(name, ".torn-"); ok && of == id {
			errs = append(errs, s.removeAll(filepath.Join(dir, name)))
		}
	}
	projects, err := s.projects()
	errs = append(errs, err)
	for _, other := range projects {
		if d, err := s.fs.Stat(filepath.Join(s.dir, "projects", other)); err == nil && !d.Mode.IsDir() {
			continue
		}
		if size, err := s.sizeOf(other, id); err != nil || size > 0 {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, s.removeAll(s.checkpoints(id)))...)
}

// removeAll removes a file, or a directory with all that is in it. It follows
// no link: a link is removed, and only a directory can be "not empty".
func (s *Store) removeAll(path string) error {
	err := s.fs.Remove(path)
	if errors.Is(err, fs.ErrExist) { // not empty
		var names []string
		if names, err = s.fs.ReadDir(path); err == nil {
			for _, name := range names {
				if err = s.removeAll(filepath.Join(path, name)); err != nil {
					return err
				}
			}
			err = s.fs.Remove(path)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ioError("remove", path, err)
}
