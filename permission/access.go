package permission

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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

// Resolve returns the absolute path with every symbolic link followed. Where
// the last parts do not exist yet, the deepest existing ancestor is resolved
// and the rest is appended (P-88); a dangling link resolves to what it names.
func Resolve(path string) (string, error) { return new(links).resolve(path) }

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
	if runtime.GOOS != "windows" && clean(dir) == dir && clean(path) == path { // as a rule
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
		return ok && (rest == "" || rest[0] == '/')
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// clean is filepath.Clean, quicker for what is clean, as most paths are.
func clean(path string) string {
	if runtime.GOOS != "windows" && len(path) > 1 && path[0] == '/' && path[len(path)-1] != '/' && !strings.Contains(path, "//") && !strings.Contains(path, "/.") {
		return path
	}
	return filepath.Clean(path)
}

// parent is filepath.Dir in the same way.
func parent(path string) string {
	if runtime.GOOS != "windows" && len(path) > 1 && clean(path) == path {
		return path[:max(1, strings.LastIndexByte(path, '/'))]
	}
	return filepath.Dir(path)
}
