package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/session"
)

// recorder is a machine whose journal is kept.
type recorder struct {
	t     testing.TB
	cfg   loop.Config
	m     *loop.Machine
	w     journal.Writer
	n     int
	lines []string
}

func record1(t testing.TB, cfg loop.Config) *recorder {
	cfg.SessionID = "s"
	r := &recorder{t: t, cfg: cfg, m: loop.New(cfg), w: journal.Writer{SessionID: "s", CWD: "/w", Version: "1"}}
	r.step(loop.Configure{Model: "m", Mode: "default"})
	return r
}

func (r *recorder) stamp() loop.Stamp {
	r.n++
	s := loop.Stamp{Time: time.Date(2026, 1, 2, 3, 4, r.n, 123456, time.UTC)}
	binary.BigEndian.PutUint32(s.UUID[:], uint32(r.n))
	s.UUID[6], s.UUID[8] = 0x40, 0x80
	return s
}

func (r *recorder) step(ev loop.Event) { r.write(r.m.Step(r.stamp(), ev)) }

func (r *recorder) write(ready loop.Ready) {
	r.t.Helper()
	for _, e := range ready.Entries {
		line, err := r.w.Encode(e)
		if err != nil {
			r.t.Fatal(err)
		}
		r.lines = append(r.lines, string(line))
	}
}

// crash ends the process; another one goes on.
func (r *recorder) crash(known map[string]loop.Known) {
	var entries []loop.Entry
	for _, l := range r.lines {
		if e, ok, err := journal.Decode([]byte(l)); err == nil && ok {
			entries = append(entries, e)
		}
	}
	r.m = loop.Fold(r.cfg, slices.Values(entries))
	r.write(r.m.Recover(r.stamp(), loop.CloseOpen, known))
}

func (r *recorder) send(id string) {
	r.step(loop.Send{Input: loop.Input{ID: id, Content: message.TextContent("Do " + id)}})
	r.step(loop.Admitted{ID: r.m.Turn().Await, Init: &message.Init{}})
}

func (r *recorder) answer(stop, text string, calls ...string) {
	spent := r.m.Turn().Spend.USD + 0.25
	e := loop.Response{
		ID: r.m.Turn().Await, MsgID: fmt.Sprint("msg_", r.n), Model: "m", Stop: stop, Text: text,
		Usage: message.Usage{InputTokens: 10, OutputTokens: 5}, Spend: loop.Spend{USD: spent}, Tokens: 15,
		APITime: 700 * time.Millisecond, SentAt: time.Date(2026, 1, 2, 3, 4, r.n, 0, time.UTC), FirstEvent: 300 * time.Microsecond,
	}
	if text != "" {
		e.Blocks = append(e.Blocks, message.NewText(text))
	}
	for _, id := range calls {
		e.Blocks = append(e.Blocks, message.NewToolUse(id, "T", nil))
		e.Calls = append(e.Calls, loop.Call{ID: id, Name: "T", Concurrent: true})
	}
	r.step(e)
}

func (r *recorder) key(id string) string {
	for _, c := range r.m.Calls() {
		if c.ID == id {
			return c.Key
		}
	}
	r.t.Fatalf("no call %s", id)
	return ""
}

func (r *recorder) allow(id string) {
	r.step(loop.Decided{Key: r.key(id), Allow: true, Reason: "rule"})
}

func (r *recorder) deny(id string) {
	r.step(loop.Decided{
		Key: r.key(id), Reason: "rule", Content: message.TextContent("denied"),
		Denial: &message.PermissionDenial{ToolName: "T", ToolUseID: id, ToolInput: []byte(`{}`)},
	})
}

func (r *recorder) finish(id string) {
	r.step(loop.Finished{Key: r.key(id), Content: message.TextContent("out of " + id)})
}

