package loop_test

import (
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/internal/replay"
	"pgregory.net/rapid"
)

// linesOf are the lines as a store yields them.
func linesOf(lines [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// replayed fails unless the journal, fed through the machine once more, makes no
// difference.
func (w *world) replayed() {
	w.t.Helper()
	r, err := replay.Journal("s", linesOf(w.lines))
	if err != nil {
		w.t.Fatalf("the journal cannot be replayed: %v", err)
	}
	if r.Difference == nil && r.Checked == len(w.lines) {
		return
	}
	var text strings.Builder
	_ = r.Text(&text)
	if d := r.Difference; d != nil {
		for _, l := range w.lines[:min(d.Line+3, len(w.lines))] {
			text.Write(append(l, '\n'))
		}
	}
	w.t.Fatalf("the replay of the journal differs:\n%s", text.String())
}

var counter = regexp.MustCompile(`("seq":|"key":"|"await":"[a-z]+/)(\d)`)

// TestRandomMutations changes one thing that the machine decided: the replay finds
// that line.
func TestRandomMutations(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drive(rt, rapidChooser{rt}, rapid.IntRange(1, 30).Draw(rt, "steps"))
		var places []int
		for i, l := range w.lines {
			if counter.Match(l) {
				places = append(places, i)
			}
		}
		at := rapid.SampledFrom(places).Draw(rt, "line")
		was := w.lines[at]
		w.lines[at] = counter.ReplaceAll(slices.Clone(was), []byte("${1}7$2"))
		r, err := replay.Journal("s", linesOf(w.lines))
		if err != nil || r.Difference == nil || r.Difference.Line != at+1 {
			rt.Fatalf("line %d is not found:\n%s\n%+v, %+v, %v", at+1, w.lines[at], r, r.Difference, err)
		}
	})
}

// TestSettingsTell: the journal tells what the machine decides by, also when hooks
// change on the way.
func TestSettingsTell(t *testing.T) {
	for _, cfg := range []loop.Config{
		{},
		{
			MaxTurns: new(0), MaxBudgetUSD: new(0.1), Width: 3, Steer: true, BatchHooks: true, StopHooks: true, StopBlockCap: -1,
			CompactAt: 1000, Schema: true, SchemaRetries: new(0),
		},
	} {
		w := newWorld(t, cfg)
		w.feed(loop.Configure{Model: "m"})
		set := w.m.Settings()
		got, ok := set.Config()
		want := w.cfg
		if want.Width == 0 {
			want.Width, want.StopBlockCap = 10, 8
		}
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v is told as %+v", want, got)
		}
		r := w.feed(loop.Hooks{Batch: !cfg.BatchHooks, Stop: cfg.StopHooks})
		if len(r.Entries) != 1 || r.Entries[0].Open == nil || r.Entries[0].Open.BatchHooks == cfg.BatchHooks || r.Entries[0].Open.Model != "m" {
			t.Errorf("changed hooks write %+v", r.Entries)
		}
		if r := w.feed(loop.Hooks{Batch: !cfg.BatchHooks, Stop: cfg.StopHooks}); len(r.Entries) != 0 {
			t.Errorf("hooks that stay write %+v", r.Entries)
		}
	}
	var none loop.Settings
	if _, ok := none.Config(); ok {
		t.Error("settings of before tell all")
	}
}
