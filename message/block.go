package message

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Role is the author of an API message.
type Role string

// The two roles of the Messages API.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Block types that the loop itself makes or looks at. Others pass through.
const (
	TypeText             = "text"
	TypeThinking         = "thinking"
	TypeRedactedThinking = "redacted_thinking"
	TypeToolUse          = "tool_use"
	TypeToolResult       = "tool_result"
	TypeImage            = "image"
	TypeDocument         = "document"
	TypeServerToolUse    = "server_tool_use"
)

// Block is one content block of an API message (M-103). It is immutable and
// encoded once: the same bytes go to the transcript, to the stream and into
// requests. The zero value is no block.
type Block struct {
	typ string
	raw []byte
}

// ToolUse is the decoded form of a tool_use block.
type ToolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// ToolResult is the decoded form of a tool_result block.
type ToolResult struct {
	ToolUseID string  `json:"tool_use_id"`
	Content   Content `json:"content,omitzero"`
	IsError   bool    `json:"is_error,omitempty"`
}

// Thinking is the decoded form of a thinking block.
type Thinking struct {
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// ParseBlock returns the block that the JSON object raw describes. The bytes
// are kept in canonical form; nothing in them is dropped. It fails when raw is
// not an object with a string "type".
func ParseBlock(raw []byte) (Block, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return Block{}, fmt.Errorf("content block: %w", err)
	}
	if head.Type == "" {
		return Block{}, fmt.Errorf("content block: no \"type\" in %.60q", raw)
	}
	c, err := Canonical(raw)
	if err != nil {
		return Block{}, fmt.Errorf("content block: %w", err)
	}
	return Block{typ: head.Type, raw: c}, nil
}

func mustBlock(typ string, v any) Block {
	raw, err := Encode(v)
	if err != nil {
		// Only values built by this package come here, and they always encode.
		panic(fmt.Sprintf("message: encoding a %s block: %v", typ, err))
	}
	return Block{typ: typ, raw: raw}
}

// NewText returns a text block.
func NewText(text string) Block {
	return mustBlock(TypeText, struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{TypeText, text})
}

// NewThinking returns a thinking block.
func NewThinking(thinking, signature string) Block {
	return mustBlock(TypeThinking, struct {
		Type string `json:"type"`
		Thinking
	}{TypeThinking, Thinking{thinking, signature}})
}

// NewToolUse returns a tool_use block. An input that is not one JSON object
// is stored as {}: the API accepts nothing else there.
func NewToolUse(id, name string, input json.RawMessage) Block {
	if t := bytes.TrimSpace(input); len(t) == 0 || t[0] != '{' || !json.Valid(t) {
		input = json.RawMessage("{}")
	}
	return mustBlock(TypeToolUse, struct {
		Type string `json:"type"`
		ToolUse
	}{TypeToolUse, ToolUse{id, name, input}})
}

// NewToolResult returns a tool_result block. With no content the key is left
// out; isError false is left out too.
func NewToolResult(toolUseID string, content Content, isError bool) Block {
	return mustBlock(TypeToolResult, struct {
		Type string `json:"type"`
		ToolResult
	}{TypeToolResult, ToolResult{toolUseID, content, isError}})
}

// NewImage returns an image block with a base64 source.
func NewImage(mediaType, base64 string) Block {
	type source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	return mustBlock(TypeImage, struct {
		Type   string `json:"type"`
		Source source `json:"source"`
	}{TypeImage, source{"base64", mediaType, base64}})
}

// Type returns the block's type, "" for the zero Block.
func (b Block) Type() string { return b.typ }

// IsZero reports whether b is no block.
func (b Block) IsZero() bool { return b.typ == "" }

// Raw returns the block's JSON. The caller must not change it.
func (b Block) Raw() json.RawMessage { return b.raw }

// Text returns the text of a text block and "" for every other type.
func (b Block) Text() string {
	if b.typ != TypeText {
		return ""
	}
	var v struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(b.raw, &v) // a wrong shape reads as no text
	return v.Text
}

// ToolUse returns the decoded tool_use block; ok is false for other types.
func (b Block) ToolUse() (u ToolUse, ok bool) {
	if b.typ != TypeToolUse {
		return ToolUse{}, false
	}
	return u, json.Unmarshal(b.raw, &u) == nil
}

// ToolResult returns the decoded tool_result block; ok is false for other types.
func (b Block) ToolResult() (r ToolResult, ok bool) {
	if b.typ != TypeToolResult {
		return ToolResult{}, false
	}
	return r, json.Unmarshal(b.raw, &r) == nil
}

// Thinking returns the decoded thinking block; ok is false for other types.
func (b Block) Thinking() (t Thinking, ok bool) {
	if b.typ != TypeThinking {
		return Thinking{}, false
	}
	return t, json.Unmarshal(b.raw, &t) == nil
}

// MarshalJSON returns the block's bytes.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.raw == nil {
		return nil, fmt.Errorf("content block: the zero Block has no JSON form")
	}
	return b.raw, nil
}

// UnmarshalJSON parses a block as ParseBlock does.
func (b *Block) UnmarshalJSON(raw []byte) error {
	p, err := ParseBlock(raw)
	if err == nil {
		*b = p
	}
	return err
}

// Content is the content of an API message: a string or a list of blocks. A
// prompt given as a string stays one (K-312). The zero value is no content.
type Content struct {
	text   string
	blocks []Block
	isText bool
}

// TextContent returns content given as a string.
func TextContent(s string) Content { return Content{text: s, isText: true} }

// BlockContent returns content given as blocks.
func BlockContent(blocks ...Block) Content {
	if blocks == nil {
		blocks = []Block{}
	}
	return Content{blocks: blocks}
}

// IsZero reports whether there is no content at all (no key in JSON).
func (c Content) IsZero() bool { return !c.isText && c.blocks == nil }

// IsText reports whether the content is a string; Text is then that string.
func (c Content) IsText() bool { return c.isText }

// Blocks returns the content as blocks: a string as one text block, an empty
// string as none.
func (c Content) Blocks() []Block {
	if c.isText {
		if c.text == "" {
			return nil
		}
		return []Block{NewText(c.text)}
	}
	return c.blocks
}

// Text returns the string, or the text blocks joined without separator.
func (c Content) Text() string {
	if c.isText {
		return c.text
	}
	var s []byte
	for _, b := range c.blocks {
		s = append(s, b.Text()...)
	}
	return string(s)
}

// MarshalJSON writes a string or an array.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.isText {
		return Encode(c.text)
	}
	if c.blocks == nil {
		return []byte("null"), nil
	}
	n := 2
	for _, b := range c.blocks {
		n += len(b.raw) + 1
	}
	out := append(make([]byte, 0, n), '[')
	for i, b := range c.blocks {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, b.raw...)
	}
	return append(out, ']'), nil
}

// UnmarshalJSON reads a string, an array of blocks or null.
func (c *Content) UnmarshalJSON(raw []byte) error {
	t := bytes.TrimSpace(raw)
	switch {
	case string(t) == "null":
		*c = Content{}
		return nil
	case len(t) > 0 && t[0] == '"':
		*c = Content{isText: true}
		return json.Unmarshal(t, &c.text)
	}
	*c = Content{blocks: []Block{}}
	return json.Unmarshal(t, &c.blocks)
}
