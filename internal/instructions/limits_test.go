package instructions_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/instructions"
)

// place is a folder with files and a set on it that keeps what it is warned of.
type place struct {
	t     testing.TB
	root  string
	cfg   instructions.Config
	mem   fstest.MapFS // nil: on disk
	warns []string
	notes []string
}

func newPlace(t testing.TB) *place {
	p := &place{t: t, root: realDir(t)}
	p.cfg = instructions.Config{
		Dir: p.root, Project: true, Local: true,
		Warn:  func(line string) { p.warns = append(p.warns, line) },
		Debug: func(line string) { p.notes = append(p.notes, line) },
	}
	return p
}

func (p *place) write(path, text string) {
	p.t.Helper()
	if p.mem != nil {
		p.mem[path] = &fstest.MapFile{Data: []byte(text)}
		return
	}
	path = filepath.Join(p.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) load() instructions.Result {
	p.t.Helper()
	r, err := instructions.New(p.cfg).Load(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// warned checks that there was one warning, with these words.
func (p *place) warned(words ...string) {
	p.t.Helper()
	for _, w := range words {
		if len(p.warns) != 1 || !strings.Contains(p.warns[0], w) {
			p.t.Errorf("warned %q, want one that has %q", p.warns, words)
			return
		}
	}
}

// TestLargeFile leaves out a file of more than 4 MiB, and only that.
func TestLargeFile(t *testing.T) {
	conform.Covers(t, "C-50")
	p := newPlace(t)
	p.write("CLAUDE.md", "@big.md")
	p.write("big.md", strings.Repeat("x", 4<<20))
	if r := p.load(); len(r.Files) != 2 || len(r.Text) < 4<<20 || len(p.warns) > 0 {
		t.Errorf("at the bound: %d files, %d bytes, warned %q", len(r.Files), len(r.Text), p.warns)
	}
	p.write("big.md", strings.Repeat("x", 4<<20+1))
	p.write("CLAUDE.local.md", "small")
	if r := p.load(); len(r.Files) != 2 || !strings.Contains(r.Text, "small") || strings.Contains(r.Text, "xxx") {
		t.Errorf("over the bound: %d files", len(r.Files))
	}
	p.warned("big.md", "4194305", "4194304")
}

// TestGrowingFile is a file that is larger when it is read than when it was found.
func TestGrowingFile(t *testing.T) {
	p := newPlace(t)
	p.write("CLAUDE.md", "small")
	p.cfg.FS = faulty{Disk: instructions.Disk, read: func(string, int) ([]byte, error) { return make([]byte, 4<<20+1), nil }}
	if r := p.load(); r.Text != "" {
		t.Errorf("%d bytes", len(r.Text))
	}
	p.warned("CLAUDE.md", "4194304")
}

// memory is a folder that is only in memory, for tests with many files.
type memory struct {
	root  string
	files fstest.MapFS
}

func newMemory(t testing.TB) *place {
	p := newPlace(t)
	p.mem = fstest.MapFS{}
	p.cfg.FS = memory{p.root, p.mem}
	return p
}

func (m memory) name(path string) string {
	rel, err := filepath.Rel(m.root, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "outside"
	}
	return filepath.ToSlash(rel)
}

func (m memory) Resolve(path string) (string, error) { return path, nil }

func (m memory) Stat(path string) (fs.FileInfo, error) { return m.files.Stat(m.name(path)) }

func (m memory) Read(path string, limit int) ([]byte, error) {
	data, err := m.files.ReadFile(m.name(path))
	return data[:min(len(data), limit)], err
}

func (m memory) Names(dir string) (names []string, err error) {
	entries, err := m.files.ReadDir(m.name(dir))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// TestManyFiles bounds what a session loads.
func TestManyFiles(t *testing.T) {
	p := newMemory(t)
	for i := range 1005 {
		p.write(fmt.Sprintf(".claude/rules/%04d.md", i), "x")
	}
	if r := p.load(); len(r.Files) != 1000 {
		t.Errorf("%d files", len(r.Files))
	}
	p.warned("1000.md", "1000 files")
	p = newMemory(t)
	for i := range 5 {
		p.write(fmt.Sprintf(".claude/rules/%d.md", i), strings.Repeat("y", 4<<20))
	}
	if r := p.load(); len(r.Files) != 4 {
		t.Errorf("%d files of 4 MiB", len(r.Files))
	}
	p.warned("4.md", "16777216 bytes")
	p = newMemory(t)
	p.write("CLAUDE.md", strings.Repeat("@none ", 2000)+"@last.md")
	p.write("last.md", "NEVER")
	if r := p.load(); len(r.Files) != 1 {
		t.Errorf("%d files: every mention was looked for", len(r.Files))
	}
	p = newMemory(t)
	for i := range 10 {
		p.write(fmt.Sprintf(".claude/rules/%d.md", i), strings.Repeat("@none ", 1000))
	}
	p.write(".claude/rules/last.md", "@../../last.md")
	p.write("last.md", "NEVER")
	if r := p.load(); len(r.Files) != 11 {
		t.Errorf("%d files: the mentions of all files were looked for", len(r.Files))
	}
	p = newMemory(t)
	for i := range 1005 {
		p.write(fmt.Sprintf(".claude/rules/%04d.md", i), "---\npaths: a.go\n---\nx")
	}
	p.load()
	p.warned("1000.md", "1000 files")
	p = newMemory(t)
	for i := range 1005 {
		p.write(fmt.Sprintf(".claude/rules/%04d/r.md", i), "---\npaths: a.go\n---\nx")
	}
	p.write("CLAUDE.local.md", "the local file")
	if r := p.load(); !strings.Contains(r.Text, "the local file") {
		t.Error("many directories of rules push out other files")
	}
	p.warned("rules/0999", "1000 directories")
}

// TestUglyText makes valid text of what is none, with one kind of line end.
func TestUglyText(t *testing.T) {
	p := newPlace(t)
	p.write("CLAUDE.md", "\uFEFFone\r\n<!-- gone -->\r\n\xff two\r\n```\r\n@a.md\r\n```\r\n@b.md\r\n")
	p.write("a.md", "NEVER")
	p.write("b.md", "bee")
	r := p.load()
	if !strings.Contains(r.Text, "):\n\none\n\uFFFD two\n```\n@a.md\n```\n@b.md\n\nContents of ") || !strings.Contains(r.Text, "bee") || strings.Contains(r.Text, "NEVER") {
		t.Errorf("%q", r.Text)
	}
	p.write("CLAUDE.md", "text\x00more @b.md")
	if r := p.load(); r.Text != "" {
		t.Errorf("what is no text is shown: %q", r.Text)
	}
	p.warned("CLAUDE.md", "no text")
	p = newPlace(t)
	p.write("CLAUDE.md", "a picture: @logo.png")
	p.write("logo.png", "\x89PNG\x00")
	if r := p.load(); len(r.Files) != 1 || len(p.warns) > 0 || len(p.notes) != 1 {
		t.Errorf("%d files, warned %q, noted %q", len(r.Files), p.warns, p.notes)
	}
	p = newPlace(t)
	p.write("CLAUDE.md", "\n \n<!-- nothing -->\n")
	if r := p.load(); r.Text != "" {
		t.Errorf("of a blank file comes %q", r.Text)
	}
}

// TestOddFiles finds directories, dangling links and links in a circle where
// files should be; none of them stops anything.
func TestOddFiles(t *testing.T) {
	p := newPlace(t)
	p.cfg.Names = []string{"CLAUDE.md", "AGENTS.md"}
	p.write("CLAUDE.md/x", "a directory")
	p.write("AGENTS.md", "agents")
	p.write("a/b", "a file where a directory is looked for")
	p.write(".claude/rules/dir.md/inner.md", "a rule in a directory with the name of a rule")
	for from, to := range map[string]string{"CLAUDE.local.md": "nowhere", ".claude/rules/loop.md": "loop.md", ".claude/rules/up": ".."} {
		if err := os.Symlink(to, filepath.Join(p.root, from)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	p.cfg.SystemDir = filepath.Join(p.root, "a", "b")
	r := p.load()
	if len(r.Files) != 2 || !strings.Contains(r.Text, "agents") || !strings.Contains(r.Text, "a rule in") {
		t.Errorf("%+v", r)
	}
	if len(p.warns) > 1 || len(p.warns) == 1 && !strings.Contains(p.warns[0], "loop.md") {
		t.Errorf("warned %q", p.warns)
	}
}

// faulty is a disk on which some things fail.
type faulty struct {
	Disk instructions.FS
	stat func(string) error
	read func(string, int) ([]byte, error)
	list func(string) error
}

func (f faulty) Resolve(name string) (string, error) { return f.Disk.Resolve(name) }

func (f faulty) Stat(name string) (fs.FileInfo, error) {
	if f.stat != nil {
		if err := f.stat(name); err != nil {
			return nil, err
		}
	}
	return f.Disk.Stat(name)
}

func (f faulty) Read(name string, limit int) ([]byte, error) {
	if f.read != nil {
		return f.read(name, limit)
	}
	return f.Disk.Read(name, limit)
}

func (f faulty) Names(dir string) ([]string, error) {
	if f.list != nil {
		if err := f.list(dir); err != nil {
			return nil, err
		}
	}
	return f.Disk.Names(dir)
}

// TestFailingDisk says which file cannot be read and goes on with the others.
func TestFailingDisk(t *testing.T) {
	refuse := &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}
	for what, f := range map[string]faulty{
		"stat": {stat: func(name string) error {
			if strings.HasSuffix(name, "CLAUDE.local.md") && filepath.Dir(name) != filepath.Dir(filepath.Dir(name)) && strings.Contains(name, t.Name()) {
				return refuse
			}
			return nil
		}},
		"read": {read: func(name string, limit int) ([]byte, error) {
			if strings.HasSuffix(name, "CLAUDE.local.md") {
				return nil, refuse
			}
			return instructions.Disk.Read(name, limit)
		}},
		"list": {list: func(dir string) error {
			if strings.Contains(dir, t.Name()) {
				return refuse
			}
			return nil
		}},
	} {
		p := newPlace(t)
		p.write("CLAUDE.md", "root")
		p.write("CLAUDE.local.md", "local")
		p.write(".claude/rules/r.md", "rule")
		f.Disk = instructions.Disk
		p.cfg.FS = f
		r := p.load()
		if len(r.Files) != 2 || !strings.Contains(r.Text, "root") {
			t.Errorf("%s fails: %d files", what, len(r.Files))
		}
		ours := 0
		for _, w := range p.warns {
			if strings.Contains(w, p.root) && strings.Contains(w, "permission denied") {
				ours++
			}
		}
		if ours != 1 {
			t.Errorf("%s fails: warned %q", what, p.warns)
		}
	}
}

// TestCancelled gives up between two files, and has not loaded anything then.
func TestCancelled(t *testing.T) {
	p := newPlace(t)
	p.write("CLAUDE.md", "root")
	p.write("sub/CLAUDE.md", "sub")
	s := instructions.New(p.cfg)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if r, err := s.Load(t.Context()); err != nil || len(r.Files) != 1 || r.Files[0].Reason != instructions.SessionStart {
		t.Errorf("%+v, %v", r, err)
	}
	file := filepath.Join(p.root, "sub", "f.go")
	if r := s.Touch(ctx, file); len(r.Files) != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.Touch(t.Context(), file); len(r.Files) != 1 {
		t.Errorf("what nobody has seen does not come again: %+v", r)
	}
	// Cancelled between two files: neither was seen.
	p.write("one/CLAUDE.md", "one")
	p.write("one/two/CLAUDE.md", "two")
	file = filepath.Join(p.root, "one", "two", "f.go")
	ctx, cancel = context.WithCancel(t.Context())
	p.cfg.FS = faulty{Disk: instructions.Disk, read: func(name string, limit int) ([]byte, error) {
		if strings.Contains(name, "two") {
			cancel()
		}
		return instructions.Disk.Read(name, limit)
	}}
	s = instructions.New(p.cfg)
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := s.Touch(ctx, file); len(r.Files) != 0 || r.Text != "" {
		t.Errorf("%+v", r)
	}
	if r := s.Touch(t.Context(), file); len(r.Files) != 2 {
		t.Errorf("what nobody has seen does not come again: %+v", r)
	}
}

// TestRestore knows what an earlier life of the session has seen.
func TestRestore(t *testing.T) {
	p := newPlace(t)
	p.write("a/CLAUDE.md", "a")
	p.write("a/b/CLAUDE.md", "b")
	file := filepath.Join(p.root, "a", "b", "f.go")
	s := instructions.New(p.cfg)
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := s.Touch(t.Context(), file)
	if len(first.Files) != 2 {
		t.Fatalf("%+v", first)
	}
	s = instructions.New(p.cfg)
	s.Restore([]string{first.Files[0].Key()})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := s.Touch(t.Context(), file); len(r.Files) != 1 || r.Files[0].Path != first.Files[1].Path {
		t.Errorf("%+v", r)
	}
}

// BenchmarkNoFiles is what a session pays that has no instruction files.
func BenchmarkNoFiles(b *testing.B) {
	p := newPlace(b)
	p.cfg.Dir = filepath.Join(p.root, "one", "two", "three", "four")
	if err := os.MkdirAll(p.cfg.Dir, 0o755); err != nil {
		b.Fatal(err)
	}
	p.cfg.User, p.cfg.Home, p.cfg.SystemDir = true, filepath.Join(p.root, ".claude"), filepath.Join(p.root, "etc")
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if r, _ := instructions.New(p.cfg).Load(b.Context()); r.Text != "" {
				b.Fatal(r.Text)
			}
		}
	})
	s := instructions.New(p.cfg)
	if _, err := s.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			s.Touch(b.Context(), filepath.Join(p.cfg.Dir, "a", "b", "f.go"))
		}
	})
}
