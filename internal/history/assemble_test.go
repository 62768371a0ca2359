package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

// show writes messages one a line: the role's first letter and the blocks.
func show(msgs []Message) string {
	var sb strings.Builder
	for _, m := range msgs {
		sb.WriteString(string(m.Role[:1]))
		for _, b := range m.Blocks {
			switch b.Type() {
			case "text":
				fmt.Fprintf(&sb, " %q", b.Text())
			case "tool_use":
				u, _ := b.ToolUse()
				fmt.Fprintf(&sb, " use:%s", u.ID)
			case "tool_result":
				r, _ := b.ToolResult()
				mark := ""
				if r.IsError {
					mark = "!"
				}
				fmt.Fprintf(&sb, " res%s:%s=%q", mark, r.ToolUseID, r.Content.Text())
			default:
				sb.WriteString(" " + b.Type())
			}
		}
		sb.WriteByte('\n')
	}
	return sb.String()
}

func TestAssemble(t *testing.T) {
	const unsigned = `{"type":"thinking","thinking":"t","signature":""}`
	thinking := message.NewThinking("t", "s")
	with := func(it Item, f func(*Item)) Item { f(&it); return it }
	notice := func(it *Item) { it.Flags = Notice }
	aborted := func(it *Item) { it.Flags = Aborted }
	msg := func(id string) func(*Item) { return func(it *Item) { it.MsgID = id } }

	tests := []struct {
		name  string
		ids   []string
		items []Item
		opts  Options
		want  string
	}{
		{
			name:  "results in call order, then the rest in chain order",
			ids:   []string{"L-7", "L-136"},
			items: []Item{user(text("p")), assistant(use("a"), use("b"), use("c")), user(result("c", "3"), text("hook")), user(result("a", "1")), user(text("absorbed")), user(result("b", "2"))},
			want:  "u \"p\"\na use:a use:b use:c\nu res:a=\"1\" res:b=\"2\" res:c=\"3\" \"hook\" \"absorbed\"\n",
		},
		{
			name:  "parts of a response are one message",
			ids:   []string{"L-6"},
			items: []Item{user(text("p")), assistant(thinking), assistant(text("x")), assistant(use("a")), user(result("a", "1"))},
			want:  "u \"p\"\na thinking \"x\" use:a\nu res:a=\"1\"\n",
		},
		{
			name: "a result stored before the response ended",
			items: []Item{
				user(text("p")), with(assistant(thinking, use("a")), msg("r")), user(result("a", "1")), with(assistant(use("b")), msg("r")), user(result("b", "2")),
				with(assistant(use("c")), msg("r2")), user(result("c", "3")),
			},
			want: "u \"p\"\na thinking use:a use:b\nu res:a=\"1\" res:b=\"2\"\na use:c\nu res:c=\"3\"\n",
		},
		{
			name:  "three calls with two results",
			ids:   []string{"B-116"},
			items: []Item{user(text("p")), assistant(use("a"), use("b"), use("c")), user(result("a", "1")), user(result("c", "3")), assistant(text("done")), user(text("q"))},
			want:  "u \"p\"\na use:a use:b use:c\nu res:a=\"1\" res!:b=\"" + UnknownOutcome + "\" res:c=\"3\"\na \"done\"\nu \"q\"\n",
		},
		{
			name:  "interrupted calls without results",
			ids:   []string{"B-113"},
			items: []Item{user(text("p")), assistant(use("a"), use("b"), use("c")), user(result("a", "1")), user(text("q"))},
			want:  "u \"p\"\na use:a use:b use:c\nu res:a=\"1\" res!:b=\"" + UnknownOutcome + "\" res!:c=\"" + UnknownOutcome + "\" \"q\"\n",
		},
		{
			name:  "open calls at the end",
			items: []Item{user(text("p")), assistant(use("a"))},
			want:  "u \"p\"\na use:a\nu res!:a=\"" + UnknownOutcome + "\"\n",
		},
		{
			name:  "second results and orphans are dropped",
			items: []Item{user(text("p"), result("z", "0")), assistant(use("a")), user(result("a", "1"), result("a", "2"), result("z", "0")), assistant(text("x")), user(result("a", "3")), user(text("q"))},
			want:  "u \"p\"\na use:a\nu res:a=\"1\"\na \"x\"\nu \"q\"\n",
		},
		{
			name:  "a call id twice",
			items: []Item{user(text("p")), assistant(use("a"), use("a")), user(result("a", "1")), assistant(text("x"), use("a")), user(result("a", "2"), text("q"))},
			want:  "u \"p\"\na use:a\nu res:a=\"1\"\na \"x\"\nu \"q\"\n",
		},
		{
			name:  "notices are never sent",
			items: []Item{user(text("p")), with(assistant(text("API Error")), notice), user(text("q")), assistant(use("a")), with(assistant(text("API Error")), notice), user(result("a", "1"))},
			want:  "u \"p\" \"q\"\na use:a\nu res:a=\"1\"\n",
		},
		{
			name:  "an empty reply leaves nothing",
			ids:   []string{"B-006", "B-013"},
			items: []Item{user(text("p")), assistant(use("a")), user(result("a", "1")), assistant(), user(text("q"))},
			want:  "u \"p\"\na use:a\nu res:a=\"1\" \"q\"\n",
		},
		{
			name:  "a reply of thinking only, and a silent command",
			ids:   []string{"B-109"},
			items: []Item{user(text("p")), assistant(use("a")), user(result("a", "")), assistant(thinking), user(text("q"))},
			want:  "u \"p\"\na use:a\nu res:a=\"(no output)\" \"q\"\n",
		},
		{
			name:  "results without content",
			ids:   []string{"B-155"},
			items: []Item{user(text("p")), assistant(use("a"), use("b"), use("c")), user(message.NewToolResult("a", message.Content{}, false), message.NewToolResult("b", message.BlockContent(text("")), true), message.NewToolResult("c", message.BlockContent(text(""), text("x")), false))},
			want:  "u \"p\"\na use:a use:b use:c\nu res:a=\"(no output)\" res!:b=\"(no output)\" res:c=\"x\"\n",
		},
		{
			name:  "thinking of another model or unsigned",
			items: []Item{user(text("p")), assistant(thinking, block(t, unsigned), text("x")), with(assistant(thinking, use("a")), func(it *Item) { it.Model = "other" }), user(result("a", "1"))},
			opts:  Options{Model: "m"},
			want:  "u \"p\"\na thinking \"x\" use:a\nu res:a=\"1\"\n",
		},
		{
			name:  "the dated name is the same model",
			items: []Item{user(text("p")), with(assistant(thinking, text("x")), func(it *Item) { it.Model = "m-20250929" }), with(assistant(thinking, text("y")), func(it *Item) { it.Model = "alias" })},
			opts:  Options{Model: "m", Aliases: []string{"alias"}},
			want:  "u \"p\"\na thinking \"x\" thinking \"y\"\n",
		},
		{
			name:  "an interrupted partial",
			items: []Item{user(text("p")), with(assistant(block(t, unsigned), text("par"), use("a"), use("b")), aborted), user(result("a", "Not executed: …")), user(text("q"))},
			want:  "u \"p\"\na \"par\" use:a\nu res:a=\"Not executed: …\" \"q\"\n",
		},
		{
			name:  "an interrupted partial of which nothing is left",
			items: []Item{user(text("p")), with(assistant(block(t, unsigned), use("a")), aborted), user(text("q"))},
			want:  "u \"p\" \"q\"\n",
		},
		{
			name:  "pause_turn: the assistant's content comes last",
			ids:   []string{"L-77"},
			items: []Item{user(text("p")), assistant(text("x"), block(t, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`))},
			want:  "u \"p\"\na \"x\" server_tool_use\n",
		},
		{
			name:  "pause_turn: the next response goes on in the same message",
			items: []Item{user(text("p")), assistant(block(t, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`)), assistant(block(t, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`), text("x")), user(text("q"))},
			want:  "u \"p\"\na server_tool_use web_search_tool_result \"x\"\nu \"q\"\n",
		},
		{
			name:  "a paused server call that nothing answered",
			items: []Item{user(text("p")), assistant(text("x"), block(t, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`)), user(text("q"))},
			want:  "u \"p\"\na \"x\"\nu \"q\"\n",
		},
		{
			name: "a server tool that waits for a client tool",
			ids:  []string{"L-81"},
			items: []Item{
				user(text("p")), assistant(block(t, `{"type":"server_tool_use","id":"s","name":"code_execution","input":{}}`), use("a")), user(result("a", "1")),
				assistant(block(t, `{"type":"code_execution_tool_result","tool_use_id":"s","content":{}}`), text("x")), user(text("q")),
			},
			want: "u \"p\"\na server_tool_use use:a\nu res:a=\"1\"\na code_execution_tool_result \"x\"\nu \"q\"\n",
		},
		{
			name:  "project context stands before the first prompt",
			ids:   []string{"L-164", "L-183"},
			items: []Item{user(text("p")), assistant(text("x")), user(text("q"))},
			opts:  Options{Prelude: []message.Block{text("memory"), text("")}},
			want:  "u \"memory\" \"p\"\na \"x\"\nu \"q\"\n",
		},
		{
			name:  "a chain that starts with the assistant",
			items: []Item{assistant(text("x")), user(text("q"))},
			want:  "u \"" + NothingBefore + "\"\na \"x\"\nu \"q\"\n",
		},
		{
			name:  "the same with project context",
			items: []Item{user(result("z", "0")), assistant(text("x")), user(text("q"))},
			opts:  Options{Prelude: []message.Block{text("memory")}},
			want:  "u \"memory\"\na \"x\"\nu \"q\"\n",
		},
		{
			name:  "a prompt kept as a string",
			items: []Item{{Role: message.RoleUser, Text: new("p <&>")}},
			want:  "u \"p <&>\"\n",
		},
		{name: "an empty chain", opts: Options{Prelude: []message.Block{text("memory")}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.ids) > 0 {
				conform.Covers(t, tt.ids...)
			}
			r := new(Assembler).Assemble(chain(tt.items...).Items(), tt.opts)
			if got := show(r.Messages); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
			if err := checkRequest(r, tt.opts.Tools); err != nil {
				t.Error(err)
			}
			msgs, _ := Assemble(tt.items, tt.opts) // items that no History has
			if got := show(msgs); got != tt.want {
				t.Errorf("without a History: got\n%s", got)
			}
		})
	}
}

