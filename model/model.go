package model

import (
	"context"
	"encoding/json"
	"time"

	"github.com/turnwright/turnwright/message"
)

// Model is one attempt at one request. Stream calls on for each event as it
// arrives, on the caller's goroutine, and returns the finished response.
//
// On failure it returns a *Error. The response beside the error is nil until
// message_start arrived; from then on it holds what came, finished blocks and
// the one that was being written. Stream never retries, Call does, and it
// returns soon after ctx ended.
type Model interface {
	Stream(ctx context.Context, r *Request, on func(Event)) (*Response, error)
}

// Acquirer is a Model whose attempts need something scarce, such as a
// connection. Call takes it before the clocks of an attempt start (L-104,
// L-105) and gives it back when the attempt has ended. Acquire waits until ctx
// ends; it then returns ctx's error.
type Acquirer interface {
	Acquire(ctx context.Context) (release func(), err error)
}

// Event is one streaming event of the Messages API, unmodified.
type Event struct {
	Type string          // message_start, content_block_delta, …
	Data json.RawMessage // the whole event object; valid after the callback returns
}

// Request is a model request in the terms of the Messages API. Everything in
// it is immutable once handed over, so that a retry sends the same bytes.
type Request struct {
	Model        string
	MaxTokens    int
	System       []message.Block   // text blocks, may be empty
	Tools        []json.RawMessage // API tool definitions, canonical JSON
	Messages     []Message
	Marks        []Mark          // cache marks, in request order
	ToolChoice   json.RawMessage // nil: not sent
	Thinking     json.RawMessage // nil: not sent
	OutputConfig json.RawMessage // nil: not sent (effort and the like)
	Metadata     json.RawMessage // nil: not sent
	Betas        []string
	Extra        json.RawMessage // an object merged into the body, nil: none
}

// Message is one message of a request.
type Message struct {
	Role   message.Role
	Blocks []message.Block
}

// Mark places one cache mark on a block (design decision 2). It is written as
// a splice: the block's bytes without the last '}', then the mark.
type Mark struct {
	Where Where
	Index int    // message index; tool index for tools; unused for system
	Block int    // block index within the message or the system prompt
	TTL   string // "5m" or "1h"
}

// Where says which list of the request a Mark is in.
type Where int

// The three lists.
const (
	InTools Where = iota
	InSystem
	InMessages
)

// Block is one block of a response.
type Block struct {
	message.Block
	Done     bool   // its content_block_stop arrived
	BadInput bool   // tool_use whose input was not one JSON object; Block then has {}
	RawInput string // tool_use with BadInput: what the model wrote
}

// Response is a model's answer, finished or as far as it came.
type Response struct {
	ID           string
	Model        string
	Blocks       []Block
	StopReason   string // "" when none arrived
	StopSequence *string
	StopDetails  json.RawMessage // the API's stop_details (why a refusal), nil: none
	Usage        message.Usage   // the newest figures
	StartUsage   message.Usage   // as known at message_start (M-32)
	RequestID    string
	FirstEvent   time.Duration // from the attempt's start to message_start
}

// Complete reports whether the message_delta with the stop_reason arrived. A
// response without it is broken, however politely its stream closed (L-94);
// with it, whatever fails later is of no matter (L-97).
func (r *Response) Complete() bool { return r != nil && r.StopReason != "" }

// Progress returns how far the response came; a nil response is ProgressNone.
func (r *Response) Progress() Progress {
	if r == nil || len(r.Blocks) == 0 {
		return ProgressNone
	}
	thought, other := false, false
	for _, b := range r.Blocks {
		thinking := b.Type() == message.TypeThinking || b.Type() == message.TypeRedactedThinking
		switch {
		case thinking:
			thought = thought || b.Done
		case b.Done:
			return ProgressBlock
		default:
			other = true
		}
	}
	switch {
	case thought && other:
		return ProgressBlock
	case thought:
		return ProgressThinkingDone
	}
	return ProgressStarted
}

// empty reports whether a finished response is no answer: no block that says
// anything and no output tokens (L-68, B-005, B-130). A refusal and the
// reasons that carry a meaning of their own are answers even when empty.
func (r *Response) empty() bool {
	switch r.StopReason {
	case "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn":
	default:
		return false
	}
	if r.Usage.OutputTokens != 0 {
		return false
	}
	for _, b := range r.Blocks {
		if b.Type() != message.TypeText || b.Text() != "" {
			return false
		}
	}
	return true
}
