package turnwright_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// reference answers as the model of the reference scenario does, with text
// when tools are switched off.
func reference() agenttest.Source {
	steps := []agenttest.Step{
		agenttest.Call("Bash", `{"command":"echo run >> trace; grep -q true auth.ts || exit 3"}`),
		agenttest.Blocks(agenttest.Call("Read", `{"file_path":"auth.ts"}`), agenttest.Call("Read", `{"file_path":"auth.ts"}`)),
		agenttest.Blocks(
			agenttest.Call("Edit", `{"file_path":"auth.ts","old_string":"false","new_string":"true"}`),
			agenttest.Call("Bash", `{"command":"echo run >> trace; grep -q true auth.ts || exit 3"}`),
		),
		agenttest.Text("Fixed."),
	}
	return agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if strings.Contains(string(r.Field("tool_choice")), "none") || len(r.ToolNames()) == 0 {
			return agenttest.Text("I cannot look.")
		}
		return steps[r.Turn()]
	})
}

// TestContractCapTable is the table of L-29, with the real tools on a real
// project.
func TestContractCapTable(t *testing.T) {
	conform.Covers(t, "L-16", "L-20", "L-23", "L-24", "L-25", "L-26", "L-27", "L-28", "L-29", "L-32", "L-58", "L-59", "L-202", "M-110")
	const (
		init1 = "init"
		one   = " assistant(Bash) user(error)"
		two   = " assistant(Read,Read) user(ok) user(ok)"
	)
	for _, tt := range []struct {
		cap      *int
		requests int
		shape    string
		turns    int
		runs     int // of Bash
		fixed    bool
		result   string
	}{
		{nil, 4, init1 + one + two + " assistant(Edit,Bash) user(ok) user(ok) assistant(text) result(success)", 4, 2, true, "Fixed."},
		{new(100), 4, init1 + one + two + " assistant(Edit,Bash) user(ok) user(ok) assistant(text) result(success)", 4, 2, true, "Fixed."},
		{new(3), 4, init1 + one + two + " assistant(Edit,Bash) user(ok) user(ok) assistant(text) result(success)", 4, 2, true, "Fixed."},
		{new(2), 3, init1 + one + two + " assistant(Edit,Bash) user(error) user(error) result(error_max_turns)", 2, 1, false, ""},
		{new(1), 2, init1 + one + " assistant(Read,Read) user(error) user(error) result(error_max_turns)", 1, 1, false, ""},
		{new(0), 1, init1 + " assistant(text) result(success)", 1, 0, false, "I cannot look."},
	} {
		name := "unset"
		if tt.cap != nil {
			name = fmt.Sprint(*tt.cap)
		}
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, reference())
			o := base(t, srv)
			file, trace := filepath.Join(o.CWD, "auth.ts"), filepath.Join(o.CWD, "trace")
			if err := os.WriteFile(file, []byte("export const ok = false\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			o.AllowedTools, o.MaxTurns = []string{"Bash", "Read", "Edit"}, tt.cap
			out := query(t, "Fix the failing tests in auth.ts", o)
			if out.shape() != tt.shape {
				t.Errorf("stream:\n got %s\nwant %s", out.shape(), tt.shape)
			}
			if srv.Count() != tt.requests {
				t.Errorf("%d requests, want %d", srv.Count(), tt.requests)
			}
			text, _ := os.ReadFile(file)
			ran, _ := os.ReadFile(trace)
			if strings.Contains(string(text), "true") != tt.fixed || strings.Count(string(ran), "run") != tt.runs {
				t.Errorf("file %q, Bash ran %d times", text, strings.Count(string(ran), "run"))
			}
			r := out.result
			if r.NumTurns != tt.turns || r.SessionID == "" || r.Usage == nil || r.TotalCostUSD == nil {
				t.Errorf("%+v", r)
			}
			if tt.result != "" {
				if out.err != nil || r.IsError || r.Result == nil || *r.Result != tt.result || r.TerminalReason != message.TerminalCompleted || *r.StopReason != "end_turn" {
					t.Errorf("%+v, %v", r, out.err)
				}
				return
			}
			text27 := fmt.Sprintf("Reached maximum number of turns (%d)", *tt.cap)
			if !r.IsError || r.Result != nil || len(r.Errors) == 0 || !strings.Contains(r.Errors[0], text27) || r.TerminalReason != message.TerminalMaxTurns || r.StopReason == nil || *r.StopReason != "tool_use" {
				t.Errorf("%+v", r)
			}
			if bad := out.unpaired(); len(bad) > 0 {
				t.Errorf("unpaired: %q", bad)
			}
			var failed *turnwright.ResultError
			if !errors.As(out.err, &failed) || !strings.Contains(out.err.Error(), text27) || failed.Result != r {
				t.Errorf("the iterator's error: %v", out.err)
			}
			if raw, err := message.Marshal(r); err != nil || strings.Contains(string(raw), `"result":`) {
				t.Errorf("an error result on the wire: %s, %v", raw, err)
			}
		})
	}
}

