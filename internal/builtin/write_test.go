package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/safeopen"
	"pgregory.net/rapid"
)

type writeOutput struct {
	Type            string  `json:"type"`
	FilePath        string  `json:"filePath"`
	Content         string  `json:"content"`
	StructuredPatch []hunk  `json:"structuredPatch"`
	OriginalFile    *string `json:"originalFile"`
	UserModified    *bool   `json:"userModified"`
}

func (s *session) writes(input in) (text string, out writeOutput) {
	s.t.Helper()
	r, err := s.call("Write", input)
	if err != nil {
		s.t.Fatalf("Write %v: %v", input, err)
	}
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		s.t.Fatal(err)
	}
	return r.Content[0].Text(), out
}

func file(path, content string) in { return in{"file_path": path, "content": content} }

func TestWriteCreates(t *testing.T) {
	conform.Covers(t, "T-59", "T-60", "T-61", "T-66", "T-79")
	s := newSession(t)
	path := s.path("new/dir/f.txt")
	_, out := s.writes(file("new/dir/f.txt", "\uFEFFa\r\nb"))
	if out.Type != "create" || out.FilePath != path || out.Content != "\uFEFFa\r\nb" || out.OriginalFile != nil ||
		out.StructuredPatch == nil || len(out.StructuredPatch) != 0 || out.UserModified == nil || *out.UserModified {
		t.Errorf("output %+v", out)
	}
	if got := s.content("new/dir/f.txt"); got != "\uFEFFa\r\nb" {
		t.Errorf("got %q", got)
	}
	// What was written counts as read.
	s.text("Edit", edit(path, "a", "x"))
	s.text("Write", file(path, ""))
	if got := s.content("new/dir/f.txt"); got != "" {
		t.Errorf("got %q", got)
	}
	if runtime.GOOS != "windows" {
		// A new file has the mode that any program gives it.
		plain := s.path("plain")
		f, err := os.Create(plain)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		want, _ := os.Stat(plain)
		if got, err := os.Stat(path); err != nil || got.Mode() != want.Mode() {
			t.Errorf("mode %v, want %v, %v", got.Mode(), want.Mode(), err)
		}
	}
	s.fails("Write", file(s.path("plain/x"), "x"), "plain")
	s.noTemp(".")
}

// noTemp checks that no temporary file is left.
func (s *session) noTemp(dir string) {
	s.t.Helper()
	if left, _ := filepath.Glob(filepath.Join(s.path(dir), ".turnwright*")); len(left) > 0 {
		s.t.Errorf("left behind: %q", left)
	}
}

