package pdf

import (
	"bytes"
	"errors"
	"strconv"
)

// The values of a PDF. Numbers other than whole ones, strings, booleans and
// null are of no interest here and are read as other.
type (
	name  string
	ref   struct{ num, gen int }
	list  []any
	other struct{}
	// dict has its members in their order, each with the text of its value.
	dict  []entry
	entry struct {
		key  name
		val  any
		text []byte
	}
)

func (d dict) get(key name) any {
	for _, e := range d {
		if e.key == key {
			return e.val
		}
	}
	return nil
}

var errSyntax = errors.New("damaged: a value is not as it should be")

// maxDepth bounds lists and dictionaries within each other.
const maxDepth = 100

// parser reads values from a text.
type parser struct {
	text []byte
	pos  int
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

// space skips blanks and comments.
func (p *parser) space() {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case isSpace(c):
			p.pos++
		case c == '%':
			for p.pos < len(p.text) && p.text[p.pos] != '\n' && p.text[p.pos] != '\r' {
				p.pos++
			}
		default:
			return
		}
	}
}

// word takes what comes up to a blank or delimiter.
func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.text) && !isSpace(p.text[p.pos]) && !isDelimiter(p.text[p.pos]) {
		p.pos++
	}
	return string(p.text[start:p.pos])
}

func (p *parser) has(prefix string) bool { return bytes.HasPrefix(p.text[p.pos:], []byte(prefix)) }

func (p *parser) value(depth int) (any, error) {
	p.space()
	switch {
	case depth > maxDepth || p.pos >= len(p.text):
		return nil, errSyntax
	case p.has("<<"):
		return p.dict(depth)
	case p.has("["):
		p.pos++
		var l list
		for {
			if p.space(); p.has("]") {
				p.pos++
				return l, nil
			}
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
	case p.has("("):
		return other{}, p.skipString()
	case p.has("<"):
		end := bytes.IndexByte(p.text[p.pos:], '>')
		if end < 0 {
			p.pos = len(p.text)
			return nil, errSyntax
		}
		p.pos += end + 1
		return other{}, nil
	case p.has("/"):
		p.pos++
		return decodeName(p.word()), nil
	}
	word := p.word()
	if word == "" || word == "endobj" || word == "stream" {
		return nil, errSyntax
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return other{}, nil
	}
	// Two whole numbers and an R are a reference.
	after := p.pos
	p.space()
	if gen, err := strconv.Atoi(p.word()); err == nil {
		if p.space(); p.word() == "R" {
			return ref{n, gen}, nil
		}
	}
	p.pos = after
	return n, nil
}

func (p *parser) dict(depth int) (any, error) {
	p.pos += len("<<")
	d := dict{}
	for {
		if p.space(); p.has(">>") {
			p.pos += len(">>")
			return d, nil
		}
		if !p.has("/") {
			return nil, errSyntax
		}
		p.pos++
		key := decodeName(p.word())
		p.space()
		start := p.pos
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		d = append(d, entry{key, v, p.text[start:p.pos]})
	}
}

// skipString skips a string in parentheses, which may hold pairs of them.
func (p *parser) skipString() error {
	open := 0
	for ; p.pos < len(p.text); p.pos++ {
		switch p.text[p.pos] {
		case '\\':
			p.pos++
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				p.pos++
				return nil
			}
		}
	}
	p.pos = len(p.text)
	return errSyntax
}

// decodeName replaces the codes "#xx" of a name.
func decodeName(s string) name {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '#' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return name(out)
}
