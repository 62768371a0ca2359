package permission

import (
	"fmt"
	"slices"

	"github.com/turnwright/turnwright/internal/shell"
)

// Explanation says how a decision comes about.
type Explanation struct {
	Decision
	// Parts are the commands that were found in the command of a shell, each
	// judged alone; none where it could not be read, or the call runs none.
	Parts []Part
}

// Part is one simple command of a command line.
type Part struct {
	Command  string   // as rules see it; "" for a redirection alone
	Behavior Behavior // what becomes of this part alone
	Reason   string
	Runs     []string // the commands that it may run, by name: itself, and those in its words
	Files    []Access // what it opens, as far as its words tell: redirections and known file commands
	Unknown  []string // words that are files, whose names are known only when it runs
	Inside   []Part   // commands in a text that it may hand to a shell
}

// Explain decides like Decide and says why, part by part. It is for people:
// deciding does not need it.
func (p *Policy) Explain(r Request) Explanation {
	e := Explanation{Decision: p.Decide(r)}
	if cmd := p.command(p.Canonical(r.Tool), r); cmd != nil && cmd.err == nil {
		e.Parts = cmd.explain(p.Canonical(r.Tool))
	}
	return e
}

func (c *command) explain(tool string) (parts []Part) {
	for i := range c.script.Parts {
		at := &c.parts[i]
		p := Part{Command: shell.Text(c.script.Parts[i].Words)}
		p.Behavior, p.Reason = c.explainPart(tool, i)
		for j := range at.inner {
			in := &at.inner[j]
			if name := in.words[0].Text; !slices.Contains(p.Runs, name) {
				p.Runs = append(p.Runs, name)
			}
		}
		c.filesOf(&p, i)
		for _, sub := range at.subs {
			if sub.err != nil {
				p.Inside = append(p.Inside, Part{Command: sub.text, Behavior: Ask, Reason: sub.err.Error()})
				continue
			}
			p.Inside = append(p.Inside, sub.explain(tool)...)
		}
		parts = append(parts, p)
	}
	return parts
}

func (c *command) explainPart(tool string, i int) (Behavior, string) {
	for _, list := range []struct {
		rules    []Rule
		behavior Behavior
	}{{c.p.Deny, Deny}, {c.p.Ask, Ask}} {
		for _, rule := range list.rules {
			switch {
			case rule.Bare() && matchName(rule.Tool, tool), rule.command != nil && c.partTexts(i, rule.command.matchText),
				rule.path != nil && c.partReaches(i, &rule) == yes:
				return list.behavior, rule.describe(string(list.behavior))
			case rule.path != nil && c.partReaches(i, &rule) == maybe:
				return Ask, fmt.Sprintf("rule %q cannot be ruled out", rule)
			}
		}
	}
	at := &c.parts[i]
	for j := range at.inner {
		in := &at.inner[j]
		for _, w := range shell.Removed(in.words) {
			if shell.Elsewhere(c.script.Parts[i].Words) || c.criticalTarget(at, w) {
				return Ask, fmt.Sprintf("removes %s, which nothing but an answer approves", w.Source)
			}
		}
	}
	v := c.judgePart(tool, i, c.p.Mode == ModePlan)
	if v.ok {
		return Allow, v.reason()
	}
	return Ask, v.reason()
}

// filesOf lists the files of a part.
func (c *command) filesOf(p *Part, i int) {
	part, at := c.script.Parts[i], &c.parts[i]
	add := func(kind Kind, w shell.Word) {
		path, ok := c.p.expand(w)
		glob := false
		if !ok {
			if !w.Literal && !slices.Contains(p.Unknown, w.Source) {
				p.Unknown = append(p.Unknown, w.Source)
			}
			if path, glob = c.p.globDir(w); !glob { // else what it expands to lies there
				return
			}
		}
		all, known := at.accesses(kind, path)
		if glob && known {
			more, _ := at.behind(all, w, false, false)
			for _, a := range more {
				all = append(all, Access{kind, a.Target, a.Written})
			}
		}
		if !known && !slices.Contains(p.Unknown, w.Source) {
			p.Unknown = append(p.Unknown, w.Source)
		}
		for _, a := range all {
			if !slices.Contains(p.Files, a) {
				p.Files = append(p.Files, a)
			}
		}
	}
	for _, red := range part.Redirects {
		if red.Read {
			add(Read, red.Target)
		}
		if red.Write {
			add(Write, red.Target)
		}
	}
	words, _ := shell.Stripped(part.Words)
	if use, ok := shell.ReadOnly(words); ok {
		for _, w := range use.Paths {
			add(Read, w)
		}
		return
	}
	for j := range at.inner {
		in := &at.inner[j]
		files, _ := in.namedFiles()
		for _, w := range files.Writes {
			add(Write, w)
		}
		for _, into := range files.Into {
			add(Write, into.File)
		}
		for _, w := range files.Reads {
			add(Read, w)
		}
	}
}