// TestContractCapZero refuses a call that the model makes although its tools
// are off.
func TestContractCapZero(t *testing.T) {
	conform.Covers(t, "L-32", "L-20")
	srv := agenttest.NewServer(t, agenttest.Script(noteCall("x")))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.MaxTurns = new(0)
	out := query(t, "go", o)
	if want := "init assistant(note) user(error) result(error_max_turns)"; out.shape() != want || len(notes) > 0 || srv.Count() != 1 {
		t.Errorf("%s, notes %q, %d requests", out.shape(), notes, srv.Count())
	}
	if r := out.result; r.NumTurns != 0 || r.ToolTurns != 0 || !strings.Contains(r.Errors[0], "Reached maximum number of turns (0)") {
		t.Errorf("%+v", r)
	}
}

// TestContractCapSources takes the cap from the option, else from the
// variable, and refuses values that are none.
func TestContractCapSources(t *testing.T) {
	conform.Covers(t, "L-33", "L-34", "L-30")
	for _, tt := range []struct {
		env  string
		opt  *int
		cap  int
		fail bool
	}{
		{env: "1", cap: 1},
		{env: "1", opt: new(2), cap: 2},
		{env: "7", opt: new(0), cap: 0},
		{env: "0", fail: true},
		{env: "-1", fail: true},
		{env: "1.5", fail: true},
		{env: "many", fail: true},
		{opt: new(-1), fail: true},
	} {
		srv := agenttest.NewServer(t, agenttest.ByTurn(noteCall("a"), noteCall("b"), noteCall("c"), noteCall("d")))
		o := base(t, srv)
		var notes []string
		withNote(&o, &notes)
		o.Env["CLAUDE_CODE_MAX_TURNS"], o.MaxTurns = tt.env, tt.opt
		out := query(t, "go", o)
		var bad *turnwright.OptionError
		if tt.fail {
			if !errors.As(out.err, &bad) || srv.Count() > 0 || len(out.messages) > 0 {
				t.Errorf("%+v: %v after %d requests", tt, out.err, srv.Count())
			}
			continue
		}
		if out.result == nil || out.result.Subtype != turnwright.ErrorMaxTurns || len(notes) != tt.cap {
			t.Errorf("%+v: %+v, %d tools ran", tt, out.result, len(notes))
		}
	}
	srv := agenttest.NewServer(t, noteCall("a"), agenttest.Text("enough"))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.MaxTurns = new(1)
	if out := query(t, "go", o); out.err != nil || out.result.NumTurns != 2 || out.result.ToolTurns != 1 {
		t.Errorf("cap 1 with one tool turn: %+v, %v", out.result, out.err)
	}
}

// TestContractCapPerTurn gives every user turn its own full cap, also a
// message that was sent while another turn reached it.
func TestContractCapPerTurn(t *testing.T) {
	conform.Covers(t, "L-35", "L-36", "L-188", "L-189", "L-203")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		return noteCall(fmt.Sprint(r.Number))
	}))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.MaxTurns = new(2)
	s := start(t, o)
	for i := range 3 {
		send(t, s, fmt.Sprint("prompt ", i))
	}
	out := readAll(t, s)
	for i, r := range out.results() {
		if r.Subtype != turnwright.ErrorMaxTurns || r.NumTurns != 2 || r.ToolTurns != 2 {
			t.Errorf("turn %d: %+v", i, r)
		}
	}
	if len(out.results()) != 3 || len(notes) != 6 || srv.Count() != 9 {
		t.Errorf("%d results, %d tools ran, %d requests", len(out.results()), len(notes), srv.Count())
	}
}

// Usage that costs a dollar, or little, with the prices of the default model
// (3 dollars a million input tokens).
func dear(s agenttest.Step) agenttest.Step  { return agenttest.Usage(s, 1_000_000/3+1, 0, 0, 0, 0) }
func cheap(s agenttest.Step) agenttest.Step { return agenttest.Usage(s, 1000, 0, 0, 0, 0) }

