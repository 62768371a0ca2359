package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
)

// session is a history with the user's files beside it.
type session struct {
	t         *testing.T
	top, work string
	*History
}

func newSession(t *testing.T) *session {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, top: top, work: filepath.Join(top, "work")}
	s.must(os.Mkdir(s.work, 0o755))
	s.reopen()
	return s
}

// reopen is a new process on the same directory.
func (s *session) reopen() {
	s.History = New(Config{Dir: filepath.Join(s.top, "file-history", "session")})
}

func (s *session) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) path(name string) string { return filepath.Join(s.work, filepath.FromSlash(name)) }

// write is another program that writes a file.
func (s *session) write(name, text string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	s.must(os.WriteFile(s.path(name), []byte(text), 0o644))
}

// edit is a tool that changes a file.
func (s *session) edit(name, text string) {
	s.t.Helper()
	s.must(s.Track(s.path(name), s.path(name)))
	s.write(name, text)
}

func (s *session) begin(id string) {
	s.t.Helper()
	s.must(s.Begin(id))
}

// rewind goes back and compares the result: "a b +2 -1 skipped 1".
func (s *session) rewind(id string, dry bool, want string) {
	s.t.Helper()
	res, err := s.Rewind(s.t.Context(), id, dry)
	s.must(err)
	var words []string
	for _, f := range res.Files {
		rel, err := filepath.Rel(s.work, f)
		s.must(err)
		words = append(words, filepath.ToSlash(rel))
	}
	words = append(words, fmt.Sprintf("+%d -%d skipped %d", res.Insertions, res.Deletions, res.Skipped))
	if got := strings.Join(words, " "); got != want {
		s.t.Errorf("rewind to %s: %s, want %s", id, got, want)
	}
}