// What the model sent goes back unchanged, complete and in order.
func TestAssembleKeepsBytes(t *testing.T) {
	conform.Covers(t, "B-128", "L-6")
	raws := []string{
		`{"type":"thinking","thinking":"a\u2028b","signature":"c2ln","extra":1}`,
		`{"citations":[],"type":"text","text":"x é <&>"}`,
		`{"type":"redacted_thinking","data":"d"}`,
		`{"type":"tool_use","id":"a","name":"Bash","input":{"n":1.0,"z":[],"a":{}},"caller":{"type":"direct"}}`,
		`{"type":"thinking","thinking":"more","signature":"c2lh"}`,
		`{"type":"tool_use","id":"b","name":"Bash","input":{}}`,
	}
	it := assistant()
	for _, raw := range raws {
		it.Blocks = append(it.Blocks, block(t, raw))
	}
	msgs, _ := Assemble(chain(user(text("p")), it, user(result("b", "2")), user(result("a", "1"))).Items(), Options{Model: "m"})
	if len(msgs) != 3 || len(msgs[1].Blocks) != len(raws) {
		t.Fatalf("got\n%s", show(msgs))
	}
	for i, b := range msgs[1].Blocks {
		if string(b.Raw()) != raws[i] {
			t.Errorf("block %d: got %s, want %s", i, b.Raw(), raws[i])
		}
	}
}

