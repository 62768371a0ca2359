package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"pgregory.net/rapid"
)

func TestScriptInOrder(t *testing.T) {
	s := NewServer(t, Script(Call("Bash", `{"command":"npm test"}`), Text("All green.")))
	first := post(t, s, streaming(conv(hello), bashDef))
	if first.status != 200 || !strings.HasPrefix(first.header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("status %d, type %q", first.status, first.header.Get("Content-Type"))
	}
	same(t, assemble(t, readEvents(t, first.body)), `{"id":"msg_010000000000000000000002","type":"message","role":"assistant","model":"test-model",
		"content":[{"type":"tool_use","id":"toolu_010000000000000000000003","name":"Bash","input":{"command":"npm test"}}],
		"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,
		"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5,
		"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}`)
	id := "toolu_010000000000000000000003"
	second := post(t, s, with(conv(hello, assistant(use(id)), user(result(id))), bashDef))
	var msg map[string]any
	if err := json.Unmarshal([]byte(second.body), &msg); err != nil {
		t.Fatal(err)
	}
	same(t, msg["content"], `[{"type":"text","text":"All green."}]`)
	same(t, msg["stop_reason"], `"end_turn"`)
	if got := s.Count(); got != 2 {
		t.Errorf("Count = %d, want 2", got)
	}
}

