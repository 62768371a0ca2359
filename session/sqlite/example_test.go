package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/sqlite"
)

// A session is kept in a database and goes on in another run.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	model, err := agenttest.Start(agenttest.Script(agenttest.Text("Two tests fail."), agenttest.Text("Fixed.")))
	if err != nil {
		panic(err)
	}
	defer model.Close()

	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "sessions.db"), sqlite.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	o := turnwright.Options{
		Store: store, CWD: dir, Model: "claude-sonnet-4-5", SettingSources: []string{},
		Env: map[string]string{"ANTHROPIC_BASE_URL": model.URL(), "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": dir},
	}
	for _, prompt := range []string{"Which tests fail?", "Fix them."} {
		for msg, err := range turnwright.Query(ctx, prompt, o) {
			if err != nil {
				fmt.Println(err)
				return
			}
			if r, ok := msg.(*turnwright.ResultMessage); ok {
				fmt.Println(*r.Result)
			}
		}
		o.Continue = true
	}
	list, err := store.List(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	head, tail, err := store.Ends(ctx, list[0], session.SummaryBytes)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(list), "session:", session.Summarize(head, tail).FirstPrompt)
	// Output:
	// Two tests fail.
	// Fixed.
	// 1 session: Which tests fail?
}
