package turnwright_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"golang.org/x/sys/unix"
)

// TestApprovedPathIsOpened runs calls through the gate while somebody exchanges
// their directory for a link to outside: what was approved is what is opened.
func TestApprovedPathIsOpened(t *testing.T) {
	conform.Covers(t, "P-87", "P-88")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "real", "old"): "inside", filepath.Join(outside, "old"): "canary", filepath.Join(outside, "other"): "canary",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	call := func(name string, input map[string]string) agenttest.Step {
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		return agenttest.Call(name, string(raw))
	}
	var steps []agenttest.Step
	for i := range 50 {
		steps = append(steps,
			call("Write", map[string]string{"file_path": fmt.Sprintf("real/new%d", i), "content": "made"}),
			call("Write", map[string]string{"file_path": fmt.Sprintf("real/sub%d/new", i), "content": "made"}),
			call("Edit", map[string]string{"file_path": "real/old", "old_string": "", "new_string": "made"}),
			call("Read", map[string]string{"file_path": "real/old"}),
			call("Grep", map[string]string{"pattern": ".", "path": "real", "output_mode": "content"}))
	}
	srv := agenttest.NewServer(t, agenttest.Script(append(steps, agenttest.Text("done"))...))
	o := base(t, srv)
	o.CWD, o.PermissionMode = dir, turnwright.ModeAcceptEdits
	o.Tools = []string{"Read", "Write", "Edit", "Grep"}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "real"), unix.AT_FDCWD, filepath.Join(dir, "link"), unix.RENAME_EXCHANGE)
		}
	}()
	out := query(t, "go", o)
	stop.Store(true)
	<-done
	if out.result == nil || out.result.Subtype != turnwright.Success {
		t.Fatalf("the run ended with %+v, %v", out.result, out.err)
	}
	ran := 0
	for _, r := range srv.Requests()[1:] {
		for _, res := range r.LastToolResults() {
			if !res.IsError {
				ran++
			}
			if strings.Contains(res.Text, "canary") {
				t.Errorf("a result shows what is outside: %s", res.Text)
			}
		}
	}
	t.Logf("%d of %d calls ran", ran, len(steps))
	if ran == 0 {
		t.Error("no call ran: this shows nothing")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 2 {
		t.Errorf("outside has %v, %v", entries, err)
	}
	for _, name := range []string{"old", "other"} {
		if text, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(text) != "canary" {
			t.Errorf("%s outside has %q, %v", name, text, err)
		}
	}
	for _, d := range []string{dir, filepath.Join(dir, "real"), filepath.Join(dir, "link")} {
		if left, _ := filepath.Glob(filepath.Join(d, ".turnwright*.tmp")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}
