package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

const day = 24 * time.Hour

// aged writes files with an age in days; one whose name ends with "/" is a
// directory.
func aged(t *testing.T, home string, days int, names ...string) {
	t.Helper()
	at := time.Now().Add(-time.Duration(days) * day)
	for _, name := range names {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"type":"turnwright","kind":"open"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// filesBelow are the files below a directory.
func filesBelow(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func sweepID(n byte) string { return "5e550000-0000-4000-8000-00000000000" + string('0'+n) }

func TestSweep(t *testing.T) {
	conform.Covers(t, "S-32", "S-33", "S-10")
	home := t.TempDir()
	s := newStore(t, file.Config{ConfigDir: home})
	p, q, h := "projects/-p/", "projects/-q/", "file-history/"
	id := sweepID
	aged(t, home, 31,
		// Goes, with all that belongs to it.
		p+id(1)+".jsonl", p+id(1)+"/subagents/agent-a.jsonl", p+id(1)+"/subagents/agent-a.meta.json", p+id(1)+"/tool-results/out.txt",
		p+id(1)+".torn-1", h+id(1)+"/a@v1",
		q+id(2)+".jsonl", h+id(2)+"/a@v1",
		// Stays: something of it is new, or another session has the id.
		p+id(3)+".jsonl", p+id(3)+"/subagents/agent-a.jsonl",
		p+id(4)+".jsonl", h+id(4)+"/a@v1",
		q+id(5)+".jsonl", h+id(5)+"/a@v1",
		// Stays: it is none of ours.
		p+"notes.jsonl", p+"agent-1.jsonl", p+"memory/MEMORY.md", p+id(6)+"/tool-results/out.txt", h+id(6)+"/a@v1", h+"notes/a",
		p+"5E550000-0000-4000-8000-000000000009.jsonl", id(7)+".jsonl", "projects/"+id(7)+".jsonl", p+"deeper/"+id(7)+".jsonl", "plans/x.md", "settings.json",
		// Stays: somebody has it open.
		p+id(8)+".jsonl", p+id(9)+".jsonl",
	)
	aged(t, home, 29, p+id(3)+"/tool-results/out.txt", h+id(4)+"/b@v2", p+id(5)+".jsonl", p+"5e550000-0000-4000-8000-00000000000a.jsonl")
	foreign := filepath.Join(home, p, "5e550000-0000-4000-8000-00000000000b.jsonl")
	aged(t, home, 31, p+filepath.Base(foreign))
	at := time.Now().Add(-31 * day)
	// Another program began it; we only went on.
	if err := os.WriteFile(foreign, []byte(`{"type":"user"}`+"\n"+`{"type":"turnwright"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(foreign, at, at); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	aged(t, outside, 31, "kept.txt")
	if err := os.Symlink(outside, filepath.Join(home, p, id(1), "link")); err != nil {
		t.Fatal(err)
	}
	open := func(n byte) session.Journal {
		t.Helper()
		j, err := newStore(t, file.Config{ConfigDir: home}).Open(t.Context(), id(n), session.OpenOptions{Project: "-p"})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	running, idle := open(8), open(9)
	if err := idle.Release(); err != nil {
		t.Fatal(err)
	}
	before := filesBelow(t, home)
	removed, err := s.Sweep(t.Context(), time.Now().Add(-30*day))
	if err != nil || removed != 3 {
		t.Errorf("removed %d, %v", removed, err)
	}
	var gone []string
	after := filesBelow(t, home)
	for _, name := range before {
		if !slices.Contains(after, name) && !strings.HasPrefix(name, "turnwright/") {
			gone = append(gone, name)
		}
	}
	want := []string{
		h + id(1) + "/a@v1", h + id(2) + "/a@v1", p + id(1) + "/link", p + id(1) + "/subagents/agent-a.jsonl", p + id(1) + "/subagents/agent-a.meta.json",
		p + id(1) + "/tool-results/out.txt", p + id(1) + ".jsonl", p + id(1) + ".torn-1", q + id(2) + ".jsonl", q + id(5) + ".jsonl",
	}
	slices.Sort(gone)
	slices.Sort(want)
	if !slices.Equal(gone, want) {
		t.Errorf("gone are\n%q, want\n%q", gone, want)
	}
	if got := filesBelow(t, outside); len(got) != 1 {
		t.Error("a link was followed")
	}
	// When they are closed they are old like any other.
	if err := errors.Join(running.Close(), idle.Close(), idle.Close()); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Sweep(t.Context(), time.Now().Add(-30*day)); err != nil || removed != 2 {
		t.Errorf("then removed %d, %v", removed, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Sweep(ended, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	if removed, err := newStore(t, file.Config{ConfigDir: t.TempDir()}).Sweep(t.Context(), time.Now()); removed != 0 || err != nil {
		t.Errorf("an empty home: %d, %v", removed, err)
	}
}
