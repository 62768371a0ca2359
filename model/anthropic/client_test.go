package anthropic

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// asError returns the *model.Error that err must be.
func asError(t *testing.T, err error) *model.Error {
	t.Helper()
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("%T is no *model.Error: %v", err, err)
	}
	return e
}

var whole = join([]string{evStart, evPing}, text(0, "Let me ", "look."), call(1, "tu_1", "Bash", `{"command":`, `"ls"}`), []string{evTools, evStop})

func TestStream(t *testing.T) {
	conform.Covers(t, "M-44", "M-46", "M-48", "M-50", "M-32")
	c := serve(t, events(whole...))
	var got []model.Event
	r, err := c.Stream(t.Context(), hello, func(ev model.Event) { got = append(got, ev) })
	if err != nil {
		t.Fatal(err)
	}
	want := "msg_1 claude-test stop=\"tool_use\" in=25 out=15\n" +
		`{"type":"text","text":"Let me look."} done=true bad=false raw=""` + "\n" +
		`{"type":"tool_use","id":"tu_1","name":"Bash","input":{"command":"ls"}} done=true bad=false raw=""` + "\n"
	if show(r) != want || r.RequestID != "req_test" || r.StartUsage.OutputTokens != 1 || r.FirstEvent <= 0 {
		t.Error(show(r), r.RequestID, r.FirstEvent)
	}
	if len(got) != len(whole) {
		t.Fatalf("%d events of %d", len(got), len(whole))
	}
	for i, ev := range got {
		if string(ev.Data) != whole[i] || !strings.Contains(whole[i], `"type":"`+ev.Type+`"`) {
			t.Errorf("event %d: %s %s", i, ev.Type, ev.Data)
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	conform.Covers(t, "O-107", "K-222")
	var h http.Header
	var raw []byte
	var path, host string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, path, host = r.Header.Clone(), r.Method+" "+r.URL.Path, r.Host
		raw, _ = io.ReadAll(r.Body)
		if r.ContentLength != int64(len(raw)) {
			t.Errorf("content length %d of %d", r.ContentLength, len(raw))
		}
		events(whole...)(w, r)
	}))
	defer srv.Close()
	c, err := New(Config{
		BaseURL: srv.URL + "/gateway/", APIKey: "k", AuthToken: "tok", UserAgent: "me/1", Betas: []string{"b-1"},
		Headers: map[string]string{"X-Team": "core", "anthropic-version": "2023-06-01", "Host": "api.example"}, ExtraBody: json.RawMessage(`{"top_k":5}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer CloseIdleConnections()
	r := *hello
	r.Betas = []string{"b-2", "b-1"}
	if _, err := c.Stream(t.Context(), &r, nil); err != nil {
		t.Fatal(err)
	}
	if path != "POST /gateway/v1/messages" || host != "api.example" {
		t.Error(path, host)
	}
	for k, v := range map[string]string{
		"X-Api-Key": "k", "Authorization": "Bearer tok", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "b-1,b-2",
		"User-Agent": "me/1", "X-Team": "core", "Content-Type": "application/json",
	} {
		if h.Get(k) != v || len(h.Values(k)) != 1 {
			t.Errorf("%s: %q", k, h.Values(k))
		}
	}
	if want := `{"model":"claude-test","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"top_k":5}`; string(raw) != want {
		t.Errorf("%s", raw)
	}
	plain, err := New(Config{BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Stream(t.Context(), hello, nil); err != nil {
		t.Fatal(err)
	}
	if h.Get("Anthropic-Version") != "2026-10-21" || h.Values("X-Api-Key") != nil || h.Values("Authorization") != nil || h.Values("Anthropic-Beta") != nil {
		t.Errorf("%v", h)
	}
}

func TestStreamForms(t *testing.T) {
	conform.Covers(t, "B-162")
	std := sse(whole...)
	forms := map[string]string{
		"as the API writes it": std,
		"no final blank line":  strings.TrimSuffix(std, "\n"),
		"no final line end":    strings.TrimRight(std, "\n"),
		"CRLF":                 strings.ReplaceAll(std, "\n", "\r\n"),
		"comments and pings":   strings.ReplaceAll(std, "event: content", ": keep-alive\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: content"),
		"several data lines":   strings.ReplaceAll(std, `,"`, ",\ndata: \""),
		"no space":             strings.ReplaceAll(strings.ReplaceAll(std, "data: ", "data:"), "event: ", "event:"),
		"unknown events":       strings.ReplaceAll(std, "event: content", "event: news\ndata: {\"type\":\"news\",\"index\":\"a\"}\n\nevent: content"),
		"no event lines":       noLines(std, "event:"),
		"more fields":          strings.ReplaceAll(std, "event:", "id: 1\nretry: 100\nevent:"),
		"a [DONE] at the end":  std + "data: [DONE]\n\n",
		"after the end":        std + "event: message_start\ndata: {\"type\":\"message_start\"}\n\n",
	}
	var want string
	for _, name := range append([]string{"as the API writes it"}, sortedNames(forms)...) {
		for _, step := range []int{len(forms[name]), 1} {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for s := forms[name]; s != ""; s = s[min(step, len(s)):] {
					_, _ = io.WriteString(w, s[:min(step, len(s))])
					if step == 1 {
						w.(http.Flusher).Flush()
					}
				}
			})
			r, err := c.Stream(t.Context(), hello, nil)
			if err != nil {
				t.Errorf("%s, by %d: %v", name, step, err)
				continue
			}
			if want == "" {
				want = show(r)
			}
			if show(r) != want {
				t.Errorf("%s, by %d: %s", name, step, show(r))
			}
		}
	}
}

func noLines(s, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func sortedNames(m map[string]string) []string {
	raw := make(map[string]json.RawMessage, len(m))
	for k := range m {
		raw[k] = nil
	}
	return sortedKeys(raw)
}

func TestBigEvents(t *testing.T) {
	conform.Covers(t, "B-161")
	for _, n := range []int{70_000, 1_500_000, 40_000_000} {
		if n > 2_000_000 && testing.Short() {
			continue
		}
		big := strings.Repeat("x", n)
		delta := blockDelta(0, `{"type":"text_delta","text":"`+big+`"}`)
		input := blockDelta(1, `{"type":"input_json_delta","partial_json":"{\"content\":\"`+big+`\"}"}`)
		c := serve(t, events(evStart, blockStart(0, `{"type":"text","text":""}`), delta, blockStop(0),
			blockStart(1, `{"type":"tool_use","id":"tu_1","name":"Write","input":{}}`), input, blockStop(1), evTools, evStop))
		r, err := c.Stream(t.Context(), hello, nil)
		if err != nil {
			t.Fatal(n, err)
		}
		// The blocks' bytes, without decoding 40 MB once more.
		want := []string{`{"type":"text","text":"` + big + `"}`, `{"type":"tool_use","id":"tu_1","name":"Write","input":{"content":"` + big + `"}}`}
		for i, b := range r.Blocks {
			if string(b.Raw()) != want[i] || !b.Done || b.BadInput {
				t.Errorf("block %d of %d bytes was not read whole", i, n)
			}
		}
	}
}

func TestPlainObjectAnswer(t *testing.T) {
	const object = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[` +
		`{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi","citations":[{"type":"x"}]},` +
		`{"type":"redacted_thinking","data":"d"},{"type":"tool_use","id":"tu","name":"N","input":{"a":1}}],` +
		`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":9}}`
	for _, ct := range []string{"application/json", "text/plain", ""} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", ct)
			_, _ = io.WriteString(w, "\n "+object)
		})
		var types []string
		replay := &stream{grace: neverGrace}
		r, err := c.Stream(t.Context(), hello, func(ev model.Event) {
			types = append(types, ev.Type)
			if err := replay.use(frame{data: ev.Data}); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if types[0] != "message_start" || types[len(types)-1] != "message_stop" || len(types) != 3+4*2+4 {
			t.Error(types)
		}
		want := []string{
			`{"type":"thinking","thinking":"hm","signature":"s"}`, `{"type":"text","text":"hi","citations":[{"type":"x"}]}`,
			`{"type":"redacted_thinking","data":"d"}`, `{"type":"tool_use","id":"tu","name":"N","input":{"a":1}}`,
		}
		for i, b := range r.Blocks {
			if string(b.Raw()) != want[i] || !b.Done {
				t.Errorf("%s", b.Raw())
			}
		}
		if r.StopReason != "tool_use" || r.Usage.OutputTokens != 9 || show(replay.asm.response()) != show(r) {
			t.Error(show(r), show(replay.asm.response()))
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	conform.Covers(t, "L-102")
	for name, c := range map[string]struct {
		ct, body string
		kind     model.ErrorKind
	}{
		"a page":                 {"text/html", "<html>Sign in</html>", model.KindMalformed},
		"nothing":                {"text/plain", "", model.KindMalformed},
		"another object":         {"application/json", `{"choices":[]}`, model.KindMalformed},
		"an array":               {"application/json", `[]`, model.KindMalformed},
		"half an object":         {"application/json", `{"type":"message","content":[`, model.KindMalformed},
		"an error object":        {"application/json", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, model.KindOverloaded},
		"a message, no reason":   {"application/json", `{"type":"message","id":"m","content":[]}`, model.KindConnection},
		"an empty event stream":  {"text/event-stream", "", model.KindConnection},
		"words as event stream":  {"text/event-stream", "upstream failed\n", model.KindConnection},
		"events that are no API": {"text/event-stream", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", model.KindConnection},
		"no JSON":                {"text/event-stream", "data: oops\n\n", model.KindMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.ct)
				_, _ = io.WriteString(w, c.body)
			})
			r, err := cl.Stream(t.Context(), hello, nil)
			if e := asError(t, err); e.Kind != c.kind || e.Message == "" && e.Kind != model.KindOverloaded || e.Host == "" {
				t.Errorf("%+v %s", e, show(r))
			}
		})
	}
}

func TestErrorAnswers(t *testing.T) {
	conform.Covers(t, "L-88", "L-89", "L-108", "L-109", "M-28")
	type answer struct {
		status int
		header map[string]string
		body   string
	}
	api := func(typ, msg string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_body"}`, typ, msg)
	}
	for name, c := range map[string]struct {
		answer answer
		want   func(e *model.Error) bool
	}{
		"529": {
			answer{529, nil, api("overloaded_error", "Overloaded")},
			func(e *model.Error) bool {
				return e.Kind == model.KindOverloaded && e.Message == "Overloaded" && e.RequestID == "req_body" && e.Category() == message.CategoryOverloaded
			},
		},
		"429": {
			answer{429, map[string]string{"Retry-After": "7", "X-Should-Retry": "false", "Request-Id": "req_head"}, api("rate_limit_error", "slow")},
			func(e *model.Error) bool {
				return e.Kind == model.KindRateLimit && e.RetryAfter == 7*time.Second && !*e.ShouldRetry && e.RequestID == "req_head" && e.Category() == message.CategoryRateLimit
			},
		},
		"x-should-retry true": {
			answer{409, map[string]string{"X-Should-Retry": "true"}, ""},
			func(e *model.Error) bool { return *e.ShouldRetry && e.Message == "Conflict" },
		},
		"a proxy's page": {
			answer{502, nil, "<html>nginx</html>"},
			func(e *model.Error) bool { return e.Kind == model.KindServer && e.Message == "Bad Gateway" },
		},
		"a proxy's words": {
			answer{503, nil, " no upstream \n"},
			func(e *model.Error) bool { return e.Kind == model.KindServer && e.Message == "no upstream" },
		},
		"an endless body": {
			answer{500, nil, strings.Repeat("é", 5<<20)},
			func(e *model.Error) bool { return e.Kind == model.KindServer && len(e.Message) < 400 },
		},
		"other JSON": {
			answer{400, nil, `{"detail":"bad"}`},
			func(e *model.Error) bool {
				return e.Kind == model.KindInvalidRequest && strings.Contains(e.Message, "detail")
			},
		},
		"redirect": {
			answer{307, map[string]string{"Location": "http://127.0.0.1:1/elsewhere"}, ""},
			func(e *model.Error) bool {
				return e.Kind == model.KindMalformed && strings.Contains(e.Message, "redirect")
			},
		},
		"204": {
			answer{204, nil, ""},
			func(e *model.Error) bool { return e.Kind == model.KindUnknown && e.Status == 204 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for k, v := range c.answer.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.answer.status)
				_, _ = io.WriteString(w, c.answer.body)
			})
			r, err := cl.Stream(t.Context(), hello, nil)
			e := asError(t, err)
			if r != nil || !c.want(e) || e.Host != cl.host {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestRetryAfterForms(t *testing.T) {
	conform.Covers(t, "L-88")
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		h    http.Header
		want time.Duration
	}{
		{http.Header{}, 0},
		{http.Header{"Retry-After": {"30"}}, 30 * time.Second},
		{http.Header{"Retry-After": {" 1.5 "}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"30"}}, 250 * time.Millisecond},
		{http.Header{"Retry-After": {at(90 * time.Second)}}, 90 * time.Second},
		{http.Header{"Retry-After": {at(-time.Hour)}}, 0},
		// The server's clock is an hour ahead of ours.
		{http.Header{"Retry-After": {at(time.Hour + 5*time.Second)}, "Date": {at(time.Hour)}}, 5 * time.Second},
		{http.Header{"Retry-After": {"-5"}}, 0},
		{http.Header{"Retry-After": {"NaN"}}, 0},
		{http.Header{"Retry-After": {"1e300"}}, 366 * 24 * time.Hour},
		{http.Header{"Retry-After": {"soon"}}, 0},
	} {
		if got := retryAfter(c.h, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.h, got, c.want)
		}
	}
}

// TestCutAnywhere cuts the connection after every event and in the middle of
// each: what came is returned, and the stop_reason decides whether it counts.
func TestCutAnywhere(t *testing.T) {
	conform.Covers(t, "L-94", "L-97", "L-90", "B-159")
	for n := range len(whole) + 1 {
		for _, polite := range []bool{true, false} {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, sse(whole[:n]...))
				if n < len(whole) {
					next := sse(whole[n])
					_, _ = io.WriteString(w, next[:len(next)/2])
				}
				w.(http.Flusher).Flush()
				if !polite {
					panic(http.ErrAbortHandler)
				}
			})
			r, err := c.Stream(t.Context(), hello, nil)
			if n >= len(whole)-1 { // the message_delta arrived
				if err != nil || !r.Complete() || len(r.Blocks) != 2 {
					t.Errorf("cut after %d: %s %v", n, show(r), err)
				}
				continue
			}
			e := asError(t, err)
			if e.Kind != model.KindConnection || (r == nil) != (n == 0) || r.Complete() {
				t.Errorf("cut after %d: %s %+v", n, show(r), e)
			}
			done := 0
			if r != nil {
				for _, b := range r.Blocks {
					if b.Done {
						done++
					}
				}
			}
			if want := strings.Count(strings.Join(whole[:n], ""), "content_block_stop"); done != want {
				t.Errorf("cut after %d: %d finished blocks, want %d", n, done, want)
			}
		}
	}
}

