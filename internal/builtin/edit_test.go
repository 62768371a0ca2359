package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"pgregory.net/rapid"
)

type editOutput struct {
	FilePath        string  `json:"filePath"`
	OldString       string  `json:"oldString"`
	NewString       string  `json:"newString"`
	OriginalFile    *string `json:"originalFile"`
	StructuredPatch []hunk  `json:"structuredPatch"`
	UserModified    *bool   `json:"userModified"`
	ReplaceAll      *bool   `json:"replaceAll"`
}

func edit(path, old, new string) in {
	return in{"file_path": path, "old_string": old, "new_string": new}
}

func TestEditContent(t *testing.T) {
	conform.Covers(t, "T-70", "T-72", "T-73", "T-74", "T-80", "T-83", "B-081", "B-082", "B-083", "B-088")
	const bom = byteOrderMark
	for _, test := range []struct {
		name, before, old, new string
		all                    bool
		after                  string // "": refused
		err                    string
	}{
		{name: "plain", before: "a b c", old: "b", new: "x", after: "a x c"},
		{name: "delete", before: "a\nb\nc\n", old: "b\n", new: "", after: "a\nc\n"},
		{name: "no pattern", before: "a.c abc", old: "a.c", new: "$0 \\1", after: "$0 \\1 abc"},
		{name: "blanks count", before: "a  b", old: "a b", err: "differs only in blanks"},
		{name: "tabs count", before: "\tx", old: "    x", err: "differs only in blanks"},
		{name: "no-break space", before: "a\u00A0b", old: "a b", err: "U+00A0"},
		{name: "accents in two characters", before: "e\u0301t\u00e9", old: "\u00e9t\u00e9", err: "accented characters"},
		{name: "typographic quotes", before: "it\u2019s", old: "it's", err: "U+2019"},
		{name: "typographic dash", before: "a \u2014 b", old: "a - b", err: "dashes"},
		{name: "not there", before: "abc", old: "x", err: "not found"},
		{name: "case counts", before: "abc", old: "ABC", err: "not found"},
		{name: "twice", before: "x y x", old: "x", new: "z", err: "2 times; add surrounding lines until it is unique, or set replace_all"},
		{name: "overlapping", before: "aaa", old: "aa", new: "b", err: "overlapping"},
		{name: "all", before: "x y x", old: "x", new: "zz", all: true, after: "zz y zz"},
		{name: "all, once there", before: "x y", old: "x", new: "z", all: true, after: "z y"},
		{name: "all, none there", before: "x y", old: "q", new: "z", all: true, err: "not found"},
		{name: "all, new holds old", before: "a a", old: "a", new: "aa", all: true, after: "aa aa"},
		{name: "other bytes stay", before: "first\nx\nh\x99llo \xff\xfe\n", old: "first", new: "erster", after: "erster\nx\nh\x99llo \xff\xfe\n"},
		{name: "U+FFFD for such a byte", before: "h\x99llo", old: "h\uFFFDllo", new: "x", err: "U+FFFD"},
		{name: "mark stays", before: bom + "héllo\n", old: "héllo", new: "welt", after: bom + "welt\n"},
		{name: "mark in old and new", before: bom + "a\nb", old: bom + "a", new: bom + "c", after: bom + "c\nb"},
		{name: "CR LF, LF given", before: "a\r\nb\r\nc\r\nd\r\ne\r\n", old: "b\nc", new: "B\nnew\nC", after: "a\r\nB\r\nnew\r\nC\r\nd\r\ne\r\n"},
		{name: "CR LF, CR LF given", before: "a\r\nb\r\nc\r\n", old: "a\r\nb", new: "x\r\ny\r\nz", after: "x\r\ny\r\nz\r\nc\r\n"},
		{name: "CR LF, one line", before: "a\r\nb\r\n", old: "b", new: "b1\nb2", after: "a\r\nb1\r\nb2\r\n"},
		{name: "LF stays LF", before: "a\nb\n", old: "a", new: "x\r\ny", after: "x\ny\nb\n"},
		{name: "mixed: the match decides", before: "a\nb\r\nc\nd\n", old: "b\nc", new: "B\nnew\nC", after: "a\nB\r\nnew\r\nC\nd\n"},
		{name: "mixed: unchanged parts stay", before: "a\r\nb\nc\r\n", old: "a\nb\nc", new: "a\nX\nc", after: "a\r\nX\nc\r\n"},
		{name: "no line end: as given", before: "one", old: "one", new: "a\r\nb", after: "a\r\nb"},
		{name: "lone CR is no line end", before: "a\rb", old: "a\nb", err: "not found"},
		{name: "to the end", before: "a\nb", old: "b", new: "b\n", after: "a\nb\n"},
		{name: "whole file", before: "a\n", old: "a\n", new: "", after: "\x00empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSession(t)
			path := s.write("f.txt", test.before)
			s.read(in{"file_path": path})
			input := edit(path, test.old, test.new)
			if test.new == "" && test.err != "" {
				input["new_string"] = "irrelevant"
			}
			if test.all {
				input["replace_all"] = true
			}
			if test.err != "" {
				s.fails("Edit", input, path, test.err)
				if got := s.content("f.txt"); got != test.before {
					t.Errorf("refused, but the file is %q", got)
				}
				return
			}
			s.text("Edit", input)
			if got, want := s.content("f.txt"), strings.Replace(test.after, "\x00empty", "", 1); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if left, _ := filepath.Glob(s.path(".turnwright*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestEditChecks(t *testing.T) {
	s := newSession(t)
	path := s.write("f.txt", "one\ntwo\n")
	t.Run("order", func(t *testing.T) {
		conform.Covers(t, "T-71", "T-64")
		s.fails("Edit", edit(path, "absent", "x"), "has not been read")
		s.read(in{"file_path": path, "offset": 1, "limit": 1}) // a ranged read is one
		s.fails("Edit", edit(path, "absent", "x"), "not found")
	})
	t.Run("same", func(t *testing.T) {
		conform.Covers(t, "T-81")
		s.fails("Edit", edit(path, "one", "one"), "the same")
		s.fails("Edit", edit(path, "one\n", "one\r\n"), "the same")
		s.fails("Edit", edit(path, "", ""), "empty")
	})
	t.Run("notebook", func(t *testing.T) {
		conform.Covers(t, "T-84")
		s.fails("Edit", edit(s.write("n.ipynb", "{}"), "{", "["), "NotebookEdit")
	})
	t.Run("missing", func(t *testing.T) {
		s.fails("Edit", edit(s.path("g.txt"), "a", "b"), "does not exist", "f.txt")
		s.fails("Edit", edit(s.env.Dir, "a", "b"), "directory")
	})
	t.Run("fields", func(t *testing.T) {
		conform.Covers(t, "T-68", "T-19")
		s.fails("Edit", in{"file_path": path, "old_string": "one"}, "new_string: required")
		s.fails("Edit", in{"file_path": path, "old": "x"}, "old: unknown property", "old_string: required", "new_string: required")
		input := edit(path, "one", "eins")
		input["replace_all"] = "true" // as a string
		s.text("Edit", input)
	})
	t.Run("no read between edits", func(t *testing.T) {
		conform.Covers(t, "T-79")
		s.text("Edit", edit(path, "eins", "un"))
		s.text("Edit", edit(path, "un", "uno"))
		if got := s.content("f.txt"); got != "uno\ntwo\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("partial view", func(t *testing.T) {
		conform.Covers(t, "T-78", "T-57")
		big := s.write("big.txt", "start\n"+strings.Repeat("filler\n", 50_000))
		s.read(in{"file_path": big})
		s.fails("Edit", edit(big, "start", "x"), "PARTIAL view")
		s.read(in{"file_path": big, "limit": 10})
		s.text("Edit", edit(big, "start", "x"))
	})
}

func TestEditChangedFile(t *testing.T) {
	conform.Covers(t, "T-75")
	s := newSession(t)
	path := s.write("f.txt", "one\ntwo\n")
	s.read(in{"file_path": path})
	s.write("f.txt", "one\ntwo\n") // touched, but equal
	if text := s.text("Edit", edit(path, "one", "eins")); strings.Contains(text, "changed") {
		t.Errorf("an equal file is said to have changed: %s", text)
	}
	s.write("f.txt", "eins\nTWO\n")
	s.fails("Edit", edit(path, "two", "zwei"), "has changed since it was read", "not found", "read it again")
	if text := s.text("Edit", edit(path, "eins", "one")); !strings.Contains(text, "had changed") {
		t.Errorf("the result does not say that the file had changed: %s", text)
	}
	if got := s.content("f.txt"); got != "one\nTWO\n" {
		t.Errorf("got %q", got)
	}
	if text := s.text("Edit", edit(path, "one", "1")); strings.Contains(text, "changed") {
		t.Errorf("still said to have changed: %s", text)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.fails("Edit", edit(path, "1", "2"), "does not exist")
}

func TestEditCreates(t *testing.T) {
	conform.Covers(t, "T-82", "T-66")
	s := newSession(t)
	path := s.path("new/dir/f.txt")
	r, err := s.call("Edit", edit(path, "", "a\r\nb\n"))
	if err != nil || s.content("new/dir/f.txt") != "a\r\nb\n" {
		t.Fatalf("got %v, %v", r, err)
	}
	s.text("Edit", edit(path, "a", "x")) // counts as read
	s.fails("Edit", edit(path, "", "again"), "exists and is not empty")
	empty := s.write("empty.txt", "")
	s.read(in{"file_path": empty})
	s.text("Edit", edit(empty, "", "filled\n"))
	if got := s.content("empty.txt"); got != "filled\n" {
		t.Errorf("got %q", got)
	}
	unread := s.write("unread.txt", "content")
	s.fails("Edit", edit(unread, "", "x"), "has not been read")
	if got := s.content("unread.txt"); got != "content" {
		t.Errorf("got %q", got)
	}
	s.fails("Edit", edit(s.path("empty.txt/x"), "", "x"), "empty.txt/x")
}

func TestEditOutput(t *testing.T) {
	conform.Covers(t, "T-69", "T-60")
	s := newSession(t)
	path := s.write("f.txt", lines(10))
	s.read(in{"file_path": path})
	r, err := s.call("Edit", edit(path, "line 5\n", "LINE 5\nmore\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out editOutput
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		t.Fatal(err)
	}
	if out.FilePath != path || out.OldString != "line 5\n" || out.NewString != "LINE 5\nmore\n" || out.OriginalFile == nil || *out.OriginalFile != lines(10) ||
		out.UserModified == nil || *out.UserModified || out.ReplaceAll == nil || *out.ReplaceAll {
		t.Errorf("output %s", r.Structured)
	}
	want := `[{"oldStart":2,"oldLines":7,"newStart":2,"newLines":8,"lines":[" line 2"," line 3"," line 4","-line 5","+LINE 5","+more"," line 6"," line 7"," line 8"]}]`
	if got, _ := json.Marshal(out.StructuredPatch); string(got) != want {
		t.Errorf("patch\n%s\nwant\n%s", got, want)
	}
}

func TestPatchOfSeveralPlaces(t *testing.T) {
	conform.Covers(t, "T-60")
	for _, n := range []int{1, 6, 7, 8, 20} { // lines between the places
		var b strings.Builder
		for range 4 {
			b.WriteString("old\n" + strings.Repeat("between\n", n))
		}
		b.WriteString("old") // at the end, without a line end
		for _, with := range []string{"one\ntwo", "", "x"} {
			e, err := applyEdit([]byte(b.String()), "old", with, true)
			if err != nil || e.count != 5 {
				t.Fatalf("%d replaced, %v", e.count, err)
			}
			checkPatch(t, e)
			want := 5
			if n <= 6 {
				want = 1
			}
			if hunks := structuredPatch(e.old, e.spans); len(hunks) != want {
				t.Errorf("%d lines between: %d hunks, want %d", n, len(hunks), want)
			}
		}
	}
}

func TestEditKeepsFile(t *testing.T) {
	conform.Covers(t, "T-67")
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits here")
	}
	s := newSession(t)
	path := s.write("real/f.sh", "one\n")
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	link := s.path("link.sh")
	if err := os.Symlink(filepath.Join("real", "f.sh"), link); err != nil {
		t.Fatal(err)
	}
	s.read(in{"file_path": link})
	s.text("Edit", edit(link, "one", "two"))
	if target, err := os.Readlink(link); err != nil || target != filepath.Join("real", "f.sh") {
		t.Errorf("the link is now %q, %v", target, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o751 || s.content("real/f.sh") != "two\n" {
		t.Errorf("mode %v, content %q, %v", info.Mode(), s.content("real/f.sh"), err)
	}
	// Read by the link, edited by the file: it is one record.
	s.text("Edit", edit(path, "two", "three"))
	access, err := NewEdit().Accesses([]byte(`{"file_path":` + quote(link) + `}`))
	if err != nil || access[0].Target != path || access[0].Written != link {
		t.Errorf("accesses %+v, %v", access, err)
	}
}

func TestEditReadOnlyFile(t *testing.T) {
	conform.Covers(t, "T-67")
	if os.Geteuid() == 0 {
		t.Skip("the superuser writes everything")
	}
	s := newSession(t)
	path := s.write("f.txt", "one")
	s.read(in{"file_path": path})
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	s.fails("Edit", edit(path, "one", "two"), path, "permission denied")
	// In a directory that takes no new file it is written in place.
	if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(s.env.Dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(s.env.Dir, 0o755)
	s.text("Edit", edit(path, "one", "2"))
	if got := s.content("f.txt"); got != "2" {
		t.Errorf("got %q", got)
	}
}

// TestReplaceInPlace is the way taken where no file can be made beside the
// target.
func TestReplaceInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("longer before"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := overwrite(f, []byte("short")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "short" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := createFile(path, []byte("x"), "key"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("createFile over a file: %v", err)
	}
}

func TestEditsOfOneFile(t *testing.T) {
	conform.Covers(t, "B-089", "T-79")
	s := newSession(t)
	path := s.write("f.txt", lines(100))
	link := s.path("link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	for round := range 50 {
		s.write("f.txt", lines(100))
		s.read(in{"file_path": path})
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				target := []string{path, link}[i%2]
				if _, err := s.call("Edit", edit(target, fmt.Sprintf("line %d\n", 10*(i+1)), fmt.Sprintf("edited %d\n", i))); err != nil {
					t.Errorf("round %d, edit %d: %v", round, i, err)
				}
			})
		}
		wg.Wait()
		want := lines(100)
		for i := range 6 {
			want = strings.Replace(want, fmt.Sprintf("line %d\n", 10*(i+1)), fmt.Sprintf("edited %d\n", i), 1)
		}
		if got := s.content("f.txt"); got != want {
			t.Fatalf("round %d: an edit is lost:\n%s", round, got)
		}
	}
}

// TestEditAgainstReference compares with the plain definition: fold, replace,
// and every byte outside the replaced text as before.
func TestEditAgainstReference(t *testing.T) {
	conform.Covers(t, "T-70", "T-74", "T-83", "B-081")
	piece := rapid.SampledFrom([]string{"a", "b", "\n", "\r\n", "\r", "é", "\x99", byteOrderMark, "  "})
	text := func(t *rapid.T, name string, most int) string {
		return strings.Join(rapid.SliceOfN(piece, 0, most).Draw(t, name), "")
	}
	rapid.Check(t, func(t *rapid.T) {
		checkEdit(t, text(t, "data", 30), text(t, "old", 3), text(t, "new", 5), rapid.Bool().Draw(t, "all"))
	})
}

func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\r\n", "a\nb", "x", false)
	f.Add(byteOrderMark+"aa\nb", "a", "\r\n", true)
	f.Add("\x99\r\n\r\r\n", "\r", "\n", true)
	f.Fuzz(func(t *testing.T, data, old, new string, all bool) { checkEdit(t, data, old, new, all) })
}

type fataler interface {
	Fatalf(format string, args ...any)
	Helper()
}

func checkEdit(t fataler, data, old, new string, all bool) {
	t.Helper()
	body, marked := strings.CutPrefix(data, byteOrderMark)
	givenOld, givenNew := old, new
	if marked {
		old, new = strings.TrimPrefix(old, byteOrderMark), strings.TrimPrefix(new, byteOrderMark)
	}
	folded, oldF, newF := foldString(body), foldString(old), foldString(new)
	if oldF == "" || oldF == newF {
		return
	}
	n, overlapping := 0, 0
	for i := 0; i+len(oldF) <= len(folded); i++ {
		if folded[i:i+len(oldF)] == oldF {
			overlapping++
		}
	}
	n = strings.Count(folded, oldF)
	e, err := applyEdit([]byte(data), givenOld, givenNew, all)
	switch {
	case n == 0:
		if !errors.Is(err, errNotFound) {
			t.Fatalf("no match: got %v", err)
		}
		return
	case overlapping > 1 && !all:
		if !errors.Is(err, errNotUnique) {
			t.Fatalf("%d matches: got %v", overlapping, err)
		}
		return
	case err != nil:
		t.Fatalf("%d matches: got %v", n, err)
	}
	got := string(e.data)
	if strings.HasPrefix(got, byteOrderMark) != marked && !strings.HasPrefix(newF, byteOrderMark) && !strings.Contains(folded, byteOrderMark) {
		t.Fatalf("the mark was not kept: %q → %q", data, got)
	}
	gotBody := got
	if marked {
		gotBody = strings.TrimPrefix(got, byteOrderMark)
	}
	want := strings.ReplaceAll(folded, oldF, newF)
	// A lone CR may come to stand before a line end, where one cannot tell it
	// from a part of that; so they do not count here.
	if calm(gotBody) != calm(want) {
		t.Fatalf("%q with %q → %q:\ngot  %q\nwant %q folded", data, old, new, got, want)
	}
	if e.old != folded || e.new != want {
		t.Fatalf("texts %q → %q, want %q → %q", e.old, e.new, folded, want)
	}
	// The bytes before the first and after the last match are untouched.
	first, last := strings.Index(folded, oldF), 0
	for i := 0; ; {
		j := strings.Index(folded[i:], oldF)
		if j < 0 {
			break
		}
		i += j + len(oldF)
		last = i
	}
	f := fold([]byte(body))
	if head := body[:f.raw(first)]; !strings.HasPrefix(gotBody, head) {
		t.Fatalf("the bytes before the match changed: %q → %q", data, got)
	}
	if tail := body[f.raw(last):]; !strings.HasSuffix(gotBody, tail) {
		t.Fatalf("the bytes after the match changed: %q → %q", data, got)
	}
	// The line ends of a file that has only one kind stay of that kind.
	if crlf := strings.Count(body, "\r\n"); crlf > 0 && !strings.Contains(strings.ReplaceAll(body+new, "\r\n", ""), "\r") {
		if crlf == strings.Count(body, "\n") && strings.Count(gotBody, "\r\n") != strings.Count(gotBody, "\n") {
			t.Fatalf("the line ends of %q became mixed: %q", data, got)
		}
	}
	checkPatch(t, e)
}

var crsBeforeLF = regexp.MustCompile("\r+\n")

func calm(s string) string { return crsBeforeLF.ReplaceAllString(s, "\n") }

// checkPatch applies the hunks to the old text and compares with the new one.
func checkPatch(t fataler, e *textEdit) {
	t.Helper()
	applyHunks(t, e.old, e.new, structuredPatch(e.old, e.spans))
}

func applyHunks(t fataler, from, to string, hunks []hunk) {
	t.Helper()
	const noEnd = "\\ No newline at end of file"
	old := splitLines(from)
	var got strings.Builder
	at := 0
	for _, h := range hunks {
		for ; at < h.OldStart-1; at++ {
			got.WriteString(old[at])
		}
		if lines := strings.Count(got.String(), "\n"); lines != h.NewStart-1 {
			t.Fatalf("hunk %+v starts after %d new lines", h, lines)
		}
		oldLines, newLines := 0, 0
		for i, l := range h.Lines {
			if l == noEnd {
				continue
			}
			text := l[1:]
			if i+1 >= len(h.Lines) || h.Lines[i+1] != noEnd {
				text += "\n"
			}
			if l[0] != '+' {
				if at >= len(old) || old[at] != text {
					t.Fatalf("hunk %+v does not fit line %d of %q", h, at+1, from)
				}
				at++
				oldLines++
			}
			if l[0] != '-' {
				got.WriteString(text)
				newLines++
			}
		}
		if oldLines != h.OldLines || newLines != h.NewLines {
			t.Fatalf("hunk %+v has %d and %d lines", h, oldLines, newLines)
		}
	}
	for ; at < len(old); at++ {
		got.WriteString(old[at])
	}
	if got.String() != to {
		t.Fatalf("the patch of %q gives %q, want %q", from, got.String(), to)
	}
}

// A replacement in very many places must not fill the memory: the size of the
// result is bounded, and so is the patch that tells of it.
func TestEditResultIsBounded(t *testing.T) {
	conform.Covers(t, "T-69", "T-74")
	s := newSession(t)
	path := s.write("big", strings.Repeat("a", 3<<20))
	if err := recordRead(s.env, path); err != nil {
		t.Fatal(err)
	}
	s.fails("Edit", in{"file_path": path, "old_string": "a", "new_string": strings.Repeat("b", 2000), "replace_all": true}, "new_string", "bytes")
	path = s.write("wide", strings.Repeat("a\n", 1<<19))
	if err := recordRead(s.env, path); err != nil {
		t.Fatal(err)
	}
	r, err := s.call("Edit", in{"file_path": path, "old_string": "a", "new_string": "bb", "replace_all": true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(r.Structured), `"structuredPatch":[]`) {
		t.Errorf("a patch of %d bytes", len(r.Structured))
	}
}
