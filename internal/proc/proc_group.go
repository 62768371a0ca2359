//go:build unix && !linux

package proc

import (
	"errors"
	"os/exec"
	"syscall"
)

// needsWatch is true: the number of a group is used again.
const needsWatch = true

// Shell returns nothing: there is no mark here.
func (Mark) Shell() string { return "" }

func setMark(int, Mark) bool { return false }

func markChildren(int, Mark) {}

// EndLeft does nothing: such processes are not found here.
func EndLeft(string) {}

// processes are none: they cannot be listed here.
type processes struct{}

func (processes) alive() bool { return false }

func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Alive reports whether the process group of the tree has a process.
func (t *Tree) Alive() bool {
	return !errors.Is(syscall.Kill(-t.cmd.Process.Pid, 0), syscall.ESRCH)
}

func (t *Tree) terminate() processes {
	_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGTERM)
	return processes{}
}

func (t *Tree) kill(processes) { _ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL) }

func (f *Family) killAll() {
	f.treeMu.Lock()
	defer f.treeMu.Unlock()
	for t := range f.trees {
		t.kill(processes{})
	}
}
