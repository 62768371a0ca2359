package turnwright_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// debugged runs once and expects a debug log with exactly these categories.
func debugged(t *testing.T, change func(o *turnwright.Options), want ...string) {
	t.Helper()
	conform.Covers(t, "O-85")
	srv := agenttest.NewServer(t, agenttest.Text("hi"))
	o := base(t, srv)
	change(&o)
	out := query(t, "go", o)
	found, _ := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "debug", "*.txt"))
	if out.err != nil || len(found) != 1 {
		t.Fatalf("%v, logs %q", out.err, found)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(raw)) {
		_, rest, _ := strings.Cut(line, " [")
		category, _, ok := strings.Cut(rest, "] ")
		if !ok {
			t.Errorf("line %q", line)
		}
		if !slices.Contains(got, category) {
			got = append(got, category)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("categories %q, want %q:\n%s", got, want, raw)
	}
	if info, _ := os.Stat(found[0]); info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
}
