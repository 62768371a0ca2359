package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// paramPattern is the specifier "name:value" of a deny or ask rule: it covers
// calls whose input has that value (P-46).
type paramPattern struct{ name, value string }

// match reports whether the input has the value. An input that cannot be read
// counts as having it.
func (m *paramPattern) match(input json.RawMessage) bool {
	if len(input) == 0 {
		return false
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(input, &doc); err != nil {
		return true
	}
	raw, ok := doc[m.name]
	if !ok {
		return false
	}
	text := string(raw)
	switch {
	case text == "null" || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		return false
	case strings.HasPrefix(text, `"`):
		if err := json.Unmarshal(raw, &text); err != nil {
			return true
		}
	}
	return globMatch(m.value, text)
}

// primary are the inputs that specifiers of other forms are for (P-47).
var primary = map[string]string{
	"Bash": "command", "PowerShell": "command", "Monitor": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path",
	"Glob": "path", "Grep": "path", "NotebookEdit": "notebook_path", "WebFetch": "url",
}

// instead are tools whose files the rules of another tool are for (P-78).
var instead = map[string]string{"Write": "Edit", "NotebookEdit": "Edit", "MultiEdit": "Edit", "Glob": "Read", "Grep": "Read", "LSP": "Read"}

// brings says which letter of docs/roadmap.md brings a tool's specifiers.
var brings = map[string]string{"WebFetch": "J", "WebSearch": "J", "Skill": "J", "Agent": "I", "PowerShell": "later"}

// compiler makes the rules of one list ready.
type compiler struct {
	kind    string // allow, ask, deny
	anchors anchors
	inputs  map[string][]string
}

// compile sets what the rule's specifier means. A rule that never matches is
// not kept; warning says why, where it is worth a word.
func (c *compiler) compile(r *Rule) (keep bool, warning string, err error) {
	if r.Bare() {
		return true, "", nil
	}
	name, value, colon := strings.Cut(r.Specifier, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if colon && primary[r.Tool] == name && name != "" {
		return false, fmt.Sprintf("%s rule %q (%s) is ignored: %q is what rules of %s look at anyway; leave \"%s:\" out", c.kind, r, r.Source, name, r.Tool, name), nil
	}
	if colon && c.kind != "allow" && slices.Contains(c.inputs[r.Tool], name) {
		r.param = &paramPattern{name, value}
		return true, "", nil
	}
	switch r.Tool {
	case "Bash":
		r.command, err = compileCommand(r.Specifier)
		return true, "", err
	case "Read", "Edit":
		r.path, err = compilePath(r.Specifier, c.anchors, c.kind != "allow")
		return true, "", err
	}
	if other, ok := instead[r.Tool]; ok {
		if r.Tool == "Glob" && r.Source == SourceOption && c.kind == "allow" {
			return false, "", nil
		}
		return false, fmt.Sprintf("Permission %s rule (%s): %s is not matched by file permission checks — only %s(path) rules are. Use %s(%s) instead.",
			c.kind, r.Source, r, other, other, r.Specifier), nil
	}
	if letter, ok := brings[r.Tool]; ok {
		return false, "", fmt.Errorf("%w (issue %s of docs/roadmap.md brings them)", ErrScopedRule, letter)
	}
	if r.Tool == "Monitor" {
		return false, "", fmt.Errorf("%w (rules of Bash cover Monitor too)", ErrScopedRule)
	}
	return false, "", ErrScopedRule
}
