package history

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/turnwright/turnwright/message"
)

// Assembler assembles the requests of one chain and remembers what cannot
// change any more, so that a long chain costs no more than its newest
// exchange. When chain or options are no longer those of the last call it
// starts over by itself. The zero value is ready; one goroutine uses it at a
// time, and the requests that it returned may be read meanwhile.
type Assembler struct {
	opts    Options
	system  fixed
	prelude fixed

	done   int             // items that are closed
	last   *node           // of the last closed item; identifies the chain up to there
	out    []Message       // closed messages, then those that were handed out after them
	closed int             // messages of out that are closed
	marks  []Mark          // the caller's marks in closed messages
	calls  map[string]bool // ids of the calls in closed messages; nil: never used
	server map[string]bool // ids of the server tools' calls in closed messages
}

// fixed is a list of blocks that does not come from the chain.
type fixed struct {
	parts  []part
	blocks []message.Block // what is sent
}

// newFixed leaves out what could not be sent; textOnly leaves out all but text.
func newFixed(src []message.Block, textOnly bool) fixed {
	var f fixed
	for _, b := range src {
		if textOnly && b.Type() != message.TypeText {
			continue
		}
		if p := newPart(b); p.kind == kindText {
			f.parts = append(f.parts, p)
			f.blocks = append(f.blocks, p.block)
		}
	}
	return f
}

// Assemble returns the request for the chain items. It does not fail: what
// the API would refuse is left out, replaced or filled in.
func (a *Assembler) Assemble(items []Item, o Options) Request {
	if !a.continues(items, o) {
		*a = Assembler{calls: map[string]bool{}, server: map[string]bool{}, system: newFixed(o.System, true), prelude: newFixed(o.Prelude, false)}
	}
	a.opts = o

	segs := a.segments(items)
	// What stands before the last segment with an answer is settled: whatever
	// is appended goes behind that answer.
	solid := len(segs) - 1
	for solid > 0 && !segs[solid].speaks(false) {
		solid--
	}
	for i := range solid {
		a.close(&segs[i])
	}
	if solid > 0 {
		a.done = segs[solid].start
		a.last = items[a.done-1].node
		segs = segs[solid:]
	}

	w := a.writer()
	for i := range segs {
		w.segment(&segs[i], i == len(segs)-1)
	}
	r := Request{System: a.system.blocks, Messages: a.handOut(w.out), ThinkingCut: w.cut}
	r.Marks = a.placeMarks(r.Messages, w.marks)
	return r
}

// continues reports whether items begin with what is closed already and o
// leaves that as it is.
func (a *Assembler) continues(items []Item, o Options) bool {
	if a.calls == nil || len(items) < a.done || o.Model != a.opts.Model ||
		!slices.Equal(o.Aliases, a.opts.Aliases) ||
		!slices.EqualFunc(o.Prelude, a.opts.Prelude, sameBlock) ||
		!slices.EqualFunc(o.System, a.opts.System, sameBlock) {
		return false
	}
	return a.done == 0 || (a.last != nil && items[a.done-1].node == a.last)
}

// close moves a segment that cannot change any more to the closed messages.
func (a *Assembler) close(s *segment) {
	w := a.writer()
	w.segment(s, false)
	a.closed = len(a.handOut(w.out))
	a.marks = append(a.marks, w.marks...)
	for _, p := range s.assistant {
		if p.kind == kindToolUse {
			a.calls[p.id] = true
		}
	}
	maps.Copy(a.server, w.server)
}

// handOut returns the closed messages followed by tail. Earlier requests share
// the array of a.out, so a message that was handed out is never overwritten.
func (a *Assembler) handOut(tail []Message) []Message {
	for i, m := range tail {
		at := a.closed + i
		switch {
		case at == len(a.out):
			a.out = append(a.out, m)
		case !sameMessage(a.out[at], m):
			a.out = append(append(make([]Message, 0, 2*at+4), a.out[:at]...), m)
		}
	}
	n := a.closed + len(tail)
	return a.out[:n:n]
}

func sameMessage(a, b Message) bool {
	return a.Role == b.Role && slices.EqualFunc(a.Blocks, b.Blocks, sameBlock)
}

func sameBlock(a, b message.Block) bool {
	return a.Type() == b.Type() && bytes.Equal(a.Raw(), b.Raw())
}

func (a *Assembler) writer() writer {
	return writer{first: a.closed, prelude: a.prelude.parts, closed: a.server}
}

// writer turns segments into messages.
type writer struct {
	first   int // index of out[0] in the request
	prelude []part
	out     []Message
	marks   []Mark          // the caller's
	cut     bool            // Request.ThinkingCut, so far
	closed  map[string]bool // calls of server tools that stand before out
	server  map[string]bool // those in out
}

// segment writes s; last says that nothing follows it.
func (w *writer) segment(s *segment, last bool) {
	said := s.said(last && len(s.user) == 0, func(id string) bool { return w.closed[id] || w.server[id] })
	var calls []string
	for _, p := range said {
		switch p.kind {
		case kindToolUse:
			calls = append(calls, p.id)
		case kindServerUse:
			if w.server == nil {
				w.server = map[string]bool{}
			}
			w.server[p.id] = true
		}
	}
	if last && len(s.user) == 0 {
		said = endTrimmed(said)
	}
	w.cut = s.cut && len(calls) > 0
	if len(said) > 0 {
		if w.first+len(w.out) == 0 {
			w.open()
		}
		w.message(message.RoleAssistant, said)
	}

	heard := make([]part, 0, len(s.user)+len(w.prelude))
	if w.first+len(w.out) == 0 {
		heard = append(heard, w.prelude...)
	}
	before := len(heard)
	for _, id := range calls {
		heard = append(heard, s.result(id))
	}
	for _, p := range s.user {
		if p.kind != kindToolResult {
			heard = append(heard, p)
		}
	}
	if len(heard) > before {
		w.message(message.RoleUser, heard)
	}
}

// endTrimmed returns the blocks without white space at the end of the last text: a
// request that ends with the assistant, after pause_turn, may not have it there.
func endTrimmed(said []part) []part {
	if len(said) == 0 || said[len(said)-1].block.Type() != message.TypeText {
		return said
	}
	p := said[len(said)-1]
	text := p.block.Text()
	if trimmed := strings.TrimRightFunc(text, unicode.IsSpace); trimmed != text {
		p.block = message.NewText(trimmed)
		said = append(slices.Clone(said[:len(said)-1]), p)
	}
	return said
}

// open writes the user message that the API wants before the assistant's.
func (w *writer) open() {
	if len(w.prelude) > 0 {
		w.message(message.RoleUser, w.prelude)
		return
	}
	w.message(message.RoleUser, []part{{block: message.NewText(NothingBefore)}})
}

func (w *writer) message(role message.Role, parts []part) {
	m := Message{Role: role, Blocks: make([]message.Block, len(parts))}
	for i, p := range parts {
		m.Blocks[i] = p.block
		if p.ttl != "" {
			w.marks = append(w.marks, Mark{InMessages, w.first + len(w.out), i, p.ttl})
		}
	}
	w.out = append(w.out, m)
}
