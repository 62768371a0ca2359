//go:build !unix

package proc

import (
	"os/exec"
	"strconv"
)

const needsWatch = false

// Shell returns nothing: there is no mark here.
func (Mark) Shell() string { return "" }

func setMark(int, Mark) bool { return false }

func markChildren(int, Mark) {}

// EndLeft does nothing: such processes are not found here.
func EndLeft(string) {}

// processes are none: they cannot be listed here.
type processes struct{}

func (processes) alive() bool { return false }

func ownSession(*exec.Cmd) {}

// Alive reports whether the first process runs: without it the tree cannot be
// found here.
func (t *Tree) Alive() bool { return !t.hasExited() }

// terminate does nothing: there is no polite signal for a process tree here.
func (t *Tree) terminate() processes { return processes{} }

// kill ends the processes of the tree that are still linked to it.
func (t *Tree) kill(processes) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(t.cmd.Process.Pid)).Run()
}

func (f *Family) killAll() {
	f.treeMu.Lock()
	defer f.treeMu.Unlock()
	for t := range f.trees {
		t.kill(processes{})
	}
}

func exitCode(cmd *exec.Cmd) int { return cmd.ProcessState.ExitCode() }
