// Package safeopen opens files by paths that had no symbolic link in them when
// they were approved, and that must have none now: what was judged is what is
// opened, whoever exchanges a directory for a link meanwhile. On Linux the kernel
// sees to that while it opens (openat2 with RESOLVE_NO_SYMLINKS; where that is
// missing the way is gone step by step). Elsewhere a directory is opened as an
// [os.Root] and compared with what a walk without links finds; where a directory
// on the way may be passed but not read, only the path is looked at once more
// after the opening, which leaves a moment in which it can be exchanged.
//
// Nothing here waits for the other end of a named pipe.
package safeopen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrMoved says that a path has a symbolic link in it, or was exchanged for
// something else while it was opened. Nothing was opened then, and nothing made.
var ErrMoved = errors.New("the path changed since it was approved: a symbolic link, or something else, has taken the place of a part of it")

// MakeDir opens a directory as [OpenDir] does, and makes it and those above it
// where they are missing.
func MakeDir(path string) (*Dir, error) {
	d, err := OpenDir(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return d, err
	}
	up, err := MakeDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer up.Close()
	return up.makeDir(filepath.Base(path))
}

// OpenRoot opens a directory as an [os.Root], for who works with more than the
// names in it. The directory itself must be readable.
func OpenRoot(path string) (*os.Root, error) {
	// What is opened by its path may not be what the path says: it must be the
	// directory to which one comes without following a link.
	want, err := walk(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	have, err := root.Stat(".")
	if err == nil && !os.SameFile(want, have) {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrMoved}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}
