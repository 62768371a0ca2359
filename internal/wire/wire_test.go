package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// recorder is a handler that writes down what it gets and answers at once.
type recorder struct {
	got    []string
	answer func(*Request)
}

func (h *recorder) User(m *message.User) { h.got = append(h.got, "user "+m.Text()) }
func (h *recorder) Ignored(err *LineError) {
	text := fmt.Sprintf("ignored %d", err.Line)
	if err.More > 0 {
		text += fmt.Sprintf(" and %d more", err.More)
	}
	h.got = append(h.got, text)
}

func (h *recorder) Control(r *Request) {
	h.got = append(h.got, "control "+r.Subtype)
	if h.answer != nil {
		h.answer(r)
		return
	}
	r.Succeed(nil)
}

// buffer is an output that can be read while it is written.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// lines waits until all is written and returns it.
func written(t *testing.T, c *Conn, out *buffer) []string {
	t.Helper()
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func serve(t *testing.T, in io.Reader) (h *recorder, lines []string) {
	t.Helper()
	h = &recorder{}
	out := &buffer{}
	c := New(in, out)
	if err := c.Serve(h); err != nil {
		t.Fatal(err)
	}
	return h, written(t, c, out)
}

func TestServe(t *testing.T) {
	conform.Covers(t, "M-3", "W-20", "W-28", "W-29", "W-30", "W-40", "W-43", "W-44", "W-175", "K-174")
	input := "\ufeff" + `{"type":"user","message":{"role":"user","content":"one"}}` + "\n" +
		"\n \t \r\n" +
		`  { "type" : "user" , "message" : { "content" : [ {"type":"text","text":"zw\u00f6lf ü€😀"} ] }, "session_id": "default" }  ` + "\r\n" +
		"garbage\n" +
		"[1]\n" +
		`{"type":"user","message":` + "\n" +
		`{"type":"user","message":{"role":"user","content":7}}` + "\n" +
		`{"type":"user","message":{"role":"user"}}` + "\n" +
		`{"type":"user","message":{"role":"assistant","content":"x"}}` + "\n" +
		`{"type":"user"}` + "\n" +
		`{"type":"keep_alive"}` + "\n" +
		`{"type":"something_new","x":1}` + "\n" +
		`{"no":"type"}` + "\n" +
		`{"type":"control_response","response":{"subtype":"success","request_id":"nobody","response":{}}}` + "\n" +
		`{"type":"control_cancel_request","request_id":"nobody"}` + "\n" +
		`{"type":"control_cancel_request"}` + "\n" +
		strings.Repeat(`{"a":`, 20_000) + strings.Repeat("}", 20_000) + "\n" + // nested beyond the decoder's limit
		`{"type":"user","message":{"role":"user","content":"last, without line feed"}}`
	want := []string{
		"user one", "user zwölf ü€😀", "ignored 5", "ignored 6", "ignored 7", "ignored 8", "ignored 9", "ignored 10",
		"ignored 11", "ignored 14", "ignored 17", "ignored 18", "user last, without line feed",
	}
	for name, in := range map[string]io.Reader{
		"at once": strings.NewReader(input), "byte by byte": iotest.OneByteReader(strings.NewReader(input)),
		"with its end": iotest.DataErrReader(strings.NewReader(input)),
	} {
		if h, _ := serve(t, in); !slices.Equal(h.got, want) {
			t.Errorf("%s:\n got %q\nwant %q", name, h.got, want)
		}
	}
}

// The session_id of a user line is not looked at, whatever it is.
func TestSessionIDIsIgnored(t *testing.T) {
	conform.Covers(t, "W-43")
	for _, id := range []string{`""`, `"default"`, `null`, `7`, `true`, `{"a":[1]}`, `[]`, `"\ud800"`, `1e999`} {
		for _, line := range []string{
			`{"type":"user","message":{"role":"user","content":"hi"},"session_id":` + id + `,"uuid":"u"}`,
			`{"session_id":` + id + `,"type":"user","message":{"content":[{"type":"text","text":"hi"}]}}`,
		} {
			if h, _ := serve(t, strings.NewReader(line)); !slices.Equal(h.got, []string{"user hi"}) {
				t.Errorf("%s: %q", line, h.got)
			}
		}
	}
}

// A reader that fails is told as such.
func TestServeUnreadable(t *testing.T) {
	broken := errors.New("no device")
	h := &recorder{}
	in := io.MultiReader(strings.NewReader(`{"type":"user","message":{"content":"one"}}`+"\n"), iotest.ErrReader(broken))
	if err := New(in, io.Discard).Serve(h); !errors.Is(err, broken) || len(h.got) != 1 {
		t.Errorf("%v, %q", err, h.got)
	}
}

// Lines have no limit that a client meets; one beyond all use, and garbage of
// any length, take no memory.
func TestLineLengths(t *testing.T) {
	conform.Covers(t, "W-27")
	user := func(n int) string {
		return `{"type":"user","message":{"content":"` + strings.Repeat("ä", n/2) + `"}}` + "\n"
	}
	const big = 3_000_000
	h, _ := serve(t, strings.NewReader(user(200_000)+user(2_000_000)+strings.Repeat("g", 3_000_000)+"\n"+user(big)))
	sizes := make([]int, len(h.got))
	for i, g := range h.got {
		sizes[i] = len(g)
	}
	if want := []int{200_005, 2_000_005, len("ignored 3"), big + 5}; !slices.Equal(sizes, want) {
		t.Errorf("sizes %v, want %v", sizes, want)
	}

	l := newLines(strings.NewReader(user(5000) + strings.Repeat("g", 5_000_000) + "\n" + strings.Repeat(" ", 5_000_000) + "\n{}\n"))
	l.max = 1000
	_, err := l.next()
	var bad *LineError
	if !errors.As(err, &bad) || !errors.Is(err, ErrTooLong) || bad.Line != 1 || len(bad.Start) > 4*excerptLen {
		t.Errorf("%v", err)
	}
	if _, err = l.next(); !errors.As(err, &bad) || !errors.Is(err, ErrNotObject) || bad.Line != 2 {
		t.Errorf("%v", err)
	}
	if line, err := l.next(); string(line) != "{}" || err != nil || cap(l.buf) > 64<<10 {
		t.Errorf("%q, %v, %d bytes kept", line, err, cap(l.buf))
	}
}

// Each request has one answer, whatever is wrong with it.
func TestRequests(t *testing.T) {
	conform.Covers(t, "W-80", "W-81", "W-84", "W-85", "W-86", "M-112", "M-114")
	input := `{"type":"control_request","request_id":"1","request":{"subtype":"good"}}
{"type":"control_request","request_id":"2","request":{"subtype":"bad"}}
{"type":"control_request","request_id":"3","request":{"subtype":"panic"}}
{"type":"control_request","request_id":"4","request":{"subtype":"twice"}}
{"type":"control_request","request_id":"5","request":{"subtype":"fields","n":"x"}}
{"type":"control_request","request_id":"6","request":{"subtype":"list"}}
{"type":"control_request","request_id":"7","request":{"subtype":7}}
{"type":"control_request","request_id":"8","request":[]}
{"type":"control_request","request_id":"9"}
{"type":"control_request","request_id":10,"request":{"subtype":"good"}}
{"type":"control_request","request_id":"11","request":null}
`
	h := &recorder{answer: func(r *Request) {
		switch r.Subtype {
		case "good":
			r.Succeed(map[string]int{"a": 1})
		case "bad":
			r.Fail(errors.New("it went wrong"))
		case "panic":
			panic("oops")
		case "twice":
			r.Succeed(nil)
			r.Fail(errors.New("again"))
		case "list":
			r.Succeed([]int{1})
		case "fields":
			var f struct{ N int }
			r.Fail(r.Decode(&f))
		}
	}}
	out := &buffer{}
	c := New(strings.NewReader(input), out)
	if err := c.Serve(h); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"a":1}}}`,
		`"subtype":"error","request_id":"2","error":"it went wrong"`,
		`"request_id":"3","error":"panic: internal error: oops"`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"4","response":{}}}`,
		`"request_id":"5","error":"fields: the field \"n\" cannot be a string"`,
		`"subtype":"error","request_id":"6"`, `"subtype":"error","request_id":"7"`, `"subtype":"error","request_id":"8"`,
		`"subtype":"error","request_id":"9"`, `"subtype":"error","request_id":""`, `"subtype":"error","request_id":"11"`,
	}
	got := written(t, c, out)
	if len(got) != len(want) {
		t.Fatalf("%d answers, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.Contains(strings.ToLower(got[i]), want[i]) {
			t.Errorf("answer %d: %s\nwant %s", i, got[i], want[i])
		}
	}
}

