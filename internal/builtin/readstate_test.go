package builtin

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestReadRecord(t *testing.T) {
	conform.Covers(t, "T-57")
	s := newSession(t)
	path := s.write("f.txt", lines(50))
	link := s.path("link")
	if err := os.Symlink("f.txt", link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	s.read(in{"file_path": link, "offset": 3, "limit": 2})
	r, ok := loadRecord(s.env.State, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	want := recordOf(info, []byte(lines(50)))
	want.Shown = "3,2"
	if !ok || r != want {
		t.Errorf("record %+v, want %+v", r, want)
	}
	if d := s.env.State.Dirty(); len(d) != 1 {
		t.Errorf("dirty: %v", d)
	}
	s.read(in{"file_path": link, "offset": 3, "limit": 2})
	if d := s.env.State.Dirty(); d != nil {
		t.Errorf("a second read of the same changed the state: %v", d)
	}
}

func TestReadUnchanged(t *testing.T) {
	conform.Covers(t, "T-56", "T-41")
	s := newSession(t)
	path := s.write("f.txt", lines(50))
	again := func(input in, want bool) {
		t.Helper()
		text, out := s.read(input)
		if got := out.Type == "file_unchanged"; got != want || out.File.FilePath != path || got && !strings.Contains(text, "has not changed") {
			t.Errorf("%v: type %s, %q", input, out.Type, text)
		}
	}
	again(in{"file_path": path}, false)
	again(in{"file_path": path}, true)
	again(in{"file_path": path, "offset": 1}, true) // the same range
	again(in{"file_path": path, "limit": 10}, false)
	again(in{"file_path": path, "offset": 2, "limit": 10}, false)
	again(in{"file_path": path, "limit": 10}, true)
	s.write("f.txt", lines(50)) // touched, but equal
	again(in{"file_path": path}, true)
	s.write("f.txt", lines(51))
	again(in{"file_path": path}, false)
	again(in{"file_path": path, "limit": 10}, false)
	s.text("Edit", edit(path, "line 51", "end"))
	again(in{"file_path": path}, false)
	s.text("Edit", edit(path, "end", "line 51")) // as it was once
	again(in{"file_path": path}, false)
	if err := recordRead(s.env, path); err != nil { // a shell command shows it
		t.Fatal(err)
	}
	again(in{"file_path": path}, true)

	// A page of a large file does not stand for the whole.
	path = s.write("big.txt", strings.Repeat("filler\n", 50_000))
	again(in{"file_path": path}, false)
	again(in{"file_path": path}, false)
	// What was read of it stays read.
	again(in{"file_path": path, "limit": 10}, false)
	again(in{"file_path": path}, false)
	s.text("Edit", in{"file_path": path, "old_string": "filler\n", "new_string": "x\n", "replace_all": true})
	path = s.write("long.txt", lines(100))
	for i := range 100 { // the memory is bounded
		s.read(in{"file_path": path, "offset": i + 1, "limit": 1})
	}
	if r, _ := loadRecord(s.env.State, path); len(strings.Fields(r.Shown)) != maxShown {
		t.Errorf("shown %q", r.Shown)
	}
}

func TestReadEncodings(t *testing.T) {
	conform.Covers(t, "T-42", "T-51", "B-081")
	s := newSession(t)
	for name, test := range map[string]struct {
		content string
		text    string // "": refused
	}{
		"latin1":    {"caf\xe9\nx\n", "     1\tcaf\uFFFD\n     2\tx\n\n[Some bytes"},
		"cp1252":    {"\x93quoted\x94", "     1\t\uFFFDquoted\uFFFD\n\n[Some bytes"},
		"cut":       {"x\xe2\x82", "     1\tx\uFFFD"},
		"surrogate": {"\xed\xa0\x80", "     1\t\uFFFD"},
		"replaced":  {"real \uFFFD\n", "     1\treal \uFFFD"},
		"utf16le":   {"\xff\xfea\x00\n\x00", ""},
		"utf16be":   {"\xfe\xff\x00a\x00\n", ""},
		"utf16cjk":  {"\xff\xfe\x2d\x4e\x87\x65", ""}, // has no NUL byte
		"mixed":     {"a\r\nb\nc\rd", "     1\ta\n     2\tb\n     3\tc\rd"},
	} {
		path := s.write(name, test.content)
		if test.text == "" {
			s.fails("Read", in{"file_path": path}, "UTF-16", "iconv")
			if err := recordRead(s.env, path); err != nil {
				t.Fatal(err)
			}
			s.fails("Edit", in{"file_path": path, "old_string": "a", "new_string": "b", "replace_all": true}, "UTF-16", "iconv")
			continue
		}
		r, err := s.call("Read", in{"file_path": path})
		if err != nil {
			t.Fatal(err)
		}
		raw := r.Content[0].Raw()
		if got := r.Content[0].Text(); !strings.HasPrefix(got, test.text) || !utf8.Valid(raw) || strings.Contains(got, "[Some bytes") == utf8.ValidString(test.content) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// TestReadOnlyWhatIsNeeded reads the beginning of a file of 2 GB.
func TestReadOnlyWhatIsNeeded(t *testing.T) {
	conform.Covers(t, "T-46")
	s := newSession(t)
	path := s.write("huge.txt", lines(3000))
	if err := os.Truncate(path, 2<<30); err != nil {
		t.Skip("no sparse files here:", err)
	}
	f, info, err := openRegular(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, test := range []struct {
		input readInput
		most  int64
	}{
		{readInput{Limit: 2000}, 128 << 10},
		{readInput{Offset: 1000, Limit: 1000}, 128 << 10},
		{readInput{}, 256 << 10}, // one page
	} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		c := &counter{r: f}
		v, err := scanText(t.Context(), c, test.input.selection(s.env, info.Size()))
		if err != nil || v.lines < 1000 || c.n > test.most || c.n < int64(len(v.content)) {
			t.Errorf("%+v: %d bytes for %d lines, %v", test.input, c.n, v.lines, err)
		}
	}
	// One endless line: no more than what can be shown, then an error.
	if _, err := f.Seek(1<<20, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	c := &counter{r: f}
	if _, err := scanText(t.Context(), c, readInput{Limit: 1}.selection(s.env, info.Size())); !errors.Is(err, errTooLarge) || c.n > 256<<10 {
		t.Errorf("%d bytes, %v", c.n, err)
	}
}