func TestStreamThatStaysOpenAfterTheEnd(t *testing.T) {
	conform.Covers(t, "L-97")
	for name, last := range map[string]int{"after message_stop": len(whole), "message_stop missing": len(whole) - 1} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				events(whole[:last]...)(w, r)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(gone)
			})
			r, err := c.Stream(t.Context(), hello, nil)
			if err != nil || !r.Complete() {
				t.Error(show(r), err)
			}
			<-gone
		})
	}
}

func TestErrorEvent(t *testing.T) {
	conform.Covers(t, "B-163")
	over := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_ev"}`
	for name, c := range map[string]struct {
		evs      []string
		kind     model.ErrorKind
		progress model.Progress
	}{
		"first":             {[]string{over}, model.KindOverloaded, model.ProgressNone},
		"after the start":   {[]string{evStart, over}, model.KindOverloaded, model.ProgressNone},
		"after half a text": {[]string{evStart, blockStart(0, `{"type":"text","text":""}`), blockDelta(0, `{"type":"text_delta","text":"ha"}`), over}, model.KindOverloaded, model.ProgressStarted},
		"after a call":      {join([]string{evStart}, call(0, "t", "N"), []string{over}), model.KindOverloaded, model.ProgressBlock},
		"permanent":         {[]string{`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`}, model.KindInvalidRequest, model.ProgressNone},
		"unknown type":      {[]string{`{"type":"error","error":{"type":"strange","message":"no"}}`}, model.KindServer, model.ProgressNone},
		"without a cause":   {[]string{`{"type":"error"}`}, model.KindServer, model.ProgressNone},
	} {
		t.Run(name, func(t *testing.T) {
			cl := serve(t, events(c.evs...))
			r, err := cl.Stream(t.Context(), hello, nil)
			if e := asError(t, err); e.Kind != c.kind || r.Progress() != c.progress || e.Status != 0 || e.RequestID != "req_test" {
				t.Errorf("%+v %s", e, show(r))
			}
		})
	}
}

