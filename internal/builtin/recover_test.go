package builtin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
	"pgregory.net/rapid"
)

// recovers asks a tool what became of a call.
func (s *session) recovers(name string, input in) (*tool.Result, bool) {
	s.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		s.t.Fatal(err)
	}
	tl, _, _ := s.tools.Get(name)
	return tl.(tool.Recoverer).Recover(s.t.Context(), &tool.Call{ID: "toolu_1", Key: "key-1", Name: name, Input: raw, Env: s.env})
}

const (
	unknown = "unknown"
	done    = "done"
	notDone = "not done"
)

func verdict(r *tool.Result, ok bool) string {
	switch {
	case !ok:
		return unknown
	case r.IsError:
		return notDone
	}
	return done
}

func TestRecover(t *testing.T) {
	conform.Covers(t, "T-67", "T-79")
	for _, test := range []struct {
		name   string
		before string // "-": there was none
		read   bool
		input  in // of Write, or of Edit when it has old_string
		after  string
		want   string
	}{
		{"write, new", "-", false, in{"content": "x"}, "x", done},
		{"write, nothing there", "-", false, in{"content": "x"}, "-", notDone},
		{"write, something else there", "-", false, in{"content": "x"}, "y", unknown},
		{"write over", "old", true, in{"content": "new"}, "new", done},
		{"write over, as it was", "old", true, in{"content": "new"}, "old", notDone},
		{"write over, half", "old", true, in{"content": "newer"}, "newld", unknown},
		{"write over, gone", "old", true, in{"content": "new"}, "-", unknown},
		{"write what is there", "old", true, in{"content": "old"}, "old", done},
		{"write over, never read", "old", false, in{"content": "new"}, "old", unknown},
		{"edit", "a b c", true, in{"old_string": "b", "new_string": "x"}, "a x c", done},
		{"edit, as it was", "a b c", true, in{"old_string": "b", "new_string": "x"}, "a b c", notDone},
		{"edit, by another program too", "a b c", true, in{"old_string": "b", "new_string": "x"}, "a x d", unknown},
		{"edit, new text elsewhere too", "x b x", true, in{"old_string": "b", "new_string": "x"}, "x x x", done},
		{"delete", "a b c", true, in{"old_string": " b", "new_string": ""}, "a c", done},
		{"edit, all", "b a b", true, in{"old_string": "b", "new_string": "x", "replace_all": true}, "x a x", done},
		{"edit, CR LF", "a\r\nb\r\nc\r\n", true, in{"old_string": "a\nb", "new_string": "x\ny\nz"}, "x\r\ny\r\nz\r\nc\r\n", done},
		{"edit, mark", "\uFEFFa b", true, in{"old_string": "\uFEFFa", "new_string": "\uFEFFx"}, "\uFEFFx b", done},
		{"edit, no line ends", "one", true, in{"old_string": "one", "new_string": "a\r\nb"}, "a\r\nb", done},
		{"edit, never read", "a", false, in{"old_string": "a", "new_string": "b"}, "b", unknown},
		{"edit creates", "-", false, in{"old_string": "", "new_string": "x"}, "x", done},
		{"edit creates, nothing there", "-", false, in{"old_string": "", "new_string": "x"}, "-", notDone},
		{"edit fills", "", true, in{"old_string": "", "new_string": "x"}, "x", done},
		{"edit fills, still empty", "", true, in{"old_string": "", "new_string": "x"}, "", notDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSession(t)
			path := s.path("f")
			if test.before != "-" {
				s.write("f", test.before)
			}
			if test.read {
				s.read(in{"file_path": path})
			}
			if test.after == "-" {
				os.Remove(path)
			} else {
				s.write("f", test.after)
			}
			test.input["file_path"] = path
			name := "Write"
			if _, is := test.input["old_string"]; is {
				name = "Edit"
			}
			r, ok := s.recovers(name, test.input)
			if got := verdict(r, ok); got != test.want {
				t.Fatalf("%s, want %s", got, test.want)
			}
			if ok && !strings.Contains(r.Content[0].Text(), path) {
				t.Errorf("text %q", r.Content[0].Text())
			}
			if test.want == done && test.after != "" { // it counts as written by the session
				s.text("Write", file(path, "next"))
			}
		})
	}
}

