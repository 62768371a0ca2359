package turnwright

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/envvar"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/session/file"
)

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// notBuilt returns an error for the first option that is set and whose
// feature does not exist yet.
func (o *Options) notBuilt() error {
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if letter := f.Tag.Get("later"); letter != "" && !v.Field(i).IsZero() {
			return &OptionError{Option: f.Name, Letter: letter}
		}
	}
	return nil
}

// limits checks the two limits; getenv supplies the cap when none is passed (L-34).
func (o *Options) limits(getenv func(string) string) (maxTurns *int, err error) {
	if o.MaxTurns != nil && *o.MaxTurns < 0 {
		return nil, &OptionError{Option: "MaxTurns", Value: strconv.Itoa(*o.MaxTurns), Reason: "must be 0 or more, or nil for no cap"}
	}
	if b := o.MaxBudgetUSD; b != nil && (!(*b > 0) || math.IsInf(*b, 0)) {
		return nil, &OptionError{Option: "MaxBudgetUSD", Value: strconv.FormatFloat(*b, 'g', -1, 64), Reason: "must be a positive number of dollars, or nil for no limit"}
	}
	if o.MaxTurns != nil {
		return o.MaxTurns, nil
	}
	env := getenv("CLAUDE_CODE_MAX_TURNS")
	if env == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(env)
	if err != nil || n < 1 {
		return nil, &OptionError{Option: "CLAUDE_CODE_MAX_TURNS", Value: strconv.Quote(env), Reason: "must be a whole number of at least 1"}
	}
	return &n, nil
}

// workingDir returns the absolute working directory (O-70).
func (o *Options) workingDir() (string, error) {
	dir := o.CWD
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return "", &OptionError{Option: "CWD", Reason: err.Error()}
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", &OptionError{Option: "CWD", Value: strconv.Quote(dir), Reason: err.Error()}
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		return "", &OptionError{Option: "CWD", Value: strconv.Quote(dir), Reason: "is not an existing directory"}
	}
	return abs, nil
}

// addDirs returns the absolute paths of the additional working directories
// (P-100).
func (o *Options) addDirs(cwd string) ([]string, error) {
	var dirs []string
	for _, dir := range o.AddDirs {
		abs := dir
		if dir != "" && !filepath.IsAbs(dir) {
			abs = filepath.Join(cwd, dir)
		}
		err := errors.New("is empty")
		if dir != "" {
			err = permission.CheckDir(abs)
		}
		if err != nil {
			return nil, &OptionError{Option: "AddDirs", Value: strconv.Quote(dir), Reason: err.Error(), Err: err}
		}
		dirs = append(dirs, filepath.Clean(abs))
	}
	return dirs, nil
}

// homeDir is the home directory of the session's environment; "": not known.
func homeDir(getenv func(string) string) string {
	key := "HOME"
	if runtime.GOOS == "windows" {
		key = "USERPROFILE"
	}
	if dir := getenv(key); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// configHome is the configuration home (S-10).
func configHome(getenv func(string) string) (string, error) {
	st, err := file.New(file.Config{Getenv: getenv})
	if err != nil {
		return "", err
	}
	return st.Dir(), nil
}

// environ checks Options.Env and returns look-up in the environment that the
// session is started with, without what settings add to it (O-72).
func (o *Options) environ() (getenv func(string) string, err error) {
	for k, v := range o.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return nil, &OptionError{Option: "Env", Value: strconv.Quote(k), Reason: "is not a valid environment variable"}
		}
	}
	return func(k string) string {
		if v, ok := o.Env[k]; ok || o.ReplaceEnv {
			return v
		}
		return os.Getenv(k)
	}, nil
}

// mode checks the permission mode (P-1, P-4, P-20, P-21).
func (o *Options) mode(getenv func(string) string) (permission.Mode, error) {
	if o.PermissionMode == "" {
		return permission.ModeDefault, nil
	}
	m, err := permission.ParseMode(string(o.PermissionMode))
	if err != nil {
		return "", &OptionError{Option: "PermissionMode", Value: strconv.Quote(string(o.PermissionMode)), Reason: err.Error()}
	}
	return m, o.bypass(m, getenv)
}

// bypass refuses the mode that skips permissions where it must not be used.
func (o *Options) bypass(m permission.Mode, getenv func(string) string) error {
	if m != permission.ModeBypass {
		return nil
	}
	if !o.AllowDangerouslySkipPermissions {
		return &OptionError{Option: "PermissionMode", Value: string(m), Reason: "needs AllowDangerouslySkipPermissions"}
	}
	if err := permission.CheckRoot(m, runtime.GOOS, os.Geteuid(), getenv); err != nil {
		return &OptionError{Option: "PermissionMode", Value: string(m), Reason: err.Error(), Err: err}
	}
	return nil
}

// maxMillis is the longest time that a variable may ask for: what a
// time.Duration can hold.
const maxMillis = int64(math.MaxInt64 / time.Millisecond)

// envMillis reads a number of milliseconds; set tells 0 from an unset variable.
func envMillis(getenv func(string) string, name string, max int64) (ms int64, set bool, err error) {
	v := getenv(name)
	if v == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > max {
		return 0, false, &OptionError{Option: name, Value: strconv.Quote(v), Reason: fmt.Sprintf("must be a whole number of milliseconds from 0 to %d", max)}
	}
	return n, true, nil
}

// checkSimple checks the options that are one number of a known range.
func (o *Options) checkSimple() error {
	if o.Durability != Relaxed && o.Durability != Strict {
		return &OptionError{Option: "Durability", Value: strconv.Itoa(int(o.Durability)), Reason: "must be Relaxed or Strict"}
	}
	if o.Sync < SyncTurn || o.Sync > SyncNever {
		return &OptionError{Option: "Sync", Value: strconv.Itoa(int(o.Sync)), Reason: "must be SyncTurn, SyncAlways or SyncNever"}
	}
	switch o.ReadBeforeEdit {
	case "", ReadStrict, ReadRelaxed:
	default:
		return &OptionError{Option: "ReadBeforeEdit", Value: strconv.Quote(string(o.ReadBeforeEdit)), Reason: "must be strict or relaxed"}
	}
	if o.QueueBytes < 0 {
		return &OptionError{Option: "QueueBytes", Value: strconv.Itoa(o.QueueBytes), Reason: "must be 0 or more bytes"}
	}
	if o.MaxBufferSize < 0 {
		return &OptionError{Option: "MaxBufferSize", Value: strconv.Itoa(o.MaxBufferSize), Reason: "must be 0 or more bytes"}
	}
	return o.checkInstructions()
}

// checkBetas refuses what no header may hold.
func checkBetas(betas []string) error {
	for _, b := range betas {
		if strings.TrimSpace(b) != b || b == "" || strings.ContainsFunc(b, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }) {
			return &OptionError{Option: "Betas", Value: strconv.Quote(b), Reason: "is not the name of a beta"}
		}
	}
	return nil
}

// bare reports whether nothing counts that the machine adds (O-90).
func (o *Options) bare(getenv func(string) string) bool {
	return o.Bare || envvar.On(getenv("CLAUDE_CODE_SIMPLE"))
}
