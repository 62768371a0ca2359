package turnwright_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/model/anthropic"
)

// childVariable makes the test binary run the sessions with few descriptors.
const childVariable = "TURNWRIGHT_TEST_FEW_DESCRIPTORS"

const (
	manySessions = 1000
	manyTurns    = 20
)

// TestManySessions runs a thousand sessions at once in one process. All
// finish; goroutines, descriptors and heap return to where they were.
func TestManySessions(t *testing.T) {
	conform.Covers(t, "L-12")
	if testing.Short() {
		t.Skip("runs 40,000 model requests")
	}
	checkMany(t)
}

// TestManySessionsFewDescriptors does the same with RLIMIT_NOFILE 1,024, less
// than two descriptors a session.
func TestManySessionsFewDescriptors(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		checkMany(t)
		return
	}
	if testing.Short() {
		t.Skip("runs 40,000 model requests")
	}
	if runtime.GOOS == "windows" {
		t.Skip("windows has no RLIMIT_NOFILE")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 1024 && exec "$0" -test.run='^TestManySessionsFewDescriptors$' -test.timeout=8m`, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func checkMany(t *testing.T) {
	tool := agenttest.Call("echo", `{"text":"again"}`)
	var turns atomic.Int64
	srv := agenttest.NewServer(t, agenttest.NoValidate(), agenttest.KeepRequests(0), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if r.Turn() < int(turns.Load()) {
			return tool
		}
		return agenttest.Text("done")
	}))
	o := base(t, srv)
	o.Store = nil // files, as for users
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}

	// What is made once and kept, such as tables of the runtime and of the
	// HTTP server, is as large as the most sessions at once made it: a short run
	// warms up, and where it did not go as far, the first round. A leak grows
	// with every round, so the heap must come back to within 5 % in one of three.
	turns.Store(2)
	runMany(t, o, 2)
	turns.Store(manyTurns)
	for round := 1; ; round++ {
		before := usage(t)
		runMany(t, o, manyTurns)
		after := settled(t, before)
		if after.goroutines > before.goroutines {
			buf := make([]byte, 1<<20)
			t.Errorf("goroutines: %d before, %d after\n%s", before.goroutines, after.goroutines, buf[:runtime.Stack(buf, true)])
		}
		if after.descriptors > before.descriptors {
			t.Errorf("descriptors: %d before, %d after", before.descriptors, after.descriptors)
		}
		t.Logf("round %d: heap %d bytes before, %d after", round, before.heap, after.heap)
		if after.heap <= heapBound(before.heap) || t.Failed() {
			return
		}
		if round == 3 {
			t.Errorf("heap: it grew by more than 5 %% in each round, in the last from %d to %d bytes", before.heap, after.heap)
			return
		}
	}
}

// runMany runs the sessions, each with so many tool turns, all at once.
func runMany(t *testing.T, o turnwright.Options, turns int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	errs := make([]error, manySessions)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for m, err := range turnwright.Query(ctx, "go", o) {
				if err != nil {
					errs[i] = err
					return
				}
				if r, ok := m.(*turnwright.ResultMessage); ok && (r.Subtype != turnwright.Success || r.NumTurns != turns+1) {
					errs[i] = fmt.Errorf("%s after %d turns", r.Subtype, r.NumTurns)
				}
			}
		})
	}
	wg.Wait()
	bad := 0
	for _, err := range errs {
		if err != nil {
			if bad++; bad <= 3 {
				t.Error(err)
			}
		}
	}
	if bad > 0 {
		t.Fatalf("%d of %d sessions failed", bad, len(errs))
	}
}

// resources is what a process holds.
type resources struct {
	goroutines, descriptors int
	heap                    uint64
}

func usage(t *testing.T) resources {
	t.Helper()
	anthropic.CloseIdleConnections()
	runtime.GC()
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	r := resources{goroutines: runtime.NumGoroutine(), heap: ms.HeapAlloc}
	if names, err := os.ReadDir("/proc/self/fd"); err == nil {
		r.descriptors = len(names)
	}
	return r
}

// heapBound is what the heap may hold after the sessions are gone: 5 % more.
func heapBound(before uint64) uint64 { return before + before/20 }

// settled waits until what the last sessions used is given back: closed
// connections end their goroutines a moment later.
func settled(t *testing.T, want resources) resources {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r := usage(t)
		if r.goroutines <= want.goroutines && r.descriptors <= want.descriptors && r.heap <= heapBound(want.heap) || time.Now().After(deadline) {
			return r
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestNoLeftovers runs single sessions that end in every way and looks for
// goroutines that stay.
func TestNoLeftovers(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := base(t, srv)
	query(t, "warm up", o)
	before := usage(t)
	for range 20 {
		query(t, "hello", o)
		for range turnwright.Query(t.Context(), "left early", o) {
			break
		}
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ask(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	before.heap = 1 << 60 // goroutines are what counts here
	if after := settled(t, before); after.goroutines > before.goroutines {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		t.Errorf("goroutines: %d before, %d after\n%s", before.goroutines, after.goroutines, strings.TrimSpace(stacks))
	}
}
