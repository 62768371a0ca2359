package turnwright_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestSessionHoldsTheConversation reads what a run leaves on disk: prompts,
// tool calls, results and answers in order, and nothing of files that were
// only moved about.
func TestSessionHoldsTheConversation(t *testing.T) {
	conform.Covers(t, "S-1")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Text("I copy it."), agenttest.Call("Bash", `{"command":"cp source copy; echo copied"}`)),
		agenttest.Text("It is copied."),
	))
	o := base(t, srv)
	o.Store = nil
	o.AllowedTools = []string{"Bash"}
	const secret = "only on disk 7c1f"
	if err := os.WriteFile(filepath.Join(o.CWD, "source"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	out := query(t, "Copy the file.", o)
	if out.err != nil || out.result.Subtype != turnwright.Success {
		t.Fatal(out.err)
	}
	if got, _ := os.ReadFile(filepath.Join(o.CWD, "copy")); string(got) != secret {
		t.Fatalf("the copy holds %q", got)
	}
	left := ""
	err := filepath.WalkDir(o.Env["CLAUDE_CONFIG_DIR"], func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var raw []byte
			raw, err = os.ReadFile(path)
			left += string(raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(left, secret) {
		t.Error("the session holds the contents of a file")
	}
	var kinds []string
	for line := range strings.Lines(left) {
		var entry struct {
			Type    string
			Message struct {
				Content json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		content := string(entry.Message.Content)
		for _, part := range []string{`Copy the file.`, `I copy it.`, `"tool_use"`, `"tool_result"`, `It is copied.`} {
			if (entry.Type == "user" || entry.Type == "assistant") && strings.Contains(content, part) {
				kinds = append(kinds, part)
			}
		}
	}
	if got := strings.Join(kinds, " "); got != `Copy the file. I copy it. "tool_use" "tool_result" It is copied.` {
		t.Errorf("the session holds %s", got)
	}
}
