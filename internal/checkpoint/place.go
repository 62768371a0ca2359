package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/turnwright/turnwright/internal/safeopen"
)

var (
	// errMoved says that the way to a file leads elsewhere than before.
	errMoved = errors.New("a directory above it leads elsewhere now")
	// errIrregular says that there is something else in the place of a file.
	errIrregular = errors.New("it is no regular file")
)

// openDir opens a directory whose path had no link in it. With one it is
// errMoved, at whatever moment it was put there.
func openDir(dir string) (*os.Root, error) {
	root, err := safeopen.OpenRoot(dir)
	if errors.Is(err, safeopen.ErrMoved) || errors.Is(err, syscall.ENOTDIR) {
		return nil, errMoved
	}
	return root, err
}

// openFile opens a regular file in a directory for reading, and nothing else: no
// link is followed, and no pipe waited for. Further hard links are no fault here.
func openFile(dir *os.Root, base string) (*os.File, fs.FileInfo, error) {
	info, err := dir.Lstat(base)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errIrregular
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	now, err := f.Stat()
	if err == nil && (!os.SameFile(info, now) || !now.Mode().IsRegular()) {
		err = errIrregular // it was replaced at this very moment
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, now, nil
}

// makeDir makes a directory and those above it that are missing, without
// following a link, and opens it.
func makeDir(dir string) (*os.Root, error) {
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		root, err := openDir(up)
		if errors.Is(err, fs.ErrNotExist) && up != filepath.Dir(up) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rest, err := filepath.Rel(up, dir)
		if err == nil {
			err = root.MkdirAll(rest, 0o777)
		}
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		return openDir(dir)
	}
}

const keptModes = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func modeBits(m fs.FileMode) uint32 { return uint32(m & keptModes) }
