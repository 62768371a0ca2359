//go:build unix

package checkpoint

import (
	"io/fs"
	"os"
	"syscall"
)

// openNonblock keeps open(2) from waiting for the other end of a named pipe.
const openNonblock = syscall.O_NONBLOCK

// links is the number of names that a file has.
func links(_ *os.File, info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// keepOwner gives a new file the owner and group of the one that it replaces,
// where they are others and it may be done.
func keepOwner(f *os.File, info fs.FileInfo) {
	want, ok := info.Sys().(*syscall.Stat_t)
	now, err := f.Stat()
	if !ok || err != nil {
		return
	}
	if have, ok := now.Sys().(*syscall.Stat_t); ok && (have.Uid != want.Uid || have.Gid != want.Gid) {
		_ = f.Chown(int(want.Uid), int(want.Gid))
	}
}

func closeEarly(*os.File) {}
