package turnwright_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// The cases_*_test.go files are the cases of docs/contract/cases.md, chapter by
// chapter, with the inputs as they stand there. Cases that reports_test.go has
// in full are not repeated.

// A cap that is reached gives one result with all its facts, and a session
// that goes on.
func TestCase001(t *testing.T) {
	conform.Covers(t, "B-001", "B-004")
	bash := agenttest.Call("Bash", `{"command":"true"}`)
	srv := agenttest.NewServer(t, agenttest.Script(bash, bash, bash, agenttest.Text("resumed")))
	o := base(t, srv)
	o.AllowedTools, o.MaxTurns = []string{"Bash"}, new(2)
	s := start(t, o)
	send(t, s, "go")
	out := readTurn(t, s)
	r := out.result
	if r.Subtype != turnwright.ErrorMaxTurns || r.NumTurns != 2 || r.TotalCostUSD == nil || *r.TotalCostUSD <= 0 || r.Usage == nil || r.SessionID != s.ID() {
		t.Errorf("%+v", r)
	}
	if len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "maximum number of turns (2)") {
		t.Errorf("errors %q", r.Errors)
	}
	send(t, s, "go on")
	if out := readAll(t, s); len(out.results()) != 1 || out.result.IsError || *out.result.Result != "resumed" {
		t.Errorf("%s, %+v", out.shape(), out.result)
	}
}

// Every cap holds exactly, also with parallel calls on the way. The subagent
// of the case's 20th turn waits for issue I.
func TestCase002(t *testing.T) {
	conform.Covers(t, "B-002")
	for _, limit := range []int{1, 2, 3, 60} {
		srv := agenttest.NewServer(t, agenttest.KeepRequests(1), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			switch turn := r.Turn() + 1; {
			case turn == 40:
				return agenttest.Blocks(noteCall("40"), noteCall("40"), noteCall("40"), noteCall("40"), noteCall("40"))
			case turn <= 80:
				return noteCall(fmt.Sprint(turn))
			}
			return agenttest.Text("done")
		}))
		o := base(t, srv)
		var notes []string
		withNote(&o, &notes)
		o.MaxTurns = &limit
		r := query(t, "go", o).result
		want := limit
		if limit >= 40 {
			want += 4
		}
		if r.Subtype != turnwright.ErrorMaxTurns || r.NumTurns != limit || r.ToolTurns != limit || len(notes) != want || srv.Count() != limit+1 {
			t.Errorf("cap %d: %+v, %d calls ran, %d requests", limit, r, len(notes), srv.Count())
		}
	}
}

func TestCase003(t *testing.T) {
	t.Skip("waits for issue H: a compaction on the way to the cap")
}

// A complete object in a cut response is suspect all the same: a tool whose
// missing field is optional does not run.
func TestCase010(t *testing.T) {
	conform.Covers(t, "B-010", "L-75")
	ran := 0
	edit := turnwright.NewTool("change", "Changes a file.", func(_ context.Context, in struct {
		File string `json:"file_path"`
		Old  string `json:"old_string"`
		New  string `json:"new_string,omitempty"`
	},
	) (string, error) {
		ran++
		return "changed", nil
	})
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.StopReason(agenttest.Call("change", `{"file_path":"f","old_string":"x"}`), "max_tokens"),
		agenttest.Text("I see."),
	))
	o := base(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{edit}, []string{"change"}
	out := query(t, "go", o)
	if out.err != nil || ran > 0 {
		t.Errorf("the tool ran %d times, %v", ran, out.err)
	}
	if r := srv.Last().LastToolResults(); len(r) != 1 || !r[0].IsError || !strings.Contains(r[0].Text, "max_tokens") {
		t.Errorf("%+v", r)
	}
}

