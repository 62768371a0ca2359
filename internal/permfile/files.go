package permfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/internal/search"
	"github.com/turnwright/turnwright/permission"
)

// Files are the settings files of a session, by destination; "" is a file that
// the session does not have.
type Files struct {
	User, Project, Local string
}

// At are the files of a session: in its configuration home and in the directory
// that it started in (C-1, C-14).
func At(home, dir string) Files {
	user, project, local := names.Settings(home, dir)
	return Files{User: user, Project: project, Local: local}
}

// Error says which file could not be changed and why. The file is then as it
// was.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s was not changed: %v", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Keep writes an update to the file of its destination (P-123), in one step and
// never in part; one for the session is kept nowhere. The mode
// bypassPermissions is never written (P-126). Errors are *Error.
func (f Files) Keep(u permission.Update) error {
	source, err := u.Target()
	if err != nil {
		return err
	}
	path := map[permission.Source]string{
		permission.SourceUser: f.User, permission.SourceProject: f.Project, permission.SourceLocal: f.Local,
	}[source]
	switch {
	case source == permission.SourceSession, u.Type == permission.UpdateSetMode && u.Mode == permission.ModeBypass:
		return nil
	case path == "":
		return &Error{Path: string(source), Err: errors.New("the session has no such file")}
	}
	if err := change(path, func(old []byte) ([]byte, error) { return edit(old, u) }); err != nil {
		return &Error{Path: path, Err: err}
	}
	return nil
}

// Exclude has git leave out the local file, where it is in a repository that does
// not: the file is for one person, and a "git add ." must not take it along. It
// adds a line to the user's own excludes (C-20), which getenv finds. Errors are
// *Error.
func (f Files) Exclude(getenv func(string) string) error {
	path, err := permission.Resolve(f.Local)
	if err != nil {
		return nil // there is no file
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	if ignores, inRepo := search.GitIgnores(path, getenv); ignores || !inRepo {
		return nil
	}
	excludes := search.ExcludesFile(getenv)
	if excludes == "" {
		return &Error{Path: f.Local, Err: errors.New("git does not ignore the file, and there is no place for excludes of the user")}
	}
	line := "**/" + names.Dir + "/" + filepath.Base(f.Local)
	err = change(excludes, func(old []byte) ([]byte, error) {
		if slices.Contains(strings.Split(strings.ReplaceAll(string(old), "\r", ""), "\n"), line) {
			return old, nil // and the repository takes it back
		}
		if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
			old = append(slices.Clip(old), '\n')
		}
		return append(slices.Clip(old), line+"\n"...), nil
	})
	if err != nil {
		return &Error{Path: excludes, Err: err}
	}
	return nil
}

// writing lets the sessions of this process change files one after the other.
var writing sync.Mutex

// attempts bounds how often a change begins anew because another process has
// changed the file meanwhile.
const attempts = 5

// maxFile is the longest settings file that is read, in bytes (C-13).
const maxFile = 2 << 20

// change replaces the content of a file by what f makes of it. A link stays a
// link: the file that it leads to is replaced.
func change(path string, f func(old []byte) ([]byte, error)) error {
	writing.Lock()
	defer writing.Unlock()
	path, err := permission.Resolve(path)
	if err != nil {
		return err
	}
	for range attempts {
		old, mode, err := read(path)
		if err != nil {
			return err
		}
		text, err := f(old)
		if err != nil || text == nil && old == nil || bytes.Equal(text, old) && old != nil {
			return err
		}
		done, err := replace(path, old, text, mode)
		if done || err != nil {
			return err
		}
	}
	return errors.New("it is changed by somebody else all the time")
}

// read returns a file's content and mode; a file that is missing has nil.
func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o644, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return nil, 0, fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	text, err := os.ReadFile(path)
	if text == nil {
		text = []byte{}
	}
	return text, info.Mode().Perm(), err
}

// replace puts text in the place of old by way of a file beside it; done is
// false when the file is not old any more.
func replace(path string, old, text []byte, mode fs.FileMode) (done bool, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	tmp, err := os.CreateTemp(dir, ".settings-*.tmp")
	if err != nil {
		return false, err
	}
	defer func() {
		if !done {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Chmod(tmp.Name(), mode)
	}
	if err != nil {
		return false, err
	}
	now, _, err := read(path)
	if err != nil || (now == nil) != (old == nil) || !bytes.Equal(now, old) {
		return false, err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return false, err
	}
	return true, nil
}