// A paused response of which nothing is left once a prompt follows does not
// part the prompts before and after it, also for an Assembler that saw it.
func TestAssemblePausedThenPrompt(t *testing.T) {
	h := chain(user(text("p")), assistant(text("x")), user(text("q")))
	h.Append(assistant(block(t, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`)))
	var a Assembler
	first := a.Assemble(h.Items(), Options{})
	if got, want := show(first.Messages), "u \"p\"\na \"x\"\nu \"q\"\na server_tool_use\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	h.Append(user(text("r")))
	second := a.Assemble(h.Items(), Options{})
	if got, want := show(second.Messages), "u \"p\"\na \"x\"\nu \"q\" \"r\"\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	if got := show(first.Messages); !strings.HasSuffix(got, "server_tool_use\n") {
		t.Errorf("the first request changed:\n%s", got)
	}
}

func TestThinkingCut(t *testing.T) {
	h := chain(user(text("p")), assistant(message.NewThinking("t", "s"), use("a")), user(result("a", "1")))
	var a Assembler
	if a.Assemble(h.Items(), Options{Model: "m"}).ThinkingCut {
		t.Error("reported for the model's own thinking")
	}
	if !a.Assemble(h.Items(), Options{Model: "other"}).ThinkingCut {
		t.Error("not reported for another model")
	}
	h.Append(assistant(text("x")))
	if a.Assemble(h.Items(), Options{Model: "other"}).ThinkingCut {
		t.Error("reported after the tool loop has ended")
	}
}

func TestElide(t *testing.T) {
	long := strings.Repeat("x", 200)
	h := chain(
		user(text("p")), assistant(use("a"), use("b")),
		Item{Role: "user", Blocks: []message.Block{result("a", long), text("hook")}, UUID: "u1"},
		Item{Role: "user", Blocks: []message.Block{message.NewToolResult("b", message.TextContent(long), true)}, UUID: "u2"},
		Item{Role: "user", Blocks: []message.Block{result("c", "short")}, UUID: "u3"},
	)
	before := h.Items()
	var a Assembler
	old := show(a.Assemble(before, Options{}).Messages)
	size := Estimate(before)
	if n := h.Elide("u1", "u2", "u3", "nobody"); n != 3 {
		t.Errorf("Elide marked %d items, want 3", n)
	}
	if n := h.Elide("u1"); n != 0 {
		t.Errorf("a second Elide marked %d items", n)
	}
	want := "u \"p\"\na use:a use:b\nu res:a=\"" + ElidedOutput + "\" res!:b=\"" + ElidedOutput + "\" \"hook\"\n"
	if got := show(a.Assemble(h.Items(), Options{}).Messages); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if Estimate(h.Items()) >= size {
		t.Error("the estimate did not fall")
	}
	if got := show(a.Assemble(before, Options{}).Messages); got != old {
		t.Errorf("an earlier snapshot changed:\n%s", got)
	}
	if string(before[2].Blocks[0].Raw()) != string(h.Items()[2].Blocks[0].Raw()) {
		t.Error("the chain's own block was edited")
	}
}

func TestResetAndClone(t *testing.T) {
	h := chain(user(text("p")), assistant(text("x")))
	old := h.Items()
	c := h.Clone()
	h.Append(user(text("mine")))
	c.Append(user(text("theirs")))
	var a Assembler
	if got := show(a.Assemble(h.Items(), Options{}).Messages); !strings.Contains(got, "mine") {
		t.Error(got)
	}
	if got := show(a.Assemble(c.Items(), Options{}).Messages); !strings.Contains(got, "theirs") {
		t.Error(got)
	}
	h.Reset(Item{Role: "user", Text: new("summary"), Flags: Summary}, old[1])
	if h.Len() != 2 || len(old) != 2 {
		t.Errorf("lengths %d and %d", h.Len(), len(old))
	}
	if got, want := show(a.Assemble(h.Items(), Options{}).Messages), "u \"summary\"\na \"x\"\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// Whatever the chain is, the request is one that the API takes, and an
// Assembler that grew with the chain gives what a new one gives.
func TestAssembleAnyChain(t *testing.T) {
	conform.Covers(t, "L-7", "B-116", "B-113", "B-176")
	rapid.Check(t, func(t *rapid.T) {
		o := anyOptions(t)
		var h History
		var grown Assembler
		for range rapid.IntRange(0, 14).Draw(t, "items") {
			switch rapid.IntRange(0, 30).Draw(t, "op") {
			case 0:
				h.Elide("u1")
			case 1:
				h.Reset(h.Items()[h.Len()/2:]...)
			case 2:
				o = anyOptions(t)
			}
			h.Append(anyItem(t))
			got := grown.Assemble(h.Items(), o)
			if err := checkRequest(got, o.Tools); err != nil {
				t.Fatalf("%v in\n%s", err, show(got.Messages))
			}
			want := new(Assembler).Assemble(h.Items(), o)
			if !reflect.DeepEqual(show(got.Messages), show(want.Messages)) || !reflect.DeepEqual(got.Marks, want.Marks) || got.ThinkingCut != want.ThinkingCut {
				t.Fatalf("grown\n%s%v\nnew\n%s%v", show(got.Messages), got.Marks, show(want.Messages), want.Marks)
			}
		}
	})
}

// In a chain that grows as the loop lets it grow, each request is the start of
// every later one, and no request changes after it was handed out.
func TestAssemblePrefix(t *testing.T) {
	conform.Covers(t, "L-160", "L-182", "L-183")
	rapid.Check(t, func(t *rapid.T) {
		g := &grower{t: t, h: &History{}}
		o := Options{Model: "m", Tools: 3, System: []message.Block{text("system")}, Prelude: []message.Block{text("memory")}}
		var a Assembler
		var flat [][]byte
		var reqs []Request
		ask := func() {
			r := a.Assemble(g.h.Items(), o)
			if err := checkRequest(r, o.Tools); err != nil {
				t.Fatal(err)
			}
			reqs, flat = append(reqs, r), append(flat, flatten(r))
			if n := len(flat); n > 1 && !bytes.HasPrefix(flat[n-1], flat[n-2]) {
				t.Fatalf("request\n%sis not the start of\n%s", show(reqs[n-2].Messages), show(r.Messages))
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "prompts") {
			g.prompt()
			for again := true; again && len(reqs) < 40; {
				ask()
				again = g.response()
			}
		}
		for i, r := range reqs {
			if !bytes.Equal(flatten(r), flat[i]) {
				t.Fatalf("request %d changed after it was handed out", i)
			}
		}
	})
}

// flatten writes what a prompt cache compares.
func flatten(r Request) []byte {
	var buf bytes.Buffer
	for _, b := range r.System {
		buf.Write(b.Raw())
	}
	for i, m := range r.Messages {
		if i > 0 && r.Messages[i-1].Role == m.Role {
			panic("same role twice")
		}
		buf.WriteString("\n" + string(m.Role))
		for _, b := range m.Blocks {
			buf.Write(b.Raw())
		}
	}
	return buf.Bytes()
}

// Requests are read while the chain and its Assembler go on.
func TestAssembleConcurrentReaders(t *testing.T) {
	var h History
	var a Assembler
	done := make(chan struct{})
	readers := 0
	h.Append(user(text("p")))
	for i := range 60 {
		id := fmt.Sprint("c", i)
		r := a.Assemble(h.Items(), Options{Prelude: []message.Block{text("memory")}})
		items := h.Items()
		readers++
		go func() {
			defer func() { done <- struct{}{} }()
			flatten(r)
			Estimate(items)
			SafeCuts(items)
		}()
		if i%7 == 3 {
			h.Append(user(text("a prompt after a failed request")))
			continue
		}
		h.Append(assistant(use(id)))
		h.Append(user(result(id, "out")))
	}
	for range readers {
		<-done
	}
}

// FuzzAssemble reads a chain from JSON: a list of items with role, flags,
// model, id and blocks.
func FuzzAssemble(f *testing.F) {
	f.Add([]byte(`[{"r":"user","b":[{"type":"text","text":"p"}]},{"r":"assistant","m":"r","b":[{"type":"tool_use","id":"a","name":"x","input":{}}]}]`))
	for i, odd := range oddBlocks {
		next := oddBlocks[(i+7)%len(oddBlocks)]
		f.Add(fmt.Appendf(nil, `[{"r":"user","b":[%s]},{"r":"assistant","f":%d,"m":"r","b":[%s,%s]},{"r":"user","b":[%s,%s]},{"r":"assistant","m":"r","b":[%s]}]`, odd, i%32, odd, next, odd, next, next))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var in []struct {
			R string            `json:"r"`
			F Flags             `json:"f"`
			M string            `json:"m"`
			B []json.RawMessage `json:"b"`
		}
		if json.Unmarshal(data, &in) != nil {
			return
		}
		var h History
		var grown Assembler
		for _, i := range in {
			it := Item{Role: message.Role(i.R), Flags: i.F, MsgID: i.M, Model: i.M}
			for _, raw := range i.B {
				if b, err := message.ParseBlock(raw); err == nil {
					it.Blocks = append(it.Blocks, b)
				}
			}
			h.Append(it)
			r := grown.Assemble(h.Items(), Options{Tools: 1})
			if err := checkRequest(r, 1); err != nil {
				t.Fatalf("%v in\n%s", err, show(r.Messages))
			}
		}
		want := new(Assembler).Assemble(h.Items(), Options{Tools: 1})
		got := grown.Assemble(h.Items(), Options{Tools: 1})
		if !slices.EqualFunc(got.Messages, want.Messages, sameMessage) || !slices.Equal(got.Marks, want.Marks) {
			t.Fatalf("grown\n%snew\n%s", show(got.Messages), show(want.Messages))
		}
		for _, cut := range SafeCuts(h.Items()) {
			if cut < 1 || cut > h.Len() {
				t.Fatalf("cut at %d of %d", cut, h.Len())
			}
		}
	})
}

func BenchmarkAssemble(b *testing.B) {
	for _, turns := range []int{10, 100, 1000} {
		h := turnsOf(turns)
		o := Options{Model: "m", Tools: 20, System: []message.Block{text(strings.Repeat("s", 20000))}, Prelude: []message.Block{text("memory")}}
		b.Run(fmt.Sprintf("next/%d", turns), func(b *testing.B) {
			var a Assembler
			a.Assemble(h.Items(), o)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%20 == 0 { // keep the chain near its length
					b.StopTimer()
					h = turnsOf(turns)
					a = Assembler{}
					a.Assemble(h.Items(), o)
					b.StartTimer()
				}
				id := fmt.Sprint("n", i)
				h.Append(assistant(use(id)))
				h.Append(user(result(id, "output of the call")))
				a.Assemble(h.Items(), o)
			}
		})
		b.Run(fmt.Sprintf("first/%d", turns), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				new(Assembler).Assemble(h.Items(), o)
			}
		})
	}
}

func turnsOf(n int) *History {
	h := chain(user(text("the prompt")))
	for i := range n {
		id := fmt.Sprint("c", i)
		h.Append(assistant(text("I look at it."), use(id)))
		h.Append(user(result(id, strings.Repeat("line of output\n", 40))))
	}
	return h
}
