package turnwright_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// These are the reports of docs/contract/cases.md, from a user's side.

// TestReportEmptyReplies tells a reply that says nothing from a broken one.
func TestReportEmptyReplies(t *testing.T) {
	t.Run("broken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "B-005", "B-007")
			var notes []string
			_, o := inMemory(t, agenttest.Script(agenttest.Call("note", `{"text":"a"}`)), agenttest.Forever(agenttest.Empty()))
			o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
			out := query(t, "go", o)
			if r := out.result; r.Subtype != turnwright.ErrorDuringExecution || len(r.Errors) == 0 || r.Errors[0] == "" {
				t.Errorf("%s %q", r.Subtype, r.Errors)
			}
		})
	})
	t.Run("recovers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "B-007")
			_, o := inMemory(t, agenttest.Script(agenttest.Empty(), agenttest.Text("here")))
			if out := query(t, "go", o); out.err != nil || *out.result.Result != "here" {
				t.Errorf("%+v, %v", out.result, out.err)
			}
		})
	})
	t.Run("valid", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "B-006")
			var notes []string
			_, o := inMemory(t, agenttest.Script(
				agenttest.Call("note", `{"text":"a"}`),
				agenttest.Usage(agenttest.Empty(), 10, 3, 0, 0, 0),
				agenttest.Text("second"),
			))
			o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
			s, err := turnwright.NewSession(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			first, err := s.Ask(t.Context(), "go")
			if err != nil || first.Result == nil || *first.Result != "" || first.NumTurns != 2 {
				t.Errorf("first: %+v, %v", first, err)
			}
			if second, err := s.Ask(t.Context(), "and now?"); err != nil || *second.Result != "second" {
				t.Errorf("second: %+v, %v", second, err)
			}
		})
	})
}

// TestReportCutCalls never runs a call that the output limit cut, and gives up
// after three responses of nothing else.
func TestReportCutCalls(t *testing.T) {
	cut := func(s agenttest.Step) agenttest.Step { return agenttest.StopReason(s, "max_tokens") }
	t.Run("forever", func(t *testing.T) {
		conform.Covers(t, "B-008")
		srv := agenttest.NewServer(t, agenttest.Forever(cut(agenttest.CutInput("note", `{"text":"abc`))))
		o := base(t, srv)
		var notes []string
		o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
		out := query(t, "go", o)
		if out.result.TerminalReason != message.TerminalMalformedToolUse || srv.Count() != 3 || len(notes) > 0 {
			t.Errorf("%s after %d requests, notes %q", out.result.TerminalReason, srv.Count(), notes)
		}
	})
	t.Run("complete JSON", func(t *testing.T) {
		conform.Covers(t, "B-010", "B-011", "L-75")
		srv := agenttest.NewServer(t, agenttest.Script(
			cut(agenttest.Blocks(agenttest.Call("note", `{"text":"whole"}`), agenttest.Call("note", `{"text":"suspect"}`))),
			agenttest.Text("done"),
		))
		o := base(t, srv)
		var notes []string
		o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
		out := query(t, "go", o)
		if out.err != nil || len(notes) != 1 || notes[0] != "whole" {
			t.Errorf("notes %q, %v", notes, out.err)
		}
		if r := srv.Last().LastToolResults(); len(r) != 2 || r[0].IsError || !r[1].IsError || !strings.Contains(r[1].Text, "max_tokens") {
			t.Errorf("results %+v", r)
		}
	})
}

// TestReportStopReasons keeps every stop reason apart from a finished answer.
func TestReportStopReasons(t *testing.T) {
	conform.Covers(t, "B-012", "B-013", "L-58", "L-82", "M-58")
	half := agenttest.Text("half a sen")
	for _, tt := range []struct {
		name    string
		steps   []agenttest.Step
		isError bool
		stop    string
		result  string
	}{
		{"pause_turn", []agenttest.Step{agenttest.StopReason(agenttest.Text("so far"), "pause_turn"), agenttest.Text("done")}, false, "end_turn", "done"},
		{"window", []agenttest.Step{agenttest.StopReason(half, "model_context_window_exceeded")}, true, "model_context_window_exceeded", "half a sen"},
		{"unknown", []agenttest.Step{agenttest.StopReason(half, "stop_of_the_future")}, false, "stop_of_the_future", "half a sen"},
		{"refusal", []agenttest.Step{agenttest.Refusal()}, false, "refusal", ""},
		{"stop sequence", []agenttest.Step{agenttest.StopSequence(half, "END")}, false, "stop_sequence", "half a sen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Script(append(tt.steps, agenttest.Text("next"))...))
			s, err := turnwright.NewSession(t.Context(), base(t, srv))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, err := s.Ask(t.Context(), "go")
			if r == nil {
				t.Fatal(err)
			}
			if r.Subtype != turnwright.Success || r.IsError != tt.isError || r.StopReason == nil || *r.StopReason != tt.stop {
				t.Errorf("%+v", r)
			}
			if tt.name == "refusal" {
				if *r.Result == "" {
					t.Error("the refusal says nothing")
				}
			} else if *r.Result != tt.result {
				t.Errorf("result %q", *r.Result)
			}
			if r, err := s.Ask(t.Context(), "go on"); err != nil || *r.Result != "next" {
				t.Errorf("the next prompt: %+v, %v", r, err)
			}
		})
	}
}

