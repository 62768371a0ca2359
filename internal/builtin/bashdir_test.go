//go:build unix

package builtin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
)

func (s *session) cwd() string {
	raw := s.env.State.Get("bash.cwd")
	if raw == nil {
		return ""
	}
	var dir string
	if err := json.Unmarshal(raw, &dir); err != nil {
		s.t.Error(err)
	}
	return dir
}

func TestBashDirectory(t *testing.T) {
	s := newSession(t)
	extra, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.env.Dirs = []string{extra}
	odd := s.path("a/odd 'name\n$(x)")
	mkdir(t, odd)
	mkdir(t, s.path("b"))
	mkdir(t, s.path("dirs-is-no-parent"))
	if err := os.Symlink("/", s.path("out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.path("a"), s.path("link")); err != nil {
		t.Fatal(err)
	}
	root := s.env.Dir
	reset := "Shell cwd was reset to " + root
	for _, test := range []struct {
		name, command string
		dir           string // afterwards, relative to root or absolute
		text          string // "": not looked at
	}{
		{"plain", "cd a", "a", "(no output)"},
		{"kept", "pwd", "a", root + "/a"},
		{"PWD is right", `echo "$PWD"`, "a", root + "/a"},
		{"a variable is not kept", "export X=1; cd ../b", "b", ""},
		{"variables", `echo "x$X"`, "b", "x"},
		{"back", "cd ..", ".", ""},
		{"exit", "cd a; exit 3", "a", "Exit code 3\n(no output)"},
		{"in a subshell", "(cd ../b); pwd", "a", root + "/a"},
		{"set -e", "set -e; cd ../b; false; cd ../a", "b", "Exit code 1\n(no output)"},
		{"set -u", "set -u; cd ../a; echo ${nothing_here-none}", "a", "none"},
		{"a trap of its own", "trap 'echo bye' EXIT; cd ../b; exit_code() { return 4; }; exit_code", "b", "Exit code 4\nbye"},
		{"a word like it", "cd ../a; echo bootstrap", "a", "bootstrap"},
		{"a trap and quotes", `trap "echo 'it''s' \"me\"" USR1; cd ../b; kill -USR1 $$; exit 0`, "b", "its me"},
		{"exec keeps the old one", "cd ../a; exec echo gone", "b", "gone"},
		{"killed keeps the old one", "cd ../a; kill -KILL $$", "b", "Exit code 137\n(no output)"},
		{"closed output", "exec >&- 2>&- <&-; cd ../a", "a", "(no output)"},
		{"output like the report", `cd ../b; printf '0\n/etc\n'; printf '0\n/etc\n' >&2`, "b", "0\n/etc\n0\n/etc"},
		{"functions named alike", "printf() { :; }; cd ../a; unset -f printf", "a", "(no output)"},
		{"odd name", `cd "$(dirname "$PWD")"/a/odd*`, odd, "(no output)"},
		{"odd name kept", "ls -d . && cd ../..", ".", "."},
		{"syntax error", "cd a; if", ".", ""},
		{"unfinished quote", "cd a; echo 'x", ".", ""},
		{"comment", "cd a # and no more", "a", "(no output)"},
		{"here document", "cd ../b; cat <<E\nx $PWD\nE", "b", "x " + root + "/b"},
		{"line continued", "cd \\\n../a", "a", "(no output)"},
		{"through a link", "cd ../link", "a", "(no output)"},
		{"an additional directory", "cd " + extra, extra, "(no output)"},
		{"outside", "echo hi; cd /", ".", "hi\n" + reset},
		{"outside and silent", "cd /", ".", "(no output)\n" + reset},
		{"outside and failing", "cd /; exit 2", ".", "Exit code 2\n(no output)\n" + reset},
		{"outside through a link", "cd out", ".", "(no output)\n" + reset},
		{"a name that begins alike", "mkdir -p ../" + filepath.Base(root) + "-more; cd ../" + filepath.Base(root) + "-more", ".", "(no output)\n" + reset},
		{"into one that vanishes", "mkdir tmp && cd tmp && rmdir ../tmp", ".", "(no output)\n" + reset},
		{"into one that will vanish", "mkdir tmp && cd tmp", "tmp", "(no output)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conform.Covers(t, "T-109", "T-111")
			text, _, out := s.bash(test.command)
			want := test.dir
			switch {
			case want == ".":
				want = ""
			case !filepath.IsAbs(want):
				want = filepath.Join(root, want)
			}
			if got := s.cwd(); got != want {
				t.Errorf("in %q, want %q; %q", got, want, text)
			}
			if test.text != "" && text != test.text {
				t.Errorf("got %q, want %q", text, test.text)
			}
			if strings.Contains(text, reset) != (out.Stderr == reset) {
				t.Errorf("stderr %q", out.Stderr)
			}
		})
	}
	t.Run("vanished between two commands", func(t *testing.T) {
		conform.Covers(t, "T-109")
		if err := os.Remove(s.path("tmp")); err != nil {
			t.Fatal(err)
		}
		if text, _, _ := s.bash("pwd"); text != root+"\n"+reset || s.cwd() != "" {
			t.Errorf("got %q, in %q", text, s.cwd())
		}
	})
	t.Run("no longer allowed", func(t *testing.T) {
		conform.Covers(t, "T-109")
		s.bash("cd " + extra)
		s.env.Dirs = nil
		if text, _, _ := s.bash("pwd"); text != root+"\n"+reset {
			t.Errorf("got %q", text)
		}
		for _, bad := range []string{`7`, `"a"`, `"/"`, `"` + root + `/nothing"`} {
			s.env.State.Set("bash.cwd", json.RawMessage(bad))
			if text, _, _ := s.bash("pwd"); text != root+"\n"+reset {
				t.Errorf("%s: got %q", bad, text)
			}
		}
	})
	t.Run("temporary files cleaned up", func(t *testing.T) {
		conform.Covers(t, "T-109")
		s.bash("rm -rf " + shellQuote(s.bashTool().temp.dir) + "; cd a")
		s.bash("cd a")
		if text, _, _ := s.bash("pwd"); text != root+"/a" {
			t.Errorf("got %q", text)
		}
	})
	t.Run("always the project", func(t *testing.T) {
		conform.Covers(t, "T-110")
		s.vars["CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"] = "1"
		s.bash("cd a")
		if text, _, _ := s.bash("pwd"); text != root {
			t.Errorf("got %q", text)
		}
	})
}