// Every kind of block means the same streamed and whole, and the events come in
// the order of the API.
func TestBlocksStreamedAndWhole(t *testing.T) {
	conform.Covers(t, "M-46", "M-47")
	step := Usage(Blocks(
		Thinking("Let me see.", "c2lnbmF0dXJl"), Redacted("ZGF0YQ=="), Text("Grüße, 世界 — \u2028 <b>&\"\\"),
		CallID("toolu_a", "Bash", `{"command":"echo \"ü\"","n":1.50}`), CallID("toolu_b", "List", `{}`),
		Raw(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`),
	), 7, 9, 3, 4, 5)
	step = ID(Model(step, "claude-test"), "msg_x")
	want := `{"id":"msg_x","type":"message","role":"assistant","model":"claude-test","content":[
		{"type":"thinking","thinking":"Let me see.","signature":"c2lnbmF0dXJl"},{"type":"redacted_thinking","data":"ZGF0YQ=="},
		{"type":"text","text":"Grüße, 世界 — \u2028 <b>&\"\\"},
		{"type":"tool_use","id":"toolu_a","name":"Bash","input":{"command":"echo \"ü\"","n":1.50}},
		{"type":"tool_use","id":"toolu_b","name":"List","input":{}},
		{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}],
		"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":7,"cache_creation_input_tokens":7,
		"cache_read_input_tokens":5,"output_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4},"service_tier":"standard"}}`
	s := NewServer(t, Forever(step))
	events := readEvents(t, post(t, s, streaming(conv(hello))).body)
	kinds := make([]string, 0, len(events))
	for _, ev := range events {
		if ev.kind != ev.data["type"] {
			t.Errorf("event %q has data of type %q", ev.kind, ev.data["type"])
		}
		if n := len(kinds); n == 0 || kinds[n-1] != ev.kind || ev.kind != "content_block_delta" {
			kinds = append(kinds, ev.kind)
		}
	}
	block := []string{"content_block_start", "content_block_delta", "content_block_stop"}
	order := append([]string{"message_start"}, block...)
	order = append(order, "content_block_start", "content_block_stop") // redacted: no delta
	order = append(order, slices.Concat(block, block, block)...)
	order = append(order, "content_block_start", "content_block_stop", "message_delta", "message_stop")
	if !slices.Equal(kinds, order) {
		t.Errorf("events %v\nwant   %v", kinds, order)
	}
	same(t, assemble(t, events), want)
	var whole any
	if err := json.Unmarshal([]byte(post(t, s, with(conv(hello))).body), &whole); err != nil {
		t.Fatal(err)
	}
	same(t, whole, want)
}

func TestUsageAtStart(t *testing.T) {
	conform.Covers(t, "M-50")
	for _, tt := range []struct {
		name  string
		step  Step
		start string
		end   string
	}{
		{"counts", Usage(Text("a"), 3, 80, 100, 50, 20), `{"input_tokens":3,"cache_creation_input_tokens":150,"cache_read_input_tokens":20,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":50},"service_tier":"standard"}`, `{"input_tokens":3,"cache_creation_input_tokens":150,"cache_read_input_tokens":20,"output_tokens":80}`},
		{"empty", Empty(), `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}`, `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`},
		{"valid empty", Usage(Empty(), 10, 3, 0, 0, 0), `{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}`, `{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := readEvents(t, post(t, NewServer(t, tt.step), streaming(conv(hello))).body)
			same(t, events[0].data["message"].(map[string]any)["usage"], tt.start)
			same(t, events[len(events)-2].data["usage"], tt.end)
		})
	}
}

func TestStops(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		step       Step
	}{
		{"text", `{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null}`, Text("a")},
		{"call", `{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null}`, Blocks(Text("a"), Call("Bash", `{}`))},
		{"server tool is no call", `{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null}`, Raw(`{"type":"server_tool_use","id":"s","name":"n","input":{}}`)},
		{"max_tokens", `{"stop_reason":"max_tokens","stop_sequence":null,"stop_details":null}`, StopReason(Text("a"), "max_tokens")},
		{"unknown", `{"stop_reason":"tea_time","stop_sequence":null,"stop_details":null}`, StopReason(Call("Bash", `{}`), "tea_time")},
		{"sequence", `{"stop_reason":"stop_sequence","stop_sequence":"END","stop_details":null}`, StopSequence(Text("a"), "END")},
		{"refusal", `{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":null}}`, Refusal()},
		{"cut input", `{"stop_reason":"max_tokens","stop_sequence":null,"stop_details":null}`, Blocks(Text("a"), CutInput("Write", `{"file_path":"a`))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := readEvents(t, post(t, NewServer(t, tt.step), streaming(conv(hello))).body)
			same(t, events[len(events)-2].data["delta"], tt.want)
		})
	}
}

func TestCutInput(t *testing.T) {
	s := NewServer(t, Forever(CutInput("Write", `{"file_path":"a.txt","content":"half`)))
	var got string
	stops := 0
	for _, ev := range readEvents(t, post(t, s, streaming(conv(hello))).body) {
		switch ev.kind {
		case "content_block_delta":
			got += ev.data["delta"].(map[string]any)["partial_json"].(string)
		case "content_block_stop":
			stops++
		}
	}
	if got != `{"file_path":"a.txt","content":"half` || stops != 1 {
		t.Errorf("input %q, %d stops", got, stops)
	}
	var msg struct{ Content []Block }
	if err := json.Unmarshal([]byte(post(t, s, with(conv(hello))).body), &msg); err != nil {
		t.Fatal(err)
	}
	same(t, msg.Content[0].Input, `{}`)
}

func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		size := rapid.IntRange(-1, 12).Draw(t, "size")
		parts := pieces(text, size)
		if strings.Join(parts, "") != text {
			t.Fatalf("pieces(%q, %d) = %q", text, size, parts)
		}
		for _, p := range parts {
			if p == "" || !json.Valid([]byte(quote(p))) || strings.ToValidUTF8(p, "") != p {
				t.Fatalf("piece %q of %q", p, text)
			}
		}
		if size == 0 && len(parts) > 4 || size < 0 && len(parts) > 1 {
			t.Fatalf("%d pieces of %q at size %d", len(parts), text, size)
		}
	})
}

func TestIDsAreNew(t *testing.T) {
	const n = 40
	s := NewServer(t, Forever(Blocks(Call("A", `{}`), Call("B", `{}`))))
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			r := post(t, s, with(conv(hello)))
			var msg struct {
				ID      string
				Content []Block
			}
			if err := json.Unmarshal([]byte(r.body), &msg); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range []string{msg.ID, msg.Content[0].ID, msg.Content[1].ID, r.header.Get("Request-Id")} {
				if id == "" || seen[id] {
					t.Errorf("id %q is empty or not new", id)
				}
				seen[id] = true
			}
		})
	}
	wg.Wait()
	numbers := map[int]bool{}
	for _, r := range s.Requests() {
		numbers[r.Number] = true
	}
	if len(numbers) != n || s.Count() != n {
		t.Errorf("%d numbers, count %d, want %d", len(numbers), s.Count(), n)
	}
}

