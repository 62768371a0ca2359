package model

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

func TestTransientFailuresAreRetried(t *testing.T) {
	conform.Covers(t, "L-84", "L-87", "L-90")
	for name, first := range map[string]step{
		"500":                        refuse(Error{Kind: KindServer, Status: 500}),
		"529":                        refuse(Error{Kind: KindOverloaded, Status: 529}),
		"429":                        refuse(Error{Kind: KindRateLimit, Status: 429}),
		"no connection":              refuse(*lost),
		"lost after message_start":   partial(lost),
		"lost in the first text":     partial(lost, halfText),
		"lost in the first call":     partial(lost, halfUse),
		"lost in the first thinking": partial(lost, open(message.NewThinking("h", ""))),
		"stream that just ends":      partial(nil, halfText),
		"request timeout 408":        refuse(Error{Kind: KindTimeout, Status: 408}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(first, good("hello")), CallOptions{})
				if o.err != nil || len(o.model.requests) != 2 || o.resp.Blocks[0].Text() != "hello" {
					t.Fatal(o)
				}
			})
		})
	}
}

func TestBackoff(t *testing.T) {
	conform.Covers(t, "L-84", "L-86", "M-76", "B-165")
	synctest.Test(t, func(t *testing.T) {
		o := run(t, t.Context(), newScript(refuse(Error{Kind: KindOverloaded, Status: 529})), CallOptions{})
		if len(o.model.requests) != 11 || len(o.retries) != 10 {
			t.Fatal(o)
		}
		want := []int64{500, 1000, 2000, 4000, 8000, 16000, 32000, 32000, 32000, 32000}
		at := time.Duration(0)
		for i, r := range o.retries {
			if r.Attempt != i+1 || r.MaxRetries != 10 || r.RetryDelayMS != want[i] ||
				r.ErrorStatus == nil || *r.ErrorStatus != 529 || r.Error != message.CategoryOverloaded {
				t.Errorf("retry %d: %+v", i, r)
			}
			if o.model.at[i] != at {
				t.Errorf("attempt %d at %v, want %v", i, o.model.at[i], at)
			}
			at += time.Duration(r.RetryDelayMS) * time.Millisecond
		}
		if o.err.Attempts != 11 || o.err.Kind != KindOverloaded {
			t.Errorf("%+v", o.err)
		}
	})
}

func TestBackoffOfParallelRunsGrowsAndDiffers(t *testing.T) {
	conform.Covers(t, "L-84", "B-165")
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		outs := make([]outcome, 8)
		for i := range outs {
			wg.Go(func() {
				s := newScript(refuse(Error{Kind: KindOverloaded, Status: 529}))
				n := 0
				o := CallOptions{Rand: func() float64 { n++; return float64((i+1)*n%11) / 11 }}
				outs[i] = run(t, t.Context(), s, o)
			})
		}
		wg.Wait()
		seen := map[int64]bool{}
		for i, o := range outs {
			last := int64(0)
			for n, r := range o.retries {
				full := min(int64(500)<<n, 32000)
				if r.RetryDelayMS > full || r.RetryDelayMS < full*3/4 {
					t.Errorf("run %d retry %d: %d ms", i, n, r.RetryDelayMS)
				}
				if n < 7 && r.RetryDelayMS <= last {
					t.Errorf("run %d retry %d: %d ms after %d", i, n, r.RetryDelayMS, last)
				}
				last = r.RetryDelayMS
			}
			seen[o.retries[5].RetryDelayMS] = true
		}
		if len(seen) < 4 {
			t.Errorf("eight runs waited %v", seen)
		}
	})
}

