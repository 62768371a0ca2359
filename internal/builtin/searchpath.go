package builtin

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/internal/safeopen"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// What Glob and Grep share: where a search begins and how files are named.

// searchRoot returns the absolute form of the path field of a search, which
// need not be there: then it is the session's directory.
func searchRoot(env *tool.Env, path string) (string, error) {
	if path == "" {
		path = "."
	}
	return absolute(env, "path", path)
}

// setFields replaces string fields of an input. An input that has them already
// is returned as it is.
func setFields(input json.RawMessage, fields map[string]string) (json.RawMessage, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(input, &doc); err != nil {
		return nil, err
	}
	changed := false
	for name, value := range fields {
		var old string
		if raw, ok := doc[name]; ok && json.Unmarshal(raw, &old) == nil && old == value {
			continue
		}
		raw, err := message.Encode(value)
		if err != nil {
			return nil, err
		}
		doc[name], changed = raw, true
	}
	if !changed {
		return input, nil
	}
	return message.Encode(doc)
}

// searchAccess is the access of a search to where it begins.
func searchAccess(path string) ([]permission.Access, error) {
	a, err := permission.NewPathAccess(permission.Read, path)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	return []permission.Access{a}, nil
}

// skipDenied returns what tells a search which files deny rules cover (T-95):
// by the name that they are found under, and by their real one where the root
// was reached through a link; real is the root without one. It is nil when no rule can cover any.
func skipDenied(env *tool.Env, root, real string) func(path string) bool {
	denied := env.ReadDenied
	if denied == nil || real == root {
		return denied
	}
	return func(path string) bool {
		if denied(path) {
			return true
		}
		rel, err := filepath.Rel(root, path)
		return err == nil && denied(filepath.Join(real, rel))
	}
}

// namer returns how files are called in results: relative to the session's
// directory inside of it, else by their absolute path.
func namer(env *tool.Env) func(path string) string {
	dir := env.Dir
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return func(path string) string {
		if rel, ok := strings.CutPrefix(path, dir); ok && rel != "" {
			return rel
		}
		return path
	}
}

// statRoot looks at where a search begins; real is the path without a link in it.
// A missing path or a special file is an error that says so.
func statRoot(path, real string) (dir bool, err error) {
	mode, err := safeopen.Mode(real)
	switch {
	case err != nil:
		return false, describeMissing(path, real, err)
	case mode.IsDir():
		return true, nil
	}
	return false, checkRegular(path, mode)
}

func quantity(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// switchedOff reports whether a variable that is on by default is set to off.
func switchedOff(env *tool.Env, key string) bool {
	switch strings.ToLower(strings.TrimSpace(getenv(env, key))) {
	case "false", "0", "no", "off":
		return true
	}
	return false
}
