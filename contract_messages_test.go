package turnwright_test

import (
	"context"
	"encoding/json"
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

// TestContractPartial streams two responses with all kinds of blocks: the
// events come in the API's order and unmodified, then the assistant message,
// then the calls run; what the deltas add up to is what the message holds.
func TestContractPartial(t *testing.T) {
	conform.Covers(t, "M-44", "M-45", "M-46", "M-47", "M-48", "M-49", "M-50", "M-51", "M-31", "M-5", "M-108")
	first := agenttest.Pings(agenttest.Usage(agenttest.DeltaSize(agenttest.Blocks(
		agenttest.Thinking("let me think", "sig"), agenttest.Text("I will note it."), noteCall("a longer text"), noteCall("b"),
	), 5), 100, 77, 0, 0, 0), 2)
	var shapes []string
	for _, partial := range []bool{true, false} {
		srv := agenttest.NewServer(t, agenttest.Script(first, agenttest.Text("done")))
		o := base(t, srv)
		var notes []string
		withNote(&o, &notes)
		o.IncludePartialMessages = partial
		out := query(t, "go", o)
		if out.err != nil {
			t.Fatal(out.err)
		}
		rest := outcome{}
		for _, m := range out.messages {
			if _, ok := m.(*turnwright.StreamEventMessage); !ok {
				rest.add(m)
			}
		}
		shapes = append(shapes, rest.shape())
		if !partial {
			if len(rest.messages) != len(out.messages) {
				t.Error("there are stream events although they were not asked for")
			}
			continue
		}
		checkEvents(t, out)
	}
	if shapes[0] != shapes[1] || shapes[0] != "init assistant(thinking,text,note,note) user(ok) user(ok) assistant(text) result(success)" {
		t.Errorf("with events %s, without %s", shapes[0], shapes[1])
	}
}

func checkEvents(t *testing.T, out outcome) {
	t.Helper()
	var events []string // of the running response
	var text, thinking, signature, input strings.Builder
	var output int64
	uuids := map[string]bool{}
	for _, m := range out.messages {
		if id := m.Head().UUID; id == "" || uuids[id] {
			t.Errorf("%s has uuid %q, which is empty or not its own", shapeOf(m), id)
		}
		uuids[m.Head().UUID] = true
		switch m := m.(type) {
		case *turnwright.StreamEventMessage:
			var ev struct {
				Type  string
				Index int
				Delta struct {
					Type, Text, Thinking, Signature string
					PartialJSON                     string `json:"partial_json"`
				}
				Usage struct {
					OutputTokens int64 `json:"output_tokens"`
				}
			}
			if err := json.Unmarshal(m.Event, &ev); err != nil {
				t.Fatal(err)
			}
			if m.ParentToolUseID != nil || (m.TTFTMS != nil) != (ev.Type == "message_start") {
				t.Errorf("%s: parent %v, ttft %v", ev.Type, m.ParentToolUseID, m.TTFTMS)
			}
			text.WriteString(ev.Delta.Text)
			thinking.WriteString(ev.Delta.Thinking)
			signature.WriteString(ev.Delta.Signature)
			if ev.Index == 2 {
				input.WriteString(ev.Delta.PartialJSON)
			}
			switch ev.Type {
			case "ping":
				continue
			case "content_block_start", "content_block_delta", "content_block_stop":
				ev.Type = fmt.Sprintf("%s %d", strings.TrimPrefix(ev.Type, "content_block_"), ev.Index)
			case "message_delta":
				output = ev.Usage.OutputTokens
			}
			if n := len(events); n == 0 || events[n-1] != ev.Type {
				events = append(events, ev.Type)
			}
		case *turnwright.AssistantMessage:
			want := "message_start|start 0|delta 0|stop 0|start 1|delta 1|stop 1|start 2|delta 2|stop 2|start 3|delta 3|stop 3|message_delta|message_stop"
			if len(m.ToolUses()) == 0 {
				want = "message_start|start 0|delta 0|stop 0|message_delta|message_stop"
			} else {
				th, _ := m.Message.Content[0].Thinking()
				if th.Thinking != thinking.String() || th.Signature != signature.String() || m.Text() != text.String() || string(m.ToolUses()[0].Input) != input.String() || output != 77 {
					t.Errorf("deltas: thinking %q, signature %q, text %q, input %q, %d tokens", &thinking, &signature, &text, &input, output)
				}
			}
			if got := strings.Join(events, "|"); got != want {
				t.Errorf("events before the assistant message:\n got %s\nwant %s", got, want)
			}
			events = nil
		case *turnwright.UserMessage:
			if len(events) > 0 {
				t.Errorf("a tool ran while the response was arriving: %q", events)
			}
		}
	}
}

// TestContractUsage counts each response once: from the stream a consumer gets
// input and cache by message id, from the result the rest.
func TestContractUsage(t *testing.T) {
	conform.Covers(t, "L-222", "L-224", "L-225", "L-226", "L-227", "M-30", "M-32", "M-64", "B-025")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Usage(agenttest.Blocks(agenttest.Thinking("x", "s"), agenttest.Text("y"), noteCall("a"), noteCall("b"), noteCall("c")), 1000, 50, 300, 200, 0),
		agenttest.Usage(agenttest.Text("one"), 10, 20, 0, 0, 500),
		agenttest.Usage(agenttest.Text("two"), 7, 8, 0, 0, 0),
	))
	o := base(t, srv)
	var notes []string
	withNote(&o, &notes)
	s := start(t, o)
	cost := 0.0
	for i, want := range []struct{ in, out, write5m, write1h, read int64 }{{1010, 70, 300, 200, 500}, {7, 8, 0, 0, 0}} {
		send(t, s, fmt.Sprint("prompt ", i))
		out := readTurn(t, s)
		r := out.result
		u := r.Usage
		if u.InputTokens != want.in || u.OutputTokens != want.out || u.CacheReadInputTokens != want.read || u.CacheCreationInputTokens != want.write5m+want.write1h {
			t.Errorf("turn %d: usage %+v", i, u)
		}
		once := map[string]message.Usage{}
		for _, a := range out.assistants() {
			once[a.Message.ID] = a.Message.Usage
		}
		var in, cache, atStart int64
		for _, u := range once {
			in += u.InputTokens
			cache += u.CacheReadInputTokens + u.CacheCreationInputTokens
			atStart += u.OutputTokens
		}
		if in != want.in || cache != want.read+want.write5m+want.write1h || atStart != int64(len(once)) {
			t.Errorf("turn %d, from the stream: input %d, cache %d, output at start %d of %d responses", i, in, cache, atStart, len(once))
		}
		// Prices of claude-sonnet-4-5 in dollars a million tokens.
		cost += (float64(want.in)*3 + float64(want.out)*15 + float64(want.write5m)*3.75 + float64(want.write1h)*6 + float64(want.read)*0.3) / 1e6
		if math.Abs(*r.TotalCostUSD-cost) > 1e-9 || len(r.ModelUsage) != 1 || math.Abs(r.ModelUsage["claude-sonnet-4-5"].CostUSD-cost) > 1e-9 {
			t.Errorf("turn %d: cost %v, want %v; %+v", i, *r.TotalCostUSD, cost, r.ModelUsage)
		}
	}
}

