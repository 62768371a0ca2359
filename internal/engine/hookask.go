package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// answer finds the answer to a call that nothing decided: of whoever approves,
// and at the same time of the hooks of PermissionRequest; the first that decides
// counts and the other is withdrawn (W-165). Where nobody decides the call is
// denied (H-114, H-115).
func (s *Session) answer(ctx context.Context, c *checked, dec permission.Decision, d loop.Decided) loop.Event {
	unasked := func() loop.Event { return s.deny(c.call, c.spec, c.input, dec.Unasked(c.spec.Name), true) }
	hooked := s.hooks.run.Has(hook.PermissionRequest)
	if !hooked && s.cfg.Ask == nil {
		return unasked()
	}
	if !hooked {
		return s.askPerson(ctx, c, dec, d)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	byHook := make(chan *loop.Decided, 1)
	go func() {
		var out *loop.Decided
		defer func() { byHook <- out }() // also after a panic, which then decides nothing
		defer func() { _ = recover() }()
		out = s.askHooks(ctx, c, dec, d)
	}()
	if s.cfg.Ask == nil {
		if out := <-byHook; out != nil {
			return *out
		}
		return unasked()
	}
	byPerson := make(chan loop.Event, 1)
	go func() { byPerson <- s.askPerson(ctx, c, dec, d) }()
	select {
	case out := <-byHook:
		if out != nil {
			cancel()
			return *out
		}
		return <-byPerson
	case out := <-byPerson:
		return out
	}
}

func (s *Session) askPerson(ctx context.Context, c *checked, dec permission.Decision, d loop.Decided) loop.Event {
	defer s.notifying(c.about, c.spec.Name)()
	return s.ask(ctx, c.call, c.spec, c.input, dec, d, func(input json.RawMessage) (permission.Decision, error) {
		return s.decideHooked(c, input)
	})
}

// askHooks runs the hooks of PermissionRequest; nil: they decide nothing.
func (s *Session) askHooks(ctx context.Context, c *checked, dec permission.Decision, d loop.Decided) *loop.Decided {
	m := s.runHooks(ctx, &hook.PermissionRequestInput{
		Base: c.about, ToolName: c.spec.Name, ToolInput: c.input, Suggestions: s.admitted(dec.Suggestions),
	}, s.condition(c), c.call.ID)
	if m.Stop {
		return &loop.Decided{Key: c.call.Key, Allow: true, Halt: hookStopped(hook.PermissionRequest, m.StopReason)}
	}
	a := m.Answer
	switch {
	case a == nil || ctx.Err() != nil:
		return nil
	case !a.Allow:
		text := a.Message
		if text == "" {
			text = permission.DenyText(c.spec.Name, "a PermissionRequest hook", false)
		}
		out := s.deny(c.call, c.spec, c.input, permission.Decision{
			Reason: "denied by a PermissionRequest hook", ReasonType: "hook", Message: text,
		}, true)
		if a.Interrupt {
			out.Halt = interruptedBy("PermissionRequest hook", text)
		}
		return &out
	}
	d.Reason = "allowed by a PermissionRequest hook"
	if a.UpdatedInput != nil {
		final, err := s.tools.Prepare(s.env(), c.spec.Name, a.UpdatedInput)
		if err == nil {
			err = s.recheck(c, final)
		}
		if err != nil { // H-113
			return &loop.Decided{Key: c.call.Key, Reason: "the input of a PermissionRequest hook cannot be used", Content: message.TextContent(err.Error())}
		}
		c.input, d.Input = final, final
	}
	s.update(a.Updates)
	return &d
}

// recheck holds an input that a hook changed against deny and ask rules (H-113).
func (s *Session) recheck(c *checked, input json.RawMessage) error {
	dec, err := s.decideWith(c.tool, c.spec, input, func(r *permission.Request) { c.judged.note(input, r.Accesses) })
	switch {
	case err != nil:
		return err
	case dec.Behavior == permission.Deny:
		return errors.New(dec.Message)
	case dec.Behavior == permission.Ask && dec.ReasonType == permission.ReasonRule:
		return errors.New(dec.Unasked(c.spec.Name).Message)
	}
	return nil
}

// interruptedBy ends the user turn with a denial (L-147).
func interruptedBy(who, text string) *loop.Ending {
	return &loop.Ending{
		By:      who,
		Subtype: message.ErrorDuringExecution, Terminal: message.TerminalAbortedTools,
		Errors: []string{"Request interrupted: " + text}, Refusal: "the request was interrupted.",
	}
}
