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
// On failure it returns a *Error. When some of the response had arrived, the
// response returned beside the error holds it. Stream never retries; Call does.
type Model interface {
	Stream(ctx context.Context, r *Request, on func(Event)) (*Response, error)
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
	Usage        message.Usage // the newest figures
	StartUsage   message.Usage // as known at message_start (M-32)
	RequestID    string
	FirstEvent   time.Duration // from the attempt's start to message_start
}
