//go:build unix

package instructions

import "syscall"

// openNonblock keeps open(2) from waiting for the other end of a named pipe.
const openNonblock = syscall.O_NONBLOCK
