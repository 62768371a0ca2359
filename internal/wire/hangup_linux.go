package wire

import (
	"os"

	"golang.org/x/sys/unix"
)

// hungUp waits until the other end of a pipe or a socket has gone away, also
// while nothing is written, and reports whether it did. It returns false at
// once for what has no other end. Only that end, or the end of the process, ends
// the wait.
func hungUp(f *os.File) (gone bool) {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return false
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) { // and not Fd, which changes how others use the file
		asked := []unix.PollFd{{Fd: int32(fd)}} // for nothing: errors and hang-ups are always told
		for err := error(unix.EINTR); err == unix.EINTR; {
			_, err = unix.Poll(asked, -1)
		}
		gone = asked[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone && err == nil
}
