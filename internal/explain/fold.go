package explain

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/session"
)

// Sizes of the texts that an explanation quotes, in characters.
const (
	promptSize = 200
	textSize   = 200
	inputSize  = 300
	resultSize = 200
)

// Journal explains the session whose lines are given, those of Journal.Load or
// Finder.Read. Lines that cannot be read are counted; any other error of lines, and
// journal.ErrNewerFormat, is returned.
func Journal(id string, lines iter.Seq2[[]byte, error]) (*Explanation, error) {
	f := &fold{out: Explanation{SessionID: id, UserTurns: []UserTurn{}, Foreign: true}, queued: map[string]string{}}
	for line, err := range lines {
		var unreadable *session.LineError
		if errors.As(err, &unreadable) {
			f.out.Skipped++
			continue
		}
		if err != nil {
			return nil, err
		}
		e, ok, err := journal.Decode(line)
		switch {
		case errors.Is(err, journal.ErrNewerFormat):
			return nil, err
		case err != nil:
			f.out.Skipped++
		case ok:
			f.entry(e)
		}
	}
	f.done()
	return &f.out, nil
}

// fold collects an explanation entry by entry.
type fold struct {
	out    Explanation
	cur    *UserTurn // runs
	state  loop.Turn // as last written
	open   loop.Settings
	order  []string          // uuids of queued inputs
	queued map[string]string // their texts
	begin  float64           // what the process had spent when cur began
	spent  float64           // what the responses until now had cost
	api    time.Duration
	usage  message.Usage
	fresh  bool // the last response has no price yet
}

func (f *fold) entry(e loop.Entry) {
	switch e.Kind {
	case loop.KindOpen:
		f.out.Foreign = false
		f.open = *e.Open
	case loop.KindInput:
		f.out.Foreign = false
		f.input(e.Input)
	case loop.KindTurn:
		f.out.Foreign = false
		f.turn(e)
	case loop.KindUser:
		f.user(e)
	case loop.KindAssistant:
		f.assistant(e)
	case loop.KindCall:
		f.call(e)
	}
}

func (f *fold) input(in *loop.InputEntry) {
	if in.Dropped {
		f.unqueue(in.ID)
		return
	}
	if _, waits := f.queued[in.ID]; !waits {
		f.order = append(f.order, in.ID)
	}
	f.queued[in.ID] = in.Content.Text()
}

func (f *fold) unqueue(id string) {
	delete(f.queued, id)
	f.order = slices.DeleteFunc(f.order, func(o string) bool { return o == id })
}

// turn follows the machine's state: it begins a user turn, prices the response
// before it, or ends the user turn.
func (f *fold) turn(e loop.Entry) {
	t := e.Turn.Turn
	if t.Spend.USD < f.spent {
		f.begin, f.spent = 0, 0 // another process: totals start from zero (S-43)
	}
	if t.Input != "" && (f.cur == nil || f.cur.UUID != t.Input) {
		f.abandon()
		f.start(t)
	}
	if f.cur != nil {
		used := t.Usage
		used.Sub(f.usage)
		if used.OutputTokens > 0 && !f.fresh {
			// A response that is not in the history, such as a refusal (L-219).
			f.cur.Responses = append(f.cur.Responses, Response{At: e.Time, Model: f.open.Model, StopReason: deref(t.StopReason)})
		}
		f.fresh = false
		if r := f.last(); r != nil {
			r.CostUSD += t.Spend.USD - f.spent
			r.APIMS += (t.APITime - f.api).Milliseconds()
			if used.OutputTokens > 0 || used.InputTokens > 0 {
				r.Usage = used // the message's own is that of its start (W-234)
			}
			if t.Counts && r.ToolTurn == 0 {
				r.ToolTurn = t.ToolTurns + 1
			}
		}
		f.cur.ToolTurns, f.cur.APIMS = t.ToolTurns, t.APITime.Milliseconds()
		f.cur.CostUSD = t.Spend.USD - f.begin
	}
	f.spent, f.api, f.usage, f.state = t.Spend.USD, t.APITime, t.Usage, t
	if f.cur != nil && t.Input == "" {
		f.end(e)
	}
}

func (f *fold) start(t loop.Turn) {
	f.begin, f.api, f.usage = t.Spend.USD, 0, message.Usage{}
	f.spent = t.Spend.USD
	f.out.UserTurns = append(f.out.UserTurns, UserTurn{
		UUID: t.Input, Prompt: clip(f.queued[t.Input], promptSize), Begun: t.Started, Responses: []Response{},
	})
	f.cur = &f.out.UserTurns[len(f.out.UserTurns)-1]
	if t.Origin != nil && t.Origin.Kind != message.OriginHuman {
		f.cur.Origin = string(t.Origin.Kind)
	}
	f.unqueue(t.Input)
}

func (f *fold) end(e loop.Entry) {
	f.cur.Ended = e.Time
	f.cur.DurationMS = e.Time.Sub(f.cur.Begun).Milliseconds()
	f.cur.conclude(e.Turn.Turn.Ending, e.Turn.Result, e.Turn.Turn, f.open)
	f.cur.advise(f.out.SessionID)
	f.cur = nil
}

