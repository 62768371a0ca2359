package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/demo"
	reasons "github.com/turnwright/turnwright/internal/explain"
	"github.com/turnwright/turnwright/message"
)

// live shows a person at a terminal what a run does: a line for each step with
// the tool, its argument, how long it took and what the run has cost so far.
// What is going on stands in a last line that is written over.
type live struct {
	w     io.Writer
	width int // columns of the terminal
	color bool
	cost  func() float64
	now   func() time.Time

	running []step
	shown   bool // the last line is there
}

type step struct {
	id, name, about string
	began           time.Time
}

// newLive returns nil unless w is a terminal. NO_COLOR, when it is not empty,
// and TERM=dumb switch colours off (no-color.org).
func newLive(w io.Writer, cost func() float64) *live {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	color := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &live{w: w, width: width, color: color, cost: cost, now: time.Now}
}

const (
	dim   = "\x1b[2m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
)

// show shows what a message means. A nil live shows nothing.
func (l *live) show(m turnwright.Message) {
	if l == nil {
		return
	}
	switch m := m.(type) {
	case *message.Init:
		l.status() // the first response may take a while to begin
	case *message.PermissionDenied:
		l.clear()
		fmt.Fprintf(l.w, "%s %s\n", l.paint(red, "!"), oneLine(m.ToolName+" is denied: "+m.Message, 500)) // the reason as a whole
		l.status()
	case *message.Assistant:
		for _, b := range m.Message.Content {
			if u, ok := b.ToolUse(); ok {
				l.running = append(l.running, step{u.ID, u.Name, demo.Subject(u.Input), l.now()})
			}
		}
		l.status()
	case *message.User:
		for _, r := range m.ToolResults() {
			l.finished(r)
		}
		l.status()
	case *message.APIRetry:
		l.line(red, "!", fmt.Sprintf("retry %d of %d in %v (%s)", m.Attempt, m.MaxRetries, time.Duration(m.RetryDelayMS)*time.Millisecond, m.Error), "")
	case *message.TaskNotification:
		l.line("", "·", "background task "+m.Status+": "+m.Summary, "")
	case *message.Result:
		l.clear()
	}
}

func (l *live) finished(r message.ToolResult) {
	i := slices.IndexFunc(l.running, func(s step) bool { return s.id == r.ToolUseID })
	if i < 0 {
		return
	}
	s := l.running[i]
	l.running = slices.Delete(l.running, i, i+1)
	mark, color := "✓", green
	if r.IsError {
		mark, color = "✗", red
	}
	l.line(color, mark, strings.TrimSpace(s.name+" "+s.about), fmt.Sprintf("%s  $%.4f", tookText(l.now().Sub(s.began)), l.cost()))
}

// line writes a line that stays, over the one that does not.
func (l *live) line(color, mark, text, right string) {
	l.clear()
	text = oneLine(text, max(10, l.width-len([]rune(right))-5))
	pad := max(1, l.width-len([]rune(text))-len([]rune(right))-3)
	if right == "" {
		pad = 0
	}
	fmt.Fprintf(l.w, "%s %s%s%s\n", l.paint(color, mark), text, strings.Repeat(" ", pad), l.paint(dim, right))
}

// status shows what is running now.
func (l *live) status() {
	l.clear()
	text := "thinking"
	if len(l.running) > 0 {
		s := l.running[0]
		text = strings.TrimSpace(s.name + " " + s.about)
		if n := len(l.running) - 1; n > 0 {
			text = fmt.Sprintf("%s, and %d more", oneLine(text, l.width/2), n)
		}
	}
	fmt.Fprint(l.w, l.paint(dim, "… "+oneLine(text, l.width-3)))
	l.shown = true
}

func (l *live) clear() {
	if l != nil && l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
}

func (l *live) paint(color, s string) string {
	if !l.color || color == "" || s == "" {
		return s
	}
	return color + s + "\x1b[0m"
}

// summary tells at the end what the run took and why it stopped, unless its error
// has told that already.
func (l *live) summary(r *turnwright.ResultMessage) {
	if l == nil {
		return
	}
	l.clear()
	cost := 0.0
	if r.TotalCostUSD != nil {
		cost = *r.TotalCostUSD
	}
	fmt.Fprintln(l.w, l.paint(dim, fmt.Sprintf("%s, %s, $%.4f, session %s", reasons.Turns(r.ToolTurns), tookText(time.Duration(r.DurationMS)*time.Millisecond), cost, r.SessionID)))
	if r.Subtype != message.ErrorDuringExecution {
		fmt.Fprintln(l.w, l.paint(dim, "Why it stopped: "+turnwright.WhyStopped(r)))
	}
}

// tookText is a duration for people.
func tookText(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}
