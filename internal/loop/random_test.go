package loop_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"pgregory.net/rapid"
)

// chooser makes the decisions of a random driver: an int in [0, n).
type chooser interface{ choose(n int) int }

type rapidChooser struct{ t *rapid.T }

func (c rapidChooser) choose(n int) int { return rapid.IntRange(0, n-1).Draw(c.t, "c") }

// byteChooser decides by bytes; when they are used up, always 0.
type byteChooser struct{ data []byte }

func (c *byteChooser) choose(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	v := int(c.data[0]) % n
	c.data = c.data[1:]
	return v
}

// drunk drives a world by chance: it answers what is wanted in any order with
// any outcome, sends, interrupts, repeats itself and crashes.
type drunk struct {
	w     *world
	c     chooser
	n     int // makes ids
	total float64
	keys  []string // of the calls that were open at some time
}

func (d *drunk) one(of int) bool { return d.c.choose(of) == of-1 }

func (d *drunk) id(prefix string) string {
	d.n++
	return prefix + strconv.Itoa(d.n)
}

func randomConfig(c chooser) loop.Config {
	cfg := loop.Config{
		Width: c.choose(4), Steer: c.choose(3) == 1, Replay: c.choose(3) == 1,
		BatchHooks: c.choose(2) == 1, StopHooks: c.choose(2) == 1, StopBlockCap: c.choose(3),
		Schema: c.choose(3) == 1,
	}
	if n := c.choose(5); n > 0 {
		cfg.MaxTurns = new(n - 1)
	}
	if c.choose(3) == 1 {
		cfg.MaxBudgetUSD = new(0.8)
	}
	if c.choose(2) == 1 {
		cfg.CompactAt = 100
	}
	if c.choose(2) == 1 {
		cfg.SchemaRetries = new(c.choose(3))
	}
	return cfg
}

func (d *drunk) spend() loop.Spend {
	d.total += float64(d.c.choose(3)) * 0.0625 // a binary fraction: sums are exact
	return loop.Spend{USD: d.total}
}

// act does one thing.
func (d *drunk) act() {
	w := d.w
	for _, c := range w.m.Calls() {
		if !slices.Contains(d.keys, c.Key) {
			d.keys = append(d.keys, c.Key)
		}
	}
	switch d.c.choose(16) {
	case 0:
		w.feed(loop.Send{Input: d.input()})
	case 1:
		d.interrupt()
	case 2:
		w.feed(loop.Spent{Spend: d.spend()})
	case 3:
		w.replay(w.outcomes...)
	case 4:
		d.strays()
	case 5:
		d.crash()
	case 6:
		d.command()
	default:
		if len(w.running) == 0 {
			w.feed(loop.Send{Input: d.input()})
			return
		}
		ev := d.outcome(w.running[d.c.choose(len(w.running))])
		if d.one(20) {
			w.tear(ev, d.c.choose(6))
			w.recover(loop.Recovery(d.c.choose(2)), nil)
			return
		}
		w.feed(ev)
	}
}

func (d *drunk) input() loop.Input {
	in := loop.Input{ID: d.id("p"), Content: message.TextContent("prompt"), NoQuery: d.one(6), Synthetic: d.one(6)}
	if d.one(3) {
		in.Steer = new(d.one(2))
	}
	if d.one(4) {
		in.Origin = &message.Origin{Kind: "task-notification"}
	}
	if d.one(12) {
		in.ID = "p1" // known already
	}
	return in
}

func (d *drunk) interrupt() {
	cancel := d.one(3)
	running := d.w.m.State() != loop.Idle && d.w.m.State() != loop.Closed
	r := d.w.feed(loop.Interrupt{Reply: "r", CancelQueue: cancel})
	if len(r.Replies) != 1 || r.Replies[0].Running != running || cancel && len(r.Replies[0].StillQueued) > 0 {
		d.w.t.Fatalf("the interrupt was answered with %+v", r.Replies)
	}
}

