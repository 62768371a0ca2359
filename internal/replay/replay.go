package replay

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
)

// Journal replays the session whose lines are given, those of Journal.Load or
// Finder.Read. Lines that cannot be read are counted; any other error of lines, and
// journal.ErrNewerFormat, is returned, and ErrNothing when there is nothing to
// compare.
func Journal(id string, lines iter.Seq2[[]byte, error]) (*Report, error) {
	p := &player{out: Report{SessionID: id}, borders: map[int]*border{}}
	if err := p.read(lines); err != nil {
		return nil, err
	}
	p.out.Given = p.given()
	if p.out.Given == len(p.recs) {
		return nil, ErrNothing
	}
	p.out.Runs = 1
	p.index()
	p.play()
	return &p.out, nil
}

// player walks through a journal. Its machine is the fold of what stands before at.
type player struct {
	out   Report
	recs  []record
	m     *loop.Machine
	cfg   loop.Config
	exact bool // the journal tells all of cfg
	at    int

	raw     [][]byte // the lines
	borders map[int]*border

	far           *miss // the farthest that anything came to explain
	branchAt      int   // from there on the conversation has branches; 0: not looked at yet
	turnAt, endAt []int // of each entry, the next turn entry from it on, and the next one in which a user turn ends
}

func (p *player) index() {
	n := len(p.recs)
	p.turnAt, p.endAt = make([]int, n+1), make([]int, n+1)
	p.turnAt[n], p.endAt[n] = n, n
	for i := n - 1; i >= 0; i-- {
		p.turnAt[i], p.endAt[i] = p.turnAt[i+1], p.endAt[i+1]
		if e := &p.recs[i]; e.Kind == loop.KindTurn {
			p.turnAt[i] = i
			if e.Turn.Turn.Input == "" && e.Turn.Turn.Ending != nil {
				p.endAt[i] = i
			}
		}
	}
}

// way is what one event explains: the next entries are those of its step.
type way struct {
	event string
	n     int  // entries
	torn  bool // of the step, not all were written: another process goes on
}

// fork is a place where an entry can be explained in ways of different length.
type fork struct {
	at, steps, runs int
	torn            bool
	left            []way
}

// maxForks bounds the places that are gone back to. The shorter way is hardly ever
// the right one, and only when the longer one has led nowhere soon.
const maxForks = 32

// play goes through the journal. Where no event explains what follows, it goes back
// to the last place where there was another way; the difference that it reports is
// the one that is farthest.
func (p *player) play() {
	p.reset(p.out.Given)
	var forks []fork
	torn := false // the step before was written in part
	dead := map[[2]int]bool{}
	for p.at < len(p.recs) {
		ways := p.ways(torn)
		ways = slices.DeleteFunc(ways, func(w way) bool { return dead[node(p.at+w.n, w.torn)] })
		if len(ways) == 0 && p.reread() {
			torn = false
			p.out.Runs++
			continue
		}
		if len(ways) == 0 {
			dead[node(p.at, torn)] = true
			if best := p.nearest(torn); p.far == nil || best.index() > p.far.index() || best.index() == p.far.index() && best.c != nil {
				p.far = best
			}
			if len(forks) == 0 {
				p.fail(p.far)
				return
			}
			f := &forks[len(forks)-1]
			p.reset(f.at)
			p.out.Steps, p.out.Runs, torn = f.steps, f.runs, f.torn
			ways, f.left = f.left, nil
			forks = forks[:len(forks)-1]
			ways = slices.DeleteFunc(ways, func(w way) bool { return dead[node(p.at+w.n, w.torn)] })
			if len(ways) == 0 {
				dead[node(p.at, torn)] = true
				continue // asks again, and finds nothing
			}
		}
		w := ways[0]
		if len(ways) > 1 {
			forks = append(forks, fork{p.at, p.out.Steps, p.out.Runs, torn, ways[1:]})
			if len(forks) > maxForks {
				forks = slices.Delete(forks, 0, 1)
			}
		}
		_, crossed := p.borders[p.at]
		if strings.HasPrefix(w.event, recovered) && !crossed {
			p.out.Runs++
		}
		p.advance(w.n)
		p.out.Steps++
		torn = w.torn
		if _, crosses := p.borders[p.at]; crosses {
			p.out.Runs++
			torn = false
		}
	}
	p.out.Torn = torn
	p.out.Checked = p.at - p.out.Given
}

func node(at int, torn bool) [2]int {
	if torn {
		return [2]int{at, 1}
	}
	return [2]int{at, 0}
}

// reset folds what stands before an entry.
func (p *player) reset(at int) {
	cfg := loop.Config{}
	for i := p.out.Given; i < len(p.recs); i++ {
		if e := &p.recs[i]; e.Kind == loop.KindOpen {
			cfg.SessionID = e.Open.SessionID
			break
		}
	}
	p.m, p.cfg, p.exact, p.at = loop.New(cfg), cfg, false, 0
	p.advance(at)
}

