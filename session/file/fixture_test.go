package file_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/turnwright/turnwright/session/file"
)

// home is a configuration home in a memory file system, dir a working directory.
var home, dir = "/home/user/.claude", "/home/user/proj"

func init() {
	if runtime.GOOS == "windows" {
		home, dir = `C:\Users\user\.claude`, `C:\Users\user\proj`
	}
}

func newStore(t testing.TB, c file.Config) *file.Store {
	t.Helper()
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	s, err := file.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface{ Fatalf(string, ...any) }

// background is the context of journals in scripts.
var background = context.Background()
