package turnwright_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestBashInSession: calls of a session share the directory, and their session
// has no file left in the temporary directory.
func TestBashInSession(t *testing.T) {
	conform.Covers(t, "T-109")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"mkdir sub && cd sub"}`),
		agenttest.Call("Bash", `{"command":"pwd; seq 20000 >&2"}`),
		agenttest.Call("Bash", `{"command":"pwd"}`),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	temp := t.TempDir()
	o.Env["CLAUDE_CODE_TMPDIR"] = temp
	query(t, "go", o)
	if got := strings.TrimSpace(srv.Last().LastToolResults()[0].Text); filepath.Base(got) != "sub" {
		t.Errorf("ran in %q", got)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestNoBackgroundTasks(t *testing.T) {
	conform.Covers(t, "T-135")
	for value, want := range map[string]bool{"": true, "0": true, "1": false, "true": false} {
		r := request(t, func(o *turnwright.Options) { o.Env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = value })
		if got := strings.Contains(string(r.Field("tools")), "run_in_background"); got != want {
			t.Errorf("%q: offered %v", value, got)
		}
	}
}
