package message

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestBlocks(t *testing.T) {
	conform.Covers(t, "M-103", "M-106", "W-233")
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		b    Block
		want string
	}{
		{NewText("a<b"), `{"type":"text","text":"a<b"}`},
		{NewThinking("hm", "s=="), `{"type":"thinking","thinking":"hm","signature":"s=="}`},
		{NewThinking("", "s=="), `{"type":"thinking","thinking":"","signature":"s=="}`},
		{NewThinking("", ""), `{"type":"thinking","thinking":"","signature":""}`},
		{NewRedactedThinking("d=="), `{"type":"redacted_thinking","data":"d=="}`},
		{NewToolUse("t1", "Bash", raw(` {"b": 1, "a":2.0} `)), `{"type":"tool_use","id":"t1","name":"Bash","input":{"b":1,"a":2.0}}`},
		{NewToolUse("t1", "Bash", nil), `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`},
		{NewToolUse("t1", "Bash", raw(`{"a":`)), `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`},
		{NewToolUse("t1", "Bash", raw(`[1]`)), `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`},
		{NewToolUse("t1", "Bash", raw(`{} {}`)), `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`},
		{NewToolResult("t1", TextContent(""), false), `{"type":"tool_result","tool_use_id":"t1","content":""}`},
		{NewToolResult("t1", Content{}, true), `{"type":"tool_result","tool_use_id":"t1","is_error":true}`},
		{NewToolResult("t1", BlockContent(), false), `{"type":"tool_result","tool_use_id":"t1","content":[]}`},
		{
			NewToolResult("t1", BlockContent(NewText("x"), Block{}, NewText("y")), false),
			`{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`,
		},
		{NewImage("image/png", "iV=="), `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iV=="}}`},
	} {
		if got := string(c.b.Raw()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		back, err := ParseBlock(c.b.Raw())
		if err != nil || !reflect.DeepEqual(back, c.b) {
			t.Errorf("%s: parsed %+v, %v", c.want, back, err)
		}
		if j, err := json.Marshal(c.b); err != nil || !sameJSON(t, string(j), c.want) {
			t.Errorf("%s: encoding/json gives %s, %v", c.want, j, err)
		}
	}

	if u, ok := NewToolUse("t", "N", raw(`{"a":1}`)).ToolUse(); !ok || u.ID != "t" || u.Name != "N" || string(u.Input) != `{"a":1}` {
		t.Errorf("ToolUse: %+v, %v", u, ok)
	}
	if r, ok := NewToolResult("t", TextContent("x"), true).ToolResult(); !ok || r.ToolUseID != "t" || r.Content.Text() != "x" || !r.IsError {
		t.Errorf("ToolResult: %+v, %v", r, ok)
	}
	if r, ok := NewToolResult("t", Content{}, false).ToolResult(); !ok || !r.Content.IsZero() || r.IsError {
		t.Errorf("ToolResult: %+v, %v", r, ok)
	}
	if th, ok := NewThinking("", "s").Thinking(); !ok || th != (Thinking{"", "s"}) {
		t.Errorf("Thinking: %+v, %v", th, ok)
	}
	if i, ok := NewImage("m", "d").Image(); !ok || i.Source != (ImageSource{Type: "base64", MediaType: "m", Data: "d"}) {
		t.Errorf("Image: %+v, %v", i, ok)
	}
}