// TestReportPanic turns a panic of either call into an error result that names
// the tool.
func TestReportPanic(t *testing.T) {
	conform.Covers(t, "B-017", "L-137")
	boom := turnwright.NewTool("boom", "Panics.", func(context.Context, struct{}) (string, error) { panic("no") }, turnwright.ReadOnly())
	for _, order := range [][]agenttest.Step{
		{agenttest.Call("boom", `{}`), agenttest.Call("echo", `{"text":"x"}`)},
		{agenttest.Call("echo", `{"text":"x"}`), agenttest.Call("boom", `{}`)},
	} {
		srv := agenttest.NewServer(t, agenttest.Script(agenttest.Blocks(order...), agenttest.Text("done")))
		o := base(t, srv)
		o.CustomTools, o.AllowedTools = []turnwright.Tool{boom, echo()}, []string{"boom", "echo"}
		if out := query(t, "go", o); out.err != nil {
			t.Fatal(out.err)
		}
		bad := 0
		for _, r := range srv.Last().LastToolResults() {
			if r.IsError {
				bad++
				if !strings.Contains(r.Text, "boom") {
					t.Errorf("the result does not name the tool: %q", r.Text)
				}
			}
		}
		if bad != 1 {
			t.Errorf("%d error results", bad)
		}
	}
}

// TestReportFailingEdit changes four files of five.
func TestReportFailingEdit(t *testing.T) {
	conform.Covers(t, "B-018")
	srv := agenttest.NewServer(t)
	o := base(t, srv)
	var reads, edits []agenttest.Step
	for i := range 5 {
		name := filepath.Join(o.CWD, fmt.Sprintf("f%d", i))
		if err := os.WriteFile(name, []byte("old\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		was := "old"
		if i == 2 {
			was = "absent"
		}
		reads = append(reads, agenttest.Call("Read", fmt.Sprintf(`{"file_path":%q}`, name)))
		edits = append(edits, agenttest.Call("Edit", fmt.Sprintf(`{"file_path":%q,"old_string":%q,"new_string":"new"}`, name, was)))
	}
	srv = agenttest.NewServer(t, agenttest.Script(agenttest.Blocks(reads...), agenttest.Blocks(edits...), agenttest.Text("done")))
	o.Env["ANTHROPIC_BASE_URL"] = srv.URL()
	o.AllowedTools = []string{"Edit"}
	if out := query(t, "go", o); out.err != nil {
		t.Fatal(out.err)
	}
	for i, r := range srv.Last().LastToolResults() {
		text, _ := os.ReadFile(filepath.Join(o.CWD, fmt.Sprintf("f%d", i)))
		if r.IsError != (i == 2) || (string(text) == "new\n") != (i != 2) {
			t.Errorf("file %d: error %v, text %q", i, r.IsError, text)
		}
	}
}

// TestReportManyCalls runs 160 calls of one response under the bound, and
// answers all of them when it is interrupted in the middle.
func TestReportManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "B-020")
		var names []string
		for i := range 160 {
			names = append(names, fmt.Sprintf("look %d", i))
		}
		srv, o := inMemory(t, agenttest.Script(calls(names...), calls(names...), agenttest.Text("done")))
		var tr track
		o.CustomTools, o.AllowedTools, o.MaxTurns = tr.tools(), []string{"look"}, new(2)
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(16*time.Second + 8*time.Second + time.Millisecond) // the first batch, and half of the second
			_, _ = s.Interrupt(context.Background())
		}()
		res, _ := s.Ask(t.Context(), "go")
		if tr.most != 10 || res.TerminalReason != message.TerminalAbortedTools {
			t.Errorf("%d at once, %s", tr.most, res.TerminalReason)
		}
		if got := srv.Last().LastToolResults(); len(got) != 160 || got[159].Text != "159 done" {
			t.Errorf("%d results of the first batch", len(got))
		}
		if res, err := s.Ask(t.Context(), "how far?"); err != nil || *res.Result != "done" {
			t.Fatalf("%+v, %v", res, err)
		}
		if got := srv.Last().LastToolResults(); len(got) != 160 || !strings.HasPrefix(got[159].Text, "Not executed:") || !strings.HasSuffix(got[0].Text, "done") {
			t.Errorf("%d results of the second batch: first %q, last %q", len(got), got[0].Text, got[159].Text)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestReportCacheCost prices all four kinds of tokens and ends the run by them.
func TestReportCacheCost(t *testing.T) {
	conform.Covers(t, "B-024", "B-025", "B-027", "L-42", "L-50", "L-226", "M-64")
	catalog := model.DefaultCatalog().With(model.Info{
		ID: "acme-x1", ContextWindow: 100000, MaxOutput: 8000,
		Price: &model.Price{Input: 1, Output: 10, CacheWrite5m: 2, CacheWrite1h: 4, CacheRead: 0.1},
	})
	first := (3*1 + 80*10 + 60000*2 + 40000*4) / 1e6
	second := (5*1 + 20*10 + 100000*0.1) / 1e6
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Usage(agenttest.Blocks(
			agenttest.Thinking("hm", "sig"), agenttest.Text("one"),
			agenttest.Call("echo", `{"text":"a"}`), agenttest.Call("echo", `{"text":"b"}`),
		), 3, 80, 60000, 40000, 0),
		agenttest.Usage(agenttest.Call("echo", `{"text":"c"}`), 5, 20, 0, 0, 100000),
	))
	o := base(t, srv)
	o.Model, o.Catalog, o.MaxBudgetUSD = "acme-x1", catalog, new(first+second/2)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
	out := query(t, "go", o)
	r := out.result
	if r.Subtype != turnwright.ErrorMaxBudgetUSD || math.Abs(*r.TotalCostUSD-(first+second)) > 1e-9 || r.NumTurns != 1 {
		t.Errorf("%s, cost %v, want %v", r.Subtype, *r.TotalCostUSD, first+second)
	}
	if r.Usage.OutputTokens != 80 {
		t.Errorf("usage holds the response that crossed the budget: %+v", r.Usage)
	}
	sum := 0.0
	for _, u := range r.ModelUsage {
		sum += u.CostUSD
	}
	if math.Abs(sum-*r.TotalCostUSD) > 1e-9 {
		t.Errorf("the models' costs add up to %v, not %v", sum, *r.TotalCostUSD)
	}
}

