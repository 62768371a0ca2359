package turnwright_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestReferenceScenario runs the scenario of the contract with the real tools:
// Bash; Read+Read; Edit+Bash; text.
func TestReferenceScenario(t *testing.T) {
	conform.Covers(t, "L-5", "L-8", "L-9", "L-15", "L-16", "L-20", "M-11", "M-36", "M-108", "M-110")
	srv := agenttest.NewServer(t)
	o := base(t, srv)
	file := filepath.Join(o.CWD, "auth.ts")
	if err := os.WriteFile(file, []byte("export const ok = false\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	srv = agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"cat auth.ts; exit 1"}`),
		agenttest.Blocks(
			agenttest.Call("Read", `{"file_path":"auth.ts"}`),
			agenttest.Call("Read", `{"file_path":"auth.ts"}`),
		),
		agenttest.Blocks(
			agenttest.Call("Edit", `{"file_path":"auth.ts","old_string":"false","new_string":"true"}`),
			agenttest.Call("Bash", `{"command":"grep -q true auth.ts"}`),
		),
		agenttest.Text("Fixed."),
	))
	o.Env["ANTHROPIC_BASE_URL"] = srv.URL()
	o.AllowedTools = []string{"Read", "Edit", "Bash"}
	out := query(t, "Fix the failing tests in auth.ts", o)
	if out.err != nil {
		t.Fatal(out.err)
	}
	want := "init assistant(Bash) user(error) assistant(Read,Read) user(ok) user(ok) assistant(Edit,Bash) user(ok) user(ok) assistant(text) result(success)"
	if got := out.shape(); got != want {
		t.Errorf("stream:\n got %s\nwant %s", got, want)
	}
	if r := out.result; r.NumTurns != 4 || r.ToolTurns != 3 || r.Result == nil || *r.Result != "Fixed." {
		t.Errorf("num_turns %d, tool_turns %d, result %v", r.NumTurns, r.ToolTurns, r.Result)
	}
	if text, _ := os.ReadFile(file); string(text) != "export const ok = true\n" {
		t.Errorf("the file is %q", text)
	}
}
