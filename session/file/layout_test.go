package file_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

const sid = "6f2c1a34-0b5d-4e8f-9a7b-c1d2e3f40516"

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func open(t testing.TB, s *file.Store, id, dir string, create bool) session.Journal {
	t.Helper()
	j, err := s.Open(t.Context(), id, session.OpenOptions{Dir: dir, Create: create})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func add(t testing.TB, j session.Journal, lines ...string) {
	t.Helper()
	if err := j.Append(t.Context(), split(lines), false); err != nil {
		t.Fatal(err)
	}
}

func split(lines []string) [][]byte {
	out := make([][]byte, len(lines))
	for i, line := range lines {
		out[i] = []byte(line)
	}
	return out
}

// read returns the good lines and how many were bad.
func read(t testing.TB, j session.Journal) (lines []string, bad int) {
	t.Helper()
	for line, err := range j.Load(t.Context()) {
		if _, ok := errors.AsType[*session.LineError](err); ok {
			bad++
		} else if err != nil {
			t.Fatal(err)
		} else {
			lines = append(lines, string(line))
		}
	}
	return lines, bad
}

// tree lists what is under dir, directories with a slash.
func tree(t testing.TB, dir string) map[string]fs.FileMode {
	t.Helper()
	got := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if e.IsDir() {
			name += "/"
		}
		got[filepath.ToSlash(name)] = info.Mode().Perm()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestLayout(t *testing.T) {
	conform.Covers(t, "S-9", "S-17", "S-18", "S-22", "K-281", "K-282", "K-289", "K-290")
	home, work := filepath.Join(t.TempDir(), "deep", "home"), t.TempDir()
	s := newStore(t, file.Config{ConfigDir: home})
	j := open(t, s, strings.ToUpper(sid), work, true)
	if _, err := os.Stat(filepath.Join(home, "projects")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the project directory is made before the first write: %v", err)
	}
	add(t, j, `{"n":1}`, `{"n":2}`)
	add(t, j, `{"n":3}`)
	at, err := j.PutBlob(t.Context(), "toolu_1.txt", []byte("large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	project := "projects/" + file.ProjectName(work) + "/"
	want := map[string]fs.FileMode{
		"projects/": 0o700, project: 0o700, project + sid + ".jsonl": 0o600,
		project + sid + "/": 0o700, project + sid + "/tool-results/": 0o700,
		project + sid + "/tool-results/toolu_1.txt": 0o600,
		"turnwright/": 0o700, "turnwright/owners/": 0o700, "turnwright/locks/": 0o700,
		"turnwright/locks/" + file.ProjectName(work) + "/": 0o700,
	}
	got := tree(t, home)
	if runtime.GOOS == "windows" { // has no such modes
		for name := range got {
			got[name] = want[name]
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("tree is\n%v\nwant\n%v", got, want)
	}
	if want := filepath.Join(home, filepath.FromSlash(project), sid, "tool-results", "toolu_1.txt"); at != want {
		t.Errorf("blob is at %s, want %s", at, want)
	}
	data, err := os.ReadFile(filepath.Join(home, filepath.FromSlash(project), sid+".jsonl"))
	if err != nil || string(data) != "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n" {
		t.Errorf("transcript is %q (%v)", data, err)
	}
}

func TestConfigHome(t *testing.T) {
	conform.Covers(t, "K-280")
	if runtime.GOOS == "windows" {
		t.Skip("paths of unix")
	}
	for _, c := range []struct {
		name   string
		config file.Config
		want   string
	}{
		{"default", file.Config{Getenv: env(map[string]string{"HOME": "/h"})}, "/h/.claude"},
		{"variable", file.Config{Getenv: env(map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"})}, "/c"},
		{"variable in NFD", file.Config{Getenv: env(map[string]string{"CLAUDE_CONFIG_DIR": "/cafe\u0301"})}, "/caf\u00e9"},
		{"empty variable", file.Config{Getenv: env(map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": ""})}, "/h/.claude"},
		{"option", file.Config{ConfigDir: "/o", Getenv: env(map[string]string{"CLAUDE_CONFIG_DIR": "/c"})}, "/o"},
	} {
		if got := newStore(t, c.config).Dir(); got != c.want {
			t.Errorf("%s: home is %s, want %s", c.name, got, c.want)
		}
	}
}

// Nothing that is there already is touched, but for the session's own file.
func TestForeignFilesStay(t *testing.T) {
	conform.Covers(t, "S-10")
	s := newStore(t, file.Config{ConfigDir: t.TempDir()})
	work := t.TempDir()
	project := filepath.Join(s.Dir(), "projects", file.ProjectName(work))
	var before []string
	for _, name := range []string{
		"settings.json", "history.jsonl", "projects/other/x.jsonl", filepath.Join("turnwright", "note"),
		filepath.Join("projects", filepath.Base(project), "00000000-0000-0000-0000-000000000000.jsonl"),
		filepath.Join("projects", filepath.Base(project), "memory", "MEMORY.md"),
		filepath.Join("projects", filepath.Base(project), sid+".torn-1"),
	} {
		path := filepath.Join(s.Dir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("of "+name+` {"torn`), 0o644); err != nil {
			t.Fatal(err)
		}
		before = append(before, name)
	}
	modes := tree(t, s.Dir())
	j := open(t, s, sid, work, true)
	add(t, j, `{}`)
	_ = j.Close()
	path := filepath.Join(project, sid+".jsonl")
	if err := os.WriteFile(path, []byte("{}\n{\"torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, s, sid, work, false)
	if _, err := j.PutBlob(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
	for _, name := range before {
		if data, err := os.ReadFile(filepath.Join(s.Dir(), name)); err != nil || string(data) != "of "+name+` {"torn` {
			t.Errorf("%s is now %q (%v)", name, data, err)
		}
	}
	after := tree(t, s.Dir())
	for name, mode := range modes {
		if after[name] != mode {
			t.Errorf("mode of %s was %v and is %v", name, mode, after[name])
		}
	}
}

func TestProjectDirName(t *testing.T) {
	conform.Covers(t, "S-15")
	for _, c := range []struct {
		name string
		vars map[string]string
		want string // "" = made from the directory
	}{
		{"both set", map[string]string{"CLAUDE_CONFIG_DIR": home, "CLAUDE_CODE_PROJECT_DIR_NAME": "mine"}, "mine"},
		{"no config dir", map[string]string{"HOME": filepath.Dir(home), "USERPROFILE": filepath.Dir(home), "CLAUDE_CODE_PROJECT_DIR_NAME": "mine"}, ""},
		{"bad value", map[string]string{"CLAUDE_CONFIG_DIR": home, "CLAUDE_CODE_PROJECT_DIR_NAME": "../x"}, ""},
		{"device", map[string]string{"CLAUDE_CONFIG_DIR": home, "CLAUDE_CODE_PROJECT_DIR_NAME": "NUL"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := newStore(t, file.Config{FS: mem, Getenv: env(c.vars)})
			add(t, open(t, s, sid, dir, true), `{}`)
			if c.want == "" {
				c.want = file.ProjectName(dir)
			}
			names, err := mem.ReadDir(filepath.Join(home, "projects"))
			if err != nil || !slices.Equal(names, []string{c.want}) {
				t.Errorf("projects are %v (%v), want %s", names, err, c.want)
			}
		})
	}
	_, err := file.New(file.Config{ConfigDir: home, ProjectDirName: "a b"})
	if bad, ok := errors.AsType[*session.OptionError](err); !ok || bad.Field != "ProjectDirName" {
		t.Errorf("ProjectDirName a b: error %v", err)
	}
}

func TestRelativeDir(t *testing.T) {
	s := newStore(t, file.Config{ConfigDir: home, FS: vfs.NewMem()})
	_, err := s.Open(t.Context(), sid, session.OpenOptions{Dir: "proj", Create: true})
	if bad, ok := errors.AsType[*session.OptionError](err); !ok || bad.Value != "proj" {
		t.Errorf("error %v, want *session.OptionError with the value", err)
	}
}

func TestIDIsChecked(t *testing.T) {
	conform.Covers(t, "S-4")
	mem := vfs.NewMem()
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	for _, id := range []string{"../" + sid, "../../x", "x", sid + ".jsonl"} {
		_, err := s.Open(t.Context(), id, session.OpenOptions{Dir: dir, Create: true})
		if bad, ok := errors.AsType[*session.IDError](err); !ok || bad.ID != id {
			t.Errorf("Open(%q): error %v", id, err)
		}
	}
	if names, _ := mem.ReadDir(filepath.Dir(filepath.Dir(home))); len(names) != 0 {
		t.Errorf("a refused id leaves %v", names)
	}
}

func TestChosenIDInUse(t *testing.T) {
	conform.Covers(t, "S-6")
	s := newStore(t, file.Config{ConfigDir: home, FS: vfs.NewMem()})
	j := open(t, s, sid, dir, true)
	add(t, j, `{}`)
	_ = j.Close()
	if _, err := s.Open(t.Context(), strings.ToUpper(sid), session.OpenOptions{Dir: dir, Create: true}); !errors.Is(err, session.ErrExists) {
		t.Errorf("error %v, want ErrExists", err)
	}
}

// A client that starts a session with the same id between our Open and our
// first line keeps its file for itself.
func TestChosenIDTakenByClient(t *testing.T) {
	conform.Covers(t, "S-6")
	for _, released := range []bool{false, true} {
		mem := vfs.NewMem()
		s := newStore(t, file.Config{ConfigDir: home, FS: mem})
		j := open(t, s, sid, dir, true)
		if released {
			_ = j.Release()
		}
		path := transcript(dir)
		for _, d := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} {
			if err := mem.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		foreign(t, mem, path, "{\"theirs\":1}\n")
		for range 2 {
			if err := j.Append(t.Context(), split([]string{`{"ours":1}`}), false); !errors.Is(err, session.ErrExists) {
				t.Errorf("released %v: error %v, want ErrExists", released, err)
			}
			read(t, j)
		}
		if got := contents(t, mem, path); got != "{\"theirs\":1}\n" {
			t.Errorf("released %v: file is %q", released, got)
		}
	}
}

func TestSameIDInOtherProject(t *testing.T) {
	conform.Covers(t, "S-9")
	s := newStore(t, file.Config{ConfigDir: home, FS: vfs.NewMem()})
	other := dir + "-other"
	a, b := open(t, s, sid, dir, true), open(t, s, sid, other, true)
	add(t, a, `{"a":1}`)
	add(t, b, `{"b":1}`)
	if got, _ := read(t, a); !slices.Equal(got, []string{`{"a":1}`}) {
		t.Errorf("first project has %v", got)
	}
	if got, _ := read(t, b); !slices.Equal(got, []string{`{"b":1}`}) {
		t.Errorf("second project has %v", got)
	}
}

// A session that a JavaScript client made in a directory with a character
// beyond the basic plane is found under its name and goes on there.
func TestLookupTriesUTF16(t *testing.T) {
	conform.Covers(t, "K-284")
	mem := vfs.NewMem()
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	work := dir + "🎉"
	j := open(t, s, sid, work, true)
	add(t, j, `{"n":1}`)
	_ = j.Close()
	projects := filepath.Join(home, "projects")
	ours := file.ProjectName(work)
	if err := mem.Rename(filepath.Join(projects, ours), filepath.Join(projects, ours+"-")); err != nil {
		t.Fatal(err)
	}
	j = open(t, s, sid, work, false)
	add(t, j, `{"n":2}`)
	if got, _ := read(t, j); len(got) != 2 {
		t.Errorf("lines are %v", got)
	}
	if names, _ := mem.ReadDir(projects); !slices.Equal(names, []string{ours + "-"}) {
		t.Errorf("projects are %v", names)
	}
}

func TestNoEmptyFile(t *testing.T) {
	conform.Covers(t, "K-291")
	mem := vfs.NewMem()
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	j := open(t, s, sid, dir, true)
	if lines, _ := read(t, j); len(lines) != 0 {
		t.Error(lines)
	}
	_ = j.Append(t.Context(), nil, true)
	_ = j.Close()
	if _, err := mem.Stat(filepath.Join(home, "projects")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a session without lines leaves something: %v", err)
	}
	// An empty file counts as absent.
	j = open(t, s, sid, dir, true)
	add(t, j, `{}`)
	_ = j.Close()
	if err := mem.Truncate(transcript(dir), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), sid, session.OpenOptions{Dir: dir}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("open of an empty file: error %v, want ErrNotFound", err)
	}
	j = open(t, s, sid, dir, true)
	add(t, j, `{"n":1}`)
	if got, _ := read(t, j); len(got) != 1 {
		t.Error(got)
	}
}

func TestDeletedUnderUs(t *testing.T) {
	conform.Covers(t, "K-393")
	for _, released := range []bool{false, true} {
		s := newStore(t, file.Config{ConfigDir: t.TempDir()})
		work := t.TempDir()
		j := open(t, s, sid, work, true)
		add(t, j, `{"n":1}`)
		if released {
			_ = j.Release()
		}
		project := filepath.Join(s.Dir(), "projects", file.ProjectName(work))
		if err := os.RemoveAll(project); err != nil {
			t.Fatal(err)
		}
		add(t, j, `{"n":2}`)
		if err := j.Append(t.Context(), split([]string{`{"n":3}`}), true); err != nil {
			t.Fatal(err)
		}
		if got, _ := read(t, j); !slices.Equal(got, []string{`{"n":2}`, `{"n":3}`}) {
			t.Errorf("released %v: lines after deletion are %v", released, got)
		}
		_ = j.Close()
	}
}

// Whoever replaces the file (a backup that is put back) gets the next lines.
func TestReplacedUnderUs(t *testing.T) {
	mem := vfs.NewMem()
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	j := open(t, s, sid, dir, true)
	add(t, j, `{"n":1}`)
	path := transcript(dir)
	foreign(t, mem, path+".new", `{"other":1}`)
	if err := mem.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	add(t, j, `{"n":2}`)
	if got := contents(t, mem, path); got != "{\"other\":1}\n{\"n\":2}\n" {
		t.Errorf("file is %q", got)
	}
}

func TestNotARegularFile(t *testing.T) {
	mem := vfs.NewMem()
	s := newStore(t, file.Config{ConfigDir: home, FS: mem})
	j := open(t, s, sid, dir, true)
	add(t, j, `{}`)
	_ = j.Close()
	if err := mem.Remove(transcript(dir)); err != nil {
		t.Fatal(err)
	}
	if err := mem.Mkdir(transcript(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := s.Open(t.Context(), sid, session.OpenOptions{Dir: dir})
	if e, ok := errors.AsType[*session.IOError](err); !ok || e.Path != transcript(dir) {
		t.Errorf("error %v, want *session.IOError naming the file", err)
	}
}

func transcript(dir string) string {
	return filepath.Join(home, "projects", file.ProjectName(dir), sid+".jsonl")
}

// foreign appends bytes as another program would.
func foreign(t testing.TB, on vfs.FS, path, data string) {
	t.Helper()
	f, err := on.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // memory
	if _, err := f.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, on vfs.FS, path string) string {
	t.Helper()
	data, err := vfs.ReadFile(on, path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