// recorded is a journal with much in it: two calls of which one is denied, the cap
// of turns, an interrupt, a failure, a crash with a running call.
func recorded(t testing.TB) []string {
	r := record1(t, loop.Config{MaxTurns: new(2)})
	r.send("p1")
	r.answer("tool_use", "First", "a", "b")
	r.allow("a")
	r.deny("b")
	r.finish("a")
	r.answer("end_turn", "Done")
	r.send("p2")
	for _, id := range []string{"c", "d"} {
		r.answer("tool_use", "", id)
		r.allow(id)
		r.finish(id)
	}
	r.answer("tool_use", "", "e")
	r.send("p3")
	r.step(loop.Interrupt{})
	r.step(loop.Cancelled{ID: r.m.Turn().Await})
	r.send("p4")
	r.step(loop.Failed{ID: r.m.Turn().Await, Text: "API Error: 500", Status: 500, Category: message.CategoryServerError, Spend: loop.Spend{USD: 1.5}})
	r.send("p5")
	r.answer("tool_use", "", "f", "g")
	r.allow("f")
	r.crash(nil)
	r.send("p6")
	r.answer("end_turn", "The last")
	r.step(loop.Close{})
	return r.lines
}

func seq(lines []string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, l := range lines {
			if !yield([]byte(l), nil) {
				return
			}
		}
	}
}

