package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	"github.com/turnwright/turnwright/internal/safeopen"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// cwdKey is where the working directory that shell commands left is kept: the
// absolute path as a JSON string.
const cwdKey = "bash.cwd"

// currentDir is the directory that relative paths start from: the one that
// shell commands went to, else the session's.
func currentDir(env *tool.Env) string {
	var dir string
	if json.Unmarshal(env.State.Get(cwdKey), &dir) == nil && filepath.IsAbs(dir) {
		return dir
	}
	return env.Dir
}

// absolute expands "~" and makes a path relative to the current directory
// absolute (T-22). It touches no file.
func absolute(env *tool.Env, field, path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%s: is empty", field)
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%s: %q contains a NUL byte", field, path)
	}
	path = filepath.FromSlash(path)
	if path == "~" || strings.HasPrefix(path, "~"+string(filepath.Separator)) {
		home := homeOf(env)
		if home == "" {
			return "", fmt.Errorf("%s: %q: the home directory is not known", field, path)
		}
		path = filepath.Join(home, path[1:])
	}
	if !filepath.IsAbs(path) {
		dir := currentDir(env)
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s: %q is relative and the session has no absolute directory", field, path)
		}
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path), nil
}

func homeOf(env *tool.Env) string {
	key := "HOME"
	if runtime.GOOS == "windows" {
		key = "USERPROFILE"
	}
	return getenv(env, key)
}

func getenv(env *tool.Env, key string) string {
	if env == nil || env.Getenv == nil {
		return ""
	}
	return env.Getenv(key)
}

// normalizePath replaces the path in a top-level string field of input by its
// absolute form. An input that is already so is returned as it is.
func normalizePath(env *tool.Env, input json.RawMessage, field string) (json.RawMessage, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(input, &doc); err != nil {
		return nil, err
	}
	var path string
	if err := json.Unmarshal(doc[field], &path); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	abs, err := absolute(env, field, path)
	if err != nil {
		return nil, err
	}
	if abs == path {
		return input, nil
	}
	if doc[field], err = message.Encode(abs); err != nil {
		return nil, err
	}
	return message.Encode(doc)
}

// pathAccess returns the access of a call to the path in its input. A path
// that is still relative is an error: it cannot be judged.
func pathAccess(kind permission.Kind, path string) ([]permission.Access, error) {
	a, err := permission.NewPathAccess(kind, path)
	if err != nil {
		return nil, fmt.Errorf("file_path: %w", err)
	}
	return []permission.Access{a}, nil
}

// place is where a call works: the path as it was given, and the same with
// every link followed.
type place struct{ path, target string }

// locate finds the place that a field of the input names.
func locate(c *tool.Call, field, given string) (place, error) {
	path, err := absolute(c.Env, field, given)
	if err != nil {
		return place{}, err
	}
	target, err := resolve(c, path)
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", field, err)
	}
	return place{path, target}, nil
}

// resolve returns where an absolute path led when the call was approved, or where
// it leads now, if nobody was asked. What is opened there must be reached without
// a link, see safeopen.
func resolve(c *tool.Call, path string) (string, error) {
	for _, a := range c.Approved {
		if a.Written == path && (a.Kind == permission.Read || a.Kind == permission.Write) {
			return a.Target, nil
		}
	}
	return permission.Resolve(path)
}

// errMissing is wrapped where a file does not exist.
var errMissing = fs.ErrNotExist

// openRegular opens a regular file for reading; its path has no link in it. A
// directory, a pipe, a device or a socket is refused at once, without opening it
// where that could block (T-50, B-093).
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	// A quick look, by whatever way the path leads now; only what is said of
	// something else than a file must be true of the approved one.
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		mode, err := safeopen.Mode(path)
		if err != nil {
			return nil, nil, describeMissing(path, path, err)
		}
		if err := checkRegular(path, mode); err != nil {
			return nil, nil, err
		}
	}
	// The file may have been replaced since: opening does not wait for the
	// other end of a pipe, and what was opened is looked at once more.
	f, err := safeopen.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, describeMissing(path, path, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(path, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func checkRegular(path string, m fs.FileMode) error {
	what := ""
	switch {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return fmt.Errorf("%s is a directory, not a file; list it with the Bash tool, for example: ls -la", path)
	case m&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	case m&fs.ModeDevice != 0:
		what = "a device"
	default:
		what = "a special file"
	}
	return fmt.Errorf("%s is %s, not a regular file; it was not opened", path, what)
}

// describeMissing names the path and, for a missing file, up to five siblings
// with a similar name (T-51). real is the path without a link in it.
func describeMissing(path, real string, err error) error {
	switch {
	case errors.Is(err, safeopen.ErrMoved):
		return fmt.Errorf("%s was not opened: %w", path, safeopen.ErrMoved)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be read: permission denied", path)
	case !errors.Is(err, fs.ErrNotExist):
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	text := ""
	dir := filepath.Dir(path)
	switch similar, dirErr := similarNames(filepath.Dir(real), filepath.Base(real)); {
	case errors.Is(dirErr, fs.ErrNotExist):
		text = fmt.Sprintf("; its directory %s does not exist either", dir)
	case len(similar) > 0:
		text = "; similar names there: " + strings.Join(similar, ", ")
	}
	return fmt.Errorf("%s %w%s", path, doesNotExist{}, text)
}

// doesNotExist reads well in a sentence and is fs.ErrNotExist.
type doesNotExist struct{}

func (doesNotExist) Error() string        { return "does not exist" }
func (doesNotExist) Is(target error) bool { return target == errMissing }

// maxSiblings bounds the directory entries looked at for similar names.
const maxSiblings = 10_000

func similarNames(dir, name string) ([]string, error) {
	d, err := safeopen.Open(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxSiblings)
	if err != nil && len(names) == 0 {
		return nil, nil // empty, or no directory: nothing to suggest
	}
	type scored struct {
		name string
		dist int
	}
	var near []scored
	want := strings.ToLower(name)
	stem := strings.TrimSuffix(want, filepath.Ext(want))
	for _, n := range names {
		have := strings.ToLower(n)
		d := editDistance(want, have, 1+len(want)/3)
		switch {
		case d >= 0:
		case stem != "" && strings.TrimSuffix(have, filepath.Ext(have)) == stem: // another extension
			d = 1 + len(want)/3
		default:
			continue
		}
		near = append(near, scored{n, d})
	}
	sort.Slice(near, func(i, j int) bool {
		if near[i].dist != near[j].dist {
			return near[i].dist < near[j].dist
		}
		return near[i].name < near[j].name
	})
	var out []string
	for _, s := range near[:min(5, len(near))] {
		out = append(out, strings.ToValidUTF8(s.name, "\uFFFD"))
	}
	return out, nil
}

// editDistance returns the number of insertions, deletions and replacements
// between a and b, or -1 when it is more than limit.
func editDistance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return -1
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diag := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diag
			if x[i] != y[j] {
				cost = 1 + min(diag, row[j], row[j+1])
			}
			diag, row[j+1] = row[j+1], cost
		}
	}
	if row[len(y)] > limit {
		return -1
	}
	return row[len(y)]
}
