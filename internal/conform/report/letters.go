package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Letters says which issue brings a requirement: "A" to "J", or "later".
type Letters struct {
	rules []letterRule
}

type letterRule struct {
	letter, prefix string
	from, to       int
}

var (
	letterForm = regexp.MustCompile(`^([A-J]|later)$`)
	rangeForm  = regexp.MustCompile(`^([A-Z])-([0-9]+)(?:\.\.([0-9]+))?$`)
)

// ParseLetters reads the letters file. A line is a letter and then ids or
// ranges ("L-1..22", both ends included); "#" starts a comment. Where lines
// overlap, the later line holds, so that a page can be given to one issue and
// single lines of it to others below.
func ParseLetters(text string) (*Letters, error) {
	l := &Letters{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if !letterForm.MatchString(words[0]) {
			return nil, fmt.Errorf("letters:%d: %q is neither a letter A to J nor %q", n, words[0], "later")
		}
		if len(words) == 1 {
			return nil, fmt.Errorf("letters:%d: %s names no id", n, words[0])
		}
		for _, word := range words[1:] {
			m := rangeForm.FindStringSubmatch(word)
			if m == nil {
				return nil, fmt.Errorf("letters:%d: %q is neither an id nor a range such as L-1..22", n, word)
			}
			r := letterRule{letter: words[0], prefix: m[1]}
			r.from, _ = strconv.Atoi(m[2])
			r.to = r.from
			if m[3] != "" {
				r.to, _ = strconv.Atoi(m[3])
			}
			if r.to < r.from {
				return nil, fmt.Errorf("letters:%d: range %q runs backwards", n, word)
			}
			l.rules = append(l.rules, r)
		}
	}
	return l, nil
}

// Of returns the letter of the issue that brings id, or "".
func (l *Letters) Of(id string) string {
	prefix, n := splitID(id)
	for i := len(l.rules) - 1; i >= 0; i-- {
		r := l.rules[i]
		if r.prefix == prefix && r.from <= n && n <= r.to {
			return r.letter
		}
	}
	return ""
}

// Missing returns the core requirements and cases of c that no line names.
func (l *Letters) Missing(c *Contract) []string {
	var ids []string
	for _, r := range c.Requirements {
		if (r.Class == Core || r.Class == Case) && l.Of(r.ID) == "" {
			ids = append(ids, r.ID)
		}
	}
	return ids
}
