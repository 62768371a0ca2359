package message

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/turnwright/turnwright/internal/rawjson"
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
	Input json.RawMessage `json:"input" wire:"object"`
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

// Image is the decoded form of an image block.
type Image struct {
	Source ImageSource `json:"source"`
}

// ImageSource holds an image or says where it is.
type ImageSource struct {
	Type      string `json:"type"`                 // base64, url, or another that the API knows
	MediaType string `json:"media_type,omitempty"` // of base64
	Data      string `json:"data,omitempty"`       // of base64
	URL       string `json:"url,omitempty"`        // of url
}

// ParseBlock returns the block that the JSON object raw describes. The bytes
// are kept in canonical form; nothing in them is dropped, whatever the type
// (M-106, M-107). It fails when raw is not an object with a string "type".
func ParseBlock(raw []byte) (Block, error) {
	c, err := Canonical(raw)
	if err != nil {
		return Block{}, fmt.Errorf("content block: %w: %.60q", err, raw)
	}
	if !rawjson.IsObject(c) {
		return Block{}, fmt.Errorf("content block: %w: %.60q", ErrNotObject, raw)
	}
	typ := ""
	if t := rawjson.Member(c, "type"); len(t) > 0 && t[0] == '"' {
		typ = rawjson.Unquote(t)
	}
	if typ == "" {
		return Block{}, fmt.Errorf("content block: %w: %.60q", ErrNoType, raw)
	}
	return Block{typ: typ, raw: c}, nil
}

// open starts the JSON of a block of a type that needs no escaping, with room
// for size bytes of strings and some escapes in them.
func open(typ string, size int) []byte {
	b := make([]byte, 0, len(typ)+size+size/8+64)
	return append(append(append(b, `{"type":"`...), typ...), '"')
}

func putString(b []byte, key, value string) []byte {
	return rawjson.AppendString(append(append(append(b, `,"`...), key...), `":`...), value)
}

// NewText returns a text block.
func NewText(text string) Block {
	b := putString(open(TypeText, len(text)), "text", text)
	return Block{typ: TypeText, raw: append(b, '}')}
}

// NewThinking returns a thinking block. Both keys are always there, also when
// the provider left the text out (M-106, W-233).
func NewThinking(thinking, signature string) Block {
	b := putString(open(TypeThinking, len(thinking)+len(signature)), "thinking", thinking)
	return Block{typ: TypeThinking, raw: append(putString(b, "signature", signature), '}')}
}

// NewRedactedThinking returns a redacted_thinking block.
func NewRedactedThinking(data string) Block {
	b := putString(open(TypeRedactedThinking, len(data)), "data", data)
	return Block{typ: TypeRedactedThinking, raw: append(b, '}')}
}

// NewToolUse returns a tool_use block. An input that is not one JSON object
// is stored as {}: the API accepts nothing else there.
func NewToolUse(id, name string, input json.RawMessage) Block {
	b := putString(open(TypeToolUse, len(id)+len(name)+len(input)), "id", id)
	b = append(putString(b, "name", name), `,"input":`...)
	if c, err := Canonical(input); err == nil && rawjson.IsObject(c) {
		b = append(b, c...)
	} else {
		b = append(b, "{}"...)
	}
	return Block{typ: TypeToolUse, raw: append(b, '}')}
}

// NewToolResult returns a tool_result block. With no content the key is left
// out; isError false is left out too.
func NewToolResult(toolUseID string, content Content, isError bool) Block {
	size := len(toolUseID) + len(content.text)
	for _, c := range content.blocks {
		size += len(c.raw) + 1
	}
	b := putString(open(TypeToolResult, size), "tool_use_id", toolUseID)
	if !content.IsZero() {
		b = content.append(append(b, `,"content":`...))
	}
	if isError {
		b = append(b, `,"is_error":true`...)
	}
	return Block{typ: TypeToolResult, raw: append(b, '}')}
}

// NewImage returns an image block with a base64 source.
func NewImage(mediaType, base64 string) Block {
	b := append(open(TypeImage, len(mediaType)+len(base64)), `,"source":{"type":"base64"`...)
	b = putString(putString(b, "media_type", mediaType), "data", base64)
	return Block{typ: TypeImage, raw: append(b, "}}"...)}
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
	if t := rawjson.Member(b.raw, "text"); len(t) > 0 && t[0] == '"' {
		return rawjson.Unquote(t)
	}
	return "" // a wrong shape reads as no text
}

// decode fills v, a pointer to a struct of this file, and reports whether the
// block has the type and the shape.
func (b Block) decode(typ string, v any) bool {
	return b.typ == typ && decodeMembers(b.raw, reflect.ValueOf(v).Elem()) == nil
}

// ToolUse returns the decoded tool_use block; ok is false for other types and
// for a block of a wrong shape.
func (b Block) ToolUse() (u ToolUse, ok bool) {
	if !b.decode(TypeToolUse, &u) {
		return ToolUse{}, false
	}
	return u, true
}

// ToolResult returns the decoded tool_result block; ok is false for other
// types and for a block of a wrong shape.
func (b Block) ToolResult() (r ToolResult, ok bool) {
	if !b.decode(TypeToolResult, &r) {
		return ToolResult{}, false
	}
	return r, true
}

// Thinking returns the decoded thinking block; ok is false for other types and
// for a block of a wrong shape.
func (b Block) Thinking() (t Thinking, ok bool) {
	if !b.decode(TypeThinking, &t) {
		return Thinking{}, false
	}
	return t, true
}

// Image returns the decoded image block; ok is false for other types and for a
// block of a wrong shape.
func (b Block) Image() (i Image, ok bool) {
	if !b.decode(TypeImage, &i) {
		return Image{}, false
	}
	return i, true
}

// MarshalJSON returns the block's bytes. The zero Block has none: an error.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.raw == nil {
		return nil, fmt.Errorf("content block: %w", errZeroBlock)
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
