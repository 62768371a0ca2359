package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/rawjson"
)

// node is a JSON value and where it stands in its document.
type node struct {
	kind    kind
	at      int    // offset of the first byte
	index   int    // of an element of a list: its place there, as written
	raw     []byte // of a scalar, as written
	members []member
	elems   []*node
}

// member is a key of an object with its value.
type member struct {
	key   string
	at    int // offset of the key
	value *node
}

// kind is the type of a JSON value.
type kind int

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// kindNames are what messages call a value, by kind.
var kindNames = [...]string{"null", "true or false", "a number", "a string", "a list", "an object"}

func (k kind) String() string { return kindNames[k] }

// syntaxError is a document that is not JSON (C-15).
type syntaxError struct {
	at  int // offset of the offending byte
	why string
}

func (e *syntaxError) Error() string { return e.why }

var bom = []byte("\ufeff")

// parse reads a document. A byte order mark in front, which some editors write,
// is allowed; comments and commas behind the last value are not (C-15).
func parse(doc []byte) (*node, error) {
	if bytes.HasPrefix(doc, bom) {
		doc = slices.Concat([]byte("   "), doc[len(bom):]) // blanks keep the offsets
	}
	if !utf8.Valid(doc) {
		at := 0
		for r, n := utf8.DecodeRune(doc); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRune(doc[at:]) {
			at += n
		}
		return nil, &syntaxError{at, "is not UTF-8"}
	}
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, &syntaxError{0, "is empty; the least that a file may hold is {}"}
	}
	if !json.Valid(doc) {
		return nil, explain(doc)
	}
	p := parser{doc: doc}
	return p.value(), nil
}

// explain says why a document is not JSON, and where.
func explain(doc []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(doc, &v)
	var bad *json.SyntaxError
	if !errors.As(err, &bad) {
		return &syntaxError{0, fmt.Sprintf("is not JSON: %v", err)}
	}
	at := max(0, min(int(bad.Offset), len(doc))-1)
	why := "is not JSON: " + bad.Error()
	before := bytes.TrimRight(doc[:at], " \t\r\n")
	switch c := doc[at]; {
	case int(bad.Offset) >= len(doc) && bad.Error() == "unexpected end of JSON input":
		why = "is not JSON: it ends too early"
	case c == '/' || c == '#':
		why = "is not JSON: comments are not allowed"
	case (c == '}' || c == ']') && bytes.HasSuffix(before, []byte(",")):
		why = fmt.Sprintf("is not JSON: no comma may stand before %q", string(c))
	}
	return &syntaxError{at, why}
}

// parser makes nodes of a document that is known to be valid.
type parser struct {
	doc []byte
	i   int
}

func (p *parser) space() {
	for p.i < len(p.doc) && (p.doc[p.i] == ' ' || p.doc[p.i] == '\t' || p.doc[p.i] == '\n' || p.doc[p.i] == '\r') {
		p.i++
	}
}

// value reads the next value.
func (p *parser) value() *node {
	p.space()
	n := &node{at: p.i}
	switch p.doc[p.i] {
	case '{':
		n.kind = object
		for p.open(); p.doc[p.i] != '}'; p.next() {
			m := member{at: p.i}
			m.key = rawjson.Unquote(p.scalar())
			p.space()
			p.i++ // the colon
			m.value = p.value()
			n.members = append(n.members, m)
		}
		p.i++
	case '[':
		n.kind = list
		for p.open(); p.doc[p.i] != ']'; p.next() {
			e := p.value()
			e.index = len(n.elems)
			n.elems = append(n.elems, e)
		}
		p.i++
	case '"':
		n.kind, n.raw = text, p.scalar()
	case 't', 'f':
		n.kind, n.raw = boolean, p.scalar()
	case 'n':
		n.kind, n.raw = null, p.scalar()
	default:
		n.kind, n.raw = number, p.scalar()
	}
	return n
}

// open goes behind an opening bracket.
func (p *parser) open() {
	p.i++
	p.space()
}

// next goes to the next entry or to the closing bracket.
func (p *parser) next() {
	p.space()
	if p.doc[p.i] == ',' {
		p.open()
	}
}

// scalar reads a string, a number or a word.
func (p *parser) scalar() []byte {
	from := p.i
	if p.doc[p.i] == '"' {
		for p.i++; p.doc[p.i] != '"'; p.i++ {
			if p.doc[p.i] == '\\' {
				p.i++
			}
		}
		p.i++
	} else if n := bytes.IndexAny(p.doc[p.i:], ",]} \t\r\n"); n >= 0 {
		p.i += n
	} else {
		p.i = len(p.doc)
	}
	return p.doc[from:p.i:p.i]
}

// get returns the value at a path of keys; nil: there is none.
func (n *node) get(path ...string) *node {
	for _, key := range path {
		if n == nil {
			return nil
		}
		i := slices.IndexFunc(n.members, func(m member) bool { return m.key == key })
		if i < 0 {
			return nil
		}
		n = n.members[i].value
	}
	return n
}

// text returns the value of a string; "" for everything else.
func (n *node) text() string {
	if n == nil || n.kind != text {
		return ""
	}
	return rawjson.Unquote(n.raw)
}

// isTrue reports the value true.
func (n *node) isTrue() bool { return n != nil && n.kind == boolean && string(n.raw) == "true" }

// append writes the value as compact JSON.
func (n *node) append(to []byte) []byte {
	switch n.kind {
	case object:
		to = append(to, '{')
		for i, m := range n.members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(rawjson.AppendString(to, m.key), ':')
			to = m.value.append(to)
		}
		return append(to, '}')
	case list:
		to = append(to, '[')
		for i, e := range n.elems {
			if i > 0 {
				to = append(to, ',')
			}
			to = e.append(to)
		}
		return append(to, ']')
	}
	return append(to, n.raw...)
}
