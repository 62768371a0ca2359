//go:build unix

package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
)

// FuzzBash lets a real shell write any bytes and end in any way. The reference
// is what the contract says of the result.
func FuzzBash(f *testing.F) {
	f.Add([]byte("hello\n"), uint16(1), byte(0), false)
	f.Add([]byte("a\xff\xfe\x00b"), uint16(1), byte(7), false)
	f.Add([]byte("😀"), uint16(9000), byte(1), false)
	f.Add([]byte("x😀"), uint16(20000), byte(0), false)
	f.Add([]byte(" \n"), uint16(3), byte(0), false)
	f.Add([]byte("line\n"), uint16(65535), byte(255), false)
	f.Add([]byte("y"), uint16(1), byte(9), true)
	f.Add([]byte{}, uint16(1), byte(3), true)
	s := newSession(f)
	f.Fuzz(func(t *testing.T, piece []byte, times uint16, end byte, signal bool) {
		conform.Covers(t, "T-115", "T-116", "T-117", "T-118", "T-121", "T-129", "B-107", "B-109", "W-242")
		if len(piece) > 4096 {
			piece = piece[:4096]
		}
		data := strings.Repeat(string(piece), min(int(times), 1+2_000_000/(1+len(piece))))
		file := s.path("data")
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		code := int(end)
		last := fmt.Sprintf("exit %d", code)
		if signal {
			// Those that end a process without a core file, and that no shell
			// keeps for itself; not SIGHUP, which under nohup ends nothing.
			n := []int{9, 10, 13, 14, 15}[code%5]
			code, last = 128+n, fmt.Sprintf("kill -%d $$", n)
		}
		clear(s.blobs)
		raw, err := json.Marshal(in{"command": "cat data; " + last, "timeout": 600_000})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.bashTool().Call(t.Context(), &tool.Call{ID: "toolu_1", Key: "k", Input: raw, Env: s.env})
		if err != nil {
			t.Fatal(err)
		}
		checkBash(t, s, r, data, code)
	})
}

func checkBash(t *testing.T, s *session, r *tool.Result, data string, code int) {
	t.Helper()
	text := r.Content[0].Text()
	var out bashOutput
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		t.Fatal(err)
	}
	if r.IsError != (code != 0) || out.Interrupted || out.Stderr != "" {
		t.Errorf("code %d: error %v, %+.200v", code, r.IsError, out)
	}
	if text == "" || !utf8.ValidString(text) {
		t.Errorf("text %.100q", text)
	}
	whole := trimEnd(strings.ToValidUTF8(data, "\uFFFD"))
	long := utf8.RuneCountInString(strings.ToValidUTF8(data, "\uFFFD"))
	shown, limit := text, inlineSuccess
	if code != 0 {
		limit = inlineFailure
		head := fmt.Sprintf("Exit code %d\n", code)
		if !strings.HasPrefix(text, head) {
			t.Fatalf("code %d: %.100q", code, text)
		}
		shown = text[len(head):]
	}
	switch {
	case long <= limit && strings.TrimSpace(whole) == "":
		if shown != "(no output)" {
			t.Errorf("silent: %.100q", shown)
		}
	case long <= limit:
		if shown != whole || out.Stdout != whole {
			t.Errorf("%d characters: got %.100q", long, shown)
		}
	case code != 0:
		if n := utf8.RuneCountInString(shown); !strings.Contains(shown, "characters truncated] ...") || n > limit+100 || out.PersistedOutputPath != "" || len(s.blobs) > 0 {
			t.Errorf("%d characters of %d, %+.100v", n, long, out.PersistedOutputPath)
		}
	default:
		if n := utf8.RuneCountInString(shown); n > previewSize+1000 || string(s.blobs["bash-toolu_1.txt"]) != data || out.PersistedOutputSize != int64(len(data)) || !strings.Contains(text, out.PersistedOutputPath) {
			t.Errorf("%d characters, saved %d of %d bytes", n, len(s.blobs["bash-toolu_1.txt"]), len(data))
		}
	}
}

// TestExitCodes: every exit code is told.
func TestExitCodes(t *testing.T) {
	conform.Covers(t, "T-115", "T-116")
	s := newSession(t)
	step := 1
	if testing.Short() {
		step = 17
	}
	for code := 1; code < 256; code += step {
		if text, isError, _ := s.bash(fmt.Sprintf("exit %d", code)); !isError || text != fmt.Sprintf("Exit code %d\n(no output)", code) {
			t.Errorf("code %d: %q", code, text)
		}
	}
}

func FuzzShellText(f *testing.F) {
	for _, c := range []string{"git x", "sleep 1", "cat f", "a | b", "if", "$((", "head -n1 'f'", "{ (a) && b; } 2>&1 &", "<<E", "[ a ]", "sed -n 1p x", "${x:-`y`}", "\x00\xff"} {
		f.Add(c)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, command string) {
		// Nothing panics, and what is not understood is never taken for more
		// than it is.
		meaningOfOne(command)
		movable(command)
		readOf("zsh", dir, command)
		if r := readOf("bash", dir, command); r.path != "" && !strings.HasPrefix(r.path, "/") {
			t.Errorf("%q reads %q", command, r.path)
		}
		if got := shellQuote(command); strings.ReplaceAll(got[1:len(got)-1], `'\''`, "'") != command {
			t.Errorf("%q is quoted as %q", command, got)
		}
	})
}