func replayed(t testing.TB, lines []string) *Report {
	t.Helper()
	r, err := Journal("s", seq(lines))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func textOf(r *Report) string {
	var b strings.Builder
	_ = r.Text(&b)
	return b.String()
}

// TestRecorded: the journal of a machine makes no difference, whole and cut
// anywhere.
func TestRecorded(t *testing.T) {
	lines := recorded(t)
	r := replayed(t, lines)
	if r.Difference != nil || r.Checked != len(lines) || r.Lines != len(lines) || r.Runs != 2 || r.Steps < 30 || r.Torn {
		t.Fatal(textOf(r))
	}
	torn := 0
	for n := 1; n < len(lines); n++ {
		r := replayed(t, lines[:n])
		if r.Difference != nil {
			t.Fatalf("%d lines: %s", n, textOf(r))
		}
		if r.Torn {
			torn++
		}
	}
	if torn < 10 {
		t.Errorf("only %d cuts are in the middle of a write", torn)
	}
}

// TestMutations changes one thing of a journal: the replay finds just that.
func TestMutations(t *testing.T) {
	conform.Covers(t, "L-20", "L-25", "S-44")
	// at is the number of the nth line that holds all of these, from 1.
	at := func(lines []string, nth int, parts ...string) int {
		for i, l := range lines {
			if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(l, p) }) {
				if nth--; nth == 0 {
					return i + 1
				}
			}
		}
		t.Helper()
		t.Fatalf("no line with %q", parts)
		return 0
	}
	edit := func(old, now string, nth int, parts ...string) func([]string) ([]string, int) {
		return func(lines []string) ([]string, int) {
			n := at(lines, nth, parts...)
			if !strings.Contains(lines[n-1], old) {
				t.Fatalf("%q is not in %s", old, lines[n-1])
			}
			lines[n-1] = strings.ReplaceAll(lines[n-1], old, now)
			return lines, n
		}
	}
	drop := func(nth int, parts ...string) func([]string) ([]string, int) {
		return func(lines []string) ([]string, int) {
			n := at(lines, nth, parts...)
			return slices.Delete(lines, n-1, n), n // what stands there now
		}
	}
	swap := func(nth int, parts ...string) func([]string) ([]string, int) {
		return func(lines []string) ([]string, int) {
			n := at(lines, nth, parts...)
			lines[n-1], lines[n] = lines[n], lines[n-1]
			return lines, n
		}
	}
	for name, tt := range map[string]struct {
		change func([]string) ([]string, int)
		field  string // that differs; "": not looked at
		why    string
	}{
		"another ending":                 {edit(`"terminal":"completed"`, `"terminal":"max_turns"`, 1, `"result":`, `"terminal":"completed"`), "turn.ending.terminal", "a response"},
		"an ending that a hook may have": {edit(`"terminal":"completed"`, `"terminal":"hook_stopped"`, 1, `"result":`, `"terminal":"completed"`), "turn.ending.terminal", "a response"},
		"another cap":                    {edit(`number of turns (2)`, `number of turns (3)`, 1, `"result":`, "max_turns"), "result.errors[0]", ""},
		"a cap in the settings":          {edit(`"maxTurns":"2"`, `"maxTurns":"1"`, 1, `"kind":"open"`), "", ""}, // at the ending, see below
		"an interrupt without one":       {edit(`"by":"interrupt"`, `"by":"x"`, 1, `"state":"settle"`), "", ""},
		"turns counted otherwise":        {edit(`"toolTurns":1`, `"toolTurns":2`, 1, `"toolTurns":1`, `"model"`), "turn.toolTurns", ""},
		"a result that counts otherwise": {edit(`\"num_turns\":2`, `\"num_turns\":1`, 1, `num_turns\":2`), "result.num_turns", ""},
		"a result that costs less":       {edit(`total_cost_usd\":0.5,`, `total_cost_usd\":0.25,`, 1, `total_cost_usd\":0.5,`), "result.total_cost_usd", ""},
		"a total that shrinks":           {edit(`"spend":{"usd":0.5}`, `"spend":{"usd":0.1}`, 1, `"result":`, `"spend":{"usd":0.5}`), "", ""},
		"no denial in the result":        {edit(`"op":"denied"`, `"op":"allowed"`, 1, `"op":"denied"`), "denial", "the permission of the call b"},
		"an allowed call is denied": {func(l []string) ([]string, int) {
			l, n := edit(`"op":"allowed"`, `"op":"denied"`, 1, `"op":"allowed"`)(l)
			return l, n + 1
		}, "", "the denial of the call a"},
		"another call is allowed": {edit(`"key":"2.0"`, `"key":"2.7"`, 1, `"op":"allowed"`), "", "Nothing that can happen"},
		"a dropped result":        {drop(1, `"tool_use_id":"a"`), "", ""},
		"a dropped refusal":       {drop(1, `"tool_use_id":"e"`), "", ""},
		"a dropped decision": {func(l []string) ([]string, int) {
			l, _ = drop(1, `"op":"allowed"`)(l)
			return l, at(l, 1, `"tool_use_id":"a"`)
		}, "", "Nothing that can happen in the state tools"},
		"a dropped prompt":                   {drop(2, `"kind":"input"`), "", "Nothing that can happen in the state idle"},
		"a dropped end":                      {drop(2, `"result":`), "", ""},
		"a refusal in other words":           {edit(`maximum number of turns (2)`, `maximum`, 1, `"tool_use_id":"e"`), "message.content[0].content", ""},
		"results of one step swapped":        {swap(1, `"op":"denied"`), "", ""},
		"the response behind its calls":      {swap(1, `"id":"msg_`), "", ""},
		"a call that the response lacks":     {edit(`"id":"a"`, `"id":"z"`, 1, `"op":"requested"`), "", ""},
		"the calls of a response dropped":    {drop(1, `"op":"requested"`), "", "with a call entry here"},
		"a key":                              {edit(`"key":"2.1"`, `"key":"2.2"`, 1, `"op":"requested"`), "calls", ""},
		"the end of the process, recovered":  {edit(`process ended before this turn`, `process broke before this turn`, 1, `process ended before this turn`), "", ""},
		"a state":                            {edit(`"state":"tools"`, `"state":"batch"`, 1, `"state":"tools"`), "turn.state", ""},
		"an await":                           {edit(`"await":"model/2"`, `"await":"model/9"`, 1, `"await":"model/2"`), "turn.await", ""},
		"a stop reason":                      {edit(`"stopReason":"end_turn"`, `"stopReason":"refusal"`, 1, `"stopReason":"end_turn"`), "turn.stopReason", ""},
		"another parent":                     {edit(`"parentUuid":"p2"`, `"parentUuid":"p1"`, 1, `"parentUuid":"p2"`), "", branched},
		"the error of a failure":             {edit(`API Error: 500`, `API Error: 501`, 1, `"isApiErrorMessage"`), "", ""},
		"a notice less":                      {drop(1, `"isApiErrorMessage"`), "", ""},
		"a duration":                         {edit(`duration_ms\":`, `duration_ms\":9`, 1, `"result":`), "result.duration_ms", ""},
		"the time to the first token":        {edit(`"ttft":`, `"ttft":9`, 1, `"ttft":`), "turn.ttft", ""},
		"two lines of a result of the crash": {drop(1, `"tool_use_id":"g"`), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines, want := tt.change(recorded(t))
			r := replayed(t, lines)
			d := r.Difference
			if d == nil {
				t.Fatal("no difference")
			}
			switch name {
			case "a cap in the settings": // it counts where the second tool turn would begin
				want = at(lines, 1, `"tool_use_id":"d"`) - 2
			case "an interrupt without one", "the error of a failure":
				// What is changed may be so; what follows from it is not.
				want = d.Line
				if d.Line <= at(lines, 1, `"kind":"input"`) {
					t.Errorf("line %d", d.Line)
				}
			}
			if d.Line != want || !strings.Contains(d.Why+" "+d.Event, tt.why) {
				t.Errorf("line %d, not %d: %s", d.Line, want, textOf(r))
			}
			if tt.field != "" && (len(d.Fields) == 0 || !strings.HasPrefix(d.Fields[0].Path, tt.field)) {
				t.Errorf("%+v", d.Fields)
			}
			if d.Kind == "" || d.State == "" || d.Record == "" || !strings.HasSuffix(d.Why, ".") || r.Checked != d.Line-1 {
				t.Errorf("%+v", r)
			}
			if out := textOf(r); !strings.Contains(out, fmt.Sprintf("First difference: line %d (%s).", d.Line, d.Kind)) {
				t.Error(out)
			}
		})
	}
}

