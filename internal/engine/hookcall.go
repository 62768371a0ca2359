package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// checked is a call on its way through the gate.
type checked struct {
	call  loop.Call
	tool  tool.Tool
	spec  tool.Spec
	about hook.Base
	alone bool            // the only call of its response
	input json.RawMessage // as hooks left it (P-37)

	// What PreToolUse hooks said.
	original json.RawMessage // nil: they did not change the input
	decision hook.Permission
	reason   string
	contexts []string

	judged judged
}

// judged are the accesses of a call by its input, as they were when the gate
// judged them last: hooks and whoever approves may change the input. What the
// final one accessed is what was approved.
type judged struct {
	mu      sync.Mutex
	byInput map[string][]permission.Access
}

func (j *judged) note(input json.RawMessage, accesses []permission.Access) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byInput == nil {
		j.byInput = map[string][]permission.Access{}
	}
	j.byInput[string(input)] = accesses
}

func (j *judged) of(input json.RawMessage) []permission.Access {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.byInput[string(input)]
}

// preToolUse runs the hooks that every call passes first (P-28). It returns the
// outcome where they end the matter.
func (s *Session) preToolUse(ctx context.Context, c *checked) *loop.Decided {
	if !s.hooks.run.Has(hook.PreToolUse) {
		return nil
	}
	in := &hook.PreToolUseInput{Base: c.about, ToolName: c.spec.Name, ToolInput: c.input, ToolUseID: c.call.ID}
	m := s.runHooks(ctx, in, s.condition(c), c.call.ID)
	c.decision, c.reason, c.contexts = m.Permission, m.Reason, m.Contexts
	switch {
	case m.Stop && m.Permission == hook.Deny:
		d := s.hookDenied(c, m)
		d.Halt = hookStopped(hook.PreToolUse, m.StopReason)
		return d
	case m.Stop: // not allowed by that: the call is told that it did not run
		return &loop.Decided{Key: c.call.Key, Allow: true, Halt: hookStopped(hook.PreToolUse, m.StopReason)}
	case m.Permission == hook.Deny:
		return s.hookDenied(c, m)
	case m.Permission == hook.Defer && c.alone:
		return &loop.Decided{Key: c.call.Key, Defer: true}
	case m.Permission == hook.Defer: // L-140
		c.decision, c.reason = "", ""
		s.emit(&message.Informational{
			Content: hook.Name(in) + " hook: a call can be deferred only if it is the only one of its message, so this is ignored.",
			Level:   "warning", ToolUseID: c.call.ID,
		})
	}
	if m.UpdatedInput == nil {
		return nil
	}
	changed, err := s.tools.Prepare(s.env(), c.spec.Name, m.UpdatedInput)
	if err != nil { // H-107
		return &loop.Decided{
			Key: c.call.Key, Reason: "invalid input of a PreToolUse hook", Context: reminders(hook.PreToolUse, c.contexts),
			Content: message.TextContent(fmt.Sprintf("The call was not run: a PreToolUse hook changed its input to one that is not valid. %v", err)),
		}
	}
	c.original, c.input = c.input, changed
	return nil
}

// hookDenied is the result of a call that hooks denied: their reason (W-158).
// No permission_denied tells of it (P-137).
func (s *Session) hookDenied(c *checked, m hook.Merged) *loop.Decided {
	text := m.Reason
	if text == "" {
		text = permission.DenyText(c.spec.Name, "a PreToolUse hook", false)
	}
	d := s.deny(c.call, c.spec, c.input, permission.Decision{Reason: "denied by a PreToolUse hook", Message: text}, false)
	d.Context = reminders(hook.PreToolUse, c.contexts)
	if errors.Is(m.Failure, ErrChannelLost) {
		d.Halt = lostChannel(m.Failure)
	}
	return &d
}

// lostChannel ends a user turn whose calls nobody can decide on any more (case
// B-172).
func lostChannel(err error) *loop.Ending {
	return &loop.Ending{
		Subtype: message.ErrorDuringExecution, Terminal: message.TerminalAbortedTools,
		By: "lost channel", Errors: []string{err.Error()}, Refusal: "the run lost the way to whoever approves its calls.",
	}
}

// condition is the call as the field "if" of a handler sees it (H-22).
func (s *Session) condition(c *checked) *permission.Request {
	r, err := s.inquiry(c.tool, c.spec, c.input)
	if err != nil {
		return nil
	}
	return &r
}

