package loop

import (
	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/message"
)

// toCompact starts a compaction; recovering means that the window is full: the
// request was too long, or the response ended for want of room.
func (s *step) toCompact(t Turn, recovering bool) {
	if t.Compacted && t.SinceCompact <= 1 && t.Refills+1 >= maxRefills {
		s.setTurn(func(old *Turn) { *old = t })
		s.end(Ending{
			Subtype: message.ErrorDuringExecution, Terminal: message.TerminalRapidRefillBreaker,
			Errors: []string{"Autocompact is thrashing: the context refilled to the limit right after each compaction. Use a smaller prompt, fewer tools or a model with a larger window."},
		})
		return
	}
	t.Recovering = recovering
	enter(&t, Compact)
	s.setTurn(func(old *Turn) { *old = t })
	s.emit(&message.Status{Status: new("compacting")})
}

// compacted replaces the history by the summary and what is kept. The kept
// items are written again as copies, so that the chain stays one line
// (decision 55).
func (s *step) compacted(e Compacted) {
	s.emit(&message.Status{})
	if e.Err != "" || e.Blocked {
		s.compactFailed(e)
		return
	}
	kept := s.hist.Items()
	kept = kept[min(max(e.KeepFrom, 0), len(kept)):]
	s.put(Entry{Kind: KindSystem, System: &SystemEntry{Trigger: e.Trigger, PreTokens: e.PreTokens}})
	boundary := s.ready.Entries[len(s.ready.Entries)-1].UUID
	s.put(Entry{Kind: KindUser, User: &UserEntry{Content: message.TextContent(e.Summary), Summary: true}})
	var elided []string
	for _, it := range kept {
		s.putCopy(it)
		if it.Flags&history.Elided != 0 {
			elided = append(elided, s.ready.Entries[len(s.ready.Entries)-1].UUID)
		}
	}
	if len(elided) > 0 {
		s.put(Entry{Kind: KindElide, Elide: &ElideEntry{UUIDs: elided}})
	}
	if s.windowExceeded() {
		s.putMeta(continueText)
	}
	s.emit(&message.CompactBoundary{
		Metadata: message.CompactMetadata{Trigger: e.Trigger, PreTokens: e.PreTokens},
		Header:   message.Header{UUID: boundary},
	})
	s.toModel(func(t *Turn) {
		if t.Compacted && t.SinceCompact <= 1 {
			t.Refills++
		} else {
			t.Refills = 0
		}
		t.Compacted, t.CompactFails, t.SinceCompact = true, 0, 0
		t.Tokens, t.Spend, t.APITime = e.Tokens, maxSpend(t.Spend, e.Spend), t.APITime+e.APITime
	})
}

func (s *step) compactFailed(e Compacted) {
	s.setTurn(func(t *Turn) {
		if !e.Blocked {
			t.CompactFails++
		}
		t.Spend, t.APITime = maxSpend(t.Spend, e.Spend), t.APITime+e.APITime
	})
	if s.windowExceeded() {
		s.setTurn(func(t *Turn) { t.Final = true })
		s.end(s.cutShort(stopWindow, ""))
		return
	}
	if s.turn.Recovering {
		text := "Prompt is too long"
		if e.Err != "" {
			text += " · automatic compaction failed: " + e.Err
		}
		s.tooLongEnd(text, 0)
		return
	}
	if s.overBudget(s.turn.Spend) {
		s.end(s.budgetEnding())
		return
	}
	s.setTurn(func(t *Turn) { enter(t, Model) })
}

// windowExceeded reports whether the compaction answers a response that ended
// because the window was full (L-79), not a request that was too long.
func (s *step) windowExceeded() bool {
	return s.turn.Recovering && s.turn.StopReason != nil && *s.turn.StopReason == stopWindow
}

// putCopy writes a kept item again. A prompt kept as a string stays one (K-312).
func (s *step) putCopy(it history.Item) {
	if it.Role == message.RoleAssistant {
		s.put(Entry{Kind: KindAssistant, Assistant: &AssistantEntry{
			Message: message.APIMessage{
				ID: it.MsgID, Type: "message", Role: it.Role, Model: it.Model, Content: it.Blocks,
			},
			Notice: it.Flags&history.Notice != 0, Aborted: it.Flags&history.Aborted != 0,
			CopiedFrom: it.UUID,
		}})
		return
	}
	content := message.BlockContent(it.Blocks...)
	if it.Text != nil {
		content = message.TextContent(*it.Text)
	}
	s.put(Entry{Kind: KindUser, User: &UserEntry{
		Content: content,
		Meta:    it.Flags&history.Meta != 0, Summary: it.Flags&history.Summary != 0, CopiedFrom: it.UUID,
	}})
}
