package file

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// symbol gives the common errors of the disk their usual names, so that a
// warning reads the same on all systems.
func symbol(no syscall.Errno) string {
	switch no {
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, syscall.ENOSPC:
		return "ENOSPC"
	case windows.ERROR_WRITE_PROTECT, syscall.EROFS:
		return "EROFS"
	case windows.ERROR_ACCESS_DENIED, windows.ERROR_SHARING_VIOLATION, syscall.EACCES:
		return "EACCES"
	case windows.ERROR_FILE_NOT_FOUND, windows.ERROR_PATH_NOT_FOUND:
		return "ENOENT"
	case windows.ERROR_DISK_QUOTA_EXCEEDED, syscall.EDQUOT:
		return "EDQUOT"
	case windows.ERROR_IO_DEVICE, windows.ERROR_CRC, syscall.EIO:
		return "EIO"
	case windows.ERROR_TOO_MANY_OPEN_FILES, syscall.EMFILE:
		return "EMFILE"
	}
	return ""
}

func linkless(err error) bool {
	switch errnoOf(err) {
	case windows.ERROR_INVALID_FUNCTION, windows.ERROR_NOT_SUPPORTED, windows.ERROR_TOO_MANY_LINKS, syscall.EPERM:
		return true
	}
	return false
}

func flockless(err error) bool {
	switch errnoOf(err) {
	case windows.ERROR_INVALID_FUNCTION, windows.ERROR_NOT_SUPPORTED:
		return true
	}
	return false
}
