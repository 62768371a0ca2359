package search

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Matcher is a compiled regular expression of [Grep]. It may be used by several
// goroutines.
type Matcher struct {
	multiline bool
	prog      *syntax.Prog
	classes   *classes
	needles   []needle
	whole     bool           // a needle found is a match
	oddFold   bool           // a needle has a letter with a form outside of ASCII
	re        *regexp.Regexp // for the places of matches
}

// Compile reads a pattern in ripgrep's syntax, as far as it can be had
// (docs/search.md). Without multiline a match lies within one line, and ^, $,
// \A and \z stand for the line's ends; with it a match may span lines, "."
// also fits a line end, and ^ and $ still stand for the ends of lines. Errors
// wrap [ErrPattern].
func Compile(pattern string, ignoreCase, multiline bool) (*Matcher, error) {
	text, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	flags := syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups
	if ignoreCase {
		flags |= syntax.FoldCase
	}
	if multiline {
		flags |= syntax.DotNL
	}
	re, err := syntax.Parse(text, flags)
	if err != nil {
		return nil, badPattern(pattern, "%s", diagnostic(err))
	}
	if !multiline {
		if err := oneLine(re); err != nil {
			return nil, badPattern(pattern, "%s", err)
		}
	}
	m := &Matcher{multiline: multiline}
	if m.re, err = regexp.Compile(re.String()); err != nil {
		return nil, badPattern(pattern, "%s", diagnostic(err))
	}
	if n, ok := need(re); ok && n.worthwhile() {
		m.whole = n.whole
		for _, text := range n.list {
			m.needles = append(m.needles, newNeedle(text, n.fold))
			m.oddFold = m.oddFold || n.fold && strings.ContainsAny(text, "ks")
		}
	}
	if m.prog, err = syntax.Compile(re.Simplify()); err != nil {
		return nil, badPattern(pattern, "%s", diagnostic(err))
	}
	if len(m.prog.Inst) > maxInsts {
		return nil, badPattern(pattern, "too large: it compiles to %d steps, at most %d are possible", len(m.prog.Inst), maxInsts)
	}
	m.classes = newClasses(m.prog)
	return m, nil
}

// maxInsts bounds a compiled pattern.
const maxInsts = 10_000

// diagnostic is the engine's own word on what is wrong.
func diagnostic(err error) string {
	var se *syntax.Error
	if !errors.As(err, &se) {
		return err.Error()
	}
	text := se.Code.String()
	if se.Code == syntax.ErrInvalidPerlOp || strings.HasPrefix(se.Expr, "(?<=") || strings.HasPrefix(se.Expr, "(?<!") {
		text = "look-around, backreferences and flags other than i, m, s, U are not supported"
	}
	if se.Expr != "" && len(se.Expr) < 100 {
		text += ": " + se.Expr
	}
	return text
}
