package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// ErrChannelLost is what an approval callback returns, wrapped or not, when
// the way to the person who answers is gone for good. It ends the user turn
// instead of denying call after call (case B-172).
var ErrChannelLost = errors.New("the channel to whoever approves tool calls is lost")

// callInput finds the input that the model wrote for an open call.
func (s *Session) callInput(c loop.Call) json.RawMessage {
	items := s.machine.History().Items()
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Role != message.RoleAssistant {
			continue
		}
		for _, b := range items[i].Blocks {
			if u, ok := b.ToolUse(); ok && u.ID == c.ID {
				return u.Input
			}
		}
	}
	return json.RawMessage("{}")
}

// check decides whether a call of the open window may run: schema, then rules
// and mode, then whoever can be asked (T-15, P-27).
func (s *Session) check(key string) func(context.Context) loop.Event {
	c, _ := s.machine.Call(key)
	input := s.callInput(c)
	about, alone := s.about(), len(s.machine.Calls()) == 1
	return func(ctx context.Context) loop.Event {
		final, err := s.tools.Prepare(s.env(), c.Name, input)
		if err != nil {
			return loop.Decided{Key: key, Reason: "invalid input", Content: message.TextContent(err.Error())}
		}
		k := &checked{call: c, about: about, alone: alone, input: final}
		k.tool, k.spec, _ = s.tools.Get(c.Name)
		if end := s.preToolUse(ctx, k); end != nil {
			return *end
		}
		dec, err := s.decideHooked(k, k.input)
		if err != nil {
			return loop.Decided{Key: key, Reason: "the permission check failed", Content: message.TextContent(err.Error())}
		}
		d := loop.Decided{Key: key, Allow: true, Reason: dec.Reason}
		if string(k.input) != string(input) {
			d.Input = k.input
		}
		var out loop.Event = d
		switch dec.Behavior {
		case permission.Allow:
		case permission.Ask:
			out = s.answer(ctx, k, dec, d)
		default:
			out = s.deny(c, k.spec, k.input, dec.Unasked(k.spec.Name), true)
		}
		return s.settleCall(k, out)
	}
}

// decide asks the gate about a call that no hook has approved.
func (s *Session) decide(t tool.Tool, spec tool.Spec, input json.RawMessage) (permission.Decision, error) {
	return s.decideWith(t, spec, input, nil)
}

// decideHooked asks it about a call that PreToolUse hooks have seen.
func (s *Session) decideHooked(k *checked, input json.RawMessage) (permission.Decision, error) {
	dec, err := s.decideWith(k.tool, k.spec, input, func(r *permission.Request) {
		r.HookAllows, r.HookInput = k.decision == hook.Allow, k.original != nil
		k.judged.note(input, r.Accesses)
	})
	if err != nil {
		return dec, err
	}
	return s.withHooks(k, dec), nil
}

// decideWith asks the gate. byHook, if not nil, sees the request first. A panic in a tool's own description of the call
// denies it: the gate fails closed.
func (s *Session) decideWith(t tool.Tool, spec tool.Spec, input json.RawMessage, byHook func(*permission.Request)) (dec permission.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s was not run: its permission check panicked: %v", spec.Name, p)
		}
	}()
	return s.gate(t, spec, input, byHook)
}

// deny turns a decision into the call's result and record (P-135, P-136).
func (s *Session) deny(c loop.Call, spec tool.Spec, input json.RawMessage, dec permission.Decision, announce bool) loop.Decided {
	d := loop.Decided{
		Key: c.Key, Reason: dec.Reason, Content: message.TextContent(dec.Message),
		Denial: &message.PermissionDenial{ToolName: spec.Name, ToolUseID: c.ID, ToolInput: input},
	}
	if announce {
		d.Notices = []message.Message{&message.PermissionDenied{
			ToolName: spec.Name, ToolUseID: c.ID, DecisionReasonType: dec.ReasonType,
			DecisionReason: dec.Reason, Message: dec.Message,
		}}
	}
	return d
}

