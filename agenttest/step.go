package agenttest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Step is the answer to one request. Steps are values: a modifier returns a
// changed copy, and one Step may answer any number of requests; message and
// tool_use ids are made anew for each. The zero Step is an empty answer.
type Step struct {
	blocks []block

	id, model    string
	stopReason   string // "": tool_use when a block is one, else end_turn
	stopSequence *string
	stopDetails  json.RawMessage
	usage        *counts
	empty        bool

	header http.Header
	status int    // of a raw or error answer
	body   string // of a raw answer
	mime   string // of a raw answer
	failed *apiError

	delay     time.Duration
	each      time.Duration
	never     bool
	hold      *Point
	holdPing  time.Duration
	pings     int
	deltaSize int // bytes; 0: default, < 0: one delta a block
	chunk     int
	framing   Framing
	plain     bool // answer without streaming, whatever was asked

	fault    *apiError // error event
	faultAt  Point
	cutByte  *int
	cutEvent *Point
	endless  string // the stream ends before the last event of this type

	checks []func(*Request) error
}

// block is one content block of an answer, as the script gives it.
type block struct {
	kind      string // text, thinking, redacted_thinking, tool_use or raw
	text      string // also the data of redacted_thinking
	signature string
	id, name  string
	input     string // JSON text, perhaps not valid on purpose
	raw       json.RawMessage
}

// counts is the usage of an answer, in tokens.
type counts struct {
	in, out, write5m, write1h, read int
}

// Usage of an answer that sets none.
const (
	defaultInputTokens  = 10
	defaultOutputTokens = 5
)

// Text answers with one text block.
func Text(text string) Step {
	return Step{blocks: []block{{kind: "text", text: text}}}
}

// Thinking answers with one thinking block. An empty text with a signature is
// what the API sends when thinking is not displayed. Join it with others by
// Blocks; alone it is a response that only thought.
func Thinking(text, signature string) Step {
	return Step{blocks: []block{{kind: "thinking", text: text, signature: signature}}}
}

// Redacted answers with one redacted_thinking block.
func Redacted(data string) Step {
	return Step{blocks: []block{{kind: "redacted_thinking", text: data}}}
}

// Call answers with one call of the tool name; input is the JSON text of its
// arguments and is sent as it is, so that it may be wrong on purpose. The id
// is new for every answer.
func Call(name, input string) Step { return CallID("", name, input) }

// CallID is Call with a tool_use id chosen by the test; "" makes a new one.
func CallID(id, name, input string) Step {
	return Step{blocks: []block{{kind: "tool_use", id: id, name: name, input: input}}}
}

// CutInput answers with a call whose arguments stop in the middle, as when the
// output limit is reached: the block is closed, stop_reason is max_tokens.
func CutInput(name, partial string) Step {
	return StopReason(Call(name, partial), "max_tokens")
}

// Raw answers with one block given as JSON: it arrives whole in its
// content_block_start event. Use it for server tool blocks and block types
// that do not exist yet.
func Raw(blockJSON string) Step {
	return Step{blocks: []block{{kind: "raw", raw: json.RawMessage(blockJSON)}}}
}

// Blocks answers with the blocks of all steps in one response. Everything else
// (usage, faults, checks) is taken from the first step.
func Blocks(steps ...Step) Step {
	var s Step
	for i, part := range steps {
		if i == 0 {
			s = part
			s.blocks = slices.Clone(part.blocks)
			continue
		}
		s.blocks = append(s.blocks, part.blocks...)
		if s.stopReason == "" {
			s.stopReason = part.stopReason
		}
	}
	return s
}

// Empty answers with no block, stop_reason end_turn and a usage of zero: the
// reply of a broken upstream. With Usage it is the valid empty reply.
func Empty() Step { return Step{empty: true} }

// Refusal answers with no block and stop_reason refusal. For a refusal after
// some text use StopReason(Text(…), "refusal").
func Refusal() Step {
	return Step{
		stopReason:  "refusal",
		stopDetails: json.RawMessage(`{"type":"refusal","category":null,"explanation":null}`),
	}
}

// HTTPError answers with an error status and the API's error body. The headers
// are names and values in turn, such as "retry-after", "2".
func HTTPError(status int, errorType, message string, headers ...string) Step {
	s := Step{status: status, failed: &apiError{Type: errorType, Message: message}}
	for i := 0; i+1 < len(headers); i += 2 {
		s = Header(s, headers[i], headers[i+1])
	}
	return s
}

// RawSSE answers with status 200 and this event stream, byte for byte.
func RawSSE(body string) Step {
	return RawHTTP(http.StatusOK, "text/event-stream; charset=utf-8", body)
}

// RawHTTP answers with this status, content type and body, byte for byte.
func RawHTTP(status int, contentType, body string) Step {
	return Step{status: status, mime: contentType, body: body}
}

// StopReason sets the stop_reason. Without it a response with a tool_use block
// has tool_use and any other end_turn.
func StopReason(s Step, reason string) Step {
	s.stopReason = reason
	return s
}

// StopSequence sets stop_reason stop_sequence and the sequence that matched.
func StopSequence(s Step, sequence string) Step {
	s.stopReason, s.stopSequence = "stop_sequence", &sequence
	return s
}

// Usage sets the token counts: uncached input, output, cache writes that live
// 5 minutes and 1 hour, cache reads. Without it an answer reports 10 in, 5 out
// (Empty: none). As in the API, the split of the writes is only in
// message_start; the output count there is 1 (0 when out is 0) and final only
// in message_delta.
func Usage(s Step, in, out, cacheWrite5m, cacheWrite1h, cacheRead int) Step {
	s.usage = &counts{in: in, out: out, write5m: cacheWrite5m, write1h: cacheWrite1h, read: cacheRead}
	return s
}

// Model sets the model that the response names; without it, the one asked for.
func Model(s Step, name string) Step {
	s.model = name
	return s
}

// ID sets the message id; without it every answer has a new one.
func ID(s Step, id string) Step {
	s.id = id
	return s
}

// Header adds a response header.
func Header(s Step, name, value string) Step {
	s.header = maps.Clone(s.header)
	if s.header == nil {
		s.header = http.Header{}
	}
	s.header[http.CanonicalHeaderKey(name)] = append(slices.Clone(s.header.Values(name)), value)
	return s
}

// NonStreaming answers with one JSON object even when a stream was asked for.
func NonStreaming(s Step) Step {
	s.plain = true
	return s
}

// Check adds a condition on the request. When it returns an error the request
// gets status 400 with that text instead of the answer, and the test fails.
func Check(s Step, check func(*Request) error) Step {
	s.checks = append(slices.Clip(s.checks), check)
	return s
}
