package file_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// maxFiles is what the package documents: 64, and what one moment of locking
// or syncing needs besides.
const maxFiles = 64 + 64

// A thousand sessions write, sync, load and store outputs at once with few
// files open; nothing is open when they are closed, and nothing of a session
// that is released.
func TestThousandSessions(t *testing.T) {
	const sessions = 1000
	mem := vfs.NewMem()
	var most atomic.Int64
	fs := vfs.WithFaults(mem, func(op vfs.Op) error {
		n := int64(mem.OpenFiles())
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		return nil
	})
	s := newStore(t, file.Config{ConfigDir: home, FS: fs})
	var wg, all sync.WaitGroup
	all.Add(sessions)
	release := make(chan struct{})
	for i := range sessions {
		wg.Go(func() {
			id := uuid.NewString()
			j, err := s.Open(background, id, session.OpenOptions{Dir: dir, Create: true})
			if err != nil {
				t.Error(err)
				all.Done()
				return
			}
			for n := range 5 {
				if err := j.Append(background, [][]byte{fmt.Appendf(nil, `{"n":%d}`, n)}, n == 2 && i%10 == 0); err != nil {
					t.Error(err)
				}
			}
			if _, err := j.PutBlob(background, "out", []byte("x")); err != nil {
				t.Error(err)
			}
			n := 0
			for _, err := range j.Load(background) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
			if n != 5 {
				t.Errorf("%d lines", n)
			}
			all.Done()
			<-release // all thousand are open
			_ = j.Release()
		})
	}
	all.Wait()
	close(release)
	wg.Wait()
	if n := mem.OpenFiles(); n != 0 {
		t.Errorf("%d files are open when all sessions are released", n)
	}
	if n := most.Load(); n > maxFiles {
		t.Errorf("%d files were open at once, want at most %d", n, maxFiles)
	}
}

// One append is one write of whole lines, at the end of the file, and nothing
// but one look at it before.
func TestOneWriteAnAppend(t *testing.T) {
	conform.Covers(t, "S-18", "S-20", "K-305")
	mem := vfs.NewMem()
	var mu sync.Mutex
	var ops []vfs.Op
	fs := vfs.WithFaults(mem, func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		ops = append(ops, op)
		return nil
	})
	s := newStore(t, file.Config{ConfigDir: home, FS: fs})
	j := open(t, s, sid, dir, true)
	add(t, j, `{"n":0}`)
	path := transcript(dir)
	for _, lines := range [][]string{{`{"n":1}`}, {`{"n":2}`, `{"n":3}`, `{"long":"` + strings.Repeat("x", 5<<20) + `"}`}} {
		before := contents(t, mem, path)
		ops = nil
		add(t, j, lines...)
		text := strings.Join(lines, "\n") + "\n"
		want := []vfs.Op{{Kind: vfs.OpStat, Name: path}, {Kind: vfs.OpWrite, Name: path, Len: len(text)}}
		if !slices.Equal(ops, want) {
			t.Errorf("operations are %v, want %v", ops, want)
		}
		if got := contents(t, mem, path); got != before+text {
			t.Error("what was there was changed")
		}
	}
	ops = nil
	if err := j.Append(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	var synced []string
	for _, op := range ops {
		if op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir {
			synced = append(synced, op.Name)
		}
	}
	project := filepath.Dir(path)
	want := []string{path, project, filepath.Dir(project), home, filepath.Dir(home)}
	if len(synced) < len(want) || !slices.Equal(synced[:len(want)], want) {
		t.Errorf("synced are %v, want %v first", synced, want)
	}
}

// The session's own file may be closed for others between two appends.
func TestHandleIsTakenAway(t *testing.T) {
	s := newStore(t, file.Config{ConfigDir: t.TempDir()})
	work := t.TempDir()
	const sessions = 200 // more than are kept open
	var all []session.Journal
	for range sessions {
		all = append(all, open(t, s, uuid.NewString(), work, true))
	}
	for n := range 3 {
		for _, j := range all {
			add(t, j, fmt.Sprintf(`{"n":%d}`, n))
		}
	}
	for _, j := range all {
		if got, bad := read(t, j); bad > 0 || !slices.Equal(got, []string{`{"n":0}`, `{"n":1}`, `{"n":2}`}) {
			t.Fatalf("lines are %q", got)
		}
		_ = j.Close()
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 20_000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s := newStore(b, file.Config{ConfigDir: b.TempDir()})
			j := open(b, s, sid, b.TempDir(), true)
			lines := [][]byte{[]byte(`{"x":"` + strings.Repeat("y", size-8) + `"}`)}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Append(background, lines, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpenClose(b *testing.B) {
	s := newStore(b, file.Config{ConfigDir: b.TempDir()})
	work := b.TempDir()
	j := open(b, s, sid, work, true)
	add(b, j, `{"n":1}`)
	_ = j.Close()
	b.ReportAllocs()
	for b.Loop() {
		j, err := s.Open(background, sid, session.OpenOptions{Dir: work})
		if err != nil {
			b.Fatal(err)
		}
		_ = j.Close()
	}
}

func BenchmarkLoad(b *testing.B) {
	s := newStore(b, file.Config{ConfigDir: b.TempDir()})
	j := open(b, s, sid, b.TempDir(), true)
	var lines []string
	size := 0
	for n := range 2000 {
		lines = append(lines, fmt.Sprintf(`{"n":%d,"message":{"content":"%s"}}`, n, strings.Repeat("some text ", 70)))
		size += len(lines[n]) + 1
	}
	add(b, j, lines...)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range j.Load(background) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
