package names

import (
	"path/filepath"
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

// TestSettings: whoever reads and whoever writes settings files looks here.
func TestSettings(t *testing.T) {
	conform.Covers(t, "C-1", "C-2")
	defer func(old string) { Dir = old }(Dir)
	Dir = ".agent"
	user, project, local := Settings("home", "dir")
	if user != filepath.Join("home", "settings.json") || project != filepath.Join("dir", ".agent", "settings.json") || local != filepath.Join("dir", ".agent", "settings.local.json") {
		t.Errorf("%s, %s, %s", user, project, local)
	}
}
