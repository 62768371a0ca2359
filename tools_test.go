package turnwright_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
)

// track records how calls of its two tools overlap: "look" is read-only and
// takes a second, "change" is not and takes a second as well.
type track struct {
	mu      sync.Mutex
	running int
	most    int      // look calls that ran at once
	log     []string // "look a+" when a call starts, "look a-" when it ends
	mixed   bool     // a change ran beside anything
	changes int
}

func (tr *track) tools() []turnwright.Tool {
	type input struct {
		Name string `json:"name"`
	}
	run := func(kind string, change bool) func(context.Context, input) (string, error) {
		return func(_ context.Context, in input) (string, error) {
			tr.mu.Lock()
			tr.running++
			tr.most = max(tr.most, tr.running)
			if change {
				tr.changes++
			}
			tr.mixed = tr.mixed || tr.changes > 0 && tr.running > 1
			tr.log = append(tr.log, kind+" "+in.Name+"+")
			tr.mu.Unlock()
			time.Sleep(time.Second)
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.running--
			if change {
				tr.changes--
			}
			tr.log = append(tr.log, kind+" "+in.Name+"-")
			if strings.HasPrefix(in.Name, "bad") {
				return "", fmt.Errorf("%s failed", in.Name)
			}
			return in.Name + " done", nil
		}
	}
	return []turnwright.Tool{
		turnwright.NewTool("look", "Looks.", run("look", false), turnwright.ReadOnly()),
		turnwright.NewTool("change", "Changes.", run("change", true)),
	}
}

func calls(namesOf ...string) agenttest.Step {
	var steps []agenttest.Step
	for _, n := range namesOf {
		tool, name, _ := strings.Cut(n, " ")
		steps = append(steps, agenttest.Call(tool, fmt.Sprintf(`{"name":%q}`, name)))
	}
	return agenttest.Blocks(steps...)
}

// TestWindows runs a mixed batch: read-only calls together, each change alone
// and in its place; a failing call harms no other; the results come back in
// the order of the calls.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "T-24", "T-25", "T-31", "T-32", "T-35", "T-36", "L-131", "L-132", "L-133", "L-135", "L-136")
		srv, o := inMemory(t, agenttest.Script(
			calls("look a", "look bad1", "change c", "look d", "change bad2", "change f", "look g"),
			agenttest.Text("done"),
		))
		var tr track
		o.CustomTools, o.AllowedTools = tr.tools(), []string{"look", "change"}
		begin := time.Now()
		out := query(t, "go", o)
		if out.err != nil {
			t.Fatal(out.err)
		}
		if d := time.Since(begin).Round(time.Second); d != 6*time.Second {
			t.Errorf("the batch took %v; a and bad1 together, then five alone are 6 s", d)
		}
		if tr.mixed || tr.most != 2 {
			t.Errorf("most at once %d, a change beside another call: %v\n%q", tr.most, tr.mixed, tr.log)
		}
		var got []string
		for _, r := range srv.Last().LastToolResults() {
			got = append(got, fmt.Sprintf("%s/%v", r.Text, r.IsError))
		}
		want := "a done/false|bad1 failed/true|c done/false|d done/false|bad2 failed/true|f done/false|g done/false"
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("results %s", s)
		}
	})
}

// TestWidth runs at most ten read-only calls at once, or as many as the
// variable says.
func TestWidth(t *testing.T) {
	for env, want := range map[string]int{"": 10, "3": 3} {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "T-33", "L-134", "K-236")
			var names []string
			for i := range 24 {
				names = append(names, fmt.Sprintf("look %d", i))
			}
			_, o := inMemory(t, agenttest.Script(calls(names...), agenttest.Text("done")))
			o.Env["CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"] = env
			var tr track
			o.CustomTools, o.AllowedTools = tr.tools(), []string{"look"}
			if out := query(t, "go", o); out.err != nil || out.result.ToolTurns != 1 {
				t.Fatal(out.err)
			}
			if tr.most != want {
				t.Errorf("%q: %d calls at once, not %d", env, tr.most, want)
			}
		})
	}
}

