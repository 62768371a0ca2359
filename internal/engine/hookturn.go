package engine

import (
	"context"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// admission is what hooks make of a prompt before its turn.
type admission struct {
	before, context []message.Block
	local           *loop.Local // the turn ends without the model
	first           string      // another prompt comes first (H-122)
}

// admitHooks runs the hooks of the session's start and of the prompt. showInit
// shows the init message: only what starts the session may stand before it
// (L-3).
func (s *Session) admitHooks(ctx context.Context, id string, in *loop.Input, about hook.Base, start *hook.SessionStartInput, showInit func()) (a admission) {
	begun := s.begin(ctx, start)
	if a.first = begun.InitialMessage; a.first != "" {
		return a
	}
	late := s.hooks.run.Late() // what background hooks have said meanwhile (H-68)
	prompts := s.hooks.run.Has(hook.UserPromptSubmit) && !isInjected(in)
	if prompts || len(begun.Notices)+len(late.Notices) > 0 || begun.Stop {
		showInit()
	}
	s.tell(begun, "")
	s.tell(late, "")
	a.before = reminders(hook.SessionStart, begun.Contexts)
	a.context = reminders("Background", late.Contexts)
	if begun.Stop {
		a.local = &loop.Local{ID: id, Ending: emptyStop(hook.SessionStart, begun.StopReason)}
		return a
	}
	if !prompts {
		a.context = append(a.context, s.mentions(ctx, in)...)
		return a
	}
	m := s.runHooks(ctx, &hook.UserPromptSubmitInput{Base: about, Prompt: in.Content.Text(), SessionTitle: s.jour.title()}, nil, "")
	s.jour.setTitle(m.Title)
	switch {
	case m.Stop:
		a.local = &loop.Local{ID: id, Ending: emptyStop(hook.UserPromptSubmit, m.StopReason)}
	case m.Block: // H-120, H-121
		text := "The prompt was blocked by a hook: " + m.Reason
		if !m.HidePrompt {
			text += "\n\nOriginal prompt: " + in.Content.Text()
		}
		a.local = &loop.Local{ID: id, Notices: []message.Message{&message.Informational{
			Content: text, Level: "warning", PreventContinuation: true,
		}}}
	}
	if a.local == nil { // a prompt that goes nowhere needs no files
		a.context = append(a.context, s.mentions(ctx, in)...)
	}
	a.context = append(a.context, reminders(hook.UserPromptSubmit, m.Contexts)...)
	return a
}

// begin runs the hooks of the session's start. Where they have a prompt of their
// own, the rest of what they say waits for its turn.
func (s *Session) begin(ctx context.Context, start *hook.SessionStartInput) (m hook.Merged) {
	if start == nil {
		m, s.hooks.start = s.hooks.start, m
		return m
	}
	m = s.runQuietly(ctx, start, nil, "")
	s.jour.setTitle(m.Title)
	switch {
	case m.Stop:
		m.InitialMessage = ""
	case m.InitialMessage != "":
		s.hooks.start = m
		s.hooks.start.InitialMessage = ""
		m = hook.Merged{InitialMessage: m.InitialMessage}
	}
	return m
}

// emptyStop is how a user turn ends that a hook stopped before it began.
func emptyStop(ev hook.Event, reason string) *loop.Ending {
	e := hookStopped(ev, reason)
	e.Text = new("")
	return e
}

// unavailable ends a user turn whose open call has no tool any more (L-141); nil:
// there is none. It belongs to the actor.
func (s *Session) unavailable() *loop.Ending {
	c := s.machine.Turn().Deferred
	if c == nil {
		return nil
	}
	if _, _, ok := s.tools.Get(c.Name); ok {
		return nil
	}
	return &loop.Ending{
		Subtype: message.Success, IsError: true, Terminal: message.TerminalToolDeferredUnavailable,
		Text: new("The deferred call cannot go on: there is no tool named " + strconv.Quote(c.Name) + " in this session."),
	}
}

// isInjected reports a message that the session itself made: no hook of prompts
// is asked about it.
func isInjected(in *loop.Input) bool {
	return in.Origin != nil && in.Origin.Kind == message.OriginTaskNotification
}

// starting is the input of SessionStart hooks when the session has not begun
// yet; nil: it has, or there are none. It belongs to the actor.
func (s *Session) starting() *hook.SessionStartInput {
	if s.hooks.begun.Swap(true) || !s.hooks.run.Has(hook.SessionStart) {
		return nil
	}
	in := &hook.SessionStartInput{
		Base: s.about(), Source: "startup", Model: s.machine.Settings().Model, SessionTitle: s.jour.title(),
	}
	switch { // S-49
	case s.cfg.Resume != nil && s.cfg.Resume.Journal == nil:
		in.Source = "fork"
	case s.cfg.Resume != nil:
		in.Source = "resume"
	}
	return in
}

// stopHooks runs the hooks that may keep the agent going (H-116).
func (s *Session) stopHooks(id string) func(context.Context) loop.Event {
	t := s.machine.Turn()
	in := &hook.StopInput{
		Base: s.about(), StopHookActive: t.StopBlocks > 0, LastAssistantMessage: t.Text,
		BackgroundTasks: s.tasks.background(),
	}
	return func(ctx context.Context) loop.Event {
		m := s.runHooks(ctx, in, nil, "")
		if m.Stop {
			return loop.Stopped{ID: id, Halt: hookStopped(hook.Stop, m.StopReason)}
		}
		var parts []string
		if m.Block {
			parts = append(parts, "Stop hook feedback:\n"+m.Reason)
		}
		for _, c := range m.Contexts {
			parts = append(parts, reminder("Stop hook additional context: "+c))
		}
		return loop.Stopped{ID: id, Block: strings.Join(parts, "\n\n")}
	}
}

// stopFailure tells hooks of a turn that an API error ends (H-85). What they say
// changes nothing.
func (s *Session) stopFailure(ctx context.Context, about hook.Base, ev loop.Event, text string) {
	in := &hook.StopFailureInput{Base: about, LastAssistantMessage: text}
	switch ev := ev.(type) {
	case loop.Failed:
		in.Error, in.ErrorDetails = string(ev.Category), ev.Text
	case loop.TooLong:
		if s.cfg.Loop.CompactAt > 0 {
			return // a compaction may still help
		}
		in.Error, in.ErrorDetails = string(message.CategoryInvalidRequest), ev.Text
	case loop.Response:
		if ev.Broken == nil || len(ev.Calls) > 0 {
			return
		}
		in.Error, in.ErrorDetails = string(ev.Broken.Category), ev.Broken.Notice
		in.LastAssistantMessage = ev.Text
	default:
		return
	}
	if in.Error == "" {
		in.Error = string(message.CategoryUnknown)
	}
	if ctx.Err() == nil {
		s.runHooks(ctx, in, nil, "")
	}
}
