package permission

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

var (
	errNoCommand = errors.New("the call does not say which command it runs")
	errNested    = errors.New("the command holds too many scripts inside each other")
	errCommands  = errors.New("the call runs more than one command")
)

// verdict is what is known of a command or of a part of it.
type verdict struct {
	ok      bool
	typ     string // ReasonRule, ReasonMode or ReasonOther
	why     string // what approves it, or what stands against it
	rule    *Rule  // that approves it
	blocked string // a path outside the working directories that stands against it
	// missing are the rules that would approve what is not approved.
	missing []RuleValue
}

// refuse is a verdict against a part.
func refuse(format string, args ...any) verdict { return verdict{why: fmt.Sprintf(format, args...)} }

// approved is the verdict of an allow rule.
func approved(r *Rule) verdict {
	return verdict{ok: true, typ: ReasonRule, rule: r}
}

// reason is what approves a part, or what stands against it.
func (v verdict) reason() string {
	if v.why == "" && v.rule != nil {
		return v.rule.describe("allow")
	}
	return v.why
}

// judge says whether every part of the command is approved: by being read-only
// (P-66), by the mode (P-8) or by allow rules (P-59). only limits it to the
// first.
func (c *command) judge(tool string, only bool) verdict {
	if c.err != nil {
		return refuse("%v, so it must be looked at", c.err)
	}
	var inside string
	if c.any(func(s *command) bool {
		switch {
		case s == c:
			return false
		case s.err != nil && (s.exact || errors.Is(s.err, errNested) || errors.Is(s.err, shell.ErrTooMany)):
			inside = s.err.Error()
		case len(s.script.Ask) > 0:
			inside = strings.Join(s.script.Ask, "; ")
		}
		return inside != ""
	}) {
		return refuse("a script inside it holds %s", inside)
	}
	if !only {
		if len(c.script.Ask) > 0 {
			return refuse("it holds %s", strings.Join(c.script.Ask, "; "))
		}
	} else if len(c.script.Ask) > 0 || len(c.script.Unsure) > 0 {
		return refuse("it holds %s", strings.Join(append(slices.Clone(c.script.Ask), c.script.Unsure...), "; "))
	}
	if rule, ok := c.bare(tool); len(c.script.Parts) == 0 && len(c.script.Unsure) > 0 {
		if !ok || only {
			return refuse("it holds %s", strings.Join(c.script.Unsure, "; "))
		}
		return approved(rule)
	}
	if len(c.script.Parts) == 0 {
		return verdict{ok: true, typ: ReasonOther, why: "the command does nothing"}
	}
	out := verdict{ok: true, typ: ReasonOther, why: "the command only reads in the working directories"}
	for i := range c.script.Parts {
		v := c.judgePart(tool, i, only)
		if v.ok {
			if v.typ != ReasonOther && out.typ != ReasonRule {
				out.typ, out.why, out.rule = v.typ, v.why, v.rule
			}
			continue
		}
		if out.ok {
			out = v
			out.missing = nil
		}
		if out.blocked == "" {
			out.blocked = v.blocked
		}
		for _, m := range v.missing {
			if len(out.missing) <= maxSuggestedRule && !contains(out.missing, m) { // more are too many
				out.missing = append(out.missing, m)
			}
		}
		if v.missing == nil && len(out.missing) <= maxSuggestedRule { // no rule can approve it
			out.missing = append(out.missing, RuleValue{})
		}
	}
	if !out.ok && (contains(out.missing, RuleValue{}) || len(out.missing) > maxSuggestedRule) {
		out.missing = nil
	}
	return out
}

func (c *command) judgePart(tool string, i int, only bool) verdict {
	part, at := &c.script.Parts[i], &c.parts[i]
	v := c.judgeWords(tool, part, at, only)
	if !v.ok {
		return v
	}
	byRule := v.typ == ReasonRule
	if byRule {
		if path := c.writesProtected(part, at); path != "" { // P-108
			return refuse("it writes the protected path %s", path)
		}
	}
	if len(part.Redirects) > 0 && !byRule && !only {
		words, read := shell.Stripped(part.Words)
		if rule, ok := c.byRule(tool, part, at, words, read); ok {
			byRule, v = true, approved(rule)
		}
	}
	for _, red := range part.Redirects {
		r := c.judgeRedirect(at, red, byRule, only)
		if r.ok {
			continue
		}
		// A rule for the command covers its files in the working directories, too.
		words, read := shell.Stripped(part.Words)
		if !byRule && !only && read && len(words) > 0 && !slices.ContainsFunc(part.Redirects, func(red shell.Redirect) bool { return !c.judgeRedirect(at, red, true, only).ok }) {
			r.missing = c.exactly(tool, words)
		}
		return r
	}
	return v
}

// writesProtected is a protected path that a command in the table is known to
// write, which no rule for the command approves; "" is none.
func (c *command) writesProtected(part *shell.Part, at *place) string {
	words, _ := shell.Stripped(part.Words)
	files, ok := shell.NamedFiles(words)
	if !ok {
		return ""
	}
	for _, w := range files.Writes {
		path, literal := c.p.expand(w)
		if !literal {
			continue
		}
		all, known := at.accesses(Write, path)
		if !known {
			continue
		}
		for _, a := range all {
			if writesProtected([]Access{a}) && !c.p.grantsInSession(a) {
				return a.Written
			}
		}
	}
	return ""
}

