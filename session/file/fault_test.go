package file_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// step is one step of a script against a journal.
type step struct {
	do    string // append, sync (append that syncs), barrier (sync of nothing), blob, release, load
	lines []string
}

var scripts = map[string][]step{
	"new": {
		{do: "append", lines: []string{`{"n":1}`}},
		{do: "sync", lines: []string{`{"n":2}`, `{"n":3}`}},
		{do: "append", lines: []string{`{"n":4}`}},
	},
	"blob and release": {
		{do: "blob"},
		{do: "sync", lines: []string{`{"n":1}`}},
		{do: "release"},
		{do: "append", lines: []string{`{"n":2}`, `{"n":3}`}},
		{do: "load"},
		{do: "barrier"},
		{do: "append", lines: []string{`{"n":4}`}},
	},
}

// history is what a script was told.
type history struct {
	acked  []string // written
	synced int      // how many of them are durable
	errs   []error
}

// play runs a script to its end, whatever fails, as the engine does (S-24).
func play(t failer, s *file.Store, create bool, script []step) history {
	var h history
	j, err := s.Open(background, sid, session.OpenOptions{Dir: dir, Create: create})
	if err != nil {
		h.errs = append(h.errs, err)
		return h
	}
	defer j.Close() //nolint:errcheck // lines count
	for _, st := range script {
		var err error
		switch st.do {
		case "append", "sync", "barrier":
			err = j.Append(background, split(st.lines), st.do != "append")
			_, unsynced := errors.AsType[*session.SyncError](err)
			if err == nil || unsynced {
				h.acked = append(h.acked, st.lines...)
			}
			if err == nil && st.do != "append" {
				h.synced = len(h.acked)
			}
		case "blob":
			_, err = j.PutBlob(background, "x", []byte("data"))
		case "release":
			err = j.Release()
		case "load":
			for _, lerr := range j.Load(background) {
				if _, bad := errors.AsType[*session.LineError](lerr); lerr != nil && !bad {
					err = lerr
				}
			}
		}
		if err != nil {
			h.errs = append(h.errs, err)
		}
	}
	return h
}

// after reads the good lines that a file system has of the session. A torn line
// that a fault kept from being cut off, or bytes that the power took, may stand
// between them.
func after(t failer, fs vfs.FS) []string {
	s, err := file.New(file.Config{ConfigDir: home, FS: fs, Getenv: env(nil)})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	j, err := s.Open(background, sid, session.OpenOptions{Dir: dir})
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatalf("Open afterwards: %v", err)
	}
	defer j.Close() //nolint:errcheck // lines count
	var lines []string
	for line, err := range j.Load(background) {
		if _, bad := errors.AsType[*session.LineError](err); bad {
			continue
		}
		if err != nil {
			t.Fatalf("Load afterwards: %v", err)
		}
		lines = append(lines, string(line))
	}
	return lines
}

// inOrder reports that all of want stand in got, in their order.
func inOrder(got, want []string) bool {
	for _, line := range got {
		if len(want) > 0 && line == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// operations counts what a script does that changes the disk.
func operations(t *testing.T, before *vfs.Mem, create bool, script []step) []vfs.Op {
	t.Helper()
	var mu sync.Mutex
	var ops []vfs.Op
	fs := vfs.WithFaults(before.Crash(vfs.Crash{}), func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.Changes() {
			ops = append(ops, op)
		}
		return nil
	})
	s := newStore(t, file.Config{ConfigDir: home, FS: fs})
	if h := play(t, s, create, script); len(h.errs) > 0 {
		t.Fatal(h.errs)
	}
	return ops
}

// failAt lets the nth changing operation fail, and with rest all that follow.
func failAt(fs vfs.FS, nth int, rest bool, err error) vfs.FS {
	var mu sync.Mutex
	n := -1
	return vfs.WithFaults(fs, func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if !op.Kind.Changes() {
			return nil
		}
		n++
		switch {
		case n == nth:
			return err
		case n > nth && rest:
			if short, ok := errors.AsType[*vfs.ShortWrite](err); ok {
				return short.Err
			}
			return err
		}
		return nil
	})
}

// eachFault calls do for every operation of every script, and for a write with
// every number of bytes that get through.
func eachFault(t *testing.T, do func(t *testing.T, name string, before *vfs.Mem, create bool, script []step, nth int, op vfs.Op, fault error)) {
	for name, script := range scripts {
		for _, create := range []bool{true, false} {
			before := vfs.NewMem()
			if create {
				mkdirs(t, before, filepath.Dir(home))
			} else {
				plant(t, before, "{\"old\":1}\n{\"old\":2}\n{\"torn")
				before = before.Crash(vfs.Crash{}) // what was there is durable
			}
			for nth, op := range operations(t, before, create, script) {
				most := 0
				if op.Kind == vfs.OpWrite {
					most = op.Len
				}
				for n := range most + 1 {
					if n > 1 && n < most && !strings.HasPrefix(op.Name, filepath.Join(home, "projects")) {
						continue // of a lock: none, one and all will do
					}
					fault := error(syscall.ENOSPC)
					if op.Kind == vfs.OpWrite {
						fault = &vfs.ShortWrite{N: n, Err: syscall.ENOSPC}
					}
					what := fmt.Sprintf("%s, create %v, operation %d (%s %s), %d bytes", name, create, nth, op.Kind, filepath.Base(op.Name), n)
					do(t, what, before, create, script, nth, op, fault)
				}
			}
		}
	}
}

