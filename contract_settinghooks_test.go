package turnwright_test

import (
	"context"
	"fmt"
	"os"
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

// TestUntrustedContent: a project that nobody trusts runs its hooks, for a run
// without a person asks nobody, unless the run is told to leave them out.
func TestUntrustedContent(t *testing.T) {
	conform.Covers(t, "C-134", "H-5", "H-7")
	for name, tt := range map[string]struct {
		set      func(*turnwright.Options)
		ran      bool
		variable string // of the project, as commands see it
	}{
		"as it is":        {func(*turnwright.Options) {}, true, "from-project"},
		"without project": {func(o *turnwright.Options) { o.SettingSources = []string{"user", "local"} }, false, ""},
		"no source":       {func(o *turnwright.Options) { o.SettingSources = []string{} }, false, ""},
		"bare":            {func(o *turnwright.Options) { o.Bare = true }, false, "from-project"}, // C-135
		"hooks off":       {func(o *turnwright.Options) { o.Settings = `{"disableAllHooks":true}` }, false, "from-project"},
	} {
		srv := agenttest.NewServer(t, bashCalls("echo \"<$OF_PROJECT>\""))
		o := base(t, srv)
		o.AllowedTools = []string{"Bash"}
		var hooks []string
		for _, ev := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"} {
			hooks = append(hooks, fmt.Sprintf(`%q:[{"hooks":[{"type":"command","command":"echo %s >> ran.txt"},{"type":"http","url":"http://127.0.0.1:1/"}]}]`, ev, ev))
		}
		put(t, projectFile(&o), `{"env":{"OF_PROJECT":"from-project"},"hooks":{`+strings.Join(hooks, ",")+`}}`)
		tt.set(&o)
		if out := query(t, "go", o); out.err != nil {
			t.Fatal(out.err)
		}
		ran, _ := os.ReadFile(filepath.Join(o.CWD, "ran.txt"))
		if n := len(strings.Fields(string(ran))); n > 0 != tt.ran || tt.ran && n != len(hooks) {
			t.Errorf("%s: ran %q", name, ran)
		}
		if got := srv.Requests()[1].LastToolResults()[0].Text; got != "<"+tt.variable+">" {
			t.Errorf("%s: the variable is %s", name, got)
		}
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
