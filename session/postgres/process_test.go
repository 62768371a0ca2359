//go:build unix

package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/internal/leasetest"
	"github.com/turnwright/turnwright/session/postgres"
)

// openPlace takes a schema for a place.
func openPlace(ctx context.Context, place, holder string, lease time.Duration) (session.Store, error) {
	return postgres.Open(ctx, os.Getenv("TURNWRIGHT_TEST_POSTGRES"), postgres.Config{Schema: place, Holder: holder, Lease: lease})
}

func TestMain(m *testing.M) { leasetest.Main(m, openPlace) }

func TestProcesses(t *testing.T) {
	conform.Covers(t, "S-27")
	server(t)
	leasetest.Run(t, openPlace, func(t *testing.T) string { return newSchema(t) })
}

func TestPausedHolder(t *testing.T) {
	conform.Covers(t, "S-27")
	server(t)
	leasetest.Paused(t, openPlace, newSchema(t), nil)
}