func mkdirs(t testing.TB, mem *vfs.Mem, dir string) {
	t.Helper()
	if filepath.Dir(dir) == dir {
		return
	}
	mkdirs(t, mem, filepath.Dir(dir))
	if err := mem.Mkdir(dir, 0o700); err != nil && !errors.Is(err, syscall.EEXIST) {
		t.Fatal(err)
	}
}

// One operation fails, the run goes on: what was acknowledged is there, and
// nothing else.
func TestOneFault(t *testing.T) {
	conform.Covers(t, "S-20", "K-291")
	eachFault(t, func(t *testing.T, what string, before *vfs.Mem, create bool, script []step, nth int, op vfs.Op, fault error) {
		mem := before.Crash(vfs.Crash{})
		s := newStore(t, file.Config{ConfigDir: home, FS: failAt(mem, nth, false, fault)})
		h := play(t, s, create, script)
		for _, err := range h.errs {
			if text := err.Error(); !strings.Contains(text, "ENOSPC") || !strings.Contains(text, filepath.Dir(home)) {
				t.Errorf("%s: error %q names no file or no symbol", what, err)
			}
		}
		if n := mem.OpenFiles(); n != 0 {
			t.Errorf("%s: %d files are open at the end", what, n)
		}
		want := h.acked
		if !create {
			want = append([]string{`{"old":1}`, `{"old":2}`}, want...)
		}
		if len(h.acked) == 0 && create {
			if info, err := mem.Stat(transcript(dir)); err == nil {
				t.Errorf("%s: a file of %d bytes is left behind", what, info.Size)
			}
		}
		if got := after(t, mem); !slices.Equal(got, want) {
			t.Errorf("%s: lines are %q, want %q (errors %v)", what, got, want, h.errs)
		}
		if create && len(want) > 0 {
			if got := contents(t, mem, transcript(dir)); got != strings.Join(want, "\n")+"\n" {
				t.Errorf("%s: file is %q", what, got)
			}
		}
	})
}

// From one operation on nothing works any more: the process was killed there,
// or the disk is gone. What was acknowledged before is there.
func TestKilledAtEveryOperation(t *testing.T) {
	conform.Covers(t, "S-20", "S-21", "B-117")
	eachFault(t, func(t *testing.T, what string, before *vfs.Mem, create bool, script []step, nth int, op vfs.Op, fault error) {
		mem := before.Crash(vfs.Crash{})
		s := newStore(t, file.Config{ConfigDir: home, FS: failAt(mem, nth, true, fault)})
		h := play(t, s, create, script)
		want := h.acked
		if !create {
			want = append([]string{`{"old":1}`, `{"old":2}`}, want...)
		}
		got := after(t, mem.Crash(vfs.Crash{}))
		if !inOrder(got, want) {
			t.Errorf("%s: lines are %q, acknowledged were %q", what, got, want)
		}
	})
}

// The power goes at every operation; of the bytes that were not synced any
// number may be there, or zeros instead.
func TestPowerLossAtEveryOperation(t *testing.T) {
	conform.Covers(t, "S-20", "S-21", "B-117")
	eachFault(t, func(t *testing.T, what string, before *vfs.Mem, create bool, script []step, nth int, op vfs.Op, fault error) {
		mem := before.Crash(vfs.Crash{})
		s := newStore(t, file.Config{ConfigDir: home, FS: failAt(mem, nth, true, fault)})
		h := play(t, s, create, script)
		want := h.acked[:h.synced]
		if !create {
			want = append([]string{`{"old":1}`, `{"old":2}`}, want...)
		}
		for _, c := range []vfs.Crash{
			{Power: true},
			{Power: true, KeepNames: true, Zeros: true},
			{Power: true, KeepNames: true, Keep: func(_ string, n int) int { return n / 2 }},
			{Power: true, KeepNames: true, Keep: func(_ string, n int) int { return n - 1 }},
			{Power: true, KeepNames: true, Keep: func(_ string, n int) int { return n / 3 }, Zeros: true},
		} {
			if got := after(t, mem.Crash(c)); !inOrder(got, want) {
				t.Errorf("%s: lines are %q, synced were %q", what, got, want)
			}
		}
	})
}

