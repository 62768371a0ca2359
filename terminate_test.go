package turnwright_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestTerminate ends a session while a tool runs that heeds nothing: it is given
// up in time, there is no result, and a later session knows of the calls what is
// known of them. Done is closed by then, and not before.
func TestTerminate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-208", "S-44")
		srv, o := inMemory(t, agenttest.Script(
			agenttest.Blocks(agenttest.Call("stuck", `{}`), agenttest.Call("stuck", `{}`)),
			agenttest.Text("I see."),
		))
		release := make(chan struct{})
		var started atomic.Int32
		o.CustomTools, o.AllowedTools = []turnwright.Tool{stuck(release, &started)}, []string{"stuck"}
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		send(t, s, "go")
		synctest.Wait()
		select {
		case <-s.Done():
			t.Fatal("done while a tool runs")
		default:
		}
		begin := time.Now()
		if err := s.Terminate(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("it took %v", d)
		}
		<-s.Done()
		var out outcome
		for m, err := range s.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			out.add(m)
		}
		if out.shape() != "init assistant(stuck,stuck) user(error) user(error)" {
			t.Errorf("messages: %s", out.shape())
		}
		if err := s.Terminate(); err != nil { // once more changes nothing
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		close(release)

		o.Resume = s.ID()
		if out := query(t, "what happened?", o); out.err != nil || started.Load() != 1 {
			t.Fatalf("%v, %d calls", out.err, started.Load())
		}
		results := srv.Last().LastToolResults()
		if len(results) != 2 || !strings.HasPrefix(results[0].Text, "Killed: ") || strings.Contains(results[0].Text, "Interrupted") ||
			!strings.HasPrefix(results[1].Text, "Not executed: ") {
			t.Errorf("the model is told %+v", results)
		}
	})
}

// TestTerminateHooks: of the hooks only those of SessionEnd run when the process is
// told to end, whatever was going on.
func TestTerminateHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-208")
		srv, o := inMemory(t, agenttest.Script(agenttest.Call("stuck", `{}`), agenttest.Text("never")))
		release := make(chan struct{})
		var started atomic.Int32
		o.CustomTools, o.AllowedTools = []turnwright.Tool{stuck(release, &started)}, []string{"stuck"}
		var mu sync.Mutex
		var ran []string
		o.Hooks = hook.Table{}
		for _, ev := range []hook.Event{hook.PreToolUse, hook.PostToolUse, hook.PostToolUseFailure, hook.PostToolBatch, hook.Stop, hook.StopFailure, hook.SessionEnd} {
			o.Hooks[ev] = []hook.Group{{Hooks: []hook.Func{func(context.Context, hook.Input, string) (hook.Output, error) {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, string(ev))
				return hook.Output{}, nil
			}}}}
		}
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		send(t, s, "go")
		synctest.Wait()
		if err := s.Terminate(); err != nil {
			t.Error(err)
		}
		<-s.Done()
		close(release)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(ran, []string{"PreToolUse", "SessionEnd"}) || srv.Count() != 1 {
			t.Errorf("ran %q, %d requests", ran, srv.Count())
		}
	})
}
