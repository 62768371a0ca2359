package permission

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Config is what a Policy is made from. Rules are texts as in options and
// settings.
type Config struct {
	Allow, Ask, Deny []string // from options and flags (SourceOption)
	// Rules are those of other sources; a deny from any of them wins over an
	// allow from any other (P-34).
	Rules []RuleSet
	Mode  Mode // "" is ModeDefault
	// Dirs are the working directories, absolute; the session's first.
	Dirs []string
	// BypassAvailable says that the session was started with an option or flag
	// that permits bypassPermissions (P-19, P-23).
	BypassAvailable bool
	// Aliases maps further old tool names to the names that replaced them; the
	// built-in ones (Task for Agent and so on, T-4) need not be given.
	Aliases map[string]string
	// Tools are the names of all tools that exist. With it, deny and ask rules
	// that name none of them give a warning (P-45); nil: no such warnings.
	Tools []string
	// Inputs are the names of the top-level inputs of tools, for deny and ask
	// rules of the form Tool(input:value) (P-46).
	Inputs map[string][]string
	// Home is the home directory, absolute, for patterns that begin with "~/"
	// and for commands; "": not known.
	Home string
}

// RuleSet is the rules of one source.
type RuleSet struct {
	Source           Source
	Dir              string // what "/path" is relative to, absolute; "": the first of Config.Dirs (P-80)
	Allow, Ask, Deny []string
	// Where says in warnings where a rule stands, given its list ("allow", "ask",
	// "deny") and its place in it; nil: Source is all that is known.
	Where func(list string, i int) string
	Dirs  []string // additional working directories, absolute
}

// Policy is the set of rules, the mode and the working directories that calls
// are judged by. It is not changed after NewPolicy: a change makes a new one
// (WithMode), so a Policy may be used from several goroutines.
type Policy struct {
	Allow, Ask, Deny []Rule
	Mode             Mode
	Dirs             []string // absolute; each as written and, where that differs, as resolved
	BypassAvailable  bool

	aliases map[string]string
	start   []string // forms of the directory that the session started in
	home    []string // forms of the home directory; none: not known
	added   []addedDir
	sources map[Source][]string // forms of what "/path" is relative to, where it is not start
	inputs  map[string][]string // Config.Inputs
}

// builtinAliases are the old names of T-4.
var builtinAliases = map[string]string{
	"Task":       "Agent",
	"BashOutput": "TaskOutput",
	"KillShell":  "TaskStop",
	"KillBash":   "TaskStop",
}

// NewPolicy checks c and makes a policy of it. It fails, with every fault at
// once, for a rule that does not parse or whose specifier cannot be used
// (*RuleError, ErrScopedRule), an unknown mode, bypassPermissions without
// BypassAvailable (P-20) and a directory that is not absolute. Rules from files
// that cannot be used are left out with a warning (P-41). Further warnings name
// rules that never match (P-44, P-47, P-78) or name no tool (P-45).
//
// Mode auto becomes default: there is no classifier (P-4).
func NewPolicy(c Config) (p *Policy, warnings []string, err error) {
	p = &Policy{BypassAvailable: c.BypassAvailable, aliases: map[string]string{}, sources: map[Source][]string{}, inputs: c.Inputs}
	for _, m := range []map[string]string{builtinAliases, c.Aliases} {
		for from, to := range m {
			p.aliases[from] = to
		}
	}

	var errs []error
	mode, err := ParseMode(string(c.Mode))
	switch {
	case err != nil:
		errs = append(errs, err)
	case mode == ModeBypass && !c.BypassAvailable:
		errs = append(errs, ErrBypassUnavailable)
	case mode == ModeAuto:
		warnings = append(warnings, "permission mode \"auto\" needs a classifier and none is available; the session starts in \"default\"")
		mode = ModeDefault
	}
	p.Mode = mode

	for i, dir := range c.Dirs {
		forms, err := formsOf(dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("working directory: %w", err))
			continue
		}
		if i == 0 {
			p.start = forms
			continue
		}
		p.added = append(p.added, addedDir{SourceOption, forms})
	}
	if c.Home != "" {
		if p.home, err = formsOf(c.Home); err != nil {
			errs = append(errs, fmt.Errorf("home directory: %w", err))
		}
	}

	sets := append([]RuleSet{{Source: SourceOption, Allow: c.Allow, Ask: c.Ask, Deny: c.Deny}}, c.Rules...)
	for _, set := range sets {
		w, err := p.add(set, c)
		warnings, errs = append(warnings, w...), append(errs, err...)
	}
	p.joinDirs()

	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	return p, warnings, nil
}

// formsOf returns a directory as written and, where that differs, as resolved.
func formsOf(dir string) ([]string, error) {
	resolved, err := Resolve(dir)
	if err != nil {
		return nil, err
	}
	forms := []string{filepath.Clean(dir)}
	if resolved != forms[0] {
		forms = append(forms, resolved)
	}
	return forms, nil
}

