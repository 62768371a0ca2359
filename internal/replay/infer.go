package replay

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// try is an event that may have happened.
type try struct {
	name string
	cfg  loop.Config
	do   func(*loop.Machine, loop.Stamp) loop.Ready

	budget bool // it needs one
	any    bool // it may happen at any time, so it is no explanation of what it does not explain at all
}

// recovered begins the names of the tries in which another process takes over.
const recovered = "recovery"

// view is what an inference looks at: the machine's small state and what follows.
type view struct {
	m    *loop.Machine
	t    loop.Turn
	cfg  loop.Config
	rest []record
	next *record         // rest[0]
	turn *loop.TurnEntry // the first that follows; zero: there is none
	end  *loop.Ending    // its ending, nil: none
	last *loop.Ending    // that of the next turn entry in which a user turn is over
	out  []try
}

func (p *player) view() *view {
	v := &view{m: p.m, t: p.m.Turn(), cfg: p.cfg, rest: p.recs[p.at:], next: &p.recs[p.at], turn: new(loop.TurnEntry)}
	if i := p.turnAt[p.at]; i < len(p.recs) {
		v.turn, v.end = p.recs[i].Turn, p.recs[i].Turn.Turn.Ending
	}
	if i := p.endAt[p.at]; i < len(p.recs) {
		v.last = p.recs[i].Turn.Turn.Ending
	}
	return v
}

func (v *view) add(name string, ev loop.Event) { v.addWith(v.cfg, name, ev) }

func (v *view) addWith(cfg loop.Config, name string, ev loop.Event) {
	_, budget := ev.(loop.BudgetReached)
	always := false
	switch ev.(type) {
	case loop.Interrupt, loop.Close, loop.EndInput, loop.Spent, loop.Abort, loop.Cancelled:
		always = true
	}
	v.out = append(v.out, try{name: name, cfg: cfg, budget: budget, any: always, do: func(m *loop.Machine, at loop.Stamp) loop.Ready {
		return m.Step(at, ev)
	}})
}

// tries are the events that may explain what follows.
func (p *player) tries() []try {
	v := p.view()
	switch v.next.Kind {
	case loop.KindOpen:
		set := *v.next.Open
		cfg, ok := set.Config()
		if !ok {
			cfg = v.cfg
			old, _ := set.Config()
			cfg.MaxTurns, cfg.MaxBudgetUSD = old.MaxTurns, old.MaxBudgetUSD
		}
		v.addWith(cfg, "settings", loop.Configure{Model: set.Model, Mode: set.Mode})
		v.out = append(v.out, try{name: "settings of hooks", cfg: v.cfg, do: func(m *loop.Machine, at loop.Stamp) loop.Ready {
			return m.Step(at, loop.Hooks{Batch: set.BatchHooks, Stop: set.StopHooks})
		}})
		return v.out // nothing else begins with one
	case loop.KindInput:
		if !v.next.Input.First && !v.next.Input.Dropped {
			v.add("a message", loop.Send{Input: v.next.Input.Input})
			return v.out
		}
	}
	kind, _, _ := strings.Cut(v.t.Await, "/")
	switch loop.State(kind) {
	case loop.Admit:
		v.admission()
	case loop.Model:
		v.model()
	case loop.Batch:
		v.batch()
	case loop.Stop:
		v.stop()
	case loop.Compact:
		v.compact()
	}
	for _, w := range v.m.Want() {
		if w.Kind == loop.DoCheck {
			v.decision(w.ID)
		}
	}
	for _, c := range v.m.Calls() {
		if c.Status == loop.Running {
			v.outcome(c)
		}
	}
	if v.t.Await != "" {
		v.add("the end of cancelled work", loop.Cancelled{ID: v.t.Await})
	}
	v.commands()
	return v.out
}

// commands are what users and drivers may ask for at any time.
func (v *view) commands() {
	v.add("an interrupt", loop.Interrupt{CancelQueue: v.next.Kind == loop.KindInput})
	v.add("the end of the session", loop.Close{})
	v.add("the end of the process", loop.Close{Killed: true})
	v.add("the end of the input", loop.EndInput{})
	if v.next.Kind == loop.KindTurn {
		v.add("what others of the tree spent", loop.Spent{Spend: v.turn.Turn.Spend})
	}
	if e := v.halt(); e != nil {
		v.add("an end that the driver demands", loop.Abort{Ending: *e})
	}
}

