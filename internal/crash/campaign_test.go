package crash_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/crash"
	"github.com/turnwright/turnwright/internal/vfs"
)

type fileMode = fs.FileMode

// when says what a prompt waits for.
type when int

const (
	atOnce      when = iota
	afterResult      // of the prompt before it
	afterCall        // handed to the running turn
)

type prompt struct {
	text string
	when when
}

// sitting is what is said from opening a session to closing it.
type sitting []prompt

// scenario is a scripted session.
type scenario struct {
	name     string
	sittings []sitting
	plan     *crash.Plan
	hooks    hook.Table
	failures int // of the API, at the start of each process
}

// task is a prompt with its steps; a step is written as the tools and marks of
// its calls: "note:m1 echo:e1". A "!" before a tool says that it changes things.
func task(prompt string, steps ...string) crash.Task {
	t := crash.Task{Prompt: prompt}
	for _, step := range steps {
		var calls []crash.Call
		for word := range strings.FieldsSeq(step) {
			word, changes := strings.CutPrefix(word, "!")
			name, mark, _ := strings.Cut(word, ":")
			calls = append(calls, call(name, mark, changes))
		}
		t.Steps = append(t.Steps, calls)
	}
	return t
}

func planOf(tasks ...crash.Task) *crash.Plan {
	return &crash.Plan{Tasks: tasks, Look: call("look", "the-ledger", false)}
}

func adds(text string) []hook.Group {
	return []hook.Group{{Hooks: []hook.Func{func(context.Context, hook.Input, string) (hook.Output, error) {
		return hook.Output{Context: text}, nil
	}}}}
}

func scenarios() []scenario {
	one := []sitting{{{"do-a", atOnce}}}
	return []scenario{
		{name: "text", sittings: one, plan: planOf(task("do-a"))},
		{name: "call", sittings: one, plan: planOf(task("do-a", "!note:m1"))},
		{name: "parallel", sittings: one, plan: planOf(task("do-a", "echo:e1 echo:e2 echo:e3"))},
		{name: "mixed", sittings: one, plan: planOf(task("do-a", "echo:e1 !note:m1 echo:e2 !note:m2", "!note:m3"))},
		{name: "denied", sittings: one, plan: planOf(task("do-a", "forbidden:f1 !note:m1"))},
		{name: "hooks", sittings: one, plan: planOf(task("do-a", "!note:m1 echo:e1")), hooks: hook.Table{
			hook.SessionStart: adds("It starts."), hook.UserPromptSubmit: adds("Be careful."), hook.PreToolUse: adds("A call."),
			hook.PostToolUse: adds("It was called."), hook.Stop: nil,
		}},
		{name: "queue", sittings: []sitting{{{"do-a", atOnce}, {"do-b", atOnce}, {"do-c", afterCall}, {"do-d", afterResult}}}, plan: planOf(
			task("do-a", "!note:m1", "echo:e1"), task("do-b", "!note:m2"), task("do-c", "!note:m3"), task("do-d"))},
		{name: "background", sittings: one, plan: planOf(task("do-a", "!job:m1", "!note:m2"))},
		{name: "retry", sittings: one, plan: planOf(task("do-a", "!note:m1")), failures: 2},
		{name: "resumed", sittings: []sitting{{{"do-a", atOnce}}, {{"do-b", atOnce}}}, plan: planOf(
			task("do-a", "!note:m1"), task("do-b", "!note:m2"))},
	}
}

// crashes are the ways in which a power loss leaves a disk: without what was not
// synced, with a part of it, or with zeros instead.
var crashes = []vfs.Crash{
	{Power: true},
	{Power: true, KeepNames: true, Keep: func(_ string, n int) int { return n / 2 }},
	{Power: true, KeepNames: true, Keep: func(_ string, n int) int { return n - 1 }},
	{Power: true, KeepNames: true, Zeros: true, Keep: func(_ string, n int) int { return n / 3 }},
}

// TestEveryPoint ends the process of ten sessions at every operation that
// changes the disk and at the start and the end of every tool, in every way in
// which a write can be torn or lost, and resumes. No mutating tool runs twice,
// nothing acknowledged is lost, every request is valid, and in the end all is
// done and every prompt has one result. With -short one way in some is tried.
func TestEveryPoint(t *testing.T) {
	for i, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			conform.Covers(t, "S-20", "S-21", "S-24", "S-44", "L-12", "B-114", "B-117")
			dir, cfg := t.TempDir(), t.TempDir()
			ran := 0
			try := func(ends ...end) (what string) {
				what = everyPoint(t, sc, dir, cfg, ends...)
				ran++
				return what
			}
			sampled := func() bool { return !testing.Short() || (ran+i)%shortRate == 0 }
			for at := 0; !t.Failed(); at++ {
				what := try(end{at: at})
				switch {
				case what == "":
					t.Logf("%d points, %d crashes", at, ran)
					return
				case strings.HasPrefix(what, ofLock):
					continue // what is lost of a lock does not matter
				}
				if sampled() { // the next process does not live long either
					try(end{at: at}, end{at: ran % 40, cut: cut(ran % 6), crash: crashes[ran%len(crashes)]})
				}
				for _, c := range crashes {
					if sampled() {
						try(end{at: at, crash: c})
					}
				}
				for c := inLine; strings.HasPrefix(what, "write ") && c <= everything; c++ {
					if sampled() {
						try(end{at: at, cut: c})
					}
				}
			}
		})
	}
}

// shortRate is the one in how many ways, beside the plain end of the process,
// that -short tries at a point.
const shortRate = 7

// everyPoint runs one session whose first processes have these ends. It returns
// the point of the first, "" when the session is not that long.
func everyPoint(t *testing.T, sc scenario, dir, cfg string, ends ...end) (what string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sc, dir, cfg)
		defer w.srv.Close()
		script := sc.sittings
		var kept, shown []string
		for i, e := range append(ends, end{at: -1}) {
			if w.live(e, script) {
				break
			}
			if i == 0 {
				what = w.what
			}
			kept, shown = wholeLines(w.before), w.shown
			if e.crash.Power {
				found, _ := vfs.ReadFile(w.disk, w.transcript())
				kept, shown = wholeLines(found), w.results
			}
			script = []sitting{w.again()}
		}
		w.check(ends[0], kept, shown)
	})
	return what
}

// again is what the user of a session says after a crash: what is not in it
// once more, and that it shall go on.
func (w *world) again() (s sitting) {
	data, _ := vfs.ReadFile(w.disk, w.transcript())
	lines := strings.Join(wholeLines(data), "\n")
	for _, old := range w.sc.sittings {
		for _, p := range old {
			if !strings.Contains(lines, p.text) {
				s = append(s, prompt{p.text, atOnce})
			}
		}
	}
	return append(s, prompt{"Go on.", atOnce})
}
