package file_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// The test binary plays other processes: with childVar set it does what the
// variable says instead of running tests.
const childVar = "TURNWRIGHT_TEST_CHILD"

func TestMain(m *testing.M) {
	what := os.Getenv(childVar)
	if what == "" {
		os.Exit(m.Run())
	}
	if err := child(what, os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func child(what, home, work string, ids []string) error {
	s, err := file.New(file.Config{ConfigDir: home, Getenv: env(nil)})
	if err != nil {
		return err
	}
	switch what {
	case "hold": // holds all sessions until it is killed or stdin ends
		for _, id := range ids {
			if _, err := s.Open(background, id, session.OpenOptions{Dir: work}); err != nil {
				return err
			}
		}
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	case "count": // adds the number of lines as a line, again and again
		for range 10 {
			for _, id := range ids {
				if err := count(s, work, id); err != nil {
					return err
				}
			}
		}
	case "write": // writes until it is killed
		j, err := s.Open(background, ids[0], session.OpenOptions{Dir: work, Create: true})
		if err != nil {
			return err
		}
		for n := 0; ; n++ {
			if err := j.Append(background, [][]byte{fmt.Appendf(nil, `{"n":%d,"pad":%q}`, n, strings.Repeat("x", n%9000))}, n%8 == 0); err != nil {
				return err
			}
			fmt.Println(n)
		}
	}
	return nil
}

// count is a critical section that shows when two are in it at once.
func count(s *file.Store, work, id string) error {
	j, err := s.Open(background, id, session.OpenOptions{Dir: work, Wait: 5 * time.Minute})
	if err != nil {
		return err
	}
	n := 0
	for _, err := range j.Load(background) {
		if err != nil {
			return err
		}
		n++
	}
	if err := j.Append(background, [][]byte{fmt.Appendf(nil, `{"n":%d}`, n)}, false); err != nil {
		return err
	}
	return j.Close()
}

func startChild(t *testing.T, what, home, work string, ids ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{home, work}, ids...)...)
	cmd.Env = append(os.Environ(), childVar+"="+what)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func makeSessions(t *testing.T, s *file.Store, work string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewString()
		j := open(t, s, ids[i], work, true)
		add(t, j, `{"n":0}`)
		_ = j.Close()
	}
	return ids
}

