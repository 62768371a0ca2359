package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// bodyBytes returns the whole body.
func bodyBytes(r *model.Request, extra []member) ([]byte, error) {
	p, err := body(r, extra)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(iotest.HalfReader(p.reader()))
	if err == nil && int64(len(raw)) != p.size() {
		err = fmt.Errorf("%d bytes read, %d announced", len(raw), p.size())
	}
	return raw, err
}

func TestBody(t *testing.T) {
	tools := []json.RawMessage{json.RawMessage(`{"name":"A","input_schema":{"type":"object"}}`), json.RawMessage(`{}`)}
	user, reply := message.NewText("hi <&>"), message.NewThinking("t", "s")
	for _, c := range []struct {
		name string
		r    model.Request
		cfg  string
		want string
	}{
		{
			"least",
			model.Request{Model: "m", MaxTokens: 7, Messages: []model.Message{{Role: "user", Blocks: []message.Block{user}}}},
			"",
			`{"model":"m","max_tokens":7,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi <&>"}]}]}`,
		},
		{"all", model.Request{
			Model: `m"x`, MaxTokens: 7, System: []message.Block{message.NewText("sys")}, Tools: tools,
			Messages: []model.Message{{Role: "user", Blocks: []message.Block{user}}, {Role: "assistant", Blocks: []message.Block{reply, user}}},
			Thinking: json.RawMessage(`{"type":"adaptive"}`), OutputConfig: json.RawMessage(`{"effort":"low"}`),
			ToolChoice: json.RawMessage(`{"type":"auto"}`), Metadata: json.RawMessage(`{"user_id":"u"}`),
			Marks: []model.Mark{
				{Where: model.InTools, Index: 1, TTL: "1h"},
				{Where: model.InSystem, TTL: "5m"},
				{Where: model.InMessages, Index: 1, Block: 1},
			},
		}, "", `{"model":"m\"x","max_tokens":7,"stream":true,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},"tool_choice":{"type":"auto"},"metadata":{"user_id":"u"},` +
			`"tools":[{"name":"A","input_schema":{"type":"object"}},{"cache_control":{"type":"ephemeral","ttl":"1h"}}],` +
			`"system":[{"type":"text","text":"sys","cache_control":{"type":"ephemeral"}}],` +
			`"messages":[{"role":"user","content":[{"type":"text","text":"hi <&>"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"hi <&>","cache_control":{"type":"ephemeral"}}]}]}`},
		{
			"extra wins, the request's own over the client's",
			model.Request{Model: "m", MaxTokens: 7, Extra: json.RawMessage(`{"b":2,"max_tokens":9}`)},
			`{"max_tokens":8,"b":1,"a":{"x":[1.0]},"metadata":null}`,
			`{"model":"m","stream":true,"messages":[],"a":{"x":[1.0]},"b":2,"max_tokens":9,"metadata":null}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var extra []member
			if c.cfg != "" {
				var err error
				if extra, err = membersOf([]byte(c.cfg)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := bodyBytes(&c.r, extra)
			if err != nil || string(got) != c.want {
				t.Errorf("%s\nwant %s\n%v", got, c.want, err)
			}
			if !json.Valid(got) {
				t.Error("not JSON")
			}
		})
	}
}

func TestMarkOnAMarkedBlock(t *testing.T) {
	conform.Covers(t, "B-176")
	own, err := message.ParseBlock([]byte(`{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}`))
	if err != nil {
		t.Fatal(err)
	}
	says := message.NewText(`the words "cache_control" alone`)
	r := &model.Request{
		Messages: []model.Message{{Role: "user", Blocks: []message.Block{own, says}}},
		Marks:    []model.Mark{{Where: model.InMessages}, {Where: model.InMessages, Block: 1}},
	}
	got, err := bodyBytes(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), `"cache_control":`); n != 2 || !strings.Contains(string(got), string(own.Raw())) {
		t.Errorf("%d marks in %s", n, got)
	}
}

func TestBodyRefuses(t *testing.T) {
	one := []model.Message{{Role: "user", Blocks: []message.Block{message.NewText("x")}}}
	for name, r := range map[string]model.Request{
		"mark outside the messages": {Messages: one, Marks: []model.Mark{{Where: model.InMessages, Index: 1}}},
		"mark outside the blocks":   {Messages: one, Marks: []model.Mark{{Where: model.InMessages, Block: 1}}},
		"mark on no tool":           {Messages: one, Marks: []model.Mark{{Where: model.InTools}}},
		"mark on no system prompt":  {Messages: one, Marks: []model.Mark{{Where: model.InSystem}}},
		"negative":                  {Messages: one, Marks: []model.Mark{{Where: model.InMessages, Index: -1}}},
		"unknown life time":         {Messages: one, Marks: []model.Mark{{Where: model.InMessages, TTL: "2h"}}},
		"extra is no object":        {Messages: one, Extra: json.RawMessage(`[1]`)},
		"extra is two objects":      {Messages: one, Extra: json.RawMessage(`{}{}`)},
	} {
		if got, err := bodyBytes(&r, nil); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSpliceProperty holds that a mark changes nothing of a block but adds
// itself: without cache_control the body is that of an unmarked request.
func TestSpliceProperty(t *testing.T) {
	conform.Covers(t, "B-176")
	rapid.Check(t, func(t *rapid.T) {
		r := &model.Request{Model: "m", MaxTokens: 1}
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			m := model.Message{Role: "user"}
			for range rapid.IntRange(1, 4).Draw(t, "blocks") {
				m.Blocks = append(m.Blocks, message.NewText(rapid.String().Draw(t, "text")))
			}
			r.Messages = append(r.Messages, m)
		}
		plain, err := bodyBytes(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 4).Draw(t, "marks") {
			i := rapid.IntRange(0, len(r.Messages)-1).Draw(t, "message")
			r.Marks = append(r.Marks, model.Mark{
				Where: model.InMessages, Index: i, TTL: rapid.SampledFrom([]string{"5m", "1h"}).Draw(t, "ttl"),
				Block: rapid.IntRange(0, len(r.Messages[i].Blocks)-1).Draw(t, "block"),
			})
		}
		got, err := bodyBytes(r, nil)
		if err != nil || !json.Valid(got) {
			t.Fatalf("%s %v", got, err)
		}
		bare := strings.NewReplacer(","+mark5m, "", ","+mark1h, "").Replace(string(got))
		if bare != string(plain) {
			t.Fatalf("%s\nwas %s", bare, plain)
		}
	})
}

// history returns a request of n messages and about size bytes.
func history(n, size int) *model.Request {
	r := &model.Request{Model: "claude-test", MaxTokens: 32000, System: []message.Block{message.NewText(strings.Repeat("s", 8000))}}
	for i := range n {
		m := model.Message{Role: message.RoleUser, Blocks: []message.Block{message.NewToolResult(fmt.Sprint("tu_", i), message.TextContent(strings.Repeat("r", size/n)), false)}}
		if i%2 == 1 {
			m = model.Message{Role: message.RoleAssistant, Blocks: []message.Block{message.NewText(strings.Repeat("w", size/n/2)), message.NewToolUse(fmt.Sprint("tu_", i), "Bash", json.RawMessage(`{"command":"`+strings.Repeat("c", size/n/2)+`"}`))}}
		}
		r.Messages = append(r.Messages, m)
	}
	r.Marks = []model.Mark{
		{Where: model.InSystem, TTL: "1h"}, {Where: model.InMessages, Index: n - 3, TTL: "5m"}, {Where: model.InMessages, Index: n - 1, TTL: "5m"},
	}
	return r
}

func BenchmarkBody(b *testing.B) {
	for _, c := range []struct {
		name           string
		messages, size int
	}{{"500 messages", 500, 370_000}, {"1000 turns", 2000, 1_500_000}} {
		b.Run(c.name, func(b *testing.B) {
			r := history(c.messages, c.size)
			b.ReportAllocs()
			for b.Loop() {
				p, err := body(r, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(p.size())
			}
		})
	}
}
