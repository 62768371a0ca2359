package hook

import (
	"regexp"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestMatcher(t *testing.T) {
	conform.Covers(t, "H-14", "H-15", "H-16", "H-17", "H-18", "H-19", "H-20", "H-21", "W-137", "B-079", "T-1")
	for _, tt := range []struct {
		event         Event
		matcher       string
		match, passes []string
	}{
		{PreToolUse, "", []string{"Bash", "x"}, nil},
		{PreToolUse, "*", []string{"Bash", "mcp__s__ping"}, nil},
		{PreToolUse, "Edit|Write", []string{"Edit", "Write"}, []string{"NotebookEdit", "edit", "Edit|Write"}},
		{PreToolUse, " Edit , Write|Read ", []string{"Edit", "Write", "Read"}, []string{" Edit "}},
		{PreToolUse, "mcp__s", []string{"mcp__s"}, []string{"mcp__s__ping"}},
		{PreToolUse, "mcp__s__.*", []string{"mcp__s__ping"}, []string{"mcp__t__ping"}},
		{PreToolUse, "Edit.*", []string{"Edit", "NotebookEdit"}, []string{"Write"}},
		{PreToolUse, "^(Edit|Write)$", []string{"Edit"}, []string{"NotebookEdit"}},
		{PreToolUse, "bash.", nil, []string{"Bash1"}},
		{PreToolUse, "|", nil, []string{"", "|"}},
		{Stop, "[", []string{""}, nil},
		{PostToolBatch, "Bash", []string{""}, nil},
		{StopFailure, "rate_limit|overloaded", []string{"rate_limit"}, []string{"rate"}},
		{StopFailure, "rate-limit", []string{"a rate-limit"}, nil}, // a regular expression there
		{FileChanged, "a b", []string{"xa bx"}, nil},
	} {
		m, err := compile(tt.event, tt.matcher)
		if err != nil {
			t.Errorf("%s %q: %v", tt.event, tt.matcher, err)
		}
		for _, s := range tt.match {
			if !m.match(s) {
				t.Errorf("%s %q does not match %q", tt.event, tt.matcher, s)
			}
		}
		for _, s := range tt.passes {
			if m.match(s) {
				t.Errorf("%s %q matches %q", tt.event, tt.matcher, s)
			}
		}
	}
	for _, bad := range []string{"(", "[a", "(?=x)", "(?<!x)y", `(a)\1`, "a**", `x\`, "(?P<n>x)", "(?i)x"} {
		if m, err := compile(PreToolUse, bad); err == nil || m.match("x") || m.match("") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestJavaScript: a regular expression means what it means to JavaScript.
func TestJavaScript(t *testing.T) {
	conform.Covers(t, "H-21")
	for js, tt := range map[string]struct{ yes, no string }{
		`^\u0041$`:    {"A", "u0041"},
		`^\x41$`:      {"A", "x41"},
		`^[^]$`:       {"\n", "ab"},
		`^.$`:         {"a", "\u2028"},
		`^a[]b|c$`:    {"c", "ab"},
		`^\A\z\Q$`:    {"AzQ", "A"},
		`^[[a]+$`:     {"[a[", "]"},
		`^\s$`:        {"\u00a0", "s"},
		`^\S$`:        {"x", "\u3000"},
		`^[\s]$`:      {"\ufeff", "s"},
		`^(?<n>a)\/$`: {"a/", "a"},
		`^[\b]$`:      {"\b", "b"},
		`\bEdit\b`:    {"x Edit", "Editor"},
		`^\cA$`:       {"\x01", "cA"},
		`^\0$`:        {"\x00", "0"},
		`^\é.$`:       {"éx", "x"},
		`^[a&&b]$`:    {"&", "ab"},
	} {
		pattern, err := fromJavaScript(js)
		if err != nil {
			t.Errorf("%s: %v", js, err)
			continue
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			t.Errorf("%s became %s: %v", js, pattern, err)
			continue
		}
		if !re.MatchString(tt.yes) || re.MatchString(tt.no) {
			t.Errorf("%s became %s: %q %v, %q %v", js, pattern, tt.yes, re.MatchString(tt.yes), tt.no, re.MatchString(tt.no))
		}
	}
}

// FuzzMatcher: no matcher does harm, and a plain name always matches itself.
func FuzzMatcher(f *testing.F) {
	for _, s := range []string{"Edit|Write", "mcp__s__.*", `\u0041[^]`, "(?<n>x)", "[]", `\`, "[a&&[b]]", "é|ü"} {
		f.Add(s, "Edit")
	}
	f.Fuzz(func(t *testing.T, matcher, subject string) {
		m, err := compile(PreToolUse, matcher)
		if err != nil && m.match(subject) {
			t.Errorf("%q matches %q although it cannot be used", matcher, subject)
		}
		if plainListForm.MatchString(subject) && subject != "" {
			if m, err := compile(PreToolUse, subject+"|x"); err != nil || !m.match("x") {
				t.Errorf("%q: %v", subject, err)
			}
		}
	})
}
