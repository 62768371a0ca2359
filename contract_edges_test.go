package turnwright_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// TestContractOddBlocks answers with blocks that the API gives but refuses to
// take back, or that no model should give: the next request is valid all the
// same, which the server checks, and the next prompt works.
func TestContractOddBlocks(t *testing.T) {
	for name, step := range map[string]agenttest.Step{
		"empty text beside a call":    agenttest.Blocks(agenttest.Text(""), noteCall("a")),
		"empty text":                  agenttest.Text(""),
		"white space":                 agenttest.Text(" \n"),
		"white space beside a call":   agenttest.Blocks(agenttest.Text("\n\n"), noteCall("a")),
		"trailing white space":        agenttest.Text("so far \n"),
		"thinking alone":              agenttest.Thinking("hm", "sig"),
		"thinking alone, cut":         agenttest.StopReason(agenttest.Thinking("hm", "sig"), "max_tokens"),
		"nothing, cut":                agenttest.StopReason(agenttest.Usage(agenttest.Empty(), 10, 5, 0, 0, 0), "max_tokens"),
		"nothing, paused":             agenttest.StopReason(agenttest.Usage(agenttest.Empty(), 10, 5, 0, 0, 0), "pause_turn"),
		"server tool, paused":         agenttest.StopReason(agenttest.Raw(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`), "pause_turn"),
		"a call, paused":              agenttest.StopReason(noteCall("a"), "pause_turn"),
		"a name that is none":         agenttest.Call("bad name!", `{"text":"a"}`),
		"an endless name":             agenttest.Call(strings.Repeat("n", 300), `{}`),
		"an empty name":               agenttest.Call("", `{}`),
		"one id twice":                agenttest.Blocks(agenttest.CallID("toolu_1", "note", `{"text":"a"}`), agenttest.CallID("toolu_1", "note", `{"text":"b"}`)),
		"an odd id":                   agenttest.CallID("call.1/x", "note", `{"text":"a"}`),
		"input null":                  agenttest.Call("note", `null`),
		"input an array":              agenttest.Call("note", `[1]`),
		"input empty":                 agenttest.Call("note", ``),
		"input with a lone surrogate": agenttest.Call("note", `{"text":"\ud800"}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "L-6", "L-7", "L-73", "L-77", "L-80", "L-138", "M-105")
				_, o := inMemory(t, agenttest.Script(step, agenttest.Text("done")), agenttest.Forever(agenttest.Text("next")))
				var notes []string
				withNote(&o, &notes)
				s := start(t, o)
				send(t, s, "go")
				out := readTurn(t, s)
				if out.result.IsError {
					t.Errorf("%s: %+v", out.shape(), out.result)
				}
				if name != "one id twice" && len(out.unpaired()) > 0 {
					t.Errorf("unpaired: %q", out.unpaired())
				}
				send(t, s, "and now?")
				if r := readTurn(t, s).result; r.IsError {
					t.Errorf("the next prompt: %+v", r)
				}
			})
		})
	}
}

// TestContractOddText takes any bytes as prompt and as a tool's output.
func TestContractOddText(t *testing.T) {
	conform.Covers(t, "L-111", "L-137", "L-234")
	for _, text := range []string{"\xff\xfe", "a\x00b", "a\u2028b", "\ufeffx", strings.Repeat("é", 100_000)} {
		srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("say", `{}`), agenttest.Text("done")))
		o := base(t, srv)
		o.CustomTools = []turnwright.Tool{turnwright.NewTool("say", "Says it.", func(context.Context, struct{}) (string, error) { return text, nil })}
		o.AllowedTools = []string{"say"}
		out := query(t, text, o)
		if out.err != nil || out.result.NumTurns != 2 {
			t.Errorf("%.20q: %s, %v", text, out.shape(), out.err)
		}
	}
}

// TestContractContinuationsOfATurn counts continuations over the whole user
// turn, and joins the parts of one answer only.
func TestContractContinuationsOfATurn(t *testing.T) {
	conform.Covers(t, "L-73", "L-74", "L-83")
	limit := func(text string) agenttest.Step { return agenttest.StopReason(agenttest.Text(text), "max_tokens") }
	srv := agenttest.NewServer(t, limit("a"), limit("b"), agenttest.Blocks(agenttest.Text("c"), noteCall("x")), limit("d"), limit("e"))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	r := query(t, "go", o).result
	if !r.IsError || r.Subtype != turnwright.Success || *r.Result != "de" || srv.Count() != 5 || r.ToolTurns != 1 {
		t.Errorf("%+v, result %q, %d requests", r, r.Text(), srv.Count())
	}
	srv = agenttest.NewServer(t, limit("a"), agenttest.Blocks(agenttest.Text("c"), noteCall("x")), agenttest.Text("end"))
	o.Env["ANTHROPIC_BASE_URL"] = srv.URL()
	if r := query(t, "go", o).result; r.IsError || *r.Result != "end" {
		t.Errorf("%+v, result %q", r, r.Text())
	}
}

