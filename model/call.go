package model

import (
	"context"
	"time"

	"github.com/turnwright/turnwright/message"
)

// CallOptions steers Call. The zero value is the documented default.
type CallOptions struct {
	MaxRetries *int          // nil: 10; the caller has applied the cap of 15 (L-84, L-85)
	Persistent bool          // L-103
	Timeout    time.Duration // one attempt, 0: 10 minutes; < 0: none (L-104)
	Idle       time.Duration // idle watchdog, 0: 5 minutes; < 0: off (L-105)
	OnEvent    func(Event)   // every event of every attempt
	OnRetry    func(message.APIRetry)
	OnSpend    func(Spend)    // usage of every attempt that reached message_start, also the good one
	Rand       func() float64 // jitter in [0,1); nil: math/rand
}

// Spend is what one attempt was billed, as far as it is known.
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
//     ProgressBlock, when it broke after them (L-93);
//   - a partial response (or nil) and a *Error of KindAborted, when ctx ended;
//   - nil and a *Error otherwise.
func Call(ctx context.Context, m Model, r *Request, o CallOptions) (*Response, error) {
	panic("to be written")
}