func TestMaxRetries(t *testing.T) {
	for _, n := range []int{0, 1, 3, 15} {
		synctest.Test(t, func(t *testing.T) {
			o := run(t, t.Context(), newScript(refuse(Error{Kind: KindServer, Status: 503})), CallOptions{MaxRetries: new(n)})
			if len(o.model.requests) != n+1 || len(o.retries) != n {
				t.Error(n, o)
			}
			for _, r := range o.retries {
				if r.MaxRetries != n {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	conform.Covers(t, "L-88", "L-103")
	for _, c := range []struct {
		name       string
		after      time.Duration
		persistent bool
		attempts   int
		delay      int64
	}{
		{"honoured", 7 * time.Second, false, 2, 7000},
		{"60 s is not too long", time.Minute, false, 2, 60000},
		{"above 60 s ends", 61 * time.Second, false, 1, 0},
		{"above 60 s, persistent", time.Hour, true, 2, 3600000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(refuse(Error{Kind: KindRateLimit, Status: 429, RetryAfter: c.after}), good("x"))
				o := run(t, t.Context(), s, CallOptions{Persistent: c.persistent})
				if len(o.model.requests) != c.attempts {
					t.Fatal(o)
				}
				if c.attempts == 1 {
					if o.err.Kind != KindRateLimit || !strings.HasPrefix(o.err.Text, "API Error: Request rejected (429)") {
						t.Error(o)
					}
					return
				}
				if o.retries[0].RetryDelayMS != c.delay || o.model.at[1] != time.Duration(c.delay)*time.Millisecond {
					t.Error(o.retries, o.model.at)
				}
			})
		})
	}
}

func TestPersistent(t *testing.T) {
	conform.Covers(t, "L-103")
	synctest.Test(t, func(t *testing.T) {
		steps := make([]step, 0, 401)
		for range 400 {
			steps = append(steps, refuse(Error{Kind: KindOverloaded, Status: 529}))
		}
		o := run(t, t.Context(), newScript(append(steps, good("x"))...), CallOptions{Persistent: true})
		if o.err != nil || len(o.retries) != 400 || o.retries[399].RetryDelayMS != 300000 {
			t.Error(o, o.retries[len(o.retries)-1])
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := run(t, t.Context(), newScript(refuse(Error{Kind: KindServer, Status: 500})), CallOptions{Persistent: true})
		if len(o.retries) != 300 || o.retries[0].MaxRetries != 300 || o.retries[299].RetryDelayMS != 32000 {
			t.Error(o)
		}
	})
}

func TestNeverRetried(t *testing.T) {
	conform.Covers(t, "L-89", "L-98", "L-101", "B-163")
	no := false
	for name, e := range map[string]Error{
		"x-should-retry false on 429": {Kind: KindRateLimit, Status: 429, ShouldRetry: &no},
		"x-should-retry false on 500": {Kind: KindServer, Status: 500, ShouldRetry: &no},
		"400":                         {Kind: KindInvalidRequest, Status: 400},
		"400 asking for a retry":      {Kind: KindInvalidRequest, Status: 400, ShouldRetry: new(true)},
		"401":                         {Kind: KindAuthentication, Status: 401},
		"402":                         {Kind: KindBilling, Status: 402},
		"403":                         {Kind: KindAuthentication, Status: 403},
		"404":                         {Kind: KindModelNotFound, Status: 404},
		"413":                         {Kind: KindInvalidRequest, Status: 413},
		"certificate":                 {Kind: KindTLS},
		"prompt too long":             {Kind: KindTooLong, Status: 400},
		"image":                       {Kind: KindImage, Status: 400},
		"malformed":                   {Kind: KindMalformed, Status: 200},
		"permanent, in the stream":    {Kind: KindInvalidRequest, Type: "invalid_request_error"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(refuse(e), good("x")), CallOptions{})
				if o.err == nil || o.resp != nil || len(o.model.requests) != 1 || o.err.Kind != e.Kind || o.err.Text == "" {
					t.Error(o)
				}
			})
		})
	}
}

func TestServerAskingForRetryGetsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := run(t, t.Context(), newScript(refuse(Error{Kind: KindInvalidRequest, Status: 409, ShouldRetry: new(true)}), good("x")), CallOptions{})
		if o.err != nil || len(o.model.requests) != 2 {
			t.Error(o)
		}
	})
}

