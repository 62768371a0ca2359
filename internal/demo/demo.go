package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
)

// Config is what the demo is run with.
type Config struct {
	MaxTurns     *int
	MaxBudgetUSD *float64
	Keep         bool      // keep the project and the journal
	Out          io.Writer // where the stream and the result are printed

	change func(*turnwright.Options) // of tests: what would make the demo fail
}

// prompt is the task of the reference scenario.
const prompt = "Fix the failing tests of the auth module."

// demoModel has a price in the built-in catalog.
const demoModel = "claude-sonnet-4-5"

// ErrRunFailed tells that the run ended with an error result, as it does on
// purpose at a low cap.
var ErrRunFailed = errors.New("the run ended with an error result")

// Run runs the demo and prints it. The result is returned also beside
// ErrRunFailed.
func Run(ctx context.Context, c Config) (res *turnwright.ResultMessage, err error) {
	root, err := os.MkdirTemp("", "turnwright-demo-")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if c.Keep {
		fmt.Fprintf(c.Out, "Project and journal are kept in %s\n", root)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	project := filepath.Join(root, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if err := layOut(project); err != nil {
		return nil, err
	}
	srv, err := agenttest.Start(script(project))
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	defer srv.Close()

	fmt.Fprintf(c.Out, "A scripted model on %s repairs %s\n", srv.URL(), project)
	fmt.Fprintf(c.Out, "> %s\n\n", prompt)
	p := NewPrinter(c.Out)
	var runErr error
	o := turnwright.Options{
		Model: demoModel, MaxTurns: c.MaxTurns, MaxBudgetUSD: c.MaxBudgetUSD,
		AllowedTools: []string{"Read", "Edit", "Bash"}, CWD: project,
		SystemPrompt:   &turnwright.SystemPrompt{Coding: true},
		SettingSources: []string{}, // the same on every machine
		Env: map[string]string{
			"ANTHROPIC_BASE_URL": srv.URL(), "ANTHROPIC_API_KEY": "demo", "ANTHROPIC_AUTH_TOKEN": "",
			"ANTHROPIC_CUSTOM_HEADERS": "", "CLAUDE_CODE_EXTRA_BODY": "", "CLAUDE_CODE_MAX_TURNS": "",
			"CLAUDE_CONFIG_DIR": filepath.Join(root, "config"), "CLAUDE_CODE_SKIP_PROMPT_HISTORY": "",
		},
		Stderr: func(line string) { fmt.Fprintln(c.Out, line) },
	}
	if c.change != nil {
		c.change(&o)
	}
	for m, err := range turnwright.Query(ctx, prompt, o) {
		if err != nil {
			runErr = err
			break
		}
		p.Print(m)
		if r, ok := m.(*turnwright.ResultMessage); ok {
			res = r
		}
	}
	if res == nil {
		return nil, fmt.Errorf("demo: the run gave no result: %w", runErr)
	}
	fmt.Fprintln(c.Out)
	PrintResult(c.Out, res)
	if err := srv.Problems(); err != nil {
		return res, fmt.Errorf("demo: the scripted model found a fault: %w", err)
	}
	if res.IsError {
		return res, fmt.Errorf("%w: %s", ErrRunFailed, res.Subtype)
	}
	if res.Subtype == turnwright.Success && res.ToolTurns > 0 {
		return res, verify(project)
	}
	return res, nil
}

// verify looks at what the tools left on disk.
func verify(project string) error {
	text, err := os.ReadFile(filepath.Join(project, authFile))
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if string(text) == authText {
		return errors.New("demo: the run reported success, but auth.sh is unchanged")
	}
	return nil
}
