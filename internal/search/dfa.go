package search

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sort"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// classes are the sets of runes that a program cannot tell apart. Class 0 is
// none of them: it marks the bytes that need decoding.
type classes struct {
	ascii [256]uint8 // of a byte below 0x80
	from  []rune     // the first rune of each interval, sorted
	of    []int32    // the class of each interval
	count int        // classes, with 0 and the one for the end of the text
	end   int        // the class of the end of the text
	line  int        // the class of '\n'
	word  []bool     // by class
	fits  [][]bool   // by set of runes and class
	sets  []int      // by instruction: its set, -1 when it takes no rune
}

func newClasses(prog *syntax.Prog) *classes {
	c := &classes{sets: make([]int, len(prog.Inst))}
	starts := map[rune]bool{0: true}
	cut := func(lo, hi rune) { starts[lo], starts[hi+1] = true, true }
	cut('\n', '\n')
	cut('0', '9')
	cut('A', 'Z')
	cut('a', 'z')
	cut('_', '_')
	cut(utf8.RuneSelf, utf8.RuneSelf-1)
	known := map[string]int{}
	var members []*syntax.Inst
	for pc := range prog.Inst {
		in := &prog.Inst[pc]
		c.sets[pc] = -1
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		default:
			continue
		}
		id := []byte{byte(in.Op)}
		if in.Op == syntax.InstRune || in.Op == syntax.InstRune1 {
			id = binary.LittleEndian.AppendUint32(id, in.Arg)
			for _, r := range in.Rune {
				id = binary.LittleEndian.AppendUint32(id, uint32(r))
			}
		}
		set, ok := known[string(id)]
		if !ok {
			set = len(members)
			known[string(id)] = set
			members = append(members, in)
			switch {
			case in.Op == syntax.InstRuneAny, in.Op == syntax.InstRuneAnyNotNL:
			case len(in.Rune) == 1:
				r := in.Rune[0]
				cut(r, r)
				if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
					for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
						cut(f, f)
					}
				}
			default:
				for i := 0; i+1 < len(in.Rune); i += 2 {
					cut(in.Rune[i], in.Rune[i+1])
				}
			}
		}
		c.sets[pc] = set
	}
	for r := range starts {
		if r <= unicode.MaxRune {
			c.from = append(c.from, r)
		}
	}
	slices.Sort(c.from)

	c.fits = make([][]bool, len(members))
	for i := range c.fits {
		c.fits[i] = []bool{false}
	}
	c.word = []bool{false}
	byKey := map[string]int32{}
	key := make([]byte, len(members)+2)
	for _, r := range c.from {
		for i, in := range members {
			key[i] = bit(in.MatchRune(r))
		}
		key[len(members)] = bit(isWord(r))
		key[len(members)+1] = bit(r == '\n')
		class, ok := byKey[string(key)]
		if !ok {
			class = int32(len(c.word))
			byKey[string(key)] = class
			c.word = append(c.word, isWord(r))
			for i := range members {
				c.fits[i] = append(c.fits[i], key[i] == 1)
			}
		}
		c.of = append(c.of, class)
	}
	c.line = int(c.classOf('\n'))
	c.end = len(c.word)
	c.count = c.end + 1
	for b := range utf8.RuneSelf { // the first 128 runes have the lowest classes
		c.ascii[b] = uint8(c.classOf(rune(b)))
	}
	return c
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func isWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

func (c *classes) classOf(r rune) int32 {
	i := sort.Search(len(c.from), func(i int) bool { return c.from[i] > r })
	return c.of[i-1]
}

// dfa is a deterministic automaton that is made while it runs: each state is a
// set of the program's instructions and what came before. It tells whether and
// about where there is a match, at a byte a step. It belongs to one goroutine.
type dfa struct {
	prog  *syntax.Prog
	c     *classes
	lines bool // a line end is the end of the text and starts it anew

	trans  []int32 // by state and class: a state, or one of the marks below
	states []dfaState
	known  map[string]int32
	start  int32
	decode int32        // the mark for a byte that needs decoding
	match  int32        // the mark for a match
	first  int32        // what is below is a mark, not a state
	held   int          // instructions in all states
	most   int          // transitions kept
	stop   *atomic.Bool // ends a scan as if nothing more was there

	set  sparse // for making states
	set2 sparse
	key  []byte
}

