package explain

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Text writes the explanation for people: the last user turn in full and the
// others in short, with all every one in full.
func (e *Explanation) Text(w io.Writer, all bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Session %s\n", e.SessionID)
	if e.Foreign {
		b.WriteString("Another program wrote it: costs and decisions are not known.\n")
	}
	if e.Skipped > 0 {
		fmt.Fprintf(&b, "%d lines could not be read.\n", e.Skipped)
	}
	if len(e.UserTurns) == 0 {
		b.WriteString("\nNothing was asked yet.\n")
	}
	for i := range e.UserTurns {
		e.UserTurns[i].text(&b, i+1, all || i == len(e.UserTurns)-1)
	}
	for _, p := range e.Waiting {
		fmt.Fprintf(&b, "\nWaiting, never begun: %q\n", p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (u *UserTurn) text(b *strings.Builder, n int, full bool) {
	fmt.Fprintf(b, "\n%d. %q", n, u.Prompt)
	if u.Origin != "" {
		fmt.Fprintf(b, " (from: %s)", u.Origin)
	}
	fmt.Fprintf(b, "\n   Why it stopped: %s\n", u.Why)
	decided := u.Field + " = " + u.Value
	if u.Limit != "" {
		decided += ", limit " + u.Limit
	}
	head := []string{string(u.Path)}
	if u.Subtype != "" {
		s := string(u.Subtype)
		if u.TerminalReason != "" {
			s += "/" + string(u.TerminalReason)
		}
		head = append(head, s)
	}
	fmt.Fprintf(b, "   %s; decided by %s\n", strings.Join(head, ", "), decided)
	fmt.Fprintf(b, "   %s, %d model responses, %s, %s\n", Turns(u.ToolTurns), len(u.Responses), money(u.CostUSD), duration(u.DurationMS))
	if !full {
		return
	}
	for _, r := range u.Responses {
		r.text(b)
	}
	for _, e := range u.Errors {
		fmt.Fprintf(b, "   error: %s\n", e)
	}
	for i, s := range u.Next {
		if i == 0 {
			b.WriteString("   What to do:\n")
		}
		fmt.Fprintf(b, "   - %s\n", s)
	}
}

func (r *Response) text(b *strings.Builder) {
	what := "answer"
	if r.ToolTurn > 0 {
		what = fmt.Sprintf("turn %d", r.ToolTurn)
	} else if len(r.Calls) > 0 {
		what = "not run"
	}
	fmt.Fprintf(b, "   %-8s %s  %s  %s", what, r.At.UTC().Format("15:04:05"), money(r.CostUSD), duration(r.APIMS))
	if r.StopReason != "" {
		fmt.Fprintf(b, "  stop_reason %s", r.StopReason)
	}
	if r.Text != "" {
		fmt.Fprintf(b, "  %q", clip(r.Text, 80))
	}
	b.WriteByte('\n')
	for _, c := range r.Calls {
		fmt.Fprintf(b, "            %s %s → %s", c.Name, clip(c.Input, 100), c.Outcome)
		if c.DurationMS > 0 {
			fmt.Fprintf(b, " after %s", duration(c.DurationMS))
		}
		if c.Reason != "" {
			fmt.Fprintf(b, " (%s)", c.Reason)
		}
		b.WriteByte('\n')
		if c.Outcome != OK && c.Result != "" {
			fmt.Fprintf(b, "              %s\n", clip(c.Result, 120))
		}
	}
}

func money(usd float64) string { return fmt.Sprintf("$%.4f", usd) }

func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d > 10*time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}