// TestBashDirectoryRandom walks about at random, beside a reference.
func TestBashDirectoryRandom(t *testing.T) {
	conform.Covers(t, "T-109")
	s := newSession(t)
	rnd := rand.New(rand.NewPCG(11, 12))
	dirs := []string{s.env.Dir}
	for i := range 12 {
		d := filepath.Join(dirs[rnd.IntN(len(dirs))], fmt.Sprintf("d%d '\"\\", i))
		mkdir(t, d)
		dirs = append(dirs, d)
	}
	n := 40
	if testing.Short() {
		n = 10
	}
	at := s.env.Dir
	for range n {
		to := dirs[rnd.IntN(len(dirs))]
		rel, err := filepath.Rel(at, to)
		if err != nil {
			t.Fatal(err)
		}
		code := rnd.IntN(3)
		text, _, _ := s.bash(fmt.Sprintf("pwd; cd %s; %s %d", shellQuote(rel), []string{"exit", "set -e; (exit $1) || exit", "set --; exit"}[rnd.IntN(3)], code))
		if !strings.Contains(text, at) {
			t.Fatalf("ran in %q, want %q", text, at)
		}
		at = to
		if got := s.cwd(); got != at && !(got == "" && at == s.env.Dir) {
			t.Fatalf("in %q, want %q", got, at)
		}
	}
}

