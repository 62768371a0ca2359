package loop

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/turnwright/turnwright/message"
)

// Step takes one event and returns what is owed. An outcome that is not
// awaited, and a command that does not apply, change nothing.
func (m *Machine) Step(at Stamp, ev Event) Ready {
	s := step{Machine: m, at: at}
	s.dispatch(ev)
	s.ready.Want = m.Want()
	return s.ready
}

// step is the scratch space of one Step: it decides on entries, applies them
// and collects what the driver must do.
type step struct {
	*Machine
	at    Stamp
	n     uint64
	ready Ready
	erase bool // the prompt does not enter the history (L-219)
}

func (s *step) newID() string {
	id := s.at.id(s.n)
	s.n++
	return id
}

// put decides on an entry: it is applied at once and handed to the driver.
func (s *step) put(e Entry) {
	e.Time = s.at.Time
	if e.Chain() && e.UUID == "" {
		e.UUID = s.newID()
	}
	s.apply(e)
	if n := len(s.ready.Entries); e.Kind == KindTurn && n > 0 {
		// Of several turn entries in a row only the last one counts.
		if old := &s.ready.Entries[n-1]; old.Kind == KindTurn && old.Turn.Result == nil {
			*old = e
			return
		}
	}
	s.ready.Entries = append(s.ready.Entries, e)
}

func (s *step) emit(m message.Message) {
	h := m.Head()
	if h.UUID == "" {
		h.UUID = s.newID()
	}
	if h.SessionID == "" {
		h.SessionID = s.settings.SessionID
	}
	if a, ok := m.(*message.Assistant); ok {
		a.Timestamp = s.at.Time.UTC().Format("2006-01-02T15:04:05.000Z") // W-235; that of its line
	}
	s.ready.Emit = append(s.ready.Emit, m)
}

// setTurn records a change of the small state.
func (s *step) setTurn(f func(*Turn)) {
	t := &TurnEntry{Turn: s.turn}
	f(&t.Turn)
	s.put(Entry{Kind: KindTurn, Turn: t})
}

// enter moves to a state that awaits one effect. The number makes its id new.
func enter(t *Turn, st State) {
	t.State = st
	t.Seq++
	t.Await = string(st) + "/" + strconv.FormatInt(t.Seq, 10)
}

func (s *step) dispatch(ev Event) {
	switch e := ev.(type) {
	case Send:
		s.send(e.Input)
	case Interrupt:
		s.interrupt(e)
	case Spent:
		s.spent(e.Spend)
	case Configure:
		limits, run := s.cfg.limits(), s.cfg.run()
		if (e.Model != "" && e.Model != s.settings.Model) || (e.Mode != "" && e.Mode != s.settings.Mode) || limits != s.settings.Limits || run != s.settings.Run {
			set := s.settings
			set.Limits, set.Run = limits, run
			told := e.Tell && e.Mode != "" && e.Mode != set.Mode && s.turn.State != Closed
			set.Model, set.Mode = e.Model, e.Mode
			s.put(Entry{Kind: KindOpen, Open: &set})
			if told {
				s.emit(&message.Status{PermissionMode: e.Mode})
			}
		}
	case Hooks:
		s.cfg.BatchHooks, s.cfg.StopHooks = e.Batch, e.Stop
		if run := s.cfg.run(); s.settings.Width != 0 && run != s.settings.Run {
			set := s.settings
			set.Run = run
			s.put(Entry{Kind: KindOpen, Open: &set})
		}
	case Abort:
		if s.running() {
			s.settleAs(e.Ending)
		}
	case EndInput:
		s.endInput()
	case Close:
		s.close(e)
	case Decided:
		s.decided(e)
	case Finished:
		s.finished(e)
	default:
		s.outcome(ev)
	}
}

// outcome handles the outcomes of the awaited effect.
func (s *step) outcome(ev Event) {
	id := outcomeID(ev)
	if id == "" || id != s.turn.Await {
		return // stale, or doubled
	}
	if s.turn.State == Settle {
		s.lateOutcome(ev)
		return
	}
	switch e := ev.(type) {
	case Admitted:
		s.admitted(e)
	case Local:
		s.local(e)
	case Preceded:
		s.preceded(e)
	case Response:
		s.response(e)
	case Failed:
		s.failed(e)
	case TooLong:
		s.tooLong(e)
	case BudgetReached:
		s.setTurn(func(t *Turn) { t.Spend = maxSpend(t.Spend, e.Spend) })
		s.end(s.budgetEnding())
	case Batched:
		s.batched(e)
	case Stopped:
		s.stopped(e)
	case Compacted:
		s.compacted(e)
	case Cancelled:
		// The driver gave the effect up although it was wanted: the run was
		// cancelled from outside.
		s.settleNow(s.abortEnding())
	}
}