// judgeRedirect checks the file that a redirection opens (P-73, P-74). byRule
// says that an allow rule approves the command: then a file in the working
// directories may be written too.
func (c *command) judgeRedirect(at *place, red shell.Redirect, byRule, only bool) verdict {
	w := red.Target
	switch {
	case w.Literal && w.Text == "/dev/null":
		return verdict{ok: true}
	case !w.Literal || w.Text == "":
		return refuse("the target of a redirection, %s, is known only when it runs", w.Source)
	case strings.HasPrefix(filepath.Clean(w.Text), "/dev/"):
		return refuse("a redirection opens %s", w.Text)
	case red.Write && only:
		return refuse("a redirection writes %s", w.Text)
	}
	kind := Read
	if red.Write {
		kind = Write
	}
	all, ok := at.accesses(kind, w.Text)
	if !ok {
		return refuse("the directory of a redirection's target, %s, is not known", w.Text)
	}
	for _, a := range all {
		switch {
		case kind == Read && c.p.mayRead(a):
		case kind == Write && writesProtected([]Access{a}) && !c.p.grantsInSession(a):
			return refuse("a redirection writes the protected path %s", a.Written)
		case kind == Write && (c.p.grants(a) || byRule && c.p.inScope([]Access{a}, Write)):
		default:
			v := refuse("a redirection opens %s", a.Written)
			if !c.p.inScope([]Access{a}, kind) {
				v.blocked = a.Target
			}
			return v
		}
	}
	return verdict{ok: true}
}

// judgeWords checks a simple command without its redirections.
func (c *command) judgeWords(tool string, part *shell.Part, at *place, only bool) verdict {
	unsafe := slices.IndexFunc(part.Assigns, func(a shell.Assign) bool { return !shell.SafeVariable(a.Name) })
	words, read := shell.Stripped(part.Words)
	var v verdict
	switch {
	case unsafe >= 0:
		v = refuse("the assignment to %s may change what runs", part.Assigns[unsafe].Name)
	case len(part.Words) == 0 && len(c.script.Unsure) == 0:
		return verdict{ok: true, typ: ReasonOther, why: "an assignment or a redirection"}
	case len(part.Words) == 0:
		v = refuse("it holds %s", strings.Join(c.script.Unsure, "; "))
	case shell.Fed(part.Words):
		v = refuse("nothing allows %q, whose arguments are known only when it runs", at.text)
	case read && len(c.script.Unsure) == 0:
		if v = c.harmless(words, at); v.ok {
			return v
		}
		if c.p.Mode == ModeAcceptEdits && !only && c.editsInScope(words, at) {
			return verdict{ok: true, typ: ReasonMode, why: fmt.Sprintf("permission mode %q", c.p.Mode)}
		}
	}
	if only {
		return v.or(at)
	}
	if rule, ok := c.byRule(tool, part, at, words, read && unsafe < 0); ok {
		return approved(rule)
	}
	v = v.or(at)
	if len(c.script.Unsure) > 0 && len(part.Words) > 0 {
		v.why += "; it holds " + strings.Join(c.script.Unsure, "; ")
	}
	if v.missing == nil && read && unsafe < 0 && len(c.script.Unsure) == 0 {
		v.missing = c.exactly(tool, words)
	}
	return v
}

// or is a verdict that says something in any case.
func (v verdict) or(at *place) verdict {
	if v.why == "" {
		v.why = fmt.Sprintf("nothing allows %q", at.text)
	}
	return v
}

// exactly is the rule for this very command; none where it would be wider, as
// one with a "*" is.
func (c *command) exactly(tool string, words []shell.Word) []RuleValue {
	text := shell.Text(words)
	if strings.Contains(text, "*") || strings.HasSuffix(text, ":") || len(c.script.Unsure) > 0 {
		return nil
	}
	if tool == "Monitor" {
		tool = "Bash"
	}
	return []RuleValue{{tool, text}}
}

// harmless approves read-only commands and cd inside the working directories.
func (c *command) harmless(words []shell.Word, at *place) verdict {
	if words[0].Text == "cd" && words[0].Literal {
		return c.judgeCd(words, at)
	}
	use, ok := at.readOnly(words)
	if !ok {
		return verdict{}
	}
	if use.Git && (c.moves || !slices.Equal(at.dirs, c.p.start)) { // P-67
		return refuse("git may run programs that another directory's repository names")
	}
	if use.Git && slices.ContainsFunc(at.dirs, func(dir string) bool { return c.p.foreignRepository(at.disk, dir) }) {
		return refuse("git may run programs that the settings of this repository name, which are not in a protected directory")
	}
	if use.Git && use.Content && c.p.hides(at.dirs) {
		return refuse("git may show files that a rule forbids to read")
	}
	for _, w := range use.Paths {
		path, literal := c.p.expand(w)
		if !literal {
			dir, ok := c.p.globDir(w)
			if !ok {
				return refuse("the path %s is known only when it runs", w.Source)
			}
			path = dir
		}
		all, known := at.accesses(Read, path)
		if !known {
			return refuse("it is not known where %s is", w.Source)
		}
		if v := c.readable(all, w, use); !v.ok {
			return v
		}
		more, ok := at.behind(all, w, literal, use.Follows)
		if !ok {
			return refuse("%s names too much to look at", w.Source)
		}
		if v := c.readable(more, w, use); !v.ok {
			return v
		}
	}
	return verdict{ok: true, typ: ReasonOther, why: "the command only reads"}
}

