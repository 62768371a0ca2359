package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/message"
)

// wire is a block as the API reads it.
type wire struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	Mark      json.RawMessage `json:"cache_control"`
}

// checkRequest is the API's validator: it returns the first reason for which
// it would refuse the request. It is written from the rules of the Messages
// API and shares no code with the package.
func checkRequest(r Request, tools int) error {
	if len(r.Messages) == 0 {
		if len(r.Marks) > 0 && r.Marks[len(r.Marks)-1].Where == InMessages {
			return fmt.Errorf("mark without message")
		}
		return nil
	}
	for i, b := range r.System {
		w, err := decodeWire(b)
		if err != nil || w.Type != "text" || w.Text == nil || strings.TrimSpace(*w.Text) == "" || w.Mark != nil {
			return fmt.Errorf("system.%d: %s (%v)", i, b.Raw(), err)
		}
	}
	seen, served := map[string]bool{}, map[string]bool{}
	var open []string // calls that the next message must answer
	for i, m := range r.Messages {
		want := message.RoleUser
		if i%2 == 1 {
			want = message.RoleAssistant
		}
		if m.Role != want {
			return fmt.Errorf("messages.%d: role %q, want %q", i, m.Role, want)
		}
		if len(m.Blocks) == 0 {
			return fmt.Errorf("messages.%d: empty", i)
		}
		ws := make([]wire, len(m.Blocks))
		for j, b := range m.Blocks {
			w, err := decodeWire(b)
			if err != nil {
				return fmt.Errorf("messages.%d.%d: %w", i, j, err)
			}
			if err := checkBlock(w, m.Role); err != nil {
				return fmt.Errorf("messages.%d.%d: %w in %s", i, j, err, b.Raw())
			}
			ws[j] = w
		}
		if m.Role == message.RoleUser {
			for j, id := range open {
				if j >= len(ws) || ws[j].Type != "tool_result" || ws[j].ToolUseID != id {
					return fmt.Errorf("messages.%d: block %d is not the result of %q", i, j, id)
				}
			}
			for j, w := range ws[len(open):] {
				if w.Type == "tool_result" {
					return fmt.Errorf("messages.%d.%d: result of %q without call, or a second one", i, j, w.ToolUseID)
				}
			}
			open = nil
			continue
		}
		if t := ws[len(ws)-1].Type; t == "thinking" || t == "redacted_thinking" {
			return fmt.Errorf("messages.%d: the final block is %s", i, t)
		}
		for j, w := range ws {
			switch {
			case w.Type == "tool_use":
				if seen[w.ID] {
					return fmt.Errorf("messages.%d.%d: call id %q twice", i, j, w.ID)
				}
				seen[w.ID] = true
				open = append(open, w.ID)
			case strings.HasSuffix(w.Type, "_tool_use"):
				served[w.ID] = true
				if !hasWire(ws[j+1:], w.ID) && i < len(r.Messages)-1 && !hasCall(ws) {
					return fmt.Errorf("messages.%d.%d: server call %q without result", i, j, w.ID)
				}
			case strings.HasSuffix(w.Type, "_tool_result"):
				if !served[w.ToolUseID] {
					return fmt.Errorf("messages.%d.%d: server result %q without call", i, j, w.ToolUseID)
				}
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls %q without results at the end", open)
	}
	return checkMarks(r, tools)
}

func hasWire(ws []wire, call string) bool {
	for _, w := range ws {
		if w.ToolUseID == call && strings.HasSuffix(w.Type, "_tool_result") {
			return true
		}
	}
	return false
}

// hasCall reports whether a client tool is called: a server tool may wait for it.
func hasCall(ws []wire) bool {
	return slices.ContainsFunc(ws, func(w wire) bool { return w.Type == "tool_use" })
}

func decodeWire(b message.Block) (w wire, err error) {
	// Into a map first: encoding/json matches the names of struct fields
	// without regard to case, the API does not.
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b.Raw(), &m); err != nil {
		return w, err
	}
	for k := range m {
		if k != strings.ToLower(k) {
			delete(m, k)
		}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		// A field of another type is a fault only in a block that uses it.
		return wire{Type: b.Type()}, nil //nolint:nilerr // checkBlock refuses what lacks its fields
	}
	return w, nil
}

func checkBlock(w wire, role message.Role) error {
	if w.Mark != nil {
		return fmt.Errorf("cache_control left in the block")
	}
	onlyIn := func(r message.Role) error {
		if role != r {
			return fmt.Errorf("%s in a message of role %s", w.Type, role)
		}
		return nil
	}
	switch {
	case w.Type == "text":
		if w.Text == nil || strings.TrimSpace(*w.Text) == "" {
			return fmt.Errorf("text must contain non-whitespace text")
		}
	case w.Type == "thinking":
		if w.Thinking == nil || w.Signature == "" {
			return fmt.Errorf("thinking without signature")
		}
		return onlyIn("assistant")
	case w.Type == "redacted_thinking":
		if w.Data == "" {
			return fmt.Errorf("no data")
		}
		return onlyIn("assistant")
	case w.Type == "tool_use":
		if w.ID == "" || w.Name == "" || len(w.Input) == 0 || w.Input[0] != '{' {
			return fmt.Errorf("malformed call")
		}
		return onlyIn("assistant")
	case w.Type == "tool_result":
		if w.ToolUseID == "" {
			return fmt.Errorf("result without id")
		}
		if err := checkContent(w.Content); err != nil {
			return err
		}
		return onlyIn("user")
	case w.Type == "image" || w.Type == "document":
		return onlyIn("user")
	case strings.HasSuffix(w.Type, "_tool_use") || strings.HasSuffix(w.Type, "_tool_result"):
		return onlyIn("assistant")
	}
	return nil
}

func checkContent(raw json.RawMessage) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if strings.TrimSpace(s) == "" {
			return fmt.Errorf("empty result")
		}
		return nil
	}
	var in []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &in); err != nil || len(in) == 0 {
		return fmt.Errorf("content %s: %v", raw, err)
	}
	for _, e := range in {
		var typ, text string
		if json.Unmarshal(e["type"], &typ) != nil || typ == "" {
			return fmt.Errorf("content block without type")
		}
		if e["cache_control"] != nil {
			return fmt.Errorf("mark inside a result")
		}
		if typ == "text" && (json.Unmarshal(e["text"], &text) != nil || strings.TrimSpace(text) == "") {
			return fmt.Errorf("empty text in a result")
		}
	}
	return nil
}

