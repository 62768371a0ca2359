package agenttest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

// sample is a response with every kind of event in the middle.
func sample() Step {
	return Blocks(Thinking("hm", "c2ln"), Text("some text"), CallID("toolu_x", "Bash", `{"command":"ls"}`))
}

const sampleMeaning = `[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"some text"},{"type":"tool_use","id":"toolu_x","name":"Bash","input":{"command":"ls"}}]`

func TestFramingsMeanTheSame(t *testing.T) {
	conform.Covers(t, "B-162")
	for _, f := range []Framing{
		{},
		{CRLF: true},
		{NoSpace: true},
		{Comments: true},
		{SplitData: true},
		{DataOnly: true},
		{NoFinalBlank: true},
		{UnknownEvents: true},
		{CRLF: true, NoSpace: true, Comments: true, SplitData: true, NoFinalBlank: true, UnknownEvents: true},
	} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			step := Frame(Pings(sample(), 2), f)
			for _, chunk := range []int{0, 1, 7} {
				r := post(t, NewServer(t, Chunk(step, chunk)), streaming(conv(hello)))
				if r.err != nil {
					t.Fatal(r.err)
				}
				same(t, assemble(t, readEvents(t, r.body))["content"], sampleMeaning)
				if f.CRLF && strings.Count(r.body, "\n") != strings.Count(r.body, "\r\n") {
					t.Error("not every line ends with CR LF")
				}
				if f.NoFinalBlank && (strings.HasSuffix(r.body, "\n\n") || strings.HasSuffix(r.body, "\r\n\r\n")) {
					t.Error("there is a final blank line")
				}
				if f.DataOnly && strings.Contains(r.body, "event:") {
					t.Error("there is an event line")
				}
			}
		})
	}
}

func TestBigDelta(t *testing.T) {
	text := strings.Repeat("a", 3<<20)
	for _, step := range []Step{Text(text), Call("Write", `{"content":"`+text+`"}`)} {
		deltas := 0
		for _, ev := range readEvents(t, post(t, NewServer(t, DeltaSize(step, 0)), streaming(conv(hello))).body) {
			if ev.kind == "content_block_delta" && len(fmt.Sprint(ev.data["delta"])) > 1000 {
				deltas++
			}
		}
		if deltas != 1 {
			t.Errorf("%d big deltas, want 1", deltas)
		}
	}
	parts := 0
	for _, ev := range readEvents(t, post(t, NewServer(t, DeltaSize(Text("abcdefg"), 2)), streaming(conv(hello))).body) {
		if ev.kind == "content_block_delta" {
			parts++
		}
	}
	if parts != 4 {
		t.Errorf("%d deltas of two bytes, want 4", parts)
	}
}

// At every byte: exactly the bytes before it arrive, then the connection breaks.
func TestCutAtEveryByte(t *testing.T) {
	step := Text("hello")
	whole := string(Body(step, "test-model"))
	s := NewServer(t, Respond(func(r *Request) Step { return ID(CutAt(step, r.Number-1), "msg_010000000000000000000001") }))
	for n := range len(whole) + 1 {
		got, err := partial(post(t, s, streaming(conv(hello))))
		if err != errBodyCut || got != whole[:n] {
			t.Fatalf("cut at %d: error %v, body %q, want %q", n, err, got, whole[:n])
		}
	}
	got, err := partial(post(t, NewServer(t, CutAt(step, -1)), streaming(conv(hello))))
	if err != errBodyCut || len(got) != len(whole)-1 {
		t.Errorf("cut at -1: error %v, %d bytes of %d", err, len(got), len(whole))
	}
}

func TestCutWithoutStreaming(t *testing.T) {
	for _, step := range []Step{CutAt(Text("hello"), 10), CutAfterEvent(Text("hello"), 2), EndWithout(Text("hello"), "message_stop")} {
		got, err := partial(post(t, NewServer(t, step), with(conv(hello))))
		if err != errBodyCut || got == "" {
			t.Errorf("error %v, body %q", err, got)
		}
	}
	got, err := partial(post(t, NewServer(t, CutAt(RawHTTP(200, "application/json", "0123456789"), 4)), with(conv(hello))))
	if err != errBodyCut || got != "0123" {
		t.Errorf("raw: error %v, body %q", err, got)
	}
}

