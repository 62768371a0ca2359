package turnwright_test

import (
	"context"
	"fmt"
	"os"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
)

// Sessions of a directory are listed, renamed, copied and deleted, whether they
// run or not.
func ExampleSessions() {
	ctx := context.Background()
	o, stop := scripted(agenttest.Text("It reads tokens."))
	defer stop()
	home, err := os.MkdirTemp("", "sessions")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	o.NoSessionPersistence, o.CWD, o.Env["CLAUDE_CONFIG_DIR"] = false, home, home
	for _, err := range turnwright.Query(ctx, "What does the parser do?", o) {
		if err != nil {
			panic(err)
		}
	}

	sessions := turnwright.Sessions{ConfigDir: home, Dir: o.CWD}
	for s, err := range sessions.List(ctx, turnwright.Page{Limit: 10}) {
		if err != nil {
			panic(err)
		}
		if err := sessions.Rename(ctx, s.SessionID, "parser"); err != nil {
			panic(err)
		}
		fork, err := sessions.Fork(ctx, s.SessionID, turnwright.ForkOptions{})
		if err != nil {
			panic(err)
		}
		if err := sessions.Delete(ctx, s.SessionID); err != nil {
			panic(err)
		}
		copied, err := sessions.Info(ctx, fork)
		if err != nil {
			panic(err)
		}
		fmt.Println(copied.Summary)
		for m, err := range sessions.Messages(ctx, fork, turnwright.Page{}) {
			if err != nil {
				panic(err)
			}
			fmt.Println(m.Type)
		}
	}
	// Output:
	// parser (fork)
	// user
	// assistant
}