// TestBashReads: commands that show one file count as a read of it.
func TestBashReads(t *testing.T) {
	conform.Covers(t, "T-77")
	s := newSession(t)
	s.write("sub/f.txt", "one\ntwo\n")
	s.write("g.txt", "three\n")
	s.bash("cd sub")
	f := s.path("sub/f.txt")
	for command, want := range map[string]bool{
		"cat f.txt": true, "cat -n f.txt": true, "cat " + f: true, "cat 'f.txt'": true, `cat "f.txt"`: true, "cat f\\.txt": true, "cat -- f.txt": true,
		"nl f.txt": true, "nl -ba f.txt": true, "head f.txt": true, "head -n 1 f.txt": true, "head -n1 f.txt": true, "head -1 f.txt": true, "tail -n +1 f.txt": true,
		"sed -n '1,2p' f.txt": true, "sed -n 1p f.txt": true, "sed -n '2,$p' f.txt": true, "grep one f.txt": true, "grep -n one f.txt": true, "grep -e one f.txt": true,
		"egrep -C 1 o f.txt": true, "fgrep one f.txt": true, "cat  f.txt ;": true,
		"cat f.txt ../g.txt": false, "cat f.txt | head": false, "cat f.txt > /dev/null": false, "cat < f.txt": false, "cat": false, "cat -": false,
		"cat f.tx?": false, "cat $F": false, "cat f.txt; true": false, "cat f.txt && true": false, "X=1 cat f.txt": false, "(cat f.txt)": false, "! cat f.txt": false,
		"sed -n -s 1p f.txt": false, "sed 1p f.txt": false, "sed -n '1p;w x' f.txt": false, "wc f.txt": false, "echo f.txt": false, "grep three f.txt": false,
		"grep -r one .": false, "grep -f pats f.txt": false, "head --unknown f.txt": false, "cat f.txt &": false, "cat missing": false, "cat .": false, "tail -f missing": false,
	} {
		s.env.State.Set(recordKey(f), nil)
		s.bash(command)
		if _, got := loadRecord(s.env.State, f); got != want {
			t.Errorf("%q: recorded %v", command, got)
		}
	}
	s.bash("cat f.txt")
	if text := s.text("Edit", edit(f, "two", "2")); text == "" {
		t.Error("no text")
	}
	if got := s.content("sub/f.txt"); got != "one\n2\n" {
		t.Errorf("the file has %q", got)
	}
}

func TestBashRecover(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		ok      bool
		text    string
		isError bool
	}{
		"success":  {"echo out", true, "Exit code 0\nThe run was interrupted while the command ran. Its output is lost.", false},
		"failure":  {"exit 5", true, "Exit code 5\nThe run was interrupted while the command ran. Its output is lost.", true},
		"no match": {"grep x /dev/null", true, "Exit code 1\nThe run was interrupted while the command ran. Its output is lost.", false},
		"killed":   {"kill -KILL $$", false, "", false},
		"exec":     {"exec true", false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			b := s.bashTool()
			raw, _ := json.Marshal(in{"command": test.command})
			call := &tool.Call{ID: "t", Key: "session-1/k", Input: raw, Env: s.env}
			if _, ok := b.Recover(t.Context(), call); ok {
				t.Fatal("told of a call that never was")
			}
			// The process dies while the shell runs: nobody reads the result.
			var input bashInput
			if err := json.Unmarshal(raw, &input); err != nil {
				t.Fatal(err)
			}
			p, err := b.start(call, input)
			if err != nil {
				t.Fatal(err)
			}
			<-p.tree.Exited()
			next := NewBash(BashOptions{TempDir: b.opts.TempDir})
			r, ok := next.Recover(t.Context(), call)
			if ok != test.ok {
				t.Fatalf("told: %v", ok)
			}
			if ok && (r.Content[0].Text() != test.text || r.IsError != test.isError) {
				t.Errorf("got %q, error %v", r.Content[0].Text(), r.IsError)
			}
			call.Key = "session-1/another"
			if _, ok := next.Recover(t.Context(), call); ok {
				t.Error("told of another call")
			}
			b.finish(p, &ending{}, false)
			if err := next.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(p.report); err != nil {
				t.Error("another process's files were removed while it runs")
			}
		})
	}
}

