package turnwright_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model/anthropic"
	"github.com/turnwright/turnwright/session/file"
)

// inMemory are options whose model is reached over in-process pipes, so that
// everything works in the fake time of a synctest bubble.
func inMemory(t *testing.T, sources ...agenttest.Option) (*agenttest.Server, turnwright.Options) {
	t.Helper()
	srv := agenttest.NewServer(t, append(sources, agenttest.InMemory())...)
	o := base(t, srv)
	client, err := anthropic.New(anthropic.Config{BaseURL: srv.URL(), APIKey: "x", HTTPClient: srv.Client()})
	if err != nil {
		t.Fatal(err)
	}
	o.ModelClient = client
	return srv, o
}

// stuck is a tool that heeds nothing until release is closed.
func stuck(release chan struct{}, started *atomic.Int32, opts ...turnwright.ToolOption) turnwright.Tool {
	return turnwright.NewTool("stuck", "Waits.", func(context.Context, struct{}) (string, error) {
		started.Add(1)
		<-release
		return "late", nil
	}, opts...)
}

// TestStuckToolIsGivenUp interrupts a call that does not heed its context: the
// turn ends within the grace time, and the session goes on.
func TestStuckToolIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-194", "L-195", "L-196", "L-197", "L-203", "M-111", "T-191", "T-26")
		srv, o := inMemory(t, agenttest.Script(
			agenttest.Blocks(agenttest.Call("stuck", `{}`), agenttest.Call("stuck", `{}`)),
			agenttest.Text("back again"),
		))
		release := make(chan struct{})
		var started atomic.Int32
		o.CustomTools, o.AllowedTools = []turnwright.Tool{stuck(release, &started)}, []string{"stuck"}
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			rec, err := s.Interrupt(context.Background())
			if err != nil || !rec.Running {
				t.Errorf("receipt %+v, %v", rec, err)
			}
		}()
		begin := time.Now()
		res, err := s.Ask(t.Context(), "wait")
		var failed *turnwright.ResultError
		if !errors.As(err, &failed) || res.TerminalReason != message.TerminalAbortedTools {
			t.Fatalf("result %+v, error %v", res, err)
		}
		if d := time.Since(begin); d > time.Minute+2*time.Second {
			t.Errorf("the interrupt took %v", d-time.Minute)
		}
		if n := started.Load(); n != 1 {
			t.Errorf("%d calls were started, not 1: they run one at a time", n)
		}
		close(release) // the late result changes nothing
		res, err = s.Ask(t.Context(), "and now?")
		if err != nil || *res.Result != "back again" {
			t.Fatalf("after the interrupt: %+v, %v", res, err)
		}
		var texts []string
		for _, r := range srv.Last().LastToolResults() {
			texts = append(texts, r.Text)
		}
		if len(texts) != 2 || !strings.HasPrefix(texts[0], "Interrupted:") || !strings.HasPrefix(texts[1], "Not executed:") {
			t.Errorf("results of the interrupted calls: %q", texts)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestToolTimeout gives a call up that takes longer than its tool allows; the
// model reads why and goes on.
func TestToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-137")
		srv, o := inMemory(t, agenttest.Script(agenttest.Call("stuck", `{}`), agenttest.Text("it was too slow")))
		release := make(chan struct{})
		defer close(release)
		var started atomic.Int32
		o.CustomTools, o.AllowedTools = []turnwright.Tool{stuck(release, &started, turnwright.ToolTimeout(5*time.Second))}, []string{"stuck"}
		begin := time.Now()
		out := query(t, "go", o)
		if out.err != nil || *out.result.Result != "it was too slow" {
			t.Fatalf("%+v, %v", out.result, out.err)
		}
		if d := time.Since(begin); d < 5*time.Second || d > 7*time.Second {
			t.Errorf("took %v", d)
		}
		if r := srv.Last().LastToolResults(); len(r) != 1 || !r[0].IsError || !strings.Contains(r[0].Text, "did not finish within 5s") {
			t.Errorf("result %+v", r)
		}
	})
}

