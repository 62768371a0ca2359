package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/leased"
)

func appendLines(j session.Journal, lines ...string) error {
	all := make([][]byte, len(lines))
	for i, l := range lines {
		all[i] = []byte(l)
	}
	return j.Append(context.Background(), all, true)
}

func wantLines(t *testing.T, j session.Journal, want ...string) {
	t.Helper()
	var got []string
	for line, err := range j.Load(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("lines\n%.300s\nwant\n%.300s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func wantIO(t *testing.T, err error, code string) {
	t.Helper()
	if io, ok := errors.AsType[*session.IOError](err); !ok || io.Code != code {
		t.Fatalf("error %v, want *session.IOError with code %q", err, code)
	}
}

// inside opens a store whose connection for writing the test can reach.
func inside(t *testing.T) (*db, *Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	d, err := newDB(path, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := leased.Config{Place: path, Lease: time.Hour}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return d, &Store{leased.New(d, c)}
}

func (d *db) exec(t *testing.T, stmt string) {
	t.Helper()
	if _, err := d.write.ExecContext(t.Context(), stmt); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk fails in the middle of an append: nothing of it is there, and the
// same append works when there is room.
func TestFullDisk(t *testing.T) {
	d, store := inside(t)
	j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // a test's
	if err := appendLines(j, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	d.exec(t, "pragma max_page_count = 40")
	large := `{"n":"` + strings.Repeat("x", 1<<20) + `"}`
	for range 2 {
		wantIO(t, appendLines(j, `{"n":2}`, large, `{"n":4}`), "ENOSPC")
	}
	wantLines(t, j, `{"n":1}`)
	d.exec(t, "pragma max_page_count = 1000000")
	if err := appendLines(j, `{"n":2}`, large, `{"n":4}`); err != nil {
		t.Fatal(err)
	}
	wantLines(t, j, `{"n":1}`, `{"n":2}`, large, `{"n":4}`)
}

func TestReadOnly(t *testing.T) {
	d, store := inside(t)
	j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // a test's
	if err := appendLines(j, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	d.exec(t, "pragma query_only = 1")
	wantIO(t, appendLines(j, `{"n":2}`), "EROFS")
	wantLines(t, j, `{"n":1}`)
	d.exec(t, "pragma query_only = 0")
	if err := appendLines(j, `{"n":2}`); err != nil {
		t.Fatal(err)
	}
	wantLines(t, j, `{"n":1}`, `{"n":2}`)
}

// TestSync asks the connection how it writes: with sync the log is synced at
// each commit, without it is not.
func TestSync(t *testing.T) {
	d, store := inside(t)
	j, err := store.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // a test's
	const normal, full = 1, 2
	for _, c := range []struct {
		lines [][]byte
		sync  bool
		want  int
	}{
		{[][]byte{[]byte(`{}`)}, false, normal},
		{[][]byte{[]byte(`{}`)}, true, full},
		{[][]byte{[]byte(`{}`)}, false, normal},
		{nil, true, full},
	} {
		if err := j.Append(t.Context(), c.lines, c.sync); err != nil {
			t.Fatal(err)
		}
		var got int
		var mode string
		if err := d.write.QueryRowContext(t.Context(), "select synchronous, journal_mode from pragma_synchronous, pragma_journal_mode").Scan(&got, &mode); err != nil {
			t.Fatal(err)
		}
		if got != c.want || mode != "wal" {
			t.Errorf("after Append of %d lines, sync %v: synchronous %d, journal %s, want %d", len(c.lines), c.sync, got, mode, c.want)
		}
	}
}

// TestClockSetBack has a lease of somebody who is dead, from before the clock
// was set back.
func TestClockSetBack(t *testing.T) {
	d, store := inside(t)
	dir, id := t.TempDir(), uuid.NewString()
	j, err := store.Open(t.Context(), id, session.OpenOptions{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := appendLines(j, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	d.exec(t, "update sessions set lease = 200, expires = expires + 86400000")
	k, err := store.Open(t.Context(), id, session.OpenOptions{Dir: dir, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // a test's
	if _, ok := errors.AsType[*session.LockedError](appendLines(j, `{"lost":1}`)); !ok {
		t.Error("the one who lost the lease may write")
	}
	wantLines(t, k, `{"n":1}`)
}

func TestOpen(t *testing.T) {
	conform.Covers(t, "S-22")
	path := filepath.Join(t.TempDir(), "new dir", "ä ?#%.db")
	s, err := Open(t.Context(), path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := appendLines(j, `{}`); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v (%v)", e.Name(), info.Mode(), err)
		}
	}
	if got := strings.Join(names, " "); got != "ä ?#%.db ä ?#%.db-shm ä ?#%.db-wal" {
		t.Errorf("files %s", got)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %v (%v)", info.Mode(), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Open(t.Context(), uuid.NewString(), session.OpenOptions{Dir: t.TempDir(), Create: true})
	wantIO(t, err, "")
}

func TestOpenErrors(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		c    Config
		want string
	}{
		"no path":          {"", Config{}, "path"},
		"short lease":      {"x.db", Config{Lease: 1}, "Config.Lease"},
		"negative timeout": {"x.db", Config{Timeout: -1}, "Config.Timeout"},
	} {
		_, err := Open(t.Context(), c.path, c.c)
		if bad, ok := errors.AsType[*session.OptionError](err); !ok || bad.Field != c.want {
			t.Errorf("%s: error %v, want *session.OptionError for %s", name, err, c.want)
		}
	}
	dir := t.TempDir()
	for name, stmt := range map[string]string{
		"another program's":                "pragma application_id = 77; create table x (y)",
		"another program's, without an id": "pragma user_version = 3; create table x (y)",
		"a newer version's":                fmt.Sprintf("pragma application_id = %d; pragma user_version = 1000", application),
	} {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), stmt); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), path, Config{})
		wantIO(t, err, "")
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), garbage, Config{})
	wantIO(t, err, "")
	_, err = Open(t.Context(), dir, Config{})
	wantIO(t, err, "")
}
