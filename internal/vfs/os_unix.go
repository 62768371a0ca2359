//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

// statPath asks the system directly: it runs before every append, and os.Stat
// would allocate.
func statPath(name string) (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Stat(name, &st)
		if err == nil {
			return infoOf(&st), nil
		}
		if err != unix.EINTR { //nolint:errorlint // a bare error number
			return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
	}
}

func statFile(f *os.File) (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstat(int(f.Fd()), &st)
		if err == nil {
			return infoOf(&st), nil
		}
		if err != unix.EINTR { //nolint:errorlint // a bare error number
			return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
		}
	}
}

func infoOf(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		mode |= fs.ModeDevice
	default:
		mode |= fs.ModeIrregular
	}
	return Info{
		Size:    st.Size,
		Mode:    mode,
		ModTime: time.Unix(st.Mtim.Unix()),
		ID:      FileID{Dev: uint64(st.Dev), Ino: st.Ino}, //nolint:unconvert // int32 on darwin
	}
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	// Some network and user-space file systems cannot sync a directory.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

func tryLock(f *os.File, exclusive bool) (bool, error) {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, unix.EINTR):
		default:
			return false, &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
