package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Changes of a JSON text that leave every byte outside of what they change as
// it is: order of keys, unknown keys, spacing, number forms.

// part is a piece of a text, by offsets.
type part struct{ from, to int }

func (p part) of(text []byte) []byte { return text[p.from:p.to] }

// member is a member of a JSON object.
type member struct {
	key   string
	at    part // key and value
	value part
}

var errNotJSON = errors.New("is not valid JSON")

// members lists the members of the object at obj. text is valid JSON.
func members(text []byte, obj part) ([]member, error) {
	var list []member
	err := walk(text, obj, '{', func(key string, at, value part) { list = append(list, member{key, at, value}) })
	return list, err
}

// elements lists the elements of the array at arr. text is valid JSON.
func elements(text []byte, arr part) ([]part, error) {
	var list []part
	err := walk(text, arr, '[', func(_ string, _, value part) { list = append(list, value) })
	return list, err
}

func walk(text []byte, in part, open json.Delim, each func(key string, at, value part)) error {
	dec := json.NewDecoder(bytes.NewReader(in.of(text)))
	if t, err := dec.Token(); err != nil || t != open {
		return fmt.Errorf("%w: %q is expected", errNotJSON, open.String())
	}
	end := in.from + int(dec.InputOffset())
	for dec.More() {
		at := end
		for at < in.to && strings.IndexByte(" \t\r\n,", text[at]) >= 0 {
			at++
		}
		key := ""
		if open == '{' {
			t, err := dec.Token()
			if err != nil {
				return err
			}
			key, _ = t.(string)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		end = in.from + int(dec.InputOffset())
		each(key, part{at, end}, part{end - len(raw), end})
	}
	return nil
}

// find returns the member of that name: the last one, as decoders do.
func find(list []member, key string) (member, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].key == key {
			return list[i], true
		}
	}
	return member{}, false
}

// splice returns text with the piece at p replaced.
func splice(text []byte, p part, by []byte) []byte {
	out := make([]byte, 0, len(text)+len(by))
	return append(append(append(out, text[:p.from]...), by...), text[p.to:]...)
}

// setMember gives the object that is all of obj a member: in its place where it
// has one of that name, else as its last, spaced like the last.
func setMember(obj []byte, key string, value []byte) ([]byte, error) {
	list, err := members(obj, part{0, len(obj)})
	if err != nil {
		return nil, err
	}
	if m, ok := find(list, key); ok {
		return splice(obj, m.value, value), nil
	}
	name, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return splice(obj, part{1, len(obj) - 1}, append(append(name, ':'), value...)), nil
	}
	last := list[len(list)-1]
	before := 1
	if len(list) > 1 {
		before = list[len(list)-2].at.to
	}
	space := obj[before:last.at.from]
	if i := bytes.IndexByte(space, ','); i >= 0 {
		space = space[i+1:]
	}
	colon := ":"
	if obj[last.value.from-1] == ' ' {
		colon = ": "
	}
	var add bytes.Buffer
	add.WriteByte(',')
	add.Write(space)
	add.Write(name)
	add.WriteString(colon)
	add.Write(value)
	return splice(obj, part{last.at.to, last.at.to}, add.Bytes()), nil
}

// dropMember takes every member of that name out of the object.
func dropMember(obj []byte, key string) ([]byte, error) {
	for {
		list, err := members(obj, part{0, len(obj)})
		if err != nil {
			return nil, err
		}
		parts := make([]part, len(list))
		at := -1
		for i, m := range list {
			parts[i] = m.at
			if m.key == key {
				at = i
			}
		}
		if at < 0 {
			return obj, nil
		}
		obj = dropPart(obj, part{0, len(obj)}, parts, at)
	}
}

// dropPart takes one of the parts of an object or array out of text, with one
// of the commas beside it.
func dropPart(text []byte, in part, parts []part, i int) []byte {
	switch {
	case len(parts) == 1:
		return splice(text, part{in.from + 1, in.to - 1}, nil)
	case i > 0:
		return splice(text, part{parts[i-1].to, parts[i].to}, nil)
	}
	return splice(text, part{parts[0].from, parts[1].from}, nil)
}

// layout is how a JSON text is set.
type layout struct {
	unit    string // of indentation
	newline string // "" when all is on one line
}

// layoutOf looks at the first member of a text's object.
func layoutOf(text []byte, first int) layout {
	start := bytes.IndexByte(text, '{') + 1
	space := string(text[start:first])
	i := strings.LastIndexByte(space, '\n')
	if i < 0 {
		return layout{}
	}
	l := layout{unit: space[i+1:], newline: "\n"}
	if strings.HasSuffix(space[:i], "\r") {
		l.newline = "\r\n"
	}
	return l
}

// set lays out a compact JSON value that stands at a depth.
func (l layout) set(value []byte, depth int) []byte {
	if l.newline == "" {
		return value
	}
	var b bytes.Buffer
	if json.Indent(&b, value, strings.Repeat(l.unit, depth), l.unit) != nil {
		return value
	}
	if l.newline == "\n" {
		return b.Bytes()
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(l.newline))
}

// line is a line break and the indentation of a depth.
func (l layout) line(depth int) string {
	if l.newline == "" {
		return ""
	}
	return l.newline + strings.Repeat(l.unit, depth)
}