func TestDroppedAfterThinking(t *testing.T) {
	conform.Covers(t, "L-91")
	for _, max := range []int{0, 10} {
		synctest.Test(t, func(t *testing.T) {
			o := run(t, t.Context(), newScript(partial(lost, thought)), CallOptions{MaxRetries: new(max)})
			if len(o.model.requests) != 3 || o.resp != nil || o.err.Text != "Connection lost before a response was produced (request id req_cut)" {
				t.Error(o)
			}
			for i, r := range o.retries {
				if r.Attempt != i+1 || r.MaxRetries != 2 || r.RetryDelayMS > 1000 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	// A second thinking block that had begun is still no text and no call.
	synctest.Test(t, func(t *testing.T) {
		o := run(t, t.Context(), newScript(partial(lost, thought, open(message.NewThinking("", ""))), good("x")), CallOptions{})
		if o.err != nil || len(o.model.requests) != 2 {
			t.Error(o)
		}
	})
}

func TestBrokenAfterABlock(t *testing.T) {
	conform.Covers(t, "L-93", "L-94", "L-95", "B-159", "B-163")
	const may = " The response above may be incomplete. (request id req_cut)"
	for _, c := range []struct {
		name string
		err  *Error
		text string
		b    []Block
	}{
		{"call done, connection lost", lost, "API Error: Connection lost mid-response." + may, []Block{wholeUse, halfUse}},
		{"text done, stream ends politely", nil, "API Error: Connection lost mid-response." + may, []Block{done(message.NewText("a"))}},
		{"text done, overloaded", &Error{Kind: KindOverloaded, Type: "overloaded_error"}, "API Error: Server error mid-response." + may, []Block{done(message.NewText("a"))}},
		{"text done, permanent error", &Error{Kind: KindInvalidRequest, Type: "invalid_request_error"}, "API Error: Server error mid-response." + may, []Block{done(message.NewText("a"))}},
		{"text begun after thinking", lost, "API Error: Connection lost mid-response." + may, []Block{thought, halfText}},
		{"call begun after thinking", lost, "API Error: Connection lost mid-response." + may, []Block{thought, halfUse}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(partial(c.err, c.b...), good("again")), CallOptions{})
				if len(o.model.requests) != 1 || o.err.Progress != ProgressBlock || o.err.Text != c.text {
					t.Fatal(o)
				}
				if len(o.resp.Blocks) != len(c.b) || o.resp.Blocks[0].Done != c.b[0].Done {
					t.Error(o.resp.Blocks)
				}
			})
		})
	}
	t.Run("stalled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := run(t, t.Context(), newScript(stall(wholeUse)), CallOptions{})
			if len(o.model.requests) != 1 || len(o.resp.Blocks) != 1 ||
				o.err.Text != "API Error: The response stopped arriving. The response above may be incomplete." {
				t.Error(o)
			}
		})
	})
}

func TestFailureAfterStopReasonIsIgnored(t *testing.T) {
	conform.Covers(t, "L-97", "L-94")
	synctest.Test(t, func(t *testing.T) {
		late := func(context.Context, *Request, func(Event)) (*Response, error) {
			return &Response{ID: "m", StopReason: "tool_use", Blocks: []Block{wholeUse}}, lost
		}
		o := run(t, t.Context(), newScript(late), CallOptions{})
		if o.err != nil || len(o.model.requests) != 1 || !o.spends[0].Final {
			t.Error(o)
		}
	})
}

func TestErrorInsideTheStream(t *testing.T) {
	conform.Covers(t, "B-163", "B-167")
	over := &Error{Kind: KindOverloaded, Type: "overloaded_error", Message: "Overloaded"}
	for name, first := range map[string]step{
		"before content":    partial(over),
		"after half a text": partial(over, halfText),
		"after thinking":    partial(over, thought),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(first, good("whole")), CallOptions{})
				if o.err != nil || len(o.resp.Blocks) != 1 || o.resp.Blocks[0].Text() != "whole" || o.resp.ID != "msg_good" {
					t.Fatal(o)
				}
				if o.retries[0].RetryDelayMS == 0 || o.retries[0].ErrorStatus != nil {
					t.Errorf("%+v", o.retries[0])
				}
				all := strings.Join(o.events, " ")
				if strings.Count(all, "message_start") != 2 || !strings.Contains(all, "retry message_start") {
					t.Error("no notice before the second message_start:", all)
				}
				// Both attempts were billed: what each had reported counts.
				if len(o.spends) != 2 || o.spends[0].Final || o.spends[0].Usage.InputTokens != 5 || o.spends[0].Usage.OutputTokens != 2 || !o.spends[1].Final {
					t.Errorf("%+v", o.spends)
				}
			})
		})
	}
}

