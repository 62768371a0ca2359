package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

func marked(t testing.TB, s, ttl string) message.Block {
	t.Helper()
	if ttl == "" {
		return block(t, `{"type":"text","text":"`+s+`","cache_control":{"type":"ephemeral"}}`)
	}
	return block(t, `{"type":"text","text":"`+s+`","cache_control":{"type":"ephemeral","ttl":"`+ttl+`"}}`)
}

func showMarks(ms []Mark) string {
	var out []string
	for _, m := range ms {
		where := [...]string{"tool", "system", "message"}[m.Where]
		switch m.Where {
		case InTools:
			where += fmt.Sprint(" ", m.Index)
		case InSystem:
			where += fmt.Sprint(" ", m.Block)
		case InMessages:
			where += fmt.Sprintf(" %d.%d", m.Index, m.Block)
		}
		out = append(out, where+" "+m.TTL)
	}
	return strings.Join(out, ", ")
}

func TestMarks(t *testing.T) {
	system := []message.Block{text("one"), text("two")}
	rounds := func(first ...message.Block) []Item { // three tool rounds
		items := []Item{user(first...)}
		for _, id := range []string{"a", "b", "c"} {
			items = append(items, assistant(use(id)), user(result(id, "out")))
		}
		return items
	}
	m5, m1h := func(s string) message.Block { return marked(t, s, "") }, func(s string) message.Block { return marked(t, s, "1h") }

	tests := []struct {
		name  string
		ids   []string
		items []Item
		opts  Options
		want  string
	}{
		{"without configuration", []string{"L-182", "L-184"}, rounds(text("p")), Options{System: system, Tools: 3}, "system 1 5m, message 4.0 5m, message 6.0 5m"},
		{"with project context", []string{"L-182"}, rounds(text("p")), Options{System: system, Prelude: []message.Block{text("m"), text("n")}}, "system 1 5m, message 0.1 5m, message 4.0 5m, message 6.0 5m"},
		{"no system prompt", nil, rounds(text("p")), Options{Tools: 3}, "tool 2 5m, message 4.0 5m, message 6.0 5m"},
		{"one hour", []string{"L-184"}, rounds(text("p")), Options{System: system, Cache: Cache1h}, "system 1 1h, message 4.0 1h, message 6.0 1h"},
		{"off", []string{"L-184"}, rounds(m1h("p")), Options{System: system, Cache: CacheOff}, ""},
		{"forced to five minutes", []string{"L-184"}, rounds(m1h("p")), Options{System: system, Cache: CacheForce5m}, "system 1 5m, message 0.0 5m, message 4.0 5m, message 6.0 5m"},
		{"one of the caller's", []string{"B-176"}, rounds(m5("p")), Options{System: system}, "system 1 5m, message 0.0 5m, message 4.0 5m, message 6.0 5m"},
		{"three of the caller's", []string{"B-176"}, rounds(m5("p"), m5("q"), m5("r")), Options{System: system}, "message 0.0 5m, message 0.1 5m, message 0.2 5m, message 6.0 5m"},
		{"five of the caller's: the last four stay", []string{"B-176"}, rounds(m5("p"), m5("q"), m5("r"), m5("s"), m5("t")), Options{System: system}, "message 0.1 5m, message 0.2 5m, message 0.3 5m, message 0.4 5m"},
		{"the caller's in the system prompt count", []string{"B-176"}, rounds(text("p")), Options{System: []message.Block{m1h("one"), m5("two"), text("three")}}, "system 0 1h, system 1 5m, message 4.0 5m, message 6.0 5m"},
		{"the caller's hour lifts what stands before it", []string{"B-176", "B-188"}, rounds(m5("p"), m1h("q")), Options{System: system}, "message 0.0 1h, message 0.1 1h, message 4.0 5m, message 6.0 5m"},
		{"ours before the caller's hour", []string{"B-176", "B-188"}, rounds(m1h("p")), Options{System: system}, "system 1 1h, message 0.0 1h, message 4.0 5m, message 6.0 5m"},
		{"our hour behind the caller's five minutes", []string{"B-176", "B-188"}, rounds(m5("p")), Options{System: system, Cache: Cache1h}, "system 1 1h, message 0.0 5m, message 4.0 5m, message 6.0 5m"},
		{"the caller's where ours would be", []string{"B-176"}, []Item{user(text("x"), m1h("p"))}, Options{System: system}, "system 1 1h, message 0.1 1h"},
		{"not on empty or thinking blocks", []string{"B-176"}, []Item{user(m5("p"), m5("")), assistant(block(t, oddBlocks[14]), text("x")), user(text("q"))}, Options{}, "message 0.0 5m, message 2.0 5m"},
		{"not on what is inside a result", []string{"B-176"}, []Item{user(text("p")), assistant(use("a")), user(message.NewToolResult("a", message.BlockContent(m1h("r")), false))}, Options{}, "message 0.0 5m, message 2.0 5m"},
		{"pause_turn", nil, []Item{user(text("p")), assistant(text("x"))}, Options{}, "message 0.0 5m"},
		{"nothing to send", nil, nil, Options{Prelude: []message.Block{text("m")}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.ids) > 0 {
				conform.Covers(t, tt.ids...)
			}
			r := new(Assembler).Assemble(chain(tt.items...).Items(), tt.opts)
			if got := showMarks(r.Marks); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if err := checkRequest(r, tt.opts.Tools); err != nil {
				t.Error(err)
			}
		})
	}
}

// With many marks of both life times, the last four of the caller's are in the
// request, and none lives shorter than asked.
func TestCallersMarksFirst(t *testing.T) {
	conform.Covers(t, "B-176", "B-188")
	rapid.Check(t, func(t *rapid.T) {
		var asked []Mark
		var items []Item
		for i := range rapid.IntRange(1, 8).Draw(t, "messages") {
			it := user()
			for j := range rapid.IntRange(1, 3).Draw(t, "blocks") {
				ttl := rapid.SampledFrom([]string{"", "5m", "1h"}).Draw(t, "ttl")
				raw := `{"type":"text","text":"x"}`
				if ttl != "" {
					raw = `{"cache_control":{"ttl":"` + ttl + `","type":"ephemeral"},"type":"text","text":"x"}`
					asked = append(asked, Mark{InMessages, 2 * i, j, ttl})
				}
				b, err := message.ParseBlock([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				it.Blocks = append(it.Blocks, b)
			}
			items = append(items, it, assistant(text("ok")))
		}
		o := Options{Cache: CacheMode(rapid.IntRange(0, 1).Draw(t, "mode")), System: []message.Block{message.NewText("s")}}
		r := new(Assembler).Assemble(items, o)
		if err := checkRequest(r, 0); err != nil {
			t.Fatal(err)
		}
		if len(r.Marks) < min(4, len(asked)+1) {
			t.Fatalf("places left empty: %v", r.Marks)
		}
		for _, want := range asked[max(0, len(asked)-4):] {
			at, found := slices.BinarySearchFunc(r.Marks, want, comparePlace)
			if !found || (want.TTL == "1h" && r.Marks[at].TTL != "1h") {
				t.Fatalf("asked %v, got %v", asked, r.Marks)
			}
		}
	})
}