// TestContractSteeringLate starts a turn of its own for a message that nothing
// could absorb, and keeps it through an interrupt.
func TestContractSteeringLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-188", "L-189")
		_, o := inMemory(t, agenttest.Delay(agenttest.Text("one"), time.Minute), agenttest.Text("two"))
		o.Steer = true
		s := start(t, o)
		ids := []string{send(t, s, "first")}
		time.Sleep(time.Second)
		ids = append(ids, send(t, s, "second"))
		out := readAll(t, s)
		if out.shape() != "init assistant(text) result(success) init assistant(text) result(success)" {
			t.Fatalf("%s", out.shape())
		}
		for i, r := range out.results() {
			if r.UserMessageUUID != ids[i] {
				t.Errorf("result %d belongs to %s", i, r.UserMessageUUID)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-196", "L-189")
		srv, o := inMemory(t, calls("change a", "change b"), agenttest.Text("two"))
		o.CustomTools, o.AllowedTools, o.Steer = napping(), []string{"change"}, true
		s := start(t, o)
		send(t, s, "first")
		time.Sleep(500 * time.Millisecond)
		second := send(t, s, "second")
		rec, err := s.Interrupt(t.Context())
		if err != nil || fmt.Sprint(rec.StillQueued) != fmt.Sprint([]string{second}) {
			t.Errorf("%+v, %v", rec, err)
		}
		out := readAll(t, s)
		if n := len(out.results()); n != 2 || out.result.UserMessageUUID != second || !strings.Contains(srv.Last().UserText(), "second") {
			t.Errorf("%s", out.shape())
		}
	})
}

// TestContractAskAgain leaves an Ask by its context: the turn is interrupted,
// and the next Ask gets its own answer.
func TestContractAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-194", "L-195", "B-175")
		_, o := inMemory(t, agenttest.Hold(agenttest.Text("never finished"), 3), agenttest.Forever(agenttest.Text("second")))
		s := start(t, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Ask(ctx, "one"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		for range 3 {
			if r, err := s.Ask(t.Context(), "two"); err != nil || *r.Result != "second" {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}

// TestContractCancelledQuery ends by the caller's context at any time: one
// result, then the context's error, also when a tool does not heed it.
func TestContractCancelledQuery(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 90 * time.Second, 150 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "L-12", "L-214", "L-197", "M-105")
			_, o := inMemory(t, agenttest.Forever(agenttest.Delay(agenttest.Blocks(agenttest.Call("deaf", `{}`), agenttest.Call("deaf", `{}`)), time.Minute)))
			o.CustomTools = []turnwright.Tool{turnwright.NewTool("deaf", "Takes a minute.", func(context.Context, struct{}) (string, error) {
				time.Sleep(time.Minute)
				return "", nil
			})}
			o.AllowedTools = []string{"deaf"}
			defer time.Sleep(2 * time.Minute) // until the deaf call has come back
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			begin := time.Now()
			var out outcome
			for m, err := range turnwright.Query(ctx, "go", o) {
				if err != nil {
					out.err = err
					break
				}
				out.add(m)
			}
			if !errors.Is(out.err, context.DeadlineExceeded) || time.Since(begin) > after+3*time.Second {
				t.Errorf("after %v: %v, took %v", after, out.err, time.Since(begin))
			}
			if after == 0 {
				if len(out.messages) > 0 {
					t.Errorf("a context that had ended ran %s", out.shape())
				}
				return
			}
			if len(out.results()) != 1 || out.result.Subtype != turnwright.ErrorDuringExecution || len(out.unpaired()) > 0 {
				t.Errorf("after %v: %s, unpaired %q", after, out.shape(), out.unpaired())
			}
		})
	}
}

// TestContractBudgetOfAttempts counts attempts that were given up toward the
// budget, as far as the server reported what they cost.
func TestContractBudgetOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-42", "L-43", "B-167")
		srv, o := inMemory(t, agenttest.CutAfterEvent(dear(agenttest.Text("lost")), 2), cheap(noteCall("x")), cheap(agenttest.Text("more")))
		var notes []string
		withNote(&o, &notes)
		o.MaxBudgetUSD = new(0.9)
		out := query(t, "go", o)
		if r := out.result; r.Subtype != turnwright.ErrorMaxBudgetUSD || *r.TotalCostUSD < 1 || len(notes) > 0 || srv.Count() > 2 {
			t.Errorf("%s: %+v after %d requests", out.shape(), r, srv.Count())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "B-173", "L-222")
		_, o := inMemory(t, agenttest.Hold(agenttest.Usage(agenttest.Text("half an answer"), 100_000, 500, 0, 0, 0), 3), agenttest.Usage(agenttest.Text("next"), 1000, 1, 0, 0, 0))
		s := start(t, o)
		send(t, s, "go")
		time.Sleep(time.Second)
		if _, err := s.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := readTurn(t, s).result
		if first.TerminalReason != message.TerminalAbortedStreaming || math.Abs(*first.TotalCostUSD-(100_000*3+15)/1e6) > 1e-9 {
			t.Errorf("an interrupted response costs %v", *first.TotalCostUSD)
		}
		send(t, s, "go on")
		if r := readTurn(t, s).result; *r.TotalCostUSD <= *first.TotalCostUSD || r.Usage.InputTokens != 1000 {
			t.Errorf("%+v, cost %v", r, *r.TotalCostUSD)
		}
	})
}

// TestContractAskAbsorbed asks again after a message was absorbed into the
// first answer's turn: it shares that turn's result and has none of its own.
func TestContractAskAbsorbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-188", "L-12")
		_, o := inMemory(t, calls("change a"), agenttest.Text("one"), agenttest.Text("two"))
		o.CustomTools, o.AllowedTools, o.Steer = napping(), []string{"change"}, true
		s := start(t, o)
		go func() {
			time.Sleep(500 * time.Millisecond)
			if _, err := s.Send(context.Background(), turnwright.Input{Text: "and this"}); err != nil {
				t.Error(err)
			}
		}()
		for _, want := range []string{"one", "two"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if r, err := s.Ask(ctx, "go"); err != nil || *r.Result != want {
				t.Errorf("%s: %+v, %v", want, r, err)
			}
			cancel()
		}
	})
}
