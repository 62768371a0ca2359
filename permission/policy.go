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
	Allow, Ask, Deny []string
	Mode             Mode // "" is ModeDefault
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
}

// builtinAliases are the old names of T-4.
var builtinAliases = map[string]string{
	"Task":       "Agent",
	"BashOutput": "TaskOutput",
	"KillShell":  "TaskStop",
	"KillBash":   "TaskStop",
}

// NewPolicy checks c and makes a policy of it. It fails, with every fault at
// once, for a rule that does not parse (*RuleError), a rule with a specifier
// (ErrScopedRule, until issue B), an unknown mode, bypassPermissions without
// BypassAvailable (P-20) and a working directory that is not absolute.
// Warnings name rules that are ignored (P-44) or name no tool (P-45).
//
// Mode auto becomes default: there is no classifier (P-4).
func NewPolicy(c Config) (p *Policy, warnings []string, err error) {
	p = &Policy{BypassAvailable: c.BypassAvailable, aliases: map[string]string{}}
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

	for _, dir := range c.Dirs {
		resolved, err := Resolve(dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("working directory: %w", err))
			continue
		}
		for _, d := range []string{filepath.Clean(dir), resolved} {
			if !slices.Contains(p.Dirs, d) {
				p.Dirs = append(p.Dirs, d)
			}
		}
	}

	parse := func(kind string, texts []string) (rules []Rule) {
		for _, text := range texts {
			r, err := ParseRule(text)
			if err == nil && !r.Bare() {
				err = &RuleError{Rule: text, Err: ErrScopedRule}
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", kind, err))
				continue
			}
			if to, ok := p.aliases[r.Tool]; ok {
				r.Tool = to
			}
			glob := strings.Contains(r.Tool, "*")
			if kind == "allow" && glob && !allowGlobLegal(r.Tool) {
				warnings = append(warnings, fmt.Sprintf("allow rule %q is ignored: in allow rules \"*\" may stand only after mcp__<server>__", text))
				continue
			}
			if kind != "allow" && c.Tools != nil && !strings.ContainsAny(r.Tool, "_*") && !slices.Contains(c.Tools, r.Tool) {
				warnings = append(warnings, fmt.Sprintf("%s rule %q names no known tool", kind, text))
			}
			rules = append(rules, r)
		}
		return rules
	}
	p.Allow, p.Ask, p.Deny = parse("allow", c.Allow), parse("ask", c.Ask), parse("deny", c.Deny)

	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	return p, warnings, nil
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
	_, ok := p.match(p.Deny, name)
	return ok
}

// Canonical returns the name that rules know the tool by.
func (p *Policy) Canonical(name string) string {
	if to, ok := p.aliases[name]; ok {
		return to
	}
	return name
}

func (p *Policy) match(rules []Rule, name string) (Rule, bool) {
	name = p.Canonical(name)
	for _, r := range rules {
		// A rule with a specifier cannot come out of NewPolicy yet; a policy
		// put together by hand must not have it read as covering every call.
		if r.Bare() && matchName(r.Tool, name) {
			return r, true
		}
	}
	return Rule{}, false
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
