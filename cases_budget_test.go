package turnwright_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/session"
)

func TestCase023(t *testing.T) {
	t.Skip("waits for issue I: a budget that is crossed inside a subagent")
}

// Cache writes and reads are priced, each by its own price, and reach the
// budget: counted by input and output alone, both responses are far below it.
func TestCase024(t *testing.T) {
	conform.Covers(t, "B-024", "L-42", "L-226")
	// Prices of claude-sonnet-4-5: 3, 15, 3.75 (5 minutes), 6 (1 hour), 0.3 dollars a million tokens.
	first := (3*3 + 80*15 + 70_000*3.75 + 30_000*6) / 1e6
	second := (3*3 + 80*15 + 100_000*0.3) / 1e6
	for _, tt := range []struct {
		budget float64
		turns  int
		cost   float64
		ends   message.Subtype
	}{
		{first / 2, 0, first, turnwright.ErrorMaxBudgetUSD},
		{first + second/2, 1, first + second, turnwright.ErrorMaxBudgetUSD},
		{first + 2*second, 2, first + second, turnwright.Success},
	} {
		srv := agenttest.NewServer(t, agenttest.KeepRequests(0), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			if r.Turn() == 0 {
				return agenttest.Usage(noteCall("x"), 3, 80, 70_000, 30_000, 0)
			}
			return agenttest.Usage(agenttest.Text("done"), 3, 80, 0, 0, 100_000)
		}))
		o := base(t, srv)
		var notes []string
		withNote(&o, &notes)
		o.MaxBudgetUSD = &tt.budget
		r := query(t, "go", o).result
		if r.Subtype != tt.ends || math.Abs(*r.TotalCostUSD-tt.cost) > 1e-9 || r.NumTurns != tt.turns {
			t.Errorf("budget %v: %s after %d turns, cost %v, want %v", tt.budget, r.Subtype, r.NumTurns, *r.TotalCostUSD, tt.cost)
		}
	}
}

// One response counts once: in the result, in the stream and in the session's
// lines, if lines that share a message id are counted once.
func TestCase025(t *testing.T) {
	conform.Covers(t, "B-025", "L-225", "M-30")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Usage(agenttest.Blocks(agenttest.Thinking("hm", "s"), agenttest.Text("so"), noteCall("a"), noteCall("b"), noteCall("c")), 1000, 50, 0, 0, 0),
		agenttest.Usage(agenttest.Text("done"), 0, 1, 0, 0, 0),
	))
	store := session.NewMemory()
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	o.Store, o.MaxBudgetUSD = store, new(0.0045) // 0.003765 once, more than this twice
	out := query(t, "go", o)
	r := out.result
	if r.Subtype != turnwright.Success || r.Usage.InputTokens != 1000 || r.Usage.OutputTokens != 51 || math.Abs(*r.TotalCostUSD-(1000*3+51*15)/1e6) > 1e-9 {
		t.Errorf("%+v, cost %v", r, *r.TotalCostUSD)
	}
	stream := map[string]int64{}
	for _, a := range out.assistants() {
		stream[a.Message.ID] = a.Message.Usage.InputTokens
	}
	stored := map[string]int64{}
	j, err := store.Open(t.Context(), r.SessionID, session.OpenOptions{Dir: o.CWD})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for line, err := range j.Load(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var l struct {
			Type    string
			Message struct {
				ID    string
				Usage struct {
					Input int64 `json:"input_tokens"`
				}
			}
		}
		if err := json.Unmarshal(line, &l); err == nil && l.Type == "assistant" {
			stored[l.Message.ID] = l.Message.Usage.Input
		}
	}
	for where, by := range map[string]map[string]int64{"stream": stream, "session": stored} {
		var sum int64
		for id, n := range by {
			if id == "" {
				t.Errorf("%s: an assistant message without id", where)
			}
			sum += n
		}
		if len(by) != 2 || sum != 1000 {
			t.Errorf("%s: %v", where, by)
		}
	}
}

// The caller's price wins: for a model of one's own, and over a built-in one.
func TestCase027(t *testing.T) {
	conform.Covers(t, "B-027", "L-224")
	for _, name := range []string{"acme-x1", "claude-opus-4-1"} {
		srv := agenttest.NewServer(t, agenttest.Usage(noteCall("x"), 1_000_000, 10_000, 0, 0, 0), agenttest.Usage(agenttest.Text("done"), 900_000, 10_000, 0, 0, 0))
		o := base(t, srv)
		var notes []string
		withNote(&o, &notes)
		o.Model, o.MaxBudgetUSD = name, new(5.0)
		o.Catalog = model.DefaultCatalog().With(model.Info{
			ID: name, ContextWindow: 2_000_000, MaxOutput: 32_000, Price: &model.Price{Input: 0.3, Output: 1},
		})
		r := query(t, "go", o).result
		if want := 1.9*0.3 + 0.02*1; r.Subtype != turnwright.Success || math.Abs(*r.TotalCostUSD-want) > 1e-9 {
			t.Errorf("%s: %s, cost %v, want %v", name, r.Subtype, *r.TotalCostUSD, want)
		}
	}
}

// A fresh session starts at zero, in cost, usage by model and budget.
func TestCase029(t *testing.T) {
	conform.Covers(t, "B-029", "L-221")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if r.FirstUserText() == "A" {
			return agenttest.Usage(agenttest.Text("dear"), 50_000, 0, 0, 0, 0)
		}
		return agenttest.Usage(agenttest.Text("cheap"), 10_000, 0, 0, 0, 0)
	}))
	o := base(t, srv)
	o.MaxBudgetUSD = new(0.151)
	for prompt, want := range map[string]float64{"A": 0.15, "B": 0.03} {
		for range 2 { // also the same prompt again
			r := query(t, prompt, o).result
			if r.Subtype != turnwright.Success || math.Abs(*r.TotalCostUSD-want) > 1e-9 || len(r.ModelUsage) != 1 || math.Abs(r.ModelUsage["claude-sonnet-4-5"].CostUSD-want) > 1e-9 {
				t.Errorf("%s: %s, cost %v, models %+v", prompt, r.Subtype, *r.TotalCostUSD, r.ModelUsage)
			}
		}
	}
}
