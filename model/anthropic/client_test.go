package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	conform.Covers(t, "M-46", "M-50")
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
	conform.Covers(t, "K-222")
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
		if n > 2_000_000 && underRace {
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
			c.tail = 20 * time.Millisecond
			r, err := c.Stream(t.Context(), hello, nil)
			if err != nil || !r.Complete() {
				t.Error(show(r), err)
			}
			<-gone
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

// TestConnectionIsUsedAgain holds that a streamed answer is read to its end,
// past message_stop, so that the next request needs no new connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	var opened atomic.Int32
	stopped := make(chan struct{}, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		events(whole...)(w, r)
		w.(http.Flusher).Flush()
		<-stopped // the end of the body comes after the client saw message_stop
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	defer CloseIdleConnections()
	c, err := New(Config{BaseURL: srv.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	c.tail = time.Minute
	for range 10 {
		_, err := c.Stream(t.Context(), hello, func(ev model.Event) {
			if ev.Type == "message_stop" {
				stopped <- struct{}{}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A loaded machine may miss the grace now and then.
	if n := opened.Load(); n > 5 {
		t.Errorf("%d connections for 10 requests", n)
	}
}

func TestSlots(t *testing.T) {
	c := serve(t, events(whole...))
	var release []func()
	for range maxConnections {
		r, err := c.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, r)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(enough) })
	if _, err := c.Acquire(ctx); !errors.Is(err, enough) {
		t.Errorf("one slot too many: %v", err)
	}
	release[0]()
	release[0]() // giving back twice gives back once
	r, err := c.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, give := range append(release[1:], r) {
		give()
	}
	if len(slots) != 0 {
		t.Errorf("%d slots are still taken", len(slots))
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
	const sessions, turns = 300, 4
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
	if n := opened.Load(); n > sessions*turns/2 {
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

// TestBlocksGoBackUnchanged sends a response back as the API wants it in a
// tool loop: every block as it came, complete and in order.
func TestBlocksGoBackUnchanged(t *testing.T) {
	sent := []string{
		`{"type":"thinking","thinking":"first <b>\u2028","signature":"c2ln+/=="}`, `{"type":"text","text":"I'll look."}`,
		`{"type":"redacted_thinking","data":"EmwKAh=="}`, `{"type":"tool_use","id":"tu_1","name":"Bash","input":{"command":"ls","n":1.50}}`,
		`{"type":"thinking","thinking":"","signature":"b25seQ=="}`, `{"type":"tool_use","id":"tu_2","name":"Bash","input":{}}`,
	}
	evs := []string{evStart}
	for i, b := range sent {
		for _, ev := range blockEvents(i, json.RawMessage(b)) {
			evs = append(evs, string(encodedAny(t, ev)))
		}
	}
	c := serve(t, events(append(evs, evTools, evStop)...))
	r, err := c.Stream(t.Context(), hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := *hello
	reply := model.Message{Role: message.RoleAssistant}
	for _, b := range r.Blocks {
		reply.Blocks = append(reply.Blocks, b.Block)
	}
	next.Messages = append(next.Messages[:1:1], reply)
	raw, err := bodyBytes(&next, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"role":"assistant","content":[` + strings.Join(sent, ",") + `]}`; !strings.Contains(string(raw), want) {
		t.Errorf("%s\nwant %s", raw, want)
	}
}

func encodedAny(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := message.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