func TestScriptRunsOut(t *testing.T) {
	f := &fakeT{}
	defer f.close()
	s := NewServer(f, Text("only"))
	post(t, s, with(conv(hello)))
	r := post(t, s, streaming(conv(hello)))
	kind, message, _ := errorOf(t, r)
	if r.status != 400 || kind != "invalid_request_error" || !strings.Contains(message, "request 2 has no answer") {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if got := f.reported(); len(got) != 1 || !strings.Contains(got[0], `request 2 has no answer: the script is at its end (last user text "hello")`) {
		t.Errorf("reported %q", got)
	}
	if err := s.Problems(); err == nil || !strings.Contains(err.Error(), "request 2") {
		t.Errorf("Problems = %v", err)
	}
}

func TestInvalidRequest(t *testing.T) {
	bad := with(conv(user(textBlock(""))))
	t.Run("fails the test", func(t *testing.T) {
		f := &fakeT{}
		defer f.close()
		s := NewServer(f, Text("unused"))
		r := post(t, s, bad)
		kind, message, id := errorOf(t, r)
		if r.status != 400 || kind != "invalid_request_error" || message != "messages: text content blocks must be non-empty" {
			t.Errorf("status %d: %s", r.status, r.body)
		}
		if id == "" || id != r.header.Get("Request-Id") {
			t.Errorf("request id %q, header %q", id, r.header.Get("Request-Id"))
		}
		if got := f.reported(); len(got) != 1 || !strings.Contains(got[0], "request 1 is invalid: messages: text content blocks must be non-empty") {
			t.Errorf("reported %q", got)
		}
		if s.Last().Err == nil {
			t.Error("the recorded request has no Err")
		}
		// The step was not used up.
		if r := post(t, s, with(conv(hello))); r.status != 200 {
			t.Errorf("valid request: status %d: %s", r.status, r.body)
		}
	})
	t.Run("expected", func(t *testing.T) {
		s := NewServer(t, ExpectInvalid(), Text("unused"))
		if r := post(t, s, bad); r.status != 400 {
			t.Errorf("status %d", r.status)
		}
		if err := s.Problems(); err != nil {
			t.Errorf("Problems = %v", err)
		}
	})
	t.Run("not validated", func(t *testing.T) {
		s := NewServer(t, NoValidate(), Text("fine"))
		if r := post(t, s, bad); r.status != 200 {
			t.Errorf("status %d", r.status)
		}
	})
	t.Run("no key", func(t *testing.T) {
		h := goodHeader()
		h.Del("X-Api-Key")
		r := postContext(t, t.Context(), NewServer(t, ExpectInvalid()), with(conv(hello)), h)
		if kind, _, _ := errorOf(t, r); r.status != 401 || kind != "authentication_error" {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	})
}

func TestAPIKey(t *testing.T) {
	s := NewServer(t, APIKey("secret"), ExpectInvalid(), Forever(Text("in")))
	for _, tt := range []struct {
		name, header, value string
		status              int
	}{
		{"key", "X-Api-Key", "secret", 200},
		{"bearer", "Authorization", "Bearer secret", 200},
		{"wrong", "X-Api-Key", "Secret", 401},
		{"bare authorization", "Authorization", "secret", 401},
	} {
		h := goodHeader()
		h.Del("X-Api-Key")
		h.Set(tt.header, tt.value)
		if r := postContext(t, t.Context(), s, with(conv(hello)), h); r.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.name, r.status, tt.status, r.body)
		}
	}
}

