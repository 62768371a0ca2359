package search

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// ErrPattern is wrapped by what is wrong with a regular expression.
var ErrPattern = errors.New("regex parse error")

func badPattern(pattern, format string, args ...any) error {
	return fmt.Errorf("%w in %q: %s", ErrPattern, pattern, fmt.Sprintf(format, args...))
}

// The Unicode classes that ripgrep means by \w, \d and \s, in the syntax that
// stands between brackets. (Alphabetic is L, Nl and a few symbols and marks.)
const (
	wordClass  = `\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}`
	digitClass = `\p{Nd}`
	spaceClass = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
)

// notClass returns the complement of a class, again as it stands between
// brackets.
func notClass(class string) string {
	re, err := syntax.Parse("[^"+class+"]", syntax.Perl)
	if err != nil {
		panic(err) // of the constants above
	}
	var b strings.Builder
	for i := 0; i < len(re.Rune); i += 2 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, re.Rune[i], re.Rune[i+1])
	}
	return b.String()
}

var (
	notWord  = sync.OnceValue(func() string { return notClass(wordClass) })
	notSpace = sync.OnceValue(func() string { return notClass(spaceClass) })
)

// translate turns a pattern in ripgrep's syntax into one in Go's: the Unicode
// meaning of \w, \d and \s, and \u escapes. Constructs that Go would read in
// another sense are refused.
func translate(pattern string) (string, error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); {
		c := pattern[i]
		if c == '\\' {
			if i+1 == len(pattern) {
				return "", badPattern(pattern, "incomplete escape sequence: it ends in a backslash")
			}
			n, err := translateEscape(&b, pattern, i, inClass)
			if err != nil {
				return "", err
			}
			i += n
			continue
		}
		if inClass {
			switch {
			case c == ']':
				inClass = false
			case c == '[':
				if end := posixClass(pattern[i:]); end > 0 {
					b.WriteString(pattern[i : i+end])
					i += end
					continue
				}
				return "", badPattern(pattern, "a class inside a class is not supported; write \\[ for the character")
			case strings.HasPrefix(pattern[i:], "&&"), strings.HasPrefix(pattern[i:], "--"), strings.HasPrefix(pattern[i:], "~~"):
				return "", badPattern(pattern, "the class operation %s is not supported", pattern[i:i+2])
			}
		} else if c == '[' {
			inClass = true
			b.WriteByte(c)
			if i++; strings.HasPrefix(pattern[i:], "^") {
				b.WriteByte('^')
				i++
			}
			if strings.HasPrefix(pattern[i:], "]") { // an ordinary character there
				b.WriteString(`\]`)
				i++
			}
			continue
		}
		_, n := utf8.DecodeRuneInString(pattern[i:])
		b.WriteString(pattern[i : i+n])
		i += n
	}
	return b.String(), nil
}

// posixClass returns the length of the [:name:] that s begins with, or 0.
func posixClass(s string) int {
	if !strings.HasPrefix(s, "[:") {
		return 0
	}
	end := strings.Index(s, ":]")
	if end < 2 || strings.ContainsAny(s[2:end], "[]\\") {
		return 0
	}
	return end + 2
}

// translateEscape writes the escape at pattern[i] and returns its length.
func translateEscape(b *strings.Builder, pattern string, i int, inClass bool) (int, error) {
	set := func(class string) {
		if inClass {
			b.WriteString(class)
		} else {
			b.WriteString("[" + class + "]")
		}
	}
	switch c := pattern[i+1]; c {
	case 'w':
		set(wordClass)
	case 'd':
		set(digitClass)
	case 's':
		set(spaceClass)
	case 'W':
		set(notWord())
	case 'S':
		set(notSpace())
	case 'D':
		set(`\P{Nd}`)
	case '<', '>':
		return 0, badPattern(pattern, "\\%c is not supported; use \\b for a word boundary", c)
	case 'Q': // literal up to \E
		n := len(pattern) - i
		if end := strings.Index(pattern[i:], `\E`); end >= 0 {
			n = end + 2
		}
		b.WriteString(pattern[i : i+n])
		return n, nil
	case 'u', 'U':
		digits, n := "", 0
		if strings.HasPrefix(pattern[i+2:], "{") {
			if end := strings.IndexByte(pattern[i:], '}'); end > 0 {
				digits, n = pattern[i+3:i+end], end+1
			}
		} else if size := map[byte]int{'u': 4, 'U': 8}[c]; i+2+size <= len(pattern) {
			digits, n = pattern[i+2:i+2+size], 2+size
		}
		v, err := strconv.ParseUint(digits, 16, 32)
		if err != nil || v > utf8.MaxRune {
			return 0, badPattern(pattern, "invalid \\%c escape; write \\%c{1F600}", c, c)
		}
		fmt.Fprintf(b, `\x{%x}`, v)
		return n, nil
	default:
		_, n := utf8.DecodeRuneInString(pattern[i+1:])
		b.WriteString(pattern[i : i+1+n])
		return 1 + n, nil
	}
	return 2, nil
}

// newlineText says what a pattern for single lines must not contain.
const newlineText = `a line end (\n) can match only with multiline`

// oneLine takes the line end out of a parsed pattern, so that no match goes
// past a line: classes lose it, and "." does not fit it. A pattern that asks
// for it is refused.
func oneLine(re *syntax.Regexp) error {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r == '\n' {
				return errors.New(newlineText)
			}
		}
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpCharClass:
		var kept []rune
		for i := 0; i < len(re.Rune); i += 2 {
			lo, hi := re.Rune[i], re.Rune[i+1]
			if lo > '\n' || hi < '\n' {
				kept = append(kept, lo, hi)
				continue
			}
			if lo < '\n' {
				kept = append(kept, lo, '\n'-1)
			}
			if hi > '\n' {
				kept = append(kept, '\n'+1, hi)
			}
		}
		if len(kept) == 0 && len(re.Rune) > 0 {
			return errors.New(newlineText)
		}
		re.Rune = kept
	}
	for _, sub := range re.Sub {
		if err := oneLine(sub); err != nil {
			return err
		}
	}
	return nil
}