func TestCallOverHTTP(t *testing.T) {
	conform.Covers(t, "B-163", "B-159", "L-86", "L-87")
	t.Run("overloaded, cut, then good", func(t *testing.T) {
		var n atomic.Int32
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch n.Add(1) {
			case 1:
				w.Header().Set("Retry-After-Ms", "1")
				w.WriteHeader(529)
			case 2:
				events(evStart, blockStart(0, `{"type":"text","text":""}`), blockDelta(0, `{"type":"text_delta","text":"ha"}`), `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`)(w, r)
			default:
				events(whole...)(w, r)
			}
		})
		var retries []message.APIRetry
		r, err := model.Call(t.Context(), c, hello, model.CallOptions{OnRetry: func(a message.APIRetry) { retries = append(retries, a) }})
		if err != nil || r.Blocks[0].Text() != "Let me look." || len(retries) != 2 || retries[0].RetryDelayMS != 1 || *retries[0].ErrorStatus != 529 {
			t.Error(show(r), err, retries)
		}
	})
	t.Run("a finished call is never asked for again", func(t *testing.T) {
		var n atomic.Int32
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			events(join([]string{evStart}, call(0, "tu_1", "Bash", `{"command":"echo x >> log"}`))...)(w, r)
		})
		r, err := model.Call(t.Context(), c, hello, model.CallOptions{})
		if e := asError(t, err); e.Progress != model.ProgressBlock || n.Load() != 1 || len(r.Blocks) != 1 || !r.Blocks[0].Done {
			t.Errorf("%d requests, %s, %+v", n.Load(), show(r), e)
		}
	})
	t.Run("silent server", func(t *testing.T) {
		conform.Covers(t, "B-168", "L-105", "L-104")
		for name, h := range map[string]http.HandlerFunc{
			"no headers": func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			},
			"half a text": func(w http.ResponseWriter, r *http.Request) {
				events(evStart, blockStart(0, `{"type":"text","text":""}`), blockDelta(0, `{"type":"text_delta","text":"ha"}`))(w, r)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			},
			"pings": func(w http.ResponseWriter, r *http.Request) {
				events(evStart)(w, r)
				pace := time.NewTicker(5 * time.Millisecond)
				defer pace.Stop()
				for {
					select {
					case <-r.Context().Done():
						return
					case <-pace.C:
						_, _ = io.WriteString(w, sse(evPing))
						w.(http.Flusher).Flush()
					}
				}
			},
		} {
			c := serve(t, h)
			r, err := model.Call(t.Context(), c, hello, model.CallOptions{Idle: 50 * time.Millisecond, MaxRetries: new(0)})
			if e := asError(t, err); e.Kind != model.KindStalled || r != nil {
				t.Errorf("%s: %+v", name, e)
			}
		}
	})
}

