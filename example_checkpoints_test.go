package turnwright_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
)

// What the tools did to files since a message is undone.
func ExampleSession_RewindFiles() {
	o, stop := scripted(
		agenttest.Call("Write", `{"file_path":"plan.txt","content":"one\ntwo\n"}`),
		agenttest.Text("Done."),
	)
	defer stop()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(dir)
	o.CWD, o.PermissionMode, o.EnableFileCheckpointing = dir, turnwright.ModeAcceptEdits, true

	ctx := context.Background()
	s, err := turnwright.NewSession(ctx, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	res, err := s.Ask(ctx, "Write a plan.")
	if err != nil {
		fmt.Println(err)
		return
	}
	would, err := s.RewindFiles(ctx, res.UserMessageUUID, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range would.FilesChanged {
		fmt.Printf("%s: +%d -%d lines\n", filepath.Base(name), would.Insertions, would.Deletions)
	}
	if _, err := s.RewindFiles(ctx, res.UserMessageUUID, false); err != nil {
		fmt.Println(err)
		return
	}
	_, err = os.Stat(filepath.Join(dir, "plan.txt"))
	fmt.Println("gone:", os.IsNotExist(err))
	// Output:
	// plan.txt: +0 -2 lines
	// gone: true
}
