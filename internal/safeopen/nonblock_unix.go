//go:build unix && !linux

package safeopen

import "syscall"

// nonblock keeps open(2) from waiting for the other end of a named pipe.
const nonblock = syscall.O_NONBLOCK
