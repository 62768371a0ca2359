//go:build unix

package file

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func symbol(no syscall.Errno) string { return unix.ErrnoName(no) }

// linkless reports that the file system has no hard links, or no more of them
// for this file.
func linkless(err error) bool {
	switch errnoOf(err) {
	case unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EMLINK, unix.EXDEV:
		return true
	}
	return false
}

// flockless reports that the file system has no advisory locks.
func flockless(err error) bool {
	switch errnoOf(err) {
	case unix.EOPNOTSUPP, unix.ENOSYS, unix.ENOLCK, unix.EINVAL:
		return true
	}
	return false
}
