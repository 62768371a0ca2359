package permission

import (
	"errors"
	"strings"
)

// Condition is one rule that says which calls something is about: the field
// "if" of a hook (H-22). It decides nothing.
type Condition struct {
	policy *Policy // its one deny rule is the condition
	wide   bool    // a pattern with more than the command's name
}

// Condition makes a rule ready. A path pattern is read as in allow rules
// (H-24).
func (p *Policy) Condition(text string) (*Condition, error) {
	r, err := ParseRule(text)
	if err != nil {
		return nil, err
	}
	kind := "deny"
	if r.Tool == "Read" || r.Tool == "Edit" {
		kind = "allow"
	}
	comp := compiler{kind: kind, anchors: anchors{cwd: p.start, home: p.home, source: p.start}}
	rule, warning, err := p.rule(text, SourceOption, &comp)
	switch {
	case err != nil:
		return nil, err
	case rule == nil:
		return nil, &RuleError{Rule: text, Err: errors.New(warning)}
	}
	own := *p
	own.Allow, own.Ask, own.Deny = nil, nil, []Rule{*rule}
	return &Condition{policy: &own, wide: strings.ContainsAny(strings.TrimSuffix(strings.TrimSuffix(r.Specifier, ":*"), " *"), " \t")}, nil
}

// Holds reports whether the call is one that the rule is about, or may be: a
// command that cannot be read is, and so is one that holds "$(…)", a backtick
// or a variable where the pattern has more than the command's name (H-23).
func (c *Condition) Holds(r Request) bool {
	name := c.policy.Canonical(r.Tool)
	cmd := c.policy.command(name, r)
	rule := &c.policy.Deny[0]
	if c.policy.covers(rule, name, r, cmd) != no {
		return true
	}
	return c.wide && cmd != nil && matchName(rule.Tool, name) && expands(cmd.text)
}

// expands reports whether a shell puts something else in for a part of the
// command.
func expands(command string) bool {
	for i := 0; i < len(command); i++ {
		switch {
		case command[i] == '`':
			return true
		case command[i] == '$' && i+1 < len(command):
			c := command[i+1]
			if c == '(' || c == '{' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' {
				return true
			}
		}
	}
	return false
}