// advance folds the next n entries as they stand in the journal: what comes behind
// them is about their ids.
func (p *player) advance(n int) {
	for range n {
		e := p.recs[p.at].Entry
		p.m.Apply(e)
		if e.Kind == loop.KindOpen {
			p.adopt(p.m.Settings())
		}
		p.recs[p.at].form = nil
		p.at++
		p.cross()
	}
}

// cross makes the machine at a border that of the process which goes on there.
func (p *player) cross() {
	b, ok := p.borders[p.at]
	if !ok {
		return
	}
	t, err := p.transcript(b)
	if err != nil {
		return // it was no message: then what follows differs
	}
	p.m = loop.Fold(loop.Config{SessionID: p.cfg.SessionID}, slices.Values(t.Entries))
	p.adopt(p.m.Settings())
}

// reread goes on with what a process reads that has the file alone, where a
// conversation has branches. It reports whether that may be another state.
func (p *player) reread() bool {
	if _, done := p.borders[p.at]; done || p.at == 0 || !p.branched(p.at) {
		return false
	}
	p.borders[p.at] = &border{lines: p.recs[p.at].line - 1}
	p.cross()
	return true
}

// branched reports whether the conversation before an entry is more than one line.
func (p *player) branched(at int) bool {
	if p.branchAt == 0 {
		p.branchAt = len(p.recs) + 1
		for i := range p.recs {
			if _, ok := p.borders[i]; ok || !p.linked(i) {
				p.branchAt = i + 1
				break
			}
		}
	}
	return at >= p.branchAt
}

// adopt takes the configuration that an open entry tells of.
func (p *player) adopt(s loop.Settings) { p.cfg, p.exact = s.Config() }

// miss is the nearest to an explanation where there is none.
type miss struct {
	at, matched int
	c           *try
	decided     *loop.Entry // instead of the entry; nil: nothing more
	form        []byte
	steps, runs int
	branch      bool // the line is not linked to the one before
}

func (m *miss) index() int { return m.at + m.matched }

// ways are all ways to explain what follows, the longest first. After a torn step
// only another process goes on.
func (p *player) ways(torn bool) []way {
	if !p.linked(p.at) {
		return nil
	}
	tries := p.possible(torn)
	ways := p.explain(tries)
	if len(ways) == 0 && !p.exact && !torn {
		ways = p.explain(p.guesses(tries))
	}
	return ways
}

func (p *player) possible(torn bool) []try {
	tries := p.recoveries()
	if !torn {
		tries = append(p.tries(), tries...)
	}
	return tries
}

// nearest is the nearest to an explanation where there is none.
func (p *player) nearest(torn bool) *miss {
	best := &miss{at: p.at, steps: p.out.Steps, runs: p.out.Runs}
	if !p.linked(p.at) {
		best.branch = true
		return best
	}
	tries := p.possible(torn)
	for i := range tries {
		n, whole, decided, form := p.run(p.m, &tries[i], p.at)
		if !whole {
			p.nearer(best, n, &tries[i], decided, form)
		}
	}
	return best
}

// explain tries events and returns those that explain what follows.
func (p *player) explain(tries []try) (ways []way) {
	longest := 0
	type part struct {
		event string
		n     int
	}
	var parts []part
	for i := range tries {
		c := &tries[i]
		n, whole, decided, form := p.run(p.m, c, p.at)
		switch {
		case whole && n > 0:
			if !slices.ContainsFunc(ways, func(w way) bool { return w.n == n }) {
				ways = append(ways, way{event: c.name, n: n})
			}
			longest = max(longest, n)
		case n > 0:
			parts = append(parts, part{c.name, n})
			if p.at+n < len(p.recs) && (p.far == nil || p.at+n > p.far.index()) {
				p.far = &miss{at: p.at, matched: n, c: c, decided: decided, form: form, steps: p.out.Steps, runs: p.out.Runs}
			}
		}
	}
	slices.SortStableFunc(ways, func(a, b way) int { return b.n - a.n })
	for _, t := range parts {
		// A write in part is a last resort: it must reach farther than any whole
		// one, and end the journal or be followed by another process.
		if t.n <= longest || slices.ContainsFunc(ways, func(w way) bool { return w.torn && w.n == t.n }) {
			continue
		}
		if _, crosses := p.borders[p.at+t.n]; crosses || p.at+t.n == len(p.recs) || p.recoversAfter(t.n) {
			ways = append(ways, way{event: t.event, n: t.n, torn: true})
		}
	}
	return ways
}

// recoversAfter reports whether another process goes on after n more entries.
func (p *player) recoversAfter(n int) bool {
	after := p.m.Trial(p.cfg)
	for i := range n {
		after.Apply(p.recs[p.at+i].Entry)
	}
	q := &player{recs: p.recs, m: after, cfg: p.cfg, exact: p.exact, at: p.at + n}
	for _, c := range q.recoveries() {
		if got, _, _, _ := q.run(after, &c, q.at); got > 0 {
			return true
		}
	}
	return false
}

