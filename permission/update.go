package permission

// Update is a change of rules, mode or working directories. A suggestion to
// whoever approves is an update that would keep them from being asked again
// (P-114, P-122).
type Update struct {
	Type        string      `json:"type"` // addRules, addDirectories, setMode …
	Rules       []RuleValue `json:"rules,omitempty"`
	Behavior    Behavior    `json:"behavior,omitempty"`
	Mode        Mode        `json:"mode,omitempty"`
	Directories []string    `json:"directories,omitempty"`
	Destination string      `json:"destination"` // session, localSettings, projectSettings, userSettings
}

// RuleValue is a rule in two parts (P-122).
type RuleValue struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// The kinds and destinations that suggestions use.
const (
	updateAddRules   = "addRules"
	updateSetMode    = "setMode"
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
	return []Update{{Type: updateAddRules, Rules: rules, Behavior: Allow, Destination: destination}}
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
		return []Update{{Type: updateSetMode, Mode: ModeAcceptEdits, Destination: toSession}}
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
