package loop_test

import (
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// admitted is a world whose first user turn waits for the model.
func admitted(t *testing.T, cfg loop.Config) *world {
	t.Helper()
	w := newWorld(t, cfg)
	w.feed(loop.Send{Input: loop.Input{ID: "p1", Content: message.TextContent("Fix it")}})
	w.feed(loop.Admitted{ID: w.m.Turn().Await})
	return w
}

// wants fails unless the one wanted effect is of that kind, and returns it.
func (w *world) wants(kind loop.EffectKind) loop.Effect {
	w.t.Helper()
	want := w.m.Want()
	if len(want) != 1 || want[0].Kind != kind {
		w.t.Fatalf("%v is wanted, not one %s", want, kind)
	}
	return want[0]
}

// TestTornCompaction: when the write of a compaction was cut, at whatever
// entry, the history is the old one or begins with the summary. It is never
// empty.
func TestTornCompaction(t *testing.T) {
	conform.Covers(t, "S-46")
	for keep := range 6 {
		w := admitted(t, loop.Config{CompactAt: 100})
		w.feed(loop.TooLong{ID: w.wants(loop.DoModel).ID})
		old := w.m.History().Len()
		w.tear(loop.Compacted{ID: w.wants(loop.DoCompact).ID, Summary: "The task.", KeepFrom: 0, Trigger: "auto"}, keep)
		w.recover(loop.Continue, nil)
		items := w.m.History().Items()
		switch {
		case keep < 2 && len(items) != old:
			t.Errorf("%d entries written: %d items, not the old %d", keep, len(items), old)
		case keep >= 2 && (len(items) == 0 || items[0].Text == nil || *items[0].Text != "The task."):
			t.Errorf("%d entries written: the history does not begin with the summary: %+v", keep, items)
		}
		(&drunk{w: w}).calm()
	}
	// What follows a boundary later on is not its summary.
	w := admitted(t, loop.Config{CompactAt: 100})
	w.feed(loop.TooLong{ID: w.wants(loop.DoModel).ID})
	w.tear(loop.Compacted{ID: w.wants(loop.DoCompact).ID, Summary: "S"}, 1)
	w.write([]loop.Entry{
		{Kind: loop.KindUser, UUID: "x", User: &loop.UserEntry{Content: message.TextContent("More")}},
		{Kind: loop.KindUser, UUID: "y", User: &loop.UserEntry{Content: message.TextContent("S"), Summary: true}},
	})
	w.crash()
	if n := w.m.History().Len(); n != 3 {
		t.Errorf("%d items after a torn boundary, a message and a summary, not 3", n)
	}
	// A summary without its boundary, as a client may have copied it, replaces nothing.
	w = admitted(t, loop.Config{})
	w.write([]loop.Entry{{Kind: loop.KindUser, UUID: "x", User: &loop.UserEntry{Content: message.TextContent("S"), Summary: true}}})
	w.crash()
	if n := w.m.History().Len(); n != 2 {
		t.Errorf("%d items after a summary without a boundary, not 2", n)
	}
}

// TestTornFault: a call that can never run is not put to the check because
// the step that refused it was cut.
func TestTornFault(t *testing.T) {
	conform.Covers(t, "L-75", "L-138", "S-44")
	w := admitted(t, loop.Config{})
	calls := []loop.Call{{ID: "b1", Name: "Bash"}, {ID: "b2", Name: "Bash", Fault: loop.FaultMalformed}}
	w.tear(loop.Response{
		ID: w.wants(loop.DoModel).ID, MsgID: "m1", Stop: "tool_use", Calls: calls,
		Blocks: []message.Block{message.NewToolUse("b1", "Bash", nil), message.NewToolUse("b2", "Bash", nil)},
	}, 3)
	w.torn = false
	w.recover(loop.Continue, nil)
	w.feed(loop.Decided{Key: w.wants(loop.DoCheck).ID, Allow: true})
	w.feed(loop.Finished{Key: w.wants(loop.DoRun).ID})
	w.wants(loop.DoModel)
}

// TestTornAdmission: the prompt was written and the rest of the step was not.
func TestTornAdmission(t *testing.T) {
	conform.Covers(t, "S-44")
	for _, how := range []loop.Recovery{loop.CloseOpen, loop.Continue} {
		w := newWorld(t, loop.Config{})
		w.feed(loop.Send{Input: loop.Input{ID: "p1", Content: message.TextContent("Fix it")}})
		w.tear(loop.Admitted{ID: w.wants(loop.DoAdmit).ID}, 1)
		w.recover(how, nil)
		if how == loop.Continue {
			w.wants(loop.DoModel)
		}
		(&drunk{w: w}).calm()
		if n := w.m.History().Items(); n[0].UUID != "p1" || len(n) > 1 && n[1].UUID == "p1" {
			t.Errorf("%v: the prompt stands not once: %+v", how, n)
		}
	}
}

// TestTornResponse: calls of a response that was not decided on never run, and
// the model is asked again.
func TestTornResponse(t *testing.T) {
	conform.Covers(t, "S-44", "B-114")
	w := admitted(t, loop.Config{})
	first := w.wants(loop.DoModel)
	call := loop.Call{ID: "b1", Name: "Bash"}
	w.tear(loop.Response{
		ID: first.ID, MsgID: "m1", Stop: "tool_use", Calls: []loop.Call{call},
		Blocks: []message.Block{message.NewToolUse("b1", "Bash", nil)},
	}, 2)
	w.torn = false // the calls are known, so their results are owed
	w.recover(loop.Continue, nil)
	if again := w.wants(loop.DoModel); again.ID == first.ID {
		t.Errorf("the second request has the id of the first, %s: call keys would repeat", again.ID)
	}
}

// TestTotalsOnlyGrow: an outcome that was priced before another one does not
// take the total, or the budget, back (L-45).
func TestTotalsOnlyGrow(t *testing.T) {
	conform.Covers(t, "L-42", "L-45", "L-222")
	old := loop.Spend{USD: 0.1}
	for name, outcome := range map[string]func(id string) loop.Event{
		"response": func(id string) loop.Event {
			return loop.Response{ID: id, Stop: "end_turn", Blocks: textBlocks("x"), Text: "x", Spend: old}
		},
		"aborted": func(id string) loop.Event { return loop.Response{ID: id, Aborted: true, Spend: old} },
		"failed":  func(id string) loop.Event { return loop.Failed{ID: id, Text: "x", Spend: old} },
		"too long": func(id string) loop.Event {
			return loop.TooLong{ID: id, Text: "x", Spend: old}
		},
		"budget":    func(id string) loop.Event { return loop.BudgetReached{ID: id, Spend: old} },
		"cancelled": func(id string) loop.Event { return loop.Cancelled{ID: id} },
	} {
		for _, interrupted := range []bool{false, true} {
			w := admitted(t, loop.Config{MaxBudgetUSD: new(1.0)})
			id := w.wants(loop.DoModel).ID
			w.feed(loop.Spent{Spend: loop.Spend{USD: 0.4}})
			w.feed(loop.Spent{Spend: loop.Spend{USD: 0.2}})
			if interrupted {
				w.feed(loop.Interrupt{})
			}
			w.feed(outcome(id))
			res, ok := w.emitted[len(w.emitted)-1].(*message.Result)
			if !ok || *res.TotalCostUSD != 0.4 {
				t.Errorf("%s, interrupted %v: the result is %+v, its total should be 0.4", name, interrupted, res)
			}
		}
	}
}
