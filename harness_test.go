package turnwright_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/session"
)

// No policy of the machine reaches a test.
func init() { names.System = filepath.Join(os.TempDir(), "turnwright-tests-have-no-policy") }

// base are options that reach srv and touch nothing outside the test.
func base(t testing.TB, srv *agenttest.Server) turnwright.Options {
	t.Helper()
	store, home := session.NewMemory(), t.TempDir()
	replayAtEnd(t, store, home)
	return turnwright.Options{
		Model: "claude-sonnet-4-5",
		CWD:   t.TempDir(),
		Store: store,
		Env: map[string]string{
			"ANTHROPIC_BASE_URL": srv.URL(), "ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_AUTH_TOKEN": "",
			"ANTHROPIC_CUSTOM_HEADERS": "", "ANTHROPIC_BETAS": "", "ANTHROPIC_MODEL": "", "CLAUDE_CODE_EXTRA_BODY": "",
			"CLAUDE_CODE_MAX_TURNS": "", "CLAUDE_CODE_MAX_RETRIES": "", "CLAUDE_CONFIG_DIR": home,
			"CLAUDE_CODE_SKIP_PROMPT_HISTORY": "",
		},
		Stderr: func(line string) { t.Log("stderr: " + line) },
	}
}

// outcome is what a run gave.
type outcome struct {
	messages []turnwright.Message
	result   *turnwright.ResultMessage // the last one
	err      error                     // what the iterator yielded at its end
}

// query runs one prompt to its end.
func query(t testing.TB, prompt string, o turnwright.Options) outcome {
	t.Helper()
	var out outcome
	for m, err := range turnwright.Query(t.Context(), prompt, o) {
		if err != nil {
			out.err = err
			break
		}
		out.add(m)
	}
	return out
}

func (o *outcome) add(m turnwright.Message) {
	o.messages = append(o.messages, m)
	if r, ok := m.(*turnwright.ResultMessage); ok {
		o.result = r
	}
}

// shape is the stream in short: one word a message, as in
// "init assistant(Bash) user(ok) assistant(text) result(success)".
func (o *outcome) shape() string {
	var words []string
	for _, m := range o.messages {
		words = append(words, shapeOf(m))
	}
	return strings.Join(words, " ")
}

func shapeOf(m turnwright.Message) string {
	switch m := m.(type) {
	case *message.Assistant:
		var parts []string
		for _, b := range m.Message.Content {
			if u, ok := b.ToolUse(); ok {
				parts = append(parts, u.Name)
			} else {
				parts = append(parts, b.Type())
			}
		}
		return "assistant(" + strings.Join(parts, ",") + ")"
	case *message.User:
		var parts []string
		for _, r := range m.ToolResults() {
			if r.IsError {
				parts = append(parts, "error")
			} else {
				parts = append(parts, "ok")
			}
		}
		return "user(" + strings.Join(parts, ",") + ")"
	case *message.Result:
		return "result(" + string(m.Subtype) + ")"
	}
	typ, sub := m.Kind()
	if sub != "" {
		return sub
	}
	return typ
}

// echo is a read-only tool that returns its text.
func echo() turnwright.Tool {
	return turnwright.NewTool("echo", "Returns the text.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return in.Text, nil
	}, turnwright.ReadOnly())
}

// note is a tool that changes something: it records its texts in order.
func note(into *[]string) turnwright.Tool {
	return turnwright.NewTool("note", "Records the text.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		if strings.HasPrefix(in.Text, "fail") {
			return "", errors.New("the note cannot be taken: " + in.Text)
		}
		*into = append(*into, in.Text)
		return fmt.Sprintf("noted %d", len(*into)), nil
	})
}