func kindsOf(events []sse) string {
	short := strings.NewReplacer("message_start", "M", "ping", "p", "content_block_start", "(", "content_block_delta", "d", "content_block_stop", ")", "message_delta", "D", "message_stop", "S", "error", "E")
	var b strings.Builder
	for _, ev := range events {
		b.WriteString(short.Replace(ev.kind))
	}
	return b.String()
}

func TestPoints(t *testing.T) {
	// M pp (dd) (dd) D S with texts of two characters.
	step := Pings(Blocks(Text("ab"), Text("cd")), 2)
	const whole = "Mpp(dd)(dd)DS"
	for _, tt := range []struct {
		name string
		step Step
		want string
		cut  bool
	}{
		{"whole", step, whole, false},
		{"cut after 0 events", CutAfterEvent(step, 0), "", true},
		{"cut after 5 events", CutAfterEvent(step, 5), "Mpp(d", true},
		{"cut past the end", CutAfterEvent(step, 99), whole, true},
		{"cut before blocks", CutAfterEvent(step, AfterBlocks(0)), "Mpp", true},
		{"cut after a block", CutAfterEvent(step, AfterBlocks(1)), "Mpp(dd)", true},
		{"cut after both blocks", CutAfterEvent(step, AfterBlocks(2)), "Mpp(dd)(dd)", true},
		{"cut after more blocks than there are", CutAfterEvent(step, AfterBlocks(3)), whole, true},
		{"before content", CutAfterEvent(Text("ab"), AfterBlocks(0)), "M", true},
		{"error first", StreamError(step, 0, "overloaded_error", "Overloaded"), "E", false},
		{"error in the middle of a text", StreamError(step, 5, "overloaded_error", "Overloaded"), "Mpp(dE", false},
		{"error after a block", StreamError(step, AfterBlocks(1), "api_error", "x"), "Mpp(dd)E", false},
		{"no message_stop", EndWithout(step, "message_stop"), "Mpp(dd)(dd)D", false},
		{"no message_delta", EndWithout(step, "message_delta"), "Mpp(dd)(dd)", false},
		{"block open", EndWithout(step, "content_block_stop"), "Mpp(dd)(dd", false},
		{"no such event", EndWithout(step, "nothing"), whole, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body, err := partial(post(t, NewServer(t, tt.step), streaming(conv(hello))))
			if got := kindsOf(readEvents(t, body)); got != tt.want || (err == errBodyCut) != tt.cut {
				t.Errorf("events %s, error %v; want %s, cut %v", got, err, tt.want, tt.cut)
			}
		})
	}
}

func TestStreamError(t *testing.T) {
	step := StreamError(Text("ab"), 2, "overloaded_error", "Overloaded")
	events := readEvents(t, post(t, NewServer(t, step), streaming(conv(hello))).body)
	same(t, events[len(events)-1].data, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	for kind, status := range map[string]int{
		"overloaded_error": 529, "rate_limit_error": 429, "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402,
		"permission_error": 403, "not_found_error": 404, "request_too_large": 413, "timeout_error": 504, "api_error": 500,
	} {
		r := post(t, NewServer(t, StreamError(Text("a"), 0, kind, "x")), with(conv(hello)))
		if got, _, _ := errorOf(t, r); r.status != status || got != kind {
			t.Errorf("without streaming, %s: status %d: %s", kind, r.status, r.body)
		}
	}
}

// Held streams send what they should and end when the client leaves.
func TestHold(t *testing.T) {
	for _, tt := range []struct {
		name string
		step Step
		want string
	}{
		{"after half a text", Hold(Text("ab"), 3), "M(d"},
		{"headers only", Hold(Text("ab"), 0), ""},
		{"pings go on", HoldPinging(Text("ab"), AfterBlocks(0), 25*time.Second), "Mpp"},
		{"raw", Hold(RawSSE("event: message_start\ndata: {\"type\":\"message_start\"}\n\n"), 0), "M"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := Start(InMemory(), tt.step)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r := postContext(t, ctx, s, streaming(conv(hello)), goodHeader())
				if r.err != context.DeadlineExceeded {
					t.Errorf("error %v, want the deadline", r.err)
				}
				if got := kindsOf(readEvents(t, r.body)); got != tt.want {
					t.Errorf("events %q, want %q", got, tt.want)
				}
			})
		})
	}
}
