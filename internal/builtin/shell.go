package builtin

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/tool"
)

const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
)

// commandTimeout returns how long a command may run (T-114): ms as asked for,
// 0 for the default, never more than the ceiling.
func commandTimeout(env *tool.Env, ms float64) time.Duration {
	def := envMillis(env, "BASH_DEFAULT_TIMEOUT_MS", defaultTimeout)
	ceiling := max(def, envMillis(env, "BASH_MAX_TIMEOUT_MS", maxTimeout))
	switch {
	case ms <= 0:
		return def
	case ms >= float64(ceiling/time.Millisecond):
		return ceiling
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func envMillis(env *tool.Env, key string, def time.Duration) time.Duration {
	n, err := strconv.ParseInt(getenv(env, key), 10, 64)
	if err != nil || n <= 0 {
		return def
	}
	return time.Duration(min(n, int64(1<<53)/int64(time.Millisecond))) * time.Millisecond
}

// readBack returns how many characters of output are read back (T-119).
func readBack(env *tool.Env) int {
	n, err := strconv.Atoi(getenv(env, "BASH_MAX_OUTPUT_LENGTH"))
	if err != nil || n <= 0 {
		return 30_000
	}
	return min(n, 150_000)
}

// findShell returns the shell for commands (T-108): CLAUDE_CODE_SHELL, else
// $SHELL where that is bash or zsh, else the first of zsh and bash found.
func findShell(env *tool.Env) (string, error) {
	if s := getenv(env, "CLAUDE_CODE_SHELL"); s != "" {
		path, err := exec.LookPath(s)
		if err != nil {
			return "", fmt.Errorf("CLAUDE_CODE_SHELL is %q: %w", s, err)
		}
		return path, nil
	}
	names := []string{"zsh", "bash"}
	if s := getenv(env, "SHELL"); s != "" {
		if base := strings.TrimSuffix(filepath.Base(s), ".exe"); base == "bash" || base == "zsh" {
			names = append([]string{s}, names...)
		}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no shell found: neither zsh nor bash is in PATH; set CLAUDE_CODE_SHELL to the path of one")
}

// childEnv is the environment of a command (T-122).
func childEnv(c *tool.Call) []string {
	var env []string
	if c.Env.Environ != nil {
		env = c.Env.Environ()
	}
	return append(env[:len(env):len(env)],
		"CLAUDECODE=1",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ID="+c.Env.SessionID,
		"TURNWRIGHT_TOOL_CALL_KEY="+c.Key,
		"PWD="+c.Env.Dir,
	)
}

// quietOne lists programs whose exit code 1 is an answer and no failure
// (T-115), with what it means.
var quietOne = map[string]string{
	"grep": "No matches found", "rg": "No matches found", "egrep": "No matches found", "fgrep": "No matches found",
	"find": "Some directories were not accessible",
	"diff": "Files differ", "git diff": "Files differ", "git grep": "No matches found",
	"test": "Condition is false", "[": "Condition is false",
}

// meaningOfOne returns what exit code 1 of the command means where that is no
// failure. It judges only commands that it can read without a shell's parser:
// the last command of a pipeline or list gives the exit code. With && or ||,
// quotes that do not end, or substitutions, the code counts as a failure.
func meaningOfOne(command string) (string, bool) {
	last, ok := lastCommand(command)
	if !ok {
		return "", false
	}
	words := strings.Fields(last)
	for len(words) > 0 && isAssignment(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return "", false
	}
	name := filepath.Base(words[0])
	if name == "git" && len(words) > 1 {
		name += " " + words[1]
	}
	meaning, ok := quietOne[name]
	return meaning, ok
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	if !ok || name == "" {
		return false
	}
	for i, c := range name {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// lastCommand returns the text after the last ";", "|" or line break outside
// quotes; ok is false when the command is more than a plain list of pipelines.
func lastCommand(s string) (last string, ok bool) {
	s = strings.TrimRight(s, " \t\n;")
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\'', '"':
			quote := s[i]
			for i++; i < len(s) && s[i] != quote; i++ {
				if quote == '"' && s[i] == '\\' {
					i++
				}
			}
			if i >= len(s) {
				return "", false
			}
		case '`', '(', ')', '{', '}', '#':
			return "", false
		case '<':
			if strings.HasPrefix(s[i:], "<<") {
				return "", false
			}
		case '&':
			if i > 0 && s[i-1] == '>' || i+1 < len(s) && s[i+1] == '>' { // 2>&1, &>file
				continue
			}
			return "", false
		case '|':
			if i+1 < len(s) && s[i+1] == '|' {
				return "", false
			}
			start = i + 1
		case ';', '\n':
			start = i + 1
		}
	}
	return s[start:], true
}

// spelledDuration writes a duration as "2m 0s" or "30s" (T-133).
func spelledDuration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	d = d.Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0:
		return fmt.Sprintf("%dh %dm %ds", h, m, s)
	case m > 0:
		return fmt.Sprintf("%dm %ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}
