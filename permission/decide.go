package permission

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
)

// Request is one call that is to be judged. Accesses and Input are those of
// the input as hooks left it (P-37).
type Request struct {
	Tool     string          // the name the model used, or the canonical one
	ReadOnly bool            // the tool's trait; approves nothing by itself (T-189)
	Accesses []Access        // what the call is going to do, as far as the tool can say
	Input    json.RawMessage // for rules about inputs (P-46)
	Dir      string          // where a command starts, absolute; "": where the session did
	Outputs  []string        // files that the session made for the model to read, resolved; reading one needs no approval
	// Interactive marks tools that need a person whatever is allowed (P-31);
	// AskUserQuestion need not be marked.
	Interactive bool
	// HookAllows says that a hook approved the call before (P-27): that skips
	// the question, but no rule, no critical path and no edit or command of plan
	// mode (P-142). With HookInput the hook gave the input as well, which is an
	// answer for the tools that need a person, unless they are Interactive (P-32).
	HookAllows, HookInput bool
}

// Behavior is what happens to a call.
type Behavior string

// The three behaviours.
const (
	Allow Behavior = "allow"
	Deny  Behavior = "deny"
	Ask   Behavior = "ask" // to be asked about; denied where nobody can be asked (P-35)
)

// Step is a place in the order in which a call is judged (P-27). Hooks come
// before the first, the callback after the last.
type Step string

// The steps, in their order.
const (
	StepDeny     Step = "deny rules"
	StepAsk      Step = "ask rules"
	StepPerson   Step = "needs a person" // whatever is allowed: P-31, P-111
	StepMode     Step = "mode"
	StepBuiltin  Step = "needs no approval" // P-66, P-97, P-7
	StepAllow    Step = "allow rules"
	StepPrompt   Step = "prompt"
	stepInternal Step = "fault"
)

// The values of Decision.ReasonType (P-136).
const (
	ReasonRule  = "rule"
	ReasonMode  = "mode"
	ReasonOther = "other" // the tool's own nature: asks a person, needs no approval
)

// Decision is the outcome for a call and why.
type Decision struct {
	Behavior   Behavior
	Step       Step   // where the decision was made
	ReasonType string // ReasonRule, ReasonMode or ReasonOther
	Reason     string // for people and records: the rule's text and source, the mode, …
	Rule       string // the text of the rule that decided; "": no single one did
	Source     Source // of that rule
	Message    string // of a denial: the text for the model (P-138)
	// For whoever is asked (P-114): the path outside the working directories that
	// stands in the way, "" for none, and what would spare the question next time.
	BlockedPath string
	Suggestions []Update
}

// Tools with a place of their own in the order. All other tools, custom and
// MCP tools among them, need a rule, a hook or an answer (T-189).
var (
	fileReaders = []string{"Read", "Glob", "Grep", "LSP"}   // P-97
	fileEditors = []string{"Edit", "Write", "NotebookEdit"} // P-8
	shells      = []string{"Bash", "PowerShell", "Monitor"} // P-10
	askers      = []string{"AskUserQuestion"}               // P-31
	noApproval  = []string{                                 // P-7: harmless outside the session itself
		"Agent", "EnterPlanMode", "ListMcpResourcesTool", "ReadMcpResourceTool", "StructuredOutput",
		"TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite",
		"ToolSearch", "WaitForMcpServers",
	}
)

func isOne(name string, of []string) bool { return slices.Contains(of, name) }

// Decide judges a call: deny rules, ask rules, mode, allow rules, and what is
// left is to be asked about (P-27). Hooks come before it and the callback after
// it; both are the caller's.
func (p *Policy) Decide(r Request) (d Decision) {
	defer func() {
		if fault := recover(); fault != nil { // fails closed
			d = denied(r.Tool, stepInternal, ReasonOther, fmt.Sprintf("the permission check failed: %v", fault), true)
		}
	}()
	name := p.Canonical(r.Tool)
	cmd := p.command(name, r)
	if d, decided := p.byRules(name, r, cmd); decided {
		return d
	}
	if r.Interactive || isOne(name, askers) && !(r.HookAllows && r.HookInput) {
		return p.ask(r.Tool, StepPerson, ReasonOther, "the tool needs an answer of a person")
	}
	if slices.ContainsFunc(r.Accesses, func(a Access) bool {
		return (a.Kind == Read || a.Kind == Write) && !(filepath.IsAbs(a.Target) && filepath.IsAbs(a.Written))
	}) {
		return p.ask(r.Tool, StepPerson, ReasonOther, "the call names a path that is not absolute")
	}
	if cmd != nil {
		if target, found := cmd.critical(); found { // P-111
			return p.ask(r.Tool, StepPerson, ReasonOther, fmt.Sprintf("the command removes %s, which nothing but an answer approves", target))
		}
	}
	if p.Mode == ModeBypass || p.Mode == ModePlan && p.BypassAvailable { // P-14: plan mode enforces nothing then
		return p.byMode()
	}
	if r.HookAllows && p.hookMayAllow(name, r, cmd) {
		return Decision{Behavior: Allow, ReasonType: ReasonOther, Reason: "allowed by a PreToolUse hook"}
	}
	if cmd != nil {
		return p.decideCommand(name, r, cmd)
	}
	return p.decideCall(name, r)
}