// TestTempDir: files of a process that is gone are removed with the session's
// own, and a directory that others may write to is not used.
func TestTempDir(t *testing.T) {
	env := &tool.Env{SessionID: "s/../1"}
	base := t.TempDir()
	outer := outerDir(base, env)
	if filepath.Dir(outer) != base {
		t.Fatalf("%s is not in %s", outer, base)
	}
	mkdir(t, filepath.Join(outer, "4194400-dead")) // above the highest process id
	mkdir(t, filepath.Join(outer, fmt.Sprintf("%d-alive", os.Getpid())))
	if err := os.Chmod(outer, 0o700); err != nil {
		t.Fatal(err)
	}
	var d tempDir
	path, err := d.path(base, env)
	if err != nil || filepath.Dir(path) != outer {
		t.Fatalf("%s, %v", path, err)
	}
	if err := d.remove(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(outer, "*")); len(left) != 1 || !strings.HasSuffix(left[0], "-alive") {
		t.Errorf("left: %q", left)
	}
	if _, err := d.path(base, env); err == nil {
		t.Error("used after the end")
	}

	if err := os.Chmod(outer, 0o777); err != nil {
		t.Fatal(err)
	}
	var e tempDir
	path, err = e.path(base, env)
	if err != nil || filepath.Dir(path) != base {
		t.Errorf("%s, %v", path, err)
	}
	if err := e.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("left behind")
	}
}

func FuzzParseReport(f *testing.F) {
	f.Add("0\n/tmp\n")
	f.Add("255\n")
	f.Add("1\n/a\nb\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		code, dir, ok := parseReport(s)
		if !ok && (code != 0 || dir != "") || code < 0 || code > 255 || dir != "" && !filepath.IsAbs(dir) {
			t.Errorf("%q: %d, %q, %v", s, code, dir, ok)
		}
		for _, d := range []string{"/", "/a\n", "/ \n\nb"} {
			if c, got, ok := parseReport(fmt.Sprintf("7\n%s\n", d)); !ok || c != 7 || got != d {
				t.Errorf("%q: %d, %q, %v", d, c, got, ok)
			}
		}
	})
}

// TestBashRecoverEnds: what a call of a killed process still does is over when
// it has been asked about; another call's command goes on.
func TestBashRecoverEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes of another process are found on Linux only")
	}
	conform.Covers(t, "S-44", "B-114")
	s := newSession(t)
	b := s.bashTool()
	begin := func(key string) (*tool.Call, *command) {
		raw, _ := json.Marshal(in{"command": "setsid sleep 600 & sleep 600; wait"})
		call := &tool.Call{ID: "t", Key: key, Input: raw, Env: s.env}
		var input bashInput
		if err := json.Unmarshal(raw, &input); err != nil {
			t.Fatal(err)
		}
		p, err := b.start(call, input)
		if err != nil {
			t.Fatal(err)
		}
		return call, p
	}
	call, p := begin("session-1/left")
	_, other := begin("session-1/left2")
	next := NewBash(BashOptions{TempDir: b.opts.TempDir})
	defer next.Close() //nolint:errcheck // it has no files
	if r, ok := next.Recover(t.Context(), call); ok {
		t.Errorf("told %+v", r)
	}
	<-p.tree.Exited()
	if p.tree.Alive() {
		t.Error("something of the call is alive")
	}
	if !other.tree.Alive() {
		t.Error("the command of another call was ended")
	}
	b.finish(p, &ending{}, false)
	other.tree.End(0)
	b.finish(other, &ending{}, false)
}
