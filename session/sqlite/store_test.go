package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/sqlite"
	"github.com/turnwright/turnwright/session/storetest"
)

// open opens the database file for a test.
func open(t testing.TB, path string, c sqlite.Config) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// patience is for a machine that does much else.
const patience = 10 * time.Minute

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) session.Store {
		return open(t, filepath.Join(t.TempDir(), "sessions.db"), sqlite.Config{Timeout: patience})
	})
}

func TestStorePair(t *testing.T) {
	storetest.RunPair(t, func(t *testing.T) (a, b session.Store) {
		path := filepath.Join(t.TempDir(), "sessions.db")
		return open(t, path, sqlite.Config{Holder: "a", Timeout: patience}), open(t, path, sqlite.Config{Holder: "b", Timeout: patience})
	})
}

// change does with the file what only a clock or a fault does.
func change(t testing.TB, path, stmt string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test's
	if _, err := db.Exec(stmt, args...); err != nil {
		t.Fatal(err)
	}
}
