package permission

import (
	"errors"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

// commandPattern is the specifier of a Bash rule (P-54 to P-57).
type commandPattern struct {
	text     string // as in the rule, blanks collapsed; a final ":*" is " *"
	unquoted string // text without quotes and backslashes, for rules that forbid
	wild     bool
	boundary bool // ends with " *": nothing or a blank may follow
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
	return &commandPattern{
		text: text, wild: strings.Contains(text, "*"), boundary: strings.HasSuffix(text, " *"),
		unquoted: strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(text),
	}, nil
}

// match reports whether the rule covers a command text.
func (c *commandPattern) match(text string) bool { return c.matchAs(c.text, text) }

// matchLoose is match without regard to quotes: it is wider.
func (c *commandPattern) matchLoose(text string) bool {
	return c.matchAs(c.text, text) || c.matchAs(c.unquoted, text)
}

// matchText is match for a text with its quotes, and matchLoose for another.
func (c *commandPattern) matchText(text string, quoted bool) bool {
	if quoted {
		return c.match(text)
	}
	return c.matchLoose(text)
}

func (c *commandPattern) matchAs(pattern, text string) bool {
	if !c.wild {
		return pattern == text
	}
	if c.boundary {
		stem := strings.TrimSuffix(pattern, " *")
		return stem == text || strings.Contains(stem, "*") && globMatch(stem, text) || globMatch(stem+" *", text)
	}
	return globMatch(pattern, text)
}
