package permission_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
	"pgregory.net/rapid"
)

func TestParseRule(t *testing.T) {
	conform.Covers(t, "P-39", "P-40")
	for text, want := range map[string]permission.Rule{
		"Read":                    {Tool: "Read"},
		"  Read\t":                {Tool: "Read"},
		"Bash(*)":                 {Tool: "Bash"},
		"Bash(npm *)":             {Tool: "Bash", Specifier: "npm *"},
		"Bash(echo (a))":          {Tool: "Bash", Specifier: "echo (a)"},
		`Bash(echo \(a\))`:        {Tool: "Bash", Specifier: "echo (a)"},
		`Bash(a\\b\d)`:            {Tool: "Bash", Specifier: `a\b\d`},
		"Bash( x )":               {Tool: "Bash", Specifier: " x "},
		"mcp__git__*":             {Tool: "mcp__git__*"},
		"WebFetch(domain:x.test)": {Tool: "WebFetch", Specifier: "domain:x.test"},
	} {
		got, err := permission.ParseRule(text)
		if err != nil || got != want {
			t.Errorf("ParseRule(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "  ", "(x)", "Bash(", "Bash(x", "Bash(x) y", "Bash()", "Bash( )", "Ba sh", "Bash)", "Bash(x))y", "Läs"} {
		got, err := permission.ParseRule(text)
		var re *permission.RuleError
		if !errors.As(err, &re) {
			t.Errorf("ParseRule(%q) = %+v, %v; want a *RuleError", text, got, err)
		} else if re.Rule != text {
			t.Errorf("ParseRule(%q): the error names %q", text, re.Rule)
		}
	}
}

func TestRuleTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := permission.Rule{Tool: rapid.StringMatching(`[A-Za-z0-9_*-]{1,12}`).Draw(t, "tool")}
		spec := rapid.StringMatching(`[a-c()\\*, ]{0,12}`).Draw(t, "spec")
		if strings.TrimSpace(spec) != "" && spec != "*" {
			r.Specifier = spec
		}
		got, err := permission.ParseRule(r.String())
		if err != nil || got != r {
			t.Fatalf("ParseRule(%q) = %+v, %v; want %+v", r.String(), got, err, r)
		}
	})
}

func TestSplitRules(t *testing.T) {
	conform.Covers(t, "K-25", "P-42")
	for text, want := range map[string][]string{
		"":                                nil,
		" , ":                             nil,
		"Read":                            {"Read"},
		"Read,Edit Bash":                  {"Read", "Edit", "Bash"},
		"Bash(git log:*),Read":            {"Bash(git log:*)", "Read"},
		"Bash(a, b)":                      {"Bash(a, b)"},
		"Bash(echo (a, b) c) Read":        {"Bash(echo (a, b) c)", "Read"},
		`Bash(echo \(, x),Read`:           {`Bash(echo \(, x)`, "Read"},
		"Read,\n\tEdit":                   {"Read", "Edit"},
		"Bash(never closed, Read":         {"Bash(never closed, Read"},
		"mcp__a__*  ,, mcp__b__c":         {"mcp__a__*", "mcp__b__c"},
		"Edit(src/a b.txt) Read(x, y.md)": {"Edit(src/a b.txt)", "Read(x, y.md)"},
	} {
		if got := permission.SplitRules(text); !slices.Equal(got, want) {
			t.Errorf("SplitRules(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"Read", "Bash(*)", `Bash(a\)`, "Bash(a, (b) c)", "((", `\(`, "mcp__*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := permission.ParseRule(s); err == nil {
			again, err := permission.ParseRule(r.String())
			if err != nil || again != r {
				t.Errorf("ParseRule(%q) = %+v, whose text %q parses as %+v, %v", s, r, r.String(), again, err)
			}
		}
		// Splitting loses nothing but separators.
		keep := func(s string) string {
			return string(slices.DeleteFunc([]byte(s), func(c byte) bool { return strings.IndexByte(", \t\n\r", c) >= 0 }))
		}
		if got := strings.Join(permission.SplitRules(s), ""); keep(got) != keep(s) {
			t.Errorf("SplitRules(%q) lost text: %q", s, got)
		}
	})
}
