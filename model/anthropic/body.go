package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// The two forms of a cache mark (design decision 2). Five minutes is the
// API's default and not written.
const (
	mark5m = `"cache_control":{"type":"ephemeral"}`
	mark1h = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
)

// body returns the JSON body of r. The bytes of blocks and tools are referred
// to as they are; a marked one gets its cache mark spliced in. The members of
// extra (sorted out from Config.ExtraBody) and of r.Extra stand in place of
// the request's own, the latter winning.
func body(r *model.Request, extra []member) (parts, error) {
	if len(r.Extra) > 0 {
		own, err := membersOf(r.Extra)
		if err != nil {
			return nil, fmt.Errorf("extra: %w", err)
		}
		extra = append(slices.Clip(extra), own...)
	}
	marks, err := markTable(r)
	if err != nil {
		return nil, err
	}
	w := newBodyWriter(r, marks)
	if len(extra) > 0 {
		w.replaced = make(map[string]json.RawMessage, len(extra))
		for _, m := range extra {
			w.replaced[m.key] = m.value
		}
	}
	w.text("model", r.Model)
	w.raw("max_tokens", strconv.AppendInt(nil, int64(r.MaxTokens), 10))
	w.raw("stream", []byte("true"))
	w.raw("thinking", r.Thinking)
	w.raw("output_config", r.OutputConfig)
	w.raw("tool_choice", r.ToolChoice)
	w.raw("metadata", r.Metadata)
	if len(r.Tools) > 0 && w.key("tools") {
		w.glue('[')
		for i, t := range r.Tools {
			w.item(i, t, place{model.InTools, i, 0})
		}
		w.glue(']')
	}
	if len(r.System) > 0 && w.key("system") {
		w.blocks(r.System, model.InSystem, 0)
	}
	if w.key("messages") {
		w.glue('[')
		for i, m := range r.Messages {
			if i > 0 {
				w.glue(',')
			}
			w.glue([]byte(`{"role":"`)...)
			w.glue([]byte(m.Role)...)
			w.glue([]byte(`","content":`)...)
			w.blocks(m.Blocks, model.InMessages, i)
			w.glue('}')
		}
		w.glue(']')
	}
	for _, k := range sortedKeys(w.replaced) {
		w.name(encoded(k))
		w.refer(w.replaced[k])
	}
	w.glue('}')
	return w.done(), nil
}

func sortedKeys(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }

// place is where a mark stands.
type place struct {
	where model.Where
	index int
	block int
}

// markTable returns the marks by place. A mark that points nowhere is a fault
// of the caller that the API would hide: it costs a cache miss, no error.
func markTable(r *model.Request) (map[place]string, error) {
	if len(r.Marks) == 0 {
		return nil, nil
	}
	table := make(map[place]string, len(r.Marks))
	for _, m := range r.Marks {
		p := place{m.Where, m.Index, m.Block}
		ok := false
		switch m.Where {
		case model.InTools:
			p.block = 0
			ok = m.Index >= 0 && m.Index < len(r.Tools)
		case model.InSystem:
			p.index = 0
			ok = m.Block >= 0 && m.Block < len(r.System)
		case model.InMessages:
			ok = m.Index >= 0 && m.Index < len(r.Messages) && m.Block >= 0 && m.Block < len(r.Messages[m.Index].Blocks)
		}
		if !ok {
			return nil, fmt.Errorf("cache mark %+v is outside the request", m)
		}
		switch m.TTL {
		case "5m", "":
			table[p] = mark5m
		case "1h":
			table[p] = mark1h
		default:
			return nil, fmt.Errorf("cache mark: life time %q is neither 5m nor 1h", m.TTL)
		}
	}
	return table, nil
}

// bodyWriter puts a body together from the bytes of blocks and what stands
// between them.
type bodyWriter struct {
	parts    parts
	buf      []byte // all that stands between; earlier parts point into it
	from     int    // buf[from:] is not in parts yet
	small    int    // what is shorter is copied
	begun    bool   // a member has been written: a comma comes before the next
	marks    map[place]string
	replaced map[string]json.RawMessage // written at the end instead
}

