package loop

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/turnwright/turnwright/message"
)

// Texts that go to the model when the loop asks it to go on.
const (
	continueText = "Your reply was cut off at the output limit. Go on exactly where it stopped, without repeating anything."
	repeatedText = "Not executed: the response before this one broke off as well and made the same call, which was executed; its result stands above."
	schemaText   = "Answer by calling the StructuredOutput tool with a value that fits its schema."
)

// stopWindow is the stop reason of a response that filled the window (L-79).
const stopWindow = "model_context_window_exceeded"

// response decides what a model's answer means (section 6 of the contract).
func (s *step) response(e Response) {
	s.putResponse(e)
	if e.Aborted {
		// Cancelled from outside without an interrupt of ours.
		s.setTurn(func(t *Turn) { s.account(t, e) })
		s.settleNow(s.abortEnding())
		return
	}
	s.setTurn(func(t *Turn) { s.account(t, e) })
	if s.overBudget(s.turn.Spend) {
		s.end(s.budgetEnding())
		return
	}
	if e.Stop == "refusal" && e.Broken == nil {
		s.end(s.refusalEnding(e))
		return
	}
	whole, internal, faulty := 0, 0, 0
	for _, c := range s.calls {
		switch {
		case c.Internal && c.Fault != FaultCut:
			internal++
		case c.Fault != FaultCut:
			whole++
		}
		switch c.Fault {
		case FaultUnknown, FaultMalformed, FaultCut:
			faulty++
		}
	}
	switch {
	case len(s.calls) == 0:
		s.noCalls(e)
	case e.Broken != nil && whole+internal == 0:
		// No call is complete: the turn ends as without calls (L-95).
		s.answerFaults()
		s.end(s.brokenEnding(e))
	case whole > 0 && s.cfg.MaxTurns != nil && s.turn.ToolTurns >= *s.cfg.MaxTurns:
		s.end(s.maxTurnsEnding())
	case e.Broken != nil && s.turn.Broken+1 >= maxBroken:
		s.refuse("the connection broke off in " + strconv.Itoa(maxBroken) + " responses in a row.")
		s.end(s.brokenEnding(e))
	case faulty == len(s.calls) && s.turn.Malformed+1 >= maxMalformed:
		s.answerFaults()
		s.end(s.malformedEnding())
	default:
		s.setTurn(func(t *Turn) {
			t.State, t.Await = Tools, ""
			t.Counts = whole > 0
			t.Broken++
			if e.Broken == nil {
				t.Broken = 0
			}
			t.Malformed++
			if faulty < len(s.calls) {
				t.Malformed = 0
			}
			t.Text = e.Text
		})
		s.answerFaults()
		s.batchDone()
	}
}

// putResponse stores and shows a response. Blocks go into the history
// unchanged (L-6); a response without blocks is shown but not stored, since a
// request with an empty message is refused by the API (case B-006).
func (s *step) putResponse(e Response) {
	msg := message.APIMessage{
		ID: e.MsgID, Type: "message", Role: message.RoleAssistant, Model: e.Model,
		Content: e.Blocks, StopSequence: e.StopSeq, Usage: e.StartUsage,
	}
	if e.Stop != "" {
		msg.StopReason = &e.Stop
	}
	uuid := s.newID()
	before := s.lastUses(e)
	if len(e.Blocks) > 0 {
		s.put(Entry{Kind: KindAssistant, UUID: uuid, Assistant: &AssistantEntry{Message: msg, Aborted: e.Aborted}})
	}
	if len(e.Calls) > 0 {
		calls := make([]Call, 0, len(e.Calls))
		for i, c := range e.Calls {
			if slices.ContainsFunc(calls, func(o Call) bool { return o.ID == c.ID }) {
				continue // one id, one result; requests carry only the first such call
			}
			c.Key = strconv.FormatInt(s.turn.Seq, 10) + "." + strconv.Itoa(i)
			c.Status, c.Valid, c.Final = Queued, false, nil
			if c.Fault == FaultNone && !c.Repeatable && isRepeated(c, e.Blocks, before) {
				c.Fault, c.FaultText = FaultRepeated, repeatedText
			}
			calls = append(calls, c)
		}
		s.put(Entry{Kind: KindCall, Call: &CallEntry{Op: CallsRequested, Calls: calls}})
	}
	if len(e.Blocks) > 0 || !e.Aborted && e.Broken == nil {
		s.emit(&message.Assistant{Message: msg, Aborted: e.Aborted, Header: message.Header{UUID: uuid}})
	}
}

// lastUses are the calls of the response before a broken one, when that broke
// off too. Whoever repeats a response because its connection was lost must not
// have the same change made twice (case B-159).
func (s *step) lastUses(e Response) (uses []message.ToolUse) {
	if e.Broken == nil || s.turn.Broken == 0 {
		return nil
	}
	items := s.hist.Items()
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Role != message.RoleAssistant {
			continue
		}
		for _, b := range items[i].Blocks {
			if u, ok := b.ToolUse(); ok {
				uses = append(uses, u)
			}
		}
		break
	}
	return uses
}

// isRepeated reports whether one of before is the call c of the response with
// these blocks: the same tool with the same input.
func isRepeated(c Call, blocks []message.Block, before []message.ToolUse) bool {
	if len(before) == 0 {
		return false
	}
	for _, b := range blocks {
		u, ok := b.ToolUse()
		if ok && u.ID == c.ID {
			return slices.ContainsFunc(before, func(o message.ToolUse) bool {
				return o.Name == u.Name && bytes.Equal(o.Input, u.Input)
			})
		}
	}
	return false
}

