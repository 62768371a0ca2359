package history

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/apiblock"
	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// Texts that stand in for something that a request cannot do without or must
// not carry.
const (
	// UnknownOutcome is the result of a call that has none in the chain (S-44).
	UnknownOutcome = "Interrupted: the outcome of this call is unknown; it may have run in part. Check before repeating it."
	// NoOutput is the content of a tool result without content (T-129, B-109).
	NoOutput = "(no output)"
	// ElidedOutput replaces tool outputs that a compaction dropped (L-161).
	ElidedOutput = "[Old tool output removed to save context. Run the tool again if it is needed.]"
	// NothingBefore opens a request whose chain starts with the assistant.
	NothingBefore = "[The earlier part of this conversation is not available.]"

	unreadableOutput = "[Unreadable tool output.]"
)

type kind uint8

const (
	kindNone         kind = iota // never sent
	kindText                     // text, and every type without a rule of its own
	kindThinking                 // signed or redacted
	kindToolUse                  // a call of a client tool
	kindToolResult               // its result
	kindServerUse                // a call that the provider answers itself
	kindServerResult             // its result, in the same assistant message
)

// part is one block of an item, ready to be sent.
type part struct {
	kind    kind
	aborted bool   // of an interrupted response
	ttl     string // the caller's own cache mark, taken out of the block
	id      string
	model   string // thinking: who thought it
	msgID   string
	block   message.Block
	tokens  int64
}

// prepare returns the blocks of it that a request may carry.
func prepare(it Item) []part {
	if it.Flags&Notice != 0 || (it.Role != message.RoleUser && it.Role != message.RoleAssistant) {
		return nil
	}
	blocks := it.Blocks
	if len(blocks) == 0 && it.Text != nil {
		blocks = []message.Block{message.NewText(*it.Text)}
	}
	parts := make([]part, 0, len(blocks))
	for _, b := range blocks {
		if it.Role == message.RoleUser {
			b = apiblock.InMessage(b)
		}
		if it.Flags&Refused != 0 {
			b = apiblock.Withdraw(b)
		}
		if it.Flags&Oversize != 0 {
			b = apiblock.Shorten(b)
		}
		p := newPart(b)
		if !fits(p, it.Role) {
			continue
		}
		if it.Flags&Elided != 0 && p.kind == kindToolResult {
			p = elide(p)
		}
		p.aborted = it.Flags&Aborted != 0
		if it.Role == message.RoleAssistant {
			p.msgID = it.MsgID
		}
		if p.kind == kindThinking {
			p.model = it.Model
		}
		parts = append(parts, p)
	}
	return parts
}

// fits reports whether a message of that role may hold p.
func fits(p part, r message.Role) bool {
	switch p.kind {
	case kindNone:
		return false
	case kindToolResult:
		return r == message.RoleUser
	case kindThinking, kindToolUse, kindServerUse, kindServerResult:
		return r == message.RoleAssistant
	}
	// Requests stay valid under API version 2023-06-01 too.
	return r == message.RoleUser || (p.block.Type() != message.TypeImage && p.block.Type() != message.TypeDocument)
}

// newPart looks at b once, so that assembling need not.
func newPart(b message.Block) part {
	if whole := rawjson.WholeText(b.Raw()); len(whole) != len(b.Raw()) {
		if fixed, err := message.ParseBlock(whole); err == nil {
			b = fixed
		}
	}
	raw := []byte(b.Raw())
	// encoding/json takes "Type" for "type" when it parses a block, the API does not.
	if typ, _ := unquote(member(raw, "type")); typ == "" || typ != b.Type() {
		return part{}
	}
	p := part{kind: kindText, block: b}
	switch typ := b.Type(); {
	case typ == message.TypeText:
		if blank(member(raw, "text")) {
			return part{}
		}
	case typ == message.TypeThinking:
		p.kind = kindThinking
		if _, ok := unquote(member(raw, "thinking")); !ok || !filled(member(raw, "signature")) {
			return part{}
		}
	case typ == message.TypeRedactedThinking:
		p.kind = kindThinking
		if !filled(member(raw, "data")) {
			return part{}
		}
	case typ == message.TypeToolUse:
		p.kind = kindToolUse
		p.id, _ = unquote(member(raw, "id"))
		in := member(raw, "input")
		if p.id == "" || !filled(member(raw, "name")) || len(in) == 0 || in[0] != '{' {
			return part{}
		}
	case typ == message.TypeToolResult:
		p.kind = kindToolResult
		p.id, _ = unquote(member(raw, "tool_use_id"))
		if p.id == "" {
			return part{}
		}
		p.block = withContent(p.block, p.id)
	case strings.HasSuffix(typ, "_tool_use"):
		p.kind = kindServerUse
		p.id, _ = unquote(member(raw, "id"))
		if p.id == "" {
			return part{}
		}
	case strings.HasSuffix(typ, "_tool_result"):
		p.kind = kindServerResult
		p.id, _ = unquote(member(raw, "tool_use_id"))
		if p.id == "" {
			return part{}
		}
	}
	p.block, p.ttl = takeMark(p.block)
	if p.kind == kindThinking {
		p.ttl = "" // the API refuses marks on thinking
	}
	p.tokens = tokens(p.block.Type(), p.block.Raw())
	return p
}

