package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/turnwright/turnwright/message"
)

// ErrReached says that the cap leaves no room for a request. Hold returns it
// inside a *ReachedError.
var ErrReached = errors.New("budget reached")

// ReachedError is a request that did not fit under the cap. Amounts in USD.
type ReachedError struct {
	Cap   float64
	Spent float64
	Held  float64
	Asked float64 // the least that the request needs; 0 in observed mode
}

// Error names the amounts.
func (e *ReachedError) Error() string {
	if e.Asked == 0 {
		return fmt.Sprintf("%v: %v of %v USD spent", ErrReached, e.Spent, e.Cap)
	}
	return fmt.Sprintf("%v: a request of up to %v USD does not fit: %v of %v USD spent, %v held",
		ErrReached, e.Asked, e.Spent, e.Cap, e.Held)
}

// Unwrap returns ErrReached.
func (e *ReachedError) Unwrap() error { return ErrReached }

// Hold is the room that one request has under the cap. It is closed with
// Settle or Keep, the first of which counts.
type Hold struct {
	ledger *Ledger
	amount nano
	left   nano // not charged yet; guarded by the ledger's lock
	closed bool
}

// waiter is a request that waits for room.
type waiter struct {
	least, most nano
	done        chan struct{} // closed when hold or err is set
	hold        *Hold
	err         error
}

// Hold asks for room for a request that costs at most amount USD.
//
// In observed mode, and without a cap, nothing is reserved and it never waits;
// it fails with ErrReached once the cap is reached, so that no agent of the
// tree starts a further request (README decision 53). In strict mode it waits,
// first come, first served, while other requests are under way that may give
// room back, and fails with ErrReached when none can. It returns the cause of
// ctx's end when that comes first.
func (l *Ledger) Hold(ctx context.Context, amount float64) (*Hold, error) {
	return l.HoldBetween(ctx, amount, amount)
}

// HoldBetween is Hold for a request that can be made smaller: it takes up to
// most USD of the room there is, waits while there is less than least, and
// leaves it to Amount to tell how much it got.
func (l *Ledger) HoldBetween(ctx context.Context, least, most float64) (*Hold, error) {
	lo, err := toNano(least)
	if err != nil {
		return nil, err
	}
	hi, err := toNano(most)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	w := &waiter{least: lo, most: max(lo, hi), done: make(chan struct{})}
	if l.mode == Observed || !l.capped {
		w.least, w.most = 0, 0
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.serve()
	l.mu.Unlock()

	select {
	case <-w.done:
		return w.hold, w.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else if w.hold != nil { // served at the same moment
		l.end(w.hold, false)
	}
	l.serve() // those behind it may fit
	return nil, context.Cause(ctx)
}

// serve answers the waiting requests that can be answered now. The first one
// is never passed by a smaller one behind it, so that each gets its turn.
func (l *Ledger) serve() {
	for len(l.waiting) > 0 {
		w := l.waiting[0]
		switch room := l.room(); {
		case l.reached(), l.capped && w.least > l.limit-l.spent-l.kept: // no one can give back enough
			w.err = &ReachedError{Cap: l.limit.usd(), Spent: l.spent.usd(), Held: l.held.usd(), Asked: w.least.usd()}
		case l.capped && w.least > room:
			return
		default:
			amount := w.most
			if l.capped {
				amount = min(amount, room)
			}
			w.hold = &Hold{ledger: l, amount: amount, left: amount}
			l.held += amount
			l.open++
		}
		l.waiting = slices.Delete(l.waiting, 0, 1)
		close(w.done)
	}
}

// end closes h. Kept money stays held.
func (l *Ledger) end(h *Hold, keep bool) {
	if h.closed {
		return
	}
	h.closed = true
	l.open--
	if keep {
		l.kept += h.left
	} else {
		l.held -= h.left
	}
	h.left = 0
	l.serve()
}

// Amount returns what was reserved, in USD.
func (h *Hold) Amount() float64 { return h.amount.usd() }

// Charge is Ledger.Charge for a response of the request: the money moves from
// held to spent in one step. What goes beyond the hold is spent all the same.
func (h *Hold) Charge(model string, u message.Usage, cost float64, id string) bool {
	return h.ledger.charge(h, model, u, cost, id)
}

// Settle closes the hold of a request whose usage is known and charged: what
// is left of it is free again. A second call, or one after Keep, does nothing.
func (h *Hold) Settle() {
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	h.ledger.end(h, false)
}

// Keep closes the hold of a request that was cut off without final usage: what
// was not charged stays reserved against the cap, but is not in the total
// (README decision 59). A second call, or one after Settle, does nothing.
func (h *Hold) Keep() {
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	h.ledger.end(h, true)
}
