package message

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/turnwright/turnwright/internal/rawjson"
)

// The messages are plain structs with json tags. This codec is used for them
// instead of encoding/json because it compares keys exactly, writes no null
// where a list belongs, keeps unknown keys, and copies blocks instead of
// checking them again.
//
// Beside the json tag a field may have a wire tag:
//
//	default=x  an empty string is written as x
//	object     an empty json.RawMessage is written as {}
//	lenient    a value of a wrong type reads as absent (W-411, W-412)

type plan struct {
	fields []field
	byName map[string]int
	ruled  bool // *T implements ruler
}

type field struct {
	index    []int
	name     string
	key      []byte // `"name":`
	omit     omission
	fallback string
	object   bool
	lenient  bool
}

type omission uint8

const (
	omitNever omission = iota
	omitEmpty
	omitZero
)

// rule overrides the tags of one field for one value.
type rule uint8

const (
	byTag rule = iota
	force      // written even if empty: "" or [] for nil
	drop       // never written
)

// ruler is implemented by structs in which the presence of a key depends on
// other fields.
type ruler interface{ keyRule(name string) rule }

var (
	rawType     = reflect.TypeFor[json.RawMessage]()
	blockType   = reflect.TypeFor[Block]()
	contentType = reflect.TypeFor[Content]()
	originType  = reflect.TypeFor[Origin]()
	rulerType   = reflect.TypeFor[ruler]()

	plans sync.Map // reflect.Type to *plan
)

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{byName: map[string]int{}, ruled: reflect.PointerTo(t).Implements(rulerType)}
	p.collect(t, nil)
	got, _ := plans.LoadOrStore(t, p)
	return got.(*plan)
}

func (p *plan) collect(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		if sf.Anonymous {
			p.collect(sf.Type, index)
			continue
		}
		name, option, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			// A fault of this package, found by any test that touches the type.
			panic(fmt.Sprintf("message: field %s of %s has no json name", sf.Name, t))
		}
		f := field{index: index, name: name, key: append(rawjson.AppendString(nil, name), ':')}
		switch option {
		case "omitempty":
			f.omit = omitEmpty
		case "omitzero":
			f.omit = omitZero
		}
		switch wire := sf.Tag.Get("wire"); wire {
		case "object":
			f.object = true
		case "lenient":
			f.lenient = true
		default:
			f.fallback = strings.TrimPrefix(wire, "default=")
		}
		p.byName[name] = len(p.fields)
		p.fields = append(p.fields, f)
	}
}

func (f *field) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

// omitted reports whether the tags leave the value out.
func (f *field) omitted(v reflect.Value) bool {
	switch f.omit {
	case omitEmpty:
		if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
			return v.Len() == 0
		}
		return v.IsZero()
	case omitZero:
		return v.IsZero()
	}
	return false
}
