package hookrun

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/message"
)

// progressEvery is how often a running command's output is shown (M-85).
const progressEvery = time.Second

// life tells the stream of one run of a hook (M-81 to M-85). A nil life tells
// nothing.
type life struct {
	r           *Runner
	id, name    string
	event       string
	onlyOutcome bool // of a background hook of a silent event

	mu   sync.Mutex
	over bool
}

// begin tells that a hook starts, where that is shown (H-130, H-131).
func (r *Runner) begin(in hook.Input, background bool) *life {
	ev := in.Event()
	always := ev == hook.SessionStart || ev == hook.Setup
	silent := ev.Silent()
	if r.cfg.Emit == nil || !r.cfg.Show && !always || silent && !background {
		return nil
	}
	l := &life{r: r, id: r.cfg.NewID(), name: hook.Name(in), event: string(ev), onlyOutcome: silent}
	if !silent {
		r.cfg.Emit(&message.HookStarted{HookID: l.id, HookName: l.name, HookEvent: l.event})
	}
	return l
}

// progress shows new output every second until stop is called.
func (l *life) progress(out *captured) (stop func()) {
	if l == nil || l.onlyOutcome {
		return func() {}
	}
	seen := 0
	var timer *time.Timer
	l.mu.Lock() // until timer is set
	defer l.mu.Unlock()
	timer = time.AfterFunc(progressEvery, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.over {
			return
		}
		stdout, stderr, both := out.texts()
		if len(both) > seen {
			seen = len(both)
			l.r.cfg.Emit(&message.HookProgress{
				HookID: l.id, HookName: l.name, HookEvent: l.event, Stdout: stdout, Stderr: stderr, Output: both,
			})
		}
		timer.Reset(progressEvery)
	})
	return func() { timer.Stop() }
}

// finish tells how the hook ended. code is nil where no process has exited by
// itself.
func (l *life) finish(out *captured, code *int, err error) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	m := &message.HookResponse{HookID: l.id, HookName: l.name, HookEvent: l.event, ExitCode: code, Outcome: "success"}
	if out != nil {
		m.Stdout, m.Stderr, m.Output = out.texts()
	}
	var late *TimeoutError
	switch {
	case errors.As(err, &late), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		m.Outcome = "cancelled"
	case err != nil:
		m.Outcome = "error"
	}
	l.r.cfg.Emit(m)
}

// Bounds of H-53, in characters.
const (
	maxOutput = 10_000
	preview   = 2_000
)

// bound replaces texts that are too long by a preview and the path of a file
// that has the whole.
func (r *Runner) bound(o *hook.Output) {
	for _, text := range []*string{&o.Context, &o.Reason, &o.PermissionReason, &o.SystemMessage, &o.StopReason} {
		*text = r.short(*text)
	}
	if o.Answer != nil {
		a := *o.Answer
		a.Message = r.short(a.Message)
		o.Answer = &a
	}
}

func (r *Runner) short(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	n := utf8.RuneCountInString(text)
	if n <= maxOutput {
		return text
	}
	err := errors.New("this session keeps no files")
	if r.cfg.Save != nil {
		var path string
		if path, err = r.cfg.Save("hook-"+r.cfg.NewID()+".txt", []byte(text)); err == nil {
			return fmt.Sprintf("%s…\n[Output of a hook, %d characters. The whole text is in %s]", first(text, preview), n, path)
		}
	}
	return fmt.Sprintf("%s…\n[Output of a hook, cut off: %d characters, and the rest could not be saved: %v]", first(text, maxOutput), n, err)
}

// first returns the first n characters.
func first(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
