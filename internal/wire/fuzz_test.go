package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// counter counts what it gets, by what a reference says it must get.
type counter struct{ users, requests, ignored int }

func (h *counter) User(*message.User)     { h.users++ }
func (h *counter) Ignored(err *LineError) { h.ignored++; _ = err.Error() }
func (h *counter) Control(r *Request) {
	h.requests++
	var v struct{ A int }
	if err := r.Decode(&v); err != nil {
		r.Fail(err)
		return
	}
	r.Succeed(v)
}

// expect says what the lines of input are, in the plainest way.
func expect(input []byte) (want counter, answers int) {
	input = bytes.TrimPrefix(input, []byte("\ufeff"))
	for line := range bytes.SplitSeq(input, []byte("\n")) {
		line = bytes.Trim(line, space)
		if len(line) == 0 {
			continue
		}
		var f map[string]any
		if json.Unmarshal(line, &f) != nil || f == nil {
			want.ignored++
			continue
		}
		typ, _ := f["type"].(string)
		switch typ {
		case "":
			want.ignored++
		case "user":
			if _, err := decodeUser(line); err != nil {
				want.ignored++
			} else {
				want.users++
			}
		case "control_request":
			answers++
			_, id := f["request_id"].(string)
			body, _ := f["request"].(map[string]any)
			if sub, _ := body["subtype"].(string); sub != "" && id {
				want.requests++
			}
		case "control_response":
			if _, err := message.Decode(line); err != nil {
				want.ignored++
			}
		case "control_cancel_request":
			if _, ok := f["request_id"].(string); !ok {
				want.ignored++
			}
		}
	}
	return want, answers
}

// FuzzServe feeds any bytes, in pieces of any size: nothing panics, every line
// is taken once, every request has one answer, and each written line is an
// object of its own.
func FuzzServe(f *testing.F) {
	conform.Covers(f, "W-22", "W-81", "M-3", "M-114")
	for _, seed := range []string{
		"", "\n\n", "{", `{"type":"user","message":{"content":"hi"}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64"}}]},"uuid":7}` + "\n{}",
		`{"type":"control_request","request_id":"1","request":{"subtype":"x","a":"1"}}` + "\r\n[]\n",
		`{"type":"control_request","request_id":"\ud800","request":{"subtype":"\u0000"}}` + "\n{\"type\":\"control_request\"}",
		`{"type":"control_response","response":{"request_id":"1"}}` + "\n" + `{"type":"control_response","response":3}`,
		`{"type":"control_cancel_request","request_id":"1"}` + "\n" + `{"type":"keep_alive"}`,
		"\ufeff{\"type\":\"user\"}\nx\xff\xfe\x00", strings.Repeat("[", 50) + "\n" + strings.Repeat(`{"a":`, 50),
	} {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(7))
	}
	f.Fuzz(func(t *testing.T, input []byte, size uint8) {
		var in io.Reader = bytes.NewReader(input)
		switch {
		case size == 1:
			in = iotest.OneByteReader(in)
		case size > 1:
			in = &pieces{r: in, rnd: rand.New(rand.NewPCG(uint64(size), 1)), size: int(size)}
		}
		h, out := &counter{}, &buffer{}
		c := New(in, out)
		if err := c.Serve(h); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		want, answers := expect(input)
		if *h != want {
			t.Errorf("got %+v, want %+v", *h, want)
		}
		n := 0
		for line := range strings.Lines(out.String()) {
			n++
			if m, err := message.Decode([]byte(line)); err != nil || !utf8.ValidString(line) {
				t.Errorf("%q: %v", line, err)
			} else if _, ok := m.(*message.ControlResponse); !ok {
				t.Errorf("%q is no answer", line)
			}
		}
		if n != answers {
			t.Errorf("%d answers, want %d", n, answers)
		}
		if len(c.open) > 0 {
			t.Errorf("%d requests are open", len(c.open))
		}
	})
}

// pieces reads up to size bytes at a time.
type pieces struct {
	r    io.Reader
	rnd  *rand.Rand
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.rnd.IntN(p.size))])
}

// FuzzCutStrings cuts the strings of any JSON text: it stays JSON of the same
// shape, what is short stays as it is, and no character is broken.
func FuzzCutStrings(f *testing.F) {
	conform.Covers(f, "W-24")
	f.Add(`{"a":"`+strings.Repeat("ä", 200)+`","data":"`+strings.Repeat("A", 300)+`","l":["short","\"\\"]}`, uint16(128))
	f.Add(`["`+strings.Repeat(`\ud83d\ude00`, 40)+`","`+strings.Repeat(`\n\u00e4`, 50)+`"]`, uint16(130))
	f.Add(`"`+strings.Repeat(`\ud800`, 60)+`"`, uint16(129))
	f.Fuzz(func(t *testing.T, text string, keep uint16) {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) || keep < 20 {
			t.Skip()
		}
		got := cutStrings([]byte(text), int(keep))
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q became %q", text, got)
		}
		if len(text) <= int(keep) && string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
		var a, b any
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Skip()
		}
		if err := json.Unmarshal(got, &b); err != nil {
			t.Fatal(err)
		}
		sameShape(t, a, b, int(keep))
	})
}

func sameShape(t *testing.T, a, b any, keep int) {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			t.Fatalf("%v became %v", a, b)
		}
		for k, v := range a {
			sameShape(t, v, m[k], keep)
		}
	case []any:
		l, ok := b.([]any)
		if !ok || len(a) != len(l) {
			t.Fatalf("%v became %v", a, b)
		}
		for i, v := range a {
			sameShape(t, v, l[i], keep)
		}
	case string:
		s, ok := b.(string)
		before, _, cut := strings.Cut(s, "… [")
		switch {
		case !ok, utf8.RuneCountInString(s) > keep+40:
			t.Errorf("%q became %q", a, b)
		case s == a || s == "":
		case !cut || !strings.HasPrefix(a, before):
			t.Errorf("%q became %q", a, b)
		}
	default:
		if a != b {
			t.Errorf("%v became %v", a, b)
		}
	}
}