// TestContractTwoModels adds up what each model cost.
func TestContractTwoModels(t *testing.T) {
	conform.Covers(t, "L-222", "M-63", "M-64", "L-114")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Usage(agenttest.Text("hi"), 1000, 100, 0, 0, 0)))
	s := start(t, base(t, srv))
	for i, name := range []string{"", "claude-opus-4-1", "claude-opus-4-1"} {
		if name != "" {
			if err := s.SetModel(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		send(t, s, "go")
		r := readTurn(t, s).result
		sum := 0.0
		for _, u := range r.ModelUsage {
			sum += u.CostUSD
		}
		if len(r.ModelUsage) != min(i+1, 2) || math.Abs(sum-*r.TotalCostUSD) > 1e-9 || r.Usage.InputTokens != 1000 {
			t.Errorf("turn %d: %+v, total %v", i, r.ModelUsage, *r.TotalCostUSD)
		}
		if i == 2 && r.ModelUsage["claude-opus-4-1"].InputTokens != 2000 {
			t.Errorf("%+v", r.ModelUsage)
		}
	}
}

// TestContractOrder looks at the order of a long turn with everything in it.
func TestContractOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "M-6", "M-11", "M-108", "M-109", "M-105", "M-41")
		_, o := inMemory(t, agenttest.Script(
			agenttest.HTTPError(500, "api_error", "x"),
			agenttest.Blocks(agenttest.Text("a"), noteCall("a"), agenttest.Call("other", `{"text":"x"}`), agenttest.Call("echo", `{"text":"x"}`)),
			agenttest.HTTPError(529, "overloaded_error", "x"),
			agenttest.Blocks(noteCall("b"), noteCall("c")),
			agenttest.Text("done"),
		))
		var notes []string
		withNote(&o, &notes)
		o.CustomTools = append(o.CustomTools, turnwright.NewTool("other", "Not approved.", echoed))
		o.ReplayUserMessages = true
		out := query(t, "go", o)
		want := "init user() api_retry assistant(text,note,other,echo) permission_denied user(error) user(ok) user(ok) api_retry assistant(note,note) user(ok) user(ok) assistant(text) result(success)"
		if got := out.shape(); strings.Count(got, "user(ok)") != 4 || len(got) != len(want) || !strings.HasPrefix(got, want[:strings.Index(want, "permission")-1]) || !strings.HasSuffix(got, want[strings.Index(want, "api_retry assistant(note,note)"):]) {
			t.Errorf("stream:\n got %s\nwant %s, the results of the first response in any order", got, want)
		}
		if bad := out.unpaired(); len(bad) > 0 {
			t.Errorf("unpaired: %q", bad)
		}
		for _, m := range out.messages {
			stamp := ""
			switch m := m.(type) {
			case *turnwright.AssistantMessage:
				stamp = m.Timestamp
			case *turnwright.UserMessage:
				stamp = m.Timestamp
			}
			if stamp != "" {
				if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
					t.Errorf("timestamp: %v", err)
				}
			}
		}
	})
}