func TestCheck(t *testing.T) {
	f := &fakeT{}
	defer f.close()
	s := NewServer(f, Forever(Check(Check(Text("ok"), func(*Request) error { return nil }), func(r *Request) error {
		if r.UserText() != "hello" {
			return fmt.Errorf("user text is %q", r.UserText())
		}
		return nil
	})))
	if r := post(t, s, with(conv(hello))); r.status != 200 {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	r := post(t, s, with(conv(user(textBlock("bye")))))
	if _, message, _ := errorOf(t, r); r.status != 400 || !strings.Contains(message, `request 2: user text is "bye"`) {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if got := f.reported(); len(got) != 1 {
		t.Errorf("reported %q", got)
	}
}

func TestHTTPError(t *testing.T) {
	s := NewServer(t, HTTPError(529, "overloaded_error", "Overloaded", "retry-after", "7", "x-should-retry", "true"))
	r := post(t, s, streaming(conv(hello)))
	kind, message, id := errorOf(t, r)
	if r.status != 529 || kind != "overloaded_error" || message != "Overloaded" || id == "" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if r.header.Get("Retry-After") != "7" || r.header.Get("X-Should-Retry") != "true" {
		t.Errorf("header %v", r.header)
	}
}

func TestRaw(t *testing.T) {
	s := NewServer(t, Header(RawSSE("data: x\n\n"), "x-a", "1"), RawHTTP(502, "text/html", "<h1>no</h1>"), NonStreaming(Text("whole")))
	r := post(t, s, streaming(conv(hello)))
	if r.status != 200 || r.body != "data: x\n\n" || r.header.Get("X-A") != "1" || !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("RawSSE: %+v", r)
	}
	r = post(t, s, streaming(conv(hello)))
	if r.status != 502 || r.body != "<h1>no</h1>" || r.header.Get("Content-Type") != "text/html" {
		t.Errorf("RawHTTP: %+v", r)
	}
	r = post(t, s, streaming(conv(hello)))
	if !strings.HasPrefix(r.body, `{"id":"msg_`) || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("NonStreaming: %+v", r)
	}
}

