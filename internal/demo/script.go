package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/agenttest"
)

// The answers of the scripted model.
const (
	askText   = "I would have to run the tests to say why they fail, and this run allows no tool turns."
	finalText = "The tests pass now. token_valid compared the times the wrong way round: it accepted tokens after their expiry and refused them before it. I turned the comparison in auth.sh and ran the tests again."
)

// script is the model's part. Each answer first looks at the results of the
// calls before it, so that a tool that did not run fails the demo.
func script(dir string) agenttest.Source {
	path := func(name string) string { return filepath.Join(dir, name) }
	turn1 := agenttest.Usage(agenttest.Blocks(
		agenttest.Text("Let me see what fails."),
		call("Bash", "command", "sh "+testFile, "description", "Run the tests"),
	), 1200, 60, 900, 0, 0)
	turn2 := agenttest.Check(agenttest.Usage(agenttest.Blocks(
		call("Read", "file_path", path(authFile)),
		call("Read", "file_path", path(testFile)),
	), 300, 80, 200, 0, 900), results(has("FAIL fresh token is valid")))
	turn3 := agenttest.Check(agenttest.Usage(agenttest.Blocks(
		call("Edit", "file_path", path(authFile), "old_string", brokenLine, "new_string", fixedLine),
		call("Bash", "command", "sh "+testFile, "description", "Run the tests again"),
	), 900, 160, 700, 0, 1100), results(has("token_valid"), has("all tests passed")))
	turn4 := agenttest.Check(agenttest.Usage(
		agenttest.Text(finalText), 400, 70, 300, 0, 1800),
		results(has(authFile), passed()))
	turns := []agenttest.Step{turn1, turn2, turn3, turn4}
	return agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if strings.Contains(string(r.Field("tool_choice")), `"none"`) {
			return agenttest.Usage(agenttest.Text(askText), 1200, 30, 900, 0, 0)
		}
		if n := r.Turn(); n < len(turns) {
			return turns[n]
		}
		return agenttest.HTTPError(400, "invalid_request_error", "the demo's script has only four turns")
	})
}

// call makes a tool call from keys and values.
func call(tool string, keysAndValues ...string) agenttest.Step {
	input := map[string]string{}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		input[keysAndValues[i]] = keysAndValues[i+1]
	}
	raw, err := json.Marshal(input)
	if err != nil {
		raw = []byte("{}") // strings always encode
	}
	return agenttest.Call(tool, string(raw))
}

type condition func(agenttest.ToolResult) error

// results checks the newest tool results, one condition each, in call order.
func results(want ...condition) func(*agenttest.Request) error {
	return func(r *agenttest.Request) error {
		got := r.LastToolResults()
		if len(got) != len(want) {
			return fmt.Errorf("the scripted model got %d tool results, not %d", len(got), len(want))
		}
		for i, cond := range want {
			if err := cond(got[i]); err != nil {
				return fmt.Errorf("tool result %d: %w", i+1, err)
			}
		}
		return nil
	}
}

func has(text string) condition {
	return func(r agenttest.ToolResult) error {
		if !strings.Contains(r.Text, text) {
			return fmt.Errorf("does not contain %q: %.300q", text, r.Text)
		}
		return nil
	}
}

// passed asks for the output of a test run that found nothing wrong.
func passed() condition {
	return func(r agenttest.ToolResult) error {
		if r.IsError || !strings.Contains(r.Text, "all tests passed") || strings.Contains(r.Text, "FAIL") {
			return errors.New("the tests did not pass: " + r.Text)
		}
		return nil
	}
}