// TestBefore: journals of before tell less of the configuration; what they tell is
// compared.
func TestBefore(t *testing.T) {
	run := regexp.MustCompile(`,"(width|stopBlockCap|compactAt|schemaRetries)":\d+|,"(schema|steer|batchHooks|stopHooks)":true|,"max(Turns|BudgetUsd)":"[^"]*"`)
	old := func(cfg loop.Config, drive func(*recorder)) []string {
		r := record1(t, cfg)
		drive(r)
		for i, l := range r.lines {
			if strings.Contains(l, `"kind":"open"`) {
				r.lines[i] = run.ReplaceAllString(l, "")
			}
		}
		return r.lines
	}
	for name, lines := range map[string][]string{
		"cap": old(loop.Config{MaxTurns: new(1)}, func(r *recorder) {
			r.send("p")
			r.answer("tool_use", "", "a")
			r.allow("a")
			r.finish("a")
			r.answer("tool_use", "", "b")
		}),
		"budget": old(loop.Config{MaxBudgetUSD: new(0.25)}, func(r *recorder) {
			r.send("p")
			r.answer("tool_use", "", "a")
		}),
		"hooks": old(loop.Config{BatchHooks: true, StopHooks: true}, func(r *recorder) {
			r.send("p")
			r.answer("tool_use", "", "a")
			r.allow("a")
			r.finish("a")
			r.step(loop.Batched{ID: r.m.Turn().Await})
			r.answer("end_turn", "x")
			r.step(loop.Stopped{ID: r.m.Turn().Await, Block: "go on"})
			r.answer("end_turn", "x")
			r.step(loop.Stopped{ID: r.m.Turn().Await})
		}),
		"compaction": old(loop.Config{CompactAt: 10}, func(r *recorder) {
			r.send("p")
			r.answer("tool_use", "", "a")
			r.allow("a")
			r.finish("a")
			r.step(loop.Compacted{ID: r.m.Turn().Await, Summary: "sum", KeepFrom: 1, Trigger: "auto", PreTokens: 15})
			r.answer("end_turn", "x")
		}),
		"steering": old(loop.Config{Steer: true}, func(r *recorder) {
			r.send("p")
			r.answer("tool_use", "", "a")
			r.step(loop.Send{Input: loop.Input{ID: "q", Content: message.TextContent("and")}})
			r.allow("a")
			r.finish("a")
		}),
	} {
		r := replayed(t, lines)
		if r.Difference != nil {
			t.Errorf("%s: %s", name, textOf(r))
		}
		for i, l := range lines {
			if strings.Contains(l, `"seq":2`) {
				lines[i] = strings.Replace(l, `"seq":2`, `"seq":3`, 1)
				break
			}
		}
		if r := replayed(t, lines); r.Difference == nil {
			t.Errorf("%s: no difference", name)
		}
	}
}

