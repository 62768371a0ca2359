//go:build !unix

package builtin

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) bool { return true }

func linkCount(fs.FileInfo) uint64 { return 1 }

// closeForRename closes a file that is about to be renamed over: Windows does
// not rename over an open file.
func closeForRename(f *os.File) { f.Close() }
