package model

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

// pings sends the events, then pings until ctx ends.
func pings(first ...string) step {
	return func(ctx context.Context, _ *Request, on func(Event)) (*Response, error) {
		for _, typ := range first {
			on(event(typ))
		}
		for ctx.Err() == nil {
			on(event("ping"))
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
		}
		return nil, &Error{Kind: KindAborted, Err: ctx.Err()}
	}
}

func TestStalled(t *testing.T) {
	conform.Covers(t, "L-92", "L-105", "B-168")
	for name, s := range map[string]step{
		"nothing received":    stall(),
		"finished thinking":   stall(thought),
		"only pings":          pings(),
		"a start, then pings": pings("message_start"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				o := run(t, t.Context(), newScript(s), CallOptions{})
				if len(o.model.requests) != 2 || o.err.Kind != KindStalled || o.err.Text != "The response stalled before a response was produced" {
					t.Fatal(o)
				}
				if r := o.retries[0]; r.Attempt != 1 || r.MaxRetries != 1 {
					t.Errorf("%+v", r)
				}
				if d := time.Since(begin); d < 2*DefaultIdle || d > 4*DefaultIdle+time.Minute {
					t.Errorf("ended after %v", d)
				}
			})
		})
	}
	t.Run("half a text is retried like a lost connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := run(t, t.Context(), newScript(stall(halfText), good("x")), CallOptions{})
			if o.err != nil || len(o.model.requests) != 2 || o.retries[0].MaxRetries != 10 {
				t.Error(o)
			}
		})
	})
}

func TestIdleClock(t *testing.T) {
	conform.Covers(t, "L-105", "B-168")
	// drip sends an event every gap, n of them, and then answers.
	drip := func(typ string, gap time.Duration, n int) step {
		return func(ctx context.Context, r *Request, on func(Event)) (*Response, error) {
			on(event("message_start"))
			for range n {
				select {
				case <-ctx.Done():
					return &Response{ID: "msg"}, &Error{Kind: KindAborted, Err: ctx.Err()}
				case <-time.After(gap):
					on(event(typ))
				}
			}
			return good("x")(ctx, r, on)
		}
	}
	for _, c := range []struct {
		name string
		step step
		o    CallOptions
		ok   bool
	}{
		{"events keep it alive past the timeout", drip("content_block_delta", 4*time.Minute, 10), CallOptions{}, true},
		{"an hour of silence, off", drip("content_block_delta", time.Hour, 1), CallOptions{Idle: -1}, true},
		{"silence beyond the limit", drip("content_block_delta", 6*time.Minute, 1), CallOptions{}, false},
		{"own limit", drip("content_block_delta", 300*time.Millisecond, 5), CallOptions{Idle: 200 * time.Millisecond}, false},
		{"pings stretch it", drip("ping", 3*time.Minute, 3), CallOptions{}, true},
		{"but not for ever", drip("ping", 3*time.Minute, 5), CallOptions{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(c.step), c.o)
				if (o.err == nil) != c.ok || !c.ok && o.err.Kind != KindStalled {
					t.Error(o)
				}
			})
		})
	}
	t.Run("a slow listener is no stall", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, err := Call(t.Context(), newScript(good("x")), &Request{}, CallOptions{OnEvent: func(Event) { time.Sleep(time.Hour) }})
			if err != nil {
				t.Error(err)
			}
		})
	})
}

func TestTimeout(t *testing.T) {
	conform.Covers(t, "L-104", "L-87")
	synctest.Test(t, func(t *testing.T) {
		o := run(t, t.Context(), newScript(stall()), CallOptions{Timeout: time.Second, MaxRetries: new(2)})
		if len(o.model.requests) != 3 || o.err.Kind != KindTimeout || o.err.Text != "Request timed out" {
			t.Fatal(o)
		}
		// Each attempt has a fresh window: 1 s, wait 0.5 s, 1 s, wait 1 s, 1 s.
		if o.model.at[1] != 1500*time.Millisecond || o.model.at[2] != 3500*time.Millisecond {
			t.Error(o.model.at)
		}
	})
	t.Run("default", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := run(t, t.Context(), newScript(stall()), CallOptions{Idle: -1, MaxRetries: new(0)})
			if o.err.Kind != KindTimeout || time.Since(o.model.begin) != 10*time.Minute {
				t.Error(o, time.Since(o.model.begin))
			}
		})
	})
	t.Run("a slow server that was allowed more is not idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := func(ctx context.Context, r *Request, on func(Event)) (*Response, error) {
				select {
				case <-ctx.Done():
					return nil, &Error{Kind: KindAborted, Err: ctx.Err()}
				case <-time.After(20 * time.Minute):
				}
				return good("x")(ctx, r, on)
			}
			o := run(t, t.Context(), newScript(slow), CallOptions{Timeout: 30 * time.Minute})
			if o.err != nil || len(o.model.requests) != 1 {
				t.Error(o)
			}
		})
	})
	t.Run("off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			o := run(t, ctx, newScript(stall()), CallOptions{Timeout: -1, Idle: -1})
			if o.err.Kind != KindAborted {
				t.Error(o)
			}
		})
	})
}

func TestCancel(t *testing.T) {
	conform.Covers(t, "B-173", "B-165", "B-168")
	t.Run("while a delta holds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			o := run(t, ctx, newScript(stall(halfText)), CallOptions{})
			if o.err.Kind != KindAborted || time.Since(o.model.begin) != time.Second || len(o.resp.Blocks) != 1 || !errors.Is(o.err, context.Canceled) {
				t.Error(o)
			}
		})
	})
	t.Run("during the wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			o := run(t, ctx, newScript(refuse(Error{Kind: KindOverloaded, Status: 529})), CallOptions{})
			if o.err.Kind != KindAborted || time.Since(o.model.begin) != 100*time.Millisecond || !errors.Is(o.err, context.Canceled) {
				t.Error(o)
			}
		})
	})
	t.Run("before it began", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			o := run(t, ctx, newScript(good("x")), CallOptions{})
			if o.err.Kind != KindAborted || len(o.model.requests) != 0 || !errors.Is(o.err, why) {
				t.Error(o)
			}
		})
	})
}

// queued is a Model that has room for one attempt at a time.
type queued struct {
	*script
	slot chan struct{}
}

func (q queued) Acquire(ctx context.Context) (func(), error) {
	select {
	case q.slot <- struct{}{}:
		return func() { <-q.slot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func TestWaitingForAConnectionIsNotCounted(t *testing.T) {
	conform.Covers(t, "L-104", "L-105")
	synctest.Test(t, func(t *testing.T) {
		q := queued{newScript(good("x")), make(chan struct{}, 1)}
		q.slot <- struct{}{}
		time.AfterFunc(time.Hour, func() { <-q.slot })
		_, err := Call(t.Context(), q, &Request{}, CallOptions{Timeout: time.Second, Idle: time.Second})
		if err != nil || len(q.requests) != 1 || q.at[0] != time.Hour {
			t.Error(err, q.at)
		}
		if len(q.slot) != 0 {
			t.Error("the slot was not given back")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		q := queued{newScript(good("x")), make(chan struct{}, 1)}
		q.slot <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Call(ctx, q, &Request{}, CallOptions{})
		if e, _ := errors.AsType[*Error](err); e == nil || e.Kind != KindAborted || len(q.requests) != 0 {
			t.Error(err)
		}
	})
}