// TestReportBrokenStreams covers streams that fail in every place.
func TestReportBrokenStreams(t *testing.T) {
	overloaded := func(s agenttest.Step, at agenttest.Point) agenttest.Step {
		return agenttest.StreamError(s, at, "overloaded_error", "Overloaded")
	}
	var notes []string
	for _, tt := range []struct {
		name   string
		ids    []string
		steps  []agenttest.Step
		shape  string
		result string
		notes  int
	}{
		{"before content", []string{"B-163", "L-87"}, []agenttest.Step{overloaded(agenttest.Text("lost"), 1), agenttest.Text("good")}, "init api_retry assistant(text) result(success)", "good", 0},
		{"half a text", []string{"B-163", "B-167", "L-90"}, []agenttest.Step{overloaded(agenttest.Text("lost text of some length"), 3), agenttest.Text("good")}, "init api_retry assistant(text) result(success)", "good", 0},
		{"after a call", []string{"B-159", "B-163", "L-93", "L-94"}, []agenttest.Step{overloaded(agenttest.Call("note", `{"text":"x"}`), agenttest.AfterBlocks(1)), agenttest.Text("good")}, "init assistant(note) user(ok) assistant(text) result(success)", "good", 1},
		{"cut after a call", []string{"B-159", "L-94"}, []agenttest.Step{agenttest.CutAfterEvent(agenttest.Call("note", `{"text":"x"}`), agenttest.AfterBlocks(1)), agenttest.Text("good")}, "init assistant(note) user(ok) assistant(text) result(success)", "good", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, tt.ids...)
				notes = nil
				_, o := inMemory(t, agenttest.Script(tt.steps...))
				o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
				out := query(t, "go", o)
				if out.err != nil || out.shape() != tt.shape || *out.result.Result != tt.result || len(notes) != tt.notes {
					t.Errorf("%s, notes %q, %v", out.shape(), notes, out.err)
				}
			})
		})
	}
	t.Run("after a text", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "L-95", "L-96", "L-110", "M-58")
			_, o := inMemory(t, agenttest.Script(agenttest.CutAfterEvent(agenttest.Text("all of it"), agenttest.AfterBlocks(1))))
			r := query(t, "go", o).result
			if r.Subtype != turnwright.Success || !r.IsError || r.TerminalReason != message.TerminalAPIError || !strings.HasPrefix(*r.Result, "API Error: ") {
				t.Errorf("%+v", r)
			}
		})
	})
	t.Run("half open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "B-168", "L-105")
			_, o := inMemory(t, agenttest.Script(agenttest.Hold(agenttest.Text("half"), 3), agenttest.Text("good")))
			begin := time.Now()
			out := query(t, "go", o)
			if out.err != nil || *out.result.Result != "good" || time.Since(begin) > 12*time.Minute {
				t.Errorf("%v after %v", out.err, time.Since(begin))
			}
		})
	})
}