// A request that is withdrawn has no answer, and its context ends.
func TestWithdraw(t *testing.T) {
	in, w := io.Pipe()
	out := &buffer{}
	c := New(in, out)
	asked := make(chan *Request, 1)
	served := make(chan error, 1)
	go func() { served <- c.Serve(&recorder{answer: func(r *Request) { asked <- r }}) }()
	fmt.Fprintln(w, `{"type":"control_request","request_id":"a","request":{"subtype":"slow"}}`)
	r := <-asked
	fmt.Fprintln(w, `{"type":"control_cancel_request","request_id":"a"}`)
	<-r.Context().Done()
	r.Succeed(nil)
	w.Close()
	if err := <-served; err != nil || len(out.String()) != 0 || len(c.open) != 0 {
		t.Errorf("%v, %q", err, out)
	}
}

// The client's answer, its error, its silence, and the end of its input.
func TestCall(t *testing.T) {
	conform.Covers(t, "W-110", "W-115", "W-116", "W-378", "W-69")
	synctest.Test(t, func(t *testing.T) {
		in, w := io.Pipe()
		out := &buffer{}
		c := New(in, out)
		h := &recorder{answer: func(r *Request) { r.SucceedAgain(nil) }}
		served := make(chan error, 1)
		go func() { served <- c.Serve(h) }()

		type outcome struct {
			raw json.RawMessage
			err error
		}
		call := func(ctx context.Context, fields any) chan outcome {
			done := make(chan outcome, 1)
			go func() {
				raw, err := c.Call(ctx, "can_use_tool", fields)
				done <- outcome{raw, err}
			}()
			synctest.Wait()
			return done
		}
		first := call(t.Context(), map[string]int{"a": 1})
		second := call(t.Context(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		third := call(ctx, nil)
		fourth := call(t.Context(), nil)
		fmt.Fprintln(w, `{"type":"control_response","response":{"subtype":"error","request_id":"req_2","error":"no"}}`)
		fmt.Fprintln(w, `{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"b":2}}}`)
		fmt.Fprintln(w, `{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"b":3}}}`)
		if o := <-first; string(o.raw) != `{"b":2}` || o.err != nil {
			t.Errorf("%s, %v", o.raw, o.err)
		}
		var refused *CallError
		if o := <-second; !errors.As(o.err, &refused) || refused.Text != "no" {
			t.Errorf("%v", o.err)
		}
		fmt.Fprintln(w, `{"type":"control_request","request_id":"again","request":{"subtype":"initialize"}}`)
		synctest.Wait()
		cancel()
		if o := <-third; !errors.Is(o.err, context.Canceled) {
			t.Errorf("%v", o.err)
		}
		synctest.Wait()
		w.Close()
		if o := <-fourth; !errors.Is(o.err, ErrInputEnded) {
			t.Errorf("%v", o.err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if _, err := c.Call(t.Context(), "can_use_tool", nil); !errors.Is(err, ErrInputEnded) {
			t.Errorf("%v", err)
		}
		if _, err := c.Call(ctx, "can_use_tool", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		request := func(n int, fields string) string {
			return fmt.Sprintf(`{"type":"control_request","request_id":"req_%d","request":{"subtype":"can_use_tool"%s}}`, n, fields)
		}
		want := []string{
			request(1, `,"a":1`), request(2, ""), request(3, ""), request(4, ""),
			`{"type":"control_response","response":{"subtype":"success","request_id":"again","response":{},"pending_permission_requests":[` +
				request(3, "") + "," + request(4, "") + `]}}`,
			`{"type":"control_cancel_request","request_id":"req_3"}`,
		}
		if got := written(t, c, out); !slices.Equal(got, want) {
			t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestCallErrors(t *testing.T) {
	c := New(strings.NewReader(""), io.Discard)
	if _, err := c.Call(t.Context(), "x", []int{1}); err == nil {
		t.Error("a list of fields")
	}
	if _, err := c.Call(t.Context(), "x", map[string]string{"a": strings.Repeat("a", MaxLine)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if len(c.calls) > 0 {
		t.Error("a call is left")
	}
}

// The input is read while nobody reads the output. What the client may leave
// unread is bounded: beyond that it is answered briefly, and interrupts,
// answers and withdrawals are heard as before; far beyond, reading stops.
func TestUnreadOutput(t *testing.T) {
	conform.Covers(t, "W-31")
	synctest.Test(t, func(t *testing.T) {
		in, w := io.Pipe()
		outR, outW := io.Pipe() // not read
		c := New(in, outW)
		c.unread = 2 << 20
		h := &recorder{}
		served := make(chan error, 1)
		go func() { served <- c.Serve(h) }()
		ctx, cancel := context.WithCancel(t.Context())
		stuck := make(chan error, 1)
		go func() {
			for {
				if err := c.Write(ctx, &message.Informational{Content: strings.Repeat("x", 100_000)}); err != nil {
					stuck <- err
					return
				}
			}
		}()
		answered := make(chan error, 1)
		go func() {
			_, err := c.Call(t.Context(), "can_use_tool", nil)
			answered <- err
		}()
		synctest.Wait()
		for i := range 1000 {
			fmt.Fprintf(w, `{"type":"control_request","request_id":"%d","request":{"subtype":"x"}}`+"\n", i)
		}
		synctest.Wait()
		if len(h.got) != 1000 {
			t.Errorf("%d requests were read", len(h.got))
		}
		id := strings.Repeat("i", 300_000) // each answer repeats it
		ask := func() {
			fmt.Fprintf(w, `{"type":"control_request","request_id":"%s","request":{"subtype":"x"}}`+"\n", id)
			synctest.Wait()
		}
		for range 100 {
			if ask(); c.out.bytes > c.unread {
				break
			}
		}
		// Beyond the bound.
		n := len(h.got)
		ask()
		fmt.Fprintln(w, "garbage")
		fmt.Fprintln(w, "more garbage")
		fmt.Fprintln(w, `{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{}}}`)
		if err := <-answered; err != nil {
			t.Errorf("the answer was not heard: %v", err)
		}
		fmt.Fprintln(w, `{"type":"control_request","request_id":"stop","request":{"subtype":"interrupt"}}`)
		synctest.Wait()
		if got := h.got[n:]; len(got) != 1 || !strings.Contains(got[0], "interrupt") {
			t.Errorf("handed on: %q", got)
		}
		// Far beyond it.
		for range 100 {
			if ask(); c.out.bytes > 2*c.unread {
				break
			}
		}
		if c.out.bytes <= 2*c.unread || c.out.bytes > 2*c.unread+(1<<20) {
			t.Errorf("%d bytes wait", c.out.bytes)
		}
		n = len(h.got)
		go fmt.Fprintln(w, `{"type":"control_request","request_id":"last","request":{"subtype":"x"}}`)
		synctest.Wait()
		if len(h.got) != n {
			t.Error("it was read on")
		}
		cancel()
		if err := <-stuck; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		// The reader comes back, and then goes away.
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		synctest.Wait()
		ask()
		if got := h.got[n:]; len(got) != 2 || got[0] != "control x" || !strings.HasSuffix(got[1], " and 1 more") {
			t.Errorf("handed on: %q", got)
		}
		outR.Close()
		ask()
		w.Close()
		if err := <-served; err != nil {
			t.Errorf("%v", err)
		}
		<-c.Gone()
		if err := c.Write(t.Context(), &message.Informational{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
		if err := c.Flush(t.Context()); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
	})
}

// What is answered Ahead stands before the messages that it gives rise to.
func TestAhead(t *testing.T) {
	conform.Covers(t, "W-170")
	out := &buffer{}
	c := New(strings.NewReader(""), out)
	done := make(chan error, 1)
	c.Ahead(func() {
		go func() { done <- c.Write(t.Context(), &message.Informational{Content: "result"}) }()
		if c.order.TryLock() {
			t.Error("a message may be written now")
		}
		c.Post(&message.Informational{Content: "receipt"})
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := written(t, c, out)
	if len(got) != 2 || !strings.Contains(got[0], "receipt") || !strings.Contains(got[1], "result") {
		t.Errorf("%q", got)
	}
}

// Lines of many writers are whole and in the order of each.
func TestLinesDoNotInterleave(t *testing.T) {
	conform.Covers(t, "W-21", "W-22", "W-25")
	out := &buffer{}
	c := New(strings.NewReader(""), out)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				m := &message.Informational{Content: fmt.Sprintf("%d %d %s \xff", g, i, strings.Repeat("z", i*40))}
				if i%2 == 0 {
					c.Post(m)
				} else if err := c.Write(t.Context(), m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	next := [8]int{}
	for _, line := range written(t, c, out) {
		m, err := message.Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		var g, i int
		fmt.Sscan(m.(*message.Informational).Content, &g, &i)
		if i != next[g] {
			t.Fatalf("writer %d: line %d, want %d", g, i, next[g])
		}
		next[g]++
	}
	if next != [8]int{100, 100, 100, 100, 100, 100, 100, 100} {
		t.Errorf("%v", next)
	}
}

// The limit of a line is for each by itself, however many there are; one that is
// too long is told of, and the next is read (B-201).
func TestLimitIsNoSum(t *testing.T) {
	conform.Covers(t, "B-201", "W-27")
	user := func(n int) string {
		return `{"type":"user","message":{"content":"` + strings.Repeat("x", n) + `"}}` + "\n"
	}
	h := &recorder{}
	c := New(strings.NewReader(strings.Repeat(user(2000), 500)+user(150_000)+user(2000)), io.Discard)
	c.in.max = 100_000
	if err := c.Serve(h); err != nil {
		t.Fatal(err)
	}
	want := "ignored 501"
	for i, g := range h.got {
		if i == 500 && g != want || i != 500 && len(g) != len("user ")+2000 {
			t.Fatalf("line %d: %.40s (%d)", i+1, g, len(g))
		}
	}
	if len(h.got) != 502 {
		t.Errorf("%d lines", len(h.got))
	}
}

// Requests may be answered in any order, in both directions.
func TestAnswersInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "W-83", "W-111")
		var held []*Request
		h := &recorder{answer: func(r *Request) { held = append(held, r) }}
		out := &buffer{}
		in, client := io.Pipe()
		c := New(in, out)
		served := make(chan error, 1)
		go func() { served <- c.Serve(h) }()
		write := func(format string, a ...any) {
			t.Helper()
			if _, err := fmt.Fprintf(client, format+"\n", a...); err != nil {
				t.Fatal(err)
			}
		}
		// Ours are answered backwards; each gets its own.
		type answer struct {
			n   int
			got string
			err error
		}
		answers := make(chan answer, 3)
		for n := 1; n <= 3; n++ {
			go func() {
				raw, err := c.Call(t.Context(), "can_use_tool", map[string]int{"n": n})
				answers <- answer{n, string(raw), err}
			}()
		}
		synctest.Wait() // they are asked
		ids := map[int]string{}
		for _, l := range written(t, c, out) {
			var r struct {
				ID      string `json:"request_id"`
				Request struct{ N int }
			}
			if err := json.Unmarshal([]byte(l), &r); err != nil {
				t.Fatal(err)
			}
			ids[r.Request.N] = r.ID
		}
		for n := 3; n >= 1; n-- {
			write(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"n":%d}}}`, ids[n], n)
		}
		for range 3 {
			if a := <-answers; a.err != nil || a.got != fmt.Sprintf(`{"n":%d}`, a.n) {
				t.Errorf("request %d got %s, %v", a.n, a.got, a.err)
			}
		}
		// The client's are answered when they are done.
		for n := range 3 {
			write(`{"type":"control_request","request_id":"c%d","request":{"subtype":"x"}}`, n)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{2, 0, 1} {
			held[n].Succeed(map[string]int{"n": n})
		}
		lines := written(t, c, out)[3:]
		for i, n := range []int{2, 0, 1} {
			want := fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":"c%d","response":{"n":%d}}}`, n, n)
			if lines[i] != want {
				t.Errorf("got %s, want %s", lines[i], want)
			}
		}
	})
}

// pace is a reader that takes so many bytes a second, or none.
type pace struct {
	perSecond int
	got       int
}

func (p *pace) Write(b []byte) (int, error) {
	if p.perSecond == 0 {
		time.Sleep(time.Hour)
		return 0, io.ErrClosedPipe
	}
	time.Sleep(time.Second * time.Duration(len(b)) / time.Duration(p.perSecond))
	p.got += len(b)
	return len(b), nil
}

// At the end the queue is waited for, the longer the more is in it, and never
// more than 30 seconds; until then a slow reader holds whoever writes.
func TestDrain(t *testing.T) {
	for _, tt := range []struct {
		name      string
		perSecond int
		lines     int // of 100 kB
		lost      bool
		took      time.Duration // at the end, at most
	}{
		{"nothing", 0, 0, false, 0},
		{"fast", 1e9, 50, false, time.Second},
		{"slow, little", 20_000, 1, false, 5 * time.Second},
		{"slow, much", 100_000, 25, false, 25 * time.Second},
		{"too slow", 10_000, 20, true, 30 * time.Second},
		{"away, little", 0, 1, true, 11 * time.Second},
		{"away, much", 0, 60, true, 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "W-32", "K-158", "L-212")
				out := &pace{perSecond: tt.perSecond}
				c := New(strings.NewReader(""), out)
				line := []byte(`"` + strings.Repeat("x", 99_997) + `"`)
				c.Ending() // what is left of a run that is over waits for nobody
				begin := time.Now()
				for range tt.lines {
					if err := c.WriteLine(t.Context(), slices.Clone(line)); err != nil {
						t.Fatal(err)
					}
				}
				if d := time.Since(begin); d > 0 {
					t.Errorf("after the end a line waited %v", d)
				}
				err := c.Drain()
				if (err != nil) != tt.lost {
					t.Errorf("drained: %v", err)
				}
				if d := time.Since(begin); d > tt.took || tt.lost && d < tt.took-time.Second {
					t.Errorf("it took %v, not %v", d, tt.took)
				}
				if !tt.lost && out.got != tt.lines*100_000 {
					t.Errorf("%d bytes were read", out.got)
				}
				time.Sleep(2 * time.Hour) // the writer comes back
			})
		})
	}
	// Before the end whoever writes waits, and is freed by it.
	synctest.Test(t, func(t *testing.T) {
		c := New(strings.NewReader(""), &pace{})
		time.AfterFunc(time.Minute, c.Ending)
		begin := time.Now()
		for range 30 {
			if err := c.WriteLine(t.Context(), bytes.Repeat([]byte("x"), 100_000)); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(begin); d != time.Minute {
			t.Errorf("the lines were written after %v", d)
		}
		time.Sleep(2 * time.Hour)
	})
}
