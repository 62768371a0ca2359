package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestOtherNames builds the command as a distribution would that has a name of
// its own for its directories.
func TestOtherNames(t *testing.T) {
	conform.Covers(t, "C-2", "P-105")
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("builds the command")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags",
		"-X github.com/turnwright/turnwright/internal/names.Dir=.agent -X github.com/turnwright/turnwright/internal/names.System="+filepath.Join(dir, "policy"), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	project := filepath.Join(dir, "project")
	for path, text := range map[string]string{
		filepath.Join(dir, ".claude", "settings.json"):              `{"permissions":{"deny":["Write"]}}`,
		filepath.Join(project, ".claude", "settings.json"):          `{"permissions":{"deny":["Write"]}}`,
		filepath.Join(dir, ".agent", "settings.json"):               `{"model":"of-the-user"}`,
		filepath.Join(project, ".agent", "settings.json"):           `{"permissions":{"deny":["Bash(echo *)"],"allow":["Bash"]}}`,
		filepath.Join(project, ".agent", "CLAUDE.md"):               "read this",
		filepath.Join(project, ".claude", "CLAUDE.md"):              "not that",
		filepath.Join(dir, "policy", "managed-settings.json"):       `{"permissions":{"deny":["Bash(printf *)"]}}`,
		filepath.Join(dir, ".agent.json"):                           string(encode(t, map[string]any{"projects": map[string]any{project: map[string]bool{"hasTrustDialogAccepted": true}}})),
		filepath.Join(project, ".agent", "worktrees", "w", "x.txt"): "x",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string) agenttest.Step {
		return agenttest.Call("Write", string(encode(t, map[string]string{"file_path": filepath.Join(project, path), "content": "x"})))
	}
	srv := agenttest.NewServer(t, agenttest.Script(
		write("new.txt"), write(".agent/new.txt"), write(".agent.json"), write(".agent/worktrees/w/new.txt"), write(".claude/new.txt"),
		agenttest.Call("Bash", `{"command":"touch touched"}`), agenttest.Call("Bash", `{"command":"echo x > echoed"}`),
		agenttest.Call("Bash", `{"command":"printf x > printed"}`), agenttest.Text("Done.")))
	cmd := exec.CommandContext(t.Context(), binary, "-p", "go", "--permission-mode", "acceptEdits")
	cmd.Dir = project
	cmd.Env = os.Environ()
	for k, v := range clean(dir) {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Env = append(cmd.Env, "CLAUDE_CONFIG_DIR=", "ANTHROPIC_MODEL=", "ANTHROPIC_BASE_URL="+srv.URL())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if model := srv.Last().Model(); model != "of-the-user" {
		t.Errorf("model %s", model)
	}
	if told := srv.Last().FirstUserText(); !strings.Contains(told, "read this") || strings.Contains(told, "not that") {
		t.Errorf("told %q", told)
	}
	for path, there := range map[string]bool{
		"new.txt": true, ".agent/new.txt": false, ".agent.json": false, ".agent/worktrees/w/new.txt": true, ".claude/new.txt": false,
		"touched": true, "echoed": false, "printed": false,
	} {
		if _, err := os.Stat(filepath.Join(project, path)); (err == nil) != there {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, ".agent", "projects", "*", "*.jsonl")); len(found) != 1 {
		t.Errorf("sessions: %q", found)
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, ".claude")); len(entries) != 1 {
		t.Errorf("%d files in .claude", len(entries))
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
