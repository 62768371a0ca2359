package search

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"

	"github.com/turnwright/turnwright/internal/safeopen"
)

// readDir lists a directory in buf's size at a time. On Linux the entries come
// from the kernel's own records: one string for a whole buffer, no stat. As with
// openFile, no link is followed.
func readDir(path string, buf []byte, list []entry) ([]entry, error) {
	if trimmed := strings.TrimRight(path, "/"); trimmed != "" {
		path = trimmed
	}
	fd, err := safeopen.OpenFD(path, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return list, err
	}
	defer syscall.Close(fd)
	for {
		n, err := retry(func() (int, error) { return syscall.ReadDirent(fd, buf) })
		if err != nil || n <= 0 {
			return list, err
		}
		text := string(buf[:n])
		for b := buf[:n]; len(b) >= direntName; {
			size := int(binary.NativeEndian.Uint16(b[direntReclen:]))
			if size < direntName || size > len(b) {
				break
			}
			at := n - len(b)
			name := text[at+direntName : at+size]
			if i := strings.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			if name != "." && name != ".." && name != "" && binary.NativeEndian.Uint64(b) != 0 {
				list = append(list, entry{name, direntKind(b[direntType])})
			}
			b = b[size:]
		}
	}
}

// The layout of linux_dirent64: inode, offset, record length, type, name.
const (
	direntReclen = 16
	direntType   = 18
	direntName   = 19
)

func direntKind(t byte) kind {
	switch t {
	case syscall.DT_REG:
		return regular
	case syscall.DT_DIR:
		return directory
	case syscall.DT_LNK:
		return link
	case syscall.DT_UNKNOWN:
		return unknown
	}
	return special
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
