//go:build unix

package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/leasetest"
	"github.com/turnwright/turnwright/session/sqlite"
)

func openPlace(ctx context.Context, place, holder string, lease time.Duration) (session.Store, error) {
	return sqlite.Open(ctx, place, sqlite.Config{Holder: holder, Lease: lease})
}

func TestMain(m *testing.M) { leasetest.Main(m, openPlace) }

func TestProcesses(t *testing.T) {
	conform.Covers(t, "S-27")
	leasetest.Run(t, openPlace, func(t *testing.T) string { return filepath.Join(t.TempDir(), "sessions.db") })
}

func TestPausedHolder(t *testing.T) {
	conform.Covers(t, "S-27")
	path := filepath.Join(t.TempDir(), "sessions.db")
	leasetest.Paused(t, openPlace, path, func(t *testing.T) { change(t, path, "update sessions set expires = 1") })
}
