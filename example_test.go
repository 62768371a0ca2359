package turnwright_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
)

// scripted starts a scripted model, so that the examples run without a key.
// A program of your own leaves out Env and SettingSources and sets ANTHROPIC_API_KEY.
func scripted(steps ...agenttest.Step) (o turnwright.Options, stop func()) {
	srv, err := agenttest.Start(agenttest.Script(steps...))
	if err != nil {
		panic(err)
	}
	return turnwright.Options{
		Model:                "claude-sonnet-4-5",
		NoSessionPersistence: true,
		SettingSources:       []string{},
		Env: map[string]string{
			"ANTHROPIC_BASE_URL": srv.URL(), "ANTHROPIC_API_KEY": "none",
			"ANTHROPIC_CUSTOM_HEADERS": "", "CLAUDE_CODE_EXTRA_BODY": "", "CLAUDE_CODE_MAX_TURNS": "",
		},
	}, srv.Close
}

// A capped run that branches on the subtype of its result.
func ExampleQuery() {
	o, stop := scripted(
		agenttest.Call("Bash", `{"command":"echo one"}`),
		agenttest.Call("Bash", `{"command":"echo two"}`),
	)
	defer stop()
	o.AllowedTools = []string{"Bash"}
	o.MaxTurns = new(1)
	o.MaxBudgetUSD = new(0.50)

	var result *turnwright.ResultMessage
	for msg, err := range turnwright.Query(context.Background(), "Do it in two steps.", o) {
		var failed *turnwright.ResultError
		if errors.As(err, &failed) {
			break // the result came before it
		}
		if err != nil {
			fmt.Println("the run could not start:", err)
			return
		}
		if r, ok := msg.(*turnwright.ResultMessage); ok {
			result = r
		}
	}
	switch result.Subtype {
	case turnwright.Success:
		fmt.Println(*result.Result)
	case turnwright.ErrorMaxTurns:
		fmt.Printf("stopped at the cap after %d tool turn: %s\n", result.ToolTurns, result.Errors[0])
	case turnwright.ErrorMaxBudgetUSD:
		fmt.Printf("spent $%.2f\n", *result.TotalCostUSD)
	default:
		fmt.Println("failed:", result.Errors)
	}
	// Output: stopped at the cap after 1 tool turn: Reached maximum number of turns (1)
}

// A bare tool loop: tools of your own and no built-in ones.
func ExampleNewTool() {
	o, stop := scripted(
		agenttest.Call("weather", `{"city":"Bergen"}`),
		agenttest.Text("Take an umbrella."),
	)
	defer stop()

	weather := turnwright.NewTool("weather", "Current weather of a city.",
		func(_ context.Context, in struct {
			City string `json:"city" jsonschema:"city name"`
		},
		) (string, error) {
			return "rain in " + in.City, nil
		}, turnwright.ReadOnly())

	o.Tools = []string{} // no built-in tools
	o.CustomTools = []turnwright.Tool{weather}
	o.AllowedTools = []string{"weather"}
	for msg, err := range turnwright.Query(context.Background(), "Do I need an umbrella in Bergen?", o) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch m := msg.(type) {
		case *turnwright.UserMessage:
			fmt.Println("tool:", m.ToolResults()[0].Content.Text())
		case *turnwright.ResultMessage:
			fmt.Println("answer:", *m.Result)
		}
	}
	// Output:
	// tool: rain in Bergen
	// answer: Take an umbrella.
}

// Read-only tools of one response run at the same time: each of these two
// waits until the other has started.
func ExampleReadOnly() {
	o, stop := scripted(
		agenttest.Blocks(
			agenttest.Call("meet", `{"name":"Ada"}`),
			agenttest.Call("meet", `{"name":"Grace"}`),
		),
		agenttest.Text("They met."),
	)
	defer stop()

	var both sync.WaitGroup
	both.Add(2)
	meet := turnwright.NewTool("meet", "Waits for the other.",
		func(_ context.Context, in struct {
			Name string `json:"name"`
		},
		) (string, error) {
			both.Done()
			both.Wait()
			return in.Name + " was there", nil
		}, turnwright.ReadOnly())

	o.CustomTools = []turnwright.Tool{meet}
	o.AllowedTools = []string{"meet"}
	for msg, err := range turnwright.Query(context.Background(), "Let them meet.", o) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if r, ok := msg.(*turnwright.ResultMessage); ok {
			fmt.Println(*r.Result, "turns:", r.NumTurns)
		}
	}
	// Output: They met. turns: 2
}

// The fields of a result that a service logs. The average time of a turn is
// duration_ms divided by num_turns.
func ExampleSession_Ask() {
	o, stop := scripted(agenttest.Usage(agenttest.Text("Forty-two."), 1000, 20, 0, 0, 0))
	defer stop()

	s, err := turnwright.NewSession(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	r, err := s.Ask(context.Background(), "What is six times seven?")
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key { // they differ from run to run
			case slog.TimeKey, "session_id", "duration_ms":
				return slog.Attr{}
			}
			return a
		},
	}))
	log.Info("run ended",
		"subtype", r.Subtype, "is_error", r.IsError, "terminal_reason", r.TerminalReason,
		"num_turns", r.NumTurns, "total_cost_usd", *r.TotalCostUSD,
		"duration_ms", r.DurationMS, "session_id", r.SessionID, "errors", r.Errors)
	// Output: level=INFO msg="run ended" subtype=success is_error=false terminal_reason=completed num_turns=1 total_cost_usd=0.0033 errors=[]
}
