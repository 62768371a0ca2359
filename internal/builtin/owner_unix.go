//go:build unix

package builtin

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and group in info and reports whether it now
// has them. Only the superuser may give a file away.
func keepOwner(f *os.File, info fs.FileInfo) bool {
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	now, err := f.Stat()
	if err != nil {
		return false
	}
	if have, ok := now.Sys().(*syscall.Stat_t); ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return true
	}
	return f.Chown(int(want.Uid), int(want.Gid)) == nil
}

// linkCount is the number of names that a file has.
func linkCount(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

func closeForRename(*os.File) {}