// TestContractStartFailure gives a result without origin when the run cannot start.
func TestContractStartFailure(t *testing.T) {
	conform.Covers(t, "L-66", "L-112", "L-56", "M-66")
	srv := agenttest.NewServer(t)
	o := base(t, srv)
	o.Env["ANTHROPIC_API_KEY"], o.Env["ANTHROPIC_BASE_URL"] = "", ""
	r := query(t, "go", o).result
	keys := wire(t, r)
	if r.Subtype != turnwright.ErrorDuringExecution || keys["origin"] != nil || r.SessionID == "" || r.TotalCostUSD == nil {
		t.Errorf("%+v", r)
	}
	// A caller's own prompt has no origin either, an input that no person wrote has one.
	srv = agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	s := start(t, base(t, srv))
	for _, synthetic := range []bool{false, true} {
		if _, err := s.Send(t.Context(), turnwright.Input{Text: "x", Synthetic: synthetic}); err != nil {
			t.Fatal(err)
		}
		r := readTurn(t, s).result
		if (r.Origin != nil && r.Origin.Kind == "unclassified") != synthetic {
			t.Errorf("synthetic %v: origin %+v", synthetic, r.Origin)
		}
	}
}

func echoed(_ context.Context, in struct {
	Text string `json:"text"`
},
) (string, error) {
	return in.Text, nil
}
