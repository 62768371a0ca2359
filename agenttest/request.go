package agenttest

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Request is one recorded request. Its body is decoded when a method first
// needs it; the methods are safe for concurrent use. What they return belongs
// to the Request and is only to be read.
type Request struct {
	Number int         // from 1, in order of arrival at this server
	Time   time.Time   // when it had arrived whole
	Path   string      // such as /v1/messages
	Header http.Header // names in canonical form
	Body   []byte      // as sent
	Err    error       // why it was refused as invalid, else nil

	once    sync.Once
	decoded params
}

// params is the decoded body. A body of another shape leaves fields empty.
type params struct {
	Model     string           `json:"model"`
	MaxTokens int              `json:"max_tokens"`
	Stream    bool             `json:"stream"`
	System    content          `json:"system"`
	Tools     []Tool           `json:"tools"`
	Messages  []RequestMessage `json:"messages"`
}

// RequestMessage is one message of a request. A content that was sent as a
// string is one text block.
type RequestMessage struct {
	Role    string
	Content []Block
}

// Block is one content block of a request. Fields that its type does not have
// are empty.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"` // redacted_thinking
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   []Block         `json:"-"`             // of a tool_result
	Cache     json.RawMessage `json:"cache_control"` // nil: no mark
	Raw       json.RawMessage `json:"-"`             // the whole block as sent
}

// Tool is one tool definition of a request.
type Tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Cache       json.RawMessage `json:"cache_control"`
	Raw         json.RawMessage `json:"-"` // the whole definition as sent
}

// ToolResult is a tool_result with its text joined.
type ToolResult struct {
	ToolUseID string
	Text      string // text blocks, joined by line breaks
	IsError   bool
	Block     Block
}

// content is a string or a list of blocks.
type content []Block

// UnmarshalJSON accepts both forms; another value leaves the content empty.
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = nil
		if text != "" {
			*c = content{{Type: "text", Text: text, Raw: join(`{"type":"text","text":`, quote(text), `}`)}}
		}
		return nil
	}
	var blocks []Block
	if err := json.Unmarshal(data, &blocks); err == nil {
		*c = blocks
	}
	return nil
}

// UnmarshalJSON keeps the raw block beside the fields.
func (b *Block) UnmarshalJSON(data []byte) error {
	type plain Block
	in := struct {
		*plain
		Content content `json:"content"`
	}{plain: (*plain)(b)}
	err := json.Unmarshal(data, &in)
	b.Content, b.Raw = in.Content, append(json.RawMessage(nil), data...)
	return err
}

// UnmarshalJSON reads role and content.
func (m *RequestMessage) UnmarshalJSON(data []byte) error {
	var in struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	}
	err := json.Unmarshal(data, &in)
	m.Role, m.Content = in.Role, in.Content
	return err
}

// UnmarshalJSON keeps the raw definition beside the fields.
func (t *Tool) UnmarshalJSON(data []byte) error {
	type plain Tool
	err := json.Unmarshal(data, (*plain)(t))
	t.Raw = append(json.RawMessage(nil), data...)
	return err
}

func (r *Request) params() *params {
	r.once.Do(func() {
		// What can be read of a body that is partly wrong is kept.
		_ = json.Unmarshal(r.Body, &r.decoded)
	})
	return &r.decoded
}

// Model is the model asked for.
func (r *Request) Model() string {
	var s string
	if json.Unmarshal(member(r.Body, "model"), &s) != nil {
		return ""
	}
	return s
}

// Stream reports whether the answer is to be streamed.
func (r *Request) Stream() bool { return string(member(r.Body, "stream")) == "true" }

// MaxTokens is the output limit asked for.
func (r *Request) MaxTokens() int { return r.params().MaxTokens }

// System is the system prompt as blocks.
func (r *Request) System() []Block { return r.params().System }

// Tools are the tool definitions.
func (r *Request) Tools() []Tool { return r.params().Tools }

// ToolNames are the names of the tool definitions, in order.
func (r *Request) ToolNames() []string {
	var names []string
	for _, t := range r.Tools() {
		names = append(names, t.Name)
	}
	return names
}

// Messages are the messages of the conversation.
func (r *Request) Messages() []RequestMessage { return r.params().Messages }

// Field returns one top-level field of the body as sent, nil when there is none.
func (r *Request) Field(name string) json.RawMessage { return member(r.Body, name) }

// Turn is how many assistant messages the request holds: 0 in the first
// request of a conversation. It does not decode the body.
func (r *Request) Turn() int {
	n := 0
	elements(member(r.Body, "messages"), func(m []byte) bool {
		if string(member(m, "role")) == `"assistant"` {
			n++
		}
		return true
	})
	return n
}

// SystemText is the text of the system prompt, blocks joined by line breaks.
func (r *Request) SystemText() string { return joinText(r.System()) }

// UserText is the text of the last user message, without tool results, blocks
// joined by line breaks; "" when that message has none.
func (r *Request) UserText() string {
	msgs := r.Messages()
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == "user" {
			return joinText(msgs[i].Content)
		}
	}
	return ""
}

// FirstUserText is the text of the first user message. It is a good key for
// Conversations as long as that message is not replaced by a summary.
func (r *Request) FirstUserText() string {
	for _, m := range r.Messages() {
		if m.Role == "user" {
			return joinText(m.Content)
		}
	}
	return ""
}

// LastToolResults are the tool results after the last assistant message, in
// order; nil when the request does not carry any there.
func (r *Request) LastToolResults() []ToolResult {
	msgs := r.Messages()
	from := len(msgs)
	for from > 0 && msgs[from-1].Role != "assistant" {
		from--
	}
	var out []ToolResult
	for _, m := range msgs[from:] {
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				out = append(out, ToolResult{ToolUseID: b.ToolUseID, Text: joinText(b.Content), IsError: b.IsError, Block: b})
			}
		}
	}
	return out
}

// ToolResult returns the result of the call with this id, wherever it is.
func (r *Request) ToolResult(toolUseID string) (ToolResult, bool) {
	for _, m := range r.Messages() {
		for _, b := range m.Content {
			if b.Type == "tool_result" && b.ToolUseID == toolUseID {
				return ToolResult{ToolUseID: b.ToolUseID, Text: joinText(b.Content), IsError: b.IsError, Block: b}, true
			}
		}
	}
	return ToolResult{}, false
}

func joinText(blocks []Block) string {
	var parts []string
	for _, b := range blocks {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}