func outcomeID(ev Event) string {
	switch e := ev.(type) {
	case Admitted:
		return e.ID
	case Local:
		return e.ID
	case Preceded:
		return e.ID
	case Response:
		return e.ID
	case Failed:
		return e.ID
	case TooLong:
		return e.ID
	case BudgetReached:
		return e.ID
	case Batched:
		return e.ID
	case Stopped:
		return e.ID
	case Compacted:
		return e.ID
	case Cancelled:
		return e.ID
	}
	return ""
}

// running reports whether a user turn runs that is not ending yet.
func (s *step) running() bool {
	switch s.turn.State {
	case Idle, Settle, Closed:
		return false
	}
	return true
}

func (s *step) send(in Input) {
	if s.turn.State == Closed || s.turn.Drain || s.turn.Closing {
		return
	}
	if in.ID == "" || s.sent.has(in.ID) {
		in.ID = s.newID() // ids are unique in a session: two lines of one id break the chain
	}
	s.put(Entry{Kind: KindInput, Input: &InputEntry{Input: in}})
	s.next()
}

// next starts the next queued user turn when the machine is idle. Messages
// that ask for no answer are stored and merged into the next one that does.
// With nothing left and no more to come, the session closes.
func (s *step) next() {
	for s.turn.State == Idle && len(s.queue) > 0 {
		in := s.queue[0]
		if in.NoQuery {
			s.putPrompt(in, in.Content)
			continue
		}
		s.setTurn(func(t *Turn) {
			*t = Turn{
				Seq: t.Seq, Tokens: t.Tokens, Spend: t.Spend, CompactFails: t.CompactFails, Drain: t.Drain,
				Input: in.ID, Origin: in.Origin, Synthetic: in.Synthetic, Started: s.at.Time, Deferred: t.Deferred,
			}
			enter(t, Admit)
		})
	}
	if s.turn.State == Idle && s.turn.Drain {
		s.setTurn(func(t *Turn) { t.State = Closed })
	}
}

// putPrompt stores a user message as history. With replay on it is shown; the
// notification of a task always is, since nobody outside has sent it (T-139).
func (s *step) putPrompt(in Input, content message.Content) {
	s.put(Entry{Kind: KindUser, UUID: in.ID, User: &UserEntry{
		Content: content, Origin: in.Origin, Synthetic: in.Synthetic,
	}})
	s.replay(in)
}

// replay shows a user message that is taken up.
func (s *step) replay(in Input) {
	if s.cfg.Replay || injected(in) {
		s.emit(&message.User{
			Message:  message.UserBody{Role: message.RoleUser, Content: in.Content},
			IsReplay: !injected(in), IsSynthetic: in.Synthetic, Origin: in.Origin,
			Header: message.Header{UUID: in.ID},
		})
	}
}

// injected reports a message that the session made itself: the notification of
// a task, or the first message of a hook.
func injected(in Input) bool { return in.Origin.Injected() }

func (s *step) putMeta(text string) {
	s.put(Entry{Kind: KindUser, User: &UserEntry{Content: message.BlockContent(message.NewText(text)), Meta: true}})
}

func (s *step) emitInit(init *message.Init) {
	if init == nil || s.turn.Inited {
		return
	}
	s.emit(init)
}

func (s *step) admitted(e Admitted) {
	s.storeAdmitted(e)
	s.begin(func(t *Turn) { t.Inited = e.Init != nil })
}

// begin goes to the first request of a user turn, or to a call that was left
// open before it (L-140).
func (s *step) begin(change func(*Turn)) {
	if s.turn.Deferred == nil {
		s.toModel(change)
		return
	}
	c := *s.turn.Deferred
	c.Key, c.Status = strconv.FormatInt(s.turn.Seq, 10)+".0", Queued
	s.put(Entry{Kind: KindCall, Call: &CallEntry{Op: CallsRequested, Calls: []Call{c}}})
	s.setTurn(func(t *Turn) {
		if change != nil {
			change(t)
		}
		t.State, t.Await, t.Counts, t.Deferred = Tools, "", !c.Internal, nil // L-158
	})
}

