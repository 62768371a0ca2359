package shell

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// tildeInside is a "~" that bash expands inside a word: of=~/x.
var tildeInside = regexp.MustCompile(`[=:]~`)

// word reads one word. Substitutions in it are collected by nested.
func (r *reader) word(w *syntax.Word) Word {
	out := Word{Source: r.source(w), Literal: true}
	if text, ok := unquoted(w); ok {
		out.Text, out.spliced = text, text
		return out
	}
	if n := alone(w); n != nil {
		out.Text, out.spliced, out.Literal = out.Source, r.source(n), false
		return out
	}
	var b strings.Builder
	var spliced strings.Builder
	seen := 0 // of b, for spliced
	splice := func(n syntax.Node) {
		spliced.WriteString(b.String()[seen:])
		if seen = b.Len(); n != nil {
			spliced.WriteString(r.source(n))
		}
	}
	expands := false // other than by a glob or a brace
	for i, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(p.Value, "~") {
				out.Tilde = true
			}
			if i == 0 && len(p.Value) > 1 && p.Value[0] == '=' && p.Value[1] != '=' {
				expands = true // "=ls" is the path of ls in zsh
			}
			if strings.Contains(p.Value, "~") && tildeInside.MatchString(p.Value) {
				expands = true
			}
			out.literal(&b, p.Value)
		case *syntax.SglQuoted:
			text := p.Value
			if p.Dollar {
				var ok bool
				if text, ok = ansiC(p.Value); !ok {
					expands = true
				}
			}
			b.WriteString(text)
		case *syntax.DblQuoted:
			if p.Dollar {
				expands = true // translated
			}
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok {
					expands = true
					splice(q)
					continue
				}
				unescapeQuoted(&b, lit.Value)
			}
		default:
			expands = true
			splice(p)
		}
	}
	out.Text, out.spliced = b.String(), b.String()
	if seen > 0 || spliced.Len() > 0 {
		splice(nil)
		out.spliced = spliced.String()
	}
	if strings.ContainsRune(out.Text, 0) {
		expands = true
	}
	if expands || out.Glob || out.Tilde {
		out.Literal, out.Flat, out.Text = false, out.Text, out.Source
		if !out.Glob {
			out.Prefix = out.Flat
		}
		out.Glob = !expands
	}
	return out
}

// unquoted is the text of a word, as most are, that stands there as it is:
// without quotes, and nothing in it is special wherever it stands.
func unquoted(w *syntax.Word) (text string, ok bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || lit.Value == "" || lit.Value[0] == '=' || strings.ContainsAny(lit.Value, "\\*?[{~\x00") {
		return "", false
	}
	return lit.Value, true
}

// alone is the expansion that is all of a word, in quotes or not; nil: there is
// none.
func alone(w *syntax.Word) syntax.Node {
	parts := w.Parts
	if len(parts) == 1 {
		if q, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = q.Parts
		}
	}
	if len(parts) != 1 || !expanding(parts[0]) {
		return nil
	}
	return parts[0]
}

// literal adds a text that stands outside quotes, without its backslashes, and
// looks for globs and braces. The words "{}" and "[" have neither.
func (w *Word) literal(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i+1 == len(s) {
				continue
			}
			i++
			if s[i] == '\n' {
				continue
			}
		case '*', '?', '[', '{':
			if w.Source == "[" || w.Source == "{}" {
				break
			}
			if !w.Glob {
				w.Glob, w.Prefix = true, b.String()
			}
			w.Brace = w.Brace || c == '{'
		}
		b.WriteByte(s[i])
	}
}

// unescapeQuoted does the same inside double quotes, where a backslash is kept
// except before a few characters.
func unescapeQuoted(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '\n':
				i++
				continue
			case '$', '`', '"', '\\':
				i++
			}
		}
		b.WriteByte(s[i])
	}
}

var ansiEscapes = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11,
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiC decodes the text between $' and '. ok is false for an escape that
// shells do not agree on.
func ansiC(s string) (text string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		c := s[i]
		if to, known := ansiEscapes[c]; known {
			b.WriteByte(to)
			continue
		}
		baseOf, most, from := 0, 0, i+1
		switch {
		case c >= '0' && c <= '7':
			baseOf, most, from = 8, 3, i
		case c == 'x':
			baseOf, most = 16, 2
		case c == 'u':
			baseOf, most = 16, 4
		case c == 'U':
			baseOf, most = 16, 8
		default:
			return "", false
		}
		to := from
		for to < len(s) && to < from+most {
			if _, err := strconv.ParseUint(s[to:to+1], baseOf, 8); err != nil {
				break
			}
			to++
		}
		n, err := strconv.ParseUint(s[from:to], baseOf, 32)
		switch {
		case err != nil || n == 0:
			return "", false
		case c == 'u' || c == 'U':
			if !utf8.ValidRune(rune(n)) {
				return "", false
			}
			b.WriteRune(rune(n))
		default:
			b.WriteByte(byte(n))
		}
		i = to - 1
	}
	return b.String(), true
}

// base is the last element of a command word's path.
func base(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// longestName bounds the names of programs that are known here.
const longestName = 16

// lastName is base for a comparison with names that are known: of a text that
// ends in a longer one it returns some end that is none of them either.
func lastName(s string) string { return base(s[max(0, len(s)-longestName-1):]) }

// names is a set of names of programs.
type names map[string]bool

// namesOf returns the names in a text, which blanks divide.
func namesOf(list string) names {
	n := names{}
	for name := range strings.FieldsSeq(list) {
		n[name] = true
	}
	return n
}

func (n names) has(name string) bool { return n[name] }
