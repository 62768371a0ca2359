package permfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"github.com/turnwright/turnwright/permission"
)

// edit makes an update in the text of a settings file, which is strict JSON
// (C-15); nil and blanks are a file without settings.
func edit(old []byte, u permission.Update) ([]byte, error) {
	text := old
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if !json.Valid(text) {
		return nil, errors.New("the file is not valid JSON; correct it first")
	}
	doc, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	top, ok := doc.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("the file holds no JSON object")
	}
	l := layoutOf(top)
	adds := u.Type == permission.UpdateSetMode || u.Type == permission.UpdateAddDirectories ||
		u.Type != permission.UpdateRemoveRules && len(u.Rules) > 0
	perms, err := l.object(top, "permissions", 1, adds)
	if err != nil || perms == nil {
		return old, err // there is nothing to take away
	}
	switch u.Type {
	case permission.UpdateSetMode:
		l.set(perms, "defaultMode", 2, hujson.String(string(u.Mode)))
	case permission.UpdateAddDirectories, permission.UpdateRemoveDirectories:
		err = l.change(perms, "additionalDirectories", u.Type, u.Directories, func(a, b string) bool { return a == b })
	case permission.UpdateAddRules, permission.UpdateReplaceRules, permission.UpdateRemoveRules:
		var rules []string
		for _, r := range u.Rules {
			rules = append(rules, r.String())
		}
		err = l.change(perms, string(u.Behavior), u.Type, rules, sameRule)
	default:
		err = fmt.Errorf("the type %q of the update is not known", u.Type)
	}
	return doc.Pack(), err
}

// sameRule reports whether two texts are the same rule.
func sameRule(a, b string) bool {
	x, errA := permission.ParseRule(a)
	y, errB := permission.ParseRule(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return x.Tool == y.Tool && x.Specifier == y.Specifier
}

// layout is how a file is written: the indentation of one level, or everything
// in one line.
type layout struct {
	indent string
	flat   bool
}

func layoutOf(top *hujson.Object) layout {
	if len(top.Members) == 0 {
		return layout{indent: "  "}
	}
	before := string(top.Members[0].Name.BeforeExtra)
	i := strings.LastIndexByte(before, '\n')
	if i < 0 {
		return layout{flat: true}
	}
	return layout{indent: before[i+1:]}
}

// line is what stands before a value at a depth.
func (l layout) line(depth int) hujson.Extra {
	if l.flat {
		return nil
	}
	return hujson.Extra("\n" + strings.Repeat(l.indent, depth))
}

// find returns the member of that name; of several the last counts, as it does
// for readers.
func find(o *hujson.Object, name string) *hujson.Value {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if lit, ok := o.Members[i].Name.Value.(hujson.Literal); ok && lit.String() == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// set gives a member at a depth its value.
func (l layout) set(o *hujson.Object, name string, depth int, v hujson.ValueTrimmed) *hujson.Value {
	if old := find(o, name); old != nil {
		old.Value = v
		return old
	}
	m := hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: l.line(depth), Value: hujson.String(name)},
		Value: hujson.Value{Value: v},
	}
	if !l.flat {
		m.Value.BeforeExtra = hujson.Extra(" ")
	}
	if n := len(o.Members); n > 0 {
		m.Name.BeforeExtra = slices.Clone(o.Members[n-1].Name.BeforeExtra)
	} else {
		o.AfterExtra = l.line(depth - 1)
	}
	o.Members = append(o.Members, m)
	return &o.Members[len(o.Members)-1].Value
}

// object returns a member that is an object; one that is missing is made, or is
// nil.
func (l layout) object(o *hujson.Object, name string, depth int, make bool) (*hujson.Object, error) {
	v := find(o, name)
	if v == nil {
		if !make {
			return nil, nil
		}
		v = l.set(o, name, depth, &hujson.Object{})
	}
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%q is not an object", name)
	}
	return obj, nil
}

// change adds texts to a list, takes them out of it or makes them all of it.
func (l layout) change(perms *hujson.Object, name, how string, texts []string, same func(a, b string) bool) error {
	v := find(perms, name)
	removes := how == permission.UpdateRemoveRules || how == permission.UpdateRemoveDirectories
	if v == nil {
		if removes || len(texts) == 0 {
			return nil
		}
		v = l.set(perms, name, 2, &hujson.Array{})
	}
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		return fmt.Errorf("\"permissions.%s\" is not a list", name)
	}
	is := func(e hujson.Value, text string) bool {
		lit, ok := e.Value.(hujson.Literal)
		return ok && lit.Kind() == '"' && same(lit.String(), text)
	}
	first := hujson.Extra(nil)
	if len(list.Elements) > 0 {
		first = list.Elements[0].BeforeExtra
	}
	list.Elements = slices.DeleteFunc(list.Elements, func(e hujson.Value) bool {
		among := slices.ContainsFunc(texts, func(text string) bool { return is(e, text) })
		return removes && among || how == permission.UpdateReplaceRules && !among
	})
	if len(list.Elements) > 0 {
		list.Elements[0].BeforeExtra = first
	}
	for _, text := range texts {
		if removes || slices.ContainsFunc(list.Elements, func(e hujson.Value) bool { return is(e, text) }) {
			continue
		}
		e := hujson.Value{BeforeExtra: l.line(3), Value: hujson.String(text)}
		if n := len(list.Elements); n > 0 {
			e.BeforeExtra = slices.Clone(list.Elements[n-1].BeforeExtra)
			if len(e.BeforeExtra) == 0 && !l.flat {
				e.BeforeExtra = hujson.Extra(" ")
			}
		} else {
			list.AfterExtra = l.line(2)
		}
		list.Elements = append(list.Elements, e)
	}
	if len(list.Elements) == 0 {
		list.AfterExtra = nil
	}
	return nil
}
