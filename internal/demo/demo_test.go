package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/conform"
)

// run runs the demo in a temporary directory that it must leave empty.
func run(t *testing.T, c Config) (*turnwright.ResultMessage, string, error) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	var out bytes.Buffer
	c.Out = &out
	res, err := Run(t.Context(), c)
	if left, rerr := os.ReadDir(dir); rerr != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, rerr)
	}
	return res, out.String(), err
}

// toolLine is a line of the printed stream that shows a call or a result.
var toolLine = regexp.MustCompile(`(?m)^\[(?:assistant|user)\] +(?:turn \d: )?(Bash|Read|Edit)( ok| error)?:? ?(Not executed)?`)

// ran returns the names of the tools that were executed, as the stream shows it.
func ran(out string) (names []string) {
	for _, m := range toolLine.FindAllStringSubmatch(out, -1) {
		if m[2] != "" && m[3] == "" {
			names = append(names, m[1])
		}
	}
	return names
}

// TestCaps is the table of L-29.
func TestCaps(t *testing.T) {
	conform.Covers(t, "L-16", "L-29", "L-31", "L-32")
	all := []string{"Bash", "Read", "Read", "Edit", "Bash"}
	for _, tt := range []struct {
		name     string
		cap      *int
		subtype  string
		numTurns int
		ran      []string
	}{
		{"unset", nil, "success", 4, all},
		{"4", new(4), "success", 4, all},
		{"3", new(3), "success", 4, all},
		{"2", new(2), "error_max_turns", 2, all[:3]},
		{"1", new(1), "error_max_turns", 1, all[:1]},
		{"0", new(0), "success", 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, out, err := run(t, Config{MaxTurns: tt.cap})
			if failed := tt.subtype != "success"; errors.Is(err, ErrRunFailed) != failed || !failed && err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if string(res.Subtype) != tt.subtype || res.NumTurns != tt.numTurns {
				t.Errorf("%s after %d turns\n%s", res.Subtype, res.NumTurns, out)
			}
			if got := ran(out); !slices.Equal(got, tt.ran) {
				t.Errorf("executed %q, want %q\n%s", got, tt.ran, out)
			}
			if !strings.Contains(out, "\nWhy it stopped: "+turnwright.WhyStopped(res)) {
				t.Errorf("no reason at the end:\n%s", out)
			}
		})
	}
}

// TestBudget stops at a budget that the second response crosses.
func TestBudget(t *testing.T) {
	res, out, err := run(t, Config{MaxBudgetUSD: new(0.01)})
	if !errors.Is(err, ErrRunFailed) || res.Subtype != turnwright.ErrorMaxBudgetUSD || *res.TotalCostUSD < 0.01 {
		t.Errorf("%v, %+v\n%s", err, res, out)
	}
}

// TestToolThatDoesNotRun fails the demo, whichever tool it is: the scripted
// model looks at what the calls before brought.
func TestToolThatDoesNotRun(t *testing.T) {
	for _, tool := range []string{"Bash", "Read", "Edit"} {
		t.Run(tool, func(t *testing.T) {
			_, out, err := run(t, Config{change: func(o *turnwright.Options) {
				o.AllowedTools = slices.DeleteFunc(o.AllowedTools, func(name string) bool { return name == tool })
				o.DisallowedTools = []string{tool}
			}})
			if err == nil || errors.Is(err, ErrRunFailed) || !strings.Contains(err.Error(), "found a fault") {
				t.Errorf("the demo did not notice that %s does not run: %v\n%s", tool, err, out)
			}
		})
	}
}

// TestToolThatLies fails the demo too: a tool of the same name that does
// nothing and says that all is well.
func TestToolThatLies(t *testing.T) {
	lie := turnwright.NewTool("Edit", "Pretends.", func(context.Context, struct {
		FilePath  string `json:"file_path"`
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
	},
	) (string, error) {
		return "The file auth.sh has been updated.", nil
	})
	_, out, err := run(t, Config{change: func(o *turnwright.Options) {
		o.Tools, o.CustomTools = []string{"Bash", "Read"}, []turnwright.Tool{lie}
	}})
	if err == nil || !strings.Contains(err.Error(), "found a fault") {
		t.Errorf("the demo believed the tool: %v\n%s", err, out)
	}
}

// TestCancelled ends with its context and leaves nothing.
func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Config{Out: new(bytes.Buffer)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
