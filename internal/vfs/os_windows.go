package vfs

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// openFile shares deletion, which os.OpenFile does not on every version: the
// official clients must be able to delete a session that is open here (K-393),
// and a lock is a second name of an open file.
func openFile(name string, flag int, _ fs.FileMode) (*os.File, error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var access uint32
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_RDONLY:
		access = windows.GENERIC_READ
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE
	case os.O_RDWR:
		access = windows.GENERIC_READ | windows.GENERIC_WRITE
	}
	if flag&os.O_APPEND != 0 {
		access &^= windows.GENERIC_WRITE
		access |= windows.FILE_APPEND_DATA | windows.FILE_WRITE_ATTRIBUTES | windows.SYNCHRONIZE
	}
	var create uint32 = windows.OPEN_EXISTING
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		create = windows.CREATE_NEW
	case flag&(os.O_CREATE|os.O_TRUNC) == os.O_CREATE|os.O_TRUNC:
		create = windows.CREATE_ALWAYS
	case flag&os.O_CREATE != 0:
		create = windows.OPEN_ALWAYS
	case flag&os.O_TRUNC != 0:
		create = windows.TRUNCATE_EXISTING
	}
	share := uint32(windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE)
	h, err := windows.CreateFile(p, access, share, nil, create, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

func statPath(name string) (Info, error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	share := uint32(windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE)
	h, err := windows.CreateFile(p, 0, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	defer windows.CloseHandle(h) //nolint:errcheck // nothing was written
	return infoOf(h, name)
}

func statFile(f *os.File) (Info, error) { return infoOf(windows.Handle(f.Fd()), f.Name()) }

func infoOf(h windows.Handle, name string) (Info, error) {
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &d); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	mode := fs.FileMode(0o600)
	if d.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0 {
		mode = fs.ModeDir | 0o700
	}
	return Info{
		Size:    int64(d.FileSizeHigh)<<32 | int64(d.FileSizeLow),
		Mode:    mode,
		ModTime: time.Unix(0, d.LastWriteTime.Nanoseconds()),
		ID: FileID{
			Dev: uint64(d.VolumeSerialNumber),
			Ino: uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow),
		},
	}, nil
}

// syncDir does nothing: Windows writes directory entries with the file.
func syncDir(string) error { return nil }

// tryLock locks one byte far behind the contents: locks are mandatory here,
// and others must be able to read who holds the file.
func tryLock(f *os.File, exclusive bool) (bool, error) {
	var how uint32 = windows.LOCKFILE_FAIL_IMMEDIATELY
	if exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := &windows.Overlapped{OffsetHigh: 0x40000000}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, at)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
}