type dfaState struct {
	insts   []uint32
	before  before
	pending bool // an instruction waits for what comes next
}

// before is what a state must know of what came before it.
type before uint8

const (
	atText before = 1 << iota // nothing
	atLine                    // a line end, or nothing
	atWord                    // a word character
)

// notMade in trans says that the transition is to be made. It is a row of its
// own, as the two other marks are, and all in these rows is notMade: so a run
// past a mark does no harm.
const notMade = 0

// maxTrans and maxHeld bound the transitions kept and the instructions in all
// states together; when there are more, all states are dropped.
const (
	maxTrans = 1 << 20
	maxHeld  = 2 << 20
)

func newDFA(prog *syntax.Prog, c *classes, lines bool) *dfa {
	n := int32(c.count)
	d := &dfa{prog: prog, c: c, lines: lines, most: maxTrans, decode: n, match: 2 * n, first: 3 * n}
	d.set.init(len(prog.Inst))
	d.set2.init(len(prog.Inst))
	d.reset()
	return d
}

func (d *dfa) reset() {
	d.trans, d.states, d.known, d.held = make([]int32, d.first), d.states[:0], map[string]int32{}, 0
	d.set.clear()
	if d.follow(&d.set, uint32(d.prog.Start), d.flags(atText|atLine, -1)) {
		d.start = d.match
		return
	}
	d.start = d.state(&d.set, atText|atLine)
}

// scan returns where it knew that there is a match at or after pos: the index
// of a byte of the matching line or of its line end. It returns -1 for none.
// pos is the start of the text or of a line.
func (d *dfa) scan(buf []byte, pos int) int {
	if d.start == d.match {
		return pos
	}
	s := d.start
	class, trans := &d.c.ascii, d.trans
	for i := pos; i < len(buf); {
		// Four bytes at a time while nothing special happens: a mark among the
		// transitions leads to a row of marks, and is looked at one by one.
		for i+4 <= len(buf) {
			four := buf[i : i+4 : i+4]
			a := trans[s+int32(class[four[0]])]
			b := trans[a+int32(class[four[1]])]
			c := trans[b+int32(class[four[2]])]
			e := trans[c+int32(class[four[3]])]
			if e < d.first {
				break
			}
			i += 4
			if e == s && a == s && b == s { // run along what does not change the state
				row := trans[s : s+int32(d.c.count)]
				for i < len(buf) && row[class[buf[i]]] == s {
					i++
				}
			}
			s = e
		}
		if i == len(buf) {
			break
		}
		next := trans[s+int32(class[buf[i]])]
		if next >= d.first {
			s = next
			i++
			continue
		}
		at, size := int32(class[buf[i]]), 1
		if next == d.decode {
			var r rune
			r, size = utf8.DecodeRune(buf[i:])
			at = d.c.classOf(r)
			next = trans[s+at]
		}
		if next == notMade {
			next = d.step(s, int(at))
			trans = d.trans
			if d.stop != nil && d.stop.Load() {
				return -1
			}
		}
		if next == d.match {
			return i
		}
		s = next
		i += size
	}
	last := d.c.end
	if d.lines {
		if len(buf) > 0 && buf[len(buf)-1] == '\n' && len(buf) > pos {
			return -1 // no line begins after the last line end
		}
		last = d.c.line
	}
	next := d.trans[s+int32(last)]
	if next == notMade {
		next = d.step(s, last)
	}
	if next == d.match {
		return len(buf)
	}
	return -1
}

// flags are the assertions that hold between what came before and a class;
// class -1 is not known yet: those that look ahead do not count.
func (d *dfa) flags(b before, class int) (f syntax.EmptyOp) {
	if b&atText != 0 {
		f |= syntax.EmptyBeginText
	}
	if b&atLine != 0 {
		f |= syntax.EmptyBeginLine
	}
	if class < 0 {
		return f
	}
	if class == d.c.end || d.lines && class == d.c.line {
		f |= syntax.EmptyEndText
	}
	if class == d.c.end || class == d.c.line {
		f |= syntax.EmptyEndLine
	}
	if (b&atWord != 0) != (class < d.c.end && d.c.word[class]) {
		return f | syntax.EmptyWordBoundary
	}
	return f | syntax.EmptyNoWordBoundary
}