// TestCallLifecycle checks a call in the contract's order: name, then schema,
// then permission; only what passes all of them runs.
func TestCallLifecycle(t *testing.T) {
	conform.Covers(t, "T-15", "T-16", "T-17", "T-18", "T-23", "L-137", "L-143", "L-145", "M-61", "M-78", "M-104", "P-134", "P-135", "P-136")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(
			agenttest.Call("nosuch", `{"text":"1"}`),
			agenttest.Call("note", `{"txt":2}`),
			agenttest.Call("forbidden", `{"text":"3"}`),
			agenttest.Call("note", `{"text":"4"}`),
		),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	var notes, forbidden []string
	second := turnwright.NewTool("forbidden", "Not allowed.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		forbidden = append(forbidden, in.Text)
		return "", nil
	})
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes), second}, []string{"note"}
	out := query(t, "go", o)
	if out.err != nil {
		t.Fatal(out.err)
	}
	if len(forbidden) > 0 || len(notes) != 1 || notes[0] != "4" {
		t.Errorf("ran: notes %q, forbidden %q", notes, forbidden)
	}
	res := srv.Last().LastToolResults()
	for i, want := range []string{"nosuch", "txt", "forbidden", "noted 1"} {
		if !strings.Contains(res[i].Text, want) || res[i].IsError != (i < 3) {
			t.Errorf("result %d: %+v", i, res[i])
		}
	}
	for _, i := range []int{0, 1} {
		if !strings.HasPrefix(res[i].Text, "<tool_use_error>") {
			t.Errorf("result %d is no tool_use_error: %s", i, res[i].Text)
		}
	}
	if d := out.result.PermissionDenials; len(d) != 1 || d[0].ToolName != "forbidden" || string(d[0].ToolInput) != `{"text":"3"}` {
		t.Errorf("permission_denials %+v", d)
	}
	if !strings.Contains(out.shape(), "permission_denied") {
		t.Errorf("no permission_denied in %s", out.shape())
	}
}

// TestIDs finds the session's id on every message, and a transcript without
// the contents of files.
func TestIDs(t *testing.T) {
	conform.Covers(t, "S-2", "S-3", "M-5", "M-21", "M-26", "M-67")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("echo", `{"text":"x"}`), agenttest.Text("done")))
	o := base(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
	out := query(t, "go", o)
	seen := map[string]bool{}
	for _, m := range out.messages {
		h := m.Head()
		if h.SessionID != out.result.SessionID || len(h.SessionID) != 36 {
			t.Errorf("%s has session id %q, the result %q", shapeOf(m), h.SessionID, out.result.SessionID)
		}
		if h.UUID == "" || seen[h.UUID] {
			t.Errorf("%s has uuid %q, which is empty or not its own", shapeOf(m), h.UUID)
		}
		seen[h.UUID] = true
		switch m := m.(type) {
		case *turnwright.AssistantMessage:
			if m.ParentToolUseID != nil {
				t.Error("an assistant message of the main conversation has a parent")
			}
		case *turnwright.UserMessage:
			if m.ParentToolUseID != nil {
				t.Error("a user message of the main conversation has a parent")
			}
		}
	}
}

