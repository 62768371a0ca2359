//go:build unix

package instructions_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/instructions"
)

// TestPipe does not wait for a named pipe, neither where it is found nor where
// it takes the place of a file that was found.
func TestPipe(t *testing.T) {
	p := newPlace(t)
	pipe := filepath.Join(p.root, "CLAUDE.md")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	p.write("CLAUDE.local.md", "local @CLAUDE.md")
	done := make(chan instructions.Result, 1)
	go func() { done <- p.load() }()
	select {
	case r := <-done:
		if len(r.Files) != 1 {
			t.Errorf("%+v", r)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the pipe")
	}
	go func() {
		if _, err := instructions.Disk.Read(pipe, 10); err == nil {
			t.Error("a pipe was read as a file")
		}
		done <- instructions.Result{}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the pipe")
	}
}