// hookMayAllow reports whether an approval by a hook counts where rules and
// critical paths do not stand against it (P-32, P-142).
func (p *Policy) hookMayAllow(name string, r Request, cmd *command) bool {
	switch {
	case name == "ExitPlanMode":
		return r.HookInput
	case p.Mode == ModePlan:
		return cmd == nil && !isOne(name, fileEditors) && !isOne(name, shells)
	}
	return true
}

// readsOutputs reports whether all that the call does is to read outputs of the
// session: large results and what background commands write lie outside of the
// working directories (T-117, T-130).
func (r Request) readsOutputs() bool {
	return len(r.Accesses) > 0 && !slices.ContainsFunc(r.Accesses, func(a Access) bool {
		return a.Kind != Read || !slices.Contains(r.Outputs, a.Target)
	})
}

// byRules looks at deny and ask rules, in that order (P-33).
func (p *Policy) byRules(name string, r Request, cmd *command) (d Decision, decided bool) {
	var unsure *Rule // cannot be ruled out
	step := StepAsk
	for _, list := range []struct {
		rules []Rule
		deny  bool
	}{{p.Deny, true}, {p.Ask, false}} {
		for i := range list.rules {
			switch p.covers(&list.rules[i], name, r, cmd) {
			case yes:
				rule := list.rules[i]
				if list.deny {
					d = denied(r.Tool, StepDeny, ReasonRule, rule.describe("deny"), true).by(rule)
					if text := unreadable(rule, name); text != "" {
						d.Message = text
					}
					return d, true
				}
				return p.ask(r.Tool, StepAsk, ReasonRule, rule.describe("ask")).by(rule), true
			case maybe:
				if unsure == nil {
					if unsure = &list.rules[i]; list.deny {
						step = StepDeny
					}
				}
			}
		}
	}
	if unsure == nil {
		return d, false
	}
	why := "it may reach what the rule is about"
	if cmd != nil && cmd.err != nil {
		why = cmd.err.Error()
	} else if cmd != nil && len(cmd.script.Ask) > 0 && unsure.command != nil {
		why = "the command has " + cmd.script.Ask[0]
	}
	return p.ask(r.Tool, step, ReasonRule, fmt.Sprintf("rule %q cannot be ruled out: %s", *unsure, why)).by(*unsure), true
}

// unreadable is the text for an edit of a file that a Read deny rule covers
// (T-65, T-76); "" for every other denial.
func unreadable(rule Rule, name string) string {
	const text = "File is covered by a Read deny rule in your permission settings and cannot be "
	switch {
	case rule.Tool != "Read":
	case name == "Edit":
		return text + "edited."
	case name == "Write":
		return text + "written."
	}
	return ""
}

// covers reports whether a deny or ask rule covers a call.
func (p *Policy) covers(rule *Rule, name string, r Request, cmd *command) hold {
	holds := false
	switch {
	case rule.Bare():
		holds = matchName(rule.Tool, name)
		if !holds && cmd != nil && (rule.Tool == "Read" || rule.Tool == "Edit") {
			return cmd.mayUseFiles(rule.Tool)
		}
	case rule.param != nil:
		holds = rule.Tool == name && rule.param.match(r.Input)
	case rule.command != nil:
		if cmd != nil {
			return cmd.forbids(rule.command)
		}
	case rule.path != nil:
		if cmd != nil {
			return cmd.reaches(rule)
		}
		for _, a := range r.Accesses {
			governed := a.Kind == Write || a.Kind == Read && rule.Tool == "Read"
			if rule.Tool == "Read" && name == "NotebookEdit" { // P-86
				governed = false
			}
			switch {
			case !governed:
			case !filepath.IsAbs(a.Target) || !filepath.IsAbs(a.Written):
				return maybe
			case rule.path.covers(a): // P-87, P-88
				return yes
			}
		}
	default: // a rule that nobody compiled is read as wide as it can be
		holds = matchName(rule.Tool, name)
	}
	if holds {
		return yes
	}
	return no
}

func (p *Policy) byMode() Decision {
	return Decision{Behavior: Allow, Step: StepMode, ReasonType: ReasonMode, Reason: fmt.Sprintf("permission mode %q", p.Mode)}
}