// TestStrangeBlocks: no type and no shape makes an accessor fail otherwise than
// by saying no.
func TestStrangeBlocks(t *testing.T) {
	conform.Covers(t, "M-107")
	for _, raw := range []string{
		`{"type":"text"}`, `{"type":"text","text":7}`, `{"type":"tool_use","id":7}`, `{"type":"tool_result","content":{}}`,
		`{"type":"tool_result","content":[1]}`, `{"type":"thinking","thinking":[]}`, `{"type":"image","source":"x"}`,
		`{"type":"hologram","x":{"b":1,"a":[2.50]},"text":"no"}`, `{"text":"no","type":"server_tool_use","id":"s","input":{}}`,
		`{"type":"text","Text":"no"}`,
	} {
		b, err := ParseBlock([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if string(b.Raw()) != raw {
			t.Errorf("%s became %s", raw, b.Raw())
		}
		_, isUse := b.ToolUse()
		_, isResult := b.ToolResult()
		_, isThinking := b.Thinking()
		_, isImage := b.Image()
		if b.Text() != "" || isUse || isResult || isThinking || isImage {
			t.Errorf("%s reads as %q %v %v %v %v", raw, b.Text(), isUse, isResult, isThinking, isImage)
		}
	}
	for _, raw := range []string{``, `null`, `"x"`, `[]`, `{}`, `{"type":""}`, `{"type":null}`, `{"Type":"text"}`, `{"type":"text"`} {
		if b, err := ParseBlock([]byte(raw)); err == nil || !b.IsZero() {
			t.Errorf("ParseBlock(%s) = %+v, %v", raw, b, err)
		}
	}
	if _, err := json.Marshal(Block{}); err == nil {
		t.Error("the zero Block was encoded")
	}
	var b Block
	if b.Text() != "" || b.Type() != "" || b.Raw() != nil || !b.IsZero() {
		t.Errorf("zero Block: %+v", b)
	}
}

func TestContent(t *testing.T) {
	for _, c := range []struct {
		c      Content
		json   string
		text   string
		blocks int
	}{
		{Content{}, `null`, "", 0},
		{TextContent(""), `""`, "", 0},
		{TextContent("a\u2028"), `"a\u2028"`, "a\u2028", 1},
		{BlockContent(), `[]`, "", 0},
		{BlockContent(Block{}), `[]`, "", 0},
		{BlockContent(NewText("a"), NewThinking("t", "s"), NewText("b")), `[{"type":"text","text":"a"},{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"b"}]`, "ab", 3},
	} {
		j, err := c.c.MarshalJSON()
		if err != nil || string(j) != c.json {
			t.Errorf("got %s, %v, want %s", j, err, c.json)
		}
		if c.c.Text() != c.text || len(c.c.Blocks()) != c.blocks {
			t.Errorf("%s: text %q, %d blocks", c.json, c.c.Text(), len(c.c.Blocks()))
		}
		var back Content
		if err := json.Unmarshal(j, &back); err != nil || !reflect.DeepEqual(back, c.c) {
			t.Errorf("%s: read as %+v, %v", c.json, back, err)
		}
	}
	kept := TextContent("kept")
	for _, raw := range []string{``, `7`, `{}`, `[{}]`, `["a"]`, `[null]`, `[`} {
		if err := kept.UnmarshalJSON([]byte(raw)); err == nil || kept.Text() != "kept" {
			t.Errorf("UnmarshalJSON(%s): %v, left %+v", raw, err, kept)
		}
	}
	// The list given to BlockContent is not written to.
	list := []Block{NewText("a"), {}, NewText("b")}
	BlockContent(list...)
	if !list[1].IsZero() || list[2].Text() != "b" {
		t.Errorf("BlockContent changed its arguments: %+v", list)
	}
}

// genBlock draws blocks of known and unknown types.
func genBlock() *rapid.Generator[Block] {
	text := rapid.String()
	return rapid.Custom(func(t *rapid.T) Block {
		switch rapid.IntRange(0, 5).Draw(t, "block") {
		case 0:
			return NewText(text.Draw(t, "text"))
		case 1:
			return NewThinking(text.Draw(t, "thinking"), text.Draw(t, "signature"))
		case 2:
			return NewToolUse(text.Draw(t, "id"), text.Draw(t, "name"), json.RawMessage(genObject(2).Draw(t, "input")))
		case 3:
			return NewToolResult(text.Draw(t, "id"), TextContent(text.Draw(t, "content")), rapid.Bool().Draw(t, "error"))
		case 4:
			return NewToolResult(text.Draw(t, "id"), BlockContent(NewText(text.Draw(t, "content"))), false)
		}
		b, err := ParseBlock([]byte(`{"x":` + genJSON(2).Draw(t, "x") + `,"type":"odd"}`))
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// TestBlocksReadBack: whatever strings a block is made of, it is canonical and
// gives them back.
func TestBlocksReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, u := roughString().Draw(t, "s"), roughString().Draw(t, "u")
		clean := string([]rune(s))
		blocks := []Block{NewText(s), NewThinking(s, u), NewRedactedThinking(s), NewToolUse(s, u, json.RawMessage(u)), NewToolResult(s, TextContent(u), true), NewImage(s, u)}
		for _, b := range blocks {
			c, err := Canonical(b.Raw())
			if err != nil || string(c) != string(b.Raw()) {
				t.Fatalf("%q is not canonical: %q, %v", b.Raw(), c, err)
			}
		}
		if got := blocks[0].Text(); got != clean {
			t.Fatalf("Text %q, want %q", got, clean)
		}
		if got, ok := blocks[3].ToolUse(); !ok || got.ID != clean {
			t.Fatalf("ToolUse %+v, want id %q", got, clean)
		}
		if got, ok := blocks[4].ToolResult(); !ok || got.ToolUseID != clean || got.Content.Text() != string([]rune(u)) {
			t.Fatalf("ToolResult %+v, want %q, %q", got, clean, u)
		}
	})
}

func FuzzParseBlock(f *testing.F) {
	for _, s := range []string{
		`{"type":"text","text":"x"}`, `{"type":"tool_use","input":{}}`, `{"type":"tool_result","content":[{"type":"text"}]}`, `{"type":"image"}`, "{\"type\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := ParseBlock(raw)
		if err != nil {
			return
		}
		_ = b.Text()
		b.ToolUse()
		b.Thinking()
		b.Image()
		if r, ok := b.ToolResult(); ok {
			_ = r.Content.Text()
		}
		again, err := ParseBlock(b.Raw())
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("%q parsed again: %+v, %v", b.Raw(), again, err)
		}
	})
}
