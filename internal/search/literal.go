package search

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// needs are literals of which every match contains at least one.
type needs struct {
	list  []string // lower case where fold is set
	fold  bool     // in any mixture of cases
	whole bool     // a match is exactly one of them
}

// maxNeeds bounds the alternatives worth searching for one by one.
const maxNeeds = 8

// need returns what every match of re must contain; ok is false when there is
// nothing.
func need(re *syntax.Regexp) (n needs, ok bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return literalNeeds(re)
	case syntax.OpCapture:
		return need(re.Sub[0])
	case syntax.OpPlus:
		n, ok = need(re.Sub[0])
		n.whole = false
		return n, ok
	case syntax.OpRepeat:
		if re.Min < 1 {
			return n, false
		}
		n, ok = need(re.Sub[0])
		n.whole = false
		return n, ok
	case syntax.OpConcat:
		return concatNeeds(re.Sub)
	case syntax.OpAlternate:
		n.whole = true
		for i, sub := range re.Sub {
			s, ok := need(sub)
			if !ok || i > 0 && s.fold != n.fold || len(n.list)+len(s.list) > maxNeeds {
				return n, false
			}
			n.list, n.fold, n.whole = append(n.list, s.list...), s.fold, n.whole && s.whole
		}
		return n, len(n.list) > 0
	}
	return n, false
}

// literalNeeds takes the longest part of a literal that can be searched for as
// bytes: all of it, or with folded case its longest run of ASCII.
func literalNeeds(re *syntax.Regexp) (n needs, ok bool) {
	for _, r := range re.Rune {
		// U+FFFD also fits bytes that are not UTF-8.
		if r == utf8.RuneError {
			return n, false
		}
	}
	if re.Flags&syntax.FoldCase == 0 {
		return needs{list: []string{string(re.Rune)}, whole: true}, len(re.Rune) > 0
	}
	best, run := "", []rune{}
	for i, r := range re.Rune {
		if r < utf8.RuneSelf {
			run = append(run, unicode.ToLower(r))
		}
		if r >= utf8.RuneSelf || i == len(re.Rune)-1 {
			if len(run) > len(best) {
				best = string(run)
			}
			run = run[:0]
		}
	}
	return needs{list: []string{best}, fold: true, whole: len(best) == len(re.Rune)}, best != ""
}

func concatNeeds(subs []*syntax.Regexp) (best needs, ok bool) {
	whole := true
	var run needs // whole literals one after the other are one
	for _, sub := range subs {
		if sub.Op == syntax.OpEmptyMatch {
			continue
		}
		n, has := need(sub)
		if !has {
			whole, run = false, needs{}
			continue
		}
		if len(n.list) == 1 && n.whole {
			if len(run.list) == 1 && run.fold == n.fold {
				n.list = []string{run.list[0] + n.list[0]}
			} else if len(run.list) == 1 {
				whole = false
			}
			run = n
		} else {
			whole, run = false, needs{}
		}
		if !ok || n.better(best) {
			best, ok = n, true
		}
	}
	best.whole = best.whole && whole
	return best, ok
}

// better says which of two needs is found sooner: the one with the longer
// shortest literal; among equals the one with fewer.
func (n needs) better(o needs) bool {
	if a, b := n.shortest(), o.shortest(); a != b {
		return a > b
	}
	return len(n.list) < len(o.list)
}

// worthwhile reports whether searching for the needs beats the automaton: not
// for one of the most common characters.
func (n needs) worthwhile() bool {
	return n.whole || n.shortest() > 1 || len(n.list) == 1 && byteRank[n.list[0][0]] < 235
}

func (n needs) shortest() int {
	short := len(n.list[0])
	for _, s := range n.list {
		short = min(short, len(s))
	}
	return short
}

// commonBytes are the bytes of source code and prose, the most frequent first.
// What is not in it is rarer than all that is.
const commonBytes = " e\tt\nairnso0lcdpum,f()1gh._\"xbv2yS=3/4:{}k-w856TECARI7PL*9DNMOF;Uq[]BzG>W&V+'j<HX#K\\!Q|`Y@$JZ%?^~"

var byteRank = func() (rank [256]uint8) {
	for i := range rank {
		if k := strings.IndexByte(commonBytes, byte(i)); k >= 0 {
			rank[i] = uint8(255 - k)
		} else if i >= 0x80 {
			rank[i] = 60
		}
	}
	return rank
}()