// TestRecoverEdits takes back what Edit really makes.
func TestRecoverEdits(t *testing.T) {
	s := newSession(t)
	path := s.path("f")
	piece := rapid.SampledFrom([]string{"a", "b", "\n", "é", "ab", "\x99"})
	crlf := rapid.Bool()
	rapid.Check(t, func(t *rapid.T) {
		end := func(text string) string { return text }
		if crlf.Draw(t, "crlf") {
			end = func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
		}
		before := end(strings.Join(rapid.SliceOfN(piece, 1, 30).Draw(t, "before"), ""))
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		s.env.State.Set(recordKey(path), nil)
		if err := recordRead(s.env, path); err != nil {
			t.Fatal(err)
		}
		record := s.env.State.Get(recordKey(path))
		at := rapid.IntRange(0, len(before)-1).Draw(t, "at")
		old := strings.ToValidUTF8(before[at:rapid.IntRange(at+1, len(before)).Draw(t, "to")], "")
		new := strings.ToValidUTF8(strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "new"), ""), "")
		input := edit(path, old, new)
		if _, err := s.call("Edit", input); err != nil {
			t.Skip("does not fit")
		}
		s.env.State.Set(recordKey(path), record) // the crash: the result was not stored
		if got := verdict(s.recovers("Edit", input)); got != done {
			t.Fatalf("%q with %q → %q: %s", before, old, new, got)
		}
	})
}

// TestRecoverAfterKill kills a process in the middle of writing, at any
// moment: the file is whole, and the tool knows what became of the call.
func TestRecoverAfterKill(t *testing.T) {
	if dir := os.Getenv("TURNWRIGHT_TEST_CRASH"); dir != "" {
		crashingChild(t, dir)
		return
	}
	conform.Covers(t, "T-67", "B-114")
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	old, fresh := strings.Repeat("old line\n", 200_000), strings.Repeat("NEW LINE\n", 250_000)
	seen := map[string]int{}
	for i := range rounds {
		s := newSession(t)
		path := s.write("f", old+"tail")
		s.read(in{"file_path": path, "limit": 1})
		name, input, after := "Write", file(path, fresh), fresh
		if i%2 == 1 {
			s.write("f", old+"only once")
			s.read(in{"file_path": path, "limit": 1})
			name, input, after = "Edit", edit(path, "only once", "ONE"), old+"ONE"
		}
		before := s.content("f")
		cmd := exec.Command(os.Args[0], "-test.run=^TestRecoverAfterKill$")
		cmd.Env = append(os.Environ(), "TURNWRIGHT_TEST_CRASH="+s.env.Dir, "TURNWRIGHT_TEST_TOOL="+name)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = json.NewEncoder(in).Encode(input)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "ready") {
			t.Fatalf("the child says %q, %v", line, err)
		}
		ended := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, out)
			close(ended)
		}()
		// Kill at once, while the file is written, or when it has its name.
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		temp := filepath.Join(filepath.Dir(path), tempName(path, "key-1"))
		until(ended, func() bool {
			part, _ := os.Stat(temp)
			now, err := os.Stat(path)
			renamed := err == nil && !os.SameFile(info, now)
			return i%4 == 0 || renamed || i%4 < 3 && part != nil && part.Size() >= int64(rand.IntN(len(after)))
		})
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()

		got := s.content("f")
		if got != before && got != after {
			t.Fatalf("%s: a torn file of %d bytes", name, len(got))
		}
		want := notDone
		if got == after {
			want = done
		}
		v := verdict(s.recovers(name, input))
		if v != want {
			t.Errorf("%s: %s, want %s", name, v, want)
		}
		seen[v]++
		s.noTemp(".")
	}
	t.Log(seen)
}

// until returns when cond holds or ended is closed.
func until(ended <-chan struct{}, cond func() bool) {
	for !cond() {
		select {
		case <-ended:
			return
		default:
			runtime.Gosched()
		}
	}
}

func crashingChild(t *testing.T, dir string) {
	s := newSession(t)
	s.env.Dir = dir
	var input in
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		t.Fatal(err)
	}
	s.read(in{"file_path": input["file_path"], "limit": 1})
	fmt.Println("ready")
	_, err := s.call(os.Getenv("TURNWRIGHT_TEST_TOOL"), input)
	fmt.Println("result", err)
}
