//go:build unix

package builtin

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives path the owner and group in info. Only the superuser may
// always do so; for others the file becomes theirs, as with most editors.
func keepOwner(path string, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(path, int(st.Uid), int(st.Gid))
	}
}
