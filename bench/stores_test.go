package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
	"github.com/turnwright/turnwright/session/postgres"
	"github.com/turnwright/turnwright/session/sqlite"
)

// stores are what can keep a session on this machine: PostgreSQL where a server
// is, see TURNWRIGHT_TEST_POSTGRES.
func stores(b *testing.B) map[string]session.Store {
	b.Helper()
	all := map[string]session.Store{}
	f, err := file.New(file.Config{ConfigDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	all["file"] = f
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "sessions.db"), sqlite.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	all["sqlite"] = s
	if url := os.Getenv("TURNWRIGHT_TEST_POSTGRES"); url != "" {
		p, err := postgres.Open(b.Context(), url, postgres.Config{Schema: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = p.Close() })
		all["postgres"] = p
	} else {
		b.Log("without PostgreSQL: TURNWRIGHT_TEST_POSTGRES is not set")
	}
	return all
}

// BenchmarkStores lets all stores do the same in turn, and reports the time of
// each, in µs or ms for each operation, and its ratio to the file store's. The
// machine's load falls on all of them alike.
func BenchmarkStores(b *testing.B) {
	line := fmt.Appendf(nil, `{"type":"assistant","text":%q}`, strings.Repeat("x", 1000))
	for _, c := range []struct {
		name string
		n    int // lines of an append
		sync bool
	}{{"append/one/written", 1, false}, {"append/one/synced", 1, true}, {"append/ten/written", 10, false}} {
		b.Run(c.name, func(b *testing.B) {
			batch := make([][]byte, c.n)
			for i := range batch {
				batch[i] = line
			}
			inTurn(b, 1e3, "µs", func(_ string, j session.Journal) func() {
				return func() {
					if err := j.Append(context.Background(), batch, c.sync); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
	for name, lines := range map[string]int{"load/10MB": 10_000, "load/100MB": 100_000, "load/million": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			text := line
			if lines == 1_000_000 {
				text = line[:90]
				text = append(text[:88:88], `"}`...)
			}
			if os.Getenv("TURNWRIGHT_BENCH_SMALL") != "" {
				lines = 1000
			}
			inTurn(b, 1e6, "ms", func(store string, j session.Journal) func() {
				batch := make([][]byte, 1000)
				for i := range batch {
					batch[i] = text
				}
				for range lines / len(batch) {
					if err := j.Append(context.Background(), batch, false); err != nil {
						b.Fatal(err)
					}
				}
				return func() {
					n := 0
					for _, err := range j.Load(context.Background()) {
						if err != nil {
							b.Fatal(err)
						}
						n++
					}
					if n != lines {
						b.Fatalf("%s: %d lines, want %d", store, n, lines)
					}
				}
			})
		})
	}
}

// inTurn prepares a session in each store and runs what comes of it b.N times.
func inTurn(b *testing.B, unit float64, unitName string, prepare func(store string, j session.Journal) func()) {
	b.Helper()
	all := stores(b)
	runs, took := map[string]func(){}, map[string]time.Duration{}
	dir := b.TempDir()
	for name, s := range all {
		j, err := s.Open(b.Context(), uuid.NewString(), session.OpenOptions{Dir: dir, Create: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = j.Close() })
		runs[name] = prepare(name, j)
		runs[name]() // what only the first one pays
	}
	b.ResetTimer()
	for range b.N {
		for name, run := range runs {
			began := time.Now()
			run()
			took[name] += time.Since(began)
		}
	}
	for name, t := range took {
		b.ReportMetric(float64(t.Nanoseconds())/float64(b.N)/unit, name+"-"+unitName)
		if name != "file" {
			b.ReportMetric(float64(t)/float64(took["file"]), name+"/file")
		}
	}
	b.ReportMetric(0, "ns/op")
}
