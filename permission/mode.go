package permission

import (
	"errors"
	"fmt"
)

// Mode says what happens to calls that no rule decides (P-1).
type Mode string

// The permission modes. ParseMode reads "manual" as ModeDefault.
const (
	ModeDefault     Mode = "default"           // prompts for what nothing allows
	ModeAcceptEdits Mode = "acceptEdits"       // also approves file edits in the working directories
	ModePlan        Mode = "plan"              // edits and shell commands always prompt
	ModeDontAsk     Mode = "dontAsk"           // denies what would prompt
	ModeBypass      Mode = "bypassPermissions" // approves everything that reaches the mode step
	ModeAuto        Mode = "auto"              // needs a classifier; without one it is ModeDefault (P-4)
)

// ParseMode returns the mode of that name; "" and "manual" are ModeDefault.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "", "manual":
		return ModeDefault, nil
	case ModeDefault, ModeAcceptEdits, ModePlan, ModeDontAsk, ModeBypass, ModeAuto:
		return m, nil
	}
	return "", fmt.Errorf("permission mode %q: must be one of default, acceptEdits, plan, dontAsk, bypassPermissions, auto, manual", s)
}

// ErrBypassUnavailable is returned where bypassPermissions is chosen for a
// session that was not started with it available (P-20, P-23).
var ErrBypassUnavailable = errors.New("permission mode \"bypassPermissions\" needs the option AllowDangerouslySkipPermissions (allowDangerouslySkipPermissions) set at the start of the session")

// ErrBypassAsRoot is returned by CheckRoot (P-21).
var ErrBypassAsRoot = errors.New("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")

// CheckRoot refuses to start in bypassPermissions as root or under sudo on
// Linux and macOS, unless IS_SANDBOX is 1 (P-21, P-22). The facts are given by
// the caller: the operating system (runtime.GOOS), the effective user id and
// the environment.
func CheckRoot(m Mode, goos string, euid int, getenv func(string) string) error {
	if m != ModeBypass || (goos != "linux" && goos != "darwin") || getenv("IS_SANDBOX") == "1" {
		return nil
	}
	if euid == 0 || getenv("SUDO_UID") != "" {
		return ErrBypassAsRoot
	}
	return nil
}