// Of a cut batch the complete calls run and the last one does not; each has a
// result, and the model is told why.
func TestCase011(t *testing.T) {
	conform.Covers(t, "B-011", "L-75", "M-105")
	srv := agenttest.NewServer(t, agenttest.StrictEcho(), agenttest.Script(
		agenttest.StopReason(agenttest.Blocks(agenttest.Call("Bash", `{"command":"touch a"}`), agenttest.CutInput("Bash", `{"command":"touch`)), "max_tokens"),
		agenttest.Text("I see."),
	))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	out := query(t, "go", o)
	if out.err != nil || len(out.unpaired()) > 0 {
		t.Errorf("%s, %v", out.shape(), out.err)
	}
	if _, err := os.Stat(filepath.Join(o.CWD, "a")); err != nil {
		t.Error(err)
	}
	if r := srv.Last().LastToolResults(); len(r) != 2 || r[0].IsError || !r[1].IsError || !strings.Contains(r[1].Text, "max_tokens") {
		t.Errorf("%+v", r)
	}
	if srv.Count() != 2 {
		t.Errorf("%d requests", srv.Count())
	}
}

// An empty refusal after a tool result is a result that shows it; nothing
// empty is stored.
func TestCase013(t *testing.T) {
	conform.Covers(t, "B-013", "L-71", "L-72")
	srv := agenttest.NewServer(t, agenttest.Script(noteCall("x"), agenttest.Refusal(), agenttest.Text("sure")))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	s := start(t, o)
	send(t, s, "go")
	r := readTurn(t, s).result
	if r.Subtype != turnwright.Success || r.IsError || *r.StopReason != "refusal" || *r.Result == "" {
		t.Errorf("%+v", r)
	}
	send(t, s, "something else then")
	if r := readTurn(t, s).result; r.IsError || *r.Result != "sure" {
		t.Errorf("%+v", r)
	}
	for i, m := range srv.Last().Messages() {
		if len(m.Content) == 0 {
			t.Errorf("message %d is empty", i)
		}
	}
}

// A panic in either of two calls is a result that names the tool; no goroutine
// stays, for which the bubble would fail.
func TestCase017(t *testing.T) {
	boom := turnwright.NewTool("boom", "Panics.", func(context.Context, struct{}) (string, error) { panic("no") })
	for _, readOnly := range []bool{false, true} {
		for _, order := range [][]string{{"boom", "echo"}, {"echo", "boom"}, {"boom", "boom"}} {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "B-017", "L-137")
				if readOnly {
					boom = turnwright.NewTool("boom", "Panics.", func(context.Context, struct{}) (string, error) { panic("no") }, turnwright.ReadOnly())
				}
				var steps []agenttest.Step
				for _, name := range order {
					steps = append(steps, agenttest.Call(name, map[string]string{"boom": `{}`, "echo": `{"text":"x"}`}[name]))
				}
				srv, o := inMemory(t, agenttest.Script(agenttest.Blocks(steps...), agenttest.Text("done")))
				o.CustomTools, o.AllowedTools = []turnwright.Tool{boom, echo()}, []string{"boom", "echo"}
				if out := query(t, "go", o); out.err != nil || *out.result.Result != "done" {
					t.Fatal(out.err)
				}
				for i, r := range srv.Last().LastToolResults() {
					if panics := order[i] == "boom"; r.IsError != panics || panics && !strings.Contains(r.Text, "boom") {
						t.Errorf("result %d of %q: %+v", i, order, r)
					}
				}
			})
		}
	}
}

// A hundred and sixty commands of one response are one turn; their results
// come back in order.
func TestCase020(t *testing.T) {
	conform.Covers(t, "B-020", "L-31")
	var steps []agenttest.Step
	for i := range 160 {
		steps = append(steps, agenttest.Call("Bash", fmt.Sprintf(`{"command":"echo %d"}`, i)))
	}
	srv := agenttest.NewServer(t, agenttest.Blocks(steps...), agenttest.Text("done"))
	o := base(t, srv)
	o.AllowedTools, o.MaxTurns = []string{"Bash"}, new(2)
	out := query(t, "go", o)
	if out.err != nil || out.result.ToolTurns != 1 || out.result.NumTurns != 2 {
		t.Fatalf("%+v, %v", out.result, out.err)
	}
	res := srv.Last().LastToolResults()
	if len(res) != 160 {
		t.Fatalf("%d results", len(res))
	}
	for i, r := range res {
		if strings.TrimSpace(r.Text) != fmt.Sprint(i) || r.IsError {
			t.Errorf("result %d: %+v", i, r)
		}
	}
}
