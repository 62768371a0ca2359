//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// python returns a Python that has the package claude-agent-sdk: the one named
// by TURNWRIGHT_PYTHON, else python3. Without it the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	python := os.Getenv("TURNWRIGHT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import claude_agent_sdk").Run(); err != nil {
		t.Skipf("%s has no claude_agent_sdk: %v", python, err)
	}
	return python
}

// TestPythonClient drives the command with the unmodified official Python
// client.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python := python(t)
	conform.Covers(t, "W-1", "W-2", "W-4", "W-65", "W-66", "W-128", "W-264", "W-375", "W-376", "W-384", "W-385")
	binary, err := exec.LookPath("turnwright")
	if err != nil {
		t.Fatal(err)
	}
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if res := r.LastToolResults(); len(res) > 0 {
			return agenttest.Text("The tool said: " + res[0].Text)
		}
		switch u := r.UserText(); {
		case strings.Contains(u, "slow"):
			return agenttest.Call("Bash", `{"command":"sleep 300"}`)
		case strings.Contains(u, "tool"):
			return agenttest.Call("Bash", `{"command":"echo as the model wrote it | tee said"}`) // tee writes, so it is asked for
		case strings.Contains(u, "bad"):
			return agenttest.HTTPError(400, "invalid_request_error", "no good", "request-id", "req_1")
		default:
			return agenttest.Text("Hello: " + u)
		}
	}))
	script, err := os.ReadFile("testdata/python/client.py")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-", binary)
	cmd.Stdin = bytes.NewReader(script)
	cmd.Dir = t.TempDir()
	cmd.Env = os.Environ()
	for k, v := range clean(cmd.Dir) {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+srv.URL())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	const want = `one shot: System Assistant Result / Hello: hi / success False
resumed: Hello: more / True
several: ['Hello: one', 'Hello: two']
server info: ['account', 'agents', 'available_output_styles'] True
client: System StreamEvent Assistant Result
settings: ['status=plan', 'init=plan'] claude-opus-4-1
interrupted: Result error_during_execution True
after it: success
asked: The tool said: changed by the host
asked: The tool said: not today
asked: The tool said: the host's callback failed
failure: api / Claude Code returned an error result: API Error: 400 no good (request id req_1) (exit code: 1)
failure: session / Claude Code returned an error result: No conversation found with session ID: 6f2c0000-0000-4000-8000-00000000000f (exit code: 1)
`
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s%s", out, want, &stderr)
	}
}

// TestPythonReadsSessions reads and changes the sessions of the command with
// the session functions of the unmodified official Python client.
func TestPythonReadsSessions(t *testing.T) {
	t.Parallel()
	python := python(t)
	conform.Covers(t, "K-301", "K-304", "K-320", "K-322", "K-377", "K-390", "K-391")
	const id = "6f2c0000-0000-4000-8000-00000000000a"
	long := strings.Repeat("wörd ", 30_000)
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"printf 'caf\\351 \\342\\200\\250 done'"}`),
		agenttest.Text("Größe: 5 µm \u2028 \U0001f600"),
		agenttest.Text(long), agenttest.Text(long), agenttest.Text(long),
	))
	first := command(t, srv)
	dir := first.Dir
	if err := os.Mkdir(dir+"/.git", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/.git/HEAD", []byte("ref: refs/heads/fix/größe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	turn := func(args ...string) {
		t.Helper()
		p := command(t, srv, append([]string{"--allowedTools", "Bash", "-p"}, args...)...)
		p.Dir, p.Env = dir, first.Env
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if code := p.end(); code != 0 {
			t.Fatalf("exit code %d: %s", code, &p.stderr)
		}
	}
	script, err := os.ReadFile("testdata/python/sessions.py")
	if err != nil {
		t.Fatal(err)
	}
	client := func(what, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, python, "-", what, id)
		cmd.Stdin, cmd.Dir, cmd.Env = bytes.NewReader(script), dir, append(first.Env, "PYTHONIOENCODING=utf-8")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		want = strings.NewReplacer(`\u2028`, "\u2028", `\ufffd`, "\ufffd").Replace(want)
		if err != nil || string(out) != want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s%s", what, err, out, want, &stderr)
		}
	}
	turn("Maß \u2028 nehmen", "--session-id", id, "--name", "die Größe ☃")
	client("read", `listed: ['die Größe ☃'] die Größe ☃ Maß \u2028 nehmen fix/größe None True True
user True None None "Maß \u2028 nehmen"
assistant True None None [{"name": "Bash", "type": "tool_use"}]
user True None None [{"content": "caf\ufffd \u2028 done", "type": "tool_result"}]
assistant True None None [{"text": "Größe: 5 µm \u2028 😀", "type": "text"}]
`)
	client("mark", "done\n")
	turn("go on", "--resume", "von außen")
	client("read", `listed: ['von außen'] von außen Maß \u2028 nehmen fix/größe blau True True
user True None None "Maß \u2028 nehmen"
and 5 more
`)
	turn("go on", "--resume", id)
	client("clear", "done\n")
	turn("go on", "--resume", id)
	client("info", "von außen None\n")
}
