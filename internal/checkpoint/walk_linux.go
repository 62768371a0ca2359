package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// walk goes down to a directory, link by link refused, and says which it is. A
// directory on the way need not be readable, only passable.
func walk(dir string) (fs.FileInfo, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Open("/", flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" {
			continue
		}
		next, err := unix.Openat(fd, part, flags, 0)
		_ = unix.Close(fd)
		switch {
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP): // a link, or something else
			return nil, errMoved
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
		}
		fd = next
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close() //nolint:errcheck // nothing was written
	return f.Stat()
}