// strays gives the machine outcomes of effects that it never wanted.
func (d *drunk) strays() {
	id := []string{"", "model/0", "admit/999", d.w.m.Turn().Await + "x"}[d.c.choose(4)]
	d.w.replay(
		loop.Admitted{ID: id}, loop.Local{ID: id}, loop.Response{ID: id, Stop: "end_turn", Blocks: textBlocks("x")},
		loop.Failed{ID: id}, loop.TooLong{ID: id}, loop.BudgetReached{ID: id}, loop.Cancelled{ID: id},
		loop.Batched{ID: id}, loop.Stopped{ID: id, Block: "x"}, loop.Compacted{ID: id, Summary: "x"},
		loop.Decided{Key: id, Allow: true}, loop.Finished{Key: id},
	)
	// Calls that do not run have not finished, those out of the window are not decided on.
	var early []loop.Event
	want := d.w.m.Want()
	for _, key := range d.keys {
		c, open := d.w.m.Call(key)
		if !open || c.Status != loop.Running {
			early = append(early, loop.Finished{Key: key, Content: message.TextContent("x")})
		}
		if !slices.Contains(want, loop.Effect{Kind: loop.DoCheck, ID: key}) {
			early = append(early, loop.Decided{Key: key, Allow: true}, loop.Decided{Key: key})
		}
	}
	d.w.replay(early...)
}

func (d *drunk) crash() {
	if !d.one(3) {
		return
	}
	how := loop.Recovery(d.c.choose(2))
	known := map[string]loop.Known{}
	running := map[string]loop.Call{}
	for _, c := range d.w.m.Calls() {
		if c.Status == loop.Running {
			running[c.Key] = c
			if d.one(2) {
				known[c.Key] = loop.Known{Content: message.TextContent("known")}
			}
		}
	}
	d.w.crash()
	r := d.w.recover(how, known)
	for _, e := range r.Want {
		c, ran := running[e.ID]
		if ran && e.Kind == loop.DoRun && (how == loop.CloseOpen || !c.Repeatable) {
			d.w.t.Fatalf("the call %+v runs again after a crash", c)
		}
	}
	d.total = d.w.m.Turn().Spend.USD
}

func (d *drunk) command() {
	switch d.c.choose(9) {
	case 8:
		d.w.cfg.BatchHooks, d.w.cfg.StopHooks = d.one(2), d.one(2)
		d.w.feed(loop.Hooks{Batch: d.w.cfg.BatchHooks, Stop: d.w.cfg.StopHooks})
	case 0:
		d.w.feed(loop.EndInput{})
	case 1:
		d.w.feed(loop.Close{Killed: d.c.choose(3) == 0})
	case 2:
		d.w.feed(loop.Abort{Ending: loop.Ending{Subtype: message.ErrorDuringExecution, Errors: []string{"aborted"}}})
	default:
		d.w.feed(loop.Configure{Model: []string{"", "a", "b"}[d.c.choose(3)], Mode: []string{"", "plan"}[d.c.choose(2)]})
	}
}

