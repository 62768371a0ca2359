package message

import (
	"encoding/json"
	"slices"
)

// APIMessage is the API message inside an Assistant (M-14, M-25). Usage holds
// the figures known at the start of the response (M-32): take totals from the
// Result.
type APIMessage struct {
	ID           string  `json:"id"`
	Type         string  `json:"type" wire:"default=message"`   // filled in when empty
	Role         Role    `json:"role" wire:"default=assistant"` // filled in when empty
	Model        string  `json:"model"`
	Content      []Block `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        Usage   `json:"usage"`
}

// MarshalJSON writes the message as it stands inside an Assistant: content is a
// list, never null, type and role are filled in.
func (m APIMessage) MarshalJSON() ([]byte, error) { return marshalPart(&m) }

// UserBody is the API message inside a User (M-35).
type UserBody struct {
	Role    Role    `json:"role" wire:"default=user"` // filled in when empty
	Content Content `json:"content"`
}

// MarshalJSON writes the message as it stands inside a User: content is a
// string or a list, never null, the role is filled in.
func (b UserBody) MarshalJSON() ([]byte, error) { return marshalPart(&b) }

// Assistant is one model response, or a part of one: several with the same
// Message.ID come from one response and repeat its usage (M-25 to M-34).
type Assistant struct {
	Message         APIMessage      `json:"message"`
	ParentToolUseID *string         `json:"parent_tool_use_id"`      // the spawning Agent call; nil in the main conversation
	Error           ErrorCategory   `json:"error,omitempty"`         // on a message that carries the text of a failure
	Aborted         bool            `json:"aborted,omitempty"`       // cut by an interrupt; no stop reason then
	Timestamp       string          `json:"timestamp,omitempty"`     // ISO 8601, for display only (M-6)
	ContextUsage    json.RawMessage `json:"context_usage,omitempty"` // on the answer to /context only (M-90)
	Header
}

// User is the result of one tool call, or user input: given to the runtime, or
// seen in the stream (M-35 to M-43).
type User struct {
	Message         UserBody        `json:"message"`
	ParentToolUseID *string         `json:"parent_tool_use_id"`              // the spawning Agent call; nil in the main conversation
	IsSynthetic     bool            `json:"isSynthetic,omitempty"`           // not written by a person (M-43)
	IsReplay        bool            `json:"isReplay,omitempty"`              // input that is given back (M-40, M-41)
	ShouldQuery     *bool           `json:"shouldQuery,omitempty"`           // false: add the message, start no turn (W-48)
	ToolUseResult   json.RawMessage `json:"tool_use_result,omitempty"`       // the tool's structured output (M-37)
	Origin          *Origin         `json:"origin,omitempty" wire:"lenient"` // nil: unattributed
	Timestamp       string          `json:"timestamp,omitempty"`             // ISO 8601, for display only (M-6)
	Header
}

// StreamEvent is one raw streaming event of the API (M-44 to M-52).
type StreamEvent struct {
	Event           json.RawMessage `json:"event" wire:"object"`
	ParentToolUseID *string         `json:"parent_tool_use_id"` // always null
	TTFTMS          *int64          `json:"ttft_ms,omitempty"`  // milliseconds; on message_start only
	Header
}

// Kind implements Message.
func (*Assistant) Kind() (typ, subtype string) { return "assistant", "" }

// Kind implements Message.
func (*User) Kind() (typ, subtype string) { return "user", "" }

// Kind implements Message.
func (*StreamEvent) Kind() (typ, subtype string) { return "stream_event", "" }

// Text returns the text blocks joined without separator, "" when there is
// none. Thinking is no text (L-83).
func (m *Assistant) Text() string { return joinText(m.Message.Content) }

// ToolUses returns the tool_use blocks in order.
func (m *Assistant) ToolUses() []ToolUse {
	var uses []ToolUse
	for _, b := range m.Message.Content {
		if u, ok := b.ToolUse(); ok {
			uses = append(uses, u)
		}
	}
	return uses
}

// Text returns the content's text: the string, or the text blocks joined.
func (m *User) Text() string { return m.Message.Content.Text() }

// ToolResults returns the tool_result blocks in order, those of refused and
// failed calls included; nil for user input.
func (m *User) ToolResults() []ToolResult {
	var results []ToolResult
	for _, b := range m.Message.Content.blocks {
		if r, ok := b.ToolResult(); ok {
			results = append(results, r)
		}
	}
	return results
}

// CountToolTurns returns the tool turns of the main conversation in msgs: its
// responses with at least one tool call. The blocks are grouped by message id,
// because a response may come as several messages (L-22, M-30, M-31); turns of
// subagents do not count (L-21). A message without an id is its own response.
func CountToolTurns(msgs []Message) int {
	seen := map[string]bool{}
	n := 0
	for _, m := range msgs {
		a, ok := m.(*Assistant)
		if !ok || a.ParentToolUseID != nil || !slices.ContainsFunc(a.Message.Content, isToolUse) {
			continue
		}
		id := a.Message.ID
		if id == "" || !seen[id] {
			n++
		}
		seen[id] = true
	}
	return n
}

func isToolUse(b Block) bool { return b.typ == TypeToolUse }

// LastText returns the text of the last response in the main conversation that
// has any, joined over its messages, and "" when there is none. It gives what
// an error result does not have (L-67).
func LastText(msgs []Message) string {
	text, id := "", ""
	for _, m := range msgs {
		a, ok := m.(*Assistant)
		if !ok || a.ParentToolUseID != nil {
			continue
		}
		t := a.Text()
		switch {
		case t == "":
		case id != "" && a.Message.ID == id:
			text += t
		default:
			text, id = t, a.Message.ID
		}
	}
	return text
}