// TestReportInterruptStream interrupts an answer that has begun: the part that
// was streamed is kept, and the session goes on.
func TestReportInterruptStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "B-173", "L-194", "L-195", "M-29")
		srv, o := inMemory(t, agenttest.Script(
			agenttest.Hold(agenttest.DeltaSize(agenttest.Text("half of the answer"), 4), 4),
			agenttest.Text("second"),
		))
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		go func() {
			time.Sleep(time.Second)
			_, _ = s.Interrupt(context.Background())
		}()
		if _, err := s.Send(t.Context(), turnwright.Input{Text: "go"}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var out outcome
		for m, err := range s.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			out.add(m)
			if out.result != nil {
				break
			}
		}
		if out.result.TerminalReason != message.TerminalAbortedStreaming || time.Since(begin) > 2*time.Second {
			t.Errorf("%s after %v", out.result.TerminalReason, time.Since(begin))
		}
		if out.shape() != "init assistant(text) result(error_during_execution)" {
			t.Fatalf("%s", out.shape())
		}
		if a := out.messages[1].(*turnwright.AssistantMessage); !a.Aborted || !strings.HasPrefix("half of the answer", a.Text()) || a.Message.StopReason != nil {
			t.Errorf("the partial answer: %+v", a)
		}
		if r, err := s.Ask(t.Context(), "again"); err != nil || *r.Result != "second" {
			t.Errorf("%+v, %v", r, err)
		}
		if n := srv.Count(); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestReportMatching finds each prompt's own result after an interrupt: queued
// prompts run, or are reported as dropped.
func TestReportMatching(t *testing.T) {
	for _, drop := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "B-175", "L-36", "L-189", "L-196")
			_, o := inMemory(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
				if strings.Contains(r.UserText(), "one") && !strings.Contains(r.UserText(), "t") {
					return agenttest.Never()
				}
				return agenttest.Text("answer to " + r.UserText()[strings.LastIndex(r.UserText(), "t"):])
			}))
			s, err := turnwright.NewSession(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var ids []string
			for _, text := range []string{"one", "two", "three"} {
				id, err := s.Send(t.Context(), turnwright.Input{Text: text})
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			var opts []turnwright.InterruptOption
			if drop {
				opts = append(opts, turnwright.CancelQueued())
			}
			time.Sleep(time.Second)
			rec, err := s.Interrupt(t.Context(), opts...)
			if err != nil {
				t.Fatal(err)
			}
			s.EndInput()
			var results []*turnwright.ResultMessage
			for m, err := range s.Messages(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if r, ok := m.(*turnwright.ResultMessage); ok {
					results = append(results, r)
				}
			}
			if drop {
				if len(results) != 1 || fmt.Sprint(rec.Cancelled) != fmt.Sprint(ids[1:]) || len(rec.StillQueued) > 0 {
					t.Errorf("%d results, receipt %+v", len(results), rec)
				}
				return
			}
			if len(results) != 3 || fmt.Sprint(rec.StillQueued) != fmt.Sprint(ids[1:]) {
				t.Fatalf("%d results, receipt %+v", len(results), rec)
			}
			if results[0].TerminalReason != message.TerminalAbortedStreaming {
				t.Errorf("the first result: %+v", results[0])
			}
			for i := 1; i < 3; i++ {
				if results[i].UserMessageUUID != ids[i] {
					t.Errorf("result %d belongs to %s, not %s", i, results[i].UserMessageUUID, ids[i])
				}
			}
		})
	}
}

// TestReportLostChannel ends the run when nobody can be asked any more.
func TestReportLostChannel(t *testing.T) {
	conform.Covers(t, "B-172")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Call("note", `{"text":"x"}`)))
	o := base(t, srv)
	var notes []string
	var asked atomic.Int32
	o.CustomTools = []turnwright.Tool{note(&notes)}
	o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		asked.Add(1)
		return turnwright.PermissionAnswer{}, fmt.Errorf("write: %w", turnwright.ErrChannelLost)
	}
	out := query(t, "go", o)
	var failed *turnwright.ResultError
	if !errors.As(out.err, &failed) || asked.Load() != 1 || srv.Count() != 1 || len(notes) > 0 {
		t.Errorf("%v after %d questions and %d requests", out.err, asked.Load(), srv.Count())
	}
}
