package instructions

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
)

// word is what a mention is where a text has nothing that Markdown knows.
var word = regexp.MustCompile(`(?:^|[ \t\r\n])@([^ \t\r\n]+)`)

// FuzzDigest holds digest to what can be said of every text.
func FuzzDigest(f *testing.F) {
	for _, seed := range []string{
		"see @a.md and `@b.md`", "```\n@a\n```\n@b", "~~~~ x\n@a\n~~~\n@b\n~~~~\n@c", "<!-- @a -->\n@b", "<!-- @a\n@b",
		"> ```\n> @a\n@b", "- ```\n  @a\n", "``a ` @b`` @c", "a `b\n\n@c` @d", `@a\ b \@c`, "<!-->\n@a", "   <!--x-->```\n@a\n", "@@a @`b` @",
		"* `a\n* @b` c", "\t<!-- a -->\n1. <!-- b -->", "# `a\n@b`",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, mentions := digest(text)
		if len(out) > len(text) || len(mentions) > maxMentions {
			t.Fatalf("%d bytes and %d mentions of %d bytes", len(out), len(mentions), len(text))
		}
		if again, _ := digest(out); again != out {
			t.Errorf("a second time it is %q, not %q", again, out)
		}
		for _, m := range mentions {
			if m == "" || !strings.Contains(strings.ReplaceAll(out, `\ `, " "), "@"+m) {
				t.Errorf("%q is not in the text", m)
			}
		}
		if !strings.Contains(text, "<!--") && out != text {
			t.Errorf("a text without comments became %q", out)
		}
		// All of it in a code block: nothing is changed and nothing mentioned.
		longest := 2
		for i := 0; i < len(text); i++ {
			if text[i] == '~' {
				longest = max(longest, run(text[i:]))
			}
		}
		mark := strings.Repeat("~", longest+1)
		block := mark + "\n" + text + "\n" + mark + "\n"
		if got, inside := digest(block); got != block || len(inside) > 0 {
			t.Errorf("in a code block: %q, mentions %q", got, inside)
		}
		// Nothing of Markdown in it: a regular expression says what is mentioned.
		if strings.ContainsAny(text, "`~\\<") {
			return
		}
		var want []string
		for rest := text; len(want) < maxMentions; {
			at := word.FindStringSubmatchIndex(rest)
			if at == nil {
				break
			}
			if at[3]-at[2] <= maxMention {
				want = append(want, rest[at[2]:at[3]])
			}
			rest = rest[at[3]:]
		}
		if !slices.Equal(mentions, want) {
			t.Errorf("mentions %q, want %q", mentions, want)
		}
	})
}

// FuzzRule reads frontmatters that nobody wrote with care.
func FuzzRule(f *testing.F) {
	for _, seed := range []string{
		"---\npaths: a/**\n---\nbody", "---\npaths:\n- a\n- 'b,c'\n---\n", "---\npaths: [a, {b,c}]\n---\n", "---\npaths: [a,\n b]\n---\n",
		"---\npaths: {a,b}{c,d}{{e,f},g}\n---\n", "---\npaths: \"\n---\n", "---\n---\n", "---\npaths: \"{,a}\"\n---\n", "---\npaths: \\{a,b}[\n---\n", "---\npaths: \"a\" # b\n---\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		globs, body := splitRule(text)
		if !strings.HasSuffix(text, body) || len(globs) > 0 && len(body) == len(text) {
			t.Errorf("the body is %q", body)
		}
		patterns := compile(globs)
		if len(patterns) > maxPatterns+len(globs) {
			t.Errorf("%d patterns", len(patterns))
		}
		r := rule{base: "/a", patterns: patterns}
		r.fits([]string{"/a/b/c.go", "/elsewhere/x"})
	})
}

