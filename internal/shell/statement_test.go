package shell_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/shell"
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
