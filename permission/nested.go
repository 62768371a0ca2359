package permission

import (
	"errors"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

// nest reads a script that part i of the command may hand to a shell.
func (c *command) nest(i int, script shell.Nested) {
	at := &c.parts[i]
	sub := &command{p: c.p, outer: c, part: i, depth: c.depth + 1, left: c.left, exact: script.Literal}
	if *c.left--; *c.left < 0 || sub.depth > maxDepth {
		sub.err = errNested
	} else {
		sub.script, sub.err = script.Parse()
		if sub.err != nil && !script.Sure && !errors.Is(sub.err, shell.ErrTooMany) {
			return
		}
	}
	sub.text = shell.Collapse(strings.TrimSpace(script.Text))
	sub.walk(place{dirs: at.dirs, unknown: at.unknown, seen: at.seen, disk: at.disk})
	at.subs = append(at.subs, sub)
}

// any reports whether f holds for the command or a script inside it.
func (c *command) any(f func(*command) bool) bool {
	if f(c) {
		return true
	}
	for i := range c.parts {
		for _, sub := range c.parts[i].subs {
			if sub.any(f) {
				return true
			}
		}
	}
	return false
}

// unread reports whether a part of the command could not be read (P-70), or runs
// what the text does not say (P-72): a rule that forbids a command cannot be ruled
// out then, in no mode (P-29).
func (c *command) unread() bool {
	return c.any(func(c *command) bool { return c.err != nil || len(c.script.Ask) > 0 })
}