// TestBraces compares what braces stand for with a table.
func TestBraces(t *testing.T) {
	conform.Covers(t, "C-61")
	ten := "{0,1,2,3,4,5,6,7,8,9}"
	for _, tt := range []struct {
		globs []string
		want  string
	}{
		{[]string{"a{b,c}d"}, "abd acd"},
		{[]string{"{a,b}{c,d}"}, "ac ad bc bd"},
		{[]string{"a{b,{c,d}e}f"}, "abf acef adef"},
		{[]string{"a{,b}"}, "a ab"},
		{[]string{"{,b}", "c["}, "b"}, // no pattern at all, and an invalid one
		{[]string{"{a}{b", "c}d", `\{e,f\}`}, `\{a\}\{b c\}d \{e,f\}`},
		{[]string{"{a,{b}"}, `\{a,\{b\}`},
		// 1000 patterns are expanded, and after them none.
		{[]string{ten + ten + ten, "x{y,z}"}, "1001: 000 001 002 … x\\{y,z\\}"},
		{[]string{ten + ten + ten + "{a,b}", "x{y,z}"}, `\{0,1,2,3,4,5,6,7,8,9\}\{0,1,2,3,4,5,6,7,8,9\}\{0,1,2,3,4,5,6,7,8,9\}\{a,b\} xy xz`},
	} {
		got := compile(tt.globs)
		text := strings.Join(got, " ")
		if n := len(got); n > 10 {
			text = "1001: " + strings.Join(got[:3], " ") + " … " + got[n-1]
			if n != 1001 {
				t.Errorf("%q: %d patterns", tt.globs, n)
			}
		}
		if text != tt.want {
			t.Errorf("%q: %s, want %s", tt.globs, text, tt.want)
		}
	}
	// What would not fit into memory is never made.
	wide := strings.Repeat("x", 8<<10)
	if got := compile([]string{"{" + strings.Repeat(wide+",", 700) + "}"}); len(got) != 1 {
		t.Errorf("%d patterns of 8 KB each", len(got))
	}
	if got := compile([]string{strings.Repeat("{a,b}", 20_000), strings.Repeat("{a,", 20_000) + strings.Repeat("}", 20_000)}); len(got) != 2 {
		t.Errorf("%d patterns", len(got))
	}
	// A literal pattern matches the file whose name has those braces.
	r := rule{base: "/p", patterns: compile([]string{ten + ten + ten + "{a,b}"})}
	if !r.fits([]string{"/p/" + ten + ten + ten + "{a,b}"}) || r.fits([]string{"/p/000a"}) {
		t.Error("a pattern beyond the bound is not literal")
	}
}

// TestDigestIsLinear gives it texts that are quadratic for a careless reader,
// and compares with the time that a plain text takes: a million times a million
// bytes would be far beyond the factor.
func TestDigestIsLinear(t *testing.T) {
	const size, factor = 1 << 20, 3000
	took := func(text string) time.Duration {
		start := time.Now()
		digest(text)
		return time.Since(start)
	}
	plain := max(took(strings.Repeat("some words that mean nothing\n", size/29)), 2*time.Millisecond)
	var lengths strings.Builder
	for n := 1; lengths.Len() < size; n++ {
		lengths.WriteString(strings.Repeat("`", n) + " ")
	}
	for name, text := range map[string]string{
		"comments that never end":     strings.Repeat("<!-- a\n", size/7),
		"comments in one line":        strings.Repeat("<!---->", size/7),
		"backticks of all lengths":    lengths.String(),
		"mentions":                    strings.Repeat("@a ", size/3),
		"list marks":                  strings.Repeat("- ", size/2),
		"quote marks":                 strings.Repeat(">", size),
		"fences":                      strings.Repeat("```\n", size/4),
		"code spans":                  strings.Repeat("` ", size/2),
		"comments, and blanks behind": strings.Repeat("<!---->", size/14) + strings.Repeat(" ", size/2),
	} {
		if d := took(text); d > factor*plain {
			t.Errorf("%s: %v, a plain text takes %v", name, d, plain)
		}
	}
}