func (s *step) storeAdmitted(e Admitted) {
	s.emitInit(e.Init)
	s.putContext(e.Before)
	if s.prompt != nil {
		content := e.Content
		if content.IsZero() {
			content = s.prompt.Content
		}
		s.putPrompt(*s.prompt, content)
	}
	s.putContext(e.Context)
}

// putContext stores texts that no person wrote.
func (s *step) putContext(blocks []message.Block) {
	if len(blocks) > 0 {
		s.put(Entry{Kind: KindUser, User: &UserEntry{Content: message.BlockContent(blocks...), Meta: true}})
	}
}

func (s *step) local(e Local) {
	s.storeLocal(e)
	end := Ending{Subtype: message.Success, Text: &e.Text}
	if e.Ending != nil {
		end = *e.Ending
	}
	s.end(end)
}

// preceded starts the turn of another input in the place of this one.
func (s *step) preceded(e Preceded) {
	if s.prompt != nil {
		s.put(Entry{Kind: KindInput, Input: &InputEntry{Input: *s.prompt, First: true}})
	}
	in := e.Input
	if in.ID == "" || s.sent.has(in.ID) {
		in.ID = s.newID()
	}
	s.put(Entry{Kind: KindInput, Input: &InputEntry{Input: in, First: true}})
	s.giveUp()
	s.next()
}

// giveUp leaves the turn of an input that waits again.
func (s *step) giveUp() {
	s.setTurn(func(t *Turn) {
		*t = Turn{
			State: Idle, Seq: t.Seq, Tokens: t.Tokens, Spend: t.Spend, CompactFails: t.CompactFails,
			Drain: t.Drain, Closing: t.Closing, Deferred: t.Deferred,
		}
	})
}

func (s *step) storeLocal(e Local) {
	s.emitInit(e.Init)
	switch {
	case s.prompt != nil && e.Keep:
		s.putPrompt(*s.prompt, s.prompt.Content)
	case s.prompt != nil && !injected(*s.prompt):
		s.replay(*s.prompt)
	}
	s.erase = !e.Keep
	for _, n := range e.Notices {
		s.emit(n)
	}
}

// toModel goes to the next model request: over the budget it ends instead
// (L-43), with a full context it compacts first (L-161).
func (s *step) toModel(change func(*Turn)) {
	t := s.turn
	if change != nil {
		change(&t)
	}
	if s.overBudget(t.Spend) {
		s.setTurn(func(old *Turn) { *old = t })
		s.end(s.budgetEnding())
		return
	}
	if s.cfg.CompactAt > 0 && t.Tokens >= s.cfg.CompactAt && t.CompactFails < maxCompactFails {
		s.toCompact(t, false)
		return
	}
	enter(&t, Model)
	s.setTurn(func(old *Turn) { *old = t })
}

func (s *step) overBudget(sp Spend) bool {
	return s.cfg.MaxBudgetUSD != nil && sp.USD >= *s.cfg.MaxBudgetUSD
}

func (s *step) batched(e Batched) {
	if e.Halt != nil {
		s.end(*e.Halt)
		return
	}
	s.putContext(e.Context)
	s.absorb()
	s.toModel(func(t *Turn) { t.Text = "" })
}

// absorb hands steering messages to the model with the results (L-188).
func (s *step) absorb() {
	for _, in := range slices.Clone(s.queue) {
		if in.Steer == nil && !s.cfg.Steer || in.Steer != nil && !*in.Steer {
			continue
		}
		s.put(Entry{Kind: KindUser, UUID: in.ID, User: &UserEntry{
			Content: in.Content, Origin: in.Origin, Synthetic: in.Synthetic,
		}})
		s.emit(&message.User{
			Message:     message.UserBody{Role: message.RoleUser, Content: in.Content},
			IsSynthetic: in.Synthetic, Origin: in.Origin,
			Header: message.Header{UUID: in.ID},
		})
	}
}