// run tries an event: n entries that follow are those of its step, and whole says
// that these are all of them. Otherwise decided is the first that differs.
func (p *player) run(m *loop.Machine, c *try, at int) (n int, whole bool, decided *loop.Entry, form []byte) {
	if c.budget && c.cfg.MaxBudgetUSD == nil {
		return 0, false, nil, nil
	}
	defer func() {
		// A state that no machine ever had: the lines were changed by hand.
		if recover() != nil {
			n, whole, decided, form = 0, false, nil, nil
		}
	}()
	r := c.do(m.Trial(c.cfg), loop.Stamp{Time: p.stepTime(at), UUID: madeUp})
	names := naming{}
	for i := range r.Entries {
		e := &r.Entries[i]
		if _, crosses := p.borders[at+i]; at+i == len(p.recs) || crosses && i > 0 {
			return i, false, e, nil
		}
		rec := &p.recs[at+i]
		if e.Kind != rec.Kind {
			return i, false, e, nil
		}
		form = names.form(*e, rec)
		if !same(rec.formed(), form) || i > 0 && !p.linked(at+i) {
			return i, false, e, form
		}
	}
	return len(r.Entries), true, nil, nil
}

// stepTime is the time of the step that begins with an entry. Chain lines have
// theirs in milliseconds only; an own line of the same step has all of it.
func (p *player) stepTime(at int) time.Time {
	t := p.recs[at].Time
	for i := at; i < len(p.recs); i++ {
		e := &p.recs[i]
		if !e.Time.Truncate(time.Millisecond).Equal(t.Truncate(time.Millisecond)) {
			break
		}
		if !e.Chain() {
			return e.Time
		}
	}
	return t
}

// linked reports whether a chain line continues the one before it.
func (p *player) linked(at int) bool {
	r := &p.recs[at]
	if !r.Chain() || r.Kind == loop.KindSystem {
		return true
	}
	for i := at; i >= 0; i-- {
		if i < at && p.recs[i].Chain() {
			return r.parent == p.recs[i].UUID
		}
		if b, ok := p.borders[i]; ok {
			t, err := p.transcript(b)
			return err == nil && r.parent == t.Last
		}
	}
	return r.parent == ""
}

// nearer keeps the better of two misses: the one that explains more, or whose next
// entry is more like the one that is there.
func (p *player) nearer(best *miss, n int, c *try, decided *loop.Entry, form []byte) {
	if decided == nil || p.at+n >= len(p.recs) || n == 0 && c.any {
		return
	}
	alike := form != nil
	switch {
	case best.c == nil && n == 0 && !alike, n < best.matched:
		return
	case n > best.matched, best.c == nil:
	case alike != (best.form != nil):
		if !alike {
			return
		}
	case !alike:
		return
	default:
		rec := p.recs[p.at+n].formed()
		if len(fields(rec, form, 100)) >= len(fields(rec, best.form, 100)) {
			return
		}
	}
	best.matched, best.c, best.decided, best.form = n, c, decided, form
}

const branched = "The conversation goes on from another message than the last one before this line."

// fail reports the difference.
func (p *player) fail(f *miss) {
	p.reset(f.at)
	p.out.Steps, p.out.Runs = f.steps, f.runs
	rec := &p.recs[f.index()]
	p.out.Checked = f.index() - p.out.Given
	d := &Difference{Line: rec.line, Kind: string(rec.Kind), State: string(p.m.State()), Record: string(rec.formed())}
	for _, w := range p.m.Want() {
		if w.Kind == loop.DoCheck || w.Kind == loop.DoRun {
			d.Waiting = append(d.Waiting, string(w.Kind)+" "+w.ID)
		} else {
			d.Waiting = append(d.Waiting, w.ID)
		}
	}
	if f.c != nil {
		d.Event, d.Decided = f.c.name, string(formOf(*f.decided))
	}
	switch {
	case f.branch:
		d.Why = branched
	case f.c == nil:
		d.Why = fmt.Sprintf("Nothing that can happen in the state %s makes the machine write this %s entry.", d.State, d.Kind)
	case f.form == nil:
		d.Why = fmt.Sprintf("The machine answers %s with a %s entry here, and the journal has a %s entry.", d.Event, f.decided.Kind, d.Kind)
	default:
		d.Decided, d.Fields = string(f.form), fields(rec.formed(), f.form, 10)
		if len(d.Fields) == 0 {
			d.Decided, d.Why = "", branched
			break
		}
		d.Why = fmt.Sprintf("The machine answers %s with another %s entry: %s differs.", d.Event, d.Kind, d.Fields[0].Path)
	}
	p.out.Difference = d
}
