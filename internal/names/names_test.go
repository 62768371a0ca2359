package names

import (
	"runtime"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestSystemDir(t *testing.T) {
	conform.Covers(t, "C-1", "C-2")
	for goos, want := range map[string]string{
		"linux": "/etc/claude-code", "darwin": "/Library/Application Support/ClaudeCode", "windows": `C:\Program Files\ClaudeCode`,
	} {
		if got := systemDir(goos); got != want {
			t.Errorf("%s: %s", goos, got)
		}
	}
	if got := SystemDir(); got != systemDir(runtime.GOOS) {
		t.Errorf("here: %s", got)
	}
	defer func(old string) { System = old }(System)
	System = "/policy"
	if got := SystemDir(); got != "/policy" || Dir != ".claude" {
		t.Errorf("set at link time: %s, %s", got, Dir)
	}
}
