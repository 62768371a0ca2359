package file_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// plant puts a transcript there as another program left it.
func plant(t testing.TB, mem *vfs.Mem, data string) {
	t.Helper()
	path := transcript(dir)
	var up []string
	for d := filepath.Dir(path); filepath.Dir(d) != d; d = filepath.Dir(d) {
		up = append(up, d)
	}
	slices.Reverse(up)
	for _, d := range up {
		_ = mem.Mkdir(d, 0o700)
	}
	foreign(t, mem, path, data)
}

// torn returns the contents of the .torn files, in order.
func torn(t testing.TB, mem *vfs.Mem) []string {
	t.Helper()
	var got []string
	for n := 1; ; n++ {
		data, err := vfs.ReadFile(mem, strings.TrimSuffix(transcript(dir), ".jsonl")+fmt.Sprintf(".torn-%d", n))
		if err != nil {
			return got
		}
		got = append(got, string(data))
	}
}

// The file is cut at every byte; the session is resumed, gets a line, and is
// resumed again.
func TestTornTailAtEveryByte(t *testing.T) {
	conform.Covers(t, "B-117", "S-20", "S-21", "K-307", "K-289")
	lines := []string{`{"n":1,"text":"größer 🎉"}`, `{"n":2}`, `{"n":3,"a":[{"b":"}"}]}`}
	whole := strings.Join(lines, "\n") + "\n"
	for cut := 1; cut <= len(whole); cut++ {
		mem := vfs.NewMem()
		plant(t, mem, whole[:cut])
		var warnings []string
		s := newStore(t, file.Config{ConfigDir: home, FS: mem, Warn: func(w string) { warnings = append(warnings, w) }})
		// What must be there: every line whose bytes are there, with or
		// without its newline.
		var want []string
		rest := whole[:cut]
		for _, line := range lines {
			if !strings.HasPrefix(rest, line) {
				break
			}
			want = append(want, line)
			rest = strings.TrimPrefix(rest[len(line):], "\n")
		}
		j, err := s.Open(t.Context(), sid, session.OpenOptions{Dir: dir})
		if len(want) == 0 { // nothing but half a line
			if !errors.Is(err, session.ErrNotFound) || !slices.Equal(torn(t, mem), []string{whole[:cut]}) {
				t.Errorf("cut at %d: error %v, kept %q", cut, err, torn(t, mem))
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got, bad := read(t, j); bad > 0 || !slices.Equal(got, want) {
			t.Errorf("cut at %d: lines are %q and %d bad ones, want %q", cut, got, bad, want)
		}
		add(t, j, `{"new":1}`)
		_ = j.Close()
		switch kept := torn(t, mem); {
		case rest == "" && (len(kept) > 0 || len(warnings) > 0):
			t.Errorf("cut at %d: nothing was torn, but kept are %q and said is %q", cut, kept, warnings)
		case rest != "" && (!slices.Equal(kept, []string{rest}) || len(warnings) != 1 || !strings.Contains(warnings[0], ".torn-1")):
			t.Errorf("cut at %d: kept are %q, want %q; warnings %q", cut, kept, rest, warnings)
		}
		j = open(t, s, sid, dir, false)
		if got, bad := read(t, j); bad > 0 || !slices.Equal(got, append(want, `{"new":1}`)) {
			t.Errorf("cut at %d: the second resume gives %q", cut, got)
		}
		_ = j.Close()
		if got := contents(t, mem, transcript(dir)); got != strings.Join(append(want, `{"new":1}`), "\n")+"\n" {
			t.Errorf("cut at %d: file is %q", cut, got)
		}
	}
}

func TestTornAgain(t *testing.T) {
	conform.Covers(t, "K-289")
	mem := vfs.NewMem()
	plant(t, mem, "{}\n{\"first")
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	_ = open(t, s, sid, dir, false).Close()
	foreign(t, mem, transcript(dir), `{"second`)
	_ = open(t, s, sid, dir, false).Close()
	if got := torn(t, mem); !slices.Equal(got, []string{`{"first`, `{"second`}) {
		t.Errorf("kept are %q", got)
	}
}

// A last line of any length, also one longer than every read.
func TestLongTornTail(t *testing.T) {
	for _, size := range []int{4095, 4096, 4097, 32 << 10, 300 << 10, 1 << 20} {
		mem := vfs.NewMem()
		tail := `{"x":"` + strings.Repeat("y", size)
		plant(t, mem, "{\"n\":1}\n"+tail)
		s := newStore(t, file.Config{ConfigDir: home, FS: mem})
		j := open(t, s, sid, dir, false)
		if got, bad := read(t, j); bad > 0 || !slices.Equal(got, []string{`{"n":1}`}) {
			t.Errorf("%d: %d lines, %d bad", size, len(got), bad)
		}
		if got := torn(t, mem); len(got) != 1 || got[0] != tail {
			t.Errorf("%d: the tail is not kept", size)
		}
		_ = j.Close()
	}
}

func TestCorruptLines(t *testing.T) {
	conform.Covers(t, "S-21")
	mem := vfs.NewMem()
	before := "{\"n\":1}\n{\"n\":\n\n[1,2]\r\n{\"n\":2}\r\n\x00\x00\x00\n{\"n\":3}{\"glued\":1}\n\"text\"\n{\"n\":4}\n"
	plant(t, mem, "\ufeff"+before)
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	j := open(t, s, sid, dir, false)
	var good []string
	var bad []int
	for line, err := range j.Load(t.Context()) {
		if e, ok := errors.AsType[*session.LineError](err); ok {
			bad = append(bad, e.Line)
			if !strings.Contains(err.Error(), fmt.Sprintf("line %d ", e.Line)) || e.Err == nil {
				t.Errorf("error text %q does not say which line and why", err)
			}
		} else {
			good = append(good, string(line))
		}
	}
	if want := []string{`{"n":1}`, `{"n":2}`, `{"n":4}`}; !slices.Equal(good, want) {
		t.Errorf("good lines are %q, want %q", good, want)
	}
	if want := []int{2, 4, 6, 7, 8}; !slices.Equal(bad, want) {
		t.Errorf("bad lines are %v, want %v", bad, want)
	}
	if got := contents(t, mem, transcript(dir)); got != "\ufeff"+before {
		t.Errorf("reading changed the file to %q", got)
	}
}

// Resuming changes nothing on disk before the first new line.
func TestOpenChangesNothing(t *testing.T) {
	conform.Covers(t, "K-484")
	for _, data := range []string{"{\"n\":1}\n", `{"n":1}`, "{\"n\":1}\n\n", "{\"n\":1}\n  "} {
		mem := vfs.NewMem()
		plant(t, mem, data)
		before, _ := mem.Stat(transcript(dir))
		s := newStore(t, file.Config{ConfigDir: home, FS: mem})
		j := open(t, s, sid, dir, false)
		if got, _ := read(t, j); !slices.Equal(got, []string{`{"n":1}`}) {
			t.Errorf("lines are %q", got)
		}
		if after, _ := mem.Stat(transcript(dir)); after != before {
			t.Errorf("%q: opening changed %+v to %+v", data, before, after)
		}
		add(t, j, `{"n":2}`)
		if got, bad := read(t, j); bad > 0 || !slices.Equal(got, []string{`{"n":1}`, `{"n":2}`}) {
			t.Errorf("%q: after an append: %q", data, got)
		}
		_ = j.Close()
	}
}

// The official clients append a title or a tag while the session is open here,
// without a lock, and may die in the middle of it.
func TestClientAppendsMeanwhile(t *testing.T) {
	conform.Covers(t, "K-306")
	for _, c := range []struct {
		name, theirs string
		bad          int
	}{
		{"whole line", "{\"type\":\"tag\"}\n", 0},
		{"no newline", `{"type":"tag"}`, 0},
		{"torn", `{"type":"ta`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := newStore(t, file.Config{ConfigDir: home, FS: mem})
			j := open(t, s, sid, dir, true)
			add(t, j, `{"n":1}`)
			foreign(t, mem, transcript(dir), c.theirs)
			add(t, j, `{"n":2}`)
			add(t, j, `{"n":3}`)
			want := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`}
			if c.bad == 0 {
				want = slices.Insert(want, 1, `{"type":"tag"}`)
			}
			if got, bad := read(t, j); bad != c.bad || !slices.Equal(got, want) {
				t.Errorf("lines are %q and %d bad ones, want %q", got, bad, want)
			}
			_ = j.Release()
			foreign(t, mem, transcript(dir), "{\"type\":\"tag\"}\n")
			if err := j.Append(t.Context(), split([]string{`{}`}), false); !errors.Is(err, session.ErrChanged) {
				t.Errorf("after a release: error %v, want ErrChanged", err)
			}
		})
	}
}

// Load yields the good lines of any file, whatever stands between them, and
// nothing that was appended to it is lost.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "{}\n", "{\"a\":1}\n{\"b\"", "\n\n\n", "\x00\x00{}\n", "\xff\xfe{}\n{}\n", "{}\r\n[]\n", "\ufeff{}\n{}",
		strings.Repeat("x", 5000) + "\n{}", "{}\n" + strings.Repeat(" ", 5000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkLoad(t, data) })
}

func TestLoadAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`\{"[a-z]*":"[a-zé🎉]*"\}`), rapid.String(), rapid.Just("\n"), rapid.Just("\n"), rapid.Just("\r\n"),
			rapid.Just("{"), rapid.Just(strings.Repeat("\x00", 4096)),
		)).Draw(rt, "parts")
		checkLoad(t, []byte(strings.Join(parts, "")))
	})
}

func checkLoad(t *testing.T, data []byte) {
	t.Helper()
	var want []string
	for n, line := range strings.Split(string(data), "\n") {
		if n == 0 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		line = strings.TrimSuffix(line, "\r")
		if session.CheckLine([]byte(line)) == nil {
			want = append(want, line)
		}
	}
	mem := vfs.NewMem()
	plant(t, mem, string(data))
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	j, err := s.Open(t.Context(), sid, session.OpenOptions{Dir: dir})
	if errors.Is(err, session.ErrNotFound) && len(want) == 0 {
		return
	}
	if err != nil {
		t.Fatalf("Open of %q: %v", data, err)
	}
	defer j.Close() //nolint:errcheck // lines count
	if got, _ := read(t, j); !slices.Equal(got, want) {
		t.Fatalf("good lines of %q are %q, want %q", data, got, want)
	}
	add(t, j, `{"new":1}`)
	if got, _ := read(t, j); !slices.Equal(got, append(want, `{"new":1}`)) {
		t.Fatalf("after an append to %q the lines are %q", data, got)
	}
	// Every byte that was there is there, in the file or beside it.
	file := contents(t, mem, transcript(dir))
	kept := strings.TrimSuffix(strings.TrimSuffix(file, "{\"new\":1}\n"), "\n") + strings.Join(torn(t, mem), "")
	if strings.ReplaceAll(kept, "\n", "") != strings.ReplaceAll(string(data), "\n", "") {
		t.Fatalf("bytes of %q are lost: file %q, kept %q", data, file, torn(t, mem))
	}
}
