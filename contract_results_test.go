package turnwright_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestStructuredResults reads the structured output that goes with each result
// of the built-in tools: an object of the tool's own shape, and none where the
// call failed before it made one.
func TestStructuredResults(t *testing.T) {
	conform.Covers(t, "M-37", "T-27", "T-28", "T-29", "W-242")
	// What the reference has beside that, if there is anything to say.
	optional := map[string]string{
		"Write": "gitDiff userModified", "Edit": "gitDiff", "Glob": "totalMatches countIsComplete",
		"Grep":         "content numLines numMatches totalFiles totalLines appliedLimit appliedOffset",
		"NotebookEdit": "old_source cell_id error",
		"Bash": "isImage backgroundTaskId backgroundedByUser timedOutAfterMs backgroundCwdHint backgroundEndsWithFinalResponse dangerouslyDisableSandbox " +
			"returnCodeInterpretation noOutputExpected structuredContent persistedOutputPath persistedOutputSize rawOutputPath gitOperation",
	}
	calls := []struct {
		name, input string
		keys        []string // of tool_use_result; nil: there is none
	}{
		{"Read", `{"file_path":"a.txt"}`, []string{"type", "file"}},
		{"Write", `{"file_path":"new.txt","content":"x\n"}`, []string{"type", "filePath", "content", "structuredPatch", "originalFile"}},
		{"Edit", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`, []string{"filePath", "oldString", "newString", "originalFile", "structuredPatch", "userModified", "replaceAll"}},
		{"Glob", `{"pattern":"*.txt"}`, []string{"filenames", "durationMs", "numFiles", "truncated"}},
		{"Grep", `{"pattern":"two"}`, []string{"mode", "numFiles", "filenames"}},
		{"NotebookEdit", `{"notebook_path":"n.ipynb","new_source":"2","cell_id":"c"}`, []string{"new_source", "cell_type", "language", "edit_mode", "notebook_path", "original_file", "updated_file"}},
		{"Bash", `{"command":"echo hi"}`, []string{"stdout", "stderr", "interrupted"}},
		{"Bash", `{"command":"exit 3"}`, []string{"stdout", "stderr", "interrupted"}},
		{"Bash", `{"command":"sleep 600","run_in_background":true}`, []string{"stdout", "stderr", "interrupted", "backgroundTaskId"}},
		{"Read", `{"file_path":"missing.txt"}`, nil},
		{"TaskStop", `{"task_id":"nope"}`, nil},
	}
	var steps []agenttest.Step
	for _, c := range calls {
		steps = append(steps, agenttest.Call(c.name, c.input))
	}
	srv := agenttest.NewServer(t, agenttest.Script(append(steps, agenttest.Text("done"))...))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash", "Edit", "Write", "NotebookEdit"}
	for name, text := range map[string]string{
		"a.txt":   "one\n",
		"n.ipynb": `{"cells":[{"id":"c","cell_type":"code","source":["1"],"outputs":[],"metadata":{},"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
	} {
		if err := os.WriteFile(filepath.Join(o.CWD, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told := map[string]json.RawMessage{} // hooks, by call
	o.Hooks = on(hook.PostToolUse, hook.On(func(_ context.Context, in *hook.PostToolUseInput) (hook.Output, error) {
		told[in.ToolUseID] = in.ToolResponse
		return hook.Output{}, nil
	}))
	out := query(t, "go", o)
	i := 0
	for _, m := range out.messages {
		u, ok := m.(*turnwright.UserMessage)
		if !ok {
			continue
		}
		c := calls[i]
		i++
		var got map[string]json.RawMessage
		if err := json.Unmarshal(u.ToolUseResult, &got); err != nil && c.keys != nil {
			t.Errorf("%s %s: tool_use_result %s: %v; the model is told %v", c.name, c.input, u.ToolUseResult, err, u.ToolResults())
			continue
		}
		if c.keys == nil && u.ToolUseResult != nil {
			t.Errorf("%s %s: tool_use_result %s", c.name, c.input, u.ToolUseResult)
		}
		for _, key := range c.keys {
			if _, ok := got[key]; !ok {
				t.Errorf("%s: tool_use_result has no %q: %s", c.name, key, u.ToolUseResult)
			}
		}
		for key := range got {
			if !slices.Contains(c.keys, key) && !slices.Contains(strings.Fields(optional[c.name]), key) {
				t.Errorf("%s: tool_use_result has %q, which the reference has not: %s", c.name, key, u.ToolUseResult)
			}
		}
		if res := u.ToolResults()[0]; !res.IsError && string(told[res.ToolUseID]) != string(u.ToolUseResult) {
			t.Errorf("%s: hooks are told %s, the stream %s", c.name, told[res.ToolUseID], u.ToolUseResult)
		}
	}
	if i != len(calls) {
		t.Errorf("%d results: %s", i, out.shape())
	}
}

// TestEnvironmentOfCommands reads what a command finds in its environment.
func TestEnvironmentOfCommands(t *testing.T) {
	conform.Covers(t, "K-260", "T-122")
	srv := agenttest.NewServer(t, agenttest.Call("Bash", `{"command":"echo $CLAUDECODE $CLAUDE_CODE_CHILD_SESSION $CLAUDE_CODE_SESSION_ID"}`), agenttest.Text("done"))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	out := query(t, "go", o)
	want := []string{"1", "1", out.result.SessionID}
	if got := strings.Fields(srv.Last().LastToolResults()[0].Text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
