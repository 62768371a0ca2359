package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/turnwright/turnwright/message"
)

// Defaults of CallOptions.
const (
	DefaultMaxRetries = 10               // L-84
	DefaultTimeout    = 10 * time.Minute // L-104
	DefaultIdle       = 5 * time.Minute  // L-105
)

// persistentRetries is the default budget for failures other than 429 and 529
// when CallOptions.Persistent is set (L-103).
const persistentRetries = 300

// CallOptions steers Call. The zero value is the documented default.
type CallOptions struct {
	// MaxRetries is the retry budget, nil: 10, 0: no retry (L-84, L-85). The
	// caller has applied the cap of 15. The few quick re-issues of L-68, L-91,
	// L-92 and L-99 stand outside it, also at 0.
	MaxRetries *int
	// Persistent retries 429 and 529 for ever, and other transient failures
	// 300 times unless MaxRetries says otherwise (L-103).
	Persistent bool
	// Timeout is how long one attempt may take until its response begins, 0:
	// 10 minutes, < 0: no limit (L-104). From message_start on Idle guards it:
	// a long answer is no fault.
	Timeout time.Duration
	// Idle is how long an attempt may go without an event, 0: 5 minutes, < 0:
	// no limit (L-105). It runs from the attempt's start; left at 0 it does not
	// cut a longer Timeout that was set. Once a response has begun, pings
	// stretch the limit to twice its length, not further (B-168). A slow
	// OnEvent is no silence.
	Idle time.Duration
	// OnEvent gets every event of every attempt.
	OnEvent func(Event)
	// OnRetry announces each further attempt, before the wait (L-86, M-76).
	OnRetry func(message.APIRetry)
	// OnSpend gets the usage of every attempt that reached message_start, the
	// finished one included.
	OnSpend func(Spend)
	// Rand is the source of jitter, in [0,1); nil: math/rand/v2.
	Rand func() float64
}

// Spend is what one attempt was billed, as far as it is known.
//
// The rule for attempts that were given up (B-167): they count with the usage
// that the server had reported by then, the input and cache tokens of
// message_start and the output tokens of the last message_delta seen. What
// the server generated after that is not known and not counted.
type Spend struct {
	ResponseID string
	Model      string
	Usage      message.Usage
	Final      bool // the usage is the finished response's own
}

// Call makes one model request: all attempts, with back-off, watchdog and
// error kinds (docs/contract/loop.md, section 7). It returns
//   - a finished response and no error;
//   - a response whose completed blocks stand and a *Error with
//     ProgressBlock, when it broke after them (L-93); a block that was being
//     written is among the blocks with Done false;
//   - a partial response (or nil) and a *Error of KindAborted, when ctx ended;
//   - nil and a *Error otherwise.
//
// A transient failure, be it a lost connection or an error event inside a
// stream, has one rule (B-163). Before any block was finished the attempt is
// given up as a whole and made again, even when some text had been streamed:
// OnRetry marks the place, and the returned response is the later attempt's
// alone, so no text is in it twice. After a finished text or tool block, or
// one begun after finished thinking, the request is never made again: the
// blocks stand. A permanent error ends the call either way.
func Call(ctx context.Context, m Model, r *Request, o CallOptions) (*Response, error) {
	c := &call{model: m, request: r, options: o}
	if c.options.Rand == nil {
		c.options.Rand = rand.Float64
	}
	for {
		resp, fail := c.attempt(ctx)
		if fail == nil {
			return resp, nil
		}
		fail.Attempts = c.attempts
		again, ok := c.next(fail)
		if !ok {
			fail.Text = c.text(fail)
			if fail.Kind != KindAborted && fail.Progress != ProgressBlock {
				resp = nil
			}
			return resp, fail
		}
		if err := c.wait(ctx, fail, again); err != nil {
			fail = &Error{Kind: KindAborted, Message: "aborted while waiting to retry", Attempts: c.attempts, Err: err}
			fail.Text = c.text(fail)
			return nil, fail
		}
	}
}

