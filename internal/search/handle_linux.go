package search

import (
	"io"
	"syscall"

	"github.com/turnwright/turnwright/internal/safeopen"
)

// handle is a file open for reading. On Linux it is the bare descriptor: a
// search opens very many files, and each one read in one go never waits.
type handle int

// openFile opens a file without waiting for the other end of a pipe. No link is
// followed, not in its directories either: what was a directory when it was listed
// may be one by now.
func openFile(path string) (handle, error) {
	fd, err := safeopen.OpenFD(path, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
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
