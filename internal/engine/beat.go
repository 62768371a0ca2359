package engine

import (
	"slices"
	"sync"
	"time"
)

// heartbeat is how often a running call tells that it lives (M-88).
const heartbeat = 30 * time.Second

// beats lets the running calls of a session tell that they live. They share one
// timer, which stays set from one call to the next until the session rests:
// most calls are short, and to set a timer that is due before all others wakes
// the thread that sleeps until then.
type beats struct {
	mu    sync.Mutex
	calls []*beating
	timer *time.Timer
	set   bool // the timer is going to fire, before any call is due
}

type beating struct {
	due  time.Time
	tell func()
}

// add begins to call tell every heartbeat. tell must not block.
func (b *beats) add(tell func()) *beating {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &beating{due: time.Now().Add(heartbeat), tell: tell}
	b.calls = append(b.calls, c)
	if !b.set {
		b.arm(heartbeat)
	}
	return c
}

// remove ends it: tell is not called any more when remove has returned.
func (b *beats) remove(c *beating) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = slices.DeleteFunc(b.calls, func(o *beating) bool { return o == c })
}

// rest lets no timer be set while nothing runs.
func (b *beats) rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.set {
		b.timer.Stop()
		b.set = false
	}
}

func (b *beats) arm(d time.Duration) {
	b.set = true
	if b.timer == nil {
		b.timer = time.AfterFunc(d, b.fire)
		return
	}
	b.timer.Reset(d)
}

func (b *beats) fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set = false
	now, next := time.Now(), heartbeat
	for _, c := range b.calls {
		if !now.Before(c.due) {
			c.tell()
			c.due = now.Add(heartbeat)
		}
		next = min(next, c.due.Sub(now))
	}
	if len(b.calls) > 0 {
		b.arm(next)
	}
}
