package turnwright_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// denyingHook is a settings file whose hook denies Bash with a text.
func denyingHook(text string) string {
	return fmt.Sprintf(`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"echo %s >&2; exit 2"}]}]}}`, text)
}

// TestHooksOfSettings: hooks of settings files run where their source is loaded
// and nothing switches them off.
func TestHooksOfSettings(t *testing.T) {
	conform.Covers(t, "H-1", "H-5", "H-7", "C-27")
	for name, tt := range map[string]struct {
		prepare func(o *turnwright.Options)
		want    string // part of the call's result
	}{
		"none":    {func(*turnwright.Options) {}, "ran"},
		"project": {func(o *turnwright.Options) { put(t, projectFile(o), denyingHook("by-project")) }, "by-project"},
		"user": {func(o *turnwright.Options) {
			put(t, filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "settings.json"), denyingHook("by-user"))
		}, "by-user"},
		"option": {func(o *turnwright.Options) { o.Settings = denyingHook("by-option") }, "by-option"},
		"not loaded": {func(o *turnwright.Options) {
			put(t, projectFile(o), denyingHook("by-project"))
			o.SettingSources = []string{"user"}
		}, "ran"},
		"switched off": {func(o *turnwright.Options) {
			put(t, projectFile(o), denyingHook("by-project"))
			o.Settings = `{"disableAllHooks":true}`
		}, "ran"},
		"bare": {func(o *turnwright.Options) {
			put(t, projectFile(o), denyingHook("by-project"))
			o.Bare = true
		}, "ran"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, bashCalls("echo ran"))
			o := base(t, srv)
			o.AllowedTools = []string{"Bash"}
			tt.prepare(&o)
			if out := query(t, "go", o); out.err != nil {
				t.Fatal(out.err)
			}
			res := srv.Last().LastToolResults()
			if len(res) != 1 || !strings.Contains(res[0].Text, tt.want) {
				t.Errorf("results %+v, want %q", res, tt.want)
			}
		})
	}
}

// TestBrokenHooksAreTold: what of a file cannot be used is told, and the rest of
// it runs.
func TestBrokenHooksAreTold(t *testing.T) {
	conform.Covers(t, "H-3", "C-17")
	srv := agenttest.NewServer(t, bashCalls("echo ran"))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	put(t, projectFile(&o), `{"hooks":{"NoSuchEvent":[{"hooks":[{"type":"command","command":"true"}]}],
		"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"echo by-project >&2; exit 2"}]}]}}`)
	var lines []string
	o.Stderr = func(line string) { lines = append(lines, line) }
	query(t, "go", o)
	if res := srv.Last().LastToolResults(); len(res) != 1 || !strings.Contains(res[0].Text, "by-project") {
		t.Errorf("results %+v", res)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "NoSuchEvent") || !strings.Contains(lines[0], projectFile(&o)) {
		t.Errorf("told %q", lines)
	}
}

// TestEditedHooks: an edit of a settings file takes effect in the running
// session, and leaves the callbacks of the program alone.
func TestEditedHooks(t *testing.T) {
	conform.Covers(t, "H-9")
	var steps []agenttest.Step
	for range 4 {
		steps = append(steps, agenttest.Call("Bash", `{"command":"echo ran"}`), agenttest.Text("done"))
	}
	srv := agenttest.NewServer(t, agenttest.Script(steps...))
	o := base(t, srv)
	o.AllowedTools = []string{"Bash"}
	put(t, projectFile(&o), denyingHook("first"))
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, step := range []struct{ file, want string }{
		{"", "first"}, {denyingHook("second"), "second"}, {`{}`, "ran"}, {denyingHook("third-time"), "third-time"},
	} {
		if step.file != "" {
			put(t, projectFile(&o), step.file)
		}
		if _, err := s.Ask(context.Background(), "go"); err != nil {
			t.Fatal(err)
		}
		res := srv.Last().LastToolResults()
		if len(res) != 1 || !strings.Contains(res[0].Text, step.want) {
			t.Errorf("%s: results %+v, want %q", step.file, res, step.want)
		}
	}
}
