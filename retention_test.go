package turnwright_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
)

// Sessions that nobody changed for longer than the period are gone after a start,
// and only where the period is known and the files count.
func TestRetention(t *testing.T) {
	conform.Covers(t, "S-32", "S-33", "K-295")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	// kept is how many of the sessions that are 10, 20, 40 and 80 days old are left.
	for _, c := range []struct {
		name   string
		change func(t *testing.T, o *turnwright.Options)
		user   string // settings.json of the home
		own    string // of the project
		kept   int
	}{
		{name: "the default is 30 days", kept: 2},
		{name: "the user's settings", user: `{"cleanupPeriodDays":15}`, kept: 1},
		{name: "longer", user: `{"cleanupPeriodDays":60}`, kept: 3},
		{name: "a project does not decide on other projects", own: `{"cleanupPeriodDays":1}`, kept: 2},
		{name: "--settings", change: func(_ *testing.T, o *turnwright.Options) { o.Settings = `{"cleanupPeriodDays":5}` }, user: `{"cleanupPeriodDays":15}`, kept: 0},
		{name: "policy", change: func(_ *testing.T, o *turnwright.Options) {
			o.Settings, o.ManagedSettings = `{"cleanupPeriodDays":5}`, []byte(`{"cleanupPeriodDays":60}`)
		}, kept: 3},
		{name: "an invalid period", user: `{"cleanupPeriodDays":0}`, kept: 4},
		{name: "settings that cannot be read", user: `{"cleanupPeriodDays":`, kept: 4},
		{name: "settings that are skipped", user: `{"cleanupPeriodDays":15,"model":3}`, kept: 4},
		{name: "another mistake in settings", user: `{"cleanupPeriodDays":15,"permissions":{"allow":["Bash("]}}`, kept: 1},
		{name: "Bare", change: func(_ *testing.T, o *turnwright.Options) { o.Bare = true }, kept: 4},
		{name: "CLAUDE_CODE_SIMPLE", change: func(_ *testing.T, o *turnwright.Options) { o.Env["CLAUDE_CODE_SIMPLE"] = "1" }, kept: 4},
		{name: "the user's settings are not to be read", change: func(_ *testing.T, o *turnwright.Options) { o.SettingSources = []string{"project"} }, kept: 4},
		{name: "but --settings says it", change: func(_ *testing.T, o *turnwright.Options) {
			o.SettingSources, o.Settings = []string{}, `{"cleanupPeriodDays":15}`
		}, kept: 1},
		{name: "nothing is kept", change: func(_ *testing.T, o *turnwright.Options) { o.NoSessionPersistence = true }, kept: 4},
		{name: "sessions are elsewhere", change: func(_ *testing.T, o *turnwright.Options) { o.Store = session.NewMemory() }, kept: 4},
		{name: "a home that a client made for a resume", change: func(t *testing.T, o *turnwright.Options) {
			home := filepath.Join(t.TempDir(), "claude-resume-x1")
			if err := os.Rename(o.Env["CLAUDE_CONFIG_DIR"], home); err != nil {
				t.Fatal(err)
			}
			o.Env["CLAUDE_CONFIG_DIR"] = home
		}, kept: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := onDisk(t, srv)
			home := o.Env["CLAUDE_CONFIG_DIR"]
			for n, days := range []int{10, 20, 40, 80} {
				id := sid(n)
				putSession(t, home, t.TempDir(), id, time.Duration(days)*24*time.Hour, `{"type":"turnwright","kind":"open","v":1,"sessionId":"`+id+`"}`, said1(id, "/x", "old"))
			}
			for path, text := range map[string]string{filepath.Join(home, "settings.json"): c.user, filepath.Join(o.CWD, ".claude", "settings.json"): c.own} {
				if text == "" {
					continue
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.change != nil {
				c.change(t, &o)
			}
			s, err := turnwright.NewSession(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			s.Swept()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			found, err := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", "*", "*.jsonl"))
			if err != nil || len(found) != c.kept {
				t.Errorf("%d are left, want %d: %q", len(found), c.kept, found)
			}
		})
	}
}

// What this program wrote goes; a session that goes on stays, however old.
func TestRetentionOfOwnSessions(t *testing.T) {
	conform.Covers(t, "S-33", "S-32")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := onDisk(t, srv)
	ids := map[string]string{"new": query(t, "one", o).result.SessionID, "resumed": query(t, "two", o).result.SessionID}
	fork := o
	fork.Resume, fork.ForkSession = ids["new"], true
	ids["forked by a run"] = query(t, "three", fork).result.SessionID
	copied, err := storedIn(o).Fork(t.Context(), ids["new"], turnwright.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ids["copied"] = copied
	old := time.Now().Add(-31 * 24 * time.Hour)
	o.Env = maps.Clone(o.Env) // another home: each is swept once
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Rename(o.Env["CLAUDE_CONFIG_DIR"], home); err != nil {
		t.Fatal(err)
	}
	o.Env["CLAUDE_CONFIG_DIR"] = home
	for _, id := range ids {
		if err := os.Chtimes(transcript(t, o, id), old, old); err != nil {
			t.Fatal(err)
		}
	}
	o.Resume = ids["resumed"]
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Swept()
	if found, err := filepath.Glob(filepath.Join(home, "projects", "*", "*.jsonl")); err != nil || len(found) != 1 {
		t.Errorf("left are %q, %v", found, err)
	}
	if _, err := s.Ask(t.Context(), "more"); err != nil || said(srv.Last()) != "user:two | assistant:ok | user:more" {
		t.Errorf("%v, the model is told %s", err, said(srv.Last()))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if transcript(t, o, ids["resumed"]) == "" {
		t.Error("the session that went on is gone")
	}
}
