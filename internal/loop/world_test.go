package loop_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// failer is what the checks need of a test: *testing.T and *rapid.T have it.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a machine with all that its driver would keep. After every step it
// checks what must hold whatever happens.
type world struct {
	t   failer
	cfg loop.Config
	m   *loop.Machine

	lines   [][]byte         // the journal
	entries []loop.Entry     // as the machine wrote them
	decoded []loop.Entry     // after a round trip through the journal
	folds   [2]*loop.Machine // of both, grown entry by entry
	enc     journal.Writer
	emitted []message.Message
	uuids   map[string]bool // of all emitted messages
	chain   map[string]bool // uuids of chain entries
	steps   int

	running  []loop.Effect        // started, no outcome yet
	started  map[loop.Effect]bool // by this process
	outcomes []loop.Event         // all that were delivered
	deferred map[string]bool      // calls that were left open for the next user turn
	torn     bool                 // a crash tore a step's entries: pairing is the history's business
}

func newWorld(t failer, cfg loop.Config) *world {
	cfg.SessionID = "s"
	return &world{
		t: t, cfg: cfg, m: loop.New(cfg), folds: [2]*loop.Machine{loop.New(cfg), loop.New(cfg)},
		enc:   journal.Writer{SessionID: "s", CWD: "/w", Version: "1"},
		uuids: map[string]bool{}, chain: map[string]bool{}, started: map[loop.Effect]bool{},
		deferred: map[string]bool{},
	}
}

// stamp is the time and id of the next step: one second after the last.
func (w *world) stamp() loop.Stamp {
	w.steps++
	s := loop.Stamp{Time: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC).Add(time.Duration(w.steps) * time.Second)}
	binary.BigEndian.PutUint32(s.UUID[:], uint32(w.steps))
	s.UUID[6], s.UUID[8] = 0x40, 0x80
	return s
}

// feed gives the machine an event and does what it owes.
func (w *world) feed(ev loop.Event) loop.Ready {
	w.t.Helper()
	w.forget(ev)
	r := w.m.Step(w.stamp(), ev)
	w.take(r)
	return r
}

// forget notes that the effect of an outcome has ended.
func (w *world) forget(ev loop.Event) {
	kinds, id := outcomeOf(ev)
	if id == "" {
		return
	}
	n := len(w.running)
	w.running = slices.DeleteFunc(w.running, func(e loop.Effect) bool {
		return e.ID == id && slices.Contains(kinds, e.Kind)
	})
	if len(w.running) < n {
		w.outcomes = append(w.outcomes, ev)
	}
}

// take writes, emits and starts.
func (w *world) take(r loop.Ready) {
	w.t.Helper()
	w.write(r.Entries)
	w.emit(r)
	for _, e := range r.Want {
		if slices.Contains(w.running, e) {
			continue
		}
		if w.started[e] {
			w.t.Fatalf("step %d: the effect %v is wanted a second time", w.steps, e)
		}
		w.started[e] = true
		w.running = append(w.running, e)
	}
	w.check()
}

func (w *world) write(entries []loop.Entry) {
	w.t.Helper()
	for _, e := range entries {
		line, err := w.enc.Encode(e)
		if err != nil {
			w.t.Fatalf("step %d: %v", w.steps, err)
		}
		d, ok, err := journal.Decode(line)
		if err != nil || !ok {
			w.t.Fatalf("step %d: reading %s back: ok %v, %v", w.steps, line, ok, err)
		}
		w.lines = append(w.lines, line)
		w.entries, w.decoded = append(w.entries, e), append(w.decoded, d)
		w.folds[0].Apply(e)
		w.folds[1].Apply(d)
		if e.Chain() {
			if w.chain[e.UUID] {
				w.t.Fatalf("step %d: two chain entries have the id %s", w.steps, e.UUID)
			}
			w.chain[e.UUID] = true
		}
	}
}