// outcome is some outcome of the effect, which may be cancelled.
func (d *drunk) outcome(e loop.Effect) loop.Event {
	cancelled := !slices.Contains(d.w.m.Want(), e)
	if (cancelled && d.one(2) || d.one(15)) && e.Kind != loop.DoCheck && e.Kind != loop.DoRun {
		return loop.Cancelled{ID: e.ID}
	}
	switch e.Kind {
	case loop.DoAdmit:
		if d.one(10) {
			return loop.Preceded{ID: e.ID, Input: loop.Input{Content: message.TextContent("first"), Origin: &message.Origin{Kind: message.OriginAutoContinuation}}}
		}
		if d.one(5) {
			return loop.Local{ID: e.ID, Init: &message.Init{}, Text: "local", Keep: d.one(2), Notices: d.notices()}
		}
		a := loop.Admitted{ID: e.ID, Init: &message.Init{}}
		if d.one(3) {
			a.Content, a.Before, a.Context = message.TextContent("changed"), textBlocks("before"), textBlocks("context")
		}
		return a
	case loop.DoModel:
		return d.model(e.ID, cancelled)
	case loop.DoCheck:
		return loop.Decided{
			Defer: d.one(12) && len(d.w.m.Calls()) == 1, Context: textBlocks([]string{"", "context"}[d.c.choose(2)]),
			Key: e.ID, Allow: !d.one(4), Content: message.TextContent("denied"), Halt: d.halt(), Notices: d.notices(),
			Denial: &message.PermissionDenial{ToolName: "T", ToolUseID: e.ID, ToolInput: []byte(`{}`)},
			Input:  [][]byte{nil, []byte(`{"a":1}`)}[d.c.choose(2)],
		}
	case loop.DoRun:
		f := loop.Finished{
			Key: e.ID, Content: message.TextContent([]string{"", "out"}[d.c.choose(2)]), IsError: d.one(4), Halt: d.halt(),
			Structured: [][]byte{nil, []byte(`{"a":1}`)}[d.c.choose(2)], Valid: d.one(2), Context: textBlocks([]string{"", "context"}[d.c.choose(2)]),
		}
		if d.one(3) {
			f.State = []loop.StateNote{{Key: "k", Value: []byte(`1`)}}
			f.Spend = new(d.spend())
			f.Context = textBlocks("context")
		}
		return f
	case loop.DoBatch:
		return loop.Batched{ID: e.ID, Context: textBlocks([]string{"", "context"}[d.c.choose(2)]), Halt: d.halt()}
	case loop.DoStop:
		return loop.Stopped{ID: e.ID, Block: []string{"", "again"}[d.c.choose(2)], Halt: d.halt()}
	}
	c := loop.Compacted{
		ID: e.ID, Summary: "summary", KeepFrom: d.c.choose(d.w.m.History().Len() + 1), Trigger: "auto",
		PreTokens: 5, Tokens: int64(d.c.choose(120)), Spend: d.spend(),
	}
	// The driver keeps a valid rest: no call without its result.
	if safe := safeCuts(d.w); len(safe) > 0 {
		c.KeepFrom = safe[d.c.choose(len(safe))]
	}
	switch d.c.choose(5) {
	case 3:
		c.Err = "failed"
	case 4:
		c.Blocked = true
	}
	return c
}

func safeCuts(w *world) []int {
	var cuts []int
	open := map[string]bool{}
	for i, it := range w.m.History().Items() {
		if len(open) == 0 {
			cuts = append(cuts, i)
		}
		for _, b := range it.Blocks {
			if u, ok := b.ToolUse(); ok {
				open[u.ID] = true
			}
			if r, ok := b.ToolResult(); ok {
				delete(open, r.ToolUseID)
			}
		}
	}
	return append(cuts, w.m.History().Len())
}

func (d *drunk) notices() []message.Message {
	if !d.one(4) {
		return nil
	}
	return []message.Message{&message.Informational{Content: "notice"}}
}

func (d *drunk) halt() *loop.Ending {
	if !d.one(15) {
		return nil
	}
	return &loop.Ending{Subtype: message.Success, Terminal: message.TerminalHookStopped}
}