// decideCommand judges the command of a shell by mode and allow rules.
func (p *Policy) decideCommand(name string, r Request, cmd *command) Decision {
	plan := p.Mode == ModePlan
	v := cmd.judge(name, plan)
	if v.ok {
		step := map[string]Step{ReasonRule: StepAllow, ReasonMode: StepMode, ReasonOther: StepBuiltin}[v.typ]
		return Decision{Behavior: Allow, Step: step, ReasonType: v.typ, Reason: v.reason()}.byAny(v.rule)
	}
	if plan {
		d := p.ask(r.Tool, StepMode, ReasonMode, "plan mode: shell commands that do more than read need an answer even where a rule allows them ("+v.why+")")
		d.BlockedPath = v.blocked
		return d
	}
	d := p.ask(r.Tool, StepPrompt, ReasonMode, fmt.Sprintf("permission mode %q: %s", p.Mode, v.why))
	if d.Behavior == Ask {
		d.BlockedPath, d.Suggestions = v.blocked, allowing(toLocal, v.missing...)
	}
	return d
}

// decideCall judges a call of any other tool by mode and allow rules.
func (p *Policy) decideCall(name string, r Request) Decision {
	protected := writesProtected(r.Accesses)
	edits := isOne(name, fileEditors)
	switch {
	case p.Mode == ModePlan && (edits || isOne(name, shells)):
		return p.ask(r.Tool, StepMode, ReasonMode, "plan mode: edits and shell commands need an answer even where a rule allows them")
	case p.Mode == ModeAcceptEdits && edits && !protected && p.inScope(r.Accesses, Read, Write):
		return p.byMode()
	case isOne(name, fileReaders) && (p.inScope(r.Accesses, Read) || r.readsOutputs()):
		return Decision{Behavior: Allow, Step: StepBuiltin, ReasonType: ReasonOther, Reason: "reads inside the working directories"}
	case isOne(name, noApproval):
		return Decision{Behavior: Allow, Step: StepBuiltin, ReasonType: ReasonOther, Reason: "the tool needs no approval"}
	}
	held := false // a rule covers the call, but not on a protected path
	for i := range p.Allow {
		rule := &p.Allow[i]
		if !p.permits(rule, name, r) {
			continue
		}
		if protected && rule.Source != SourceSession { // P-108, P-109
			held = true
			continue
		}
		return Decision{Behavior: Allow, Step: StepAllow, ReasonType: ReasonRule, Reason: rule.describe("allow")}.by(*rule)
	}
	if held {
		return p.ask(r.Tool, StepAllow, ReasonOther, "writes to a protected path, which no allow rule of options or settings approves")
	}
	d := p.ask(r.Tool, StepPrompt, ReasonMode, fmt.Sprintf("permission mode %q: nothing allows the call", p.Mode))
	if d.Behavior == Ask {
		d.Suggestions = p.suggest(name, r)
		for _, a := range r.Accesses {
			if (a.Kind == Read || a.Kind == Write) && !p.inScope([]Access{a}, Read, Write) {
				d.BlockedPath = a.Target
				break
			}
		}
	}
	return d
}

// permits reports whether an allow rule covers a call that runs no command.
func (p *Policy) permits(rule *Rule, name string, r Request) bool {
	if rule.Bare() {
		return matchName(rule.Tool, name)
	}
	reader, editor := isOne(name, fileReaders), isOne(name, fileEditors)
	if rule.path == nil || len(r.Accesses) == 0 || !reader && !(editor && rule.Tool == "Edit") {
		return false
	}
	for _, a := range r.Accesses {
		if a.Kind != Read && a.Kind != Write || rule.Tool == "Read" && a.Kind != Read ||
			!rule.path.match(a.Target) || !rule.path.match(a.Written) { // P-87
			return false
		}
	}
	return true
}

// ask is the end of a flow that would prompt; in dontAsk that is a denial
// (P-15, P-30, P-31).
func (p *Policy) ask(tool string, step Step, typ, reason string) Decision {
	if p.Mode == ModeDontAsk {
		return denied(tool, StepMode, ReasonMode, fmt.Sprintf("permission mode %q (%s)", p.Mode, reason), true)
	}
	return Decision{Behavior: Ask, Step: step, ReasonType: typ, Reason: reason}
}

// by notes the rule that decided.
func (d Decision) by(r Rule) Decision {
	d.Rule, d.Source = r.String(), r.Source
	return d
}

func (d Decision) byAny(r *Rule) Decision {
	if r == nil {
		return d
	}
	return d.by(*r)
}

// Unasked turns a decision to ask into the denial for a session where nobody
// can be asked (P-35, P-136); other decisions are returned as they are.
func (d Decision) Unasked(tool string) Decision {
	if d.Behavior != Ask {
		return d
	}
	no := denied(tool, d.Step, ReasonMode, "no way to ask: "+d.Reason, true)
	no.Rule, no.Source = d.Rule, d.Source
	return no
}

func denied(tool string, step Step, typ, reason string, final bool) Decision {
	return Decision{Behavior: Deny, Step: step, ReasonType: typ, Reason: reason, Message: DenyText(tool, reason, final)}
}

// DenyText returns the text of a denial for the model: it names the tool and
// the step that denied, and says when the same call will be denied again
// (P-138).
func DenyText(tool, step string, final bool) string {
	text := fmt.Sprintf("Permission to use %s was denied: %s. The call was not run.", tool, step)
	if final {
		text += " The same call will be denied again; try another way or say what is needed."
	}
	return text
}
