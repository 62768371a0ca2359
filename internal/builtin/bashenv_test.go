//go:build unix

package builtin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
)

func TestBashMutates(t *testing.T) {
	conform.Covers(t, "T-37", "T-107")
	s := newSession(t)
	_, spec, _ := s.tools.Get("Bash")
	if spec.Traits != (tool.Traits{}) {
		t.Errorf("traits %+v", spec.Traits)
	}
	for _, field := range []string{"command", "timeout", "description", "run_in_background", "dangerouslyDisableSandbox"} {
		if !strings.Contains(string(spec.InputSchema), `"`+field+`"`) {
			t.Errorf("no field %s", field)
		}
	}
}

func TestBashEnvFile(t *testing.T) {
	conform.Covers(t, "T-112", "T-111", "K-239")
	s := newSession(t)
	file := s.write("it's env.sh", "export FROM_FILE='a b'\nhelper() { echo \"helped $1\"; }\n")
	s.vars["CLAUDE_ENV_FILE"] = file
	if text, _, _ := s.bash(`echo "$FROM_FILE"; helper me; sh -c 'echo $FROM_FILE'; exit 0`); text != "a b\nhelped me\na b" {
		t.Errorf("got %q", text)
	}
	s.write("it's env.sh", "export FROM_FILE=new\n") // what a hook adds later counts
	if text, _, _ := s.bash(`echo "$FROM_FILE"`); text != "new" {
		t.Errorf("got %q", text)
	}
	for _, gone := range []string{s.path("missing"), s.env.Dir, "relative-missing"} {
		s.vars["CLAUDE_ENV_FILE"] = gone
		if text, isError, _ := s.bash(`echo "[$FROM_FILE]"`); isError || text != "[]" {
			t.Errorf("%s: got %q", gone, text)
		}
	}
	s.vars["CLAUDE_ENV_FILE"] = "it's env.sh"
	if text, _, _ := s.bash(`mkdir -p sub; cd sub; echo "$FROM_FILE"`); text != "new" {
		t.Errorf("got %q", text)
	}
	if text, _, _ := s.bash(`echo "$FROM_FILE"`); text != "new" {
		t.Errorf("from another directory: got %q", text)
	}
}

func TestBashPrefix(t *testing.T) {
	conform.Covers(t, "T-123")
	s := newSession(t)
	prefix := s.write("wrap", "#!/bin/bash\necho \"$# wrapped\"\nexec bash -c \"$1\"\n")
	if err := os.Chmod(prefix, 0o755); err != nil {
		t.Fatal(err)
	}
	s.vars["CLAUDE_CODE_SHELL_PREFIX"] = prefix
	mkdir(t, s.path("sub"))
	if text, _, _ := s.bash(`cd sub; echo 'it'"'"'s' "$PWD"`); text != "1 wrapped\nit's "+s.path("sub") {
		t.Errorf("got %q", text)
	}
	if text, isError, _ := s.bash(`pwd; exit 3`); !isError || text != "Exit code 3\n1 wrapped\n"+s.path("sub") {
		t.Errorf("got %q", text)
	}
}

func TestBashScrub(t *testing.T) {
	conform.Covers(t, "T-124")
	s := newSession(t)
	s.env.Environ = func() []string {
		return append(os.Environ(), "ANTHROPIC_API_KEY=k1", "AWS_SECRET_ACCESS_KEY=k2", "GOOGLE_APPLICATION_CREDENTIALS=/k3", "AZURE_CLIENT_SECRET=k4", "AWS_REGION=eu", "MY_API_KEY=mine")
	}
	ask := func() string {
		text, _, _ := s.bash(`echo "$ANTHROPIC_API_KEY $AWS_SECRET_ACCESS_KEY $GOOGLE_APPLICATION_CREDENTIALS $AZURE_CLIENT_SECRET $AWS_REGION $MY_API_KEY"`)
		return text
	}
	if got := ask(); got != "k1 k2 /k3 k4 eu mine" {
		t.Errorf("got %q", got)
	}
	s.vars["CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"] = "1"
	if got := ask(); strings.TrimSpace(got) != "eu mine" {
		t.Errorf("got %q", got)
	}
}