func TestWriteReplaces(t *testing.T) {
	conform.Covers(t, "T-59", "T-60", "T-62", "T-75", "B-082")
	s := newSession(t)
	path := s.write("f.txt", "\uFEFF"+strings.ReplaceAll(lines(10), "\n", "\r\n"))
	s.fails("Write", file(path, "x"), path, "has not been read")
	s.read(in{"file_path": path})
	before := s.content("f.txt")
	_, out := s.writes(file(path, strings.Replace(before, "line 5", "LINE 5", 1)))
	want := `[{"oldStart":2,"oldLines":7,"newStart":2,"newLines":7,"lines":[" line 2\r"," line 3\r"," line 4\r","-line 5\r","+LINE 5\r"," line 6\r"," line 7\r"," line 8\r"]}]`
	if got, _ := json.Marshal(out.StructuredPatch); string(got) != want {
		t.Errorf("patch\n%s\nwant\n%s", got, want)
	}
	if out.Type != "update" || out.OriginalFile == nil || *out.OriginalFile != before || out.FilePath != path {
		t.Errorf("output %+v", out)
	}
	// Neither mark nor line ends are adapted.
	s.text("Write", file(path, "a\nb\r\n"))
	if got := s.content("f.txt"); got != "a\nb\r\n" {
		t.Errorf("got %q", got)
	}

	// Touched, but equal: no change. Changed: refused until it is read.
	s.write("f.txt", "a\nb\r\n")
	s.text("Write", file(path, "second"))
	s.write("f.txt", "by another program")
	s.fails("Write", file(path, "third"), path, "has changed since it was read", "read it again")
	if got := s.content("f.txt"); got != "by another program" {
		t.Errorf("refused, but the file is %q", got)
	}
	s.read(in{"file_path": path})
	s.text("Write", file(path, "third"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, out := s.writes(file(path, "anew")); out.Type != "create" { // gone meanwhile: it is a new file
		t.Errorf("output %+v", out)
	}

	// An original too large to be shown.
	big := s.write("big.txt", strings.Repeat("x\n", maxOriginal))
	s.read(in{"file_path": big, "limit": 1})
	if _, out := s.writes(file(big, "small")); out.Type != "update" || out.OriginalFile != nil || len(out.StructuredPatch) != 0 {
		t.Errorf("output %+v", out)
	}
}

func TestWriteNeedsWholeRead(t *testing.T) {
	conform.Covers(t, "T-63", "T-64", "T-78")
	s := newSession(t)
	big := s.write("big.txt", strings.Repeat("filler\n", 50_000))
	notebook := s.write("n.ipynb", `{}`)
	plain, outside := s.write("plain", "x"), s.write("outside/f", "x")
	for _, relaxed := range []bool{false, true} {
		s.env.NeedsRead = nil
		if relaxed {
			s.env.NeedsRead = func(path string) bool { return path == outside }
		}
		s.env.State.Set(recordKey(big), nil)
		s.read(in{"file_path": big})
		s.fails("Write", file(big, "x"), "PARTIAL view")
		s.fails("Write", file(notebook, "{}"), "notebook", "has not been read")
		s.fails("Write", file(outside, "y"), "has not been read")
		s.fails("Edit", edit(outside, "x", "y"), "has not been read")
		if !relaxed {
			s.fails("Write", file(plain, "y"), "has not been read")
			s.fails("Edit", edit(big, "filler\nfiller\nfiller", "x"), "PARTIAL view")
			continue
		}
		s.text("Write", file(plain, "y"))
		s.text("Edit", in{"file_path": big, "old_string": "filler", "new_string": "x", "replace_all": true})
	}
	s.text("Read", in{"file_path": notebook})
	s.text("Write", file(notebook, `{"cells":[]}`))
}

// TestRelaxedThroughLink: a link inside to a file outside does not spare its
// reading, nor does a link outside to a file inside.
func TestRelaxedThroughLink(t *testing.T) {
	conform.Covers(t, "T-64")
	s := newSession(t)
	outside, inside := s.write("outside/f", "x"), s.write("inside/f", "x")
	if err := errors.Join(os.Symlink(outside, s.path("inside/link")), os.Symlink(inside, s.path("outside/link"))); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	s.env.NeedsRead = func(path string) bool { return strings.HasPrefix(path, s.path("outside")) }
	for _, link := range []string{"inside/link", "outside/link"} {
		s.fails("Write", file(s.path(link), "y"), "has not been read")
		s.fails("Edit", edit(s.path(link), "x", "y"), "has not been read")
	}
	if s.content("outside/f") != "x" || s.content("inside/f") != "x" {
		t.Error("a file was changed")
	}
	s.text("Write", file(inside, "y"))
	s.read(in{"file_path": s.path("inside/link")})
	s.text("Write", file(s.path("inside/link"), "y"))
}

// TestReplaceLink: a link that has come into the place of a file since it was
// looked at is neither followed nor replaced.
func TestReplaceLink(t *testing.T) {
	conform.Covers(t, "T-67")
	s := newSession(t)
	target, link := s.write("f", "one"), s.path("link")
	if err := os.Symlink(target, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	info, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(link, []byte("two"), info, "key"); !errors.Is(err, safeopen.ErrMoved) {
		t.Errorf("got %v", err)
	}
	if now, err := os.Lstat(link); err != nil || now.Mode().Type() != fs.ModeSymlink || s.content("f") != "one" {
		t.Errorf("the link is %v, %v; the file has %q", now, err, s.content("f"))
	}
	s.noTemp(".")
}

func TestReadDenied(t *testing.T) {
	conform.Covers(t, "T-65", "T-71", "T-76", "P-86", "P-87")
	s := newSession(t)
	secret := s.write("secret/f", "x")
	open := s.write("open/f", "x")
	if err := errors.Join(os.Symlink(secret, s.path("to-secret")), os.Symlink(open, s.path("secret/to-open"))); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	s.env.ReadDenied = func(path string) bool {
		rel, err := filepath.Rel(s.path("secret"), path)
		return err == nil && filepath.IsLocal(rel)
	}
	const text = "File is covered by a Read deny rule in your permission settings and cannot be "
	for _, path := range []string{"secret/f", "to-secret", "secret/to-open", "secret/new", "secret/new/dir/f", "secret/../secret/f"} {
		for name, test := range map[string]struct {
			input in
			verb  string
		}{
			"Write": {file(path, "y"), "written."},
			"Edit":  {edit(path, "x", "y"), "edited."},
		} {
			if _, err := s.call(name, test.input); err == nil || err.Error() != text+test.verb {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
		if _, err := s.call("Edit", edit(path, "", "y")); err == nil || err.Error() != text+"edited." {
			t.Errorf("Edit creates %s: %v", path, err)
		}
	}
	if s.content("secret/f") != "x" || s.content("open/f") != "x" {
		t.Error("a file was changed")
	}
	if _, err := os.Stat(s.path("secret/new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

func TestWriteKeepsFile(t *testing.T) {
	conform.Covers(t, "T-67")
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits here")
	}
	s := newSession(t)
	path := s.write("real/f.sh", "one\n")
	if err := errors.Join(os.Chmod(path, 0o751), os.Symlink(filepath.Join("real", "f.sh"), s.path("link")),
		os.Symlink(filepath.Join("real", "none"), s.path("dangling"))); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(path)
	s.read(in{"file_path": path})
	s.text("Write", file("link", "two\n"))
	after, err := os.Stat(path)
	if err != nil || after.Mode() != before.Mode() || s.content("real/f.sh") != "two\n" {
		t.Errorf("mode %v, content %q, %v", after.Mode(), s.content("real/f.sh"), err)
	}
	if os.SameFile(before, after) {
		t.Error("the file was written in place, not beside and renamed")
	}
	s.text("Write", file("dangling", "made"))
	if to, err := os.Readlink(s.path("dangling")); err != nil || to != filepath.Join("real", "none") || s.content("real/none") != "made" {
		t.Errorf("the link is %q, %v", to, err)
	}

	// All names of a file stay names of one file.
	if err := os.Link(path, s.path("second")); err != nil {
		t.Skip("no hard links here:", err)
	}
	s.text("Write", file(path, "longer than before\n"))
	s.text("Edit", edit(path, "longer than before", "short"))
	if got := s.content("second"); got != "short\n" {
		t.Errorf("the second name has %q", got)
	}
	s.noTemp("real")
}

func TestWriteRefuses(t *testing.T) {
	conform.Covers(t, "T-67", "B-093")
	s := newSession(t)
	s.fails("Write", file(s.env.Dir, "x"), "directory")
	s.fails("Write", file("", "x"), "file_path", "empty")
	s.fails("Write", in{"file_path": "f", "text": "x"}, "content: required", "text: unknown property")
	if _, err := os.Stat("/dev/null"); err == nil {
		s.fails("Write", file("/dev/null", "x"), "device")
	}
	if l, err := net.Listen("unix", s.path("s")); err == nil {
		defer l.Close()
		s.fails("Write", file(s.path("s"), "x"), "socket")
	}
}

// TestReplaceRaces is the moment between looking at a file and replacing it.
func TestReplaceRaces(t *testing.T) {
	conform.Covers(t, "T-67")
	s := newSession(t)
	path := s.write("f", "one")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.write("f", "another length")
	if err := replaceFile(path, []byte("x"), info, "k"); !errors.Is(err, errChangedMeanwhile) {
		t.Errorf("a changed file: %v", err)
	}
	if got := s.content("f"); got != "another length" {
		t.Errorf("got %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, []byte("x"), info, "k"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it came back")
	}
	// A temporary file that a crash left is no hindrance.
	s.write(tempName(path, "k"), "left")
	if err := createFile(path, []byte("made"), "k"); err != nil || s.content("f") != "made" {
		t.Errorf("got %q, %v", s.content("f"), err)
	}
	s.noTemp(".")
}

// TestWriteThenRead gives back the bytes.
func TestWriteThenRead(t *testing.T) {
	conform.Covers(t, "T-59", "T-60")
	s := newSession(t)
	s.vars["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"] = "1000000"
	piece := rapid.SampledFrom([]string{"a", "word ", "\n", "\r\n", "\r", "é", "\t", byteOrderMark, "\u2028", "😀", "\x01", "\n\n\nsame\n"})
	path := s.path("f")
	rapid.Check(t, func(t *rapid.T) {
		content := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "content"), "")
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		_, out := s.writes(file(path, content))
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("wrote %q, got %q, %v", content, got, err)
		}
		if out.Type == "update" {
			applyHunks(t, string(old), content, out.StructuredPatch)
		}
		if _, read := s.read(in{"file_path": path, "offset": 1}); read.Type == "text" && read.File.Content != foldString(strings.TrimPrefix(content, byteOrderMark)) {
			t.Fatalf("wrote %q, read %q", content, read.File.Content)
		}
	})
}

func TestRecordRead(t *testing.T) {
	conform.Covers(t, "T-57", "T-77")
	s := newSession(t)
	path := s.write("sub/f.txt", "one\n")
	s.env.State.Set(cwdKey, json.RawMessage(quote(s.path("sub"))))
	if err := recordRead(s.env, "f.txt"); err != nil {
		t.Fatal(err)
	}
	s.text("Edit", edit("f.txt", "one", "two")) // relative to the same directory
	s.write("sub/f.txt", "three\n")
	s.fails("Write", file(path, "x"), "has changed")
	if err := recordRead(s.env, path); err != nil {
		t.Fatal(err)
	}
	s.text("Write", file(path, "x"))
	for _, bad := range []string{"none", s.env.Dir, ""} {
		if err := recordRead(s.env, bad); err == nil {
			t.Errorf("%q was recorded", bad)
		}
	}
	s.env.State.Set(cwdKey, json.RawMessage(`"relative"`))
	if got := currentDir(s.env); got != s.env.Dir {
		t.Errorf("current directory %q", got)
	}
}

func FuzzWrite(f *testing.F) {
	f.Add("a\r\nb", "a\nb")
	f.Add("", "\x00")
	f.Add("x\ny\nx\ny\n", "y\nx\n")
	s := newSession(f)
	path := s.path("f")
	f.Fuzz(func(t *testing.T, before, after string) {
		s.t = t
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := recordRead(s.env, path); err != nil {
			t.Fatal(err)
		}
		after = strings.ToValidUTF8(after, "?") // JSON carries nothing else
		_, out := s.writes(file(path, after))
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, []byte(after)) {
			t.Fatalf("wrote %q, got %q, %v", after, got, err)
		}
		applyHunks(t, before, after, linePatch(before, after))
		if len(out.StructuredPatch) != len(linePatch(before, after)) {
			t.Fatalf("output %+v", out)
		}
	})
}
