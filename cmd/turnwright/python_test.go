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

// TestPythonClient drives the command with the unmodified official Python
// client. It needs a Python that has the package claude-agent-sdk: the one
// named by TURNWRIGHT_PYTHON, else python3.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python := os.Getenv("TURNWRIGHT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import claude_agent_sdk").Run(); err != nil {
		t.Skipf("%s has no claude_agent_sdk: %v", python, err)
	}
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
			return agenttest.Call("Bash", `{"command":"echo as the model wrote it"}`)
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
