package search

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// segment is the part of a pattern between two slashes, ready for matching.
type segment struct {
	kind segmentKind
	lit  string  // of exact, prefix, suffix
	toks []token // of wild
}

type segmentKind uint8

const (
	exact    segmentKind = iota // no wildcard
	anything                    // *
	suffix                      // *literal
	prefix                      // literal*
	wild                        // any other
	deep                        // **: any number of segments
)

// token is one element of a wild segment.
type token struct {
	kind   tokenKind
	r      rune
	negate bool
	ranges []rune // pairs of a class
}

type tokenKind uint8

const (
	oneRune tokenKind = iota
	anyRune
	anyRun // *
	class
)

// errWildcard is wrapped by what parsing a glob pattern finds.
var errWildcard = errors.New("invalid glob pattern")

// parseSegments splits a pattern without braces at its slashes. A "**" that
// does not fill a segment is as "*".
func parseSegments(pattern string) ([]segment, error) {
	var segs []segment
	var toks []token
	flush := func() {
		segs = append(segs, makeSegment(toks))
		toks = nil
	}
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRuneInString(pattern[i:])
		if r == utf8.RuneError && n == 1 {
			r = invalidByte(pattern[i])
		}
		switch r {
		case '/':
			flush()
			i++
		case '*':
			if k := len(toks); k > 0 && toks[k-1].kind == anyRun {
				toks = append(toks, token{kind: anyRun, r: 1}) // remembered, to tell ** from *
			} else {
				toks = append(toks, token{kind: anyRun})
			}
			i++
		case '?':
			toks = append(toks, token{kind: anyRune})
			i++
		case '[':
			t, next, err := parseClass(pattern, i)
			if err != nil {
				return nil, err
			}
			toks = append(toks, t)
			i = next
		case '\\':
			i++
			if i == len(pattern) {
				return nil, fmt.Errorf("%w %q: ends in a backslash", errWildcard, pattern)
			}
			r, n = utf8.DecodeRuneInString(pattern[i:])
			if r == '/' {
				continue
			}
			if r == utf8.RuneError && n == 1 {
				r = invalidByte(pattern[i])
			}
			toks = append(toks, token{r: r})
			i += n
		default:
			toks = append(toks, token{r: r})
			i += n
		}
	}
	flush()
	return segs, nil
}

// invalidByte is what stands for a byte that is not UTF-8: no rune has it.
func invalidByte(b byte) rune { return -1 - rune(b) }

// classNames are the POSIX classes of [[:name:]], as git knows them.
var classNames = map[string][]rune{
	"alnum": {'0', '9', 'A', 'Z', 'a', 'z'}, "alpha": {'A', 'Z', 'a', 'z'}, "blank": {' ', ' ', '\t', '\t'},
	"cntrl": {0, 31, 127, 127}, "digit": {'0', '9'}, "graph": {33, 126}, "lower": {'a', 'z'}, "print": {32, 126},
	"punct": {33, 47, 58, 64, 91, 96, 123, 126}, "space": {' ', ' ', '\t', '\r'}, "upper": {'A', 'Z'},
	"xdigit": {'0', '9', 'A', 'F', 'a', 'f'},
}

// parseClass reads the class that begins at pattern[i].
func parseClass(pattern string, i int) (t token, next int, err error) {
	start := i
	bad := func(what string) (token, int, error) {
		return token{}, 0, fmt.Errorf("%w %q: %s", errWildcard, pattern[start:], what)
	}
	t.kind = class
	i++
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		t.negate = true
		i++
	}
	one := func() (r rune, ok bool) {
		if i < len(pattern) && pattern[i] == '\\' {
			i++
		}
		if i >= len(pattern) {
			return 0, false
		}
		r, n := utf8.DecodeRuneInString(pattern[i:])
		if r == utf8.RuneError && n == 1 {
			r = invalidByte(pattern[i])
		}
		i += n
		return r, true
	}
	for first := true; ; first = false {
		if i >= len(pattern) {
			return bad("unclosed character class; missing ']'")
		}
		if pattern[i] == ']' && !first {
			return t, i + 1, nil
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if end := strings.Index(pattern[i+2:], ":]"); end >= 0 {
				name := pattern[i+2 : i+2+end]
				if !strings.ContainsAny(name, "]") {
					ranges, ok := classNames[name]
					if !ok {
						return bad("unknown character class [:" + name + ":]")
					}
					t.ranges = append(t.ranges, ranges...)
					i += 2 + end + 2
					continue
				}
			}
		}
		lo, ok := one()
		if !ok {
			return bad("unclosed character class; missing ']'")
		}
		hi := lo
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			i++
			if hi, ok = one(); !ok {
				return bad("unclosed character class; missing ']'")
			}
		}
		t.ranges = append(t.ranges, lo, hi)
	}
}

