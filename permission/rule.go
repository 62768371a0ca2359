package permission

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Source is where a rule comes from: what messages and updates call it, and
// what a path that begins with "/" is relative to (P-80).
type Source string

// The sources of rules.
const (
	SourceOption  Source = "cliArg"          // an option or a flag
	SourceSession Source = "session"         // an answer to a prompt
	SourceUser    Source = "userSettings"    // the user's settings file
	SourceProject Source = "projectSettings" // the project's
	SourceLocal   Source = "localSettings"   // the project's, for this machine
	SourceFlag    Source = "flagSettings"    // the option Settings, --settings
	SourceManaged Source = "policySettings"  // the organization's
)

// file reports whether the rules stand in a file: one that cannot be used is
// then left out with a warning, and the rest of the file holds (P-41).
func (s Source) file() bool { return s != SourceOption && s != SourceSession && s != "" }

// Rule is a parsed permission rule: Tool or Tool(specifier) (P-39).
type Rule struct {
	Tool      string // tool name; in deny and ask rules it may hold "*" (P-43)
	Specifier string // "": the rule covers every call; "*" is read as that
	Source    Source // "": not known

	// What the specifier means. NewPolicy sets one of them; a rule that has a
	// specifier and none of them allows nothing and forbids every call.
	command *commandPattern
	path    *pathPattern
	param   *paramPattern
}

// Bare reports whether the rule covers every call of its tools.
func (r Rule) Bare() bool { return r.Specifier == "" }

var escaper = strings.NewReplacer(`\`, `\\`, `(`, `\(`, `)`, `\)`)

// String returns a text that ParseRule reads as r.
func (r Rule) String() string {
	if r.Bare() {
		return r.Tool
	}
	return r.Tool + "(" + escaper.Replace(r.Specifier) + ")"
}

// describe is what people and the model are told of a rule that decided: its
// list, its text and where it stands.
func (r Rule) describe(kind string) string {
	if r.Source == "" {
		return fmt.Sprintf("%s rule %q", kind, r)
	}
	return fmt.Sprintf("%s rule %q (%s)", kind, r, r.Source)
}

// ErrScopedRule is wrapped by the error for a rule that is well formed but
// whose tool has no specifiers, or none yet.
var ErrScopedRule = errors.New("a specifier of this tool cannot be used, and the rule must not be read wider than it is; name the tool alone or leave the rule out")

// RuleError says which rule could not be used and why.
type RuleError struct {
	Rule string // as written
	Err  error
}

func (e *RuleError) Error() string { return fmt.Sprintf("permission rule %q: %v", e.Rule, e.Err) }

// Unwrap returns the reason.
func (e *RuleError) Unwrap() error { return e.Err }

var ruleName = regexp.MustCompile(`^[A-Za-z0-9_*-]+$`)

// ParseRule parses one rule (P-40). The name is the text before the first "(";
// a rule with "(" must end with ")"; in the specifier between them \( \) and \\
// stand for the character alone. Blanks around the rule are dropped. Errors
// are *RuleError.
func ParseRule(s string) (Rule, error) {
	fail := func(format string, args ...any) (Rule, error) {
		return Rule{}, &RuleError{Rule: s, Err: fmt.Errorf(format, args...)}
	}
	t := strings.TrimSpace(s)
	name, spec, scoped := strings.Cut(t, "(")
	switch {
	case name == "":
		return fail("no tool name")
	case !ruleName.MatchString(name):
		return fail("tool name %q may hold only letters, digits, \"_\", \"-\" and \"*\"", name)
	case !scoped:
		return Rule{Tool: name}, nil
	}
	spec, closed := strings.CutSuffix(spec, ")")
	switch {
	case !closed:
		return fail("must end with \")\"")
	case strings.TrimSpace(spec) == "":
		return fail("nothing between the parentheses; write %q for every call", name)
	case spec == "*":
		return Rule{Tool: name}, nil
	}
	return Rule{Tool: name, Specifier: unescape(spec)}, nil
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`()\`, s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// SplitRules splits a list of rules at commas and blanks; a separator inside
// parentheses does not split (P-42, K-24, K-25). Escaped parentheses do not
// count. The parts are not parsed yet.
func SplitRules(s string) []string {
	var rules []string
	depth, start := 0, -1
	for i := 0; i < len(s); i++ {
		c := s[i]
		if depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			if start >= 0 {
				rules = append(rules, s[start:i])
				start = -1
			}
			continue
		}
		if start < 0 {
			start = i
		}
		switch {
		case c == '\\' && i+1 < len(s) && strings.IndexByte(`()\`, s[i+1]) >= 0:
			i++
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		}
	}
	if start >= 0 {
		rules = append(rules, s[start:])
	}
	return rules
}

// matchName reports whether the rule name pattern covers the tool name: the
// same name, a glob with "*", or an MCP server for its tools (P-43, P-53).
func matchName(pattern, name string) bool {
	if pattern == name {
		return true
	}
	if strings.Contains(pattern, "*") {
		return globMatch(pattern, name)
	}
	server, ok := strings.CutPrefix(pattern, "mcp__")
	return ok && server != "" && !strings.Contains(server, "__") && strings.HasPrefix(name, pattern+"__")
}

// globMatch matches "*" against any text, in linear time.
func globMatch(pattern, s string) bool { return globParts(strings.Split(pattern, "*"), s) }

// globParts is globMatch for what stands between the stars.
func globParts(parts []string, s string) bool {
	if len(parts) == 1 {
		return parts[0] == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return true
}

// allowGlobLegal reports whether a name with "*" may stand in an allow rule:
// only after a literal mcp__<server>__ (P-44).
func allowGlobLegal(name string) bool {
	literal, _, _ := strings.Cut(name, "*")
	server, ok := strings.CutPrefix(literal, "mcp__")
	if !ok {
		return false
	}
	i := strings.Index(server, "__")
	return i > 0
}
