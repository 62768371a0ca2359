package permission

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Update is a change of rules, mode or working directories. A suggestion to
// whoever approves is an update that would keep them from being asked again
// (P-114, P-122).
type Update struct {
	Type        string      `json:"type"`                  // one of the constants below
	Rules       []RuleValue `json:"rules,omitempty"`       // of the updates of rules
	Behavior    Behavior    `json:"behavior,omitempty"`    // which list of rules
	Mode        Mode        `json:"mode,omitempty"`        // of UpdateSetMode
	Directories []string    `json:"directories,omitempty"` // absolute, or relative to the session's directory
	// Destination is session, localSettings, projectSettings or userSettings
	// (P-123); "" and "cliArg" are session (P-124, W-126).
	Destination string `json:"destination"`
}

// The types of updates (P-122).
const (
	UpdateAddRules          = "addRules"
	UpdateReplaceRules      = "replaceRules" // the rules become all of their behaviour at the destination (P-125)
	UpdateRemoveRules       = "removeRules"
	UpdateSetMode           = "setMode"
	UpdateAddDirectories    = "addDirectories"
	UpdateRemoveDirectories = "removeDirectories"
)

// RuleValue is a rule in two parts (P-122): the tool and what stands between
// the parentheses, "" for none.
type RuleValue struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// String is the rule as options and settings files have it.
func (v RuleValue) String() string {
	if v.RuleContent == "" {
		return v.ToolName
	}
	return v.ToolName + "(" + v.RuleContent + ")"
}

// UpdateError says which update could not be used and why.
type UpdateError struct {
	Update Update
	Err    error
}

func (e *UpdateError) Error() string {
	return fmt.Sprintf("permission update %q for %q: %v", e.Update.Type, e.Update.Destination, e.Err)
}

// Unwrap returns the reason.
func (e *UpdateError) Unwrap() error { return e.Err }

// Target is the source whose rules the update changes. An unknown destination,
// the organization's policy among them (P-140), is an error.
func (u Update) Target() (Source, error) {
	switch s := Source(u.Destination); s {
	case "", SourceOption:
		return SourceSession, nil
	case SourceSession, SourceUser, SourceProject, SourceLocal:
		return s, nil
	}
	return "", fmt.Errorf("the destination %q must be one of session, localSettings, projectSettings, userSettings", u.Destination)
}

// Apply returns the policy with an update made (P-122 to P-125). It changes
// nothing on disk: what is kept in files is the caller's. An update that cannot
// be used, in whole or in part, is an *UpdateError and changes nothing; what it
// takes away and is not there is no fault. Warnings are those of NewPolicy.
func (p *Policy) Apply(u Update) (q *Policy, warnings []string, err error) {
	defer func() {
		if err != nil {
			q, err = nil, &UpdateError{Update: u, Err: err}
		}
	}()
	source, err := u.Target()
	if err != nil {
		return nil, nil, err
	}
	switch u.Type {
	case UpdateAddRules, UpdateReplaceRules, UpdateRemoveRules:
		return p.applyRules(u, source)
	case UpdateSetMode:
		if u.Mode == "" {
			return nil, nil, errors.New("no mode is given")
		}
		q, err := p.WithMode(u.Mode)
		return q, nil, err
	case UpdateAddDirectories, UpdateRemoveDirectories:
		q, err := p.applyDirs(u, source)
		return q, nil, err
	}
	return nil, nil, fmt.Errorf("the type %q must be one of addRules, replaceRules, removeRules, setMode, addDirectories, removeDirectories", u.Type)
}

func (p *Policy) applyRules(u Update, source Source) (_ *Policy, warnings []string, err error) {
	q := *p
	var list *[]Rule
	switch u.Behavior {
	case Allow:
		list = &q.Allow
	case Ask:
		list = &q.Ask
	case Deny:
		list = &q.Deny
	default:
		return nil, nil, fmt.Errorf("the behavior %q must be one of allow, deny, ask", u.Behavior)
	}
	if len(u.Rules) == 0 && u.Type != UpdateReplaceRules {
		return nil, nil, errors.New("no rules are given")
	}
	var made []Rule
	for _, v := range u.Rules {
		r, warning, err := q.rule(v.String(), source, q.compiler(string(u.Behavior), source))
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		if r != nil {
			made = append(made, *r)
		}
	}
	same := func(r Rule) func(Rule) bool {
		return func(o Rule) bool { return o.Source == r.Source && o.Tool == r.Tool && o.Specifier == r.Specifier }
	}
	*list = slices.DeleteFunc(slices.Clone(*list), func(r Rule) bool {
		switch u.Type {
		case UpdateReplaceRules:
			return r.Source == source
		case UpdateRemoveRules:
			return slices.ContainsFunc(made, same(r))
		}
		return false
	})
	if u.Type != UpdateRemoveRules {
		for _, r := range made {
			if !slices.ContainsFunc(*list, same(r)) {
				*list = append(*list, r)
			}
		}
	}
	return &q, warnings, nil
}

