package turnwright_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
)

// play runs options of docs/permissions.md against a scripted model in a new
// directory with the files, and prints what was denied and what was asked.
func play(o turnwright.Options, files []string, steps ...agenttest.Step) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(path, []byte("text\n"), 0o644); err != nil {
			panic(err)
		}
	}
	model, stop := scripted(append(steps, agenttest.Text("done"))...)
	defer stop()
	o.Model, o.NoSessionPersistence, o.Env, o.CWD = model.Model, true, model.Env, dir
	o.Env["CLAUDE_CONFIG_DIR"] = filepath.Join(dir, "home")
	for msg, err := range turnwright.Query(context.Background(), "Go on.", o) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if r, ok := msg.(*turnwright.ResultMessage); ok {
			for _, d := range r.PermissionDenials {
				fmt.Println("denied:", d.ToolName, string(d.ToolInput))
			}
			fmt.Println(r.Subtype)
		}
	}
}

// An agent that reads and changes nothing, and does not see secrets.
func ExampleOptions_readOnly() {
	o := turnwright.Options{
		Tools:           []string{"Read", "Glob", "Grep"},
		DisallowedTools: []string{"Read(.env)", "Read(**/*.pem)"},
		PermissionMode:  turnwright.ModeDontAsk,
	}
	play(o, []string{"notes.txt", "config/.env"},
		agenttest.Call("Read", `{"file_path":"notes.txt"}`),
		agenttest.Call("Grep", `{"pattern":"text"}`),
		agenttest.Call("Bash", `{"command":"rm notes.txt"}`), // no such tool
		agenttest.Call("Read", `{"file_path":"/etc/passwd"}`),
	)
	// Output:
	// denied: Read {"file_path":"/etc/passwd"}
	// success
}

// An agent in CI: a fixed tool surface, and nobody who could be asked.
func ExampleOptions_ci() {
	o := turnwright.Options{
		Tools:           []string{"Read", "Edit", "Bash"},
		AllowedTools:    []string{"Edit(/src/**)", "Bash(go test *)", "Bash(go build *)"},
		DisallowedTools: []string{"Edit(/src/vendor/**)", "Read(.env)"},
		PermissionMode:  turnwright.ModeDontAsk,
		MaxTurns:        new(20),
		MaxBudgetUSD:    new(1.00),
		Bare:            true, // nothing of the machine: no hooks, settings or memory files
	}
	play(o, []string{"src/a.txt", "README"},
		agenttest.Call("Read", `{"file_path":"src/a.txt"}`),
		agenttest.Call("Edit", `{"file_path":"src/a.txt","old_string":"text","new_string":"better"}`),
		agenttest.Call("Bash", `{"command":"cat src/a.txt && go test -h; curl example.invalid"}`),
		agenttest.Call("Bash", `{"command":"PATH=. go test"}`),
		agenttest.Call("Bash", `{"command":"cat src/a.txt"}`),
	)
	// Output:
	// denied: Bash {"command":"cat src/a.txt && go test -h; curl example.invalid"}
	// denied: Bash {"command":"PATH=. go test"}
	// success
}

// A callback that says yes for the rest of the session, to what stays in the
// project.
func ExampleOptions_canUseTool() {
	o := turnwright.Options{
		CanUseTool: func(ctx context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
			if r.BlockedPath != "" {
				return turnwright.PermissionAnswer{Message: "Stay in the project."}, nil
			}
			for i := range r.Suggestions {
				r.Suggestions[i].Destination = "session" // and not in .claude/settings.local.json
			}
			return turnwright.PermissionAnswer{Allow: true, Updates: r.Suggestions}, nil
		},
	}
	ask := o.CanUseTool
	o.CanUseTool = func(ctx context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		fmt.Println(r.Title)
		return ask(ctx, r)
	}
	play(o, nil,
		agenttest.Call("Bash", `{"command":"expr 1 + 1"}`),
		agenttest.Call("Bash", `{"command":"expr 1 + 1"}`), // not asked about again
		agenttest.Call("Bash", `{"command":"cat /etc/hostname"}`),
	)
	// Output:
	// Allow Bash: expr 1 + 1?
	// Allow Bash: cat /etc/hostname?
	// denied: Bash {"command":"cat /etc/hostname"}
	// success
}