func newBodyWriter(r *model.Request, marks map[place]string) *bodyWriter {
	pieces, size := len(r.System)+len(r.Tools), 0
	for _, t := range r.Tools {
		size += len(t)
	}
	for _, b := range r.System {
		size += len(b.Raw())
	}
	for _, m := range r.Messages {
		pieces += len(m.Blocks)
		for _, b := range m.Blocks {
			size += len(b.Raw())
		}
	}
	between := 512 + len(r.Messages)*len(`{"role":"assistant","content":[]},`) + 2*pieces
	w := &bodyWriter{marks: marks, small: 64}
	if size+between <= onePiece {
		w.small = onePiece
		w.buf = make([]byte, 0, size+between)
	} else {
		w.parts = make(parts, 0, 2*pieces+8)
		w.buf = make([]byte, 0, between)
	}
	w.glue('{')
	return w
}

// glue writes the few bytes between blocks.
func (w *bodyWriter) glue(b ...byte) { w.buf = append(w.buf, b...) }

// refer writes b without copying it when that pays.
func (w *bodyWriter) refer(b []byte) {
	if len(b) < w.small {
		w.glue(b...)
		return
	}
	w.flush()
	w.parts = append(w.parts, b)
}

func (w *bodyWriter) flush() {
	if n := len(w.buf); n > w.from {
		w.parts = append(w.parts, w.buf[w.from:n:n])
		w.from = n
	}
}

func (w *bodyWriter) done() parts {
	w.flush()
	return w.parts
}

// key begins a member and reports whether its value is wanted.
func (w *bodyWriter) key(k string) bool {
	if _, ok := w.replaced[k]; ok {
		return false
	}
	w.name([]byte(`"` + k + `"`))
	return true
}

// name writes a member's name, given as JSON.
func (w *bodyWriter) name(quoted []byte) {
	if w.begun {
		w.glue(',')
	}
	w.begun = true
	w.glue(quoted...)
	w.glue(':')
}

func (w *bodyWriter) raw(k string, v []byte) {
	if len(v) > 0 && w.key(k) {
		w.refer(v)
	}
}

func (w *bodyWriter) text(k, v string) { w.raw(k, encoded(v)) }

// encoded returns s as JSON; a string always encodes.
func encoded(s string) []byte { return rawjson.AppendString(nil, s) }

func (w *bodyWriter) blocks(list []message.Block, where model.Where, index int) {
	w.glue('[')
	for i, b := range list {
		w.item(i, b.Raw(), place{where, index, i})
	}
	w.glue(']')
}

// item writes one element of a list, with its mark when it has one.
func (w *bodyWriter) item(i int, raw []byte, p place) {
	if i > 0 {
		w.glue(',')
	}
	mark := ""
	if w.marks != nil {
		mark = w.marks[p]
	}
	if mark == "" || marked(raw) {
		w.refer(raw)
		return
	}
	open := bytes.TrimRight(raw, " \t\r\n")
	open = bytes.TrimRight(open[:max(len(open)-1, 0)], " \t\r\n")
	w.refer(open)
	if len(open) > 1 {
		w.glue(',')
	}
	w.glue([]byte(mark)...)
	w.glue('}')
}

// marked reports whether the object has a cache mark of its own already, as
// blocks of the user's may; two members of one name would be refused.
func marked(raw []byte) bool {
	const key = `"cache_control"`
	if !bytes.Contains(raw, []byte(key)) {
		return false
	}
	return memberOf(raw, "cache_control") != nil
}

// parts is a body in pieces. Most are the blocks' own bytes: a session's
// history is neither copied for a request nor held twice while it is answered.
type parts [][]byte

func (p parts) size() (n int64) {
	for _, b := range p {
		n += int64(len(b))
	}
	return n
}

// onePiece is how large a body is, in bytes, that is put together in one piece.
// It fits in the transport's buffer with the headers. net/http sends both with
// one write only when it knows the type of the body's reader.
const onePiece = writeBuffer - 2<<10

func (p parts) reader() io.ReadCloser {
	if len(p) == 1 {
		return io.NopCloser(bytes.NewReader(p[0]))
	}
	return &partsReader{left: p}
}

// partsReader reads parts in order. Its Close is without effect.
type partsReader struct {
	left parts
	off  int // in the first of left
}

func (r *partsReader) Read(b []byte) (n int, err error) {
	for n < len(b) && len(r.left) > 0 {
		c := copy(b[n:], r.left[0][r.off:])
		n += c
		if r.off += c; r.off == len(r.left[0]) {
			r.left, r.off = r.left[1:], 0
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *partsReader) Close() error { return nil }