// addedDir is an additional working directory.
type addedDir struct {
	source Source
	forms  []string // as written and, where that differs, as resolved
}

func (p *Policy) applyDirs(u Update, source Source) (*Policy, error) {
	if len(u.Directories) == 0 {
		return nil, errors.New("no directories are given")
	}
	q := *p
	q.added = slices.Clone(p.added)
	for _, dir := range u.Directories {
		if dir == "" {
			return nil, errors.New("a directory is empty")
		}
		if !filepath.IsAbs(dir) {
			if len(p.start) == 0 {
				return nil, fmt.Errorf("the directory %q is relative to one that is not known", dir)
			}
			dir = filepath.Join(p.start[0], dir)
		}
		forms, err := formsOf(dir)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(q.added, func(d addedDir) bool { return d.source == source && d.forms[0] == forms[0] })
		switch {
		case u.Type == UpdateRemoveDirectories && at >= 0:
			q.added = slices.Delete(q.added, at, at+1)
		case u.Type == UpdateRemoveDirectories || at >= 0:
		default:
			if err := CheckDir(dir); err != nil { // P-100
				return nil, fmt.Errorf("the directory %q %w", dir, err)
			}
			q.added = append(q.added, addedDir{source, forms})
		}
	}
	q.joinDirs()
	return &q, nil
}

// joinDirs makes Dirs of the session's directory and the added ones.
func (p *Policy) joinDirs() {
	p.Dirs = slices.Clone(p.start)
	for _, d := range p.added {
		for _, form := range d.forms {
			if !slices.Contains(p.Dirs, form) {
				p.Dirs = append(p.Dirs, form)
			}
		}
	}
}

// Added are the additional working directories, as written.
func (p *Policy) Added() (dirs []string) {
	for _, d := range p.added {
		if !slices.Contains(dirs, d.forms[0]) {
			dirs = append(dirs, d.forms[0])
		}
	}
	return dirs
}

// Where suggestions go, and how many rules one holds.
const (
	toSession        = string(SourceSession)
	toLocal          = string(SourceLocal)
	maxSuggestedRule = 5 // rules in the suggestion for one command (P-77)
)

// allowing is the suggestion to allow what the rules cover. Their contents are
// given as specifiers mean them and become what stands between parentheses.
func allowing(destination string, rules ...RuleValue) []Update {
	if len(rules) == 0 {
		return nil
	}
	for i := range rules {
		rules[i].RuleContent = escaper.Replace(rules[i].RuleContent)
	}
	return []Update{{Type: UpdateAddRules, Rules: rules, Behavior: Allow, Destination: destination}}
}

// suggest returns what would spare the prompt for a call that is no command.
// Approvals of files last for the session only (P-128).
func (p *Policy) suggest(name string, r Request) []Update {
	reads, writes := true, false
	for _, a := range r.Accesses {
		reads = reads && a.Kind == Read
		writes = writes || a.Kind == Write
	}
	isFile := isOne(name, fileReaders) || isOne(name, fileEditors)
	switch {
	case isFile && (len(r.Accesses) == 0 || writesProtected(r.Accesses)):
		return nil
	case isFile && writes && p.inScope(r.Accesses, Read, Write):
		return []Update{{Type: UpdateSetMode, Mode: ModeAcceptEdits, Destination: toSession}}
	case isFile && (reads || writes):
		tool := "Read"
		if writes {
			tool = "Edit"
		}
		var rules []RuleValue
		for _, a := range r.Accesses {
			if a.Written != a.Target { // no rule for this file matches both (P-87)
				return nil
			}
			if v := (RuleValue{tool, escapePath(a.Target)}); !contains(rules, v) {
				rules = append(rules, v)
			}
		}
		return allowing(toSession, rules...)
	case isOne(name, shells) || isOne(name, askers) || r.Interactive:
		return nil
	}
	return allowing(toLocal, RuleValue{ToolName: name})
}

func contains(rules []RuleValue, v RuleValue) bool {
	for _, r := range rules {
		if r == v {
			return true
		}
	}
	return false
}
