package search

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxShown is how many characters of a line are shown (T-105).
const maxShown = 500

// printer writes the matching lines of one file, with their context, as
// ripgrep does: "name:12:line", and "name-11-line" for context.
type printer struct {
	s      *searcher
	name   string
	out    *page
	number int // of the next line

	context bool
	after   int      // lines of context that the last match still has
	shown   int      // number of the last line shown; 0: none
	held    []string // the last lines not shown, which may be context of the next match
}

func newPrinter(s *searcher, path string, out *page) *printer {
	path = filepath.FromSlash(path)
	name := path
	if s.o.Name != nil {
		name = s.o.Name(path)
	}
	return &printer{
		s: s, out: out, number: 1,
		name:    strings.ToValidUTF8(name, "\uFFFD"),
		context: (s.o.Before > 0 || s.o.After > 0) && !s.o.Only,
	}
}

// text prints a piece of the file; it returns false when no more is needed.
func (p *printer) text(text []byte) bool {
	next := p.blocks(text)
	for pos := 0; pos < len(text); {
		start, end, ok := next(pos)
		if !ok {
			p.gap(text[pos:])
			break
		}
		p.gap(text[pos:start])
		p.match(text[start:end])
		if p.out.more || p.s.walk.stopped.Load() {
			return false
		}
		pos = end + 1
	}
	return true
}

// blocks returns a function that finds the next match at or after a place, as
// whole lines without the last line end.
func (p *printer) blocks(text []byte) func(pos int) (start, end int, ok bool) {
	if !p.s.o.Matcher.multiline {
		p.s.scan.begin(text)
		return func(pos int) (int, int, bool) { return p.s.scan.line(text, pos) }
	}
	all := p.s.o.Matcher.re.FindAllIndex(text, maxMatches)
	return func(pos int) (start, end int, ok bool) {
		for len(all) > 0 {
			m := all[0]
			if m[0] < pos || m[0] == len(text) && (m[0] == 0 || text[m[0]-1] == '\n') || p.s.o.Only && m[0] == m[1] {
				all = all[1:] // in lines already shown, after the last line, or nothing to show
				continue
			}
			start, end, ok = p.lines(text, m, pos)
			for all = all[1:]; len(all) > 0 && all[0][0] <= end; all = all[1:] {
				_, e, _ := p.lines(text, all[0], pos)
				end = max(end, e)
			}
			return start, end, ok
		}
		return 0, 0, false
	}
}

// lines widens a match to the lines that it touches.
func (p *printer) lines(text []byte, m []int, pos int) (start, end int, ok bool) {
	start = max(pos, bytes.LastIndexByte(text[:m[0]], '\n')+1)
	end = len(text)
	last := max(m[0], m[1]-1) // a line end at the end of a match does not touch the next line
	if i := bytes.IndexByte(text[last:], '\n'); i >= 0 {
		end = last + i
	}
	return start, end, true
}

// match prints lines that match.
func (p *printer) match(block []byte) {
	if p.s.o.Only {
		for _, m := range p.s.only(block) {
			at := p.number + bytes.Count(block[:m[0]], newline)
			for i, line := range bytes.Split(block[m[0]:m[1]], newline) {
				p.print(':', at+i, line, true)
			}
		}
		p.number += bytes.Count(block, newline) + 1
		return
	}
	switch first := p.number - len(p.held); {
	case !p.context:
	case p.shown == 0 && p.out.seen > 0, p.shown > 0 && p.shown < first-1:
		p.out.add("--")
	}
	for i, line := range p.held {
		p.shown = p.number - len(p.held) + i
		p.out.add(line)
	}
	p.held = p.held[:0]
	for line := range bytes.SplitSeq(block, newline) {
		p.print(':', p.number, line, true)
		p.shown = p.number
		p.number++
	}
	p.after = p.s.o.After
}

// gap goes over lines that do not match: the first may be context of the match
// before, the last of the one to come.
func (p *printer) gap(text []byte) {
	if !p.context {
		p.number += linesIn(text)
		return
	}
	for p.after > 0 && len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, newline)
		p.print('-', p.number, line, false)
		p.shown = p.number
		p.number++
		p.after--
	}
	keep := p.s.o.Before
	if len(text) == 0 || keep == 0 {
		p.number += linesIn(text)
		return
	}
	// Only the last lines matter; find where they begin.
	start := len(text)
	if text[start-1] == '\n' {
		start--
	}
	have := 0
	for have < keep && start >= 0 {
		start = bytes.LastIndexByte(text[:start], '\n')
		have++
	}
	skipped := linesIn(text[:start+1])
	if skipped > 0 {
		p.held = p.held[:0]
	}
	p.number += skipped
	for line := range bytes.Lines(text[start+1:]) {
		if len(p.held) == keep {
			p.held = append(p.held[:0], p.held[1:]...)
		}
		p.held = append(p.held, p.format('-', p.number, bytes.TrimSuffix(line, newline), false))
		p.number++
	}
}

func (p *printer) print(mark byte, number int, line []byte, match bool) {
	if !p.out.wants() {
		p.out.add("") // counted only
		return
	}
	p.out.add(p.format(mark, number, line, match))
}

func (p *printer) format(mark byte, number int, line []byte, match bool) string {
	b := make([]byte, 0, len(p.name)+min(len(line), 4*maxShown)+32)
	b = append(append(b, p.name...), mark)
	if p.s.o.Numbers {
		b = append(strconv.AppendInt(b, int64(number), 10), mark)
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) <= maxShown || utf8.RuneCount(line) <= maxShown {
		return string(append(b, bytes.ToValidUTF8(line, []byte("\uFFFD"))...))
	}
	at, end := 0, 0
	if match && !p.s.o.Only {
		if m := p.s.o.Matcher.re.FindIndex(line); m != nil {
			at, end = m[0], m[1]
		}
	}
	return string(append(b, shorten(line, at, end)...))
}

// shorten cuts a line to maxShown characters around line[at:end] and says how
// many it left out on each side.
func shorten(line []byte, at, end int) string {
	size := utf8.RuneCount(line[at:end])
	from := back(line, at, max(0, (maxShown-size)/2))
	to, n := from, 0
	for to < len(line) && n < maxShown {
		_, w := utf8.DecodeRune(line[to:])
		to, n = to+w, n+1
	}
	from = back(line, from, maxShown-n) // near the end of the line there is room before
	var b strings.Builder
	if from > 0 {
		fmt.Fprintf(&b, "[%d characters] ", utf8.RuneCount(line[:from]))
	}
	b.Write(bytes.ToValidUTF8(line[from:to], []byte("\uFFFD")))
	if to < len(line) {
		fmt.Fprintf(&b, " [%d characters]", utf8.RuneCount(line[to:]))
	}
	return b.String()
}

// back returns the place n characters before at.
func back(line []byte, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		_, w := utf8.DecodeLastRune(line[:at])
		at -= w
	}
	return at
}
