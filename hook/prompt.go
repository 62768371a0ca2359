package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Prompt is a handler that asks a model whether what is about to happen, or has
// happened, is fine (H-36). Unlike the other handlers it costs tokens.
type Prompt struct {
	Text  string // with "$ARGUMENTS" where the event goes
	Model string // a name or an alias; "": a small one
	// GoOn lets the turn go on after an answer of no at PreToolUse and
	// PostToolUse, with the reason for the model. In JSON: "continueOnBlock".
	GoOn bool
	// Agent lets the model look at files before it answers (H-38); GoOn is then
	// set.
	Agent bool
}

// prompt reads the fields of a handler that asks a model.
func (p *parser) prompt(place string, o object, agent, ok bool) (*Prompt, bool) {
	h := &Prompt{Agent: agent}
	ok = p.field(place, o, "prompt", "a string", &h.Text) && ok
	ok = p.field(place, o, "model", "a string", &h.Model) && ok
	ok = p.field(place, o, "continueOnBlock", "true or false", &h.GoOn) && ok
	h.GoOn = h.GoOn || agent
	if ok && strings.TrimSpace(h.Text) == "" {
		p.problem(place+".prompt", "is missing or empty")
		return nil, false
	}
	return h, ok
}

// Question is the prompt with an event in it: in place of every "$ARGUMENTS",
// or behind the text when there is none. "\$" stands for a dollar sign.
func (p *Prompt) Question(event json.RawMessage) string {
	const arguments = "$ARGUMENTS"
	var b strings.Builder
	found := false
	for rest := p.Text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, `\$`):
			b.WriteByte('$')
			rest = rest[2:]
		case strings.HasPrefix(rest, arguments):
			b.Write(event)
			found, rest = true, rest[len(arguments):]
		default:
			b.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	if !found {
		b.WriteString("\n\n")
		b.Write(event)
	}
	return b.String()
}

// verdict is a model's answer.
type verdict struct {
	OK         *bool  `json:"ok"`
	Reason     string `json:"reason"`
	Impossible bool   `json:"impossible"`
}

// FromPrompt reads a model's answer, a JSON object with the fields ok, reason
// and impossible; words around it are ignored. What an answer of no does depends
// on the event (H-37).
func FromPrompt(ev Event, p *Prompt, text string) (o Output, err error) {
	v, err := readVerdict(text)
	if err != nil || *v.OK {
		return Output{}, err
	}
	reason := strings.TrimSpace(v.Reason)
	if reason == "" {
		reason = noReason
	}
	switch ev {
	case Stop, SubagentStop:
		if v.Impossible && !p.Agent {
			return Output{}, nil
		}
	case PermissionRequest, PermissionDenied:
		return Output{}, nil
	case PreToolUse:
		o.Permission, o.PermissionReason = Deny, reason
		o.Stop = !p.GoOn
	case PostToolUse:
		o.Stop = !p.GoOn
	case PostToolBatch, UserPromptSubmit, UserPromptExpansion:
		o.Stop = true
	}
	switch {
	case o.Stop:
		o.StopReason = reason
	case ev != PreToolUse:
		o.Block, o.Reason = true, reason
	}
	return o, nil
}

func readVerdict(text string) (v verdict, err error) {
	for i := strings.IndexByte(text, '{'); i >= 0; {
		v = verdict{}
		if json.NewDecoder(bytes.NewReader([]byte(text[i:]))).Decode(&v) == nil && v.OK != nil {
			return v, nil
		}
		next := strings.IndexByte(text[i+1:], '{')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if strings.TrimSpace(text) == "" {
		return v, errors.New("the model gave no answer")
	}
	return v, fmt.Errorf(`the model's answer must be a JSON object with the field "ok", not %.*q`, maxReply, text)
}
