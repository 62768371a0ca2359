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

func ownSession(*exec.Cmd) {}

// Alive reports whether the first process runs: without it the tree cannot be
// found here.
func (t *Tree) Alive() bool { return !t.hasExited() }

// terminate does nothing: there is no polite signal for a process tree here.
func (t *Tree) terminate() {}

// kill ends the processes of the tree that are still linked to it.
func (t *Tree) kill() {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(t.cmd.Process.Pid)).Run()
}

func (f *Family) killAll() {
	f.treeMu.Lock()
	defer f.treeMu.Unlock()
	for t := range f.trees {
		t.kill()
	}
}

func exitCode(cmd *exec.Cmd) int { return cmd.ProcessState.ExitCode() }