// withHooks applies what PreToolUse hooks decided to what rules and mode say.
func (s *Session) withHooks(c *checked, dec permission.Decision) permission.Decision {
	if c.original != nil && dec.Behavior != permission.Deny {
		// A denial that matches what the model wrote holds too (B-068).
		own, err := s.decide(c.tool, c.spec, c.original)
		switch {
		case err != nil:
			return permission.Decision{Behavior: permission.Deny, Reason: "the permission check failed", Message: err.Error(), ReasonType: permission.ReasonOther}
		case own.Behavior == permission.Deny && own.ReasonType == permission.ReasonRule:
			return own
		}
	}
	if c.decision != hook.Ask || dec.Behavior == permission.Deny {
		return dec
	}
	reason := c.reason // P-36
	if reason == "" {
		reason = "a PreToolUse hook asks for it"
	}
	if mode := s.rules.get().Mode; mode == permission.ModeDontAsk { // P-15
		step := fmt.Sprintf("permission mode %q (%s)", mode, reason)
		return permission.Decision{
			Behavior: permission.Deny, ReasonType: permission.ReasonMode, Reason: step,
			Message: permission.DenyText(c.spec.Name, step, true),
		}
	}
	dec.Behavior, dec.Reason, dec.ReasonType = permission.Ask, reason, "hook"
	return dec
}

// settleCall keeps what hooks have on a call that is going to run, and puts what
// they said next to the result of one that is not.
func (s *Session) settleCall(c *checked, out loop.Event) loop.Event {
	d, ok := out.(loop.Decided)
	if !ok {
		return out
	}
	if d.Allow && c.decision == hook.Allow && c.reason != "" { // H-105
		s.emit(&message.Informational{Content: hook.Name(&hook.PreToolUseInput{ToolName: c.spec.Name}) + ": " + c.reason, Level: "info", ToolUseID: c.call.ID})
	}
	if !d.Allow {
		d.Context = append(d.Context, reminders(hook.PreToolUse, c.contexts)...)
		return d
	}
	if d.Input != nil {
		c.input = d.Input
	}
	s.approvals.put(c.call.Key, c.judged.of(c.input))
	if len(c.contexts) > 0 || s.hooks.run.Has(hook.PostToolBatch) {
		s.hooks.mu.Lock()
		defer s.hooks.mu.Unlock()
		s.hooks.calls[c.call.ID] = &hookedCall{input: c.input, contexts: c.contexts}
	}
	return d
}

// contexts takes what PreToolUse hooks had to say on a call.
func (s *Session) contexts(id string) []string {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	h := s.hooks.calls[id]
	if h == nil {
		return nil
	}
	contexts := h.contexts
	if h.contexts = nil; !s.hooks.run.Has(hook.PostToolBatch) {
		delete(s.hooks.calls, id)
	}
	return contexts
}

// afterRun runs the hooks of a call that has come back by itself (T-15), and
// puts what hooks said next to its result (H-52).
func (s *Session) afterRun(ctx context.Context, c *checked, f loop.Finished, took time.Duration) loop.Finished {
	f.Context = append(f.Context, reminders(hook.PreToolUse, s.contexts(c.call.ID))...)
	ev := hook.PostToolUse
	if f.IsError {
		ev = hook.PostToolUseFailure
	}
	if ctx.Err() != nil || !s.hooks.run.Has(ev) { // T-26
		return f
	}
	c.about.CWD = s.workDir() // the call may have changed it (H-27)
	var in hook.Input
	if f.IsError {
		in = &hook.PostToolUseFailureInput{
			Base: c.about, ToolName: c.spec.Name, ToolInput: c.input, ToolUseID: c.call.ID,
			Error: cutMiddle(f.Content.Text()), DurationMS: took.Milliseconds(),
		}
	} else {
		in = &hook.PostToolUseInput{
			Base: c.about, ToolName: c.spec.Name, ToolInput: c.input, ToolUseID: c.call.ID,
			ToolResponse: response(f), DurationMS: took.Milliseconds(),
		}
	}
	m := s.runHooks(ctx, in, s.condition(c), c.call.ID)
	if ev == hook.PostToolUse && m.UpdatedOutput != nil && !replaceOutput(&f, m.UpdatedOutput) {
		s.emit(&message.Informational{
			Content: hook.Name(in) + " hook: its updatedToolOutput has not the shape of the tool's output, so it is ignored.",
			Level:   "warning", ToolUseID: c.call.ID,
		})
	}
	if m.Block && m.Reason != "" { // H-110
		f.Context = append(f.Context, message.NewText(reminder(hook.Name(in)+" hook feedback: "+m.Reason)))
	}
	f.Context = append(f.Context, reminders(ev, m.Contexts)...)
	if m.Stop {
		f.Halt = hookStopped(ev, m.StopReason)
	}
	return f
}

