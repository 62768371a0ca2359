package builtin

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

// TestGlobHint: the advice after a search without a hit is true of the pattern.
func TestGlobHint(t *testing.T) {
	s := newSession(t)
	const hint = "in the directory itself only"
	for pattern, want := range map[string]bool{"*.x": true, "none": true, "**": false, "**/*.x": false, "sub/*.x": false} {
		text, out := s.glob(in{"pattern": pattern})
		if len(out.Filenames) > 0 || strings.Contains(text, hint) != want {
			t.Errorf("%q: %q", pattern, text)
		}
	}
}

// TestGrepIgnoredNote: a filter that only ignored files fit is not said to fit
// no file, and the advice leads to them.
func TestGrepIgnoredNote(t *testing.T) {
	conform.Covers(t, "B-098")
	s := newSession(t)
	if err := os.MkdirAll(s.path(".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(".gitignore", "dist/\n*.log\n")
	s.write("dist/a.js", "needle\n")
	s.write("b.log", "needle\n")
	for _, glob := range []string{"dist/**", "*.log"} {
		text, _ := s.grep(in{"pattern": "needle", "glob": glob})
		if !strings.Contains(text, "none that git does not ignore fits glob") || !strings.Contains(text, "as path") {
			t.Errorf("%s: %q", glob, text)
		}
	}
	if text, _ := s.grep(in{"pattern": "needle", "glob": "src/**"}); !strings.Contains(text, "none fits glob") || strings.Contains(text, "ignore") {
		t.Errorf("nothing there: %q", text)
	}
	for path, want := range map[string]string{"dist": "dist/a.js", "b.log": "b.log"} {
		if _, out := s.grep(in{"pattern": "needle", "path": path}); slashed(out.Filenames) != want {
			t.Errorf("path %s: %q", path, out.Filenames)
		}
	}
}

// TestGlobTimeOnWSL: the disks of Windows get more time.
func TestGlobTimeOnWSL(t *testing.T) {
	conform.Covers(t, "T-93")
	s := newSession(t)
	here := onWSL
	defer func() { onWSL = here }()
	for wsl, want := range map[bool]time.Duration{false: 20 * time.Second, true: 60 * time.Second} {
		onWSL = func() bool { return wsl }
		if got := globTime(s.env); got != want {
			t.Errorf("WSL %v: limit %v, want %v", wsl, got, want)
		}
	}
}