// halt is the ending of what follows, when a driver may have demanded it: not one
// that the machine comes to by itself.
func (v *view) halt() *loop.Ending {
	e := v.end
	if e == nil || v.t.Ending != nil && v.t.State == loop.Settle || machines(e) {
		return nil
	}
	c := *e
	return &c
}

// machines reports an ending that only the machine comes to.
func machines(e *loop.Ending) bool {
	switch e.Subtype {
	case message.ErrorMaxTurns, message.ErrorMaxBudgetUSD, message.ErrorMaxStructuredOutputRetries:
		return true
	}
	switch e.Terminal {
	case message.TerminalCompleted, message.TerminalMaxTurns, message.TerminalBudgetExhausted, message.TerminalAbortedStreaming,
		message.TerminalMalformedToolUse, message.TerminalStructuredOutputRetries, message.TerminalPromptTooLong,
		message.TerminalRapidRefillBreaker, message.TerminalToolDeferred, message.TerminalAPIError:
		return true
	}
	switch e.By {
	case "interrupt", "end of the session", "end of the process":
		return true
	}
	return e.Silent || e.Terminal == "" && e.Subtype == message.Success
}

// admission: the blocks before and behind the prompt, the prompt as it was stored,
// and whether init was shown.
func (v *view) admission() {
	a := loop.Admitted{ID: v.t.Await}
	if v.turn.Turn.Inited {
		a.Init = &message.Init{}
	}
	prompt := v.m.Prompt()
	i := 0
	meta := func() (b []message.Block) {
		if i < len(v.rest) && isMeta(&v.rest[i]) {
			b = v.rest[i].User.Content.Blocks()
			i++
		}
		return b
	}
	a.Before = meta()
	if prompt != nil && i < len(v.rest) && v.rest[i].Kind == loop.KindUser && v.rest[i].UUID == prompt.ID {
		if c := v.rest[i].User.Content; !sameContent(c, prompt.Content) {
			a.Content = c
		}
		i++
	}
	a.Context = meta()
	v.add("the admission of the message", a)

	in := loop.Local{ID: v.t.Await}
	for _, keep := range []bool{false, true} {
		in.Keep = keep
		if v.end != nil && v.end.Text != nil && v.end.Subtype == message.Success && v.end.Terminal == "" {
			in.Text, in.Ending = *v.end.Text, nil
			v.add("an answer without the model", in)
		}
		if e := v.halt(); e != nil || v.t.State == loop.Settle {
			in.Ending = e
			v.add("an end before the model was asked", in)
		}
	}
	if v.next.Kind == loop.KindInput && v.next.Input.First {
		ev := loop.Preceded{ID: v.t.Await, Input: v.next.Input.Input}
		if len(v.rest) > 1 && prompt != nil && v.rest[1].Kind == loop.KindInput {
			ev.Input = v.rest[1].Input.Input
		}
		v.add("a message that comes first", ev)
	}
}

func isMeta(r *record) bool { return r.Kind == loop.KindUser && r.User.Meta && r.User.ToolUseID == "" }