// TestHeartbeat sees a sign of life every 30 seconds of a long call.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "M-88", "T-30", "W-310")
		_, o := inMemory(t, agenttest.Script(agenttest.Call("slow", `{}`), agenttest.Text("done")))
		slow := turnwright.NewTool("slow", "Takes 95 seconds.", func(ctx context.Context, _ struct{}) (string, error) {
			time.Sleep(95 * time.Second)
			return "done", nil
		})
		o.CustomTools, o.AllowedTools = []turnwright.Tool{slow}, []string{"slow"}
		out := query(t, "go", o)
		var at []float64
		for _, m := range out.messages {
			if p, ok := m.(*message.ToolProgress); ok && p.Heartbeat && p.ToolName == "slow" {
				at = append(at, p.ElapsedTimeSeconds)
				raw, err := message.Marshal(p)
				keys := map[string]any{}
				if err == nil {
					err = json.Unmarshal(raw, &keys)
				}
				if err != nil {
					t.Error(err)
				}
				for key, want := range map[string]any{
					"type": "tool_progress", "tool_name": "slow", "parent_tool_use_id": nil,
					"elapsed_time_seconds": p.ElapsedTimeSeconds, "heartbeat": true, "tool_use_id": p.ToolUseID,
				} {
					if got, ok := keys[key]; !ok || got != want || p.ToolUseID == "" {
						t.Errorf("%s is %v, want %v", key, got, want)
					}
				}
			}
		}
		if len(at) != 3 || at[0] != 30 || at[2] != 90 {
			t.Errorf("heartbeats at %v seconds", at)
		}
	})
}

// TestInterruptBeforeAnything is not lost, and one with nothing to interrupt
// changes nothing.
func TestInterruptBeforeAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-198", "B-174")
		_, o := inMemory(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			if strings.Contains(r.UserText(), "again") {
				return agenttest.Text("second")
			}
			return agenttest.Delay(agenttest.Text("never seen"), time.Minute) // when the request got out at all
		}))
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := s.Interrupt(t.Context()); err != nil || rec.Running {
			t.Errorf("idle: %+v, %v", rec, err)
		}
		if _, err := s.Send(t.Context(), turnwright.Input{Text: "first"}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second one is harmless
			if _, err := s.Interrupt(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.Ask(t.Context(), "again")
		if err != nil || *res.Result != "second" {
			t.Errorf("the next prompt: %+v, %v", res, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// fullDisk is a store whose disk takes no byte after the first n writes.
func fullDisk(t *testing.T, n int32, warn func(string)) *file.Store {
	t.Helper()
	var writes atomic.Int32
	fs := vfs.WithFaults(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".jsonl") && writes.Add(1) > n {
			return syscall.ENOSPC
		}
		return nil
	})
	st, err := file.New(file.Config{ConfigDir: "/config", FS: fs, Warn: warn})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestFullDisk goes on without the journal and says so once (S-24).
func TestFullDisk(t *testing.T) {
	conform.Covers(t, "S-24")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("note", `{"text":"a"}`), agenttest.Text("done")))
	o := base(t, srv)
	var notes, warnings []string
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
	o.Stderr = func(line string) { warnings = append(warnings, line) }
	o.Store = fullDisk(t, 2, o.Stderr)
	out := query(t, "go", o)
	if out.err != nil || out.result.Subtype != turnwright.Success || len(notes) != 1 {
		t.Fatalf("%v, notes %v", out.err, notes)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "ENOSPC") {
		t.Errorf("warnings %q", warnings)
	}
}

// TestFullDiskStrict ends the turn instead, and runs nothing that could not be
// recorded (decision 51).
func TestFullDiskStrict(t *testing.T) {
	for n := range int32(6) {
		srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("note", `{"text":"a"}`), agenttest.Text("done")))
		o := base(t, srv)
		var notes []string
		o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
		o.Durability = turnwright.Strict
		o.Store = fullDisk(t, n, nil)
		out := query(t, "go", o)
		if out.result == nil {
			t.Fatalf("%d writes: no result: %v", n, out.err)
		}
		failed := out.result.Subtype == turnwright.ErrorDuringExecution
		if failed && (out.result.TerminalReason != message.TerminalTurnSetupFailed || !strings.Contains(out.result.Errors[0], "ENOSPC")) {
			t.Errorf("%d writes: %+v", n, out.result)
		}
		if n < 4 && (!failed || len(notes) > 0) {
			t.Errorf("%d writes: the intent was not on disk, but the call ran: %v, %s", n, notes, out.result.Subtype)
		}
	}
}

