package search

import "syscall"

// modTime returns when a regular file, or with follow what a link leads to,
// was changed, in nanoseconds since 1970. ok is false for anything else.
func modTime(path string, follow bool) (ns int64, ok bool) {
	var st syscall.Stat_t
	var err error
	if follow {
		err = syscall.Stat(path, &st)
	} else {
		err = syscall.Lstat(path, &st)
	}
	if err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return 0, false
	}
	return st.Mtim.Nano(), true
}
