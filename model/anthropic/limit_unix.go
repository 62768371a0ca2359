//go:build unix

package anthropic

import "syscall"

// descriptorLimit returns the process's limit of open files, 0 when unknown.
func descriptorLimit() uint64 {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return uint64(r.Cur) //nolint:unconvert // signed on some systems
}
