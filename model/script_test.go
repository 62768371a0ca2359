package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/turnwright/turnwright/message"
)

// step is what one attempt of a script does.
type step func(ctx context.Context, r *Request, on func(Event)) (*Response, error)

// script is a Model that plays one step an attempt, the last one for ever.
type script struct {
	steps    []step
	requests []*Request
	at       []time.Duration // when each attempt began
	begin    time.Time
}

func newScript(steps ...step) *script { return &script{steps: steps, begin: time.Now()} }

func (s *script) Stream(ctx context.Context, r *Request, on func(Event)) (*Response, error) {
	s.requests = append(s.requests, r)
	s.at = append(s.at, time.Since(s.begin))
	n := min(len(s.requests), len(s.steps)) - 1
	return s.steps[n](ctx, r, on)
}

func event(typ string) Event {
	return Event{Type: typ, Data: json.RawMessage(`{"type":"` + typ + `"}`)}
}

// refuse fails at once with e.
func refuse(e Error) step {
	return func(context.Context, *Request, func(Event)) (*Response, error) { return nil, &e }
}

// partial streams the blocks and fails with e, or ends quietly when e is nil.
func partial(e *Error, blocks ...Block) step {
	return func(_ context.Context, _ *Request, on func(Event)) (*Response, error) {
		on(event("message_start"))
		for range blocks {
			on(event("content_block_delta"))
		}
		r := &Response{ID: "msg_cut", Model: "m", Blocks: blocks, Usage: message.Usage{InputTokens: 5, OutputTokens: 2}, RequestID: "req_cut"}
		if e == nil {
			return r, nil
		}
		return r, e
	}
}

// good answers with a text.
func good(text string) step { return finish("end_turn", 7, done(message.NewText(text))) }

func finish(reason string, out int64, blocks ...Block) step {
	return func(ctx context.Context, _ *Request, on func(Event)) (*Response, error) {
		on(event("message_start"))
		on(event("message_stop"))
		if ctx.Err() != nil {
			return &Response{ID: "msg_late"}, &Error{Kind: KindAborted, Err: ctx.Err()}
		}
		return &Response{ID: "msg_good", Model: "m", Blocks: blocks, StopReason: reason, Usage: message.Usage{InputTokens: 5, OutputTokens: out}}, nil
	}
}

// stall streams the blocks and then nothing until ctx ends.
func stall(blocks ...Block) step {
	return func(ctx context.Context, _ *Request, on func(Event)) (*Response, error) {
		var r *Response
		if len(blocks) > 0 {
			on(event("message_start"))
			r = &Response{ID: "msg_stalled", Blocks: blocks}
		}
		<-ctx.Done()
		return r, &Error{Kind: KindAborted, Message: ctx.Err().Error(), Err: ctx.Err()}
	}
}

func done(b message.Block) Block { return Block{Block: b, Done: true} }
func open(b message.Block) Block { return Block{Block: b} }

var (
	thought  = done(message.NewThinking("hm", "sig"))
	halfText = open(message.NewText("half"))
	wholeUse = done(message.NewToolUse("tu_1", "Bash", json.RawMessage(`{"command":"true"}`)))
	halfUse  = open(message.NewToolUse("tu_2", "Bash", nil))
	lost     = &Error{Kind: KindConnection, Message: "connection reset by peer"}
)

// outcome is all that a Call showed.
type outcome struct {
	resp    *Response
	err     *Error
	model   *script
	retries []message.APIRetry
	spends  []Spend
	events  []string // event types, with "retry" where OnRetry came
}

// run makes a call with the script. Jitter is off unless o.Rand is set.
func run(t *testing.T, ctx context.Context, s *script, o CallOptions) outcome {
	t.Helper()
	out := outcome{model: s}
	if o.Rand == nil {
		o.Rand = func() float64 { return 0 }
	}
	o.OnEvent = func(ev Event) { out.events = append(out.events, ev.Type) }
	o.OnRetry = func(r message.APIRetry) {
		out.retries = append(out.retries, r)
		out.events = append(out.events, "retry")
	}
	o.OnSpend = func(s Spend) { out.spends = append(out.spends, s) }
	resp, err := Call(ctx, s, &Request{Model: "m", MaxTokens: 32000}, o)
	out.resp = resp
	if err != nil && !errors.As(err, &out.err) {
		t.Fatalf("error %T is no *Error: %v", err, err)
	}
	if (err == nil) != resp.Complete() {
		t.Errorf("error %v beside a response that is complete: %v", err, resp.Complete())
	}
	return out
}

func (o outcome) String() string {
	s := fmt.Sprintf("%d attempts, %d retries", len(o.model.requests), len(o.retries))
	if o.err != nil {
		s += ": " + o.err.Error()
	}
	return s
}