// TestContractBudget crosses a budget in every place.
func TestContractBudget(t *testing.T) {
	conform.Covers(t, "L-42", "L-43", "L-44", "L-48", "L-49", "L-50", "L-52", "L-57", "L-28", "M-64")
	for _, tt := range []struct {
		name   string
		budget float64
		steps  []agenttest.Step
		shape  string
		notes  int
		input  int64 // of usage: without the response that crossed
	}{
		{"below", 2, []agenttest.Step{cheap(noteCall("a")), cheap(agenttest.Text("ok"))}, "init assistant(note) user(ok) assistant(text) result(success)", 1, 2000},
		{"calls", 0.9, []agenttest.Step{cheap(noteCall("a")), dear(agenttest.Blocks(noteCall("b"), noteCall("c")))}, "init assistant(note) user(ok) assistant(note,note) user(error) user(error) result(error_max_budget_usd)", 1, 1000},
		{"text", 0.9, []agenttest.Step{cheap(noteCall("a")), dear(agenttest.Text("long"))}, "init assistant(note) user(ok) assistant(text) result(error_max_budget_usd)", 1, 1000},
		{"first", 0.9, []agenttest.Step{dear(noteCall("a"))}, "init assistant(note) user(error) result(error_max_budget_usd)", 0, 0},
		{"exactly", 0.003, []agenttest.Step{cheap(noteCall("a"))}, "init assistant(note) user(error) result(error_max_budget_usd)", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Script(tt.steps...))
			o := base(t, srv)
			var notes []string
			withNote(&o, &notes)
			o.MaxBudgetUSD = &tt.budget
			out := query(t, "go", o)
			if out.shape() != tt.shape || len(notes) != tt.notes {
				t.Errorf("stream %s, want %s; notes %q", out.shape(), tt.shape, notes)
			}
			r := out.result
			if r.Usage.InputTokens != tt.input {
				t.Errorf("usage %+v", r.Usage)
			}
			total, sum := *r.TotalCostUSD, 0.0
			var tokens int64
			for _, m := range r.ModelUsage {
				sum += m.CostUSD
				tokens += m.InputTokens
			}
			if math.Abs(total-sum) > 1e-9 || math.Abs(float64(tokens)*3e-6-total) > 1e-9 {
				t.Errorf("total %v, models %v, %d tokens", total, sum, tokens)
			}
			if bad := out.unpaired(); len(bad) > 0 {
				t.Errorf("unpaired: %q", bad)
			}
			if tt.name == "below" {
				return
			}
			if !r.IsError || r.Result != nil || total < tt.budget || r.TerminalReason != message.TerminalBudgetExhausted || !strings.Contains(r.Errors[0], fmt.Sprintf("Reached maximum budget ($%v)", tt.budget)) {
				t.Errorf("%+v", r)
			}
			if srv.Count() != len(tt.steps) {
				t.Errorf("%d requests", srv.Count())
			}
		})
	}
}

// TestContractBudgetOfSession compares the budget with the running total of
// the session; once it is spent a message ends without a request.
func TestContractBudgetOfSession(t *testing.T) {
	conform.Covers(t, "L-43", "L-51", "L-221", "L-222", "L-203")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Usage(agenttest.Text("hi"), 100_000, 0, 0, 0, 0)))
	o := base(t, srv)
	o.MaxBudgetUSD = new(0.75)
	s := start(t, o)
	for i, want := range []struct {
		subtype  message.Subtype
		cost     float64
		input    int64
		requests int
	}{
		{turnwright.Success, 0.3, 100_000, 1},
		{turnwright.Success, 0.6, 100_000, 2},
		{turnwright.ErrorMaxBudgetUSD, 0.9, 0, 3},
		{turnwright.ErrorMaxBudgetUSD, 0.9, 0, 3},
		{turnwright.ErrorMaxBudgetUSD, 0.9, 0, 3},
	} {
		send(t, s, fmt.Sprint("prompt ", i))
		r := readTurn(t, s).result
		if r.Subtype != want.subtype || math.Abs(*r.TotalCostUSD-want.cost) > 1e-9 || r.Usage.InputTokens != want.input || srv.Count() != want.requests {
			t.Errorf("turn %d: %s, cost %v, usage %+v, %d requests", i, r.Subtype, *r.TotalCostUSD, r.Usage, srv.Count())
		}
	}
}
