package loop

import (
	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/message"
)

// Recovery says how to go on with a session whose process ended (decision 15).
type Recovery int

const (
	// CloseOpen gives every open call its result and ends the user turn: what
	// resume does (S-44).
	CloseOpen Recovery = iota
	// Continue moves a live session: calls that had not started are checked
	// again, repeatable ones run again, the rest is closed.
	Continue
)

// What a call is told whose process ended.
const (
	unknownOutcome = "Interrupted: the outcome of this call is unknown; it may have run in part. Check before repeating it."
	crashRefusal   = "the process ended before this call started."
)

// Known is what a tool knows of a call after a crash, by the call's key.
type Known struct {
	Content    message.Content
	IsError    bool
	Structured []byte
}

// Recover brings a folded machine back into service after the process that
// wrote its entries ended. A call that may have run is never run again unless
// it is repeatable and how is Continue. The last step's entries may be there in
// part only.
//
// Recover may decide on entries, so it belongs right before the first event,
// not to loading: looking at a session must not change its file (K-484). With
// CloseOpen the messages it emits belong to the run that ended.
func (m *Machine) Recover(at Stamp, how Recovery, known map[string]Known) Ready {
	s := step{Machine: m, at: at}
	switch {
	case m.turn.State == Idle || m.turn.State == Closed:
		s.reopen()
	case m.turn.State == Admit && m.waits(m.turn.Input):
		s.giveUp() // what put its input back was written in part
		s.reopen()
	case how == Continue && m.turn.State != Settle:
		s.goOn(known)
		if len(s.ready.Entries) == 0 {
			// The journal shows where another process took over: what stands before
			// may be a step that was written in part.
			s.setTurn(func(*Turn) {})
		}
	default:
		s.closeTurn(known)
	}
	s.ready.Want = m.Want()
	return s.ready
}

// reopen makes the session of another process one of this process: totals
// start from zero (S-43), and the queue goes on.
func (s *step) reopen() {
	s.pairUp()
	t := s.turn
	if t.State == Closed || t.Closing || t.Drain || t.Spend.USD != 0 || len(t.Spend.Models) > 0 {
		s.setTurn(func(t *Turn) { t.State, t.Closing, t.Drain, t.Spend = Idle, false, false, Spend{} })
	}
	s.next()
}

// pairUp gives calls of the newest response that have no result one (K-467):
// sessions of other programs, and forks that were cut behind a call, do not
// have the entries that tell of open calls.
func (s *step) pairUp() {
	items := s.hist.Items()
	answered := map[string]bool{}
	i := len(items) - 1
	for ; i >= 0 && items[i].Role == message.RoleUser; i-- {
		for _, b := range items[i].Blocks {
			if r, ok := b.ToolResult(); ok {
				answered[r.ToolUseID] = true
			}
		}
	}
	var open []string
	for ; i >= 0 && items[i].Role == message.RoleAssistant; i-- {
		var ids []string
		for _, b := range items[i].Blocks {
			if u, ok := b.ToolUse(); ok && !answered[u.ID] && items[i].Flags&history.Aborted == 0 {
				ids = append(ids, u.ID)
			}
		}
		open = append(ids, open...)
	}
	for _, id := range open {
		if s.deferred(id) {
			continue
		}
		content := message.BlockContent(message.NewToolResult(id, message.TextContent(unknownOutcome), true))
		uuid := s.newID()
		s.put(Entry{Kind: KindUser, UUID: uuid, User: &UserEntry{Content: content, ToolUseID: id}})
		s.emit(&message.User{
			Message: message.UserBody{Role: message.RoleUser, Content: content},
			Header:  message.Header{UUID: uuid},
		})
	}
}

// goOn continues the running user turn. Where the last step was written in
// part, it finishes what that step began.
func (s *step) goOn(known map[string]Known) {
	s.answerRunning(known, true)
	switch s.turn.State {
	case Admit:
		if s.prompt == nil {
			s.begin(nil)
		}
	case Model:
		if len(s.calls) > 0 {
			// A response is there that was not decided on.
			s.refuse(crashRefusal)
			s.toModel(nil)
		}
	case Tools:
		s.answerFaults()
		s.batchDone()
	}
}

// closeTurn ends the running user turn. The result tells what the process that
// ended had spent; the next one starts from zero.
func (s *step) closeTurn(known map[string]Known) {
	s.answerRunning(known, false)
	e := Ending{
		Subtype: message.ErrorDuringExecution, NoStop: true, Refusal: crashRefusal,
		Errors: []string{"The process ended before this turn was finished"}, By: "end of the process",
	}
	if s.turn.State == Settle && s.turn.Ending != nil {
		e = *s.turn.Ending
	}
	s.refuse(crashRefusal)
	s.finish(e)
	s.reopen()
}

// answerRunning gives the calls that were running their result, except those
// that run again.
func (s *step) answerRunning(known map[string]Known, again bool) {
	for _, c := range s.Calls() {
		if c.Status != Running || again && c.Repeatable && s.turn.State == Tools {
			continue
		}
		k, ok := known[c.Key]
		if !ok {
			k = Known{Content: message.TextContent(unknownOutcome), IsError: true}
		}
		s.putResult(c, k.Content, k.IsError, k.Structured)
	}
}