func TestLockBetweenProcesses(t *testing.T) {
	conform.Covers(t, "S-27", "B-121")
	home, work := t.TempDir(), t.TempDir()
	s := newStore(t, file.Config{ConfigDir: home})
	ids := makeSessions(t, s, work, 2)
	cmd, out := startChild(t, "hold", home, work, ids...)
	if !out.Scan() || out.Text() != "ready" {
		t.Fatalf("child says %q", out.Text())
	}
	for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
		_, err := s.Open(t.Context(), ids[0], session.OpenOptions{Dir: work, Wait: wait})
		locked, ok := errors.AsType[*session.LockedError](err)
		if !ok {
			t.Fatalf("error %v, want *session.LockedError", err)
		}
		if locked.ID != ids[0] || !strings.Contains(locked.Holder, strconv.Itoa(cmd.Process.Pid)) {
			t.Errorf("error %q names not session and holder %d", err, cmd.Process.Pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, id := range ids { // at once: a dead holder needs no waiting
		j := open(t, s, id, work, false)
		add(t, j, `{"n":1}`)
		if got, _ := read(t, j); len(got) != 2 {
			t.Errorf("lines are %q", got)
		}
	}
}

// A dead process held sessions; several processes and goroutines take them
// over at once, and never two have one.
func TestTakeover(t *testing.T) {
	conform.Covers(t, "S-27", "B-121")
	home, work := t.TempDir(), t.TempDir()
	s := newStore(t, file.Config{ConfigDir: home})
	ids := makeSessions(t, s, work, 3)
	cmd, out := startChild(t, "hold", home, work, ids...)
	if !out.Scan() || out.Text() != "ready" {
		t.Fatalf("child says %q", out.Text())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	const processes, routines, rounds = 4, 3, 10
	var wg sync.WaitGroup
	for range processes {
		_, out := startChild(t, "count", home, work, ids...)
		wg.Go(func() {
			for out.Scan() {
				t.Errorf("child says %q", out.Text())
			}
		})
	}
	for range routines {
		wg.Go(func() {
			for range rounds {
				for _, id := range ids {
					if err := count(s, work, id); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		lines, bad := read(t, open(t, s, id, work, false))
		if len(lines) != 1+(processes+routines)*rounds || bad > 0 {
			t.Errorf("%d lines, %d bad", len(lines), bad)
		}
		for n, line := range lines {
			if line != fmt.Sprintf(`{"n":%d}`, n) {
				t.Fatalf("line %d is %s: two had the session at once", n, line)
			}
		}
	}
}

// A process is killed while it writes; every line that it was told is written
// is there, and the session goes on.
func TestKilledWriter(t *testing.T) {
	conform.Covers(t, "S-20", "B-117")
	home, work := t.TempDir(), t.TempDir()
	s := newStore(t, file.Config{ConfigDir: home})
	for range 5 {
		id := uuid.NewString()
		cmd, out := startChild(t, "write", home, work, id)
		acked := 0
		for out.Scan() {
			n, err := strconv.Atoi(out.Text())
			if err != nil {
				t.Fatalf("child says %q", out.Text())
			}
			if acked = n + 1; acked == 50 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		j := open(t, s, id, work, false)
		add(t, j, `{"after":"kill"}`)
		lines, bad := read(t, j)
		if bad > 0 || len(lines) < acked+1 {
			t.Fatalf("%d lines and %d bad ones, acknowledged were %d", len(lines), bad, acked)
		}
		for n, line := range lines[:len(lines)-1] {
			if !strings.HasPrefix(line, fmt.Sprintf(`{"n":%d,`, n)) {
				t.Fatalf("line %d is %.40s", n, line)
			}
		}
		_ = j.Close()
	}
}

// Nothing of the locks is left when nothing is held, and what dead processes
// left is swept.
func TestLockLeavesNothing(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	s := newStore(t, file.Config{ConfigDir: home})
	ids := makeSessions(t, s, work, 2)
	cmd, out := startChild(t, "hold", home, work, ids...)
	if !out.Scan() {
		t.Fatal("child says nothing")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	j := open(t, s, ids[0], work, false)
	_ = j.Close()
	owners, err := os.ReadDir(filepath.Join(home, "turnwright", "owners"))
	if err != nil || len(owners) != 0 {
		t.Errorf("owners left: %v (%v)", owners, err)
	}
	locks, err := filepath.Glob(filepath.Join(home, "turnwright", "locks", "*", "*.lock"))
	if err != nil || len(locks) != 1 || !strings.Contains(locks[0], ids[1]) {
		t.Errorf("locks left: %v, want that of the session that nobody took over (%v)", locks, err)
	}
}

// The lock and owner files may be removed by a person; then things go on.
func TestLockFilesRemoved(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	s := newStore(t, file.Config{ConfigDir: home})
	ids := makeSessions(t, s, work, 3)
	j := open(t, s, ids[0], work, false)
	if err := os.RemoveAll(filepath.Join(home, "turnwright")); err != nil {
		t.Fatal(err)
	}
	k := open(t, s, ids[1], work, false)
	add(t, k, `{}`)
	if _, err := s.Open(t.Context(), ids[0], session.OpenOptions{Dir: work}); !isLocked(err) {
		t.Errorf("error %v, want *session.LockedError", err)
	}
	_ = k.Close()
	add(t, j, `{}`)
	_ = j.Close()
	j = open(t, s, ids[2], work, false)
	add(t, j, `{}`)
	_ = j.Close()
	_ = open(t, s, ids[0], work, false).Close()
}

func isLocked(err error) bool {
	_, ok := errors.AsType[*session.LockedError](err)
	return ok
}

// Two stores of one process exclude each other like two processes.
func TestTwoStores(t *testing.T) {
	conform.Covers(t, "S-27")
	home, work := t.TempDir(), t.TempDir()
	a, b := newStore(t, file.Config{ConfigDir: home}), newStore(t, file.Config{ConfigDir: home + string(filepath.Separator)})
	j := open(t, a, sid, work, true)
	add(t, j, `{}`)
	if _, err := b.Open(t.Context(), sid, session.OpenOptions{Dir: work}); !isLocked(err) {
		t.Errorf("error %v, want *session.LockedError", err)
	}
	_ = j.Close()
	_ = open(t, b, sid, work, false).Close()
}

// File systems without hard links, and without any locks.
func TestPoorFileSystems(t *testing.T) {
	for name, c := range map[string]struct {
		kind  vfs.OpKind
		errno syscall.Errno
		warns bool
	}{
		"no links": {vfs.OpLink, syscall.EPERM, false},
		"no locks": {vfs.OpLock, syscall.ENOTSUP, true},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.kind == vfs.OpLock {
				t.Skip("has other error numbers")
			}
			mem := vfs.NewMem()
			fs := func() vfs.FS {
				return vfs.WithFaults(mem, func(op vfs.Op) error {
					if op.Kind == c.kind {
						return c.errno
					}
					return nil
				})
			}
			var warnings bytes.Buffer
			one := fs()
			s := newStore(t, file.Config{ConfigDir: home, FS: one, Warn: func(w string) { warnings.WriteString(w) }})
			other := newStore(t, file.Config{ConfigDir: home, FS: one})
			stranger := newStore(t, file.Config{ConfigDir: home, FS: fs()}) // as another process
			j := open(t, s, sid, dir, true)
			add(t, j, `{}`)
			if _, err := other.Open(t.Context(), sid, session.OpenOptions{Dir: dir}); !isLocked(err) {
				t.Errorf("in the process: error %v, want *session.LockedError", err)
			}
			k, err := stranger.Open(t.Context(), sid, session.OpenOptions{Dir: dir})
			if err == nil {
				_ = k.Close()
			}
			if !c.warns && !isLocked(err) {
				t.Errorf("between processes: error %v, want *session.LockedError", err)
			}
			if c.warns != (warnings.Len() > 0) {
				t.Errorf("warnings: %q", warnings.String())
			}
			_ = j.Close()
			j = open(t, stranger, sid, dir, false)
			add(t, j, `{}`)
			_ = j.Close()
			if n := mem.OpenFiles(); c.warns == false && n != 0 {
				t.Errorf("%d files are open", n)
			}
			// The owner died: its lock file is there and nobody holds it.
			j = open(t, s, sid, dir, false)
			s2 := newStore(t, file.Config{ConfigDir: home, FS: vfs.WithFaults(mem.Crash(vfs.Crash{}), func(op vfs.Op) error {
				if op.Kind == c.kind {
					return c.errno
				}
				return nil
			})})
			_ = open(t, s2, sid, dir, false).Close()
			_ = j.Close()
		})
	}
}
