//go:build unix

package builtin

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// ownDir reports whether a directory belongs to this user alone.
func ownDir(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && info.Mode().Perm()&0o077 == 0 && int(st.Uid) == os.Getuid()
}

// processGone reports whether there is surely no process with this id.
func processGone(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}