func sameContent(a, b message.Content) bool {
	x, errX := a.MarshalJSON()
	y, errY := b.MarshalJSON()
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// model: a response from its message and calls and what the totals grew by, or one
// of the failures.
func (v *view) model() {
	now := v.turn.Turn
	api := now.APITime - v.t.APITime
	v.responses(api)
	notice, status, terminal := v.notice(), 0, message.TerminalReason("")
	if v.last != nil {
		status, terminal = v.last.Status, v.last.Terminal
	}
	f := loop.Failed{ID: v.t.Await, Status: status, Spend: now.Spend, APITime: api}
	long := loop.TooLong{ID: v.t.Await, Status: status, Spend: now.Spend, APITime: api}
	if notice != nil {
		f.Category = notice.Error
		f.Text = message.BlockContent(notice.Message.Content...).Text()
		long.Text = f.Text
	}
	if v.last == nil || !machines(v.last) || terminal == message.TerminalAPIError {
		f.Terminal = terminal
	}
	v.add("a failed model request", f)
	v.add("a request that is too long", long)
	v.add("a request that the budget does not allow", loop.BudgetReached{ID: v.t.Await, Spend: now.Spend})
}

// notice is the notice that this step writes: behind its first turn entry and
// before the second. Nil: there is none.
func (v *view) notice() *loop.AssistantEntry {
	turns := 0
	for i := range v.rest {
		switch e := &v.rest[i]; {
		case e.Kind == loop.KindAssistant && e.Assistant.Notice && e.Assistant.CopiedFrom == "":
			return e.Assistant
		case e.Kind == loop.KindTurn:
			if turns++; turns > 1 {
				return nil
			}
		}
	}
	return nil
}

func (v *view) responses(api time.Duration) {
	now := v.turn.Turn
	used := now.Usage
	used.Sub(v.t.Usage)
	r := loop.Response{
		ID: v.t.Await, Usage: used, Spend: now.Spend, Tokens: now.Tokens, APITime: api,
	}
	if now.Tokens == v.t.Tokens {
		r.Tokens = 0
	}
	if v.t.SentAt.IsZero() {
		r.SentAt = now.SentAt
	} else {
		r.SentAt = v.t.SentAt // of a later request: nothing tells it, and nothing asks for it
	}
	if v.t.TTFT == nil && now.TTFTStream != nil && !r.SentAt.IsZero() {
		ms := time.Duration(*now.TTFTStream) * time.Millisecond
		if ms >= 0 {
			ms += time.Millisecond - 1 // the fraction is not recorded
		}
		r.FirstEvent = now.Started.Add(ms).Sub(r.SentAt)
	}
	if now.StopReason != nil {
		r.Stop = *now.StopReason
	}
	rest := v.rest
	stored := rest[0].Kind == loop.KindAssistant && !rest[0].Assistant.Notice && rest[0].Assistant.CopiedFrom == ""
	if stored {
		a := rest[0].Assistant
		r.MsgID, r.Model, r.Blocks, r.StopSeq = a.Message.ID, a.Message.Model, a.Message.Content, a.Message.StopSequence
		r.StartUsage, r.Aborted, r.Stop = a.Message.Usage, a.Aborted, ""
		if a.Message.StopReason != nil {
			r.Stop = *a.Message.StopReason
		}
		r.Text = message.BlockContent(r.Blocks...).Text()
		rest = rest[1:]
	}
	var requested []loop.Call
	if len(rest) > 0 && rest[0].Kind == loop.KindCall && rest[0].Call.Op == loop.CallsRequested {
		requested = rest[0].Call.Calls
	}
	r.Calls = asked(r.Blocks, requested)
	if !stored && v.last != nil && v.last.Text != nil {
		// The model of a refusal without words stands only in the text of its ending.
		if _, name, ok := strings.Cut(*v.last.Text, "The model "); ok {
			r.Model, _, _ = strings.Cut(name, " declined to answer")
		}
	}
	broken := &loop.Broken{}
	if n := v.notice(); n != nil {
		broken.Notice, broken.Category = message.BlockContent(n.Message.Content...).Text(), n.Error
	}
	if v.last != nil {
		broken.Status = v.last.Status
	}
	for _, aborted := range []bool{false, true} {
		if stored && aborted != r.Aborted {
			continue
		}
		r.Aborted = aborted
		v.add("a response", r)
		b := r
		b.Broken = broken
		v.add("a response that broke off", b)
	}
}

// asked are the facts of a response's calls, one for each of its tool_use blocks, as
// far as the entry of the calls tells them. The machine gives them their keys and
// finds repeated ones by itself; of two calls with one id it takes the first.
func asked(blocks []message.Block, recorded []loop.Call) (calls []loop.Call) {
	for _, b := range blocks {
		u, ok := b.ToolUse()
		if !ok {
			continue
		}
		c := loop.Call{ID: u.ID, Name: u.Name}
		if i := slices.IndexFunc(recorded, func(c loop.Call) bool { return c.ID == u.ID && c.Name == u.Name }); i >= 0 {
			c = recorded[i]
		}
		c.Key, c.Status = "", ""
		if c.Fault == loop.FaultRepeated {
			c.Fault, c.FaultText = loop.FaultNone, ""
		}
		calls = append(calls, c)
	}
	return calls
}

// decision on the call with this key.
func (v *view) decision(key string) {
	c, _ := v.m.Call(key)
	if d := v.turn.Turn.Deferred; d != nil && v.t.Deferred == nil && d.ID == c.ID {
		v.add("a decision to leave the call "+c.ID+" open", loop.Decided{Key: key, Defer: true})
	}
	halt := v.halt()
	if halt != nil {
		v.add("an end at the decision on the call "+c.ID, loop.Decided{Key: key, Allow: true, Halt: halt})
	}
	if v.next.Kind != loop.KindCall || v.next.Call.Key != key {
		return
	}
	call := v.next.Call
	switch call.Op {
	case loop.CallAllowed:
		v.add("the permission of the call "+c.ID, loop.Decided{Key: key, Allow: true, Input: call.Input, Reason: call.Reason})
	case loop.CallDenied:
		d := loop.Decided{Key: key, Reason: call.Reason, Denial: call.Denial}
		if len(v.rest) > 1 {
			if res, context, ok := resultOf(&v.rest[1], c.ID); ok {
				d.Content, d.Context = res.Content, context
			}
		}
		name := "the denial of the call " + c.ID
		v.add(name, d)
		if halt != nil {
			d.Halt = halt
			v.add(name, d)
		}
	}
}

// outcome of a running call.
func (v *view) outcome(c loop.Call) {
	i := 0
	f := loop.Finished{Key: c.Key}
	for i < len(v.rest) && v.rest[i].Kind == loop.KindState {
		f.State = append(f.State, *v.rest[i].State)
		i++
	}
	var res message.ToolResult
	var context []message.Block
	ok := false
	if i < len(v.rest) {
		res, context, ok = resultOf(&v.rest[i], c.ID)
	}
	name := "the outcome of the call " + c.ID
	if !ok {
		if i > 0 {
			v.add(name, f) // of a write in part, the result is not there
		}
		return
	}
	f.Content, f.IsError, f.Context, f.Structured = res.Content, res.IsError, context, v.rest[i].User.Structured
	f.Valid = f.Structured != nil
	halt := v.halt()
	for _, spend := range []*loop.Spend{nil, &v.turn.Turn.Spend} {
		f.Spend, f.Halt = spend, nil
		v.add(name, f)
		if halt != nil {
			f.Halt = halt
			v.add(name, f)
		}
	}
}

// resultOf is the result of a call, and what stands behind it.
func resultOf(r *record, id string) (res message.ToolResult, context []message.Block, ok bool) {
	if r.Kind != loop.KindUser || r.User.ToolUseID != id {
		return res, nil, false
	}
	blocks := r.User.Content.Blocks()
	if len(blocks) == 0 {
		return res, nil, false
	}
	if res, ok = blocks[0].ToolResult(); len(blocks) > 1 {
		context = blocks[1:]
	}
	return res, context, ok
}

func (v *view) batch() {
	b := loop.Batched{ID: v.t.Await}
	if isMeta(v.next) {
		b.Context = v.next.User.Content.Blocks()
	}
	v.add("the hooks after the calls", b)
	if e := v.halt(); e != nil {
		v.add("the hooks after the calls", loop.Batched{ID: v.t.Await, Halt: e})
	}
}

func (v *view) stop() {
	e := loop.Stopped{ID: v.t.Await}
	if isMeta(v.next) {
		e.Block = message.BlockContent(v.next.User.Content.Blocks()...).Text()
	}
	v.add("the Stop hooks", e)
	if h := v.halt(); h != nil {
		v.add("the Stop hooks", loop.Stopped{ID: v.t.Await, Halt: h})
	}
}

func (v *view) compact() {
	now := v.turn.Turn
	c := loop.Compacted{ID: v.t.Await, Spend: now.Spend, APITime: now.APITime - v.t.APITime, Tokens: now.Tokens}
	if v.next.Kind == loop.KindSystem {
		c.Trigger, c.PreTokens = v.next.System.Trigger, v.next.System.PreTokens
		if len(v.rest) > 1 && v.rest[1].Kind == loop.KindUser && v.rest[1].User.Content.IsText() {
			c.Summary = v.rest[1].User.Content.Text()
		}
		// The first copy tells what was kept: of a write in part not all are there.
		c.KeepFrom = v.m.History().Len()
		if len(v.rest) > 2 {
			from := copyOf(&v.rest[2])
			if i := slices.IndexFunc(v.m.History().Items(), func(it history.Item) bool { return it.UUID == from }); from != "" && i >= 0 {
				c.KeepFrom = i
			}
		}
		v.add("a compaction", c)
		return
	}
	blocked := c
	blocked.Blocked = true
	c.Err = "failed"
	if n := v.notice(); n != nil {
		if _, cause, ok := strings.Cut(message.BlockContent(n.Message.Content...).Text(), " · automatic compaction failed: "); ok {
			c.Err, blocked.Err = cause, cause
		}
	}
	v.add("a compaction that failed", c)
	v.add("a compaction that was blocked", blocked)
	if blocked.Err != "" {
		blocked.Err = ""
		v.add("a compaction that was blocked", blocked)
	}
}

// copyOf is the id that a kept message had before; "": it is no copy.
func copyOf(r *record) string {
	switch r.Kind {
	case loop.KindUser:
		return r.User.CopiedFrom
	case loop.KindAssistant:
		return r.Assistant.CopiedFrom
	}
	return ""
}

// recoveries are the ways in which another process takes over.
func (p *player) recoveries() (tries []try) {
	if p.at >= len(p.recs) {
		return nil
	}
	known := map[string]loop.Known{}
	for _, c := range p.m.Calls() {
		if c.Status != loop.Running {
			continue
		}
		for i := p.at; i < len(p.recs) && p.recs[i].Kind == loop.KindUser; i++ {
			if res, _, ok := resultOf(&p.recs[i], c.ID); ok {
				known[c.Key] = loop.Known{Content: res.Content, IsError: res.IsError, Structured: p.recs[i].User.Structured}
				break
			}
		}
	}
	for _, how := range []loop.Recovery{loop.CloseOpen, loop.Continue} {
		name := recovered + " of a session whose process ended"
		tries = append(tries, try{name: name, cfg: p.cfg, any: true, do: func(m *loop.Machine, at loop.Stamp) loop.Ready {
			return m.Recover(at, how, known)
		}})
	}
	return tries
}

// guesses are the tries with what a journal of before does not tell: which hooks
// there were, whether messages were absorbed, when the context was compacted. The
// caps are taken from the ending's text.
func (p *player) guesses(tries []try) (out []try) {
	v := p.view()
	base := loop.Config{SessionID: p.cfg.SessionID, MaxTurns: p.cfg.MaxTurns, MaxBudgetUSD: p.cfg.MaxBudgetUSD, Width: math.MaxInt, StopBlockCap: -1, SchemaRetries: new(math.MaxInt)}
	if v.last != nil && len(v.last.Errors) > 0 {
		text := v.last.Errors[0]
		switch v.last.Subtype {
		case message.ErrorMaxTurns:
			if n, err := strconv.Atoi(between(text, "(", ")")); err == nil && base.MaxTurns == nil {
				base.MaxTurns = &n
			}
		case message.ErrorMaxBudgetUSD:
			if usd, err := strconv.ParseFloat(between(text, "($", ")"), 64); err == nil && base.MaxBudgetUSD == nil {
				base.MaxBudgetUSD = &usd
			}
		case message.ErrorMaxStructuredOutputRetries:
			if n, err := strconv.Atoi(between(text, " in ", " attempts")); err == nil {
				base.SchemaRetries = new(n - 1)
			}
		}
	}
	no, both := []bool{false}, []bool{false, true}
	batch, stop, steer, schema, compact := no, no, no, no, []int64{0, 1, math.MaxInt64}
	switch v.t.State {
	case loop.Tools:
		batch, stop, schema, steer = both, both, both, both
	case loop.Model:
		stop, schema = both, both
	case loop.Batch:
		steer = both
	case loop.Idle, loop.Settle, loop.Closed:
		compact = compact[:1]
	}
	if len(v.m.Queue()) == 0 {
		steer = no // there is nothing to absorb
	}
	for _, base.BatchHooks = range batch {
		for _, base.StopHooks = range stop {
			for _, base.Steer = range steer {
				for _, base.Schema = range schema {
					for _, base.CompactAt = range compact {
						for _, c := range tries {
							c.cfg = base
							out = append(out, c)
						}
					}
				}
			}
		}
	}
	return out
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