// account adds a response to the user turn's figures. The response that
// crosses the budget is left out of usage, not of the cost (L-50).
func (s *step) account(t *Turn, e Response) {
	t.Spend = maxSpend(t.Spend, e.Spend)
	t.APITime += e.APITime
	crossing := s.overBudget(t.Spend) && !e.Aborted
	if t.Ending != nil {
		crossing = t.Ending.Subtype == message.ErrorMaxBudgetUSD
	}
	if !crossing {
		t.Usage.Add(e.Usage)
	}
	if e.Tokens > 0 {
		t.Tokens = e.Tokens
	}
	t.SinceCompact++
	t.Recovering = false
	if e.Aborted {
		return
	}
	t.StopReason = nil
	if e.Stop != "" {
		t.StopReason = new(e.Stop)
	}
	if t.SentAt.IsZero() {
		t.SentAt = e.SentAt
	}
	if t.TTFT == nil {
		ms := s.at.Time.Sub(t.Started).Milliseconds()
		t.TTFT = &ms
		if e.FirstEvent > 0 && !e.SentAt.IsZero() {
			first := min(e.SentAt.Add(e.FirstEvent).Sub(t.Started).Milliseconds(), ms)
			t.TTFTStream = &first
		}
	}
}

// noCalls handles a response without client tool calls: the end of the user
// turn, or one of the reasons to go on in it.
func (s *step) noCalls(e Response) {
	t := s.turn
	t.Malformed, t.Broken = 0, 0
	t.Text += e.Text
	switch {
	case e.Broken != nil:
		s.setTurn(func(old *Turn) { *old = t })
		s.end(s.brokenEnding(e))
	case e.Stop == "pause_turn":
		if t.Pauses >= maxPauses {
			s.setTurn(func(old *Turn) { *old = t })
			s.end(s.pausesEnding())
			return
		}
		// The answer is what the last response says (L-83).
		s.toModel(func(old *Turn) { *old = t; old.Pauses++; old.Text = "" })
	case e.Stop == "max_tokens":
		if t.Continues >= maxContinuations {
			s.setTurn(func(old *Turn) { *old = t; old.Final = true })
			s.end(s.cutShort(e.Stop, e.Model))
			return
		}
		s.putMeta(continueText)
		s.toModel(func(old *Turn) { *old = t; old.Continues++ })
	case e.Stop == stopWindow:
		if s.cfg.CompactAt > 0 && t.CompactFails < maxCompactFails {
			s.toCompact(t, true)
			return
		}
		s.setTurn(func(old *Turn) { *old = t; old.Final = true })
		s.end(s.cutShort(e.Stop, e.Model))
	case s.cfg.Schema && s.output == nil:
		s.setTurn(func(old *Turn) { *old = t })
		s.attempt(true)
	default:
		s.complete(func(old *Turn) { *old = t; old.Final = true })
	}
}

// complete ends a user turn that is over by itself: the Stop hooks may object
// (L-215).
func (s *step) complete(change func(*Turn)) {
	if !s.cfg.StopHooks {
		s.setTurn(change)
		s.end(completed())
		return
	}
	s.setTurn(func(t *Turn) { change(t); enter(t, Stop) })
}

// attempt counts a failed structured output attempt (L-152).
func (s *step) attempt(textOnly bool) {
	if s.turn.Attempts >= s.cfg.schemaRetries() {
		s.end(s.schemaEnding())
		return
	}
	if textOnly {
		s.putMeta(schemaText)
	}
	s.toModel(func(t *Turn) { t.Attempts++; t.Text = "" })
}

// failed ends the user turn on an API failure: the error is told as an
// assistant message first (L-107), then the result (L-64).
func (s *step) failed(e Failed) {
	s.setTurn(func(t *Turn) { t.Spend = maxSpend(t.Spend, e.Spend); t.APITime += e.APITime })
	s.notice(e.Text, e.Model, e.Category)
	if s.overBudget(s.turn.Spend) {
		s.end(s.budgetEnding())
		return
	}
	terminal := e.Terminal
	if terminal == "" {
		terminal = message.TerminalAPIError
	}
	s.end(Ending{
		Subtype: message.ErrorDuringExecution, Terminal: terminal,
		Errors: []string{e.Text}, Status: e.Status, Refusal: "the model request failed.",
	})
}

// notice tells an error in the shape of an assistant message. It is stored,
// shown and never sent (decision 56).
func (s *step) notice(text, model string, cat message.ErrorCategory) {
	id := s.newID()
	msg := message.APIMessage{
		ID: "msg_" + id, Type: "message", Role: message.RoleAssistant, Model: "<synthetic>",
		Content: []message.Block{message.NewText(text)}, StopReason: new("stop_sequence"),
	}
	if cat == "" {
		cat = message.CategoryUnknown
	}
	s.put(Entry{Kind: KindAssistant, UUID: id, Assistant: &AssistantEntry{Message: msg, Notice: true, Error: cat}})
	s.emit(&message.Assistant{Message: msg, Error: cat, Header: message.Header{UUID: id}})
}

// tooLong answers a request that does not fit: with a compaction when one can
// still help (L-172), else with the error.
func (s *step) tooLong(e TooLong) {
	s.setTurn(func(t *Turn) { t.Spend = maxSpend(t.Spend, e.Spend); t.APITime += e.APITime })
	if s.cfg.CompactAt > 0 && !s.turn.Recovering && s.turn.CompactFails < maxCompactFails {
		s.toCompact(s.turn, true)
		return
	}
	s.tooLongEnd(e.Text, e.Status)
}

func (s *step) tooLongEnd(text string, status int) {
	s.notice(text, "", message.CategoryInvalidRequest)
	s.end(Ending{
		Subtype: message.ErrorDuringExecution, Terminal: message.TerminalPromptTooLong,
		Errors: []string{text}, Status: status,
	})
}