func TestCancelInTheMiddle(t *testing.T) {
	conform.Covers(t, "B-173")
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(evStart, blockStart(0, `{"type":"text","text":""}`), blockDelta(0, `{"type":"text_delta","text":"half"}`))(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := model.Call(ctx, c, hello, model.CallOptions{OnEvent: func(ev model.Event) {
		if ev.Type == "content_block_delta" {
			cancel()
		}
	}})
	e := asError(t, err)
	if e.Kind != model.KindAborted || !errors.Is(err, context.Canceled) || len(r.Blocks) != 1 || r.Blocks[0].Text() != "half" || r.Blocks[0].Done {
		t.Errorf("%+v %s", e, show(r))
	}
	<-gone // the request is aborted too
}

func TestNoServer(t *testing.T) {
	conform.Covers(t, "L-90", "L-109")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	c, err := New(Config{BaseURL: "http://user:hidden@" + addr, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Call(t.Context(), c, hello, model.CallOptions{MaxRetries: new(0)})
	e := asError(t, err)
	if e.Kind != model.KindConnection || e.Status != 0 || !strings.Contains(e.Text, addr) || strings.Contains(e.Text, "hidden") || strings.Contains(e.Text, "claude.com") {
		t.Errorf("%+v", e)
	}
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestCertificates(t *testing.T) {
	conform.Covers(t, "L-98", "K-250")
	var n atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		events(whole...)(w, r)
	}))
	srv.Config.ErrorLog = nil
	defer srv.Close()
	c, err := New(Config{BaseURL: srv.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	_, err = model.Call(t.Context(), c, hello, model.CallOptions{OnRetry: func(message.APIRetry) { tries++ }})
	if e := asError(t, err); e.Kind != model.KindTLS || tries != 0 || n.Load() != 0 || !strings.Contains(e.Text, "certificate") {
		t.Errorf("%+v after %d retries", e, tries)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := FromEnv(env("ANTHROPIC_BASE_URL", srv.URL, "NODE_EXTRA_CA_CERTS", ca))
	if err != nil {
		t.Fatal(err)
	}
	if c, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	defer CloseIdleConnections()
	if _, err = c.Stream(t.Context(), hello, nil); err != nil {
		t.Error(err)
	}
	// A server that speaks no TLS at all is a passing condition.
	plain := httptest.NewServer(events(whole...))
	defer plain.Close()
	if c, err = New(Config{BaseURL: strings.Replace(plain.URL, "http:", "https:", 1), APIKey: "k"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Stream(t.Context(), hello, nil)
	if e := asError(t, err); e.Kind != model.KindConnection {
		t.Errorf("%+v", e)
	}
}

func TestMissingCredentials(t *testing.T) {
	conform.Covers(t, "L-112")
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := model.Call(t.Context(), c, hello, model.CallOptions{})
	e := asError(t, err)
	if r != nil || e.Kind != model.KindAuthentication || e.Attempts != 1 || !strings.Contains(e.Text, "ANTHROPIC_API_KEY") || c.KeySource() != "none" {
		t.Errorf("%+v", e)
	}
	for _, cfg := range []Config{{APIKey: "k"}, {AuthToken: "t"}, {Headers: map[string]string{"x-api-key": "k"}}, {BaseURL: "http://127.0.0.1:1"}} {
		if c, err := New(cfg); err != nil || c.missing {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestBadRequestIsNotSent(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	r := *hello
	r.Marks = []model.Mark{{Where: model.InTools, Index: 4}}
	_, err := c.Stream(t.Context(), &r, nil)
	if e := asError(t, err); e.Kind != model.KindInvalidRequest {
		t.Errorf("%+v", e)
	}
}

// TestManyRequests sends far more requests at once than there are slots: all
// finish, connections stay bounded and are used again, and nothing is left.
func TestManyRequests(t *testing.T) {
	before := runtime.NumGoroutine()
	var open, most, opened atomic.Int32
	srv := httptest.NewUnstartedServer(events(whole...))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
			now := open.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	srv.Start()
	c, err := New(Config{BaseURL: srv.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	const sessions, turns = 500, 4
	var wg sync.WaitGroup
	for range sessions {
		wg.Go(func() {
			for range turns {
				// The clocks must not run while a request waits for its turn.
				if _, err := model.Call(t.Context(), c, hello, model.CallOptions{Timeout: time.Minute, MaxRetries: new(0)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if int(most.Load()) > maxConnections || len(slots) != 0 {
		t.Errorf("%d connections at once, %d slots taken", most.Load(), len(slots))
	}
	if n := opened.Load(); n > sessions*turns/4 {
		t.Errorf("%d connections for %d requests: they are not used again", n, sessions*turns)
	}
	CloseIdleConnections()
	srv.Close()
	for range 2000 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%.3000s", n, before, buf[:runtime.Stack(buf, true)])
	}
}