// abandon leaves a user turn that has no end in the journal: its input went back
// into the queue, or the lines of its end are gone.
func (f *fold) abandon() {
	if f.cur == nil {
		return
	}
	if _, waits := f.queued[f.cur.UUID]; waits {
		f.out.UserTurns = f.out.UserTurns[:len(f.out.UserTurns)-1]
	} else {
		f.cur.unfinished(f.state)
		f.cur.advise(f.out.SessionID)
	}
	f.cur = nil
}

// done looks at what the journal leaves open.
func (f *fold) done() {
	f.abandon()
	if f.out.Foreign {
		for i := range f.out.UserTurns {
			f.out.UserTurns[i].foreign()
			f.out.UserTurns[i].advise(f.out.SessionID)
		}
	}
	for _, id := range f.order {
		f.out.Waiting = append(f.out.Waiting, clip(f.queued[id], promptSize))
	}
}

func (f *fold) user(e loop.Entry) {
	u := e.User
	if u.CopiedFrom != "" {
		return // told already
	}
	results := 0
	for _, b := range u.Content.Blocks() {
		if r, ok := b.ToolResult(); ok {
			f.result(r, e.Time)
			results++
		}
	}
	if results > 0 || u.Meta || u.Summary {
		return
	}
	f.unqueue(e.UUID)
	switch {
	case !f.out.Foreign && f.cur != nil && f.cur.UUID == e.UUID && f.cur.Prompt == "":
		f.cur.Prompt = clip(u.Content.Text(), promptSize)
	case f.out.Foreign:
		f.out.UserTurns = append(f.out.UserTurns, UserTurn{UUID: e.UUID, Prompt: clip(u.Content.Text(), promptSize), Begun: e.Time, Responses: []Response{}})
		f.cur = &f.out.UserTurns[len(f.out.UserTurns)-1]
	}
}

func (f *fold) assistant(e loop.Entry) {
	a := e.Assistant
	if f.cur == nil || a.CopiedFrom != "" {
		return
	}
	if a.Notice {
		if f.out.Foreign {
			f.cur.Errors = []string{text(a.Message.Content)}
		}
		return
	}
	f.fresh = true
	r := f.last()
	if r == nil || a.Message.ID == "" || r.message != a.Message.ID {
		f.cur.Responses = append(f.cur.Responses, Response{At: e.Time, Model: a.Message.Model, message: a.Message.ID})
		r = f.last()
	}
	if a.Message.StopReason != nil {
		r.StopReason = *a.Message.StopReason
	}
	r.Usage = a.Message.Usage
	if r.Text == "" {
		r.Text = clip(text(a.Message.Content), textSize)
	}
	for _, b := range a.Message.Content {
		if u, ok := b.ToolUse(); ok {
			r.Calls = append(r.Calls, Call{ID: u.ID, Name: u.Name, Input: clip(string(u.Input), inputSize), Outcome: Open})
		}
	}
	f.cur.Ended = e.Time
}

// call notes a decision.
func (f *fold) call(e loop.Entry) {
	r := f.last()
	if r == nil {
		return
	}
	for _, c := range e.Call.Calls {
		for i := range r.Calls {
			if r.Calls[i].ID == c.ID {
				r.Calls[i].key = c.Key
			}
		}
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		if e.Call.Key == "" || c.key != e.Call.Key {
			continue
		}
		c.Reason = e.Call.Reason
		switch e.Call.Op {
		case loop.CallAllowed:
			c.started = e.Time
		case loop.CallDenied:
			c.denied = true
		}
	}
}

func (f *fold) result(t message.ToolResult, at time.Time) {
	if f.cur == nil {
		return
	}
	for i := len(f.cur.Responses) - 1; i >= 0; i-- {
		for j := range f.cur.Responses[i].Calls {
			if c := &f.cur.Responses[i].Calls[j]; c.ID == t.ToolUseID && c.Outcome == Open {
				c.finish(t, at)
				return
			}
		}
	}
}

func (c *Call) finish(t message.ToolResult, at time.Time) {
	out := t.Content.Text()
	c.Result = clip(out, resultSize)
	switch {
	case c.denied:
		c.Outcome = Denied
	case !t.IsError:
		c.Outcome = OK
	case strings.HasPrefix(out, "Not executed:"):
		c.Outcome = NotExecuted
	case strings.HasPrefix(out, "Killed:"):
		c.Outcome = Killed
	case strings.HasPrefix(out, "Interrupted:"):
		c.Outcome = Lost
	default:
		c.Outcome = Failed
	}
	if !c.started.IsZero() && at.After(c.started) {
		c.DurationMS = at.Sub(c.started).Milliseconds()
	}
}

func (f *fold) last() *Response {
	if f.cur == nil || len(f.cur.Responses) == 0 {
		return nil
	}
	return &f.cur.Responses[len(f.cur.Responses)-1]
}

func text(blocks []message.Block) string {
	return message.BlockContent(blocks...).Text()
}

// clip shortens a text to n characters, in one line.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
