package hook

import (
	"context"
	"fmt"
	"time"
)

// Func is a callback of the embedding program (H-132). toolUseID is that of the
// call that the event is about, "" for none. The context ends with the time
// limit and with the user turn; a callback that goes on all the same is not
// waited for. Callbacks of an event run at the same time. An error or a panic
// stops what is about to happen at PreToolUse and UserPromptSubmit, and nothing
// elsewhere (H-65, H-66).
type Func func(ctx context.Context, in Input, toolUseID string) (Output, error)

// On makes a Func of a function of one event's input. It is not called for
// other events.
//
//	hook.On(func(ctx context.Context, in *hook.PreToolUseInput) (hook.Output, error) { … })
func On[I Input](f func(ctx context.Context, in I) (Output, error)) Func {
	return func(ctx context.Context, in Input, _ string) (Output, error) {
		if own, ok := in.(I); ok {
			return f(ctx, own)
		}
		return Output{}, nil
	}
}

// Group is callbacks with one matcher (H-2).
type Group struct {
	// Matcher is compared with the event's own field, such as the name of the
	// tool: "" and "*" are everything, "Edit|Write" a list of exact names, and
	// text with other characters a regular expression (H-14 to H-18).
	Matcher string
	Hooks   []Func
	// Timeout is the time limit of each of them; 0: the event's (H-62).
	Timeout time.Duration
}

// Table is the callbacks of each event (O-42).
type Table map[Event][]Group

// Check returns the first fault of a table: an unknown event, a missing
// function, a negative time or a matcher that is no regular expression.
func (t Table) Check() error {
	for ev, groups := range t {
		if !ev.Known() {
			return fmt.Errorf("%q is not the name of an event", ev)
		}
		for i, g := range groups {
			fail := func(format string, args ...any) error {
				return fmt.Errorf("%s, group %d: %w", ev, i, fmt.Errorf(format, args...))
			}
			if _, err := compile(ev, g.Matcher); err != nil {
				return fail("%w", err)
			}
			if g.Timeout < 0 {
				return fail("the timeout %v is negative", g.Timeout)
			}
			for j, f := range g.Hooks {
				if f == nil {
					return fail("function %d is nil", j)
				}
			}
		}
	}
	return nil
}
