package search

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// expression draws regular expressions out of pieces that meet in texts.
func expression() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "b", "k", "s", "foo", "bar", "é", "ſ", "K", ".", ".*", "[ab]", "[^a]", "[^é]", `\w`, `\W`, `\d`, `\s`, `\b`, `\B`, "^", "$", "(a|b)", "(foo|bar|ab)", "a*", "b+", "(ab)?", "x{0,2}", "|", `\A`, `\z`, "(?i:k)", "(?i:Foo)", "(|a)", `\x{E9}`, "[ſk]", `\pL`, "()", "(?:^a|b$)", "(foo){2}",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pieces"), "")
	})
}

func subject() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "b", "ab", "foo", "bar", "Foo", "BAR", "k", "K", "s", "S", "é", "É", "ſ", "\u212A", " ", "1", "_", "\n", "\n", "\r\n", "\xff", "x", "\t", "foofoo",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
	})
}

// checkLines compares the line finder with Go's regexp, line by line.
func checkLines(t interface{ Fatalf(string, ...any) }, pattern, text string, fold bool) {
	m, err := Compile(pattern, fold, false)
	if err != nil {
		if !errors.Is(err, ErrPattern) {
			t.Fatalf("%q: error %v is not ErrPattern", pattern, err)
		}
		return
	}
	type span [2]int
	var want, got, plain []span
	pos := 0
	for line := range strings.Lines(text) {
		if bare := strings.TrimSuffix(line, "\n"); m.re.MatchString(bare) {
			want = append(want, span{pos, pos + len(bare)})
		}
		pos += len(line)
	}
	s := m.scanner()
	buf := []byte(text)
	collect := func() (out []span) {
		for pos := 0; ; {
			start, end, ok := s.line(buf, pos)
			if !ok {
				return out
			}
			out = append(out, span{start, end})
			pos = end + 1
		}
	}
	s.begin(buf)
	got = collect()
	s.plain = true // and without the search for literals
	plain = collect()
	if !slices.Equal(got, want) || !slices.Equal(plain, want) {
		t.Fatalf("pattern %q (fold %v) in %q: lines %v, by the automaton alone %v, want %v", pattern, fold, text, got, plain, want)
	}
}

func checkWhole(t interface{ Fatalf(string, ...any) }, pattern, text string, fold bool) {
	m, err := Compile(pattern, fold, true)
	if err != nil {
		return
	}
	if got, want := m.scanner().anywhere([]byte(text)), m.re.MatchString(text); got != want {
		t.Fatalf("pattern %q (fold %v) over lines in %q: %v, want %v", pattern, fold, text, got, want)
	}
}

func TestLinesAgreeWithRegexp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pattern, fold := expression().Draw(rt, "pattern"), rapid.Bool().Draw(rt, "fold")
		for range 10 {
			text := subject().Draw(rt, "text")
			checkLines(rt, pattern, text, fold)
			checkWhole(rt, pattern, text, fold)
		}
	})
}

func FuzzLines(f *testing.F) {
	for _, p := range []string{"foo", `\bfo+\b`, "(?i)needle|hay", "^$", `[^x]\s`, `\w+(é|ß)`, "(a|ab)(c|bcd)(d*)", "k|s"} {
		f.Add(p, "foo bar\nNEEDLE ſ\n\nabcd é\xff\n", false)
		f.Add(p, "FOO\r\nhay\nabc", true)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		if len(pattern) > 100 || len(text) > 2000 {
			return
		}
		checkLines(t, pattern, text, fold)
		checkWhole(t, pattern, text, fold)
	})
}

// An automaton that must drop its states again and again still finds the same.
func TestStatesAreDropped(t *testing.T) {
	m, err := Compile(`[ab]*a[ab]{14}c`, false, false)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	x := uint32(1)
	for range 40_000 {
		x = x*1664525 + 1013904223
		text.WriteByte("ab"[x>>31])
		if x>>22&1023 == 0 {
			text.WriteString("c\n")
		}
	}
	s := m.scanner()
	s.plain, s.auto.most = true, 1000
	want := 0
	for line := range bytes.Lines(text.Bytes()) {
		if m.re.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			want++
		}
	}
	got, dropped, last := 0, 0, 0
	for pos := 0; ; got++ {
		_, end, ok := s.line(text.Bytes(), pos)
		if len(s.auto.states) < last {
			dropped++
		}
		last = len(s.auto.states)
		if !ok {
			break
		}
		pos = end + 1
	}
	if got != want || dropped == 0 {
		t.Errorf("%d lines, want %d; states dropped %d times", got, want, dropped)
	}
}

