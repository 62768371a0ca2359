package history

import (
	"slices"

	"github.com/turnwright/turnwright/message"
)

// segment is a run of assistant items and the user items after it: at most one
// message of each role. Only the first of a chain may lack assistant items.
type segment struct {
	start     int // index of its first item
	msgID     string
	assistant []part
	user      []part
	cut       bool // thinking of another model was left out
}

// segments splits the items that are not closed. Each segment but the first
// speaks, and each but the last has something to hear, so that the roles of
// the messages alternate.
func (a *Assembler) segments(items []Item) []segment {
	segs := []segment{{start: a.done}}
	fresh := map[string]bool{}
	for i := a.done; i < len(items); i++ {
		it := &items[i]
		ps := parts(*it)
		if len(ps) == 0 {
			continue
		}
		cur := &segs[len(segs)-1]
		if it.Role == message.RoleUser {
			cur.user = append(cur.user, ps...)
			continue
		}
		if len(cur.user) > 0 && !cur.goesOn(it.MsgID) {
			segs = append(segs, segment{start: i})
			cur = &segs[len(segs)-1]
		}
		cur.msgID = it.MsgID
		for _, p := range ps {
			switch {
			case p.kind == kindThinking && !a.opts.sameModel(p.model):
				cur.cut = true
				continue
			case p.kind == kindToolUse && (a.calls[p.id] || fresh[p.id]):
				continue // the API wants the ids of a request's calls to be unique
			case p.kind == kindToolUse:
				fresh[p.id] = true
			}
			cur.assistant = append(cur.assistant, p)
		}
	}
	return joinAssistants(joinUsers(segs))
}

// joinUsers drops assistant runs of which nothing can be sent: the user items
// around them become one message.
func joinUsers(segs []segment) []segment {
	for k := len(segs) - 1; k > 0; k-- {
		s := &segs[k]
		if s.speaks(k == len(segs)-1 && len(s.user) == 0) {
			continue
		}
		segs[k-1].user = append(segs[k-1].user, s.user...)
		segs = slices.Delete(segs, k, k+1)
	}
	return segs
}

// joinAssistants does the same for user runs of which nothing can be sent.
func joinAssistants(segs []segment) []segment {
	for k := 0; k+1 < len(segs); {
		s, next := &segs[k], segs[k+1]
		if s.hears() {
			k++
			continue
		}
		s.assistant = append(s.assistant, next.assistant...)
		s.user, s.msgID, s.cut = next.user, next.msgID, s.cut || next.cut
		segs = slices.Delete(segs, k+1, k+2)
	}
	return segs
}

// goesOn reports whether an assistant item with that message id belongs to the
// response of s: clients write a call's result before the response has ended.
func (s *segment) goesOn(msgID string) bool {
	return msgID != "" && msgID == s.msgID &&
		!slices.ContainsFunc(s.user, func(p part) bool { return p.kind != kindToolResult })
}

// sends reports whether s.assistant[i] is sent. The provider answers the call
// of a server tool in the same message, except where the turn stands open: at
// the very end of a request (pause_turn, L-77), and where the server tool
// itself waits for a client tool that it called. Its result then comes in a
// later message, and earlier tells whether the call was sent.
func (s *segment) sends(i int, atEnd bool, earlier func(id string) bool) bool {
	p := s.assistant[i]
	match := func(k kind, in []part) bool {
		return slices.ContainsFunc(in, func(q part) bool { return q.kind == k && q.id == p.id })
	}
	switch p.kind {
	case kindToolUse:
		return !p.aborted || match(kindToolResult, s.user)
	case kindServerUse:
		return match(kindServerResult, s.assistant[i+1:]) || (!p.aborted && (atEnd || s.calls()))
	case kindServerResult:
		return match(kindServerUse, s.assistant[:i]) || (earlier != nil && earlier(p.id))
	}
	return true
}

// said returns what is sent of the assistant's part. The API refuses thinking
// at the end of a message.
func (s *segment) said(atEnd bool, earlier func(id string) bool) []part {
	var out []part
	for i, p := range s.assistant {
		if s.sends(i, atEnd, earlier) {
			out = append(out, p)
		}
	}
	for len(out) > 0 && out[len(out)-1].kind == kindThinking {
		out = out[:len(out)-1]
	}
	return out
}

// speaks reports whether something is sent of the assistant's part, whatever
// stands before it. Alone, the late result of a server tool is nothing.
func (s *segment) speaks(atEnd bool) bool { return len(s.said(atEnd, nil)) > 0 }

// calls reports whether a call of a client tool is sent.
func (s *segment) calls() bool {
	for i, p := range s.assistant {
		if p.kind == kindToolUse && s.sends(i, false, nil) {
			return true
		}
	}
	return false
}

// hears reports whether there will be a user message after the assistant's.
func (s *segment) hears() bool {
	for _, p := range s.user {
		if p.kind != kindToolResult {
			return true
		}
	}
	return s.calls()
}

// result returns the first result of the call, or a placeholder (B-113, B-116).
func (s *segment) result(call string) part {
	for _, p := range s.user {
		if p.kind == kindToolResult && p.id == call {
			return p
		}
	}
	b := message.NewToolResult(call, message.TextContent(UnknownOutcome), true)
	return part{kind: kindToolResult, id: call, block: b}
}