// takeMark returns b without its cache mark, and the mark.
func takeMark(b message.Block) (message.Block, string) {
	if !bytes.Contains(b.Raw(), []byte("cache")) && !bytes.ContainsRune(b.Raw(), '\\') {
		return b, ""
	}
	mark := member(b.Raw(), "cache_control")
	if mark == nil {
		return b, ""
	}
	ttl := ""
	if len(mark) > 0 && mark[0] == '{' {
		ttl = ttl5m
		if v, _ := unquote(member(mark, "ttl")); v == ttl1h {
			ttl = ttl1h
		}
	}
	if c, err := message.ParseBlock(without(b.Raw(), "cache_control")); err == nil {
		b = c
	}
	return b, ttl
}

// withContent returns the tool_result b with content that the API takes: not
// empty, no empty text in it, and no marks inside (they could not be counted
// by their place in the request).
func withContent(b message.Block, id string) message.Block {
	content := member(b.Raw(), "content")
	replace := func(text string) message.Block {
		r, _ := b.ToolResult()
		isError := string(member(b.Raw(), "is_error")) == "true"
		nb := message.NewToolResult(id, message.TextContent(text), isError || r.IsError)
		if mark := member(b.Raw(), "cache_control"); mark != nil {
			open := bytes.TrimSuffix(nb.Raw(), []byte("}"))
			raw := append(appendMember(bytes.Clone(open), []byte("cache_control"), mark), '}')
			if m, err := message.ParseBlock(raw); err == nil {
				return m
			}
		}
		return nb
	}
	if len(content) == 0 || string(content) == "null" {
		return replace(NoOutput)
	}
	switch content[0] {
	case '"':
		if blank(content) {
			return replace(NoOutput)
		}
		return b
	case '[':
	default:
		return replace(unreadableOutput)
	}
	kept, changed := [][]byte(nil), false
	for e := range elements(content) {
		typ, ok := unquote(member(e, "type"))
		if !ok || typ == "" {
			return replace(unreadableOutput)
		}
		if typ == message.TypeText && blank(member(e, "text")) {
			changed = true
			continue
		}
		if bare := without(e, "cache_control"); bare != nil {
			e, changed = bare, true
		}
		if b, err := message.ParseBlock(e); err == nil {
			if fit := apiblock.InResult(b); !sameBlock(b, fit) {
				e, changed = fit.Raw(), true
			}
		}
		kept = append(kept, e)
	}
	if len(kept) == 0 {
		return replace(NoOutput)
	}
	if !changed {
		return b
	}
	out := []byte{'{'}
	for k, v := range members(b.Raw()) {
		if keyIs(k, "content") {
			v = append(append([]byte{'['}, bytes.Join(kept, []byte(","))...), ']')
		}
		out = appendMember(out, k, v)
	}
	nb, err := message.ParseBlock(append(out, '}'))
	if err != nil {
		return replace(unreadableOutput)
	}
	return nb
}

// elide returns p with the notice as its output, or p when that is no shorter.
func elide(p part) part {
	isError := string(member(p.block.Raw(), "is_error")) == "true"
	b := message.NewToolResult(p.id, message.TextContent(ElidedOutput), isError)
	if len(b.Raw()) >= len(p.block.Raw()) {
		return p
	}
	p.block, p.tokens = b, tokens(b.Type(), b.Raw())
	return p
}

// filled reports whether val is a string that is not empty.
func filled(val []byte) bool { return len(val) > 2 && val[0] == '"' }

// blank reports whether val is no string, or one of white space only: the API
// refuses such a text block.
func blank(val []byte) bool {
	if len(val) < 2 || val[0] != '"' {
		return true
	}
	s := val[1 : len(val)-1]
	for len(s) > 0 {
		switch {
		case s[0] == '\\' && len(s) > 1 && strings.IndexByte("ntrf", s[1]) >= 0:
			s = s[2:]
		case s[0] == '\\' && len(s) > 1 && s[1] == 'u':
			t, _ := unquote(val)
			return strings.TrimSpace(t) == ""
		default:
			r, n := utf8.DecodeRune(s)
			if !unicode.IsSpace(r) {
				return false
			}
			s = s[n:]
		}
	}
	return true
}
