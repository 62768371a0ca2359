package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// blockBuilder collects one content block of a response.
type blockBuilder struct {
	typ   string
	start json.RawMessage // the block as content_block_start had it

	text      []byte // text or thinking
	signature string
	input     []byte // partial_json, joined
	citations []json.RawMessage
	extra     map[string]json.RawMessage // from deltas of unknown types

	out model.Block
}

// newBlockBuilder begins the block that a content_block_start carried.
func newBlockBuilder(start json.RawMessage) (*blockBuilder, error) {
	if len(start) == 0 {
		return nil, errors.New("the event has no block")
	}
	begun, err := message.ParseBlock(start)
	if err != nil {
		return nil, err
	}
	b := &blockBuilder{typ: begun.Type(), start: start}
	b.out.Block = begun
	switch b.typ {
	case message.TypeText:
		b.text = []byte(stringOf(rawjson.Member(start, "text")))
	case message.TypeThinking:
		b.text = []byte(stringOf(rawjson.Member(start, "thinking")))
		b.signature = stringOf(rawjson.Member(start, "signature"))
	}
	return b, nil
}

// stringOf returns the string that raw is, "" for anything else.
func stringOf(raw json.RawMessage) string {
	if !rawjson.IsString(raw) {
		return ""
	}
	return rawjson.Unquote(raw)
}

// add uses one delta; raw is its whole event.
func (b *blockBuilder) add(d *wireDelta, raw json.RawMessage) error {
	switch d.Type {
	case "text_delta":
		b.text = append(b.text, d.Text...)
	case "thinking_delta":
		b.text = append(b.text, d.Thinking...)
	case "signature_delta":
		b.signature = d.Signature
	case "input_json_delta":
		b.input = append(b.input, d.PartialJSON...)
	case "citations_delta":
		if len(d.Citation) > 0 {
			b.citations = append(b.citations, d.Citation)
		}
	default:
		return b.addUnknown(raw)
	}
	return nil
}

// addUnknown uses a delta of a type that this version does not know by the
// API's own habit: strings grow, anything else is replaced.
func (b *blockBuilder) addUnknown(raw json.RawMessage) error {
	var ev struct {
		Delta map[string]json.RawMessage `json:"delta"`
	}
	if err := json.Unmarshal(raw, &ev); err != nil {
		return malformed("a delta that is no object: %v", err)
	}
	if b.extra == nil {
		b.extra = make(map[string]json.RawMessage)
	}
	for k, v := range ev.Delta {
		if k == "type" {
			continue
		}
		old, ok := b.extra[k]
		if !ok {
			old = memberOf(b.start, k)
		}
		if rawjson.IsString(v) && rawjson.IsString(old) {
			joined, err := message.Encode(stringOf(old) + stringOf(v))
			if err != nil {
				return malformed("delta %q: %v", k, err)
			}
			v = joined
		}
		b.extra[k] = v
	}
	return nil
}

func memberOf(object json.RawMessage, key string) json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(object, &m)
	return m[key]
}

// finish makes the block from what came. done says that it is complete.
func (b *blockBuilder) finish(done bool) {
	b.out.Done = done
	set := b.extra
	put := func(k string, raw []byte) {
		if set == nil {
			set = make(map[string]json.RawMessage)
		}
		set[k] = raw
	}
	switch {
	case b.typ == message.TypeText:
		if len(b.citations) == 0 && set == nil && plainStart(b.start, "text") {
			b.out.Block = message.NewText(string(b.text))
			return
		}
		put("text", encoded(string(b.text)))
	case b.typ == message.TypeThinking:
		if set == nil && plainStart(b.start, "thinking", "signature") {
			b.out.Block = message.NewThinking(string(b.text), b.signature)
			return
		}
		put("thinking", encoded(string(b.text)))
		put("signature", encoded(b.signature))
	case len(b.input) > 0:
		if isObject(b.input) {
			put("input", b.input)
		} else {
			b.out.BadInput, b.out.RawInput = true, string(b.input)
			put("input", []byte("{}"))
		}
	case b.typ == message.TypeToolUse:
		// No delta at all is a call without arguments.
		if in := memberOf(b.start, "input"); !isObject(in) {
			if len(in) > 0 && string(in) != "null" {
				b.out.BadInput, b.out.RawInput = true, string(in)
			}
			put("input", []byte("{}"))
		}
	}
	if len(b.citations) > 0 {
		var all []json.RawMessage
		_ = json.Unmarshal(memberOf(b.start, "citations"), &all)
		list, err := message.Encode(append(all, b.citations...))
		if err == nil { // each was read as JSON before
			put("citations", list)
		}
	}
	if len(set) == 0 {
		return // all of it was in the start
	}
	block, err := message.ParseBlock(withMembers(b.start, set))
	if err != nil {
		// The members were valid one by one, so this is nesting at the limit
		// of what JSON readers take. The block stays as it was begun.
		b.out.Done = false
		return
	}
	b.out.Block = block
}

// maxDepth bounds the nesting of a tool input. encoding/json reads 10,000
// levels; an input just under that could be read here and no more inside a
// transcript line.
const maxDepth = 5000

// isObject reports whether raw is exactly one JSON object, not nested too deep.
func isObject(raw json.RawMessage) bool {
	t := bytes.TrimSpace(raw)
	return len(t) > 0 && t[0] == '{' && json.Valid(t) && depth(t) <= maxDepth
}

// depth returns how deep the valid JSON text is nested.
func depth(valid []byte) int {
	now, most, inString := 0, 0, false
	for i := 0; i < len(valid); i++ {
		switch c := valid[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// plainStart reports whether the start of a block has no members beside its
// type and those named, so that nothing of it can be lost.
func plainStart(start json.RawMessage, names ...string) bool {
	for k := range rawjson.Members(start) {
		if string(k) != "type" && !slices.Contains(names, string(k)) {
			return false
		}
	}
	return true
}

// withMembers returns the valid JSON object with the members of set replaced or
// added; the others keep their bytes and order.
func withMembers(object json.RawMessage, set map[string]json.RawMessage) json.RawMessage {
	if len(set) == 0 {
		return object
	}
	n := len(object)
	for k, v := range set {
		n += len(k) + len(v) + 4
	}
	out := append(make([]byte, 0, n), '{')
	write := func(k string, v json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendString(out, k), ':'), v...)
	}
	seen := make(map[string]bool, len(set))
	for key, old := range rawjson.Members(object) {
		k := string(key)
		v, ok := set[k]
		switch {
		case !ok:
			write(k, old)
		case !seen[k]:
			write(k, v)
			seen[k] = true
		}
	}
	for _, k := range sortedKeys(set) {
		if !seen[k] {
			write(k, set[k])
		}
	}
	return append(out, '}')
}

// member is one name and value of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// membersOf returns the members of a JSON object in their order.
func membersOf(object json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: %.60q", object)
	}
	var all []member
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{}
		m.key, _ = k.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err == nil {
		return nil, fmt.Errorf("more than one JSON value: %.60q", object)
	}
	return all, nil
}