// call is the state of one Call.
type call struct {
	model    Model
	request  *Request
	options  CallOptions
	attempts int

	retried int // from the budget
	dropped int // L-91
	stalled int // L-92
	empty   int // L-68
	shrunk  int // L-99
}

// attempt makes one attempt. It returns the finished response, or what came of
// it and why it failed.
func (c *call) attempt(ctx context.Context) (*Response, *Error) {
	if a, ok := c.model.(Acquirer); ok {
		release, err := a.Acquire(ctx)
		if err != nil {
			return nil, c.failure(ctx, ctx, nil, err)
		}
		defer release()
	} else if err := ctx.Err(); err != nil {
		return nil, c.failure(ctx, ctx, nil, err)
	}
	c.attempts++
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := startWatch(c.options, cancel)
	defer w.stop()
	resp, err := c.model.Stream(inner, c.request, func(ev Event) {
		w.pause(ev.Type)
		if c.options.OnEvent != nil {
			c.options.OnEvent(ev)
		}
		w.resume(ev.Type)
	})
	w.stop()
	if resp != nil && c.options.OnSpend != nil {
		c.options.OnSpend(Spend{ResponseID: resp.ID, Model: resp.Model, Usage: resp.Usage, Final: resp.Complete()})
	}
	if !resp.Complete() {
		return resp, c.failure(ctx, inner, resp, err)
	}
	if resp.empty() {
		return resp, &Error{Kind: KindEmpty, Message: "the response has no content and no output tokens", RequestID: resp.RequestID}
	}
	return resp, nil
}

// Causes with which an attempt's own clocks end it.
var (
	errTimeout = errors.New("request timed out")
	errIdle    = errors.New("the response stopped arriving")
)

// failure names the failure of an attempt that is not complete.
func (c *call) failure(outer, inner context.Context, resp *Response, err error) *Error {
	var fail Error
	if e, ok := errors.AsType[*Error](err); ok {
		fail = *e // the provider's own value stays as it is
	} else if err != nil {
		fail = Error{Kind: KindUnknown, Message: err.Error(), Err: err}
	} else {
		fail = Error{Kind: KindConnection, Message: "the stream ended before the response was complete"}
	}
	fail.Progress = resp.Progress()
	if fail.RequestID == "" && resp != nil {
		fail.RequestID = resp.RequestID
	}
	cause := context.Cause(inner)
	switch {
	case outer.Err() != nil:
		fail.Kind, fail.Err = KindAborted, context.Cause(outer)
	case cause == nil || !interrupted(&fail):
		// The provider's own failure came first, or says more.
	case errors.Is(cause, errTimeout):
		fail.Kind, fail.Message, fail.Err = KindTimeout, errTimeout.Error(), cause
	case errors.Is(cause, errIdle):
		fail.Kind, fail.Message, fail.Err = KindStalled, errIdle.Error(), cause
	}
	if fail.Kind == KindAborted && outer.Err() == nil {
		fail.Kind = KindUnknown // nobody asked for it
	}
	return &fail
}

// interrupted reports whether e may be what a cancelled attempt looks like,
// not an answer of the API.
func interrupted(e *Error) bool {
	return e.Status < 400 && e.Type == ""
}

// wait announces the next attempt and sleeps. It returns the cause when ctx ends.
func (c *call) wait(ctx context.Context, fail *Error, a again) error {
	if c.options.OnRetry != nil {
		n := message.APIRetry{
			Attempt: a.attempt, MaxRetries: a.allowed,
			RetryDelayMS: a.delay.Milliseconds(), Error: fail.Category(),
		}
		if fail.Status != 0 {
			n.ErrorStatus = new(fail.Status)
		}
		c.options.OnRetry(n)
	}
	t := time.NewTimer(a.delay)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
