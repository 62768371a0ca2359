package builtin

import (
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"golang.org/x/sys/unix"
)

// TestOpenRegularRace: a file that becomes a named pipe or a directory between
// the look at it and its opening is not taken for a file.
func TestOpenRegularRace(t *testing.T) {
	conform.Covers(t, "T-50", "B-093")
	s := newSession(t)
	path := s.write("f", "one")
	pipe, dir := s.path("pipe"), s.path("dir")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	swap := func(other string) error {
		return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}
	for name, other := range map[string]string{"pipe": pipe, "directory": dir} {
		if err := swap(other); err != nil {
			t.Skip("names cannot be exchanged here:", err)
		}
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !stop.Load() {
				_ = swap(other)
			}
		}()
		opened := 0
		for range 20_000 {
			f, info, err := openRegular(path)
			if err != nil {
				continue
			}
			opened++
			if now, err := f.Stat(); err != nil || !now.Mode().IsRegular() || !info.Mode().IsRegular() {
				t.Errorf("a %s was opened as a file", name)
			}
			f.Close()
			if t.Failed() {
				break
			}
		}
		stop.Store(true)
		<-done
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			if err := swap(other); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: opened %d times", name, opened)
	}
}

// TestCloseWithPipeHeld: a process that nothing can find, and that holds the
// output of its command open, does not keep the session from ending.
func TestCloseWithPipeHeld(t *testing.T) {
	conform.Covers(t, "B-099", "T-128")
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	s := newSession(t)
	b := s.bashTool()
	// It takes off every mark: the limit, the environment, its session and its
	// parent. It ends by itself too.
	s.bash(`(setsid env -i PATH="$PATH" bash -c 'ulimit -S -x unlimited; sleep 120 & echo $! >pid' &); while ! [ -s pid ]; do sleep 0.01; done`)
	pid := s.pid("pid")
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	done := make(chan error, 1)
	go func() { done <- b.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Fatal("Close has not returned")
	}
	if !running(pid) {
		t.Error("the process was found, so that this test shows nothing")
	}
}