func TestSpendOnlyFromMessageStart(t *testing.T) {
	conform.Covers(t, "B-167")
	synctest.Test(t, func(t *testing.T) {
		o := run(t, t.Context(), newScript(refuse(*lost), good("x")), CallOptions{})
		if len(o.spends) != 1 || o.spends[0].ResponseID != "msg_good" || o.spends[0].Usage.OutputTokens != 7 {
			t.Errorf("%+v", o.spends)
		}
	})
}

func TestEmptyReply(t *testing.T) {
	conform.Covers(t, "L-68", "B-005", "B-007", "B-130")
	for _, reason := range []string{"end_turn", "max_tokens"} {
		for _, blocks := range [][]Block{nil, {done(message.NewText(""))}} {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(finish(reason, 0, blocks...)), CallOptions{})
				if len(o.model.requests) != 3 || o.resp != nil || o.err.Kind != KindEmpty {
					t.Fatal(o)
				}
				if !strings.HasPrefix(o.err.Text, "API returned an empty or malformed response (HTTP 200)") {
					t.Error(o.err.Text)
				}
				if len(o.spends) != 3 {
					t.Error(o.spends)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(finish(reason, 0, blocks...), good("real")), CallOptions{})
				if o.err != nil || o.resp.Blocks[0].Text() != "real" {
					t.Error(o)
				}
			})
		}
	}
}

func TestEmptyAnswersThatAreAnswers(t *testing.T) {
	conform.Covers(t, "L-68")
	for name, s := range map[string]step{
		"end_turn with output tokens": finish("end_turn", 3),
		"refusal":                     finish("refusal", 0),
		"window exceeded":             finish("model_context_window_exceeded", 0),
		"a reason of the future":      finish("some_day", 0),
		"thinking only":               finish("end_turn", 0, thought),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(s), CallOptions{})
				if o.err != nil || len(o.model.requests) != 1 {
					t.Error(o)
				}
			})
		})
	}
}

func TestMaxTokensTooLarge(t *testing.T) {
	conform.Covers(t, "L-99")
	tooLarge := func(msg string) step {
		return refuse(Error{Kind: KindMaxTokensTooLarge, Status: 400, Message: msg})
	}
	const msg = "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, decrease input length or `max_tokens` and try again"
	synctest.Test(t, func(t *testing.T) {
		o := run(t, t.Context(), newScript(tooLarge(msg), good("x")), CallOptions{MaxRetries: new(0)})
		if o.err != nil || len(o.model.requests) != 2 || o.model.requests[1].MaxTokens != 20000 || o.model.requests[0].MaxTokens != 32000 {
			t.Error(o)
		}
	})
	for name, s := range map[string][]step{
		"too little left":   {tooLarge(strings.Replace(msg, "180000", "199000", 1))},
		"input alone over":  {tooLarge(strings.Replace(msg, "180000", "300000", 1))},
		"does not shrink":   {tooLarge(msg), tooLarge(msg)},
		"other words":       {tooLarge("max_tokens: exceed context limit")},
		"not even a number": {tooLarge("exceed context limit: 99999999999999999999999 + 1 > 2")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := run(t, t.Context(), newScript(s...), CallOptions{})
				if o.err == nil || o.err.Kind != KindTooLong || len(o.model.requests) != len(s) || o.err.Text != "Prompt is too long" {
					t.Error(o)
				}
			})
		})
	}
	t.Run("thinking needs its budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(tooLarge(msg))
			_, err := Call(t.Context(), s, &Request{MaxTokens: 32000, Thinking: []byte(`{"type":"enabled","budget_tokens":24000}`)}, CallOptions{})
			if e, _ := errors.AsType[*Error](err); e == nil || e.Kind != KindTooLong || len(s.requests) != 1 {
				t.Error(err)
			}
		})
	})
}

func TestForeignErrorsBecomeErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("something odd")
		odd := func(context.Context, *Request, func(Event)) (*Response, error) { return nil, cause }
		o := run(t, t.Context(), newScript(odd), CallOptions{})
		if o.err.Kind != KindUnknown || !errors.Is(o.err, cause) || o.err.Text != "API Error: something odd" || len(o.model.requests) != 1 {
			t.Error(o)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		mine := &Error{Kind: KindServer, Status: 500}
		o := run(t, t.Context(), newScript(refuse(*mine)), CallOptions{MaxRetries: new(0)})
		if mine.Text != "" || o.err.Text == "" {
			t.Error("the provider's error was changed")
		}
	})
}