// looksAhead are the assertions that need the next rune.
const looksAhead = syntax.EmptyEndLine | syntax.EmptyEndText | syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary

// follow adds pc and what is reached from it without taking a rune. With flags
// that say nothing of what comes next, assertions that ask for it are kept. It
// reports whether a match is reached.
func (d *dfa) follow(set *sparse, pc uint32, flags syntax.EmptyOp) (match bool) {
	stack := append(set.stack[:0], pc)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !set.add(pc) {
			continue
		}
		in := &d.prog.Inst[pc]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		case syntax.InstEmptyWidth:
			op := syntax.EmptyOp(in.Arg)
			if op&^flags == 0 {
				stack = append(stack, in.Out)
			}
		case syntax.InstMatch:
			match = true
		}
	}
	set.stack = stack
	return match
}

// state returns the state with the instructions of a set that matter.
func (d *dfa) state(set *sparse, b before) int32 {
	st := dfaState{before: b}
	for _, pc := range set.list {
		in := &d.prog.Inst[pc]
		switch in.Op {
		case syntax.InstEmptyWidth:
			op := syntax.EmptyOp(in.Arg)
			if op&looksAhead == 0 || op&^looksAhead&^d.flags(b, -1) != 0 {
				continue // taken already, or never
			}
			st.pending = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		default:
			continue
		}
		st.insts = append(st.insts, pc)
	}
	if !st.pending {
		st.before = 0 // nobody asks
	}
	slices.Sort(st.insts)
	d.key = append(d.key[:0], byte(st.before))
	for _, pc := range st.insts {
		d.key = binary.AppendUvarint(d.key, uint64(pc))
	}
	if id, ok := d.known[string(d.key)]; ok {
		return id
	}
	id := int32(len(d.trans))
	d.known[string(d.key)] = id
	d.states = append(d.states, st)
	d.held += len(st.insts)
	d.trans = append(d.trans, make([]int32, d.c.count)...)
	row := d.trans[id:]
	row[0] = d.decode
	return id
}

// step makes the transition from a state by a class.
func (d *dfa) step(s int32, class int) int32 {
	st := d.states[int(s-d.first)/d.c.count]
	insts := st.insts
	if st.pending {
		flags := d.flags(st.before, class)
		d.set2.clear()
		for _, pc := range insts {
			if d.follow(&d.set2, pc, flags) {
				d.trans[int(s)+class] = d.match
				return d.match
			}
		}
		insts = d.set2.list
	}
	if class == d.c.end || d.lines && class == d.c.line {
		d.trans[int(s)+class] = d.start
		return d.start
	}
	var b before
	if class == d.c.line {
		b = atLine
	} else if d.c.word[class] {
		b = atWord
	}
	flags := d.flags(b, -1)
	d.set.clear()
	for _, pc := range insts {
		if set := d.c.sets[pc]; set >= 0 && d.c.fits[set][class] {
			if d.follow(&d.set, d.prog.Inst[pc].Out, flags) {
				d.trans[int(s)+class] = d.match
				return d.match
			}
		}
	}
	if d.follow(&d.set, uint32(d.prog.Start), flags) { // a match may begin anywhere
		d.trans[int(s)+class] = d.match
		return d.match
	}
	if len(d.trans) >= d.most || d.held >= maxHeld {
		next := slices.Clone(d.set.list)
		d.reset()
		d.set.clear()
		for _, pc := range next {
			d.set.add(pc)
		}
		return d.state(&d.set, b)
	}
	next := d.state(&d.set, b)
	d.trans[int(s)+class] = next
	return next
}

// sparse is a set of small numbers that is emptied at once.
type sparse struct {
	list  []uint32
	index []uint32
	stack []uint32
}

func (s *sparse) init(n int) { s.index = make([]uint32, n) }

func (s *sparse) clear() { s.list = s.list[:0] }

func (s *sparse) add(pc uint32) bool {
	if i := s.index[pc]; int(i) < len(s.list) && s.list[i] == pc {
		return false
	}
	s.index[pc] = uint32(len(s.list))
	s.list = append(s.list, pc)
	return true
}
