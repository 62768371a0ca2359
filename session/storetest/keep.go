package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/session"
)

// testKeep tests a store that is a session.Keeper.
func testKeep(t *testing.T, f *fixture) {
	k, ok := f.store.(session.Keeper)
	if !ok {
		t.Skip("the store is no session.Keeper")
	}
	id, other := uuid.NewString(), uuid.NewString()
	j := f.open(t, id, true)
	defer j.Close() //nolint:errcheck // closed again at the end
	if _, err := session.Locate(f.ctx, k, id, f.dir); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a session without lines is found: %v", err)
	}
	appendAll(t, f, j, `{"type":"user","n":1}`, `{"type":"user","n":2}`)

	// It is found by its directory and everywhere, not in another directory.
	info, err := session.Locate(f.ctx, k, id, f.dir)
	if err != nil || info.ID != id || info.Size < 1 || time.Since(info.Modified) > time.Hour {
		t.Fatalf("Locate: %+v, %v", info, err)
	}
	if all, err := session.Locate(f.ctx, k, id, ""); err != nil || all.Project != info.Project {
		t.Errorf("Locate everywhere: %+v, %v", all, err)
	}
	for _, c := range []struct{ id, dir string }{{id, t.TempDir()}, {other, f.dir}, {other, ""}} {
		if _, err := session.Locate(f.ctx, k, c.id, c.dir); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("Locate(%+v): %v", c, err)
		}
	}
	if own, err := k.Projects(f.ctx, f.dir, false); err != nil || !slices.Contains(own, info.Project) {
		t.Errorf("Projects: %q, %v", own, err)
	}
	if all, err := k.Projects(f.ctx, "", false); err != nil || !slices.Contains(all, info.Project) {
		t.Errorf("all projects: %q, %v", all, err)
	}
	var bad *session.IDError
	if _, err := session.Locate(f.ctx, k, "../x", ""); !errors.As(err, &bad) {
		t.Errorf("an id that is none: %v", err)
	}

	// Lines are added while the session is open, and the journal goes on behind.
	lines := []string{`{"type":"user","n":1}`, `{"type":"user","n":2}`, `{"type":"tag","tag":"a"}`, `{"type":"user","n":3}`}
	if err := k.Add(f.ctx, info, [][]byte{[]byte(lines[2])}); err != nil {
		t.Fatalf("Add: %v", err)
	}
	if err := k.Add(f.ctx, info, [][]byte{[]byte("no object")}); err == nil {
		t.Error("a line that is no object was added")
	}
	appendAll(t, f, j, lines[3])
	if got := keptLines(t, f, k, info); !slices.Equal(got, lines) {
		t.Errorf("lines: %q", got)
	}
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	if err := k.Add(f.ctx, info, [][]byte{[]byte(lines[2])}); err != nil {
		t.Errorf("Add to an idle session: %v", err)
	}
	if err := j.Append(f.ctx, [][]byte{[]byte(lines[3])}, false); !errors.Is(err, session.ErrChanged) {
		t.Errorf("Append behind what was added while idle: %v", err)
	}
	for _, err := range j.Load(f.ctx) {
		if err != nil {
			t.Fatal(err)
		}
	}
	appendAll(t, f, j, lines[3])
	if got := keptLines(t, f, k, info); !slices.Equal(got, append(slices.Clone(lines), lines[2:]...)) {
		t.Errorf("lines: %q", got)
	}
	missing := info
	missing.ID = other
	if err := k.Add(f.ctx, missing, [][]byte{[]byte(lines[0])}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Add made a session: %v", err)
	}

	// A copy can be made in the same project.
	c, err := f.store.Open(f.ctx, other, session.OpenOptions{Dir: f.dir, Project: info.Project, Create: true})
	if err != nil {
		t.Fatalf("Open in the project %q: %v", info.Project, err)
	}
	appendAll(t, f, c, lines[0])
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if at, err := session.Locate(f.ctx, k, other, f.dir); err != nil || at.Project != info.Project {
		t.Errorf("the copy is in %+v, %v", at, err)
	}

	// Deleting takes one session with its blobs, and a process that has it open
	// goes on.
	if _, err := j.PutBlob(f.ctx, "out.txt", []byte("large")); err != nil {
		t.Fatal(err)
	}
	if err := k.Delete(f.ctx, info); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if _, err := k.Stat(f.ctx, info.Project, id); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a deleted session is there: %v", err)
	}
	if err := k.Delete(f.ctx, info); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := k.Stat(f.ctx, info.Project, other); err != nil {
		t.Errorf("the other session: %v", err)
	}
	appendAll(t, f, j, lines[3])
	if got := keptLines(t, f, k, info); !slices.Equal(got, lines[3:]) {
		t.Errorf("after it was deleted the open session has %q", got)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func appendAll(t *testing.T, f *fixture, j session.Journal, lines ...string) {
	t.Helper()
	var raw [][]byte
	for _, l := range lines {
		raw = append(raw, []byte(l))
	}
	if err := j.Append(f.ctx, raw, false); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

func keptLines(t *testing.T, f *fixture, k session.Keeper, info session.Info) (lines []string) {
	t.Helper()
	now, err := k.Stat(f.ctx, info.Project, info.ID)
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range k.Read(f.ctx, now) {
		if err != nil {
			t.Fatal(fmt.Errorf("Read: %w", err))
		}
		lines = append(lines, string(line))
	}
	return lines
}
