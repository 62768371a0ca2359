package postgres_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/postgres"
	"github.com/turnwright/turnwright/session/storetest"
)

// server is the connection string of the server for tests: any database in which
// schemas may be made. .ci/run starts one.
func server(t testing.TB) string {
	t.Helper()
	url := os.Getenv("TURNWRIGHT_TEST_POSTGRES")
	if url == "" {
		t.Skip("needs a PostgreSQL server: TURNWRIGHT_TEST_POSTGRES is not set; \".ci/postgres start DIR\" starts one")
	}
	return url
}

// newSchema names a schema that is removed after the test.
func newSchema(t testing.TB) string {
	url := server(t)
	schema := "test " + strings.ReplaceAll(uuid.NewString(), "-", "")
	t.Cleanup(func() {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(ctx) //nolint:errcheck // a test's
		if _, err := conn.Exec(ctx, `drop schema if exists "`+schema+`" cascade`); err != nil {
			t.Error(err)
		}
	})
	return schema
}

func open(t testing.TB, url string, c postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// patience is for a machine that does much else.
const patience = 10 * time.Minute

func TestStore(t *testing.T) {
	server(t)
	storetest.Run(t, func(t *testing.T) session.Store {
		return open(t, server(t), postgres.Config{Schema: newSchema(t), Timeout: patience})
	})
}

func TestStorePair(t *testing.T) {
	server(t)
	storetest.RunPair(t, func(t *testing.T) (a, b session.Store) {
		schema := newSchema(t)
		return open(t, server(t), postgres.Config{Schema: schema, Holder: "a", Timeout: patience}), open(t, server(t), postgres.Config{Schema: schema, Holder: "b", Timeout: patience})
	})
}

// TestQueryModes speaks as a pooler needs it that gives out a connection for a
// transaction (docs/stores.md), and in the other ways of the driver.
func TestQueryModes(t *testing.T) {
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			url := server(t) + "&default_query_exec_mode=" + mode
			storetest.RunPair(t, func(t *testing.T) (a, b session.Store) {
				schema := newSchema(t)
				return open(t, url, postgres.Config{Schema: schema, Timeout: patience}), open(t, url, postgres.Config{Schema: schema, Timeout: patience})
			})
		})
	}
}
