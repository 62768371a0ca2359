package agenttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxMessages is how many messages one request may hold.
const maxMessages = 100_000

// turn is one side's turn: consecutive messages of one role, which the API
// joins.
type turn struct {
	role   string
	blocks []located
}

// located is a block with the place where it was sent.
type located struct {
	object
	path, kind string
	message    int
}

func (v *validator) system(top object) *InvalidError {
	if !top.present("system") {
		return nil
	}
	if _, ok := asString(top["system"]); ok {
		return nil
	}
	list, ok := asList(top["system"])
	if !ok {
		return invalid("system", "Input should be a valid string or a valid list")
	}
	for i, raw := range list {
		path := fmt.Sprintf("system.%d", i)
		b, err := readBlock(path, raw)
		if err != nil {
			return err
		}
		if b.kind != "text" {
			return invalid(path+".type", "Input should be 'text'")
		}
		if err := v.textBlock(b, "system"); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) messages(top object) *InvalidError {
	list, ok := asList(top["messages"])
	switch {
	case !ok:
		return invalid("messages", "Input should be a valid list")
	case len(list) == 0:
		return invalid("messages", "at least one message is required")
	case len(list) > maxMessages:
		return invalid("messages", "at most %d messages are allowed", maxMessages)
	}
	for i, raw := range list {
		if err := v.message(i, raw, i == len(list)-1); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) message(i int, raw json.RawMessage, last bool) *InvalidError {
	path := fmt.Sprintf("messages.%d", i)
	m, ok := asObject(raw)
	if !ok {
		return invalid(path, "Input should be a valid dictionary")
	}
	role, _ := asString(m["role"])
	switch {
	case m["role"] == nil:
		return invalid(path+".role", "Field required")
	case role != "user" && role != "assistant" && role != "system":
		return invalid(path+".role", "Input should be 'user', 'assistant' or 'system'")
	case i == 0 && role != "user":
		return invalid("messages", "first message must use the \"user\" role")
	case role == "system" && v.turns[len(v.turns)-1].role != "user":
		return invalid(path, "a `system` message must directly follow a `user` message")
	}
	if err := extra(path, m, []string{"role", "content"}); err != nil {
		return err
	}
	blocks, err := v.content(path, i, role, m["content"], last)
	if err != nil {
		return err
	}
	if role == "system" {
		return nil // belongs to the user turn before it; has text only
	}
	if n := len(v.turns); n > 0 && v.turns[n-1].role == role {
		v.turns[n-1].blocks = append(v.turns[n-1].blocks, blocks...)
		return nil
	}
	v.turns = append(v.turns, turn{role: role, blocks: blocks})
	return nil
}

// content checks a message's content and returns it as blocks.
func (v *validator) content(path string, index int, role string, raw json.RawMessage, last bool) ([]located, *InvalidError) {
	if raw == nil {
		return nil, invalid(path+".content", "Field required")
	}
	var list []json.RawMessage
	if text, ok := asString(raw); ok {
		if text != "" {
			list = []json.RawMessage{join(`{"type":"text","text":`, quote(text), `}`)}
		}
	} else if list, ok = asList(raw); !ok {
		return nil, invalid(path+".content", "Input should be a valid string or a valid list")
	}
	if len(list) == 0 && (role != "assistant" || !last) {
		return nil, invalid(path, "all messages must have non-empty content except for the optional final assistant message")
	}
	blocks := make([]located, 0, len(list))
	for j, raw := range list {
		b, err := readBlock(fmt.Sprintf("%s.content.%d", path, j), raw)
		if err != nil {
			return nil, err
		}
		b.message = index
		if err := v.block(b, role); err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// conversation checks what concerns several messages.
func (v *validator) conversation() *InvalidError {
	ids := map[string]bool{}
	for i, t := range v.turns {
		if t.role != "assistant" {
			var before *turn
			if i > 0 {
				before = &v.turns[i-1]
			}
			if err := checkResults(before, t); err != nil {
				return err
			}
			continue
		}
		for _, b := range t.blocks {
			if b.kind != "tool_use" {
				continue
			}
			id, _ := asString(b.object["id"])
			if ids[id] {
				return invalid(b.path, "`tool_use` ids must be unique")
			}
			ids[id] = true
		}
		if i == len(v.turns)-1 {
			if err := missingResults(t, nil); err != nil {
				return err
			}
		}
	}
	if err := v.thinkingFirst(); err != nil {
		return err
	}
	return v.ending()
}

// checkResults checks the tool_results of a user turn against the calls of the
// assistant turn before it.
func checkResults(before *turn, t turn) *InvalidError {
	calls := map[string]bool{}
	if before != nil {
		for _, b := range before.blocks {
			if b.kind == "tool_use" {
				id, _ := asString(b.object["id"])
				calls[id] = true
			}
		}
	}
	seen := map[string]bool{}
	other := false
	for _, b := range t.blocks {
		if b.kind != "tool_result" {
			other = true
			continue
		}
		id, _ := asString(b.object["tool_use_id"])
		switch {
		case !calls[id]:
			return invalid(b.path, "unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", id)
		case seen[id]:
			return invalid(b.path, "each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", id)
		case other:
			return invalid(b.path, "`tool_result` blocks must come before other content in a `user` message")
		}
		seen[id] = true
	}
	if before == nil {
		return nil
	}
	return missingResults(*before, seen)
}

func missingResults(t turn, seen map[string]bool) *InvalidError {
	var missing []string
	at := -1
	for _, b := range t.blocks {
		if b.kind != "tool_use" {
			continue
		}
		if id, _ := asString(b.object["id"]); !seen[id] {
			missing = append(missing, id)
			if at < 0 {
				at = b.message
			}
		}
	}
	if missing == nil {
		return nil
	}
	return invalid(fmt.Sprintf("messages.%d", at), "`tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", strings.Join(missing, ", "))
}

// thinkingFirst checks, for manual thinking, the start of the assistant turn
// whose tool loop goes on.
func (v *validator) thinkingFirst() *InvalidError {
	n := len(v.turns)
	if v.thinking != "enabled" || n < 2 || v.turns[n-1].role != "user" {
		return nil
	}
	if last := v.turns[n-1]; !slices.ContainsFunc(last.blocks, func(b located) bool { return b.kind == "tool_result" }) {
		return nil
	}
	first := v.turns[n-2].blocks[0]
	if first.kind == "thinking" || first.kind == "redacted_thinking" {
		return nil
	}
	return invalid(first.path+".type", "Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", first.kind)
}

// ending checks an assistant message at the end, which is a prefill or the
// continuation of a paused turn.
func (v *validator) ending() *InvalidError {
	last := v.turns[len(v.turns)-1]
	if last.role != "assistant" {
		return nil
	}
	if len(last.blocks) > 0 {
		end := last.blocks[len(last.blocks)-1]
		if end.kind == "thinking" || end.kind == "redacted_thinking" {
			return invalid(fmt.Sprintf("messages.%d", end.message), "The final block in an assistant message cannot be `%s`.", end.kind)
		}
		if text, _ := asString(end.object["text"]); end.kind == "text" && strings.TrimRight(text, " \t\r\n") != text {
			return invalid("messages", "final assistant content cannot end with trailing whitespace")
		}
	}
	for _, b := range last.blocks {
		switch {
		case v.thinking == "disabled" && (b.kind == "thinking" || b.kind == "redacted_thinking"):
			return invalid(b.path, "When thinking is disabled, an `assistant` message in the final position cannot contain `%s`.", b.kind)
		case strings.HasPrefix(b.kind, "server_tool_use"), strings.HasSuffix(b.kind, "_tool_result"), strings.HasPrefix(b.kind, "mcp_tool_use"):
			return nil // a paused turn goes on
		}
	}
	if v.thinking == "enabled" || refusesPrefill(v.model) {
		err := invalid("", "This model does not support assistant message prefill. The conversation must end with a user message.")
		err.prefill = true
		return err
	}
	return nil
}

// refusesPrefill reports whether the model is known not to continue an
// assistant message: version 4.6 and later. Names that are not a public model's
// are allowed.
func refusesPrefill(model string) bool {
	rest, ok := strings.CutPrefix(model, "claude-")
	if !ok {
		return false
	}
	family, version, ok := strings.Cut(rest, "-") // opus-4-6-20260101
	if !ok || strings.Trim(family, "0123456789") == "" {
		return false // claude-3-5-haiku: the old order of names
	}
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d-%d", &major, &minor); n < 2 || minor >= 1000 {
		minor = 0 // a date
	}
	return major >= 5 && major < 1000 || major == 4 && minor >= 6
}