// TestBashNoPerson: programs that ask for a password, an editor or a pager end
// by themselves.
func TestBashNoPerson(t *testing.T) {
	conform.Covers(t, "B-106", "T-128")
	s := newSession(t)
	s.env.Environ = func() []string {
		var env []string
		for _, v := range os.Environ() {
			name, _, _ := strings.Cut(v, "=")
			if !strings.Contains(name, "EDITOR") && !strings.Contains(name, "PAGER") && name != "VISUAL" && !strings.HasPrefix(name, "GIT_") {
				env = append(env, v)
			}
		}
		return env
	}
	if text, _, _ := s.bash(`echo "$GIT_TERMINAL_PROMPT $GIT_EDITOR $EDITOR $VISUAL $PAGER $GIT_PAGER $MANPAGER"`); text != "0 true true true cat cat cat" {
		t.Errorf("got %q", text)
	}
	for _, program := range []string{"cat", "read -r x; echo $x", "sh -c 'read x </dev/tty'", "python3 -c 'input()'", "less bash_no_such_file", "passwd nobody_at_all", "bash -i -c 'read x; echo $x' 2>/dev/null"} {
		s.bash(in{"command": program, "timeout": 600_000}) // s.bash fails when it does not return
	}
	if _, err := exec.LookPath("git"); err == nil {
		text, isError, _ := s.bash(`export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q . && git config user.email a@b && git config user.name a && git commit -q --allow-empty -m one && git log && git commit --amend --allow-empty -q && git commit --allow-empty`)
		if !isError || !strings.Contains(text, "one") || !strings.Contains(strings.ToLower(text), "empty commit message") {
			t.Errorf("got %q", text)
		}
	}
	if _, err := exec.LookPath("git"); err == nil {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer srv.Close()
		text, isError, _ := s.bash(in{"command": "HOME=$PWD GIT_CONFIG_NOSYSTEM=1 git clone " + srv.URL + "/x.git", "timeout": 600_000})
		if !isError || !strings.HasPrefix(text, "Exit code 128\n") {
			t.Errorf("a repository with a password: got %q", text)
		}
	}
	environ := s.env.Environ
	s.env.Environ = func() []string { return append(environ(), "EDITOR=mine", "PAGER=", "GIT_TERMINAL_PROMPT=1") }
	if text, _, _ := s.bash(`echo "$EDITOR,$VISUAL,$PAGER,$GIT_TERMINAL_PROMPT"`); text != "mine,,,1" {
		t.Errorf("the user's own: got %q", text)
	}
}

func TestCheckEnv(t *testing.T) {
	conform.Covers(t, "T-114", "T-119", "K-238", "K-239")
	for _, test := range []struct {
		name, value string
		ok          bool
	}{
		{"BASH_DEFAULT_TIMEOUT_MS", "x", false},
		{"BASH_DEFAULT_TIMEOUT_MS", "0", false},
		{"BASH_DEFAULT_TIMEOUT_MS", "1.5", false},
		{"BASH_DEFAULT_TIMEOUT_MS", "5000", true},
		{"BASH_DEFAULT_TIMEOUT_MS", "", true},
		{"BASH_MAX_TIMEOUT_MS", "-5", false},
		{"BASH_MAX_TIMEOUT_MS", "3000000", true},
		{"BASH_MAX_OUTPUT_LENGTH", "-1", false},
		{"BASH_MAX_OUTPUT_LENGTH", "30k", false},
		{"BASH_MAX_OUTPUT_LENGTH", "999999", true},
		{"CLAUDE_CODE_SHELL", "/does/not/exist", false},
		{"CLAUDE_CODE_SHELL", "bash", true},
		{"CLAUDE_CODE_TMPDIR", "/does/not/exist", false},
		{"CLAUDE_CODE_TMPDIR", "relative", false},
		{"CLAUDE_CODE_TMPDIR", t.TempDir(), true},
	} {
		err := CheckEnv(func(k string) string {
			if k == test.name {
				return test.value
			}
			return ""
		})
		var bad *VarError
		if test.ok != (err == nil) || err != nil && (!errors.As(err, &bad) || bad.Name != test.name || bad.Value != test.value || !strings.Contains(err.Error(), test.value)) {
			t.Errorf("%s=%q: %v", test.name, test.value, err)
		}
	}
}
