//go:build !linux

package search

import (
	"io/fs"
	"os"
)

// modTime returns when a regular file, or with follow what a link leads to,
// was changed, in nanoseconds since 1970. ok is false for anything else.
func modTime(path string, follow bool) (ns int64, ok bool) {
	var info fs.FileInfo
	var err error
	if follow {
		info, err = os.Stat(path)
	} else {
		info, err = os.Lstat(path)
	}
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.ModTime().UnixNano(), true
}
