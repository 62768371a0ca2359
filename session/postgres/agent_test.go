package postgres_test

import (
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/session/postgres"
)

// TestAgent keeps a session that two programs on one database take in turn.
func TestAgent(t *testing.T) {
	schema := newSchema(t)
	model := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"echo one"}`), agenttest.Text("Two tests fail."),
		agenttest.Text("Fixed."), agenttest.Text("Committed."),
	))
	dir := t.TempDir()
	for i, prompt := range []string{"Which tests fail?", "Fix them.", "Commit."} {
		store := open(t, server(t), postgres.Config{Schema: schema})
		var got string
		for msg, err := range turnwright.Query(t.Context(), prompt, turnwright.Options{
			Store: store, CWD: dir, Model: "claude-sonnet-4-5", SettingSources: []string{}, Continue: i > 0, AllowedTools: []string{"Bash(echo *)"},
			Env: map[string]string{"ANTHROPIC_BASE_URL": model.URL(), "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": dir},
		}) {
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := msg.(*turnwright.ResultMessage); ok {
				got = *r.Result
			}
		}
		if want := []string{"Two tests fail.", "Fixed.", "Committed."}[i]; got != want {
			t.Errorf("%s: %q, want %q", prompt, got, want)
		}
		if model.Last().FirstUserText() != "Which tests fail?" {
			t.Errorf("%s: the model is told %q first", prompt, model.Last().FirstUserText())
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