// ask puts the call to whoever approves. It waits as long as it takes (L-146);
// a panic or an error denies (P-120). decide judges an input by the rules of the
// moment: while others were asked a rule for this call may have come (P-129),
// and rules that deny hold for an input that the answer changed too (P-119).
func (s *Session) ask(ctx context.Context, c loop.Call, spec tool.Spec, input json.RawMessage, dec permission.Decision, d loop.Decided, decide func(json.RawMessage) (permission.Decision, error)) loop.Event {
	var ans AskAnswer
	over, err := s.turnToAsk(ctx)
	if err == nil {
		switch now, fault := decide(input); {
		case fault != nil:
			over()
			return loop.Decided{Key: c.Key, Reason: "the permission check failed", Content: message.TextContent(fault.Error())}
		case now.Behavior == permission.Ask:
			dec = now
			ans, err = s.askSafely(ctx, s.question(c, spec, input, dec), over)
		case now.Behavior == permission.Allow:
			over()
			d.Reason = now.Reason
			return d
		default:
			over()
			return s.deny(c, spec, input, now, true)
		}
	}
	if err != nil {
		dec.Message = fmt.Sprintf("%s was not run: asking for approval failed: %v", spec.Name, err)
		dec.Reason, dec.ReasonType = "the approval callback failed", "other"
		out := s.deny(c, spec, input, dec, false)
		if errors.Is(err, ErrChannelLost) {
			out.Halt = lostChannel(err)
		}
		return out
	}
	if !ans.Allow {
		dec.Message, dec.Reason = ans.Message, "denied by the approval callback"
		if dec.Message == "" {
			dec.Message = "The user does not want to run " + spec.Name + " now."
		}
		out := s.deny(c, spec, input, dec, false)
		if ans.Interrupt {
			out.Halt = interruptedBy("approval callback", dec.Message)
		}
		return out
	}
	d.Reason = "allowed by the approval callback"
	if ans.Input != nil {
		final, err := s.tools.Prepare(s.env(), spec.Name, ans.Input)
		if err != nil {
			return loop.Decided{Key: c.Key, Reason: "invalid updated input", Content: message.TextContent(err.Error())}
		}
		again, err := decide(final)
		if err == nil && again.Behavior == permission.Deny {
			err = errors.New(again.Message)
		}
		if err != nil {
			return loop.Decided{Key: c.Key, Reason: "the updated input is denied", Content: message.TextContent(err.Error())}
		}
		d.Input = final
	}
	return d
}

// askSafely asks, makes the changes that come with a yes, and then calls over, so
// that they decide the calls that wait to be asked about (P-129). The wait ends
// with the answer or with ctx, whether the callback heeds it or not; the question
// is over when the callback has come back.
func (s *Session) askSafely(ctx context.Context, r AskRequest, over func()) (AskAnswer, error) {
	type outcome struct {
		ans AskAnswer
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("the approval callback panicked: %v", p)
			}
			done <- o
		}()
		o.ans, o.err = s.cfg.Ask(ctx, r)
	}()
	select {
	case o := <-done:
		if o.err == nil && o.ans.Allow {
			s.update(o.ans.Updates)
		}
		over()
		return o.ans, o.err
	case <-ctx.Done():
		go func() {
			<-done
			over()
		}()
		return AskAnswer{}, ctx.Err()
	}
}

// run runs an allowed call and waits for it; cancelled, it waits for a grace
// time more and then gives the call up.
func (s *Session) run(key string) func(context.Context) loop.Event {
	c, _ := s.machine.Call(key)
	input := s.callInput(c)
	if in := s.machine.FinalInput(key); in != nil {
		input = in
	}
	if s.aborted && !c.Repeatable {
		return func(context.Context) loop.Event {
			return loop.Finished{Key: key, IsError: true, Content: message.TextContent("Not executed: the session could not be saved.")}
		}
	}
	t, spec, ok := s.tools.Get(c.Name)
	about := s.about()
	return func(ctx context.Context) loop.Event {
		if !ok {
			return loop.Finished{Key: key, IsError: true, Content: message.TextContent((&tool.UnknownToolError{Name: c.Name, Known: s.tools.Names()}).Error())}
		}
		if err := s.out.waitRoom(ctx); err != nil {
			return loop.Finished{Key: key, IsError: true, Content: message.TextContent("Not executed: the request was interrupted.")}
		}
		call := &tool.Call{
			ID: c.ID, Key: s.cfg.Loop.SessionID + "/" + key, Name: c.Name, Input: input, Env: s.env(), Approved: s.approvals.take(c.Key),
		}
		start := s.cfg.Now()
		f := s.finish(key, spec, func() (*tool.Result, error) {
			return s.await(ctx, loop.Effect{Kind: loop.DoRun, ID: key}, t, spec, call)
		})
		s.noteKill(ctx, &f)
		s.broughtAlong(ctx, t, c.Name, input, &f)
		k := &checked{call: c, tool: t, spec: spec, about: about, input: input}
		return s.afterRun(ctx, k, f, s.since(start))
	}
}

// What the result of a call says whose outcome is not known (S-44).
const (
	unknownOutcome = "Interrupted: the outcome of this call is unknown; it may have run in part. Check before repeating it."
	killedCall     = "Killed: the process was told to end while this call ran; it may have run in part. Check before repeating it."
)