// emit checks that nothing is shown that was not written, and that every line
// of the conversation is shown once.
func (w *world) emit(r loop.Ready) {
	w.t.Helper()
	shown := map[string]bool{}
	results := 0
	for _, m := range r.Emit {
		id := m.Head().UUID
		if id == "" || w.uuids[id] {
			w.t.Fatalf("step %d: message %T has the id %q, which is empty or not new", w.steps, m, id)
		}
		w.uuids[id], shown[id] = true, true
		w.emitted = append(w.emitted, m)
		written := true
		switch m := m.(type) {
		case *message.Assistant:
			// A reply without blocks is shown, not stored (B-006).
			written = w.chain[id] || len(m.Message.Content) == 0
		case *message.User:
			// A prompt that ends without the model is given back, not stored (L-192).
			written = w.chain[id] || m.IsReplay
		case *message.CompactBoundary:
			written = w.chain[id]
		case *message.Result:
			results++
			written = slices.ContainsFunc(r.Entries, func(e loop.Entry) bool {
				return e.Kind == loop.KindTurn && e.Turn.Result == m
			})
			w.checkResult(m)
		}
		if !written {
			w.t.Fatalf("step %d: %T %s is emitted and not written", w.steps, m, id)
		}
	}
	for _, e := range r.Entries {
		switch {
		case e.Kind == loop.KindTurn && e.Turn.Result != nil:
			results--
		case e.Kind == loop.KindAssistant && e.Assistant.CopiedFrom == "",
			e.Kind == loop.KindUser && e.User.ToolUseID != "",
			e.Kind == loop.KindSystem:
			if !shown[e.UUID] {
				w.t.Fatalf("step %d: the %s entry %s is not emitted", w.steps, e.Kind, e.UUID)
			}
		}
	}
	if results != 0 {
		w.t.Fatalf("step %d: %d more results emitted than written", w.steps, results)
	}
}

func (w *world) checkResult(r *message.Result) {
	w.t.Helper()
	bad := ""
	limit := w.cfg.MaxTurns
	switch {
	case r.TotalCostUSD == nil || r.Usage == nil || r.ModelUsage == nil:
		bad = "lacks cost or usage (L-56)"
	case r.Subtype == message.Success && (r.Result == nil || len(r.Errors) > 0):
		bad = "is a success without result, or with errors (M-54)"
	case r.Subtype != message.Success && (r.Result != nil || !r.IsError || len(r.Errors) == 0 || r.Errors[0] == ""):
		bad = "is an error with a result, or without errors (L-55, L-57)"
	case r.Subtype != message.Success && r.NumTurns != r.ToolTurns,
		r.NumTurns < r.ToolTurns || r.NumTurns > r.ToolTurns+1:
		bad = "has num_turns that do not fit tool_turns (L-20)"
	case limit != nil && r.ToolTurns > *limit:
		bad = "ran more tool turns than the cap allows (L-25)"
	case r.Subtype == message.ErrorMaxTurns && (limit == nil || r.NumTurns != *limit):
		bad = "hit the cap with other num_turns (L-20)"
	case r.Subtype == message.ErrorMaxBudgetUSD && (w.cfg.MaxBudgetUSD == nil || r.Result != nil):
		bad = "hit a budget that is not there"
	}
	if bad != "" {
		w.t.Fatalf("step %d: the result %+v %s", w.steps, *r, bad)
	}
}

// replay gives every outcome that was delivered once more, to a copy: none may
// change anything.
func (w *world) replay(events ...loop.Event) {
	w.t.Helper()
	m := loop.Fold(w.cfg, slices.Values(w.entries))
	before := loop.Snapshot(m)
	for _, ev := range events {
		r := m.Step(loop.Stamp{}, ev)
		if len(r.Entries)+len(r.Emit)+len(r.Replies) > 0 {
			w.t.Fatalf("step %d: the outcome %#v, given again, made %+v", w.steps, ev, r)
		}
	}
	if after := loop.Snapshot(m); after != before {
		w.t.Fatalf("step %d: old outcomes changed the state from\n%s\nto\n%s", w.steps, before, after)
	}
}

// crash ends the process: a new machine is folded from what was written.
func (w *world) crash() {
	w.m = loop.Fold(w.cfg, slices.Values(w.decoded))
	w.folds = [2]*loop.Machine{loop.Fold(w.cfg, slices.Values(w.entries)), loop.Fold(w.cfg, slices.Values(w.decoded))}
	w.running, w.started = nil, map[loop.Effect]bool{}
}

