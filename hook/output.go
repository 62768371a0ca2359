package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/turnwright/turnwright/permission"
)

// Output is what a hook answers (H-47). The zero value decides nothing; fields
// that an event does not honour have no effect there.
type Output struct {
	// Stop ends the user turn after the hook, whatever else it says (H-48);
	// StopReason is for the user. In JSON: "continue": false.
	Stop       bool
	StopReason string
	// SystemMessage is for the user (H-50).
	SystemMessage string
	// Context is told to the model as a system reminder (H-52). In JSON:
	// "additionalContext".
	Context string
	// Block stops what is about to happen, or adds Reason to what has happened,
	// as the event has it (section 6 of the contract). In JSON: "decision":
	// "block". At PreToolUse use Permission.
	Block  bool
	Reason string

	// Permission decides on a call at PreToolUse. PermissionReason is told to
	// the model with a denial, and to the user with a question (H-105).
	Permission       Permission
	PermissionReason string
	// UpdatedInput replaces the whole input of a call at PreToolUse, an object
	// (H-106).
	UpdatedInput json.RawMessage
	// UpdatedOutput replaces what the model sees of a result at PostToolUse
	// (H-111). In JSON: "updatedToolOutput".
	UpdatedOutput json.RawMessage
	// Answer decides on a call at PermissionRequest (H-74).
	Answer *Answer

	// Title names the session (SessionStart, UserPromptSubmit). In JSON:
	// "sessionTitle".
	Title string
	// InitialMessage is a first prompt (SessionStart, H-122). In JSON:
	// "initialUserMessage".
	InitialMessage string
	// HidePrompt leaves the prompt out of the text that tells the user of a
	// blocked one (UserPromptSubmit). In JSON: "suppressOriginalPrompt".
	HidePrompt   bool
	WatchPaths   []string        // files that are watched from now on (H-128)
	ReloadSkills bool            // SessionStart
	Retry        bool            // PermissionDenied
	Action       string          // Elicitation, ElicitationResult: accept, decline, cancel
	Content      json.RawMessage // with Action
	WorktreePath string          // WorktreeCreate
	Display      *string         // MessageDisplay: shown in place of the text. In JSON: "displayContent"
	// TerminalSequence is written by interactive sessions only (H-55).
	TerminalSequence string

	// Async lets the run go on at once; nothing that the hook says later has an
	// effect (H-71).
	Async        bool
	AsyncTimeout time.Duration
}

// Permission is a decision on a call.
type Permission string

// The decisions. Of several, deny wins over defer, that over ask, and that over
// allow (H-58).
const (
	Allow Permission = "allow"
	Deny  Permission = "deny"
	Ask   Permission = "ask"   // asks whoever approves calls
	Defer Permission = "defer" // ends the run with the call left open (H-108)
)

// Answer answers for whoever would be asked about a call (H-74).
type Answer struct {
	Allow        bool
	UpdatedInput json.RawMessage     // allow: replaces the input; nil: as it was
	Updates      []permission.Update // allow: changes of rules and mode
	Message      string              // deny: told to the model
	Interrupt    bool                // deny: also ends the run
}

// OutputError says which field of a hook's answer cannot be used.
type OutputError struct {
	Field string // "hookSpecificOutput.permissionDecision"; "": the answer as a whole
	Want  string // what it must be
	Got   string // what it is, shortened
}

func (e *OutputError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("the hook's answer must be %s, not %s", e.Want, e.Got)
	}
	return fmt.Sprintf("the field %q of the hook's answer must be %s, not %s", e.Field, e.Want, e.Got)
}

// ParseOutput reads the JSON form of an answer, an object. Unknown fields are
// ignored, one with a value that it cannot have is an *OutputError (H-46), and
// then nothing of the answer counts. Null stands for a missing field, except
// for an input that replaces another.
func ParseOutput(ev Event, raw []byte) (Output, error) {
	r := reader{}
	o := r.output(ev, raw)
	if r.err != nil {
		return Output{}, r.err
	}
	return o, nil
}