// readable checks what a word of a read-only command names.
func (c *command) readable(all []Access, w shell.Word, use *shell.Use) verdict {
	for _, a := range all {
		if use.Content && use.Recursive && !regular(a.Target) && c.p.hides([]string{a.Target, a.Written}) {
			return refuse("%s may hold files that a rule forbids to read", w.Source)
		}
		if !c.p.mayRead(a) || use.Content && c.p.guards(a) {
			v := refuse("%s lies outside the working directories or must not be read", w.Source)
			if !c.p.inScope([]Access{a}, Read) {
				v.blocked = a.Target
			}
			return v
		}
	}
	return verdict{ok: true}
}

func (c *command) judgeCd(words []shell.Word, at *place) verdict {
	to, ok := c.cdTarget(words)
	if !ok {
		return refuse("it is not known where cd goes")
	}
	all, known := at.accesses(Read, to)
	if !known {
		return refuse("it is not known where cd goes")
	}
	for _, a := range all {
		if !c.p.mayRead(a) {
			v := refuse("cd leaves the working directories: %s", a.Written)
			v.blocked = a.Target
			if a.Target == a.Written {
				v.missing = []RuleValue{{"Read", escapePath(a.Target)}} // P-77
			}
			return v
		}
	}
	return verdict{ok: true, typ: ReasonOther, why: "cd stays in the working directories"}
}

// bare finds an allow rule that covers every call of the tool.
func (c *command) bare(tool string) (*Rule, bool) {
	for i := range c.p.Allow {
		if r := &c.p.Allow[i]; r.Bare() && matchName(r.Tool, tool) {
			return r, true
		}
	}
	return nil, false
}

// byRule finds an allow rule for a part. plain says that wrappers were taken off
// and that no assignment stands in the way; otherwise only a rule with the very
// text of the command counts.
func (c *command) byRule(tool string, part *shell.Part, at *place, words []shell.Word, plain bool) (*Rule, bool) {
	if r, ok := c.bare(tool); ok {
		return r, true
	}
	// Texts that a rule may have; "" is none.
	var written, stripped, wild string
	if len(c.script.Unsure) == 0 {
		written = at.text
		for _, a := range slices.Backward(part.Assigns) {
			written = a.Source + " " + written
		}
		if plain && len(words) > 0 { // there may be assignments alone
			if stripped = at.text; !sameWords(words, part.Words) {
				stripped = shell.Text(words)
			}
			// The programs that git runs are named by the repository's settings, which
			// the rule says nothing about (P-66).
			foreign := words[0].Text == "git" && slices.ContainsFunc(at.dirs, func(dir string) bool { return c.p.foreignRepository(at.disk, dir) })
			if !foreign && !shell.ExactOnly(words) && !(shell.Fed(part.Words) && words[0].Text == "find") {
				wild = stripped
			}
		}
	}
	for i := range c.p.Allow {
		r := &c.p.Allow[i]
		switch m := r.command; {
		case m == nil:
		case m.wild:
			if wild != "" && m.match(wild) {
				return r, true
			}
		case m.text == c.text, m.text == written, m.text == stripped:
			return r, true
		}
	}
	return nil, false
}

// mayRead reports whether a command may read a path without asking: what Read
// itself could.
func (p *Policy) mayRead(a Access) bool {
	a.Kind = Read
	if anyRule(p.Deny, func(r *Rule) bool { return r.Bare() && matchName(r.Tool, "Read") }) {
		return false
	}
	return p.inScope([]Access{a}, Read) || p.grants(a)
}

// grants reports whether an allow rule about files covers an access, under both
// names of the path (P-85, P-87).
func (p *Policy) grants(a Access) bool {
	return anyRule(p.Allow, func(r *Rule) bool { return r.grants(a) })
}

// grantsInSession is the same for the rules that came from an answer (P-109).
func (p *Policy) grantsInSession(a Access) bool {
	return anyRule(p.Allow, func(r *Rule) bool { return r.Source == SourceSession && r.grants(a) })
}

func (r *Rule) grants(a Access) bool {
	switch {
	case r.Tool == "Read" && a.Kind != Read, r.Tool != "Read" && r.Tool != "Edit":
		return false
	case r.Bare():
		return r.Tool == "Edit" == (a.Kind == Write)
	}
	return r.path != nil && r.path.match(a.Target) && r.path.match(a.Written)
}
