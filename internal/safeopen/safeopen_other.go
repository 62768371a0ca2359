//go:build !linux

package safeopen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Dir is an open directory. What is done with names in it is done there, wherever
// it is moved to. Names are single names, no paths.
type Dir struct {
	root *os.Root
}

// Open opens a file. The path is absolute and clean; flags and perm are as for
// [os.OpenFile].
func Open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if filepath.Dir(path) == path {
		d, err := OpenDir(path)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return d.root.OpenFile(".", flag, perm)
	}
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Open(filepath.Base(path), flag, perm)
}

// Mode returns the type and the permission bits of what a path names, without
// opening it.
func Mode(path string) (fs.FileMode, error) {
	if filepath.Dir(path) == path {
		return fs.ModeDir, nil
	}
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	defer d.Close()
	info, err := d.Lstat(filepath.Base(path))
	switch {
	case err != nil:
		return 0, err
	case info.Mode()&fs.ModeSymlink != 0:
		return 0, &fs.PathError{Op: "stat", Path: path, Err: ErrMoved}
	}
	return info.Mode(), nil
}

// OpenDir opens a directory. The path is absolute and clean.
func OpenDir(path string) (*Dir, error) {
	root, err := OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// walk says which directory a path without a link leads to.
func walk(dir string) (fs.FileInfo, error) {
	info, err := steps(dir)
	if errors.Is(err, fs.ErrPermission) {
		return recheck(dir)
	}
	return info, err
}

// steps goes down to a directory, link by link refused, and says which it is.
func steps(dir string) (fs.FileInfo, error) {
	volume := filepath.VolumeName(dir)
	root, err := os.OpenRoot(volume + string(filepath.Separator))
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(dir[len(volume):], string(filepath.Separator)) {
		if part == "" {
			continue
		}
		next, err := down(root, part)
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		root = next
	}
	info, err := root.Stat(".")
	return info, errors.Join(err, root.Close())
}

// down opens a directory that is no link.
func down(root *os.Root, part string) (*os.Root, error) {
	info, err := root.Lstat(part)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0 || !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(root.Name(), part), Err: ErrMoved}
	}
	next, err := root.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = &fs.PathError{Op: "open", Path: filepath.Join(root.Name(), part), Err: ErrMoved}
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// recheck looks at a directory by its path, where one above it cannot be opened.
func recheck(dir string) (fs.FileInfo, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: dir, Err: ErrMoved}, err)
	}
	return info, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Open opens a file in the directory; a link is not followed.
func (d *Dir) Open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL {
		return d.root.OpenFile(name, flag, perm) // a link is in its way
	}
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(d.root.Name(), name), Err: ErrMoved}
	}
	f, err := d.root.OpenFile(name, flag|nonblock, perm)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = &fs.PathError{Op: "open", Path: filepath.Join(d.root.Name(), name), Err: ErrMoved}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Lstat looks at a name in the directory.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// Remove removes a file, or the link that stands there.
func (d *Dir) Remove(name string) error { return d.root.Remove(name) }

// Rename gives a file another name in the directory, which it takes from
// whatever has it.
func (d *Dir) Rename(from, to string) error { return d.root.Rename(from, to) }

// Link gives a file a further name in the directory, which must be free.
func (d *Dir) Link(from, to string) error { return d.root.Link(from, to) }

// makeDir makes a directory in the directory, if it is not there, and opens it.
func (d *Dir) makeDir(name string) (*Dir, error) {
	if err := d.root.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	next, err := down(d.root, name)
	if err != nil {
		return nil, err
	}
	return &Dir{next}, nil
}
