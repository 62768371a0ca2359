package builtin

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
)

func filled(t *testing.T, pieces ...string) *output {
	t.Helper()
	o := &output{tempDir: tempIn(t.TempDir())}
	t.Cleanup(o.close)
	for _, p := range pieces {
		o.write([]byte(p))
	}
	return o
}

func tempIn(dir string) func() (string, error) { return func() (string, error) { return dir, nil } }

func TestOutputBounds(t *testing.T) {
	conform.Covers(t, "B-104")
	piece := strings.Repeat("0123456789", 3000)
	o := &output{tempDir: tempIn(t.TempDir())}
	const pieces = 2500 // 75 MB
	for range pieces {
		o.write([]byte(piece))
	}
	o.write([]byte("END"))
	if len(o.head) != headSize || cap(o.tail) > 4*tailSize {
		t.Errorf("in memory: %d and %d bytes", len(o.head), cap(o.tail))
	}
	data, err := o.saved()
	if err != nil || len(data) != spillSize || !bytes.HasPrefix(data, []byte(piece+piece[:7])) {
		t.Errorf("saved %d bytes, %v", len(data), err)
	}
	text := o.excerpt(10_000)
	if !strings.HasPrefix(text, piece[:5000]) || !strings.HasSuffix(text, "789END") || !strings.Contains(text, fmt.Sprintf("... [%d characters truncated] ...", pieces*len(piece)+3-10_000)) {
		t.Errorf("excerpt %.60s … %s", text, text[len(text)-60:])
	}
	name := o.spill.Name()
	o.close()
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("the file is left behind: %v", err)
	}
}

func TestOutputSaved(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		var all []byte
		o := &output{tempDir: tempIn(t.TempDir())}
		for n := rnd.IntN(3 * headSize); len(all) < n; {
			p := bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, 1+rnd.IntN(100_000))
			all = append(all, p...)
			o.write(p)
		}
		data, err := o.saved()
		if err != nil || !bytes.Equal(data, all) {
			t.Errorf("saved %d of %d bytes, %v", len(data), len(all), err)
		}
		end := o.tail
		if o.size <= headSize {
			end = o.head
		}
		if !bytes.HasSuffix(all, end) || len(end) < min(len(all), tailSize) && o.size > headSize+tailSize {
			t.Errorf("the end of %d bytes has %d", len(all), len(end))
		}
		o.close()
	}
	exact := &output{tempDir: tempIn(t.TempDir())} // the memory is just full, then more comes
	exact.write(make([]byte, headSize))
	exact.write([]byte("END"))
	if data, err := exact.saved(); err != nil || len(data) != headSize+3 {
		t.Errorf("saved %d bytes, %v", len(data), err)
	}
	exact.close()
	o := &output{tempDir: tempIn("/does/not/exist")}
	o.write(make([]byte, headSize+1))
	if _, err := o.saved(); err == nil {
		t.Error("saved without a file")
	}
	if text := o.excerpt(10); !strings.Contains(text, "truncated") {
		t.Errorf("excerpt %q", text)
	}
}

// TestCutsBetweenCharacters shifts four-byte characters so that the cut falls
// on each of their bytes.
func TestCutsBetweenCharacters(t *testing.T) {
	conform.Covers(t, "B-107")
	for shift := range 4 {
		text := strings.Repeat("x", shift) + strings.Repeat("😀", headSize/2)
		o := filled(t, text[:1000+shift], text[1000+shift:])
		for _, got := range []string{o.excerpt(10_000), o.preview(2000), clean(o.head), clean(o.tail), clean([]byte(text)[1 : 5+shift])} {
			if !utf8.ValidString(got) || strings.ContainsRune(got, '\uFFFD') {
				t.Errorf("shift %d: half a character in %.20q…%q", shift, got, got[len(got)-10:])
			}
		}
		if want := int64(utf8.RuneCountInString(text)); o.runes != want {
			t.Errorf("counted %d characters, want %d", o.runes, want)
		}
		if got := string(cutUTF8([]byte(text), 100)); !utf8.ValidString(got) || len(got) < 97 {
			t.Errorf("cutUTF8: %d bytes", len(got))
		}
	}
	if got := clean([]byte("a\xffb\xc3")); got != "a\uFFFDb" {
		t.Errorf("got %q", got)
	}
}

func TestCharacters(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		var text []rune
		for range rnd.IntN(40) {
			text = append(text, []rune("aé€😀\n\u0080\U0010FFFF")[rnd.IntN(7)])
		}
		b := []byte(string(text))
		cut := rnd.IntN(len(b) + 1)
		if got := characters(b[:cut]) + characters(b[cut:]); got != len(text) {
			t.Fatalf("%q: %d characters, want %d", b, got, len(text))
		}
	}
}

func TestPump(t *testing.T) {
	mark := []byte("0123456789abcdef")
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		want := make([]byte, rnd.IntN(300))
		for i := range want {
			want[i] = "0123456789abcdef"[rnd.IntN(3)] // like the start of the mark
		}
		stream := append(append(bytes.Clone(want), mark...), "written by others later"...)
		o, calls := &output{}, 0
		pump(&choppy{data: stream, rnd: rnd}, o, mark, func() {}, func() { calls++ })
		if !bytes.Equal(o.head, want) || calls != 1 {
			t.Fatalf("got %q, want %q; done %d times", o.head, want, calls)
		}
		// Without the mark everything counts.
		o, calls = &output{}, 0
		pump(&choppy{data: want, rnd: rnd}, o, mark, func() {}, func() { calls++ })
		if !bytes.Equal(o.head, want) || calls != 1 {
			t.Fatalf("got %q, want %q; done %d times", o.head, want, calls)
		}
	}
}

// choppy returns its data in small pieces.
type choppy struct {
	data []byte
	rnd  *rand.Rand
}

func (c *choppy) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.data[:min(len(c.data), 1+c.rnd.IntN(20))])
	c.data = c.data[n:]
	return n, nil
}

func TestMeaningOfOne(t *testing.T) {
	conform.Covers(t, "T-115")
	for command, want := range map[string]bool{
		"grep x f": true, "rg x": true, "egrep x f": true, "fgrep x f": true, "find . -name x": true, "diff a b": true,
		"test -f x": true, "[ -f x ]": true, "git diff --exit-code": true, "git grep x": true, "/usr/bin/grep x f": true,
		"cat f | grep x": true, "cd x; grep y f": true, "LC_ALL=C grep x f": true, "grep x f 2>&1": true, "grep x f 2>/dev/null": true,
		"grep 'a && b' f": true, `grep "a; b" f`: true, `grep a\;b f`: true, "echo a\ngrep b f;\n": true,
		"false": false, "git log": false, "git": false, "cat f && grep x f": false, "grep x f || false": false, "grep x f | false": false,
		"grep x f; false": false, "(grep x f)": false, "grep x $(false)": false, "grep x `false`": false, "grep 'x": false,
		"grep x f &": false, "grep x <<E\ny\nE": true, "[[ a = b ]]": true, "set -e; false; grep x f": false, "if true; then exit 1; fi; grep x f": false, "! grep x f": false, "grep a f |& grep b": true, "": false, "A=1": false, "egrepx": false, "echo grep": false,
	} {
		if _, got := meaningOfOne(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}
