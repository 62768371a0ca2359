package hook

import (
	"encoding/json"
	"slices"
	"strings"
)

// Merged is what the answers of all hooks of an event come to (section 5 of the
// contract).
type Merged struct {
	// Stop ends the user turn and outranks everything else (H-48).
	Stop       bool
	StopReason string

	Permission Permission // PreToolUse; "": no decision
	Block      bool       // the other events
	Reason     string     // of a decision or a block: all that were given, in configuration order (H-61)
	// Timeout and other failures of callbacks that made the decision.
	Failure error

	Contexts      []string // of all hooks (H-59)
	UpdatedInput  json.RawMessage
	UpdatedOutput json.RawMessage
	Answer        *Answer // PermissionRequest; nil: no decision

	Title          string
	InitialMessage string
	HidePrompt     bool

	// Notices are for the user.
	Notices []Notice
}

// Notice is a text for the user.
type Notice struct {
	Text string
	// Fault says that a hook went wrong, not that it has something to say.
	Fault bool
}

// Merge brings the results of an event together. They are in the order of the
// configuration (H-61).
func Merge(ev Event, results []Result) (m Merged) {
	f := events[ev]
	for _, r := range results {
		m.notices(f, r)
		if r.Stop && !f.muted && !f.goesOn && !m.Stop {
			m.Stop, m.StopReason = true, r.StopReason
		}
		if r.Context != "" {
			m.Contexts = append(m.Contexts, r.Context)
		}
		m.Block = m.Block || r.Block
		m.HidePrompt = m.HidePrompt || r.HidePrompt
		if r.Title != "" {
			m.Title = r.Title
		}
		if r.InitialMessage != "" {
			m.InitialMessage = strings.TrimSpace(m.InitialMessage + "\n\n" + r.InitialMessage)
		}
		if a := r.Answer; a != nil && (m.Answer == nil || m.Answer.Allow && !a.Allow) {
			m.Answer = a
		}
	}
	m.decide(ev, results)
	m.fail(ev, results)
	byTime := slices.Clone(results)
	slices.SortStableFunc(byTime, func(a, b Result) int { return a.Done - b.Done })
	for _, r := range byTime { // the last to finish wins (H-60)
		if r.UpdatedInput != nil && m.Permission != Defer {
			m.UpdatedInput = r.UpdatedInput
		}
		if r.UpdatedOutput != nil {
			m.UpdatedOutput = r.UpdatedOutput
		}
	}
	return m
}

func (m *Merged) notices(f facts, r Result) {
	if r.SystemMessage != "" && !f.muted {
		var lines []string
		for line := range strings.Lines(r.SystemMessage) {
			lines = append(lines, r.Name+": "+strings.TrimRight(line, "\r\n"))
		}
		m.Notices = append(m.Notices, Notice{Text: strings.Join(lines, "\n")})
	}
	if r.Fault != nil && !f.muted {
		m.Notices = append(m.Notices, Notice{Text: r.Name + " hook error\n" + r.Fault.Error(), Fault: true})
	}
}

// strength orders the decisions on a call (H-58).
var strength = []Permission{"", Allow, Ask, Defer, Deny}

// decide combines decisions and gathers the reasons of those that won.
func (m *Merged) decide(ev Event, results []Result) {
	for _, r := range results {
		if slices.Index(strength, r.Permission) > slices.Index(strength, m.Permission) {
			m.Permission = r.Permission
		}
	}
	var reasons []string
	for _, r := range results {
		reason := ""
		switch {
		case ev == PreToolUse && r.Permission == m.Permission && r.Permission != "":
			reason = r.PermissionReason
		case ev != PreToolUse && r.Block:
			reason = r.Reason
			if reason == "" {
				reason = noReason
			}
		}
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	m.Reason = strings.Join(reasons, "\n")
}

// fail is what callbacks that failed mean for the event (H-65, H-66).
func (m *Merged) fail(ev Event, results []Result) {
	for _, r := range results {
		if r.Failure == nil {
			continue
		}
		text := r.Name + " hook: " + r.Failure.Error()
		switch ev {
		case PreToolUse:
			if m.Permission != Deny { // an explicit denial is reported instead
				m.Permission, m.Reason, m.Failure = Deny, text, r.Failure
			}
			continue
		case UserPromptSubmit, UserPromptExpansion:
			if !m.Block {
				m.Block, m.Reason, m.Failure = true, text, r.Failure
			}
			continue
		}
		if !events[ev].muted {
			m.Notices = append(m.Notices, Notice{Text: r.Name + " hook error\n" + r.Failure.Error(), Fault: true})
		}
	}
}