func (s *step) stopped(e Stopped) {
	switch {
	case e.Halt != nil:
		s.end(*e.Halt)
	case e.Block != "" && (s.cfg.stopCap() < 0 || s.turn.StopBlocks < s.cfg.stopCap()):
		s.putMeta(e.Block)
		s.toModel(func(t *Turn) {
			t.StopBlocks++
			t.Final, t.Text = false, ""
		})
	case e.Block != "": // B-077
		s.emit(&message.Informational{
			Content: fmt.Sprintf("Stop hooks kept the turn from ending %d times in a row, so it ends anyway.", s.turn.StopBlocks),
			Level:   "warning",
		})
		s.end(completed())
	default:
		s.end(completed())
	}
}

func (s *step) interrupt(e Interrupt) {
	rep := Reply{ID: e.Reply, Running: s.running() || s.turn.State == Settle}
	if e.CancelQueue {
		for _, in := range slices.Clone(s.queue) {
			rep.Cancelled = append(rep.Cancelled, in.ID)
			s.put(Entry{Kind: KindInput, Input: &InputEntry{Input: Input{ID: in.ID}, Dropped: true}})
		}
	}
	for _, in := range s.queue {
		rep.StillQueued = append(rep.StillQueued, in.ID)
	}
	s.ready.Replies = append(s.ready.Replies, rep)
	if s.running() {
		s.settleAs(s.abortEnding())
		return
	}
	s.hurry(false)
}

// hurry cancels what an ending let run to its end: whoever interrupts or
// closes does not wait for it. With silent the ending has no result.
func (s *step) hurry(silent bool) {
	if s.turn.State != Settle || s.turn.Ending == nil {
		return
	}
	old, e := *s.turn.Ending, *s.turn.Ending
	e.LetRun, e.Silent = false, e.Silent || silent
	if e.LetRun != old.LetRun || e.Silent != old.Silent {
		s.setTurn(func(t *Turn) { t.Ending = &e })
	}
}

func (s *step) close(c Close) {
	switch {
	case s.turn.State == Closed || s.turn.Closing && !c.Killed:
	case s.turn.State == Idle:
		s.setTurn(func(t *Turn) { t.State, t.Closing = Closed, true })
	default:
		s.setTurn(func(t *Turn) { t.Closing = true })
		if s.running() {
			e := s.abortEnding()
			e.Silent, e.By = c.Killed, "end of the session"
			if c.Killed {
				e.By = "end of the process"
			}
			s.settleAs(e)
		}
		s.hurry(c.Killed)
	}
}

func (s *step) endInput() {
	if s.turn.State == Closed || s.turn.Drain {
		return
	}
	s.setTurn(func(t *Turn) { t.Drain = true })
	s.next()
}

func (s *step) spent(sp Spend) {
	if s.turn.State == Closed {
		return
	}
	s.setTurn(func(t *Turn) { t.Spend = maxSpend(t.Spend, sp) })
	if s.running() && s.overBudget(s.turn.Spend) {
		s.settleAs(s.budgetEnding())
	}
}

// settleNow settles when the awaited effect has come back already.
func (s *step) settleNow(e Ending) {
	s.setTurn(func(t *Turn) { t.Await = "" })
	s.settleAs(e)
}

// settleAs ends the running user turn as soon as what is running has come back.
func (s *step) settleAs(e Ending) {
	if !s.running() {
		return
	}
	if s.turn.State == Compact {
		s.emit(&message.Status{}) // closes the bracket of L-162
	}
	s.setTurn(func(t *Turn) {
		t.State = Settle
		t.Ending = &e
	})
	s.refuse(e.Refusal)
	s.settled()
}

// settled ends the user turn when nothing that it waits for is left.
func (s *step) settled() {
	if s.turn.State != Settle || s.turn.Await != "" {
		return
	}
	for i := range s.calls {
		if s.calls[i].Status == Running {
			return
		}
	}
	s.end(*s.turn.Ending)
}

// lateOutcome takes the outcome of an effect that is no longer wanted: what
// came whole is kept, nothing of it runs.
func (s *step) lateOutcome(ev Event) {
	done := func(t *Turn) { t.Await = "" }
	switch e := ev.(type) {
	case Admitted:
		s.storeAdmitted(e)
	case Local:
		s.storeLocal(e)
	case Response:
		s.putResponse(e)
		s.refuse(s.turn.Ending.Refusal)
		done = func(t *Turn) { t.Await = ""; s.account(t, e) }
	case Failed:
		done = func(t *Turn) { t.Await = ""; t.Spend = maxSpend(t.Spend, e.Spend); t.APITime += e.APITime }
	case TooLong:
		done = func(t *Turn) { t.Await = ""; t.Spend = maxSpend(t.Spend, e.Spend); t.APITime += e.APITime }
	case BudgetReached:
		done = func(t *Turn) { t.Await = ""; t.Spend = maxSpend(t.Spend, e.Spend) }
	case Compacted:
		done = func(t *Turn) { t.Await = ""; t.Spend = maxSpend(t.Spend, e.Spend); t.APITime += e.APITime }
	}
	s.setTurn(done)
	s.settled()
}

