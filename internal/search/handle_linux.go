package search

import (
	"io"
	"syscall"
)

// handle is a file open for reading. On Linux it is the bare descriptor: a
// search opens very many files, and each one read in one go never waits.
type handle int

// openFile opens a file without waiting for the other end of a pipe; a link is
// followed only when it was named by the caller.
func openFile(path string, named bool) (handle, error) {
	flags := syscall.O_RDONLY | syscall.O_CLOEXEC | syscall.O_NONBLOCK
	if !named {
		flags |= syscall.O_NOFOLLOW
	}
	fd, err := retry(func() (int, error) { return syscall.Open(path, flags, 0) })
	return handle(fd), err
}

func (h handle) Read(p []byte) (int, error) {
	n, err := retry(func() (int, error) { return syscall.Read(int(h), p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (h handle) close() { syscall.Close(int(h)) }
