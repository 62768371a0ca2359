package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Kind says what a call does with the target of an [Access].
type Kind string

// The kinds of access.
const (
	Read  Kind = "read"  // reads a file or a directory
	Write Kind = "write" // creates, changes or removes a file
	Exec  Kind = "exec"  // runs a shell command
	Fetch Kind = "fetch" // requests a URL
)

// Access is one thing that a call is going to do. For Read and Write the
// target is a path, for Exec the command, for Fetch the URL.
type Access struct {
	Kind    Kind
	Target  string // a path: absolute and resolved through links
	Written string // a path: absolute, before links were resolved
}

// NewPathAccess returns the access to a path with both of its forms. A path
// that is not absolute is an error: nobody can say what it names.
func NewPathAccess(kind Kind, path string) (Access, error) {
	target, err := Resolve(path)
	if err != nil {
		return Access{}, err
	}
	return Access{Kind: kind, Target: target, Written: filepath.Clean(path)}, nil
}

// maxLinks bounds the symbolic links followed in one path, as the kernel does.
const maxLinks = 40

// Resolve returns the absolute path with every symbolic link followed. Where
// the last parts do not exist yet, the deepest existing ancestor is resolved
// and the rest is appended (P-88); a dangling link resolves to what it names.
func Resolve(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path %q: contains a NUL byte", path)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("path %q: not absolute", path)
	}
	path = filepath.Clean(path)
	rest := ""
	for links := 0; ; {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !missing(err) {
			return "", fmt.Errorf("path %q: %w", path, err)
		}
		// EvalSymlinks fails for a dangling link as for a missing file. The
		// link is followed by hand, so that writing through it is judged by
		// the place where the bytes would land.
		if to, err := os.Readlink(path); err == nil {
			if links++; links > maxLinks {
				return "", fmt.Errorf("path %q: too many symbolic links", path)
			}
			if !filepath.IsAbs(to) {
				// Relative to the directory that really holds the link.
				dir, err := filepath.EvalSymlinks(filepath.Dir(path))
				if err != nil {
					return "", fmt.Errorf("path %q: %w", path, err)
				}
				to = filepath.Join(dir, to)
			}
			path = filepath.Clean(to)
			continue
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest), nil
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = parent
	}
}

// newCommandAccess returns the access to a path in a command: path is absolute
// or relative to dir. Programs hand it to the kernel as it is, which goes
// through links before it takes "..": Target follows it, Written does not.
func newCommandAccess(kind Kind, dir, path string) (Access, error) {
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(dir) {
			return Access{}, fmt.Errorf("path %q: relative to an unknown directory", path)
		}
		path = dir + string(filepath.Separator) + path
	}
	if perProcess(path) {
		return Access{}, fmt.Errorf("path %q: is another file in each process", path)
	}
	a, err := NewPathAccess(kind, path)
	if err != nil || !strings.Contains(path, "..") {
		return a, err
	}
	at := filepath.VolumeName(path) + string(filepath.Separator)
	for _, part := range strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r == '/' || r == filepath.Separator }) {
		switch part {
		case ".":
			continue
		case "..":
			if at, err = Resolve(at); err != nil {
				return Access{}, err
			}
			at = filepath.Dir(at)
		default:
			at = filepath.Join(at, part)
		}
	}
	a.Target, err = Resolve(at)
	return a, err
}

// CheckDir reports what is wrong with an additional working directory: it must
// exist and be a directory (P-100). The path is absolute.
func CheckDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("does not exist")
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("is not a directory")
	}
	return nil
}

// missing reports whether err says that a part of the path does not exist or
// is no directory.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// within reports whether path is dir or lies below it. Both are absolute.
func within(dir, path string) bool {
	if !filepath.IsAbs(dir) || !filepath.IsAbs(path) {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