// add makes the rules of one source ready.
func (p *Policy) add(set RuleSet, c Config) (warnings []string, errs []error) {
	source := p.start
	if set.Dir != "" {
		var err error
		if source, err = formsOf(set.Dir); err != nil {
			return nil, []error{fmt.Errorf("directory of the rules of %s: %w", set.Source, err)}
		}
		p.sources[set.Source] = source
	}
	for _, dir := range set.Dirs {
		forms, err := formsOf(dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("working directory of %s: %w", set.Source, err))
			continue
		}
		p.added = append(p.added, addedDir{set.Source, forms})
	}
	parse := func(kind string, texts []string, to *[]Rule) {
		comp := p.compiler(kind, set.Source)
		comp.anchors.source = source
		for i, text := range texts {
			warn := func(line string) {
				if set.Where != nil {
					line = set.Where(kind, i) + ": " + line
				}
				warnings = append(warnings, line)
			}
			r, warning, err := p.rule(text, set.Source, comp)
			switch {
			case err != nil && set.Source.file():
				warn(fmt.Sprintf("%s rule of %s is skipped: %v", kind, set.Source, err))
				continue
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", kind, err))
				continue
			}
			if warning != "" {
				warn(warning)
			}
			if r == nil {
				continue
			}
			if kind != "allow" && c.Tools != nil && !strings.ContainsAny(r.Tool, "_*") && !slices.Contains(c.Tools, r.Tool) && !governs(r.Tool, c.Tools) {
				warn(fmt.Sprintf("%s rule %q names no known tool", kind, text))
			}
			*to = append(*to, *r)
		}
	}
	parse("allow", set.Allow, &p.Allow)
	parse("ask", set.Ask, &p.Ask)
	parse("deny", set.Deny, &p.Deny)
	return warnings, errs
}

// compiler is for rules of one list that come from a source.
func (p *Policy) compiler(kind string, source Source) *compiler {
	c := &compiler{kind: kind, anchors: anchors{cwd: p.start, home: p.home, source: p.start}, inputs: p.inputs}
	if forms, ok := p.sources[source]; ok {
		c.anchors.source = forms
	}
	return c
}

// governs reports whether rules of a tool apply to other tools that exist.
func governs(tool string, tools []string) bool {
	return slices.ContainsFunc(tools, func(t string) bool { return instead[t] == tool })
}

// rule parses and compiles one rule; nil without an error is a rule that never
// matches.
func (p *Policy) rule(text string, source Source, comp *compiler) (*Rule, string, error) {
	r, err := ParseRule(text)
	if err != nil {
		return nil, "", err
	}
	r.Source = source
	if to, ok := p.aliases[r.Tool]; ok {
		r.Tool = to
	}
	if strings.Contains(r.Tool, "*") {
		switch {
		case comp.kind == "allow" && !allowGlobLegal(r.Tool):
			return nil, fmt.Sprintf("allow rule %q is ignored: in allow rules \"*\" may stand only after mcp__<server>__", text), nil
		case !r.Bare():
			return nil, "", &RuleError{Rule: text, Err: fmt.Errorf("%w (the name stands for several tools)", ErrScopedRule)}
		}
	}
	keep, warning, err := comp.compile(&r)
	if err != nil {
		return nil, "", &RuleError{Rule: text, Err: err}
	}
	if !keep {
		return nil, warning, nil
	}
	return &r, warning, nil
}

// WithMode returns the policy with another mode; it applies to the calls that
// the new policy judges (P-5). bypassPermissions needs BypassAvailable (P-23);
// auto, which has no classifier, is refused.
func (p *Policy) WithMode(m Mode) (*Policy, error) {
	m, err := ParseMode(string(m))
	switch {
	case err != nil:
		return nil, err
	case m == ModeBypass && !p.BypassAvailable:
		return nil, ErrBypassUnavailable
	case m == ModeAuto:
		return nil, errors.New("permission mode \"auto\": no classifier is available")
	}
	q := *p
	q.Mode = m
	return &q, nil
}

// Removed reports whether the tool's definition is left out of requests: a
// deny rule covers every call of it (T-10).
func (p *Policy) Removed(name string) bool {
	name = p.Canonical(name)
	return slices.ContainsFunc(p.Deny, func(r Rule) bool { return r.Bare() && matchName(r.Tool, name) })
}

// Canonical returns the name that rules know the tool by.
func (p *Policy) Canonical(name string) string {
	if to, ok := p.aliases[name]; ok {
		return to
	}
	return name
}

// inScope reports whether every access of the given kinds lies, as written and
// as resolved, in the working directories, and there is at least one access.
func (p *Policy) inScope(accesses []Access, kinds ...Kind) bool {
	if len(accesses) == 0 {
		return false
	}
	for _, a := range accesses {
		if !slices.Contains(kinds, a.Kind) || !p.inDirs(a.Target) || !p.inDirs(a.Written) {
			return false
		}
	}
	return true
}

func (p *Policy) inDirs(path string) bool {
	return slices.ContainsFunc(p.Dirs, func(dir string) bool { return within(dir, path) })
}