// tear is a crash in the middle of the write that ev causes: only the first
// keep entries survive, and nothing of the step was shown.
func (w *world) tear(ev loop.Event, keep int) {
	w.t.Helper()
	r := w.m.Step(w.stamp(), ev)
	w.torn = w.torn || keep < len(r.Entries)
	w.write(r.Entries[:min(keep, len(r.Entries))])
	w.crash()
}

func (w *world) recover(how loop.Recovery, known map[string]loop.Known) loop.Ready {
	w.t.Helper()
	r := w.m.Recover(w.stamp(), how, known)
	w.take(r)
	return r
}

// check holds after every step.
func (w *world) check() {
	w.t.Helper()
	want := loop.Snapshot(w.m)
	for i, f := range w.folds {
		if got := loop.Snapshot(f); got != want {
			w.t.Fatalf("step %d: the fold %d of the entries is\n%s\nand the state is\n%s", w.steps, i, got, want)
		}
		if !slices.Equal(f.Want(), w.m.Want()) {
			w.t.Fatalf("step %d: the fold %d of the entries wants %v, the machine %v", w.steps, i, f.Want(), w.m.Want())
		}
	}
	w.checkPairs()
	w.checkInputs()
	if st := w.m.State(); st == loop.Idle || st == loop.Closed {
		if len(w.m.Calls()) > 0 || w.m.Turn().Await != "" || w.m.Prompt() != nil || len(w.m.Want()) > 0 {
			w.t.Fatalf("step %d: %s with work left: %s", w.steps, st, want)
		}
		if st == loop.Idle && len(w.m.Queue()) > 0 {
			w.t.Fatalf("step %d: idle with a queue", w.steps)
		}
	}
	if n := len(w.m.Want()); n > max(1, w.cfg.Width) && (w.cfg.Width > 0 || n > 10) {
		w.t.Fatalf("step %d: %d effects are wanted at once", w.steps, n)
	}
}

// checkPairs: every call has at most one result and, once it is not open, one,
// directly after the response that made it (L-7, M-105).
func (w *world) checkPairs() {
	w.t.Helper()
	open := map[string]bool{}
	for _, c := range w.m.Calls() {
		if c.Status != loop.Done {
			open[c.ID] = true
		}
	}
	if c := w.m.Turn().Deferred; c != nil {
		open[c.ID], w.deferred[c.ID] = true, true
	}
	missing := map[string]bool{} // calls of the last response without a result
	closed := func(where string) {
		for id := range missing {
			if !open[id] && !w.torn {
				w.t.Fatalf("step %d: the call %s has no result %s", w.steps, id, where)
			}
		}
	}
	for i, it := range w.m.History().Items() {
		results := 0
		for _, b := range it.Blocks {
			r, ok := b.ToolResult()
			if !ok {
				continue
			}
			results++
			if !missing[r.ToolUseID] && !w.torn {
				w.t.Fatalf("step %d: item %d is a second or stray result of %s", w.steps, i, r.ToolUseID)
			}
			delete(missing, r.ToolUseID)
		}
		if results > 0 {
			continue
		}
		// What hooks have to say stands behind the result that it is about; the
		// request has it behind all of them. So is the prompt after a deferred call.
		between := it.Flags&history.Meta != 0 || len(missing) == 1 && w.deferred[slices.Collect(maps.Keys(missing))[0]]
		if len(missing) > 0 && it.Role == message.RoleUser && between {
			continue
		}
		if len(missing) > 0 && !w.torn {
			w.t.Fatalf("step %d: item %d stands between calls and their results: %v", w.steps, i, missing)
		}
		clear(missing)
		for _, b := range it.Blocks {
			if u, ok := b.ToolUse(); ok {
				missing[u.ID] = true
			}
		}
	}
	closed("at the end of the history")
	if c := w.m.Turn().Deferred; c != nil {
		delete(missing, c.ID)
	}
	if w.m.State() != loop.Tools && w.m.State() != loop.Settle && len(missing) > 0 && !w.torn {
		w.t.Fatalf("step %d: calls are open in state %s: %v", w.steps, w.m.State(), missing)
	}
}

