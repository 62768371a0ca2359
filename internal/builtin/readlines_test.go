package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/apiblock"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

// TestReadPieces compares the scan in pieces, as they come from a file, with a
// plain reading of the whole.
func TestReadPieces(t *testing.T) {
	conform.Covers(t, "T-42", "T-43")
	s := newSession(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var b strings.Builder
		for b.Len() < 90<<10 {
			b.WriteString([]string{"\r\n", "\n", "\r", "ä", "word ", strings.Repeat("w", 40<<10), "\r\r\n"}[rnd.IntN(7)])
		}
		s.vars["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"] = "1000000"
		text, out := s.read(in{"file_path": s.write("f.txt", b.String())})
		want := strings.ReplaceAll(b.String(), "\r\n", "\n")
		if out.File.Content != want {
			t.Fatalf("content of %d bytes, want %d", len(out.File.Content), len(want))
		}
		var numbered []string
		for i, l := range strings.Split(strings.TrimSuffix(want, "\n"), "\n") {
			numbered = append(numbered, fmt.Sprintf("%6d\t%s", i+1, l))
		}
		if text != strings.Join(numbered, "\n") {
			t.Fatal("the numbered text differs")
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "a\r\n\r\rb", "\uFEFFx", "\x00", "\xff\xfe", "\x89PNG\r\n\x1a\n", "RIFF1234WEBPVP8 ", "é\n\xc3"} {
		f.Add([]byte(seed), 0, 0)
	}
	f.Add([]byte(lines(20)), 3, 5)
	s := newSession(f)
	s.vars["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"] = "200"
	path := s.path("f")
	f.Fuzz(func(t *testing.T, data []byte, offset, limit int) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		input := in{"file_path": path}
		if offset > 0 {
			input["offset"] = offset
		}
		if limit > 0 {
			input["limit"] = limit
		}
		s.env.State.Set(recordKey(path), nil)
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRead().Call(t.Context(), &tool.Call{Input: raw, Env: s.env})
		if err != nil {
			if !strings.Contains(err.Error(), path) && offset <= maxLine && limit <= maxLine {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if len(r.Content) != 1 || len(r.Content[0].Raw()) > 40*len(path)+8*4*200+2000 && apiblock.ImageType(data) == "" {
			t.Errorf("%d blocks, %d bytes", len(r.Content), len(r.Content[0].Raw()))
		}
		if !json.Valid(r.Structured) || !utf8.Valid(r.Content[0].Raw()) {
			t.Error("not valid JSON")
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(after, data) {
			t.Errorf("the file changed: %v", err)
		}
		checkLines(t, string(data), int64(offset), int64(limit), r)
	})
}

// checkLines compares a whole view with the plain definition of its lines.
func checkLines(t *testing.T, data string, offset, limit int64, r *tool.Result) {
	t.Helper()
	var out readOutput
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		t.Fatal(err)
	}
	if out.Type != "text" || out.File.TruncatedByTokenCap || out.File.NumLines == 0 {
		return
	}
	all := splitLines(foldString(strings.TrimPrefix(data, byteOrderMark)))
	first := max(1, offset)
	last := int64(len(all))
	if limit > 0 {
		last = min(last, first-1+limit)
	}
	var want []string
	for i := first - 1; i < last; i++ {
		want = append(want, fmt.Sprintf("%6d\t%s", i+1, strings.TrimSuffix(all[i], "\n")))
	}
	text, _, _ := strings.Cut(r.Content[0].Text(), "\n\n[Some bytes here are no UTF-8")
	if whole := message.NewText(strings.Join(want, "\n")).Text(); text != whole || out.File.TotalLines != len(all) || out.File.NumLines != len(want) {
		t.Errorf("%q from %d, %d lines:\ngot  %q\nwant %q", data, offset, limit, text, whole)
	}
}
