package journal_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/session"
)

// linesOf yields lines as a store does.
func linesOf(text string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := 0
		for line := range strings.Lines(text) {
			n++
			line = strings.TrimSuffix(line, "\n")
			if line == "" {
				continue
			}
			var err error
			if bad := session.CheckLine([]byte(line)); bad != nil {
				err = &session.LineError{Line: n, Err: bad}
			}
			if !yield([]byte(line), err) {
				return
			}
		}
	}
}

// chain writes lines from a short form: "a1>u1" is an assistant line a1 whose
// parent is u1, "u1" a user line without parent; the letters are those of the
// type, "!" is a line that cannot be read, "+side", "+meta" and "+team" are flags.
func chain(short string) string {
	types := map[byte]string{'u': "user", 'a': "assistant", 'b': "system", 'x': "attachment", 'p': "progress"}
	var out strings.Builder
	for word := range strings.FieldsSeq(short) {
		if word == "!" {
			out.WriteString("{broken\n")
			continue
		}
		word, flags, _ := strings.Cut(word, "+")
		id, parent, has := strings.Cut(word, ">")
		fmt.Fprintf(&out, `{"type":%q,"uuid":%q,"parentUuid":`, types[id[0]], id)
		if has {
			fmt.Fprintf(&out, "%q", parent)
		} else {
			out.WriteString("null")
		}
		switch id[0] {
		case 'u':
			fmt.Fprintf(&out, `,"message":{"role":"user","content":%q}`, id)
		case 'a':
			fmt.Fprintf(&out, `,"message":{"id":%q,"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}]}`, id, id)
		case 'b':
			out.WriteString(`,"subtype":"compact_boundary"`)
		}
		switch flags {
		case "side":
			out.WriteString(`,"isSidechain":true`)
		case "meta":
			out.WriteString(`,"isMeta":true`)
		case "team":
			out.WriteString(`,"teamName":"t"`)
		}
		out.WriteString("}\n")
	}
	return out.String()
}

func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		ids         []string
		lines       string
		last, folds string
	}{
		"one line":                    {[]string{"K-370"}, "u1 a1>u1 u2>a1", "u2", "u1 a1 u2"},
		"nothing":                     {[]string{"K-291"}, "", "", ""},
		"metadata only":               {[]string{"K-370"}, "x1", "", ""},
		"the newest branch":           {[]string{"K-370"}, "u1 a1>u1 u2>a1 a2>u2 u3>a1", "u3", "u1 a1 u3"},
		"an old end below a new line": {[]string{"K-370"}, "u1 a1>u1 a2>u1 x1>a1", "a2", "u1 a2"},
		"types between":               {[]string{"K-375", "K-376"}, "u1 x1>u1 a1>x1 p1>a1 x2>p1", "a1", "u1 a1"},
		"aside":                       {[]string{"K-370"}, "u1 a1>u1 u8+side a8>u8+side u9+team", "a1", "u1 a1"},
		"aside only":                  {[]string{"K-370"}, "u1+meta", "u1", "u1"},
		"behind a boundary":           {[]string{"K-373"}, "u1 a1>u1 b1 u2>b1 a2>u2", "a2", "u1 a1 b1 u2 a2"},
		"an orphan root":              {[]string{"K-371"}, "u1 a1>u1 u2>lost a2>u2", "a2", "u2 a2"},
		"a parent that was torn":      {[]string{"K-371", "S-21"}, "u1 a1>u1 ! a2>torn u2>a2", "u2", "u1 a1 a2 u2"},
		"a loop":                      {[]string{"K-371", "K-466"}, "u1>a1 a1>u1 u2>a1", "u2", "u1 a1 u2"},
		"its own parent":              {[]string{"K-466"}, "u1>u1 a1>u1", "a1", "u1 a1"},
		"twice":                       {[]string{"K-466"}, "u1 a1>u1 u1 a1>u1 u2>a1", "u2", "u1 a1 u2"},
	} {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, test.ids...)
			got, err := journal.Read(linesOf(chain(test.lines)))
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, e := range got.Entries {
				ids = append(ids, e.UUID)
			}
			if folds := strings.Join(ids, " "); got.Last != test.last || folds != test.folds {
				t.Errorf("last %q, folds %q; want %q and %q", got.Last, folds, test.last, test.folds)
			}
			if want := strings.Count(test.lines, "!"); got.Skipped != want {
				t.Errorf("%d lines skipped, want %d", got.Skipped, want)
			}
		})
	}
	t.Run("a later format", func(t *testing.T) {
		_, err := journal.Read(linesOf(`{"type":"turnwright","kind":"open","open":{"format":9}}`))
		if !errors.Is(err, journal.ErrNewerFormat) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a store that fails", func(t *testing.T) {
		broken := errors.New("disk")
		_, err := journal.Read(func(yield func([]byte, error) bool) { yield(nil, broken) })
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzRead: whatever the lines are, what is folded has no id twice, and the end
// of the chain is among it.
func FuzzRead(f *testing.F) {
	for _, short := range []string{"u1 a1>u1 u2>a1", "u1 a1>u1 b1 u2>b1 a2>u2", "u1 ! a2>torn u2>a2", "u1>a1 a1>u1 u2>a1"} {
		f.Add(chain(short))
	}
	f.Add(`{"type":"turnwright","kind":"state","key":"k","value":"1","sessionId":"s","at":""}`)
	f.Add(`{"type":"custom-title","customTitle":3}` + "\n" + `{"type":"tag","tag":"t"}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := journal.Read(linesOf(text))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, e := range got.Entries {
			if e.UUID != "" && seen[e.UUID] {
				t.Errorf("%q is folded twice", e.UUID)
			}
			seen[e.UUID] = true
		}
		if got.Last != "" && !seen[got.Last] {
			t.Errorf("the end %q is not folded", got.Last)
		}
	})
}