func (d *drunk) model(id string, cancelled bool) loop.Event {
	switch d.c.choose(12) {
	case 0:
		return loop.Failed{ID: id, Text: "API Error", Status: 500, Spend: d.spend(), APITime: time.Second}
	case 1:
		return loop.TooLong{ID: id, Text: "Prompt is too long", Spend: d.spend()}
	case 2:
		if d.w.cfg.MaxBudgetUSD != nil {
			return loop.BudgetReached{ID: id, Spend: d.spend()}
		}
	}
	stops := []string{"end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "stop_sequence", "model_context_window_exceeded", "new"}
	e := loop.Response{
		ID: id, MsgID: d.id("msg"), Model: "m", Stop: stops[d.c.choose(len(stops))], Spend: d.spend(),
		Tokens: int64(d.c.choose(130)), Usage: message.Usage{InputTokens: 1, OutputTokens: 1}, APITime: time.Second,
		FirstEvent: time.Duration(d.c.choose(2)) * time.Second, SentAt: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
	}
	if d.one(3) {
		e.Blocks, e.Text = textBlocks("text"), "text"
	}
	if d.one(6) {
		e.Blocks = append(e.Blocks, message.NewThinking("t", "s"))
	}
	if cancelled && d.one(2) || d.one(20) {
		e.Aborted, e.Stop = true, ""
		return e
	}
	if d.one(10) {
		e.Broken, e.Stop = &loop.Broken{Notice: "broken", Status: 500}, ""
	}
	n := d.c.choose(5)
	if d.one(10) {
		n = 12
	}
	for range n {
		c := loop.Call{
			ID: d.id("t"), Name: "T", Concurrent: d.one(2), Repeatable: d.one(2), Spawns: d.one(4),
			Internal: d.w.cfg.Schema && d.one(4),
			Fault:    []loop.Fault{"", "", "", "", loop.FaultUnknown, loop.FaultMalformed, loop.FaultCut}[d.c.choose(7)],
		}
		if d.one(20) && len(e.Calls) > 0 {
			c.ID = e.Calls[0].ID
		}
		e.Blocks, e.Calls = append(e.Blocks, message.NewToolUse(c.ID, c.Name, nil)), append(e.Calls, c)
	}
	return e
}

// calm ends everything: from now on each effect has the outcome that leads to
// an end. It fails when the machine does not come to rest.
func (d *drunk) calm() {
	w := d.w
	for range 2000 {
		if len(w.running) == 0 {
			if st := w.m.State(); st != loop.Idle && st != loop.Closed {
				w.t.Fatalf("stuck in state %s: nothing is running, wanted is %v\n%s", st, w.m.Want(), loop.Snapshot(w.m))
			}
			return
		}
		e := w.running[0]
		var ev loop.Event
		switch e.Kind {
		case loop.DoAdmit:
			ev = loop.Admitted{ID: e.ID, Init: &message.Init{}}
		case loop.DoModel:
			ev = loop.Response{ID: e.ID, MsgID: d.id("msg"), Stop: "end_turn", Blocks: textBlocks("end"), Text: "end"}
		case loop.DoCheck:
			ev = loop.Decided{Key: e.ID, Allow: true}
		case loop.DoRun:
			ev = loop.Finished{Key: e.ID}
		case loop.DoBatch:
			ev = loop.Batched{ID: e.ID}
		case loop.DoCompact:
			ev = loop.Compacted{ID: e.ID, Summary: "summary", KeepFrom: w.m.History().Len()}
		case loop.DoStop:
			ev = loop.Stopped{ID: e.ID}
		}
		w.feed(ev)
	}
	w.t.Fatalf("the machine did not come to rest: %s", loop.Snapshot(w.m))
}

// drive runs a random session and returns it as it was left.
func drive(t failer, c chooser, steps int) *world {
	d := &drunk{w: newWorld(t, randomConfig(c)), c: c}
	d.w.feed(loop.Configure{Model: "m", Mode: "default"}) // as every driver does: the journal tells the configuration
	for range steps {
		d.act()
	}
	d.w.replay(d.w.outcomes...)
	d.calm()
	// Whatever happened, the session takes the next message.
	if d.w.m.State() == loop.Closed {
		d.w.crash()
		d.w.recover(loop.CloseOpen, nil)
		d.calm()
	}
	before := len(d.w.emitted)
	d.w.feed(loop.Send{Input: loop.Input{ID: "last", Content: message.TextContent("the last one")}})
	d.calm()
	last, ok := d.w.emitted[len(d.w.emitted)-1].(*message.Result)
	if !ok || len(d.w.emitted) == before {
		t.Fatalf("the last message was not answered with a result: %+v", d.w.emitted[before:])
	}
	if last.Subtype != message.Success && last.Subtype != message.ErrorMaxBudgetUSD && last.Subtype != message.ErrorMaxStructuredOutputRetries {
		t.Fatalf("the last message ended with %+v", *last)
	}
	return d.w
}

// TestRandom runs random sessions; the checks of world hold after every step.
func TestRandom(t *testing.T) {
	conform.Covers(t, "L-7", "L-12", "L-28", "L-56", "L-57", "L-197", "M-105", "S-44", "B-113", "B-114")
	rapid.Check(t, func(rt *rapid.T) {
		drive(rt, rapidChooser{rt}, rapid.IntRange(1, 60).Draw(rt, "steps")).replayed()
	})
}

// FuzzMachine lets bytes decide.
func FuzzMachine(f *testing.F) {
	f.Add([]byte("0"))
	f.Add([]byte("\x00\x01\x00\x02\x01\x01\x00\x03\x00\x00\x01\x0f\x0f\x00\x0f\x0f\x05\x02\x0f\x0f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 600 {
			return
		}
		drive(t, &byteChooser{data}, min(80, 1+len(data)/3)).replayed()
	})
}

