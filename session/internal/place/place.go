// Package place says which directory a session belongs to, for stores that
// keep sessions by their directory.
package place

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// Canonical returns dir as an absolute path in Unicode NFC, with symbolic links
// resolved as far as the path exists, so that a directory that was removed
// keeps its name.
func Canonical(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return norm.NFC.String(resolve(dir))
}

func resolve(path string) string {
	rest := ""
	for at := filepath.Clean(path); ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(at)
		if parent == at {
			return filepath.Clean(path)
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = parent
	}
}

// worktreeTime bounds asking git, which may hang on a network disk.
const worktreeTime = 5 * time.Second

// Worktrees returns the directories of all worktrees of dir's repository.
// Without git or a repository there are none.
func Worktrees(ctx context.Context, dir string) (paths []string) {
	if !inRepository(dir) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, worktreeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "worktree", "list", "--porcelain")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	for field := range strings.Lines(string(out)) {
		if path, ok := strings.CutPrefix(strings.TrimRight(field, "\r\n"), "worktree "); ok {
			paths = append(paths, filepath.FromSlash(path))
		}
	}
	return paths
}

// inRepository saves starting git where there is no repository.
func inRepository(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}