// has compares a file; "" is none.
func (s *session) has(name, want string) {
	s.t.Helper()
	text, err := os.ReadFile(s.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	if string(text) != want {
		s.t.Errorf("%s has %q, want %q", name, text, want)
	}
}

func TestRewind(t *testing.T) {
	conform.Covers(t, "S-109", "S-112", "S-113", "S-115", "S-117")
	s := newSession(t)
	s.write("a", "one\ntwo\n")
	s.begin("M1")
	s.edit("a", "one\n2\nthree\n")
	s.edit("new/b", "b\n")
	s.begin("m2")
	s.edit("a", "")
	s.write("a", "by hand\n")
	s.begin("m3")
	s.edit("new/b", "B\n")
	s.begin("M2")

	s.rewind("m2", true, "a new/b +4 -2 skipped 0")
	s.has("a", "by hand\n")
	s.has("new/b", "B\n")
	s.reopen() // S-117
	s.rewind("m2", false, "a new/b +4 -2 skipped 0")
	s.has("a", "one\n2\nthree\n")
	s.has("new/b", "b\n")
	s.begin("m2") // it stays what it was
	s.rewind("m2", false, "+0 -0 skipped 0")
	s.rewind("m1", false, "a new/b +1 -3 skipped 0") // ids in any case
	s.has("a", "one\ntwo\n")
	if _, err := os.Lstat(s.path("new/b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was created since is there: %v", err)
	}
	if _, err := os.Lstat(s.path("new")); err != nil {
		t.Errorf("directories are not tracked: %v", err)
	}
	s.rewind("m3", false, "a new/b +2 -2 skipped 0") // and forward again
	s.has("a", "by hand\n")
	if _, err := s.Rewind(t.Context(), "m4", false); !errors.Is(err, ErrNone) || err.Error() != "No file checkpoint found for this message" {
		t.Errorf("an unknown id: %v", err)
	}

	// A directory that went away comes back with the file in it.
	s.must(os.Remove(s.path("new/b")))
	s.must(os.Remove(s.path("new")))
	s.rewind("m2", false, "a new/b +4 -1 skipped 0")
	s.has("new/b", "b\n")
}

// TestSkipped leaves alone what is not the file any more, and puts the others
// back.
func TestSkipped(t *testing.T) {
	conform.Covers(t, "S-116")
	replace := func(s *session, name string, by func(path string) error) {
		s.must(os.Remove(s.path(name)))
		s.must(by(s.path(name)))
	}
	for name, spoil := range map[string]func(*session){
		"a symbolic link": func(s *session) {
			s.write("other", "other")
			replace(s, "d/a", func(path string) error { return os.Symlink(s.path("other"), path) })
		},
		"a dangling link": func(s *session) {
			replace(s, "d/a", func(path string) error { return os.Symlink(s.path("none"), path) })
		},
		"a directory": func(s *session) {
			replace(s, "d/a", func(path string) error { return os.Mkdir(path, 0o755) })
		},
		"a hard link": func(s *session) { s.must(os.Link(s.path("d/a"), s.path("more"))) },
		"a parent that is a link": func(s *session) {
			s.must(os.Rename(s.path("d"), filepath.Join(s.top, "moved")))
			s.must(os.Symlink(filepath.Join(s.top, "moved"), s.path("d")))
		},
		"a parent that is a file": func(s *session) {
			s.must(os.Rename(s.path("d"), filepath.Join(s.top, "moved")))
			s.write("d", "file")
		},
		"a backup that is gone": func(s *session) { s.must(os.Remove(s.backups(s.path("d/a"))[0])) },
		"a backup that was cut": func(s *session) { s.must(os.Truncate(s.backups(s.path("d/a"))[0], 1)) },
		"a backup that was changed": func(s *session) {
			s.must(os.WriteFile(s.backups(s.path("d/a"))[0], []byte("OLD\n"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(name, "link") {
				t.Skip("links need a privilege")
			}
			s := newSession(t)
			s.write("d/a", "old\n")
			s.write("z", "old z\n")
			s.begin("m1")
			s.edit("d/a", "new\n")
			s.edit("z", "new z\n")
			spoil(s)
			before := s.text("d/a")
			s.rewind("m1", true, "z +1 -1 skipped 1")
			s.rewind("m1", false, "z +1 -1 skipped 1")
			s.has("z", "old z\n")
			if after := s.text("d/a"); after != before {
				t.Errorf("what stands in its place was changed: %q, was %q", after, before)
			}
		})
	}
}

// text is what a path leads to.
func (s *session) text(name string) string {
	text, err := os.ReadFile(s.path(name))
	return fmt.Sprintf("%q %v", text, err != nil)
}

// backups are the backups of a file, the first one first.
func (s *session) backups(target string) (all []string) {
	for _, v := range s.files[target].versions {
		if v.Backup != "" {
			all = append(all, s.backup(&v))
		}
	}
	return all
}

// TestThroughLink tracks the file behind a link, as long as the link leads there.
func TestThroughLink(t *testing.T) {
	conform.Covers(t, "S-116")
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	s := newSession(t)
	s.write("v1/f", "old\n")
	s.write("v2/f", "other\n")
	s.must(os.Symlink("v1", s.path("now")))
	s.begin("m1")
	s.must(s.Track(s.path("now/f"), s.path("v1/f")))
	s.write("v1/f", "new\n")
	s.rewind("m1", true, "now/f +1 -1 skipped 0")
	s.must(os.Remove(s.path("now")))
	s.must(os.Symlink("v2", s.path("now")))
	s.rewind("m1", false, "+0 -0 skipped 1")
	s.has("v1/f", "new\n")
	s.has("v2/f", "other\n")
	s.must(os.Remove(s.path("now")))
	s.must(os.Symlink("v1", s.path("now")))
	s.rewind("m1", false, "now/f +1 -1 skipped 0")
	s.has("v1/f", "old\n")
}

// TestMode gives modes back, and leaves no temporary file.
func TestMode(t *testing.T) {
	conform.Covers(t, "S-122", "S-22")
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	s := newSession(t)
	s.write("run", "#!/bin/sh\n")
	s.write("key", "secret")
	s.must(os.Chmod(s.path("run"), 0o755))
	s.must(os.Chmod(s.path("key"), 0o400))
	s.begin("m1")
	s.edit("run", "#!/bin/bash\n")
	s.must(s.Track(s.path("key"), s.path("key")))
	s.must(os.Chmod(s.path("run"), 0o600))
	s.must(os.Chmod(s.path("key"), 0o666)) // the contents stay
	s.rewind("m1", true, "key run +1 -1 skipped 0")
	s.rewind("m1", false, "key run +1 -1 skipped 0")
	for name, want := range map[string]fs.FileMode{"run": 0o755, "key": 0o400} {
		if info, err := os.Stat(s.path(name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	names, err := os.ReadDir(s.work)
	if err != nil || len(names) != 2 {
		t.Errorf("left in the directory: %v, %v", names, err)
	}
	s.must(filepath.WalkDir(filepath.Join(s.top, "file-history"), func(path string, d fs.DirEntry, err error) error {
		s.must(err)
		info, err := d.Info()
		s.must(err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		return nil
	}))
}

// TestKept keeps the 100 most recent checkpoints, the first, and the first state
// of every file.
func TestKept(t *testing.T) {
	conform.Covers(t, "S-120", "S-113")
	s := newSession(t)
	s.write("a", "0")
	const n = 130
	for i := 1; i <= n; i++ {
		s.begin(fmt.Sprint("m", i))
		s.edit("a", fmt.Sprint(i))
		if i == 110 {
			s.edit("late", "late")
		}
		if i%50 == 0 {
			s.reopen()
		}
	}
	for i := 1; i <= n; i++ {
		_, err := s.Rewind(t.Context(), fmt.Sprint("m", i), true)
		if kept := i == 1 || i > n-Kept; kept != (err == nil) {
			t.Errorf("m%d: %v", i, err)
		}
	}
	names, err := filepath.Glob(filepath.Join(s.dir, "*@v*"))
	if err != nil || len(names) != Kept+2 { // and the first ones of both files
		t.Errorf("%d backups, want %d; %v", len(names), Kept+2, err)
	}
	s.rewind(fmt.Sprint("m", n-Kept+1), false, "a late +1 -2 skipped 0")
	s.has("a", fmt.Sprint(n-Kept))
	s.rewind("m1", false, "a +1 -1 skipped 0")
	s.has("a", "0")
	s.has("late", "")
}

// TestOtherProgram leaves the backups of another program in the same directory
// as they are, and goes on behind what another process of ours appended.
func TestOtherProgram(t *testing.T) {
	conform.Covers(t, "S-10", "S-120", "K-293")
	s := newSession(t)
	s.write("a", "old\n")
	s.begin("m1")
	foreign := (&version{Target: name(s.path("a")), Number: 1})
	s.must(s.makeDirs())
	s.must(s.save(foreign, strings.NewReader("theirs")))
	s.edit("a", "new\n")
	if text, err := os.ReadFile(s.backup(foreign)); err != nil || string(text) != "theirs" {
		t.Errorf("the other program's backup: %q, %v", text, err)
	}
	first := s.History
	s.reopen()
	s.begin("m2")
	s.edit("a", "newer\n")
	s.History = first
	s.rewind("m2", false, "a +1 -1 skipped 0")
	s.has("a", "new\n")
	s.rewind("m1", false, "a +1 -1 skipped 0")
	s.has("a", "old\n")
}

// TestUnsaved loses the state of a file for good when it cannot be saved, rather
// than taking a later one for it, and forgets a checkpoint that cannot be.
func TestUnsaved(t *testing.T) {
	conform.Covers(t, "S-109", "S-116")
	full := errors.New("no space left on device")
	for name, breaks := range map[string]func(vfs.Op) bool{
		"backups": func(op vfs.Op) bool { return op.Kind == vfs.OpWrite && strings.Contains(op.Name, "@v") },
		"all":     func(op vfs.Op) bool { return op.Kind == vfs.OpWrite },
		"torn":    func(op vfs.Op) bool { return op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".jsonl") },
		"sync":    func(op vfs.Op) bool { return op.Kind == vfs.OpSync },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			broken := false
			s.History.fs = vfs.WithFaults(vfs.OS{}, func(op vfs.Op) error {
				switch {
				case !broken || !breaks(op):
					return nil
				case name == "torn":
					return &vfs.ShortWrite{N: op.Len / 2, Err: full}
				}
				return full
			})
			s.write("a", "a0")
			s.write("b", "b0")
			s.begin("m1")
			s.edit("b", "b1")
			broken = true
			if err := s.Track(s.path("a"), s.path("a")); !errors.Is(err, full) {
				t.Fatalf("Track: %v", err)
			}
			s.write("a", "a1")
			err := s.Begin("m2")
			if !errors.Is(err, full) {
				t.Errorf("Begin: %v", err)
			}
			s.write("b", "b2")
			broken = false
			s.edit("a", "a2")
			s.begin("m3")
			s.edit("a", "a3")
			for _, want := range []string{"a b +2 -2 skipped 0", "b +1 -1 skipped 0"} {
				before := s.text("a")
				res, err := s.Rewind(t.Context(), "m1", false)
				s.must(err)
				s.has("b", "b0")
				if after := s.text("a"); res.Skipped != 1 || after != before {
					t.Errorf("to m1: %+v, a has %s", res, after)
				}
				s.rewind("m3", false, want)
				s.has("b", "b2")
				s.has("a", "a2")
				s.reopen()
			}
		})
	}
}

// TestFaults goes on with the other files when one cannot be put back.
func TestFaults(t *testing.T) {
	conform.Covers(t, "S-112")
	if runtime.GOOS != "linux" || os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	s := newSession(t)
	s.write("d/a", "old\n")
	s.write("z", "old\n")
	s.begin("m1")
	s.edit("d/a", "new\n")
	s.edit("z", "new\n")
	s.must(os.Chmod(s.path("d/a"), 0o444))
	s.must(os.Chmod(s.path("d"), 0o555))
	res, err := s.Rewind(t.Context(), "m1", false)
	s.must(os.Chmod(s.path("d"), 0o755))
	if err == nil || !strings.Contains(err.Error(), s.path("d/a")+" could not be put back: permission denied") {
		t.Errorf("error: %v", err)
	}
	if !slices.Equal(res.Files, []string{s.path("z")}) {
		t.Errorf("result: %+v", res)
	}
	s.has("z", "old\n")
}

// TestNames keeps names that are no UTF-8.
func TestNames(t *testing.T) {
	conform.Covers(t, "S-112")
	if runtime.GOOS != "linux" {
		t.Skip("names are Unicode")
	}
	s := newSession(t)
	const odd = "caf\xe9"
	s.write(odd, "old\n")
	s.begin("m1")
	s.edit(odd, "new\n")
	s.reopen()
	s.rewind("m1", false, odd+" +1 -1 skipped 0")
	s.has(odd, "old\n")
}

// TestComesBack sees a file that went away and came back as it was, also where
// its time and size are enough to tell that it did not change.
func TestComesBack(t *testing.T) {
	conform.Covers(t, "S-112")
	s := newSession(t)
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	s.write("a", "old\n")
	s.begin("m1")
	s.edit("a", "new\n")
	s.begin("m2")
	s.must(os.Rename(s.path("a"), s.path("away")))
	s.begin("m3")
	s.must(os.Rename(s.path("away"), s.path("a")))
	s.begin("m4")
	s.write("a", "newer\n")
	s.begin("m5")
	s.rewind("m4", false, "a +1 -1 skipped 0")
	s.has("a", "new\n")
	s.rewind("m5", false, "a +1 -1 skipped 0")
	s.rewind("m3", false, "a +0 -1 skipped 0")
	s.has("a", "")
}

func TestCountLines(t *testing.T) {
	conform.Covers(t, "S-115")
	for _, c := range []struct {
		old, new string
		ins, del int
	}{
		{"", "", 0, 0},
		{"", "a\nb", 2, 0},
		{"a\nb", "", 0, 2},
		{"a\nb\nc\n", "a\nc\n", 0, 1},
		{"a\n", "a", 1, 1},
		{"+++ x\n", "--- x\n", 1, 1},
		{"\x00a\n", "b\n", 0, 0},
	} {
		if ins, del := countLines([]byte(c.old), []byte(c.new)); ins != c.ins || del != c.del {
			t.Errorf("%q to %q: +%d -%d, want +%d -%d", c.old, c.new, ins, del, c.ins, c.del)
		}
	}
	if ins, del := countLines(nil, []byte("a\n")); ins+del != 0 {
		t.Error("a file too large was counted")
	}
}
