package budget

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

func mustHold(t testing.TB, l *Ledger, amount float64) *Hold {
	t.Helper()
	h, err := l.Hold(t.Context(), amount)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHoldObserved(t *testing.T) {
	conform.Covers(t, "L-43")
	l := New(new(1.0), Observed)
	a, b := mustHold(t, l, 100), mustHold(t, l, 100) // nothing is reserved
	if a.Amount() != 0 || l.State().Held != 0 || l.State().Open != 2 {
		t.Errorf("amount %v, state %+v", a.Amount(), l.State())
	}
	a.Charge("m", message.Usage{}, 3, "a")
	a.Settle()
	b.Charge("m", message.Usage{}, 0.5, "b") // under way already: paid for and reported
	b.Keep()
	if tot := l.Total(); tot.USD != 3.5 {
		t.Errorf("total %v", tot.USD)
	}
	_, err := l.Hold(t.Context(), 0)
	var re *ReachedError
	if !errors.Is(err, ErrReached) || !errors.As(err, &re) || re.Spent != 3.5 || re.Cap != 1 {
		t.Errorf("a request after the cap: %v", err)
	}
}

func TestHoldWithoutCap(t *testing.T) {
	for _, mode := range []Mode{Observed, Strict} {
		l := New(nil, mode)
		h := mustHold(t, l, math.Inf(1))
		h.Charge("m", message.Usage{}, 5, "a")
		h.Settle()
		if s := l.State(); s.Cap != nil || s.Spent != 5 || s.Held != 0 || !math.IsInf(l.Left(), 1) {
			t.Errorf("mode %d: %+v, left %v", mode, s, l.Left())
		}
	}
}

func TestHoldStrict(t *testing.T) {
	l := New(new(1.0), Strict)
	a := mustHold(t, l, 0.6)
	if l.Left() != 0.4 {
		t.Errorf("left %v, want 0.4", l.Left())
	}
	if _, err := l.Hold(t.Context(), 1.5); !errors.Is(err, ErrReached) {
		t.Errorf("a request over the whole cap: %v", err)
	}
	a.Charge("m", message.Usage{}, 0.25, "a")
	if s := l.State(); s.Spent != 0.25 || s.Held != 0.35 {
		t.Errorf("after the charge: %+v", s)
	}
	a.Settle()
	a.Settle()
	a.Keep()
	if s := l.State(); s.Held != 0 || s.Open != 0 || l.Left() != 0.75 {
		t.Errorf("after Settle: %+v", s)
	}
	if _, err := l.Hold(t.Context(), 0.76); !errors.Is(err, ErrReached) {
		t.Errorf("nobody can give room back, yet: %v", err)
	}
	b, err := l.HoldBetween(t.Context(), 0.1, 5)
	if err != nil || b.Amount() != 0.75 {
		t.Errorf("HoldBetween got %v, %v; want all of 0.75", b.Amount(), err)
	}
	b.Settle()
	for _, bad := range []float64{-1, math.NaN()} {
		if _, err := l.Hold(t.Context(), bad); err == nil || errors.Is(err, ErrReached) {
			t.Errorf("Hold(%v): %v", bad, err)
		}
	}
}

// A request that was cut off keeps its hold against the cap, not in the total.
func TestKeep(t *testing.T) {
	l := New(new(1.0), Strict)
	a := mustHold(t, l, 0.6)
	a.Charge("m", message.Usage{}, 0.1, "a") // the usage seen so far
	a.Keep()
	a.Settle()
	s := l.State()
	if s.Spent != 0.1 || s.Held != 0.5 || s.Kept != 0.5 || s.Open != 0 || l.Total().USD != 0.1 {
		t.Errorf("%+v", s)
	}
	if _, err := l.Hold(t.Context(), 0.5); !errors.Is(err, ErrReached) {
		t.Errorf("kept money was given out again: %v", err)
	}
	l.Reset()
	if l.Left() != 1 {
		t.Errorf("left %v after Reset, want 1", l.Left())
	}
}

func TestHoldWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(new(1.0), Strict)
		a, b := mustHold(t, l, 0.5), mustHold(t, l, 0.5)
		type got struct {
			h   *Hold
			err error
		}
		wait := func(ctx context.Context, amount float64) chan got {
			c := make(chan got, 1)
			go func() {
				h, err := l.Hold(ctx, amount)
				c <- got{h, err}
			}()
			synctest.Wait()
			return c
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		large := wait(t.Context(), 0.8)
		gone := wait(ctx, 0.1)
		small := wait(t.Context(), 0.05)
		if s := l.State(); s.Waiting != 3 {
			t.Fatalf("%+v", s)
		}
		cause := errors.New("interrupted")
		cancel(cause)
		if g := <-gone; !errors.Is(g.err, cause) {
			t.Errorf("cancelled: %v", g.err)
		}
		a.Settle()
		synctest.Wait()
		if s := l.State(); s.Waiting != 2 {
			t.Errorf("the small one passed the large one: %+v", s)
		}
		b.Charge("m", message.Usage{}, 0.15, "b")
		b.Settle()
		g := <-large
		if g.err != nil {
			t.Fatal(g.err)
		}
		sm := <-small
		if sm.err != nil {
			t.Fatal(sm.err)
		}
		// Now nothing is left but what the two may give back, and they do not.
		last := wait(t.Context(), 0.5)
		g.h.Keep()
		if e := <-last; !errors.Is(e.err, ErrReached) {
			t.Errorf("waits for what no one gives back: %v", e.err)
		}
		sm.h.Settle()
		if s := l.State(); s.Open != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A request that gives up lets those behind it go on, and room that it got at
// the same moment goes back.
func TestHoldGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			l := New(new(1.0), Strict)
			a := mustHold(t, l, 0.5)
			ctx, cancel := context.WithCancel(t.Context())
			var large, small *Hold
			var err, smallErr error
			go func() { large, err = l.Hold(ctx, 0.8) }()
			synctest.Wait()
			go func() { small, smallErr = l.Hold(t.Context(), 0.4) }()
			synctest.Wait()
			cancel()
			synctest.Wait()
			if !errors.Is(err, context.Canceled) || large != nil || smallErr != nil || small == nil {
				t.Fatalf("large %v, small %v", err, smallErr)
			}

			ctx, cancel = context.WithCancel(t.Context())
			go func() { large, err = l.Hold(ctx, 0.5) }()
			synctest.Wait()
			cancel()
			a.Settle() // both at once: either answer is right
			synctest.Wait()
			if err == nil {
				large.Settle()
			}
			small.Settle()
			if s := l.State(); s.Open != 0 || s.Held != 0 || s.Waiting != 0 {
				t.Fatalf("%v: %+v", err, s)
			}
		}
	})
}