// noteKill makes the result of a call that the end of the process cut off say
// so, before what the tool has to say (L-208).
func (s *Session) noteKill(ctx context.Context, f *loop.Finished) {
	if ctx.Err() == nil || !f.IsError || !s.killed.Load() {
		return
	}
	if !f.Content.IsText() {
		f.Content = message.BlockContent(append([]message.Block{message.NewText(killedCall)}, f.Content.Blocks()...)...)
		return
	}
	text := killedCall
	if rest := strings.TrimPrefix(f.Content.Text(), unknownOutcome); rest != "" {
		text += "\n" + strings.TrimSpace(rest)
	}
	f.Content = message.TextContent(text)
}

// finish turns a result or an error into the outcome of the call.
func (s *Session) finish(key string, spec tool.Spec, do func() (*tool.Result, error)) loop.Finished {
	res, err := do()
	f := loop.Finished{Key: key}
	switch {
	case err != nil:
		f.IsError, f.Content = true, message.TextContent(err.Error())
	case res == nil:
		f.Content = message.TextContent("(no output)")
	default:
		f.IsError, f.Structured = res.IsError, res.Structured
		f.Content = contentOf(res.Content)
	}
	if f.Structured != nil && !json.Valid(f.Structured) {
		f.Structured = nil
	}
	for k, v := range s.state.Dirty() {
		f.State = append(f.State, loop.StateNote{Key: k, Value: v})
	}
	sortNotes(f.State)
	return f
}

// contentOf leaves out empty texts, which the API refuses (B-109, B-155).
func contentOf(blocks []message.Block) message.Content {
	keep := make([]message.Block, 0, len(blocks))
	for _, b := range blocks {
		if b.IsZero() || b.Type() == message.TypeText && b.Text() == "" {
			continue
		}
		keep = append(keep, b)
	}
	if len(keep) == 1 && keep[0].Type() == message.TypeText {
		return message.TextContent(keep[0].Text())
	}
	return message.BlockContent(keep...)
}

// await runs the call. A tool that does not heed its context is given up by
// work.
func (s *Session) await(ctx context.Context, eff loop.Effect, t tool.Tool, spec tool.Spec, call *tool.Call) (*tool.Result, error) {
	if spec.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, spec.Timeout, &TimeoutError{Tool: spec.Name, Limit: spec.Timeout})
		defer cancel()
		defer s.guard(limited, eff)()
		ctx = limited
	}
	start := s.cfg.Now()
	beat := s.beats.add(func() {
		s.emit(&message.ToolProgress{
			ToolUseID: call.ID, ToolName: spec.Name, ElapsedTimeSeconds: s.since(start).Seconds(), Heartbeat: true,
		})
	})
	defer s.beats.remove(beat)
	if s.cfg.Debug != nil {
		s.cfg.Debug("tool", fmt.Sprintf("%s %s begins: %s", spec.Name, call.ID, call.Input))
		defer func() { s.cfg.Debug("tool", fmt.Sprintf("%s %s ended after %v", spec.Name, call.ID, s.since(start))) }()
	}
	res, err := callSafely(ctx, t, spec, call)
	if err != nil && ctx.Err() != nil {
		return nil, interrupted(ctx, err)
	}
	return res, err
}

// interrupted is what a cancelled call's result says (S-44, T-26).
func interrupted(ctx context.Context, err error) error {
	var timeout *TimeoutError
	if errors.As(context.Cause(ctx), &timeout) {
		return timeout
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s (%w)", unknownOutcome, err)
	}
	return errors.New(unknownOutcome)
}

// TimeoutError is the failure of a call that took longer than its tool allows.
type TimeoutError struct {
	Tool  string
	Limit time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("The tool %s did not finish within %v and was stopped; it may have run in part.", e.Tool, e.Limit)
}

// callSafely turns a panic of the tool into an error that names it (L-137).
func callSafely(ctx context.Context, t tool.Tool, spec tool.Spec, call *tool.Call) (res *tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &tool.PanicError{Tool: spec.Name, Value: p}
		}
	}()
	return t.Call(ctx, call)
}

// env is what calls of this session know of it at their start.
func (s *Session) env() *tool.Env {
	policy := s.rules.get()
	return &tool.Env{
		Dir: s.cfg.Dir, Dirs: policy.Added(), SessionID: s.cfg.Loop.SessionID, State: s.state, Tasks: s.tasks,
		Getenv: s.getenv, Environ: s.cfg.Environ,
		PutBlob:    s.putBlob,
		ReadDenied: policy.ReadDenied,
		NeedsRead:  s.needsRead(), BeforeChange: s.beforeChange(),
	}
}

func (s *Session) putBlob(name string, data []byte) (string, error) {
	path, err := s.jour.blob(s.base, name, data)
	if err == nil {
		s.outputs.add(path)
	}
	return path, err
}