// TestForeign: what has no decisions cannot be replayed; what was taken over is
// believed.
func TestForeign(t *testing.T) {
	foreign := []string{
		`{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hello"}}`,
		`{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"hi"}]}}`,
	}
	for _, lines := range [][]string{nil, foreign, {`{"type":"summary"}`, "no line"}} {
		if _, err := Journal("s", seq(lines)); !errors.Is(err, ErrNothing) {
			t.Errorf("%q: %v", lines, err)
		}
	}
	r := record1(t, loop.Config{})
	r.lines, r.w.Last = append(slices.Clone(foreign), r.lines...), "a1"
	r.crash(nil)
	r.send("p1")
	r.answer("end_turn", "Done")
	if got := replayed(t, r.lines); got.Difference != nil || got.Given != 2 || got.Checked != len(r.lines)-2 {
		t.Error(textOf(got))
	}
	if _, err := Journal("s", seq([]string{`{"type":"turnwright","kind":"open","v":1,"sessionId":"s","open":{"format":2}}`})); !errors.Is(err, journal.ErrNewerFormat) {
		t.Errorf("a newer format: %v", err)
	}
	gone := errors.New("gone")
	if _, err := Journal("s", func(yield func([]byte, error) bool) { yield(nil, gone) }); !errors.Is(err, gone) {
		t.Errorf("a store that fails: %v", err)
	}
	// Lines that cannot be read are counted, in the numbers of lines too.
	lines := recorded(t)
	lines[len(lines)-1] = strings.Replace(lines[len(lines)-1], `"closed"`, `"stop"`, 1)
	got, err := Journal("s", func(yield func([]byte, error) bool) {
		_ = yield(nil, &session.LineError{Line: 1, Err: gone}) && yield([]byte("{"), nil) && func() bool {
			for l := range seq(lines) {
				if !yield(l, nil) {
					return false
				}
			}
			return true
		}()
	})
	if err != nil || got.Skipped != 2 || got.Difference == nil || got.Difference.Line != len(lines)+2 {
		t.Errorf("%v %s", err, textOf(got))
	}
}

// TestCut: a session that goes on from an earlier message.
func TestCut(t *testing.T) {
	r := record1(t, loop.Config{})
	r.send("p1")
	r.answer("end_turn", "One")
	answer := r.w.Last
	r.send("p2")
	r.answer("tool_use", "Two", "a")
	r.allow("a")
	tr, _, err := journal.ReadTo(seq(r.lines), answer)
	if err != nil {
		t.Fatal(err)
	}
	r.lines = append(r.lines, string(r.w.CutLine(answer)))
	r.w.Last = answer
	r.m = loop.Fold(r.cfg, slices.Values(tr.Entries))
	r.write(r.m.Recover(r.stamp(), loop.CloseOpen, nil))
	r.send("p3")
	r.answer("end_turn", "Three")
	r.crash2()
	r.send("p4")
	r.answer("end_turn", "Four")
	if got := replayed(t, r.lines); got.Difference != nil || got.Runs < 2 {
		t.Error(textOf(got))
	}
	for i, l := range r.lines {
		r.lines[i] = strings.Replace(l, `"text":"Three"`, `"text":"3"`, 1)
	}
	if got := replayed(t, r.lines); got.Difference == nil || got.Difference.Kind != "turn" {
		t.Error(textOf(got))
	}
}

// crash2 is crash for a session with branches: the file is read as it is.
func (r *recorder) crash2() {
	tr, err := journal.Read(seq(r.lines))
	if err != nil {
		r.t.Fatal(err)
	}
	r.m = loop.Fold(r.cfg, slices.Values(tr.Entries))
	r.write(r.m.Recover(r.stamp(), loop.CloseOpen, nil))
}

// FuzzJournal: whatever the lines are, there is a report or an error.
func FuzzJournal(f *testing.F) {
	lines := recorded(f)
	f.Add(strings.Join(lines, "\n"))
	f.Add(strings.Join(slices.Insert(lines[:20:20], 9, lines[3], lines[25]), "\n"))
	f.Add(`{"type":"turnwright","kind":"turn","v":1,"turn":{"state":"settle","await":"model/1"}}` + "\n" + lines[5])
	f.Add(`{"type":"turnwright","kind":"turn","v":1,"turn":{"state":"tools"}}` + "\n" + strings.Join(lines[5:8], "\n"))
	f.Add(`{"type":"turnwright","kind":"cut","kept":"p1"}` + "\n" + lines[0])
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 30000 {
			return
		}
		in := strings.Split(text, "\n")
		r, err := Journal("s", seq(in))
		if err != nil {
			return
		}
		if r.Lines != len(in) || r.Checked < 0 || r.Given+r.Checked > len(in) {
			t.Errorf("%+v", r)
		}
		if d := r.Difference; d != nil && (d.Line < 1 || d.Line > len(in) || d.Why == "") {
			t.Errorf("%+v", d)
		}
		_ = textOf(r)
	})
}
