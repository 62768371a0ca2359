package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/message"
)

// Printer prints a stream of messages for people, a line a step.
type Printer struct {
	w     io.Writer
	calls map[string]string // tool_use id → what it was
	turn  int
}

// NewPrinter returns a Printer that writes to w.
func NewPrinter(w io.Writer) *Printer { return &Printer{w: w, calls: map[string]string{}} }

// Print prints one message.
func (p *Printer) Print(m turnwright.Message) {
	switch m := m.(type) {
	case *message.Init:
		fmt.Fprintf(p.w, "[init]      session %s, model %s, tools %s\n", m.SessionID, m.Model, strings.Join(m.Tools, " "))
	case *message.Assistant:
		p.turn++
		for _, b := range m.Message.Content {
			if u, ok := b.ToolUse(); ok {
				p.calls[u.ID] = u.Name
				fmt.Fprintf(p.w, "[assistant] turn %d: %s %s\n", p.turn, u.Name, firstLines(Subject(u.Input), 1))
			} else if t := b.Text(); t != "" {
				fmt.Fprintf(p.w, "[assistant] turn %d: %s\n", p.turn, t)
			}
		}
	case *message.User:
		for _, r := range m.ToolResults() {
			mark := "ok"
			if r.IsError {
				mark = "error"
			}
			fmt.Fprintf(p.w, "[user]      %s %s: %s\n", p.calls[r.ToolUseID], mark, firstLines(r.Content.Text(), 4))
		}
	case *message.Informational:
		fmt.Fprintf(p.w, "[system]    %s\n", m.Content)
	case *message.APIRetry:
		fmt.Fprintf(p.w, "[system]    retry %d of %d in %v (%s)\n", m.Attempt, m.MaxRetries, time.Duration(m.RetryDelayMS)*time.Millisecond, m.Error)
	case *message.PermissionDenied:
		fmt.Fprintf(p.w, "[system]    denied: %s\n", m.Message)
	case *message.Result:
		fmt.Fprintf(p.w, "[result]    %s\n", m.Subtype)
	}
}

// Subject is the part of an input that a person looks for, "" for none.
func Subject(input json.RawMessage) string {
	var in map[string]any
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	for _, key := range []string{"command", "file_path", "notebook_path", "pattern", "path", "url", "task_id"} {
		if v, ok := in[key].(string); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func firstLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = append(lines[:n], "…")
	}
	return strings.Join(lines, " | ")
}

// PrintResult prints the result's fields and, as the last line, why the run
// stopped.
func PrintResult(w io.Writer, r *turnwright.ResultMessage) {
	stop := "null"
	if r.StopReason != nil {
		stop = *r.StopReason
	}
	cost := 0.0
	if r.TotalCostUSD != nil {
		cost = *r.TotalCostUSD
	}
	fmt.Fprintf(w, "subtype:          %s\n", r.Subtype)
	fmt.Fprintf(w, "is_error:         %v\n", r.IsError)
	fmt.Fprintf(w, "num_turns:        %d\n", r.NumTurns)
	fmt.Fprintf(w, "tool_turns:       %d\n", r.ToolTurns)
	fmt.Fprintf(w, "stop_reason:      %s\n", stop)
	fmt.Fprintf(w, "terminal_reason:  %s\n", r.TerminalReason)
	fmt.Fprintf(w, "total_cost_usd:   %.6f\n", cost)
	fmt.Fprintf(w, "duration_ms:      %d\n", r.DurationMS)
	fmt.Fprintf(w, "session_id:       %s\n", r.SessionID)
	if r.Result != nil {
		fmt.Fprintf(w, "result:           %s\n", *r.Result)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(w, "error:            %s\n", e)
	}
	fmt.Fprintf(w, "\nWhy it stopped: %s\n", turnwright.WhyStopped(r))
}
