package search

import "bytes"

// needle is a literal with the place of its rarest byte: that byte is what the
// search runs along.
type needle struct {
	text   []byte // lower case with fold
	fold   bool
	at     int  // of the rare byte
	lo, up byte // its two forms; equal unless it is a letter and fold is set
}

func newNeedle(text string, fold bool) needle {
	n := needle{text: []byte(text), fold: fold}
	best := 1 << 10
	for i, c := range n.text {
		rank := int(byteRank[c])
		if fold && isLetter(c) {
			rank += int(byteRank[c&^0x20])/2 + 16
		}
		if rank < best {
			best, n.at = rank, i
		}
	}
	n.lo = n.text[n.at]
	n.up = n.lo
	if fold && isLetter(n.lo) {
		n.up = n.lo &^ 0x20
	}
	return n
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// find returns where the literal begins at or after from, or -1.
func (n *needle) find(buf []byte, from int) int {
	i := from + n.at
	if n.lo == n.up {
		for i < len(buf) {
			j := bytes.IndexByte(buf[i:], n.lo)
			if j < 0 {
				return -1
			}
			i += j
			if n.here(buf, i-n.at) {
				return i - n.at
			}
			i++
		}
		return -1
	}
	return n.findFold(buf, i)
}

// findFold runs along both cases of the rare letter, window by window, so that
// a case that does not occur is not looked for through the whole buffer again
// and again.
func (n *needle) findFold(buf []byte, i int) int {
	lo, up := -2, -2 // where each case comes next; -2: not known, -1: not any more
	next := func(at *int, c byte) {
		if *at == -2 || *at >= 0 && *at < i {
			if *at = bytes.IndexByte(buf[i:], c); *at >= 0 {
				*at += i
			}
		}
	}
	for i < len(buf) {
		next(&lo, n.lo)
		next(&up, n.up)
		switch {
		case lo < 0 && up < 0:
			return -1
		case lo < 0 || up >= 0 && up < lo:
			i = up
		default:
			i = lo
		}
		if n.here(buf, i-n.at) {
			return i - n.at
		}
		i++
	}
	return -1
}

// here reports whether the literal stands at buf[i].
func (n *needle) here(buf []byte, i int) bool {
	if i < 0 || i+len(n.text) > len(buf) {
		return false
	}
	if !n.fold {
		return string(buf[i:i+len(n.text)]) == string(n.text)
	}
	for k, c := range n.text {
		d := buf[i+k]
		if d != c && (d|0x20 != c || !isLetter(c)) {
			return false
		}
	}
	return true
}

// scanner finds the matching lines of one buffer after the other. It belongs
// to one goroutine.
type scanner struct {
	m     *Matcher
	auto  *dfa
	next  []int // where each needle comes next: -2 not known, -1 not any more
	plain bool  // the literals decide nothing in this buffer
}

func (m *Matcher) scanner() *scanner {
	return &scanner{m: m, auto: newDFA(m.prog, m.classes, !m.multiline), next: make([]int, len(m.needles))}
}

// begin starts a buffer.
func (s *scanner) begin(buf []byte) {
	for i := range s.next {
		s.next[i] = -2
	}
	// Two letters have a third form outside of ASCII: ſ and K (kelvin).
	s.plain = len(s.next) == 0 || s.m.oddFold && (bytes.Contains(buf, []byte("\u017F")) || bytes.Contains(buf, []byte("\u212A")))
}

// literal returns where the next literal begins at or after pos, or -1.
func (s *scanner) literal(buf []byte, pos int) int {
	best := -1
	for i := range s.next {
		if at := s.next[i]; at == -2 || at >= 0 && at < pos {
			s.next[i] = s.m.needles[i].find(buf, pos)
		}
		if at := s.next[i]; at >= 0 && (best < 0 || at < best) {
			best = at
		}
	}
	return best
}

// line returns the next matching line at or after pos, which is the start of a
// line: buf[start:end] without its line end. ok is false when there is none.
func (s *scanner) line(buf []byte, pos int) (start, end int, ok bool) {
	for pos < len(buf) {
		var i int
		if s.plain {
			i = s.auto.scan(buf, pos)
		} else {
			i = s.literal(buf, pos)
		}
		if i < 0 {
			return 0, 0, false
		}
		start = pos + bytes.LastIndexByte(buf[pos:i], '\n') + 1
		end = len(buf)
		if i < end {
			if j := bytes.IndexByte(buf[i:], '\n'); j >= 0 {
				end = i + j
			}
		}
		if s.plain || s.m.whole || s.auto.scan(buf[start:end], 0) >= 0 {
			return start, end, true
		}
		pos = end + 1
	}
	return 0, 0, false
}

// anywhere reports whether the buffer holds a match; for patterns that may go
// past a line.
func (s *scanner) anywhere(buf []byte) bool {
	s.begin(buf)
	if !s.plain {
		if i := s.literal(buf, 0); i < 0 || s.m.whole {
			return i >= 0
		}
	}
	return s.auto.scan(buf, 0) >= 0
}