// maxSpend keeps the newer of two running totals: they only grow.
func maxSpend(a, b Spend) Spend {
	if b.USD < a.USD || b.USD == a.USD && len(b.Models) < len(a.Models) {
		return a
	}
	return b
}

// end ends the user turn with its one result (L-12) and starts the next.
func (s *step) end(e Ending) {
	s.finish(e)
	s.next()
}

func (s *step) finish(e Ending) {
	s.refuse(e.Refusal)
	if s.prompt != nil && !s.erase {
		// The message stays in the history, so that a follow-up can go on (L-111).
		s.putPrompt(*s.prompt, s.prompt.Content)
	}
	var res *message.Result
	if !e.Silent {
		res = s.result(e)
	}
	t := s.turn
	t.Ending, t.Await, t.Text = &e, "", "" // the text is in the result
	t.Input, t.Origin, t.Synthetic = "", nil, false
	t.State = Idle
	if t.Closing {
		t.State = Closed
	}
	s.put(Entry{Kind: KindTurn, Turn: &TurnEntry{Turn: t, Result: res}})
	if res != nil {
		s.emit(res)
	}
}

func (s *step) result(e Ending) *message.Result {
	t := s.turn
	r := &message.Result{
		Subtype:           e.Subtype,
		IsError:           e.IsError || e.Subtype != message.Success,
		DurationMS:        s.at.Time.Sub(t.Started).Milliseconds(),
		DurationAPIMS:     t.APITime.Milliseconds(),
		ToolTurns:         t.ToolTurns,
		NumTurns:          t.ToolTurns,
		TerminalReason:    e.Terminal,
		TotalCostUSD:      new(t.Spend.USD),
		Usage:             new(t.Usage),
		ModelUsage:        maps.Clone(t.Spend.Models),
		PermissionDenials: s.Denials(),
		Origin:            t.Origin,
		TTFTMS:            t.TTFT,
		TTFTStreamMS:      t.TTFTStream,
	}
	if !e.NoStop {
		r.StopReason = t.StopReason
	}
	if t.Final && e.Subtype == message.Success { // decision 58
		r.NumTurns++
	}
	if e.Status != 0 {
		r.APIErrorStatus = new(e.Status)
	}
	if e.Subtype == message.Success {
		text := t.Text
		if e.Text != nil {
			text = *e.Text
		}
		r.Result = &text
		r.StructuredOutput = s.output
		if e.Terminal == message.TerminalCompleted && !e.IsError && human(t) && !t.SentAt.IsZero() {
			r.UserMessageUUID = t.Input
			r.RequestSentWallMS = t.SentAt.UnixMilli()
		}
	} else {
		r.Errors = slices.Clone(e.Errors)
		if len(r.Errors) == 0 {
			r.Errors = []string{fmt.Sprintf("the run ended with %s", e.Subtype)}
		}
	}
	if e.Terminal == message.TerminalToolDeferred || e.Terminal == message.TerminalToolDeferredUnavailable {
		r.StopReason, r.DeferredToolUse = new(string(e.Terminal)), s.deferredUse()
	}
	if r.ModelUsage == nil {
		r.ModelUsage = map[string]message.ModelUsage{}
	}
	return r
}

// deferredUse is the call that was left open, as the model wrote it.
func (s *step) deferredUse() *message.ToolUse {
	items := s.hist.Items()
	for i := len(items) - 1; i >= 0 && s.turn.Deferred != nil; i-- {
		for _, b := range items[i].Blocks {
			if u, ok := b.ToolUse(); ok && u.ID == s.turn.Deferred.ID {
				return &u
			}
		}
	}
	return nil
}

// human reports whether a real user message started the user turn (M-59).
func human(t Turn) bool {
	return !t.Synthetic && (t.Origin == nil || t.Origin.Kind == "human")
}
