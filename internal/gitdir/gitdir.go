// Package gitdir finds the git directory of a repository, without starting git.
package gitdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxPointer bounds a ".git" file, in bytes: it holds one path.
const maxPointer = 1 << 16

// At returns the git directory of the repository whose root is dir: ".git" in
// it, or where a file of that name leads in a worktree or a submodule. It need
// not exist then. The error is fs.ErrNotExist where there is no ".git".
func At(dir string) (string, error) {
	at := filepath.Join(dir, ".git")
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return at, nil
	case !info.Mode().IsRegular() || info.Size() > maxPointer: // reading a pipe might wait for ever
		return "", fmt.Errorf("%s is neither a directory nor a file with a path", at)
	}
	text, err := os.ReadFile(at)
	if err != nil {
		return "", err
	}
	to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if to = strings.TrimSpace(to); !ok || to == "" {
		return "", errors.New(at + " does not say where the git directory is")
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return to, nil
}
