package model

import (
	"context"
	"time"
)

// watch ends an attempt that takes too long. Its methods are called from the
// goroutine of the attempt; the timers call cancel from their own.
type watch struct {
	timeout *time.Timer // nil: no limit or the response has begun
	idle    *time.Timer // nil: off
	limit   time.Duration
	begun   bool      // message_start came
	last    time.Time // when the last event came that was no ping
	due     time.Time // when the idle clock ends the attempt
}

func startWatch(o CallOptions, cancel context.CancelCauseFunc) *watch {
	timeout, idle := o.Timeout, o.Idle
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	if idle == 0 {
		idle = DefaultIdle
	}
	w := &watch{limit: idle, last: time.Now()}
	if timeout > 0 {
		w.timeout = time.AfterFunc(timeout, func() { cancel(errTimeout) })
	}
	if idle > 0 {
		first := idle
		if o.Idle == 0 && o.Timeout > idle {
			// Whoever allows a slow server more time to begin means it.
			first = o.Timeout + idle
		}
		w.due = w.last.Add(first)
		w.idle = time.AfterFunc(first, func() { cancel(errIdle) })
	}
	return w
}

// pause stops the idle clock while an event is being handed on.
func (w *watch) pause(typ string) {
	if w.idle != nil {
		w.idle.Stop()
	}
	if typ == "message_start" {
		w.begun = true
		if w.timeout != nil {
			w.timeout.Stop()
			w.timeout = nil
		}
	}
}

// resume starts the idle clock again after the event.
func (w *watch) resume(typ string) {
	if w.idle == nil {
		return
	}
	now := time.Now()
	switch {
	case typ != "ping":
		w.last, w.due = now, now.Add(w.limit)
	case w.begun:
		// A server that thinks in silence may ping, but a dead upstream must
		// not hide for ever behind a proxy that does (B-168).
		w.due = now.Add(w.limit)
		if most := w.last.Add(2 * w.limit); most.Before(w.due) {
			w.due = most
		}
	}
	w.idle.Reset(max(w.due.Sub(now), 0))
}

func (w *watch) stop() {
	if w.timeout != nil {
		w.timeout.Stop()
	}
	if w.idle != nil {
		w.idle.Stop()
	}
}