// maxError bounds the text of a failure for hooks, in characters (H-112).
const maxError = 10_000

// cutMiddle leaves out the middle of a long text.
func cutMiddle(s string) string {
	rs := []rune(s)
	if len(rs) <= maxError {
		return s
	}
	half := maxError / 2
	return fmt.Sprintf("%s\n... [%d characters truncated] ...\n%s", string(rs[:half]), len(rs)-maxError, string(rs[len(rs)-half:]))
}

// response is a result for hooks: structured where the tool has such an output,
// else what the model sees (T-28).
func response(f loop.Finished) json.RawMessage {
	if f.Structured != nil {
		return f.Structured
	}
	return encoded(f.Content)
}

func encoded(c message.Content) json.RawMessage {
	raw, err := message.Encode(c)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// replaceOutput puts a hook's output in place of the tool's (H-111). The output
// of a tool with structured results must keep its shape. The model sees the text
// of a command's output as the command's, and other objects as JSON.
func replaceOutput(f *loop.Finished, v json.RawMessage) bool {
	if f.Structured == nil {
		f.Content = contentFrom(v)
		return true
	}
	var was, now any
	if json.Unmarshal(f.Structured, &was) != nil || json.Unmarshal(v, &now) != nil || !sameShape(was, now) {
		return false
	}
	f.Structured = v
	f.Content = message.TextContent(string(bytes.TrimSpace(v)))
	if out, ok := now.(map[string]any); ok {
		stdout, isText := out["stdout"].(string)
		stderr, _ := out["stderr"].(string)
		if isText {
			f.Content = message.TextContent(strings.Trim(stdout+"\n"+stderr, "\n"))
		}
	}
	return true
}

// contentFrom reads a value as content: a text, blocks, or any other value as
// its JSON.
func contentFrom(v json.RawMessage) message.Content {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return message.TextContent(text)
	}
	var raws []json.RawMessage
	if json.Unmarshal(v, &raws) == nil && len(raws) > 0 {
		blocks := make([]message.Block, 0, len(raws))
		for _, raw := range raws {
			b, err := message.ParseBlock(raw)
			if err != nil {
				return message.TextContent(string(v))
			}
			blocks = append(blocks, b)
		}
		return message.BlockContent(blocks...)
	}
	return message.TextContent(string(v))
}

// sameShape reports whether two values of JSON have the same kinds in the same
// places.
func sameShape(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !sameShape(v, w) {
				return false
			}
		}
		return true
	case []any:
		_, ok := b.([]any)
		return ok
	case nil:
		return true
	}
	return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b)
}

// batch runs the hooks after all calls of a response (L-150).
func (s *Session) batch(id string) func(context.Context) loop.Event {
	in := &hook.PostToolBatchInput{Base: s.about(), ToolCalls: s.lastCalls()}
	return func(ctx context.Context) loop.Event {
		m := s.runHooks(ctx, in, nil, "")
		out := loop.Batched{ID: id, Context: reminders(hook.PostToolBatch, m.Contexts)}
		if m.Block && !m.Stop {
			s.emit(&message.Informational{Content: m.Reason, Level: "notice", PreventContinuation: true})
		}
		if m.Block || m.Stop {
			out.Halt = hookStopped(hook.PostToolBatch, m.StopReason)
		}
		return out
	}
}

// lastCalls are the calls of the newest response with what the model sees of
// their results (T-28).
func (s *Session) lastCalls() []hook.BatchCall {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	calls := []hook.BatchCall{}
	results := map[string]json.RawMessage{}
	items := s.machine.History().Items()
	for i := len(items) - 1; i >= 0; i-- {
		for _, b := range items[i].Blocks {
			if r, ok := b.ToolResult(); ok {
				results[r.ToolUseID] = encoded(r.Content)
			}
		}
		if items[i].Role != message.RoleAssistant {
			continue
		}
		for _, b := range items[i].Blocks {
			if u, ok := b.ToolUse(); ok {
				c := hook.BatchCall{ToolName: u.Name, ToolInput: u.Input, ToolUseID: u.ID, ToolResponse: results[u.ID]}
				if h := s.hooks.calls[u.ID]; h != nil {
					c.ToolInput = h.input
				}
				calls = append(calls, c)
			}
		}
		break
	}
	clear(s.hooks.calls)
	return calls
}
