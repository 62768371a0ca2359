package history

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

func block(t testing.TB, raw string) message.Block {
	t.Helper()
	b, err := message.ParseBlock([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(s string) message.Block { return message.NewText(s) }
func use(id string) message.Block { return message.NewToolUse(id, "Bash", []byte(`{"command":"x"}`)) }

func result(id, out string) message.Block {
	return message.NewToolResult(id, message.TextContent(out), false)
}
func user(bs ...message.Block) Item { return Item{Role: message.RoleUser, Blocks: bs} }

func assistant(bs ...message.Block) Item {
	return Item{Role: message.RoleAssistant, Blocks: bs, Model: "m"}
}

func chain(items ...Item) *History {
	h := &History{}
	h.Reset(items...)
	return h
}

// oddBlocks are blocks that a chain may hold and a request must not, or that
// have a rule of their own.
var oddBlocks = []string{
	`{"type":"text","text":""}`,
	`{"type":"text","text":" \n\t"}`,
	`{"type":"text","text":"\u00a0\u2028"}`,
	`{"type":"text","text":5}`,
	`{"type":"text"}`,
	`{"type":"text","text":"marked","cache_control":{"type":"ephemeral"}}`,
	`{"type":"text","text":"hour","cache_control":{"type":"ephemeral","ttl":"1h"}}`,
	`{"type":"text","cache_\u0063ontrol":{"ttl":"1h"},"text":"hidden"}`,
	`{"type":"text","text":"none","cache_control":null}`,
	`{"type":"text","text":"","cache_control":{"type":"ephemeral"}}`,
	`{"type":"thinking","thinking":"t","signature":"s"}`,
	`{"type":"thinking","thinking":"","signature":"s"}`,
	`{"type":"thinking","thinking":"t","signature":""}`,
	`{"type":"thinking","thinking":"t"}`,
	`{"type":"thinking","thinking":"t","signature":"s","cache_control":{"type":"ephemeral"}}`,
	`{"type":"redacted_thinking","data":"d"}`,
	`{"type":"redacted_thinking"}`,
	`{"type":"tool_use","id":"","name":"x","input":{}}`,
	`{"type":"tool_use","id":"c1","input":{}}`,
	`{"type":"tool_use","id":"c1","name":"x","input":"{"}`,
	`{"type":"tool_use","id":"\u0063\u0031","name":"x","input":{}}`,
	`{"type":"tool_use","id":"c2","name":"x","input":{"cache_control":1,"a":"\"}"}}`,
	`{"type":"tool_result","tool_use_id":"c1"}`,
	`{"type":"tool_result","tool_use_id":"c1","content":""}`,
	`{"type":"tool_result","tool_use_id":"c2","content":[],"is_error":true}`,
	`{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":""}],"is_error":true}`,
	`{"type":"tool_result","tool_use_id":"c3","content":[{"type":"text","text":""},{"type":"image","source":{}},{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`,
	`{"type":"tool_result","tool_use_id":"c3","content":{"a":1}}`,
	`{"type":"tool_result","tool_use_id":"c3","content":["x"]}`,
	`{"type":"tool_result","tool_use_id":"c3","content":"","cache_control":{"type":"ephemeral","ttl":"1h"}}`,
	`{"type":"tool_result","content":"x"}`,
	`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`,
	`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`,
	`{"type":"mcp_tool_use","id":"s2","name":"x","input":{}}`,
	`{"type":"mcp_tool_result","tool_use_id":"s2","content":[]}`,
	`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`,
	`{"type":"document","source":{"type":"base64","data":"AAAA"}}`,
	`{"type":"brand_new","x":[1,2,{"y":"z"}]}`,
}

// anyItem draws an item without any regard for what a chain should be.
func anyItem(t *rapid.T) Item {
	it := Item{
		Role:  rapid.SampledFrom([]message.Role{"user", "assistant", "user", "assistant", "system", ""}).Draw(t, "role"),
		Model: rapid.SampledFrom([]string{"m", "m-20250929", "other", ""}).Draw(t, "model"),
		MsgID: rapid.SampledFrom([]string{"", "", "r1", "r2"}).Draw(t, "msgid"),
		Flags: Flags(rapid.SampledFrom([]int{0, 0, 0, 0, int(Meta), int(Notice), int(Aborted), int(Summary), int(Elided)}).Draw(t, "flags")),
		UUID:  rapid.SampledFrom([]string{"", "u1", "u2"}).Draw(t, "uuid"),
	}
	if rapid.IntRange(0, 9).Draw(t, "asText") == 0 {
		it.Text = new(rapid.SampledFrom([]string{"", " ", "prompt"}).Draw(t, "text"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		it.Blocks = append(it.Blocks, anyBlock(t))
	}
	return it
}

func anyBlock(t *rapid.T) message.Block {
	id := "c" + strconv.Itoa(rapid.IntRange(1, 5).Draw(t, "id"))
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return text("words")
	case 1:
		return use(id)
	case 2, 3:
		return result(id, "out")
	}
	b, err := message.ParseBlock([]byte(rapid.SampledFrom(oddBlocks).Draw(t, "odd")))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func anyOptions(t *rapid.T) Options {
	o := Options{
		Model: rapid.SampledFrom([]string{"m", "m", "other", ""}).Draw(t, "omodel"),
		Cache: CacheMode(rapid.IntRange(0, 3).Draw(t, "cache")),
		Tools: rapid.IntRange(0, 2).Draw(t, "tools"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "system") {
		o.System = append(o.System, anyBlock(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "prelude") {
		o.Prelude = append(o.Prelude, anyBlock(t))
	}
	return o
}

// grower appends to a chain as the loop does. Each request method call is a
// moment at which a request is made.
type grower struct {
	t *rapid.T
	h *History
	n int
}

func (g *grower) id(kind string) string {
	g.n++
	return fmt.Sprintf("%s%d", kind, g.n)
}

func (g *grower) prompt() {
	g.h.Append(Item{Role: message.RoleUser, Blocks: []message.Block{text(g.id("prompt "))}, UUID: g.id("u")})
}

// response appends one response, in one item or one a block, and the results
// of its calls, in any order of completion and perhaps with a prompt behind.
// It reports whether the model is to be asked again.
func (g *grower) response() bool {
	var bs []message.Block
	var calls []string
	if rapid.Bool().Draw(g.t, "thinks") {
		bs = append(bs, message.NewThinking("t", "s"))
	}
	if rapid.Bool().Draw(g.t, "talks") {
		bs = append(bs, text(g.id("text ")))
	}
	for range rapid.IntRange(0, 3).Draw(g.t, "calls") {
		calls = append(calls, g.id("c"))
		bs = append(bs, use(calls[len(calls)-1]))
	}
	msgID, flags := g.id("r"), Flags(0)
	if len(calls) == 0 && rapid.IntRange(0, 4).Draw(g.t, "aborted") == 0 {
		flags = Aborted
	}
	if rapid.IntRange(0, 5).Draw(g.t, "notice") == 0 {
		g.h.Append(Item{Role: "assistant", Blocks: []message.Block{text("API Error")}, Flags: Notice, UUID: g.id("u")})
	}
	for i := 0; i < len(bs); {
		n := rapid.IntRange(1, len(bs)-i).Draw(g.t, "parts")
		g.h.Append(Item{Role: "assistant", Blocks: bs[i : i+n], Model: "m", MsgID: msgID, UUID: g.id("u"), Flags: flags})
		i += n
	}
	for _, c := range rapid.Permutation(calls).Draw(g.t, "order") {
		g.h.Append(Item{Role: message.RoleUser, Blocks: []message.Block{result(c, "out "+c)}, UUID: g.id("u")})
	}
	if len(calls) > 0 && rapid.IntRange(0, 3).Draw(g.t, "absorbed") == 0 {
		g.prompt()
	}
	return len(calls) > 0
}
