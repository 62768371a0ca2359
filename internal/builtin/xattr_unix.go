//go:build linux || darwin

package builtin

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepAttributes gives a copy the extended attributes of its source, access control
// lists among them, and reports whether it has all of them.
func keepAttributes(source, copied *os.File) bool {
	from, to := int(source.Fd()), int(copied.Fd())
	list := make([]byte, 4<<10)
	n, err := unix.Flistxattr(from, list)
	switch {
	case err == unix.ENOTSUP || err == unix.ENOSYS:
		return true // the file system has none
	case err != nil:
		return false
	}
	value := make([]byte, 64<<10)
	for name := range attributeNames(list[:n]) {
		n, err := unix.Fgetxattr(from, name, value)
		if err != nil {
			return false
		}
		if have := make([]byte, n); n > 0 {
			if m, err := unix.Fgetxattr(to, name, have); err == nil && string(have[:m]) == string(value[:n]) {
				continue // given by the system, as security labels are
			}
		}
		if unix.Fsetxattr(to, name, value[:n], 0) != nil {
			return false
		}
	}
	return true
}

// attributeNames yields the names in a list of strings that end in NUL.
func attributeNames(list []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i, b := range list {
			if b != 0 {
				continue
			}
			if !yield(string(list[start:i])) {
				return
			}
			start = i + 1
		}
	}
}
