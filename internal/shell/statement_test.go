package shell_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/shell"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// TestStatements: rules see every statement as it would stand alone, also the
// beginnings of a list.
func TestStatements(t *testing.T) {
	conform.Covers(t, "P-58", "P-59")
	for command, want := range map[string][]string{
		"a  1 && b   2 && c":       {"a 1 && b 2 && c", "a 1 && b 2", "a 1", "b 2", "c"},
		"a 'x  y'  | b ; c &":      {"a 'x  y' | b", "a 'x  y'", "b", "c"},
		"x \"$(a   b;  c)\"  d":    {"x \"$(a   b;  c)\" d", "a b", "c"},
		"{ a  1;  b; }   >  f":     {"{ a 1; b; } > f", "a 1", "b"},
		"  a\\  1  ||  (b  &&  c)": {`a\  1 || (b && c)`, `a\  1`, "(b && c)", "b && c", "b", "c"},
	} {
		s, err := shell.Parse(command)
		got, wanted := slices.Sorted(slices.Values(s.Statements)), slices.Sorted(slices.Values(want))
		if err != nil || !slices.Equal(got, wanted) {
			t.Errorf("%q: %q, %v; want %q", command, got, err, wanted)
		}
	}
}

// TestStatementsStandAlone: the text of a statement is what it would be alone,
// whatever quotes stand around it.
func TestStatementsStandAlone(t *testing.T) {
	conform.Covers(t, "P-58", "P-59")
	pick := func(rt *rapid.T, list ...string) string { return rapid.SampledFrom(list).Draw(rt, "piece") }
	var list func(rt *rapid.T, depth int) string
	word := func(rt *rapid.T, depth int) string {
		w := pick(rt, "a", "'x  y'", `"x  y"`, `\"`, `\'`, "b\\ ", "$(", `"`, `"q  `)
		switch {
		case depth == 0 && (w == "$(" || w[0] == '"'):
			return "c"
		case w == "$(":
			return "$(" + list(rt, depth-1) + ")"
		case w == `"` || w == `"q  `:
			return w + "$(" + list(rt, depth-1) + ")" + pick(rt, "", "  ", "\\\"", "'") + `"`
		}
		return w
	}
	list = func(rt *rapid.T, depth int) string {
		var b strings.Builder
		b.WriteString("a")
		for range rapid.IntRange(0, 5).Draw(rt, "words") {
			b.WriteString(pick(rt, " ", "  ", "\t", "; d ", "  &&  e  ", " | f\t") + word(rt, depth))
		}
		return b.String()
	}
	rapid.Check(t, func(rt *rapid.T) {
		src := list(rt, 4)
		s, err := shell.Parse(src)
		if err != nil {
			rt.Fatal(err)
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
		if err != nil {
			rt.Fatal(err)
		}
		var want []string
		syntax.Walk(file, func(n syntax.Node) bool {
			if n, ok := n.(*syntax.Stmt); ok {
				want = append(want, shell.Collapse(strings.TrimRight(src[n.Pos().Offset():n.End().Offset()], ";&\n \t")))
			}
			return true
		})
		got := slices.Clone(s.Statements)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("%q: %q, want %q", src, got, want)
		}
	})
}

// TestTooManyWords: to look for a command among very many words takes time and
// memory by the square of their number.
func TestTooManyWords(t *testing.T) {
	conform.Covers(t, "P-70")
	for _, name := range []string{"sudo", "env", "/usr/bin/xargs", "find", "sh", "timeout"} {
		if _, err := shell.Parse(name + strings.Repeat(" /a", 199)); err != nil {
			t.Errorf("%s with 200 words: %v", name, err)
		}
		if _, err := shell.Parse("true; " + name + strings.Repeat(" /a", 200)); !errors.Is(err, shell.ErrTooMany) {
			t.Errorf("%s with 201 words: %v", name, err)
		}
	}
	if _, err := shell.Parse("cat" + strings.Repeat(" a", 1000)); err != nil {
		t.Errorf("a command that runs no others: %v", err)
	}
}