// Random scripts with random faults of any kind, crashes in between.
func TestRandomFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := vfs.NewMem()
		var sure []string // lines that must be there
		next := 0
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			script := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
				st := step{do: rapid.SampledFrom([]string{"append", "append", "sync", "barrier", "blob", "release", "load"}).Draw(t, "do")}
				if st.do == "append" || st.do == "sync" {
					for range rapid.IntRange(1, 3).Draw(t, "lines") {
						st.lines = append(st.lines, "")
					}
				}
				return st
			}), 1, 8).Draw(t, "script")
			for _, st := range script {
				for i := range st.lines {
					next++
					st.lines[i] = fmt.Sprintf(`{"n":%d,"text":"é"}`, next)
				}
			}
			errno := rapid.SampledFrom([]syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EACCES}).Draw(t, "errno")
			seed := rapid.Uint64().Draw(t, "seed")
			rate := rapid.SampledFrom([]uint64{0, 5, 20, 100}).Draw(t, "per cent")
			var mu sync.Mutex
			fs := vfs.WithFaults(mem, func(op vfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				seed = seed*6364136223846793005 + 1442695040888963407
				if !op.Kind.Changes() || seed>>33%100 >= rate {
					return nil
				}
				if op.Kind == vfs.OpWrite {
					return &vfs.ShortWrite{N: int(seed >> 40 % uint64(op.Len+1)), Err: errno}
				}
				return errno
			})
			s, err := file.New(file.Config{ConfigDir: home, FS: fs, Getenv: env(nil)})
			if err != nil {
				t.Fatal(err)
			}
			create := after(t, mem.Crash(vfs.Crash{})) == nil
			h := play(t, s, create, script)
			c := vfs.Crash{Power: rapid.Bool().Draw(t, "power"), KeepNames: rapid.Bool().Draw(t, "names"), Zeros: rapid.Bool().Draw(t, "zeros")}
			keep := rapid.IntRange(0, 200).Draw(t, "keep")
			c.Keep = func(_ string, n int) int { return min(keep, n) }
			mem = mem.Crash(c)
			acked := h.acked
			if c.Power {
				acked = h.acked[:h.synced]
				if h.synced == 0 && len(sure) == 0 {
					acked = nil
				}
			}
			sure = append(sure, acked...)
			lines := after(t, mem.Crash(vfs.Crash{}))
			if !inOrder(lines, sure) {
				t.Fatalf("lines are %q, must have %q", lines, sure)
			}
			if c.Power {
				sure = slices.Clone(lines) // the rest is durable from here on
			}
		}
	})
}

// A disk that is full or read-only does not keep a session from being read,
// and lines that are written when it works again are there.
func TestReadOnlyDisk(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT} {
		mem := vfs.NewMem()
		plant(t, mem, "{\"n\":1}\n")
		var broken, warned bool
		var mu sync.Mutex
		fs := vfs.WithFaults(mem, func(op vfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if broken && op.Kind.Changes() && (op.Kind != vfs.OpOpen || op.Flag != 0) {
				return errno
			}
			return nil
		})
		broken = true
		s := newStore(t, file.Config{ConfigDir: home, FS: fs, Warn: func(w string) { warned = warned || strings.Contains(w, sid) }})
		j := open(t, s, sid, dir, false)
		if got, bad := read(t, j); bad > 0 || !slices.Equal(got, []string{`{"n":1}`}) {
			t.Errorf("%v: lines are %q", errno, got)
		}
		if !warned {
			t.Errorf("%v: no warning", errno)
		}
		for range 2 {
			err := j.Append(t.Context(), split([]string{`{"n":2}`}), true)
			if e, ok := errors.AsType[*session.IOError](err); !ok || !errors.Is(err, errno) || e.Code == "" || !strings.Contains(err.Error(), "("+e.Code+")") {
				t.Errorf("%v: error %v", errno, err)
			}
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		add(t, j, `{"n":2}`)
		if got, bad := read(t, j); bad > 0 || !slices.Equal(got, []string{`{"n":1}`, `{"n":2}`}) {
			t.Errorf("%v: afterwards lines are %q", errno, got)
		}
		_ = j.Close()
	}
}

// A first write that fails and cannot be taken back at once leaves an open
// file that is removed later; the next line must not go into that one.
func TestFailedFirstWriteIsTakenBackLater(t *testing.T) {
	conform.Covers(t, "K-291")
	for _, loaded := range []bool{false, true} {
		mem := vfs.NewMem()
		var mu sync.Mutex
		fails := 2 // the write, and the removal of what it left
		fs := vfs.WithFaults(mem, func(op vfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if fails == 0 || op.Name != transcript(dir) {
				return nil
			}
			switch op.Kind {
			case vfs.OpWrite:
				fails--
				return &vfs.ShortWrite{N: 3, Err: syscall.ENOSPC}
			case vfs.OpRemove:
				fails--
				return syscall.EIO
			}
			return nil
		})
		s := newStore(t, file.Config{ConfigDir: home, FS: fs})
		j := open(t, s, sid, dir, true)
		if err := j.Append(t.Context(), split([]string{`{"n":1}`}), false); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("error %v", err)
		}
		if loaded {
			if lines, bad := read(t, j); len(lines)+bad > 0 {
				t.Errorf("lines are %q and %d bad ones", lines, bad)
			}
		}
		add(t, j, `{"n":2}`)
		if got := contents(t, mem, transcript(dir)); got != "{\"n\":2}\n" {
			t.Errorf("loaded %v: file is %q", loaded, got)
		}
	}
}