func TestHoldCancelledBefore(t *testing.T) {
	l := New(new(1.0), Strict)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Hold(ctx, 0.1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if s := l.State(); s.Open != 0 || s.Held != 0 {
		t.Errorf("%+v", s)
	}
}

// check fails when a strict ledger is out of order at this instant.
func check(t interface{ Fatalf(string, ...any) }, l *Ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent < 0 || l.held < 0 || l.kept < 0 || l.kept > l.held || l.open < 0 {
		t.Fatalf("spent %d, held %d, kept %d, open %d", l.spent, l.held, l.kept, l.open)
	}
	if l.spent+l.held > l.limit {
		t.Fatalf("spent %d + held %d > cap %d", l.spent, l.held, l.limit)
	}
	var sum nano
	for _, a := range l.models {
		sum += a.cost
	}
	if sum != l.spent {
		t.Fatalf("models %d, spent %d", sum, l.spent)
	}
}

// Any sequence of operations on a strict ledger keeps spent + held ≤ cap, and
// agrees with a plain model of it.
func TestStrictSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(0.001, 10).Draw(t, "cap")
		l := New(&limit, Strict)
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // a Hold that would wait is given up at once
		var open []*Hold
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				amount := rapid.Float64Range(0, 3).Draw(t, "amount")
				if len(open) > 0 && amount > l.Left()-1e-8 {
					_, err := l.Hold(ctx, amount)
					if err == nil {
						t.Fatalf("no room, yet it was given")
					}
					return
				}
				h, err := l.Hold(context.Background(), amount)
				if err == nil {
					open = append(open, h)
				} else if !errors.Is(err, ErrReached) {
					t.Fatal(err)
				}
			},
			"charge": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip()
				}
				n++
				h := rapid.SampledFrom(open).Draw(t, "which")
				cost := rapid.Float64Range(0, 1).Draw(t, "share") * h.left.usd()
				h.Charge(strconv.Itoa(n%3), message.Usage{}, cost, strconv.Itoa(n))
			},
			"close": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				if rapid.Bool().Draw(t, "keep") {
					open[i].Keep()
				} else {
					open[i].Settle()
				}
				open = append(open[:i:i], open[i+1:]...)
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "rarely") == 0 {
					l.Reset()
				}
			},
			"": func(t *rapid.T) {
				check(t, l)
				if l.State().Open != len(open) {
					t.Fatalf("%d open, want %d", l.State().Open, len(open))
				}
			},
		})
	})
}

// Many agents at once: never over the cap, every one is answered, and at the
// end nothing is held and the sums are exact.
func TestStrictConcurrent(t *testing.T) {
	conform.Covers(t, "B-189")
	l := New(new(1.0), Strict)
	ctx, cancel := context.WithCancel(t.Context())
	var wg, watch sync.WaitGroup
	stop := make(chan struct{})
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				check(fatalAsError{t}, l)
			}
		}
	})
	var mu sync.Mutex
	var want nano
	for g := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				h, err := l.HoldBetween(ctx, 0.01, 0.01+float64(g)/100)
				if err != nil {
					if !errors.Is(err, ErrReached) && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				cost := h.Amount() / float64(2+i%3)
				if h.Charge("m"+strconv.Itoa(g%3), message.Usage{}, cost, strconv.Itoa(g)+"/"+strconv.Itoa(i)) {
					n, _ := toNano(cost)
					mu.Lock()
					want += n
					mu.Unlock()
				}
				if i == 5 && g == 3 {
					cancel() // the others are interrupted, some while they wait
				}
				h.Settle()
			}
		})
	}
	wg.Wait()
	close(stop)
	watch.Wait()
	cancel()
	if s := l.State(); s.Held != 0 || s.Open != 0 || s.Waiting != 0 || s.Spent != want.usd() || s.Spent > 1 {
		t.Errorf("%+v, want %v spent", s, want.usd())
	}
}

// fatalAsError lets check be used outside the test's goroutine.
type fatalAsError struct{ testing.TB }

func (f fatalAsError) Fatalf(format string, args ...any) { f.Errorf(format, args...) }