// ParseAsync reads what a command said that nobody waited for: a field that
// cannot be used is left out (H-72), and so are decisions (H-68).
func ParseAsync(ev Event, raw []byte) Output {
	r := reader{}
	o := r.output(ev, raw)
	return Output{SystemMessage: o.SystemMessage, Context: o.Context}
}

// reader picks fields out of an answer and keeps the first fault.
type reader struct{ err error }

type object map[string]json.RawMessage

func (r *reader) fault(field, want string, got json.RawMessage) {
	if r.err == nil {
		text := string(bytes.TrimSpace(got))
		if len(text) > 80 {
			text = text[:80] + "…"
		}
		if text == "" {
			text = "nothing"
		}
		r.err = &OutputError{Field: field, Want: want, Got: text}
	}
}

// object reads an object; nil when there is none.
func (r *reader) object(field string, raw json.RawMessage) object {
	var o object
	if isNull(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		r.fault(field, "an object", raw)
		return nil
	}
	return o
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}

func (r *reader) text(at string, o object, key string) string {
	var s string
	if raw := o[key]; !isNull(raw) && json.Unmarshal(raw, &s) != nil {
		r.fault(at+key, "a string", raw)
	}
	return s
}

func (r *reader) flag(at string, o object, key string, missing bool) bool {
	v := missing
	if raw := o[key]; !isNull(raw) && json.Unmarshal(raw, &v) != nil {
		r.fault(at+key, "true or false", raw)
		return missing
	}
	return v
}

// oneOf reads a string that must be one of words; "" when it is missing.
func (r *reader) oneOf(at string, o object, key string, words ...string) string {
	s := r.text(at, o, key)
	if s != "" && !slices.Contains(words, s) {
		r.fault(at+key, "one of "+fmt.Sprintf("%q", words), o[key])
		return ""
	}
	return s
}

// input reads the new input of a call. There is nothing that stands for none:
// the original must not run because a hook got its rewrite wrong (B-070).
func (r *reader) input(at string, o object, key string) json.RawMessage {
	raw, ok := o[key]
	if !ok {
		return nil
	}
	if r.object(at+key, raw) == nil {
		r.fault(at+key, "an object", raw)
		return nil
	}
	return raw
}

const inSpecific = "hookSpecificOutput."

func (r *reader) output(ev Event, raw []byte) (o Output) {
	top := r.object("", raw)
	if top == nil {
		r.fault("", "a JSON object", raw)
		return o
	}
	o.Stop = !r.flag("", top, "continue", true)
	o.StopReason = r.text("", top, "stopReason")
	o.SystemMessage = r.text("", top, "systemMessage")
	r.flag("", top, "suppressOutput", false)
	o.TerminalSequence = r.text("", top, "terminalSequence")
	o.Reason = r.text("", top, "reason")
	decision := r.oneOf("", top, "decision", "block", "approve")
	o.Block = decision == "block"
	o.Async = r.flag("", top, "async", false)
	var ms float64
	if raw := top["asyncTimeout"]; !isNull(raw) && json.Unmarshal(raw, &ms) != nil || ms < 0 || ms > float64(math.MaxInt64/int64(time.Millisecond)) {
		r.fault("asyncTimeout", "a number of milliseconds", raw)
		ms = 0
	}
	o.AsyncTimeout = time.Duration(ms * float64(time.Millisecond))
	if ev == PreToolUse && decision != "" { // H-56
		o.Permission, o.Block = Allow, false
		if decision == "block" {
			o.Permission = Deny
		}
		o.PermissionReason, o.Reason = o.Reason, ""
	}
	r.specific(ev, &o, r.object("hookSpecificOutput", top["hookSpecificOutput"]))
	return o
}

