//go:build !unix

package builtin

import (
	"os/exec"
	"strconv"
)

// group is the process tree of a command, known by its first process.
type group int

func ownGroup(*exec.Cmd) {}

func groupOf(cmd *exec.Cmd) group { return group(cmd.Process.Pid) }

// terminate does nothing: there is no polite signal for a process tree here.
func (g group) terminate() {}

// kill ends the processes of the tree that are still linked to it.
func (g group) kill() {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(int(g))).Run()
}

// alive always is false: without the first process the tree cannot be found.
func (g group) alive() bool { return false }

func exitCode(cmd *exec.Cmd) int { return cmd.ProcessState.ExitCode() }
