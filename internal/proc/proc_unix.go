//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

func exitCode(cmd *exec.Cmd) int {
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return 128 + int(st.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
