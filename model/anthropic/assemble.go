package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// wireEvent is what the assembler reads of a streaming event.
type wireEvent struct {
	Type         string          `json:"type"`
	Index        int             `json:"index"`
	Message      *wireStart      `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        wireDelta       `json:"delta"`
	Usage        json.RawMessage `json:"usage"`
	Error        *wireError      `json:"error"`
	RequestID    string          `json:"request_id"`
}

type wireStart struct {
	ID    string          `json:"id"`
	Model string          `json:"model"`
	Usage json.RawMessage `json:"usage"`
}

type wireDelta struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	PartialJSON  string          `json:"partial_json"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Citation     json.RawMessage `json:"citation"`
	StopReason   string          `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	StopDetails  json.RawMessage `json:"stop_details"`
}

type wireError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// decode reads one event. The type inside the data counts; a server that
// leaves it out has it in the event field. Types that this version does not
// know may have members of any shape.
func decode(f frame, ev *wireEvent) error {
	if *ev = (wireEvent{}); decodeUsual(f.data, ev) {
		ev.Type = cmp.Or(ev.Type, f.name)
		return nil
	}
	*ev = wireEvent{}
	err := json.Unmarshal(f.data, ev)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		var head struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
			Delta struct {
				Type string `json:"type"`
			} `json:"delta"`
		}
		_ = json.Unmarshal(f.data, &head) // what has another shape stays empty
		known := knownEvent[cmp.Or(head.Type, f.name)]
		if head.Type == "content_block_delta" {
			known = head.Delta.Type == "" || knownDelta[head.Delta.Type]
		}
		if !known && head.Type+f.name != "" {
			*ev = wireEvent{Type: head.Type, Index: head.Index, Delta: wireDelta{Type: head.Delta.Type}}
			err = nil
		}
	}
	ev.Type = cmp.Or(ev.Type, f.name)
	return err
}

var knownEvent = map[string]bool{
	"message_start": true, "content_block_start": true, "content_block_delta": true,
	"content_block_stop": true, "message_delta": true, "message_stop": true, "error": true,
}

var knownDelta = map[string]bool{
	"text_delta": true, "input_json_delta": true, "thinking_delta": true,
	"signature_delta": true, "citations_delta": true,
}

// assembler builds a response from its events.
type assembler struct {
	began    time.Time // of the attempt
	resp     *model.Response
	open     map[int]*blockBuilder // begun and not finished, by the event's index
	builders []*blockBuilder       // all, in the order of their start
	stopped  bool                  // message_stop arrived
}

// malformed returns the error for an event that breaks the API's promises.
func malformed(format string, args ...any) *model.Error {
	return &model.Error{Kind: model.KindMalformed, Message: fmt.Sprintf(format, args...)}
}

// add uses one event. Events of unknown types change nothing.
func (a *assembler) add(ev *wireEvent, raw json.RawMessage) error {
	switch ev.Type {
	case "message_start":
		return a.start(ev)
	case "content_block_start", "content_block_delta", "content_block_stop", "message_delta":
		if a.resp == nil {
			return malformed("%s before message_start", ev.Type)
		}
	}
	switch ev.Type {
	case "content_block_start":
		if a.open[ev.Index] != nil {
			return malformed("content block %d was started twice", ev.Index)
		}
		b, err := newBlockBuilder(ev.ContentBlock)
		if err != nil {
			return malformed("content block %d: %v", ev.Index, err)
		}
		a.open[ev.Index] = b
		a.builders = append(a.builders, b)
	case "content_block_delta":
		b := a.open[ev.Index]
		if b == nil {
			return malformed("a delta for content block %d, which is not open", ev.Index)
		}
		return b.add(&ev.Delta, raw)
	case "content_block_stop":
		b := a.open[ev.Index]
		if b == nil {
			return malformed("a stop for content block %d, which is not open", ev.Index)
		}
		b.finish(true)
		delete(a.open, ev.Index)
	case "message_delta":
		addUsage(&a.resp.Usage, ev.Usage)
		if ev.Delta.StopReason != "" {
			a.resp.StopReason = ev.Delta.StopReason
			a.resp.StopSequence = ev.Delta.StopSequence
			if d := ev.Delta.StopDetails; len(d) > 0 && string(d) != "null" {
				a.resp.StopDetails = d
			}
		}
	case "message_stop":
		a.stopped = true
	case "error":
		return streamError(ev)
	}
	return nil
}

func (a *assembler) start(ev *wireEvent) error {
	switch {
	case ev.Message == nil:
		return malformed("message_start without a message")
	case a.resp != nil:
		return malformed("a second message_start in one response")
	}
	a.open = make(map[int]*blockBuilder)
	a.resp = &model.Response{ID: ev.Message.ID, Model: ev.Message.Model, FirstEvent: time.Since(a.began)}
	addUsage(&a.resp.Usage, ev.Message.Usage)
	a.resp.StartUsage = a.resp.Usage
	return nil
}

// response returns what came so far, nil before message_start.
func (a *assembler) response() *model.Response {
	if a.resp == nil {
		return nil
	}
	a.resp.Blocks = make([]model.Block, 0, len(a.builders))
	for _, b := range a.builders {
		if !b.out.Done {
			b.finish(false)
		}
		a.resp.Blocks = append(a.resp.Blocks, b.out)
	}
	return a.resp
}

// addUsage takes the newer figures in raw over into u. The API's counts are
// cumulative, so a lower one is a server that leaves a field at zero.
func addUsage(u *message.Usage, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	v := *u
	if !decodeUsage(raw, &v) {
		v = unusualUsage(raw, *u)
	}
	for _, p := range [...]struct {
		old int64
		now *int64
	}{
		{u.InputTokens, &v.InputTokens},
		{u.OutputTokens, &v.OutputTokens},
		{u.CacheCreationInputTokens, &v.CacheCreationInputTokens},
		{u.CacheReadInputTokens, &v.CacheReadInputTokens},
		{u.CacheCreation.Ephemeral5m, &v.CacheCreation.Ephemeral5m},
		{u.CacheCreation.Ephemeral1h, &v.CacheCreation.Ephemeral1h},
		{u.ServerToolUse.WebSearchRequests, &v.ServerToolUse.WebSearchRequests},
		{u.ServerToolUse.WebFetchRequests, &v.ServerToolUse.WebFetchRequests},
	} {
		*p.now = max(*p.now, p.old)
	}
	*u = v
}

// unusualUsage returns u with the figures in raw. A field of a wrong type
// counts as not sent.
func unusualUsage(raw json.RawMessage, u message.Usage) message.Usage {
	_ = json.Unmarshal(raw, &u)
	return u
}
