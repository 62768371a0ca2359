package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/turnwright/turnwright/tool"
)

// tempDir is the session's directory for outputs and reports. It is made when
// it is first needed:
//
//	<temporary directory>/turnwright-<user id>-<session id>/<process id>-<random>
//
// The outer directory can be found again by another process that takes the
// session up after a crash (Recover); the inner one belongs to this Bash alone.
type tempDir struct {
	mu     sync.Mutex
	outer  string // the outer one, when it is known to be used
	dir    string // the inner one; "" before it is made
	closed bool
}

// outerDir returns the name that the session's outer directory has.
func outerDir(base string, env *tool.Env) string {
	if v := getenv(env, "CLAUDE_CODE_TMPDIR"); v != "" {
		base = v
	}
	if base == "" {
		base = os.TempDir()
	}
	return filepath.Join(base, "turnwright-"+strconv.Itoa(os.Getuid())+"-"+safeName(env.SessionID))
}

// path returns the inner directory.
func (t *tempDir) path(base string, env *tool.Env) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return "", errors.New("the session is closed")
	}
	if t.dir != "" {
		if _, err := os.Lstat(t.dir); err == nil {
			return t.dir, nil
		}
		// Somebody has cleaned up the temporary files.
	}
	outer := outerDir(base, env)
	pattern := strconv.Itoa(os.Getpid()) + "-*"
	var err error
	for range 10 { // another Bash of the session may just be removing it
		if err = os.Mkdir(outer, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			break
		}
		if info, e := os.Lstat(outer); e == nil && !ownDir(info) {
			// Somebody else's, in a directory that all may write to.
			t.dir, err = os.MkdirTemp(filepath.Dir(outer), filepath.Base(outer)+"-*")
			break
		}
		t.outer = outer
		if t.dir, err = os.MkdirTemp(outer, pattern); err == nil || !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err != nil {
		t.dir = ""
		return "", fmt.Errorf("no directory for temporary files: %w", err)
	}
	return t.dir, nil
}

// report makes the empty file that the shell of a call leaves its ending in.
// Without one ("") the command runs all the same; its directory is not kept.
func (t *tempDir) report(base string, c *tool.Call) string {
	dir, err := t.path(base, c.Env)
	if err != nil {
		return ""
	}
	f, err := os.CreateTemp(dir, reportName(c)+"*")
	if err != nil {
		return ""
	}
	f.Close()
	return f.Name()
}

// reportName is the beginning of the name of a call's report.
func reportName(c *tool.Call) string {
	sum := sha256.Sum256([]byte(c.Key))
	return "call-" + hex.EncodeToString(sum[:8]) + "-"
}

// parseReport reads "<code>\n<directory>\n". A file that is cut short is none:
// the shell is still writing, or was killed.
func parseReport(s string) (code int, dir string, ok bool) {
	first, rest, ok := strings.Cut(s, "\n")
	if !ok {
		return 0, "", false
	}
	code, err := strconv.Atoi(first)
	if err != nil || code < 0 || code > 255 {
		return 0, "", false
	}
	dir, ok = strings.CutSuffix(rest, "\n")
	if !ok || !filepath.IsAbs(dir) {
		dir = ""
	}
	return code, filepath.FromSlash(dir), true
}

// found notes that another process may have left something in a directory.
func (t *tempDir) found(outer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if info, err := os.Lstat(outer); err == nil && ownDir(info) {
		t.outer = outer
	}
}

// remove removes everything, also what processes that are gone have left in
// the session's directory.
func (t *tempDir) remove() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.dir != "" {
		err = os.RemoveAll(t.dir)
	}
	if t.outer != "" {
		others, _ := os.ReadDir(t.outer)
		for _, o := range others {
			if pid, _, ok := strings.Cut(o.Name(), "-"); ok && processGone(pid) {
				_ = os.RemoveAll(filepath.Join(t.outer, o.Name()))
			}
		}
		_ = os.Remove(t.outer) // fails while another Bash uses it
	}
	t.dir, t.outer = "", ""
	return err
}
