package loop

import (
	"slices"

	"github.com/turnwright/turnwright/message"
)

// refusePrefix begins what a call that never started is told (S-44).
const refusePrefix = "Not executed: "

// putResult stores and shows the one result of a call. A call that has one
// already gets no second. What it brings along for the model is stored with it,
// since nothing may stand between results, and is not shown.
func (s *step) putResult(c Call, content message.Content, isError bool, structured []byte, context ...message.Block) {
	if cur := s.call(c.Key); cur == nil || cur.Status == Done {
		return
	}
	if content.IsZero() || len(content.Blocks()) == 0 {
		content = message.TextContent("(no output)") // an empty result is refused by the API (B-109, B-155)
	}
	result := message.NewToolResult(c.ID, content, isError)
	body, stored := message.BlockContent(result), message.BlockContent(append([]message.Block{result}, context...)...)
	id := s.newID()
	s.put(Entry{Kind: KindUser, UUID: id, User: &UserEntry{Content: stored, ToolUseID: c.ID, Structured: structured}})
	s.emit(&message.User{
		Message:       message.UserBody{Role: message.RoleUser, Content: body},
		ToolUseResult: structured, Header: message.Header{UUID: id},
	})
}

// refuse gives every call that never started its result (L-28, L-197).
func (s *step) refuse(why string) {
	if why == "" {
		why = "the run ended first."
	}
	for _, c := range s.Calls() {
		if c.Status == Queued && !s.deferred(c.ID) {
			s.putResult(c, message.TextContent(refusePrefix+why), true, nil)
		}
	}
}

// deferred reports whether the call was left open for the next user turn.
func (m *Machine) deferred(id string) bool {
	return m.turn.Deferred != nil && m.turn.Deferred.ID == id
}

// answerFaults answers the calls that can never run: unknown tools, malformed
// or cut inputs (L-75, L-137).
func (s *step) answerFaults() {
	for _, c := range s.Calls() {
		if c.Status == Queued && c.Fault != FaultNone {
			text := c.FaultText
			if text == "" {
				text = "<tool_use_error>" + c.Name + ": the call cannot run (" + string(c.Fault) + ").</tool_use_error>"
			}
			s.putResult(c, message.TextContent(text), true, nil)
		}
	}
}

// decided takes the decision on a call of the open window.
func (s *step) decided(e Decided) {
	c := s.call(e.Key)
	if s.turn.State != Tools || c == nil || c.Status != Queued || !s.inWindow(e.Key) {
		return
	}
	call := *c
	for _, n := range e.Notices {
		s.emit(n)
	}
	switch {
	case e.Defer:
		call.Key, call.Status, call.Final = "", "", nil
		s.setTurn(func(t *Turn) { t.Deferred = &call })
		s.end(Ending{Subtype: message.Success, Terminal: message.TerminalToolDeferred})
		return
	case e.Allow && e.Halt != nil:
		// Not recorded as allowed: nobody would start it, and nothing would
		// tell its end.
	case e.Allow:
		s.put(Entry{Kind: KindCall, Call: &CallEntry{Op: CallAllowed, Key: e.Key, Input: e.Input, Reason: e.Reason}})
	default:
		s.put(Entry{Kind: KindCall, Call: &CallEntry{Op: CallDenied, Key: e.Key, Reason: e.Reason, Denial: e.Denial}})
		s.putResult(call, e.Content, true, nil, e.Context...)
	}
	if e.Halt != nil {
		s.settleAs(*e.Halt)
		return
	}
	s.batchDone()
}

func (s *step) inWindow(key string) bool {
	for _, w := range s.window() {
		if w.ID == key {
			return true
		}
	}
	return false
}

// finished takes the outcome of a running call, also of one that was cancelled.
func (s *step) finished(e Finished) {
	c := s.call(e.Key)
	if c == nil || c.Status != Running || s.turn.State != Tools && s.turn.State != Settle {
		return
	}
	for _, n := range e.State {
		s.put(Entry{Kind: KindState, State: &n})
	}
	structured := e.Structured
	if c.Internal && !e.Valid {
		structured = nil
	}
	s.putResult(*c, e.Content, e.IsError, structured, e.Context...)
	if e.Spend != nil {
		s.setTurn(func(t *Turn) { t.Spend = maxSpend(t.Spend, *e.Spend) })
	}
	switch {
	case s.turn.State == Settle:
		s.settled()
	case e.Halt != nil:
		s.settleAs(*e.Halt)
	case s.overBudget(s.turn.Spend) && !s.allDone():
		s.settleAs(s.budgetEnding())
	default:
		s.batchDone()
	}
}

func (s *step) allDone() bool {
	return !slices.ContainsFunc(s.calls, func(c Call) bool { return c.Status != Done })
}

// batchDone goes on when every call of the response has its result.
func (s *step) batchDone() {
	if s.turn.State != Tools || !s.allDone() {
		return
	}
	valid, internal, other := false, 0, 0
	for i := range s.calls {
		c := &s.calls[i]
		if c.Internal {
			internal++
			valid = valid || c.Valid
		} else {
			other++
		}
	}
	counts := s.turn.Counts
	count := func(t *Turn) {
		if counts {
			t.ToolTurns++
		}
		t.Counts = false
	}
	switch {
	case s.overBudget(s.turn.Spend):
		s.setTurn(count)
		s.end(s.budgetEnding())
	case valid:
		// A valid value ends the user turn; that response is its final turn
		// unless it was a tool turn itself (decision 54).
		s.complete(func(t *Turn) { count(t); t.Final = !counts })
	case internal > 0 && other == 0:
		s.setTurn(count)
		s.attempt(false)
	case s.cfg.BatchHooks:
		s.setTurn(func(t *Turn) { count(t); enter(t, Batch) })
	default:
		s.absorb()
		s.toModel(func(t *Turn) { count(t); t.Text = "" })
	}
}
