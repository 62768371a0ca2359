package model

import (
	"encoding/json"
	"regexp"
	"strconv"
	"time"
)

// The back-off between attempts: 0.5 s, 1 s, 2 s, … to 32 s, each shortened by
// up to a quarter at random, so that it still grows and runs that failed
// together do not come back together.
const (
	backoffBase       = 500 * time.Millisecond
	backoffCap        = 32 * time.Second
	backoffCapForever = 5 * time.Minute // 429 and 529 with Persistent (L-103)
	retryAfterLimit   = 60 * time.Second
)

// Re-issues outside the budget.
const (
	reissueDropped = 2 // L-91
	reissueStalled = 1 // L-92
	reissueEmpty   = 2 // L-68
	reissueShrunk  = 3 // L-99; each asks for less than the one before
)

// minMaxTokens is the least max_tokens that is worth asking for (L-99).
const minMaxTokens = 1024

// again is a decision to make another attempt.
type again struct {
	attempt, allowed int
	delay            time.Duration
}

// next decides whether another attempt follows fail and counts it.
func (c *call) next(fail *Error) (again, bool) {
	switch {
	case fail.Kind == KindAborted, fail.Progress == ProgressBlock:
		return again{}, false
	case fail.ShouldRetry != nil && !*fail.ShouldRetry:
		return again{}, false // L-89
	case fail.Kind == KindMaxTokensTooLarge:
		if !c.shrink(fail) {
			fail.Kind = KindTooLong
			return again{}, false
		}
		return again{attempt: c.shrunk, allowed: reissueShrunk}, true
	case fail.Kind == KindEmpty:
		return c.reissue(&c.empty, reissueEmpty)
	case fail.Kind == KindStalled && fail.Progress != ProgressStarted:
		return c.reissue(&c.stalled, reissueStalled)
	case fail.Kind == KindConnection && fail.Progress == ProgressThinkingDone:
		return c.reissue(&c.dropped, reissueDropped)
	case !transient(fail):
		return again{}, false
	case fail.RetryAfter > retryAfterLimit && !c.options.Persistent:
		return again{}, false // L-88
	}
	allowed := DefaultMaxRetries
	switch {
	case c.options.MaxRetries != nil:
		allowed = *c.options.MaxRetries
	case c.options.Persistent:
		allowed = persistentRetries
	}
	limit := backoffCap
	if c.options.Persistent && (fail.Kind == KindRateLimit || fail.Kind == KindOverloaded) {
		allowed, limit = max(allowed, c.retried+1), backoffCapForever
	}
	if c.retried >= allowed {
		return again{}, false
	}
	delay := c.backoff(c.retried, limit)
	if fail.RetryAfter > 0 {
		delay = fail.RetryAfter
	}
	c.retried++
	return again{attempt: c.retried, allowed: allowed, delay: delay}, true
}

func (c *call) reissue(count *int, allowed int) (again, bool) {
	if *count >= allowed {
		return again{}, false
	}
	*count++
	return again{attempt: *count, allowed: allowed, delay: c.backoff(*count-1, backoffCap)}, true
}

// backoff returns the wait before retry n, counted from 0.
func (c *call) backoff(n int, limit time.Duration) time.Duration {
	d := limit
	if n < 16 { // 0.5 s · 2^16 is past every limit
		d = min(backoffBase<<n, limit)
	}
	return d - time.Duration(c.options.Rand()*float64(d)/4)
}

// transient reports whether the budget is there for such a failure.
func transient(e *Error) bool {
	switch e.Kind {
	case KindConnection, KindTimeout, KindStalled, KindRateLimit, KindOverloaded, KindServer:
		return true
	case KindUnknown, KindInvalidRequest:
		// A server that asks for a retry gets one, except where the same
		// bytes must fail again (L-101).
		return e.ShouldRetry != nil && *e.ShouldRetry && e.Status != 400 && e.Status != 404 && e.Status != 413
	}
	return false
}

var overWindow = regexp.MustCompile(`exceed context limit: ([0-9]+) \+ ([0-9]+) > ([0-9]+)`)

// shrink lowers max_tokens to what the window leaves (L-99). It reports false
// when nothing fits or the request already asked for less.
func (c *call) shrink(fail *Error) bool {
	g := overWindow.FindStringSubmatch(fail.Message)
	if g == nil || c.shrunk >= reissueShrunk {
		return false
	}
	input, err1 := strconv.Atoi(g[1])
	window, err2 := strconv.Atoi(g[3])
	n := window - input
	if err1 != nil || err2 != nil || n < minMaxTokens || n >= c.request.MaxTokens || n <= thinkingBudget(c.request.Thinking) {
		return false
	}
	c.shrunk++
	r := *c.request
	r.MaxTokens = n
	c.request = &r
	return true
}

// thinkingBudget returns the budget_tokens of a thinking parameter: max_tokens
// must stay above it.
func thinkingBudget(thinking json.RawMessage) int {
	var t struct {
		Budget int `json:"budget_tokens"`
	}
	if len(thinking) == 0 || json.Unmarshal(thinking, &t) != nil {
		return 0
	}
	return t.Budget
}
