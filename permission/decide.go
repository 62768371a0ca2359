package permission

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Request is one call that is to be judged. Accesses and Input are those of
// the input as hooks left it (P-37).
type Request struct {
	Tool     string          // the name the model used, or the canonical one
	ReadOnly bool            // the tool's trait; approves nothing by itself (T-189)
	Accesses []Access        // what the call is going to do, as far as the tool can say
	Input    json.RawMessage // for rules about inputs (issue B); not read yet
	// Interactive marks tools that need a person whatever is allowed (P-31);
	// AskUserQuestion need not be marked.
	Interactive bool
}

// Behavior is what happens to a call.
type Behavior string

// The three behaviours.
const (
	Allow Behavior = "allow"
	Deny  Behavior = "deny"
	Ask   Behavior = "ask" // to be asked about; denied where nobody can be asked (P-35)
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
	ReasonType string // ReasonRule, ReasonMode or ReasonOther
	Reason     string // for people and records: the rule's text, the mode, …
	Message    string // of a denial: the text for the model (P-138)
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

// Decide judges a call: deny rules, ask rules, mode, allow rules, and what is
// left is to be asked about (P-27). Hooks come before it and the callback after
// it; both are the caller's.
func (p *Policy) Decide(r Request) Decision {
	name := p.Canonical(r.Tool)

	if rule, ok := p.match(p.Deny, name); ok {
		return denied(r.Tool, ReasonRule, fmt.Sprintf("deny rule %q", rule), true)
	}
	if rule, ok := p.match(p.Ask, name); ok {
		return p.ask(r.Tool, ReasonRule, fmt.Sprintf("ask rule %q", rule))
	}
	if r.Interactive || slices.Contains(askers, name) {
		return p.ask(r.Tool, ReasonOther, "the tool needs an answer of a person")
	}

	byMode := func() Decision {
		return Decision{Allow, ReasonMode, fmt.Sprintf("permission mode %q", p.Mode), ""}
	}
	protected := writesProtected(r.Accesses)
	switch p.Mode {
	case ModeBypass:
		return byMode()
	case ModePlan:
		if p.BypassAvailable { // P-14: plan mode enforces nothing then
			return byMode()
		}
		if slices.Contains(fileEditors, name) || slices.Contains(shells, name) {
			return p.ask(r.Tool, ReasonMode, "plan mode: edits and shell commands need an answer even where a rule allows them")
		}
	case ModeAcceptEdits:
		if slices.Contains(fileEditors, name) && !protected && p.inScope(r.Accesses, Read, Write) {
			return byMode()
		}
	}
	if slices.Contains(fileReaders, name) && p.inScope(r.Accesses, Read) {
		return Decision{Allow, ReasonOther, "reads inside the working directories", ""}
	}
	if slices.Contains(noApproval, name) {
		return Decision{Allow, ReasonOther, "the tool needs no approval", ""}
	}

	if rule, ok := p.match(p.Allow, name); ok {
		if protected { // P-108
			return p.ask(r.Tool, ReasonOther, "writes to a protected path, which no allow rule approves")
		}
		return Decision{Allow, ReasonRule, fmt.Sprintf("allow rule %q", rule), ""}
	}
	return p.ask(r.Tool, ReasonMode, fmt.Sprintf("permission mode %q: nothing allows the call", p.Mode))
}

// ask is the end of a flow that would prompt; in dontAsk that is a denial
// (P-15, P-30, P-31).
func (p *Policy) ask(tool, typ, reason string) Decision {
	if p.Mode == ModeDontAsk {
		return denied(tool, ReasonMode, fmt.Sprintf("permission mode %q (%s)", p.Mode, reason), true)
	}
	return Decision{Behavior: Ask, ReasonType: typ, Reason: reason}
}

// Unasked turns a decision to ask into the denial for a session where nobody
// can be asked (P-35, P-136); other decisions are returned as they are.
func (d Decision) Unasked(tool string) Decision {
	if d.Behavior != Ask {
		return d
	}
	return denied(tool, ReasonMode, "no way to ask: "+d.Reason, true)
}

func denied(tool, typ, reason string, final bool) Decision {
	return Decision{Behavior: Deny, ReasonType: typ, Reason: reason, Message: DenyText(tool, reason, final)}
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
