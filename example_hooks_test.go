package turnwright_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
)

// A hook that blocks a command early which is known to fail, and one that logs
// every call.
func ExampleOptions_hooks() {
	o, stop := scripted(
		agenttest.Call("Bash", `{"command":"npm test"}`),
		agenttest.Call("Bash", `{"command":"echo installing"}`),
		agenttest.Text("Installed."),
	)
	defer stop()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(dir)
	o.CWD, o.AllowedTools = dir, []string{"Bash"}
	early := func(_ context.Context, in *hook.PreToolUseInput) (hook.Output, error) {
		var call struct{ Command string }
		if err := json.Unmarshal(in.ToolInput, &call); err != nil {
			return hook.Output{}, err
		}
		if strings.HasPrefix(call.Command, "npm test") {
			if _, err := os.Stat(filepath.Join(in.CWD, "node_modules")); os.IsNotExist(err) {
				return hook.Output{
					Permission:       hook.Deny,
					PermissionReason: `node_modules is missing: run "npm ci" first.`,
				}, nil
			}
		}
		return hook.Output{}, nil
	}
	audit := func(_ context.Context, in *hook.PostToolUseInput) (hook.Output, error) {
		fmt.Println("audit:", in.ToolName, string(in.ToolInput))
		return hook.Output{}, nil
	}
	o.Hooks = hook.Table{
		hook.PreToolUse:  {{Matcher: "Bash", Hooks: []hook.Func{hook.On(early)}}},
		hook.PostToolUse: {{Hooks: []hook.Func{hook.On(audit)}}},
	}
	for msg, err := range turnwright.Query(context.Background(), "Run the tests.", o) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch m := msg.(type) {
		case *turnwright.UserMessage:
			for _, r := range m.ToolResults() {
				fmt.Println("result:", r.Content.Text())
			}
		case *turnwright.ResultMessage:
			fmt.Println(*m.Result)
		}
	}
	// Output:
	// result: node_modules is missing: run "npm ci" first.
	// audit: Bash {"command":"echo installing"}
	// result: installing
	// Installed.
}