func TestSources(t *testing.T) {
	text := func(r reply) string {
		var msg struct{ Content []Block }
		if json.Unmarshal([]byte(r.body), &msg) != nil || len(msg.Content) == 0 {
			return r.body
		}
		return msg.Content[0].Text
	}
	t.Run("in order, then forever", func(t *testing.T) {
		s := NewServer(t, Script(Text("a"), Text("b")), Forever(Text("c")))
		var got string
		for range 4 {
			got += text(post(t, s, with(conv(hello))))
		}
		if got != "abcc" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("respond", func(t *testing.T) {
		s := NewServer(t, Respond(func(r *Request) Step { return Text("you said " + r.UserText()) }))
		if got := text(post(t, s, with(conv(hello)))); got != "you said hello" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("by turn", func(t *testing.T) {
		s := NewServer(t, ByTurn(Text("first"), Text("second")))
		later := with(conv(hello, assistant(textBlock("x")), hello))
		for body, want := range map[string]string{with(conv(hello)): "first", later: "second"} {
			for range 2 { // a repeated request gets the same
				if got := text(post(t, s, body)); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		}
	})
	t.Run("conversations", func(t *testing.T) {
		const sessions, turns = 50, 5
		s := NewServer(t, Conversations((*Request).FirstUserText, func(key string) Source {
			var steps []Step
			for i := range turns {
				steps = append(steps, Text(fmt.Sprintf("%s %d", key, i)))
			}
			return Script(steps...)
		}))
		var wg sync.WaitGroup
		for i := range sessions {
			wg.Go(func() {
				name := fmt.Sprintf("session %d", i)
				for n := range turns {
					want := fmt.Sprintf("%s %d", name, n)
					if got := text(post(t, s, with(conv(user(textBlock(name)))))); got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestOtherEndpoints(t *testing.T) {
	s := NewServer(t)
	do := func(method, path, body string) reply {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		data, err := io.ReadAll(res.Body)
		return reply{res.StatusCode, res.Header, string(data), err}
	}
	if r := do("POST", "/v1/messages/count_tokens", `{"messages":[]}`); r.status != 200 || r.body != `{"input_tokens":4}` {
		t.Errorf("count_tokens: %+v", r)
	}
	if r := do("GET", "/v1/models", ""); r.status != 404 {
		t.Errorf("unknown path: %+v", r)
	}
	if r := do("GET", "/v1/messages", ""); r.status != 405 {
		t.Errorf("GET: %+v", r)
	}
	if s.Count() != 0 {
		t.Errorf("Count = %d", s.Count())
	}
}

func TestKeepRequests(t *testing.T) {
	for _, tt := range []struct {
		options []Option
		want    []int
	}{
		{nil, []int{1, 2, 3}},
		{[]Option{KeepRequests(2)}, []int{2, 3}},
		{[]Option{KeepRequests(0)}, nil},
	} {
		s := NewServer(t, append(tt.options, Forever(Text("a")))...)
		for range 3 {
			post(t, s, with(conv(hello)))
		}
		var got []int
		for _, r := range s.Requests() {
			got = append(got, r.Number)
		}
		if !slices.Equal(got, tt.want) || s.Count() != 3 {
			t.Errorf("kept %v of %d, want %v", got, s.Count(), tt.want)
		}
		if last := s.Last(); (last == nil) != (tt.want == nil) {
			t.Errorf("Last = %v", last)
		}
	}
}

// Close ends held requests and leaves no goroutine of the server or its client.
func TestCloseLeavesNothing(t *testing.T) {
	for _, memory := range []bool{false, true} {
		options := []Option{Script(Text("a"), Never(), Hold(Text("b"), 3), HoldPinging(Text("c"), 3, time.Hour), Delay(Text("d"), time.Hour), DelayEach(Text("e"), time.Hour))}
		if memory {
			options = append(options, InMemory())
		}
		s, err := Start(options...)
		if err != nil {
			t.Fatal(err)
		}
		post(t, s, with(conv(hello)))
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if r := post(t, s, streaming(conv(hello))); r.err == nil {
					t.Errorf("a held request ended by itself: %+v", r)
				}
			})
		}
		for s.Count() < 6 {
			runtime.Gosched()
		}
		s.Close()
		s.Close()
		wg.Wait()
		if r := post(t, s, with(conv(hello))); r.err == nil {
			t.Error("a closed server answered")
		}
	}
	buf := make([]byte, 1<<20)
	for range 1000 {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "agenttest.(*Server)") && !strings.Contains(stacks, "agenttest.(*sender)") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
}

// A server in memory lives in the fake time of a bubble; the bubble fails when
// anything of it outlives Close.
func TestInMemoryFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Start(InMemory(), Script(Delay(Text("late"), time.Hour), DelayEach(Text("slow"), time.Minute), Never()))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		begin := time.Now()
		post(t, s, streaming(conv(hello)))
		if d := time.Since(begin); d != time.Hour {
			t.Errorf("Delay took %v", d)
		}
		begin = time.Now()
		n := len(readEvents(t, post(t, s, streaming(conv(hello))).body))
		if d := time.Since(begin); d != time.Duration(n)*time.Minute {
			t.Errorf("%d events took %v", n, d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if r := postContext(t, ctx, s, with(conv(hello)), goodHeader()); !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("Never: %+v", r)
		}
	})
}

// A run without an end must not fill the memory: the record has a bound.
func TestRecordIsBounded(t *testing.T) {
	s, err := Start(Forever(Text("again")), setting(func(c *config) { c.room = 1000 }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	body := streaming(conv(hello), bashDef)
	for range 1000 {
		if r := post(t, s, body); r.status != http.StatusOK {
			if r.status != http.StatusBadRequest || !strings.Contains(r.body, "record is full") {
				t.Errorf("status %d: %s", r.status, r.body)
			}
			if err := s.Problems(); err == nil || !strings.Contains(err.Error(), "KeepRequests") {
				t.Errorf("problems: %v", err)
			}
			if n := s.Count(); n != len(s.Requests())+1 {
				t.Errorf("%d requests, %d recorded", n, len(s.Requests()))
			}
			return
		}
	}
	t.Error("nothing bounds the record")
}
