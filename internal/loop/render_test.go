package loop_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// render writes the short form of a Ready.
func (p *player) render(out *strings.Builder, r loop.Ready) {
	for _, c := range p.w.m.Calls() {
		p.keys[c.ID] = c.Key
	}
	for _, e := range r.Entries {
		fmt.Fprintf(out, "  write %s\n", p.entry(e))
	}
	for _, m := range r.Emit {
		fmt.Fprintf(out, "  emit  %s\n", shortMessage(m))
	}
	for _, rep := range r.Replies {
		fmt.Fprintf(out, "  reply running=%v still_queued=%v cancelled=%v\n", rep.Running, rep.StillQueued, rep.Cancelled)
	}
	if len(r.Entries)+len(r.Emit)+len(r.Replies) == 0 {
		out.WriteString("  nothing\n")
	}
	var want []string
	for _, w := range r.Want {
		id := w.ID
		if c, ok := p.w.m.Call(id); ok {
			id = c.ID
		}
		if w.Kind != loop.DoCheck && w.Kind != loop.DoRun {
			want = append(want, id)
		} else {
			want = append(want, string(w.Kind)+" "+id)
		}
	}
	if len(want) > 0 {
		fmt.Fprintf(out, "  want  %s\n", strings.Join(want, ", "))
	} else if p.w.m.State() == loop.Settle {
		out.WriteString("  want  nothing, waits\n")
	}
}

func (p *player) callID(key string) string {
	for id, k := range p.keys {
		if k == key {
			return id
		}
	}
	return key
}

func (p *player) entry(e loop.Entry) string {
	switch e.Kind {
	case loop.KindUser:
		return p.userEntry(e)
	case loop.KindAssistant:
		s := "assistant" + blocks(e.Assistant.Message.Content)
		if e.Assistant.Notice {
			s += " notice"
		}
		if e.Assistant.Aborted {
			s += " aborted"
		}
		if e.Assistant.CopiedFrom != "" {
			s += " copy"
		}
		return s
	case loop.KindSystem:
		return "compact_boundary"
	case loop.KindInput:
		if e.Input.Dropped {
			return "input " + e.Input.ID + " dropped"
		}
		return "input " + e.Input.ID
	case loop.KindCall:
		if e.Call.Op == loop.CallsRequested {
			var ids []string
			for _, c := range e.Call.Calls {
				ids = append(ids, c.ID)
			}
			return "call requested " + strings.Join(ids, " ")
		}
		s := "call " + string(e.Call.Op) + " " + p.callID(e.Call.Key)
		if e.Call.Input != nil {
			s += " input=" + string(e.Call.Input)
		}
		return s
	case loop.KindTurn:
		s := "turn " + string(e.Turn.Turn.State)
		if e.Turn.Result != nil {
			s += " with the result"
		}
		return s
	case loop.KindOpen:
		return fmt.Sprintf("open model=%s mode=%s", e.Open.Model, e.Open.Mode)
	case loop.KindElide:
		return fmt.Sprintf("elide %d", len(e.Elide.UUIDs))
	}
	return string(e.Kind)
}

func (p *player) userEntry(e loop.Entry) string {
	u := e.User
	s := "user"
	switch {
	case u.ToolUseID != "":
		return "result" + blocks(u.Content.Blocks())
	case u.Summary:
		s = "summary"
	case u.Meta:
		s = "meta"
	case u.CopiedFrom == "":
		s += " " + e.UUID
	}
	s += blocks(u.Content.Blocks())
	if u.CopiedFrom != "" {
		s += " copy"
	}
	return s
}

// blocks is the short form of content blocks.
func blocks(bs []message.Block) string {
	var s strings.Builder
	for _, b := range bs {
		switch b.Type() {
		case message.TypeText:
			fmt.Fprintf(&s, " %q", short(b.Text()))
		case message.TypeToolUse:
			u, _ := b.ToolUse()
			fmt.Fprintf(&s, " %s:%s", u.Name, u.ID)
		case message.TypeToolResult:
			r, _ := b.ToolResult()
			fmt.Fprintf(&s, " %s %q", r.ToolUseID, short(r.Content.Text()))
			if r.IsError {
				s.WriteString(" error")
			}
		default:
			s.WriteString(" [" + b.Type() + "]")
		}
	}
	return s.String()
}

func shortMessage(m message.Message) string {
	switch m := m.(type) {
	case *message.Assistant:
		s := "assistant" + blocks(m.Message.Content)
		if m.Error != "" {
			s += " error=" + string(m.Error)
		}
		if m.Aborted {
			s += " aborted"
		}
		return s
	case *message.User:
		s := "user" + blocks(m.Message.Content.Blocks())
		if m.IsReplay {
			s += " replay"
		}
		return s
	case *message.Result:
		return shortResult(m)
	case *message.Status:
		if m.Status == nil {
			return "status null"
		}
		return "status " + *m.Status
	case *message.Informational:
		return fmt.Sprintf("informational %q", m.Content)
	}
	typ, sub := m.Kind()
	if typ == "system" {
		return sub
	}
	return typ + " " + sub
}

func shortResult(m *message.Result) string {
	s := fmt.Sprintf("result %s num_turns=%d tool_turns=%d", m.Subtype, m.NumTurns, m.ToolTurns)
	if m.IsError {
		s += " is_error"
	}
	if m.StopReason != nil {
		s += " stop=" + *m.StopReason
	}
	if m.TerminalReason != "" {
		s += " terminal=" + string(m.TerminalReason)
	}
	if m.APIErrorStatus != nil {
		s += fmt.Sprintf(" status=%d", *m.APIErrorStatus)
	}
	s += fmt.Sprintf(" cost=%g in=%d", *m.TotalCostUSD, m.Usage.InputTokens)
	for _, d := range m.PermissionDenials {
		s += " denied=" + d.ToolUseID
	}
	if m.Origin != nil {
		s += " origin=" + m.Origin.Kind
	}
	if m.UserMessageUUID != "" {
		s += " answers=" + m.UserMessageUUID
	}
	if m.StructuredOutput != nil {
		s += " structured=" + string(m.StructuredOutput)
	}
	if m.Result != nil {
		s += fmt.Sprintf("\n        %q", *m.Result)
	}
	if len(m.Errors) > 0 {
		s += fmt.Sprintf("\n        errors %q", slices.Clone(m.Errors))
	}
	return s
}

// short shortens a text for the golden files.
func short(s string) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if r := []rune(s); len(r) > 70 {
		return string(r[:67]) + "..."
	}
	return s
}
