package anthropic

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/turnwright/turnwright/internal/conform"
)

// scan reads all events of a stream as text.
func scan(r io.Reader, limit int) (out []string, err error) {
	s := newSSEScanner(r)
	s.limit = limit
	for {
		f, err := s.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, err
		}
		line := f.name + "|" + string(f.data)
		if f.cut {
			line += "|cut"
		}
		out = append(out, line)
	}
}

func TestScanner(t *testing.T) {
	conform.Covers(t, "B-162")
	for _, c := range []struct{ name, in, want string }{
		{"plain", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", "a|1 b|2"},
		{"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", "a|1 |2"},
		{"CR", "event: a\rdata: 1\r\rdata: 2\r\r", "a|1 |2"},
		{"mixed ends", "data: 1\n\r\ndata: 2\r\n\ndata: 3\r\r\n", "|1 |2 |3"},
		{"no space after the colon", "event:a\ndata:1\n\n", "a|1"},
		{"only one space is taken", "data:  1\n\n", "| 1"},
		{"several data lines", "data: 1\ndata: 2\ndata:\n\n", "|1\n2\n"},
		{"comments and unknown fields", ": hi\nid: 7\nretry: 10\nfoo\ndata: 1\n: bye\n\n: end\n\n", "|1"},
		{"no data, no event", "event: a\n\nevent: b\n\ndata: 1\n\n", "|1"},
		{"empty data", "data\n\ndata:\n\n", "| |"},
		{"no final blank line", "data: 1\n\ndata: 2\n", "|1 |2|cut"},
		{"no final line end", "data: 1\n\ndata: 2", "|1 |2|cut"},
		{"final CR", "data: 1\r", "|1|cut"},
		{"byte order mark", "\uFEFFdata: 1\n\n", "|1"},
		{"a mark later is data", "data: 1\n\n\uFEFFdata: 2\n\n", "|1"},
		{"nothing", "", ""},
		{"blank lines", "\n\r\n\n", ""},
		{"colon in the data", "data: {\"a\":1}\n\n", "|{\"a\":1}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(c.in),
				iotest.OneByteReader(strings.NewReader(c.in)),
				iotest.HalfReader(strings.NewReader(c.in)),
				iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, err := scan(r, maxEventSize)
				if err != nil || strings.Join(got, " ") != c.want {
					t.Errorf("%T: %q, %v; want %q", r, strings.Join(got, " "), err, c.want)
				}
			}
		})
	}
}

func TestScannerLongLines(t *testing.T) {
	conform.Covers(t, "B-161")
	for _, n := range []int{16 << 10, 16<<10 - 6, 70_000, 1_500_000, 40_000_000} {
		if n > 2_000_000 && underRace {
			continue
		}
		big := strings.Repeat("x", n)
		got, err := scan(strings.NewReader("data: "+big+"\r\ndata: y\r\n\r\ndata: z\n\n"), maxEventSize)
		if err != nil || len(got) != 2 || len(got[0]) != n+3 || got[1] != "|z" {
			t.Errorf("%d bytes: %d events, %v", n, len(got), err)
		}
	}
}

func TestScannerAbsurdSize(t *testing.T) {
	conform.Covers(t, "B-161")
	const limit = 100_000
	endless := io.MultiReader(strings.NewReader("data: "), iotest.DataErrReader(bytes.NewReader(make([]byte, 10*limit))))
	many := strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1000)
	for name, r := range map[string]io.Reader{
		"one line": endless, "a comment": strings.NewReader(":" + strings.Repeat("c", 10*limit)), "many lines": strings.NewReader(many),
	} {
		got, err := scan(r, limit)
		if !errors.Is(err, errEventSize) || len(got) != 0 {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
	if got, err := scan(strings.NewReader("data: "+strings.Repeat("x", limit-10)+"\n\n"), limit); err != nil || len(got) != 1 {
		t.Errorf("just within: %d events, %v", len(got), err)
	}
}

func TestScannerKeepsReadErrors(t *testing.T) {
	broken := errors.New("reset")
	s := newSSEScanner(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(broken)))
	if f, err := s.next(); err != nil || string(f.data) != "1" || f.cut {
		t.Error(f, err)
	}
	if f, err := s.next(); err != nil || string(f.data) != "2" || !f.cut {
		t.Error(f, err)
	}
	if _, err := s.next(); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := scan(noProgress{}, 10); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

type noProgress struct{}

func (noProgress) Read([]byte) (int, error) { return 0, nil }

// TestScannerDataIsNotReused holds that an event stays as it was when later
// ones are read: listeners keep it.
func TestScannerDataIsNotReused(t *testing.T) {
	var in strings.Builder
	for i := range 2000 {
		in.WriteString("data: " + strings.Repeat(string(rune('a'+i%26)), 30) + "\n\n")
	}
	s := newSSEScanner(strings.NewReader(in.String()))
	var all [][]byte
	for {
		f, err := s.next()
		if err != nil {
			break
		}
		all = append(all, f.data)
	}
	for i, d := range all {
		if string(d) != strings.Repeat(string(rune('a'+i%26)), 30) {
			t.Fatalf("event %d became %q", i, d)
		}
	}
	if len(all) != 2000 {
		t.Error(len(all))
	}
}

// FuzzScanner holds that the way the bytes arrive changes nothing, and that
// the result is what a plain reading of the format gives.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{"event: a\ndata: 1\n\n", "data: 1\r\n\r\ndata:2\r\r", ": c\n\ndata", "\uFEFFdata: x\n\n", "data: a\ndata: b\n\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, err1 := scan(strings.NewReader(in), maxEventSize)
		bytewise, err2 := scan(iotest.OneByteReader(strings.NewReader(in)), maxEventSize)
		if err1 != nil || err2 != nil || strings.Join(whole, "\x00") != strings.Join(bytewise, "\x00") {
			t.Fatalf("%q, %v\n%q, %v", whole, err1, bytewise, err2)
		}
		if want := plainScan(in); strings.Join(whole, "\x00") != strings.Join(want, "\x00") {
			t.Fatalf("got  %q\nwant %q", whole, want)
		}
	})
}

// plainScan is the format read in the most obvious way.
func plainScan(in string) (out []string) {
	in = strings.TrimPrefix(in, "\uFEFF")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	name, data, has := "", "", false
	lines := strings.Split(in, "\n")
	if n := len(lines) - 1; lines[n] == "" {
		lines = lines[:n] // what follows the last line end is no line
	}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if has {
				out = append(out, name+"|"+data)
			}
			name, data, has = "", "", false
		case key == "event":
			name = value
		case key == "data" && has:
			data += "\n" + value
		case key == "data":
			data, has = value, true
		}
	}
	if has {
		out = append(out, name+"|"+data+"|cut")
	}
	return out
}

func BenchmarkScanner(b *testing.B) {
	in := []byte(strings.Repeat(sse(blockDelta(0, `{"type":"text_delta","text":"some words of text"}`)), 1000))
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s := newSSEScanner(bytes.NewReader(in))
		for {
			if _, err := s.next(); err != nil {
				break
			}
		}
	}
}