func makeSegment(toks []token) segment {
	stars, others := 0, false
	for _, t := range toks {
		switch t.kind {
		case anyRun:
			stars++
		case oneRune:
		default:
			others = true
		}
	}
	if len(toks) == stars && stars > 1 { // git takes three for two
		return segment{kind: deep}
	}
	squeezed := toks[:0:0]
	for i, t := range toks {
		if t.kind != anyRun || i == 0 || toks[i-1].kind != anyRun {
			squeezed = append(squeezed, t)
		}
	}
	toks = squeezed
	if stars > 1 {
		stars = 0
		for _, t := range toks {
			if t.kind == anyRun {
				stars++
			}
		}
	}
	literal := func(toks []token) string {
		var b []byte
		for _, t := range toks {
			if t.r < 0 {
				b = append(b, byte(-1-t.r))
			} else {
				b = utf8.AppendRune(b, t.r)
			}
		}
		return string(b)
	}
	last := len(toks) - 1
	switch {
	case others || stars > 1:
	case stars == 0:
		return segment{kind: exact, lit: literal(toks)}
	case last == 0:
		return segment{kind: anything}
	case toks[0].kind == anyRun:
		return segment{kind: suffix, lit: literal(toks[1:])}
	case toks[last].kind == anyRun:
		return segment{kind: prefix, lit: literal(toks[:last])}
	}
	return segment{kind: wild, toks: toks}
}

// match reports whether a name, which has no slash, fits.
func (s *segment) match(name string) bool {
	switch s.kind {
	case exact:
		return name == s.lit
	case anything, deep:
		return true
	case suffix:
		return strings.HasSuffix(name, s.lit)
	case prefix:
		return strings.HasPrefix(name, s.lit)
	}
	// The usual walk with one point to go back to: the last star seen.
	t, backTok, back := 0, -1, 0
	for i := 0; ; {
		if t < len(s.toks) && s.toks[t].kind == anyRun {
			backTok, back = t, i
			t++
			continue
		}
		if i == len(name) {
			return t == len(s.toks)
		}
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 {
			r = invalidByte(name[i])
		}
		if t < len(s.toks) && s.toks[t].fits(r) {
			t++
			i += n
			continue
		}
		if backTok < 0 {
			return false
		}
		_, n = utf8.DecodeRuneInString(name[back:])
		back += n
		t, i = backTok+1, back
	}
}

func (t *token) fits(r rune) bool {
	switch t.kind {
	case oneRune:
		return r == t.r
	case anyRune:
		return true
	}
	for i := 0; i < len(t.ranges); i += 2 {
		if t.ranges[i] <= r && r <= t.ranges[i+1] {
			return !t.negate
		}
	}
	return t.negate
}

// matchPath reports whether a path with slashes fits the segments. A final
// "**" stands for at least one segment when inside is set, as in .gitignore.
func matchPath(segs []segment, path string, inside bool) bool {
	// As in match, with segments for runes and ** for the star.
	s, backSeg, back := 0, -1, 0
	for i := 0; ; {
		if s < len(segs) && segs[s].kind == deep {
			if s == len(segs)-1 {
				return !inside || i < len(path)
			}
			backSeg, back = s, i
			s++
			continue
		}
		if i >= len(path) {
			return s == len(segs)
		}
		name, next := path[i:], len(path)
		if j := strings.IndexByte(name, '/'); j >= 0 {
			name, next = name[:j], i+j+1
		}
		if s < len(segs) && segs[s].match(name) {
			s++
			i = next
			continue
		}
		if backSeg < 0 {
			return false
		}
		j := strings.IndexByte(path[back:], '/')
		if j < 0 {
			return false
		}
		back += j + 1
		s, i = backSeg+1, back
	}
}
