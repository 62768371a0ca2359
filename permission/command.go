package permission

import (
	"errors"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

// commandPattern is the specifier of a Bash rule (P-54 to P-57).
type commandPattern struct {
	text  string // as in the rule, blanks collapsed; a final ":*" is " *"
	wild  bool
	exact textPattern
	loose *textPattern // without quotes and backslashes, for rules that forbid; nil: the same
}

// textPattern is a text with or without "*", made ready.
type textPattern struct {
	begin string   // of every text that it matches
	parts []string // between the stars; one: the text has none
	stem  []string // of a text that ends with " *", the parts of what stands before it: nothing or a blank may follow
}

func newTextPattern(text string) (p textPattern) {
	p.parts = strings.Split(text, "*")
	p.begin = p.parts[0]
	if stem, ok := strings.CutSuffix(text, " *"); ok {
		p.stem = strings.Split(stem, "*")
		p.begin = p.stem[0]
	}
	return p
}

func (p *textPattern) match(text string) bool {
	return strings.HasPrefix(text, p.begin) && (globParts(p.parts, text) || p.stem != nil && globParts(p.stem, text))
}

func compileCommand(spec string) (*commandPattern, error) {
	text := shell.Collapse(spec)
	if before, ok := strings.CutSuffix(text, ":*"); ok {
		if strings.TrimSpace(before) == "" {
			return nil, errors.New("has no command before \":*\"")
		}
		text = before + " *"
	}
	if strings.Trim(text, "* ") == "" {
		return nil, errors.New("names no command; leave the parentheses out to cover every one")
	}
	c := &commandPattern{text: text, wild: strings.Contains(text, "*"), exact: newTextPattern(text)}
	if plain := quotes.Replace(text); plain != text {
		p := newTextPattern(plain)
		c.loose = &p
	}
	return c, nil
}

var quotes = strings.NewReplacer(`'`, "", `"`, "", `\`, "")

// match reports whether the rule covers a command text.
func (c *commandPattern) match(text string) bool { return c.exact.match(text) }

// matchLoose is match without regard to quotes: it is wider.
func (c *commandPattern) matchLoose(text string) bool {
	return c.exact.match(text) || c.loose != nil && c.loose.match(text)
}

// matchText is match for a text with its quotes, and matchLoose for another.
func (c *commandPattern) matchText(text string, quoted bool) bool {
	if quoted {
		return c.match(text)
	}
	return c.matchLoose(text)
}
