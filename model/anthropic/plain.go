package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/turnwright/turnwright/message"
)

// form is what the body of a 200 answer turns out to be.
type form int

const (
	formEvents form = iota
	formObject
	formOther
)

// sniff tells a stream of events from a JSON object from anything else. The
// content type decides when it says events; gateways often lose it, so that
// otherwise the first bytes do.
func sniff(answer *http.Response) (io.Reader, form, error) {
	typ := answer.Header.Get("Content-Type")
	if typ != "text/event-stream" { // which is usual and needs no parser
		typ, _, _ = mime.ParseMediaType(typ)
	}
	if typ == "text/event-stream" {
		return answer.Body, formEvents, nil
	}
	r := bufio.NewReader(answer.Body)
	for {
		b, err := r.Peek(1)
		if errors.Is(err, io.EOF) {
			return r, formOther, nil
		}
		if err != nil {
			return r, formOther, err
		}
		if strings.IndexByte(" \t\r\n", b[0]) < 0 {
			break
		}
		_, _ = r.Discard(1)
	}
	head, err := r.Peek(len("event:"))
	if err != nil && !errors.Is(err, io.EOF) {
		return r, formOther, err
	}
	if len(head) > 0 && head[0] == '{' {
		return r, formObject, nil
	}
	for _, p := range [...]string{"event:", "data:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(head, []byte(p)) {
			return r, formEvents, nil
		}
	}
	return r, formOther, nil
}

// readObject uses an answer that was not streamed: the events that it would
// have been are made from it, so that whoever listens sees one form only.
func (s *stream) readObject(body io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(body, maxEventSize+1))
	if err != nil {
		return err
	}
	if len(raw) > maxEventSize {
		return malformed("%v: more than %d bytes", errEventSize, maxEventSize)
	}
	var m struct {
		Type         string            `json:"type"`
		ID           string            `json:"id"`
		Model        string            `json:"model"`
		Content      []json.RawMessage `json:"content"`
		StopReason   *string           `json:"stop_reason"`
		StopSequence *string           `json:"stop_sequence"`
		StopDetails  json.RawMessage   `json:"stop_details"`
		Usage        json.RawMessage   `json:"usage"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return malformed("%v: %.120q", err, raw)
	}
	switch {
	case m.Type == "error":
		var ev wireEvent
		_ = json.Unmarshal(raw, &ev) // what is missing stays empty
		return streamError(&ev)
	case m.Type != "message" || m.Content == nil:
		return malformed("not a Messages API object: %.120q", raw)
	}
	if len(m.Usage) == 0 {
		m.Usage = json.RawMessage("{}")
	}
	events := []any{startEvent{"message_start", withMembers(raw, map[string]json.RawMessage{
		"content": json.RawMessage("[]"), "stop_reason": json.RawMessage("null"), "stop_sequence": json.RawMessage("null"),
	})}}
	for i, b := range m.Content {
		events = append(events, blockEvents(i, b)...)
	}
	events = append(events,
		deltaEvent{"message_delta", stopDelta{m.StopReason, m.StopSequence, m.StopDetails}, m.Usage},
		typeEvent{"message_stop"})
	for _, ev := range events {
		data, err := message.Encode(ev)
		if err != nil {
			return malformed("%v", err)
		}
		if err := s.use(frame{data: data}); err != nil {
			return err
		}
	}
	if !s.asm.resp.Complete() {
		return errCut
	}
	return nil
}

type typeEvent struct {
	Type string `json:"type"`
}

type startEvent struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message"`
}

type blockEvent struct {
	Type  string          `json:"type"`
	Index int             `json:"index"`
	Block json.RawMessage `json:"content_block,omitempty"`
	Delta any             `json:"delta,omitempty"`
}

type deltaEvent struct {
	Type  string          `json:"type"`
	Delta stopDelta       `json:"delta"`
	Usage json.RawMessage `json:"usage"`
}

type stopDelta struct {
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	StopDetails  json.RawMessage `json:"stop_details,omitempty"`
}

// blockEvents returns the events of one whole block. Text, thinking and tool
// input come as deltas, as listeners expect them (M-47).
func blockEvents(i int, block json.RawMessage) []any {
	var b struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Input     json.RawMessage `json:"input"`
	}
	_ = json.Unmarshal(block, &b) // a wrong shape is found when the start is used
	type m = map[string]json.RawMessage
	empty := json.RawMessage(`""`)
	start, deltas := block, []any(nil)
	switch b.Type {
	case message.TypeText:
		start = withMembers(block, m{"text": empty})
		deltas = append(deltas, map[string]string{"type": "text_delta", "text": b.Text})
	case message.TypeThinking:
		start = withMembers(block, m{"thinking": empty, "signature": empty})
		deltas = append(deltas, map[string]string{"type": "thinking_delta", "thinking": b.Thinking},
			map[string]string{"type": "signature_delta", "signature": b.Signature})
	case message.TypeToolUse:
		start = withMembers(block, m{"input": json.RawMessage("{}")})
		deltas = append(deltas, map[string]string{"type": "input_json_delta", "partial_json": string(b.Input)})
	}
	all := []any{blockEvent{Type: "content_block_start", Index: i, Block: start}}
	for _, d := range deltas {
		all = append(all, blockEvent{Type: "content_block_delta", Index: i, Delta: d})
	}
	return append(all, blockEvent{Type: "content_block_stop", Index: i})
}
