package safeopen

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Dir is an open directory. What is done with names in it is done there, wherever
// it is moved to. Names are single names, no paths.
type Dir struct {
	fd   int
	path string
}

// dirFlags open a directory for what is in it, which needs no right to list it.
const dirFlags = unix.O_PATH | unix.O_DIRECTORY

// Open opens a file. The path is absolute and clean; flags and perm are as for
// [os.OpenFile].
func Open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	fd, err := OpenFD(path, flag|unix.O_NONBLOCK, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Mode returns the type and the permission bits of what a path names, without
// opening it.
func Mode(path string) (fs.FileMode, error) {
	fd, err := OpenFD(path, unix.O_PATH, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return modeOf(st.Mode), nil
}

func modeOf(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	switch bits & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// OpenDir opens a directory. The path is absolute and clean.
func OpenDir(path string) (*Dir, error) {
	fd, err := OpenFD(path, dirFlags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{fd, path}, nil
}

// walk says which directory a path without a link leads to.
func walk(path string) (fs.FileInfo, error) {
	fd, err := OpenFD(path, dirFlags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() //nolint:errcheck // nothing was written
	return f.Stat()
}

// Close closes the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Open opens a file in the directory; a link is not followed.
func (d *Dir) Open(name string, flag int, perm fs.FileMode) (*os.File, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	if err == unix.ELOOP {
		err = ErrMoved
	}
	if err != nil {
		return nil, d.fault("open", name, err)
	}
	return os.NewFile(uintptr(fd), d.path+"/"+name), nil
}

// Lstat looks at a name in the directory.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, d.fault("lstat", name, err)
	}
	f := os.NewFile(uintptr(fd), d.path+"/"+name)
	defer f.Close() //nolint:errcheck // nothing was written
	return f.Stat()
}

// Remove removes a file, or the link that stands there.
func (d *Dir) Remove(name string) error {
	return d.fault("remove", name, unix.Unlinkat(d.fd, name, 0))
}

// Rename gives a file another name in the directory, which it takes from
// whatever has it.
func (d *Dir) Rename(from, to string) error {
	return d.fault("rename", from, unix.Renameat(d.fd, from, d.fd, to))
}

// Link gives a file a further name in the directory, which must be free.
func (d *Dir) Link(from, to string) error {
	return d.fault("link", from, unix.Linkat(d.fd, from, d.fd, to, 0))
}

// makeDir makes a directory in the directory, if it is not there, and opens it.
func (d *Dir) makeDir(name string) (*Dir, error) {
	if err := unix.Mkdirat(d.fd, name, 0o777); err != nil && err != unix.EEXIST {
		return nil, d.fault("mkdir", name, err)
	}
	fd, err := step(d.fd, name, dirFlags, 0)
	if err != nil {
		return nil, d.fault("open", name, err)
	}
	return &Dir{fd, d.path + "/" + name}, nil
}

func (d *Dir) fault(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: d.path + "/" + name, Err: err}
}

// OpenFD is Open for the bare descriptor, with the flags of open(2) as they are.
// It is for those who open very many files.
func OpenFD(path string, flags int, perm fs.FileMode) (int, error) {
	if !hasOpenat2() {
		return openInSteps(path, flags, perm)
	}
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS}
	if flags&unix.O_PATH == 0 {
		how.Flags |= unix.O_LARGEFILE
	}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(perm.Perm())
	}
	fd, err := retry(func() (int, error) { return unix.Openat2(unix.AT_FDCWD, path, &how) })
	if err == unix.ELOOP {
		err = ErrMoved
	}
	return fd, err
}

// hasOpenat2 reports whether the kernel has openat2 (5.6) and lets it be called:
// older sandboxes refuse what they do not know.
var hasOpenat2 = sync.OnceValue(func() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: dirFlags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	return err == nil && unix.Close(fd) == nil
})

// openInSteps is OpenFD without openat2.
func openInSteps(path string, flags int, perm fs.FileMode) (int, error) {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if len(parts) == 0 {
		parts = []string{"."}
	}
	at, err := unix.Open("/", dirFlags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for i, part := range parts {
		f, p := dirFlags, fs.FileMode(0)
		if i == len(parts)-1 {
			f, p = flags, perm
		}
		next, err := step(at, part, f, p)
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// step opens a name in a directory; a link there is ErrMoved.
func step(dir int, name string, flags int, perm fs.FileMode) (int, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	var st unix.Stat_t
	switch {
	case err == unix.ELOOP:
		return -1, ErrMoved
	case err == unix.ENOTDIR: // a link too, where a directory is asked for
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			if typ := st.Mode & unix.S_IFMT; typ == unix.S_IFLNK || typ == unix.S_IFDIR { // or it was one just now
				return -1, ErrMoved
			}
		}
		return -1, err
	case err != nil:
		return -1, err
	case flags&unix.O_PATH == 0 || flags&unix.O_DIRECTORY != 0:
		return fd, nil // O_NOFOLLOW alone refused a link
	}
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = ErrMoved
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		fd, err := call()
		if err != unix.EINTR {
			return fd, err
		}
	}
}
