package agenttest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// answer is a Step made concrete for one request: ids and model are known.
type answer struct {
	step       Step
	id, model  string
	blocks     []block
	stopReason string
	usage      counts
}

// answer resolves what the step leaves open. newID makes the nth id of a kind.
func (s Step) answer(model string, newID func(kind string) string) answer {
	a := answer{step: s, id: s.id, model: s.model, stopReason: s.stopReason}
	if a.id == "" {
		a.id = newID("msg")
	}
	if a.model == "" {
		a.model = model
	}
	a.blocks = make([]block, len(s.blocks))
	copy(a.blocks, s.blocks)
	calls := false
	for i := range a.blocks {
		if a.blocks[i].kind != "tool_use" {
			continue
		}
		calls = true
		if a.blocks[i].id == "" {
			a.blocks[i].id = newID("toolu")
		}
	}
	if a.stopReason == "" {
		a.stopReason = "end_turn"
		if calls {
			a.stopReason = "tool_use"
		}
	}
	switch {
	case s.usage != nil:
		a.usage = *s.usage
	case !s.empty:
		a.usage = counts{in: defaultInputTokens, out: defaultOutputTokens}
	}
	return a
}

// Body returns the event stream that answers a first request for the model
// with s, ids included, before any cut. Its length is that of every answer
// with s to a request for a model with a name of that length.
func Body(s Step, model string) []byte {
	body, _ := s.answer(model, new(idSource).next).stream()
	return body
}

// event is one event of a stream, not yet framed.
type event struct {
	kind string
	data []byte
	done int // finished blocks when it has been sent
}

// events returns the events of the whole answer, pings included.
func (a answer) events() []event {
	out := make([]event, 0, 4+6*len(a.blocks)+a.step.pings)
	add := func(kind string, done int, data []byte) {
		out = append(out, event{kind: kind, data: data, done: done})
	}
	add("message_start", 0, a.start())
	for range a.step.pings {
		add("ping", 0, []byte(`{"type":"ping"}`))
	}
	for i, b := range a.blocks {
		index := strconv.Itoa(i)
		add("content_block_start", i, join(`{"type":"content_block_start","index":`, index, `,"content_block":`, string(b.opening()), `}`))
		for _, delta := range b.deltas(a.step.deltaSize) {
			add("content_block_delta", i, join(`{"type":"content_block_delta","index":`, index, `,"delta":`, string(delta), `}`))
		}
		add("content_block_stop", i+1, join(`{"type":"content_block_stop","index":`, index, `}`))
	}
	n := len(a.blocks)
	add("message_delta", n, join(`{"type":"message_delta","delta":{`, a.stop(), `},"usage":{`, a.usage.total(), `}}`))
	add("message_stop", n, []byte(`{"type":"message_stop"}`))
	return out
}

func (a answer) start() []byte {
	first := a.usage
	first.out = min(first.out, 1)
	return join(`{"type":"message_start","message":{`, a.head(), `,"content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{`, first.full(), `}}}`)
}

// message returns the answer as one JSON object.
func (a answer) message() []byte {
	var content bytes.Buffer
	for i, b := range a.blocks {
		if i > 0 {
			content.WriteByte(',')
		}
		content.Write(b.whole())
	}
	return join(`{`, a.head(), `,"content":[`, content.String(), `],`, a.stop(), `,"usage":{`, a.usage.full(), `}}`)
}

func (a answer) head() string {
	return `"id":` + quote(a.id) + `,"type":"message","role":"assistant","model":` + quote(a.model)
}

func (a answer) stop() string {
	sequence, details := "null", "null"
	if a.step.stopSequence != nil {
		sequence = quote(*a.step.stopSequence)
	}
	if a.step.stopDetails != nil {
		details = string(a.step.stopDetails)
	}
	return `"stop_reason":` + quote(a.stopReason) + `,"stop_sequence":` + sequence + `,"stop_details":` + details
}

// total is the usage of message_delta: whole-message counts, no split.
func (c counts) total() string {
	return `"input_tokens":` + strconv.Itoa(c.in) +
		`,"cache_creation_input_tokens":` + strconv.Itoa(c.write5m+c.write1h) +
		`,"cache_read_input_tokens":` + strconv.Itoa(c.read) +
		`,"output_tokens":` + strconv.Itoa(c.out)
}

func (c counts) full() string {
	return c.total() +
		`,"cache_creation":{"ephemeral_5m_input_tokens":` + strconv.Itoa(c.write5m) +
		`,"ephemeral_1h_input_tokens":` + strconv.Itoa(c.write1h) + `},"service_tier":"standard"`
}

// opening is the block as content_block_start has it.
func (b block) opening() []byte {
	switch b.kind {
	case "text":
		return []byte(`{"type":"text","text":""}`)
	case "thinking":
		return []byte(`{"type":"thinking","thinking":"","signature":""}`)
	case "tool_use":
		return join(`{"type":"tool_use","id":`, quote(b.id), `,"name":`, quote(b.name), `,"input":{}}`)
	}
	return b.whole()
}

// whole is the finished block. Input that is no JSON object becomes {}, which
// is also what a client has to send back for it.
func (b block) whole() []byte {
	switch b.kind {
	case "text":
		return join(`{"type":"text","text":`, quote(b.text), `}`)
	case "thinking":
		return join(`{"type":"thinking","thinking":`, quote(b.text), `,"signature":`, quote(b.signature), `}`)
	case "redacted_thinking":
		return join(`{"type":"redacted_thinking","data":`, quote(b.text), `}`)
	case "tool_use":
		input := b.input
		if !isObject([]byte(input)) || !json.Valid([]byte(input)) {
			input = `{}`
		}
		return join(`{"type":"tool_use","id":`, quote(b.id), `,"name":`, quote(b.name), `,"input":`, input, `}`)
	}
	return b.raw
}

func (b block) deltas(size int) [][]byte {
	var out [][]byte
	wrap := func(kind, field string, parts []string) {
		for _, p := range parts {
			out = append(out, join(`{"type":"`, kind, `",`, `"`, field, `":`, quote(p), `}`))
		}
	}
	switch b.kind {
	case "text":
		wrap("text_delta", "text", pieces(b.text, size))
	case "thinking":
		wrap("thinking_delta", "thinking", pieces(b.text, size))
		if b.signature != "" {
			wrap("signature_delta", "signature", []string{b.signature})
		}
	case "tool_use":
		// The API opens the input with an empty piece, and sends nothing more
		// for a call without arguments.
		wrap("input_json_delta", "partial_json", []string{""})
		if b.input != "{}" {
			wrap("input_json_delta", "partial_json", pieces(b.input, size))
		}
	}
	return out
}

// pieces cuts s between characters into pieces of size bytes; size 0 makes up
// to four pieces, a negative size one.
func pieces(s string, size int) []string {
	if s == "" {
		return nil
	}
	if size < 0 {
		return []string{s}
	}
	if size == 0 {
		size = (len(s) + 3) / 4
	}
	var out []string
	for len(s) > size {
		n := size
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		if n == len(s) {
			break
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return append(out, s)
}

func join(parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out := make([]byte, 0, n)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// quote returns s as a JSON string without HTML escapes, as the API writes.
func quote(s string) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

func isObject(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '{'
}
