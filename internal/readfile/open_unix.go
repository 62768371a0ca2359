//go:build unix

package readfile

import "syscall"

// Nonblock is a flag of os.OpenFile that keeps it from waiting for the other end
// of a named pipe.
const Nonblock = syscall.O_NONBLOCK