// checkInputs: every input has one fate: it waits, was dropped, was stored
// without a turn of its own, or started a turn, which has one result (L-12), or
// none where the process was ended (L-208).
func (w *world) checkInputs() {
	w.t.Helper()
	fate := map[string][]string{}
	results, silent := map[string]int{}, map[string]bool{}
	cur := ""
	ending := false  // the stored turn of cur ends without a result
	putBack := false // cur waits again, once its turn is given up
	for _, e := range w.entries {
		switch {
		case e.Kind == loop.KindInput && e.Input.Dropped:
			fate[e.Input.ID] = append(fate[e.Input.ID], "dropped")
		case e.Kind == loop.KindInput && e.Input.First && e.Input.ID == cur:
			putBack = true // for another one
		case e.Kind == loop.KindInput:
			fate[e.Input.ID] = append(fate[e.Input.ID], "")
		case e.Kind == loop.KindUser && fate[e.UUID] != nil && e.UUID != cur:
			fate[e.UUID] = append(fate[e.UUID], "stored")
		case e.Kind == loop.KindTurn:
			if putBack && e.Turn.Result == nil && e.Turn.Turn.Input != cur { // else a torn write kept its turn
				fate[cur], cur = fate[cur][:1], ""
			}
			putBack = false
			t := e.Turn.Turn
			if ending && t.Input != cur && e.Turn.Result == nil { // after a crash its end is stored with what comes next
				silent[cur], cur = true, ""
			}
			if t.Input != "" && t.Input != cur {
				fate[t.Input] = append(fate[t.Input], "started")
				cur = t.Input
			}
			ending = cur != "" && t.Ending != nil && t.Ending.Silent
			switch {
			case e.Turn.Result != nil:
				results[cur]++
				cur = ""
			case ending && t.State == loop.Closed:
				silent[cur], cur = true, ""
			}
			ending = ending && cur != ""
		}
	}
	waiting := map[string]bool{}
	for _, in := range w.m.Queue() {
		waiting[in.ID] = true
	}
	for id, fs := range fate {
		if fs[0] != "" || len(fs) > 2 || waiting[id] != (len(fs) == 1) {
			w.t.Fatalf("step %d: the input %s has the fate %q, waiting: %v", w.steps, id, fs, waiting[id])
		}
		want := 0
		if len(fs) == 2 && fs[1] == "started" && id != cur && !silent[id] {
			want = 1
		}
		if results[id] != want {
			w.t.Fatalf("step %d: the input %s (%q) has %d results, not %d", w.steps, id, fs, results[id], want)
		}
	}
	if cur != w.m.Turn().Input {
		w.t.Fatalf("step %d: the running input is %q, the entries say %q", w.steps, w.m.Turn().Input, cur)
	}
}

// outcomeOf returns the effect that an event is the outcome of.
func outcomeOf(ev loop.Event) (kinds []loop.EffectKind, id string) {
	switch e := ev.(type) {
	case loop.Admitted:
		return []loop.EffectKind{loop.DoAdmit}, e.ID
	case loop.Local:
		return []loop.EffectKind{loop.DoAdmit}, e.ID
	case loop.Response:
		return []loop.EffectKind{loop.DoModel}, e.ID
	case loop.Failed:
		return []loop.EffectKind{loop.DoModel}, e.ID
	case loop.TooLong:
		return []loop.EffectKind{loop.DoModel}, e.ID
	case loop.BudgetReached:
		return []loop.EffectKind{loop.DoModel}, e.ID
	case loop.Batched:
		return []loop.EffectKind{loop.DoBatch}, e.ID
	case loop.Stopped:
		return []loop.EffectKind{loop.DoStop}, e.ID
	case loop.Compacted:
		return []loop.EffectKind{loop.DoCompact}, e.ID
	case loop.Cancelled:
		return []loop.EffectKind{loop.DoAdmit, loop.DoModel, loop.DoBatch, loop.DoStop, loop.DoCompact}, e.ID
	case loop.Decided:
		return []loop.EffectKind{loop.DoCheck}, e.Key
	case loop.Finished:
		return []loop.EffectKind{loop.DoRun}, e.Key
	}
	return nil, ""
}
