//go:build unix

package builtin

import (
	"errors"
	"os/exec"
	"syscall"
)

// group is the process group of a command; its id is that of its first
// process.
type group int

// ownGroup puts the command into a session, and so a process group, of its own:
// the whole tree can be killed (T-128), and a program that asks the terminal
// for a password finds none and ends (B-106).
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func groupOf(cmd *exec.Cmd) group { return group(cmd.Process.Pid) }

// terminate asks all processes of the group to end.
func (g group) terminate() { _ = syscall.Kill(-int(g), syscall.SIGTERM) }

// kill ends all processes of the group.
func (g group) kill() { _ = syscall.Kill(-int(g), syscall.SIGKILL) }

// alive reports whether the group has a process.
func (g group) alive() bool { return !errors.Is(syscall.Kill(-int(g), 0), syscall.ESRCH) }

// exitCode returns the code as shells write it: 128 and the signal's number for
// a process that a signal ended.
func exitCode(cmd *exec.Cmd) int {
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return 128 + int(st.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