// TestAdversaries gives one and the same outcome to an effect for ever: each
// user turn ends all the same.
func TestAdversaries(t *testing.T) {
	conform.Covers(t, "L-73", "L-78", "L-100", "L-138", "L-152", "L-178", "L-179", "L-216", "B-008", "B-129", "B-130")
	respond := func(f func(*loop.Response)) func(e loop.Effect) loop.Event {
		return func(e loop.Effect) loop.Event {
			r := loop.Response{ID: e.ID, MsgID: "m" + e.ID, Tokens: 150}
			f(&r)
			return r
		}
	}
	stop := func(reason string) func(e loop.Effect) loop.Event {
		return respond(func(r *loop.Response) { r.Stop, r.Blocks, r.Text = reason, textBlocks("x"), "x" })
	}
	call := func(c loop.Call) func(e loop.Effect) loop.Event {
		return respond(func(r *loop.Response) {
			c.ID = "call" + r.ID
			r.Stop, r.Calls, r.Blocks = "tool_use", []loop.Call{c}, []message.Block{message.NewToolUse(c.ID, "T", nil)}
		})
	}
	models := map[string]func(e loop.Effect) loop.Event{
		"max_tokens": stop("max_tokens"), "pause_turn": stop("pause_turn"), "window": stop("model_context_window_exceeded"),
		"text": stop("end_turn"), "refusal": stop("refusal"), "unknown reason": stop("x"),
		"empty":     respond(func(r *loop.Response) { r.Stop = "max_tokens" }),
		"broken":    respond(func(r *loop.Response) { r.Broken = &loop.Broken{Notice: "n"} }),
		"aborted":   respond(func(r *loop.Response) { r.Aborted = true }),
		"cut":       call(loop.Call{Fault: loop.FaultCut}),
		"malformed": call(loop.Call{Fault: loop.FaultMalformed}),
		"unknown":   call(loop.Call{Fault: loop.FaultUnknown}),
		"output":    call(loop.Call{Internal: true}),
		"too long":  func(e loop.Effect) loop.Event { return loop.TooLong{ID: e.ID, Text: "too long"} },
		"failed":    func(e loop.Effect) loop.Event { return loop.Failed{ID: e.ID, Text: "failed"} },
		"cancelled": func(e loop.Effect) loop.Event { return loop.Cancelled{ID: e.ID} },
	}
	compacts := map[string]loop.Compacted{
		"compacts": {Summary: "s"}, "does not help": {Summary: "s", Tokens: 150}, "fails": {Err: "failed"}, "blocked": {Blocked: true},
	}
	for name, model := range models {
		for how, compact := range compacts {
			for _, compactAt := range []int64{0, 100} {
				for _, schema := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d/%v", name, how, compactAt, schema), func(t *testing.T) {
						w := newWorld(t, loop.Config{CompactAt: compactAt, StopHooks: true, BatchHooks: true, Schema: schema})
						w.feed(loop.Send{Input: loop.Input{ID: "p1", Content: message.TextContent("x")}})
						for n := 0; w.m.State() != loop.Idle; n++ {
							if n > 120 {
								t.Fatalf("no end after %d steps: %s", n, loop.Snapshot(w.m))
							}
							e := w.running[0]
							switch e.Kind {
							case loop.DoAdmit:
								w.feed(loop.Admitted{ID: e.ID})
							case loop.DoModel:
								w.feed(model(e))
							case loop.DoCheck:
								w.feed(loop.Decided{Key: e.ID, Allow: true})
							case loop.DoRun:
								w.feed(loop.Finished{Key: e.ID, IsError: true})
							case loop.DoBatch:
								w.feed(loop.Batched{ID: e.ID})
							case loop.DoStop:
								w.feed(loop.Stopped{ID: e.ID, Block: "again"})
							case loop.DoCompact:
								c := compact
								c.ID, c.KeepFrom = e.ID, w.m.History().Len()
								w.feed(c)
							}
						}
					})
				}
			}
		}
	}
}
