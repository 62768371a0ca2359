package checkpoint

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const openNonblock = 0

// links is the number of names that a file has.
func links(f *os.File, _ fs.FileInfo) uint64 {
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info) != nil {
		return 1
	}
	return uint64(info.NumberOfLinks)
}

func keepOwner(*os.File, fs.FileInfo) {}

// closeEarly closes a file that is about to be renamed over or removed: Windows
// does neither with an open one.
func closeEarly(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}
