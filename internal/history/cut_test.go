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

func TestSafeCuts(t *testing.T) {
	msg := func(id string, bs ...message.Block) Item { it := assistant(bs...); it.MsgID = id; return it }
	tests := []struct {
		name  string
		ids   []string
		items []Item
		want  []int
	}{
		{"empty", nil, nil, nil},
		{"talk", nil, []Item{user(text("p")), assistant(text("x")), user(text("q"))}, []int{1, 2, 3}},
		{"a call and its result stay together", []string{"B-136"}, []Item{user(text("p")), assistant(use("a")), user(result("a", "1")), assistant(text("x"))}, []int{1, 3, 4}},
		{"all results of a response", []string{"B-136"}, []Item{user(text("p")), assistant(use("a"), use("b")), user(result("b", "2")), user(result("a", "1")), user(text("q"))}, []int{1, 4, 5}},
		{"the parts of a response", nil, []Item{user(text("p")), assistant(text("x")), assistant(use("a")), user(result("a", "1"))}, []int{1, 4}},
		{"a response with results between its parts", nil, []Item{user(text("p")), msg("r", use("a")), user(result("a", "1")), msg("r", use("b")), user(result("b", "2"))}, []int{1, 5}},
		{"an open call", []string{"B-138"}, []Item{user(text("p")), assistant(use("a"), use("b")), user(result("a", "1"))}, []int{1}},
		{"a call that was never answered", nil, []Item{user(text("p")), assistant(use("a")), user(text("q")), assistant(text("x"))}, []int{1, 2, 3, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.ids) > 0 {
				conform.Covers(t, tt.ids...)
			}
			if got := SafeCuts(tt.items); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// At a safe cut both sides have all pairs whole: what is repaired or dropped
// in the two requests is what is repaired or dropped in the whole one. And
// enough places are safe: without holes, before each prompt.
func TestSafeCutsKeepPairs(t *testing.T) {
	conform.Covers(t, "B-136")
	rapid.Check(t, func(t *rapid.T) {
		g := &grower{t: t, h: &History{}}
		var starts []int
		for range rapid.IntRange(1, 4).Draw(t, "prompts") {
			starts = append(starts, g.h.Len())
			g.prompt()
			for n := 0; g.response() && n < 5; n++ {
			}
		}
		// Holes as a crash leaves them.
		items := slices.Clone(g.h.Items())
		holes := rapid.IntRange(0, 3).Draw(t, "holes")
		for range holes {
			i := rapid.IntRange(0, len(items)-1).Draw(t, "hole")
			if bs := items[i].Blocks; len(bs) > 0 && bs[0].Type() == message.TypeToolResult {
				items[i] = Item{}
			}
		}
		whole := pairs(items)
		cuts := SafeCuts(items)
		for _, i := range cuts {
			if i < 1 || i > len(items) {
				t.Fatalf("cut %d of %d", i, len(items))
			}
			if got := append(pairs(items[:i]), pairs(items[i:])...); !slices.Equal(got, whole) {
				t.Fatalf("cut at %d:\n%v\nwhole:\n%v", i, got, whole)
			}
		}
		for _, s := range starts[1:] {
			if holes == 0 && !slices.Contains(cuts, s) {
				t.Fatalf("no cut before the prompt at %d: %v", s, cuts)
			}
		}
	})
}

// pairs lists the calls of the request for items with the results they have.
func pairs(items []Item) []string {
	msgs, _ := Assemble(items, Options{})
	var out []string
	for _, m := range msgs {
		for _, b := range m.Blocks {
			if r, ok := b.ToolResult(); ok {
				out = append(out, r.ToolUseID+"="+r.Content.Text())
			}
		}
	}
	return out
}

func TestEstimate(t *testing.T) {
	tests := []struct {
		name string
		item Item
		want int64
	}{
		{"text", user(text(strings.Repeat("x", 1000))), (1000 + 26 + 3) / 4},
		{"image", user(message.NewImage("image/png", "iVBORw0KGgoA"+strings.Repeat("A", 100000))), 1600},
		{"image in a result", user(message.NewToolResult("a", message.BlockContent(message.NewImage("image/png", "iVBORw0KGgoA"+strings.Repeat("A", 100000))), false)), 1600 + 13},
		{"small document", user(block(t, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`)), 3000},
		{"large document", user(block(t, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"`+strings.Repeat("A", 320000-84)+`"}}`)), 10000},
		{"text document", user(block(t, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"`+strings.Repeat("A", 4000-82)+`"}}`)), 1000},
		{"notice", Item{Role: "assistant", Blocks: []message.Block{text("API Error")}, Flags: Notice}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Estimate(chain(tt.item).Items())
			if got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
			if plain := Estimate([]Item{tt.item}); plain != got {
				t.Errorf("without a History %d", plain)
			}
		})
	}
	if a, b := Estimate(turnsOf(10).Items()), Estimate(turnsOf(20).Items()); a >= b {
		t.Error(fmt.Sprint("ten turns ", a, ", twenty ", b))
	}
}
