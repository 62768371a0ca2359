package builtin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/proc"
	"github.com/turnwright/turnwright/internal/safeopen"
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

// VarError says that a variable of the environment has a value that cannot be
// used.
type VarError struct {
	Name   string // of the variable
	Value  string
	Reason string // completes "<Name> …"
}

func (e *VarError) Error() string { return fmt.Sprintf("%s: %q %s", e.Name, e.Value, e.Reason) }

// CheckEnv finds the first variable for Bash whose value cannot be used
// (T-114, T-119), as a *VarError. Whoever makes a session calls it, so that a
// mistake is not found by its absent effect.
func CheckEnv(getenv func(string) string) error {
	for _, v := range []struct{ name, unit string }{
		{"BASH_DEFAULT_TIMEOUT_MS", " of milliseconds"}, {"BASH_MAX_TIMEOUT_MS", " of milliseconds"}, {"BASH_MAX_OUTPUT_LENGTH", " of characters"},
	} {
		value := getenv(v.name)
		if value == "" {
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < 1 {
			return &VarError{v.name, value, "must be a whole number" + v.unit + ", at least 1"}
		}
	}
	for _, name := range []string{"CLAUDE_CODE_SHELL", "CLAUDE_CODE_TMPDIR"} {
		value := getenv(name)
		if value == "" {
			continue
		}
		if name == "CLAUDE_CODE_SHELL" {
			if _, err := exec.LookPath(value); err != nil {
				return &VarError{name, value, "cannot be run: " + safeopen.Cause(err).Error()}
			}
			continue
		}
		if info, err := os.Stat(value); err != nil || !info.IsDir() || !filepath.IsAbs(value) {
			return &VarError{name, value, "must be the absolute path of a directory that exists"}
		}
	}
	return nil
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

// shell is what must be known of a shell to write for it.
type shell struct {
	posix  bool // it knows trap, eval and "."
	limits bool // and ulimit -x
}

func shellOf(path string) shell {
	switch shellName(path) {
	case "bash", "zsh":
		return shell{true, true}
	case "sh", "dash", "ksh", "mksh", "ash":
		return shell{posix: true}
	}
	return shell{}
}

func shellName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }

// script puts around a command what marks its processes, what applies the
// session's variables (T-112), what notes how and in which directory it ended
// (T-109), and the prefix program (T-123). The command stays on the first line,
// so that the shell's messages name its own lines.
func (s shell) script(env *tool.Env, mark proc.Mark, report, command string) string {
	var b strings.Builder
	if file := getenv(env, "CLAUDE_ENV_FILE"); file != "" {
		if !filepath.IsAbs(file) {
			file = filepath.Join(env.Dir, file)
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			b.WriteString(". " + shellQuote(file) + "; ")
		}
	}
	if report == "" {
		b.WriteString(command)
	} else {
		b.WriteString(reported(report, command))
	}
	inner := b.String()
	b.Reset()
	if s.limits {
		b.WriteString(mark.Shell())
	}
	if prefix := getenv(env, "CLAUDE_CODE_SHELL_PREFIX"); prefix != "" {
		inner = prefix + " " + shellQuote(inner)
	}
	return b.String() + inner
}

// reported adds to a command that its shell, when it exits by itself, writes
// the exit code and the directory into a file. A shell that is killed, or
// becomes another program with exec, writes nothing.
func reported(file, command string) string {
	pwd := "pwd -P"
	if runtime.GOOS == "windows" {
		pwd = "pwd -W"
	}
	note := `{ printf '%s\n' "$?"; ` + pwd + `; } 2>/dev/null >|` + shellQuote(file)
	trap := "trap " + shellQuote(note) + " EXIT; "
	if !strings.Contains(command, "trap") {
		return trap + command
	}
	// The command may replace the trap. Then at least its end is noted.
	return trap + "eval " + shellQuote(command) + "; __turnwright_code=$?; (exit $__turnwright_code); " + note + "; exit $__turnwright_code"
}

// shellQuote quotes text for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

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