// specific reads the fields of hookSpecificOutput that the event has.
func (r *reader) specific(ev Event, o *Output, s object) {
	const at = inSpecific
	if s == nil {
		return
	}
	if r.text(at, s, "hookEventName") != string(ev) {
		r.fault(at+"hookEventName", fmt.Sprintf("%q", ev), s["hookEventName"])
	}
	o.Context = r.text(at, s, "additionalContext")
	switch ev {
	case PreToolUse:
		if p := r.oneOf(at, s, "permissionDecision", "allow", "deny", "ask", "defer"); p != "" {
			o.Permission, o.PermissionReason = Permission(p), ""
		}
		if reason := r.text(at, s, "permissionDecisionReason"); reason != "" {
			o.PermissionReason = reason
		}
		o.UpdatedInput = r.input(at, s, "updatedInput")
	case PermissionRequest:
		o.Answer = r.answer(s["decision"])
	case PermissionDenied:
		o.Retry = r.flag(at, s, "retry", false)
	case PostToolUse:
		o.UpdatedOutput = s["updatedToolOutput"]
		if o.UpdatedOutput == nil {
			o.UpdatedOutput = s["updatedMCPToolOutput"]
		}
	case UserPromptSubmit:
		o.Title = r.text(at, s, "sessionTitle")
		o.HidePrompt = r.flag(at, s, "suppressOriginalPrompt", false)
	case SessionStart:
		o.Title = r.text(at, s, "sessionTitle")
		o.InitialMessage = r.text(at, s, "initialUserMessage")
		o.ReloadSkills = r.flag(at, s, "reloadSkills", false)
		o.WatchPaths = r.texts(at, s, "watchPaths")
	case CwdChanged, FileChanged:
		o.WatchPaths = r.texts(at, s, "watchPaths")
	case Elicitation, ElicitationResult:
		o.Action = r.oneOf(at, s, "action", "accept", "decline", "cancel")
		o.Content = s["content"]
	case WorktreeCreate:
		o.WorktreePath = r.text(at, s, "worktreePath")
	case MessageDisplay:
		if raw := s["displayContent"]; !isNull(raw) {
			o.Display = new(r.text(at, s, "displayContent"))
		}
	}
}

func (r *reader) texts(at string, o object, key string) (list []string) {
	if raw := o[key]; !isNull(raw) && json.Unmarshal(raw, &list) != nil {
		r.fault(at+key, "a list of strings", raw)
		return nil
	}
	return list
}

// answer reads the decision of PermissionRequest. Another shape decides nothing
// (W-165).
func (r *reader) answer(raw json.RawMessage) *Answer {
	var o object
	if isNull(raw) || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	own := reader{} // its faults make the shape another one
	const at = inSpecific + "decision."
	a := &Answer{}
	switch own.text(at, o, "behavior") {
	case "allow":
		a.Allow = true
		a.UpdatedInput = own.input(at, o, "updatedInput")
		if u := o["updatedPermissions"]; !isNull(u) && json.Unmarshal(u, &a.Updates) != nil {
			return nil
		}
	case "deny":
		a.Message = own.text(at, o, "message")
		a.Interrupt = own.flag(at, o, "interrupt", false)
	default:
		return nil
	}
	if own.err != nil {
		return nil
	}
	return a
}

// Check returns the first fault of an answer that a Go callback gave.
func (o *Output) Check() error {
	r := reader{}
	fields := object{"updatedInput": o.UpdatedInput}
	if o.UpdatedInput != nil {
		r.input("", fields, "updatedInput")
	}
	if o.UpdatedOutput != nil && !json.Valid(o.UpdatedOutput) {
		r.fault("updatedToolOutput", "JSON", o.UpdatedOutput)
	}
	if o.Permission != "" && !slices.Contains([]Permission{Allow, Deny, Ask, Defer}, o.Permission) {
		r.fault("permissionDecision", "allow, deny, ask or defer", json.RawMessage(o.Permission))
	}
	if a := o.Answer; a != nil && a.UpdatedInput != nil {
		r.input("decision.", object{"updatedInput": a.UpdatedInput}, "updatedInput")
	}
	return r.err
}