// TestApart runs two sessions with different directories at once: they share
// no state.
func TestApart(t *testing.T) {
	conform.Covers(t, "S-123", "L-221", "B-029")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if r.Turn() == 0 {
			return agenttest.Usage(agenttest.Call("Bash", `{"command":"pwd"}`), 1000, 10, 0, 0, 0)
		}
		return agenttest.Usage(agenttest.Text(r.LastToolResults()[0].Text), 1000, 10, 0, 0, 0)
	}))
	one, two := base(t, srv), base(t, srv)
	one.AllowedTools, two.AllowedTools = []string{"Bash"}, []string{"Bash"}
	outs := make([]outcome, 2)
	var wg sync.WaitGroup
	for i, o := range []turnwright.Options{one, two} {
		wg.Go(func() { outs[i] = query(t, "where are you?", o) })
	}
	wg.Wait()
	for i, o := range []turnwright.Options{one, two} {
		r := outs[i].result
		if r == nil || r.Result == nil || !strings.HasSuffix(strings.TrimSpace(*r.Result), o.CWD) {
			t.Errorf("session %d: %+v, not in %s", i, r, o.CWD)
			continue
		}
		if *r.TotalCostUSD != *outs[0].result.TotalCostUSD || r.Usage.InputTokens != 2000 {
			t.Errorf("session %d: cost %v, usage %+v", i, *r.TotalCostUSD, r.Usage)
		}
	}
	if outs[0].result.SessionID == outs[1].result.SessionID {
		t.Error("both have one id")
	}
}

// TestCustomTool sends a tool's name, description and schema to the model, and
// its own words when it fails.
func TestCustomTool(t *testing.T) {
	conform.Covers(t, "T-176", "T-183", "T-182", "L-1", "L-13", "L-234")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Call("note", `{"text":"fail now"}`), agenttest.Call("sum", `{"a":2,"b":3}`)),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	var notes []string
	type total struct {
		Sum int `json:"sum"`
	}
	sum := turnwright.NewTool("sum", "Adds.", func(_ context.Context, in struct {
		A int `json:"a" jsonschema:"the first number"`
		B int `json:"b"`
	},
	) (total, error) {
		return total{in.A + in.B}, nil
	})
	o.Tools = []string{}
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes), sum}, []string{"note", "sum"}
	o.SystemPrompt = &turnwright.SystemPrompt{Text: new("You add.")}
	if out := query(t, "add two and three", o); out.err != nil {
		t.Fatal(out.err)
	}
	first := srv.Requests()[0]
	if first.UserText() != "add two and three" || first.SystemText() != "You add." || strings.Join(first.ToolNames(), " ") != "note sum" {
		t.Errorf("first request: user %q, system %q, tools %q", first.UserText(), first.SystemText(), first.ToolNames())
	}
	if raw := string(first.Field("tools")); !strings.Contains(raw, `"description":"Adds."`) || !strings.Contains(raw, "the first number") {
		t.Errorf("tools: %s", raw)
	}
	res := srv.Last().LastToolResults()
	if !res[0].IsError || res[0].Text != "the note cannot be taken: fail now" {
		t.Errorf("a failing handler: %+v", res[0])
	}
	if res[1].IsError || res[1].Text != `{"sum":5}` {
		t.Errorf("a plain value: %+v", res[1])
	}
}

// panicky is a tool without the help of NewTool.
type panicky struct{}

func (panicky) Spec() tool.Spec { return tool.Spec{Name: "panicky"} }

func (panicky) Call(context.Context, *tool.Call) (*turnwright.ToolResult, error) {
	panic("out of cheese")
}

// A panic of a tool that somebody wrote by hand is told like any other failure
// of it, with the tool's name, and the run goes on.
func TestPanicOfABareTool(t *testing.T) {
	conform.Covers(t, "L-137", "T-182")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("panicky", `{}`), agenttest.Text("I see.")))
	o := base(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{panicky{}}, []string{"panicky"}
	out := query(t, "go", o)
	if out.result.Subtype != turnwright.Success {
		t.Fatal(out.shape())
	}
	for _, m := range out.messages {
		if u, ok := m.(*turnwright.UserMessage); ok {
			r := u.ToolResults()[0]
			if want := (&tool.PanicError{Tool: "panicky", Value: "out of cheese"}).Error(); !r.IsError || r.Content.Text() != want {
				t.Errorf("got %q, want %q", r.Content.Text(), want)
			}
		}
	}
}
