package shell

import "strings"

// MaxLength is the longest command that is read, in bytes (P-70).
const MaxLength = 10_000

// Script is a command taken apart.
type Script struct {
	// Parts are the simple commands in the order of the text, nested ones
	// before the command that they are nested in (P-59, P-60).
	Parts []Part
	// Statements are the texts of all statements, lists and pipelines among
	// them, with runs of unquoted blanks collapsed.
	Statements []string
	// Ask says which constructs must always be asked about (P-72); empty: none.
	Ask []string
	// Unsure says why the parts may not be all that runs; empty: they are.
	Unsure []string
}

// Part is a simple command, or the assignments or redirections of a statement
// that has no words of its own.
type Part struct {
	Assigns   []Assign
	Words     []Word // the command word first; may be empty
	Redirects []Redirect
	Loop      bool // inside a loop: it may run more than once
	// After are the parts, by index, that have succeeded in the same shell or a
	// parent of it when this one runs: those before "&&".
	After []int
	text  string   // Text of the words; "": not made
	fed   []Nested // what it may read and run
	args  []Nested // what it may read and hand to a command as arguments
}

// Assign is an assignment to a variable.
type Assign struct {
	Name   string
	Value  Word
	Source string
}

// Word is one word of a command.
type Word struct {
	// Text is what the word expands to when Literal, quotes removed; otherwise
	// its source.
	Text    string
	Source  string // as written
	Literal bool   // expands to exactly Text
	Tilde   bool   // begins with an unquoted "~"
	// Glob says that nothing but unquoted globs, braces and a first "~" expands.
	// Flat is then the word without quotes, Prefix what stands in it before the
	// first glob or brace.
	Glob         bool
	Brace        bool // holds an unquoted brace
	Flat, Prefix string
	spliced      string // without quotes, but with expansions as they are written
}

// Redirect is a redirection to or from a file. Those between file descriptors,
// here-documents and here-strings are left out.
type Redirect struct {
	Write, Read bool
	Target      Word
}

// Name is the command word, without quotes; "" when there is none or it is
// not literal.
func (p Part) Name() string {
	if len(p.Words) == 0 || !p.Words[0].Literal {
		return ""
	}
	return p.Words[0].Text
}

// Text is Text of the words of a part.
func (p *Part) Text() string {
	if p.text != "" {
		return p.text
	}
	return Text(p.Words)
}

// Text is the part as rules see it: the command word without quotes and the
// other words as written, one blank between them (P-58, P-59). A command word
// that would be more than one word, or another one, without its quotes keeps
// them.
func Text(words []Word) string {
	if len(words) == 0 {
		return ""
	}
	first := words[0].Source
	if w := &words[0]; w.Literal && plain(w.Text) {
		first = w.Text
	}
	return spaced(first, words[1:], func(w *Word) string { return w.Source })
}

// spaced joins a first text and one of each word with blanks.
func spaced(first string, words []Word, of func(*Word) string) string {
	if len(words) == 0 {
		return first
	}
	size := len(first)
	for i := range words {
		size += 1 + len(of(&words[i]))
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(first)
	for i := range words {
		b.WriteByte(' ')
		b.WriteString(of(&words[i]))
	}
	return b.String()
}

// Unquoted is the words without their quotes. Different commands can have the
// same Unquoted, so it is for rules that forbid only.
func Unquoted(words []Word) string {
	if len(words) == 0 {
		return ""
	}
	return spaced(words[0].Text, words[1:], func(w *Word) string { return w.Text })
}

// Quoted reports whether Unquoted is another text than Text.
func Quoted(words []Word) bool {
	for i := range words {
		if words[i].Text != words[i].Source {
			return true
		}
	}
	return false
}

// plain reports whether a text stands for itself as one word.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c >= 0x80:
		case c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == ':' || c == '@' || c == ',' || c == '%' || c == '=':
		case c == '[' && s == "[":
		default:
			return false
		}
	}
	return s != ""
}

// Collapse trims s and makes each run of blanks outside quotes one blank.
func Collapse(s string) string {
	if even(s) && (s == "" || !isBlank(s[0])) {
		return trimBlanks(s)
	}
	text, _ := collapse(s)
	return trimBlanks(text)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// even reports whether blanks are collapsed in a text, in quotes or not, but for
// one at its beginning or end.
func even(s string) bool { return !strings.Contains(s, "  ") && strings.IndexByte(s, '\t') < 0 }

// mark says how long the text is that comes of what stands before a byte, and
// whether the byte is outside of quotes and without a backslash.
type mark struct {
	n    int32
	open bool
}

// collapse is Collapse without the trimming of the end.
func collapse(s string) (text string, at []mark) {
	b := make([]byte, 0, len(s))
	at = make([]mark, len(s)+1)
	var quote byte
	for i := 0; i < len(s); i++ {
		at[i] = mark{int32(len(b)), quote == 0}
		c := s[i]
		switch {
		case quote == 0 && isBlank(c):
			if len(b) > 0 && (b[len(b)-1] != ' ' || i >= 2 && s[i-1] == ' ' && s[i-2] == '\\') {
				b = append(b, ' ')
			}
			continue
		case c == '\\' && quote != '\'' && i+1 < len(s):
			b = append(b, c)
			i++
			at[i] = mark{n: int32(len(b))}
			c = s[i]
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		}
		b = append(b, c)
	}
	at[len(s)] = mark{n: int32(len(b))}
	return string(b), at
}

// trimBlanks drops the blanks at the end that no backslash quotes.
func trimBlanks(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' && (len(s) < 2 || s[len(s)-2] != '\\') {
		s = s[:len(s)-1]
	}
	return s
}
