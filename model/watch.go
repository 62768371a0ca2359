package model

import (
	"context"
	"sync"
	"time"
)

// watch ends an attempt that takes too long. Its methods are called from the
// goroutine of the attempt. It has one timer, which is not set anew for each
// event: when it fires it looks what happened meanwhile. A timer that is set
// costs more than an event, since it may wake a sleeping thread.
type watch struct {
	cancel context.CancelCauseFunc
	limit  time.Duration // between events, ≤ 0: none

	mu      sync.Mutex
	timer   *time.Timer
	at      time.Time // when the timer fires
	timeout time.Time // when the attempt ends if no response has begun, zero: no limit
	idle    time.Time // when silence ends the attempt, zero: no limit
	paused  bool      // an event is being handed on: idle does not count
	last    time.Time // when the last event came that was no ping
	begun   bool      // message_start came
	stopped bool
}

func startWatch(o CallOptions, cancel context.CancelCauseFunc) *watch {
	timeout, idle := o.Timeout, o.Idle
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if idle == 0 {
		idle = DefaultIdle
	}
	w := &watch{cancel: cancel, limit: idle, last: time.Now()}
	if timeout > 0 {
		w.timeout = w.last.Add(timeout)
	}
	if idle > 0 {
		first := idle
		if o.Idle == 0 && o.Timeout > idle {
			// Whoever allows a slow server more time to begin means it.
			first = o.Timeout + idle
		}
		w.idle = w.last.Add(first)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(w.last)
	return w
}

// set makes the timer fire when the next limit is reached. An earlier time to
// fire at is left alone. It needs w.mu.
func (w *watch) set(now time.Time) {
	next := w.timeout
	if !w.idle.IsZero() && !w.paused && (next.IsZero() || w.idle.Before(next)) {
		next = w.idle
	}
	switch {
	case next.IsZero() || !w.at.IsZero() && !next.Before(w.at):
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(next.Sub(now), w.fire)
	default:
		w.timer.Reset(max(next.Sub(now), 0))
	}
	w.at = next
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	switch {
	case w.stopped:
	case !w.timeout.IsZero() && !now.Before(w.timeout):
		w.cancel(errTimeout)
	case !w.idle.IsZero() && !w.paused && !now.Before(w.idle):
		w.cancel(errIdle)
	default:
		w.at = time.Time{}
		w.set(now)
	}
}

// pause stops the idle clock while an event is being handed on.
func (w *watch) pause(typ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = true
	if typ == "message_start" {
		w.begun = true
		w.timeout = time.Time{}
	}
}

// resume starts the idle clock again after the event.
func (w *watch) resume(typ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = false
	if w.idle.IsZero() {
		return
	}
	now := time.Now()
	switch {
	case typ != "ping":
		w.last, w.idle = now, now.Add(w.limit)
	case w.begun:
		// A server that thinks in silence may ping, but a dead upstream must
		// not hide for ever behind a proxy that does (B-168).
		w.idle = now.Add(w.limit)
		if most := w.last.Add(2 * w.limit); most.Before(w.idle) {
			w.idle = most
		}
	}
	w.set(now)
}

// stop ends the watch: nothing is cancelled after it returns.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
