package hookrun_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/hookrun"
)

// TestLastToFinish: of several new inputs that of the hook which finished last
// counts, wherever it stands.
func TestLastToFinish(t *testing.T) {
	conform.Covers(t, "H-57", "H-60")
	synctest.Test(t, func(t *testing.T) {
		after := func(d time.Duration, input string) hook.Func {
			return func(context.Context, hook.Input, string) (hook.Output, error) {
				time.Sleep(d)
				return hook.Output{UpdatedInput: json.RawMessage(input)}, nil
			}
		}
		set, err := hook.NewSet(hook.Config{Callbacks: hook.Table{hook.PreToolUse: {{Hooks: []hook.Func{
			after(time.Second, `{"n":1}`), after(3*time.Second, `{"n":2}`), after(2*time.Second, `{"n":3}`),
		}}}}})
		if err != nil {
			t.Fatal(err)
		}
		r := hookrun.New(hookrun.Config{})
		defer r.Close()
		r.Use(set)
		start := time.Now()
		m := r.Run(t.Context(), &hook.PreToolUseInput{ToolName: "x"}, hookrun.Call{})
		if string(m.UpdatedInput) != `{"n":2}` || time.Since(start) != 3*time.Second {
			t.Errorf("%s after %v", m.UpdatedInput, time.Since(start))
		}
	})
}
