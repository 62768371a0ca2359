package turnwright

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/gitdir"
)

// gitDir returns the git directory of the repository that dir is in; "" when it
// is in none.
func gitDir(dir string) string {
	for {
		at, err := gitdir.At(dir)
		if err == nil {
			return at
		}
		parent := filepath.Dir(dir)
		if parent == dir || !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		dir = parent
	}
}

// readHead reads a HEAD file, which holds one line. Reading what is no regular
// file might wait for ever.
func readHead(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return nil, cmp.Or(err, fs.ErrInvalid)
	}
	return os.ReadFile(path)
}

// gitBranch is the branch that is checked out in dir's repository, "HEAD" when
// none is, as git names it; "" outside a repository (K-309).
func gitBranch(dir string) string {
	at := gitDir(dir)
	if at == "" {
		return ""
	}
	head, err := readHead(filepath.Join(at, "HEAD"))
	text := strings.TrimSpace(string(head))
	if err != nil || text == "" || !utf8.ValidString(text) {
		return ""
	}
	if branch, ok := strings.CutPrefix(text, "ref: refs/heads/"); ok {
		return branch
	}
	return "HEAD"
}