// Our own reading of classes and escapes is that of ripgrep.
func TestSyntax(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{`^\w+$`, "né_1", true},
		{`^\w$`, "Ⓐ", true},
		{`^[\w-]+$`, "é-é", true},
		{`^\d+$`, "٣4", true},
		{`a\sb`, "a\u00A0b", true},
		{`^\W$`, "é", false},
		{`^[^\W_]+$`, "né", true},
		{`^[\S]+$`, "né", true},
		{`^\D$`, "٣", false},
		{`\u00e9`, "é", true},
		{`\u{1F600}`, "😀", true},
		{`interface\{\}`, "interface{}", true},
		{`a{,2}`, "a{,2}", true},
		{`[]a]+$`, "]a]", true},
		{`[^]]`, "]", false},
		{`[[:alpha:]]`, "x", true},
		{`\Qa.b\E+`, "a.bbb", true},
		{`(?P<n>a)(?<m>b)`, "ab", true},
		{`a$`, "a\r", false},
		{`a.b`, "a\xffb", true},
	} {
		m, err := Compile(test.pattern, false, false)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if _, _, ok := m.scannerFor(test.text).line([]byte(test.text), 0); ok != test.want {
			t.Errorf("%s in %q: %v, want %v", test.pattern, test.text, ok, test.want)
		}
	}
	for pattern, want := range map[string]string{
		`a\`: "backslash", `(a`: "missing closing", `[a`: "missing closing ]", `a**`: "nested repetition", `(?<=a)b`: "look-around", `(a)\1`: `\1`,
		`[a&&b]`: "&&", `[a[b]]`: "class inside a class", `a\nb`: "multiline", `[\n]`: "multiline", `\>`: `\b`, `\u12`: "\\u", `\pQ`: "character class range",
		`(\w{1000}){1000}`: "",
	} {
		if _, err := Compile(pattern, false, false); !errors.Is(err, ErrPattern) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", pattern, err, want)
		}
	}
}

func (m *Matcher) scannerFor(text string) *scanner {
	s := m.scanner()
	s.begin([]byte(text))
	return s
}

// printed is what the printer must give, made the plain way.
func printed(m *Matcher, text string, before, after int) (out []string) {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	marks := make([]byte, len(lines))
	for i, line := range lines {
		if m.re.MatchString(line) {
			for k := max(0, i-before); k <= min(len(lines)-1, i+after); k++ {
				if marks[k] == 0 {
					marks[k] = '-'
				}
			}
			marks[i] = ':'
		}
	}
	last := -1
	for i, mark := range marks {
		if mark == 0 {
			continue
		}
		if last >= 0 && last < i-1 && before+after > 0 {
			out = append(out, "--")
		}
		line := strings.ToValidUTF8(strings.TrimSuffix(lines[i], "\r"), "\uFFFD")
		out = append(out, fmt.Sprintf("f%c%d%c%s", mark, i+1, mark, line))
		last = i
	}
	return out
}

// The pieces that a file is read in leave no trace in lines, numbers and
// context.
func TestPrinterAcrossPieces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	rapid.Check(t, func(rt *rapid.T) {
		pattern := rapid.SampledFrom([]string{"foo", "a", "^$", "^b", "é", "zz", `\bk`, "."}).Draw(rt, "pattern")
		text := strings.TrimPrefix(subject().Draw(rt, "text")+subject().Draw(rt, "more"), "\xFF\xFE")
		before, after := rapid.IntRange(0, 4).Draw(rt, "before"), rapid.IntRange(0, 4).Draw(rt, "after")
		m, err := Compile(pattern, false, false)
		if err != nil {
			rt.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			rt.Fatal(err)
		}
		want := printed(m, text, before, after)
		o := &GrepOptions{Root: path, Matcher: m, Mode: Content, Numbers: true, Before: before, After: after, Name: func(string) string { return "f" }}
		s := newSearcher(o, &walk{})
		s.r.buf = make([]byte, rapid.IntRange(1, 40).Draw(rt, "buffer"))
		out := &page{}
		if _, err := s.r.read(path, true, false, newPrinter(s, path, out).text); err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(out.lines, want) {
			rt.Fatalf("%q in %q, -B %d -A %d:\n%q\nwant\n%q", pattern, text, before, after, out.lines, want)
		}
	})
}

func TestShorten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		runes := []rune(strings.Repeat(rapid.StringN(1, 4, -1).Draw(rt, "piece"), rapid.IntRange(501, 2000).Draw(rt, "times")))
		from := rapid.IntRange(0, len(runes)).Draw(rt, "from")
		to := rapid.IntRange(from, len(runes)).Draw(rt, "to")
		line, at := []byte(string(runes)), len(string(runes[:from]))
		end := at + len(string(runes[from:to]))
		text := shorten(line, at, end)
		body := regexp.MustCompile(`^\[\d+ characters\] | \[\d+ characters\]$`).ReplaceAllString(text, "")
		shows := string(runes[from:min(to, from+maxShown)])
		if n := len([]rune(body)); n != maxShown || !strings.Contains(body, shows) {
			rt.Fatalf("%d characters in %q", n, text)
		}
	})
}