func checkMarks(r Request, tools int) error {
	if len(r.Marks) > 4 {
		return fmt.Errorf("%d cache marks", len(r.Marks))
	}
	for i, m := range r.Marks {
		if i > 0 && comparePlace(r.Marks[i-1], m) >= 0 {
			return fmt.Errorf("marks %v not in order", r.Marks)
		}
		if i > 0 && r.Marks[i-1].TTL == "5m" && m.TTL == "1h" {
			return fmt.Errorf("a long life time after a short one: %v", r.Marks)
		}
		if m.TTL != "5m" && m.TTL != "1h" {
			return fmt.Errorf("life time %q", m.TTL)
		}
		var typ string
		switch m.Where {
		case InTools:
			if m.Index < 0 || m.Index >= tools {
				return fmt.Errorf("no tool %d", m.Index)
			}
			continue
		case InSystem:
			if m.Block < 0 || m.Block >= len(r.System) {
				return fmt.Errorf("no system block %d", m.Block)
			}
			continue
		case InMessages:
			if m.Index < 0 || m.Index >= len(r.Messages) || m.Block < 0 || m.Block >= len(r.Messages[m.Index].Blocks) {
				return fmt.Errorf("no block at %v", m)
			}
			typ = r.Messages[m.Index].Blocks[m.Block].Type()
		}
		if typ == "thinking" || typ == "redacted_thinking" {
			return fmt.Errorf("mark on %s", typ)
		}
	}
	return nil
}