// TestGoexitInTool survives a tool that ends its goroutine, as a test's
// FailNow does.
func TestGoexitInTool(t *testing.T) {
	conform.Covers(t, "L-137")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("leave", `{}`), agenttest.Text("still here")))
	o := base(t, srv)
	leave := turnwright.NewTool("leave", "Ends its goroutine.", func(context.Context, struct{}) (string, error) {
		runtime.Goexit()
		return "", nil
	})
	o.CustomTools, o.AllowedTools = []turnwright.Tool{leave}, []string{"leave"}
	if out := query(t, "go", o); out.err != nil || *out.result.Result != "still here" {
		t.Errorf("%+v, %v", out.result, out.err)
	}
	if r := srv.Last().LastToolResults(); len(r) != 1 || !r[0].IsError {
		t.Errorf("%+v", r)
	}
}

// TestStderrUsesSession calls the session from its own Stderr callback, which
// hears of a disk that cannot be written.
func TestStderrUsesSession(t *testing.T) {
	conform.Covers(t, "O-84")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	o := base(t, srv)
	var s *turnwright.Session
	told := make(chan error, 10)
	o.Stderr = func(string) {
		_, err := s.Send(context.Background(), turnwright.Input{Text: "from the callback"})
		told <- err
	}
	o.Store = fullDisk(t, 0, nil)
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
	for m, err := range s.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*turnwright.ResultMessage); ok {
			break // the callback's message has its result, too
		}
	}
}

// TestPoisonedCalls repairs what a model writes into a call and the API would
// refuse when it comes back: one such block would end the session for good.
func TestPoisonedCalls(t *testing.T) {
	conform.Covers(t, "K-466")
	for name, step := range map[string]agenttest.Step{
		"surrogate": agenttest.Call("echo", `{"text":"a\ud800b \ud83d\ude00 \\ud800"}`),
		"name":      agenttest.Call("a b!", `{}`),
		"long name": agenttest.Call(strings.Repeat("n", 300), `{}`),
		"id":        agenttest.CallID("a b", "echo", `{"text":"x"}`),
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Script(step), agenttest.Forever(agenttest.Text("fine")))
			o := base(t, srv)
			o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
			s, err := turnwright.NewSession(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 {
				if r, err := s.Ask(t.Context(), "go"); err != nil || *r.Result != "fine" {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if name == "surrogate" && !strings.Contains(string(srv.Last().Body), "a\uFFFDb "+`\ud83d\ude00 \\ud800"}}`) {
				t.Errorf("the call went back as %v", srv.Last().Messages()[1].Content)
			}
		})
	}
}

// TestContextEnds cancels the caller's context in the middle of a call: the run
// ends with its result and then the context's error.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "O-88", "L-64")
		_, o := inMemory(t, agenttest.Forever(agenttest.Never()))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begin := time.Now()
		var out outcome
		for m, err := range turnwright.Query(ctx, "go", o) {
			if err != nil {
				out.err = err
				break
			}
			out.add(m)
		}
		if !errors.Is(out.err, context.Canceled) || out.result == nil || out.result.TerminalReason != message.TerminalAbortedStreaming {
			t.Errorf("%+v, %v", out.result, out.err)
		}
		if d := time.Since(begin); d > time.Minute+2*time.Second {
			t.Errorf("took %v after the cancellation", d-time.Minute)
		}
	})
}

// TestUnknownBlockOfUser: a block that the API would refuse does not poison the
// session.
func TestUnknownBlockOfUser(t *testing.T) {
	conform.Covers(t, "L-200")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("I see.")))
	s, err := turnwright.NewSession(t.Context(), base(t, srv))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	odd, err := message.ParseBlock([]byte(`{"type":"hologram","data":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), turnwright.Input{Text: "look", Blocks: []turnwright.Block{odd}}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Ask(t.Context(), "and now?"); err != nil || *r.Result != "I see." {
		t.Errorf("%v, %v", r, err)
	}
	if text := said(srv.Last()); !strings.Contains(text, `[A block of type "hologram" was attached`) {
		t.Errorf("the model is told %s", text)
	}
}
