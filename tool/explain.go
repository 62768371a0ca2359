package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// finding is a place of an input that breaks a rule of its schema. One of
// missing, unknown, types and text is set.
type finding struct {
	path    []string // keys and indexes, from the top
	missing []string // required properties
	unknown []string // properties that are not allowed
	types   []string // expected, where the value has another type
	text    string   // what was expected otherwise
}

// explain says where and how a value breaks a schema. The validator that
// decides stops at the first fault, but a model that is told all of them at once
// mends them at once (T-18). Rules that explain does not know it leaves out.
func explain(schema map[string]any, value any) []finding {
	e := explainer{root: schema}
	e.check(schema, value, nil, 0)
	return e.found
}

type explainer struct {
	root  map[string]any
	found []finding
	steps int
}

// Bounds of one explanation. Alternatives within alternatives multiply.
const (
	maxSteps = 100_000
	maxNest  = 2_000
)

func (e *explainer) add(path []string, f finding) {
	f.path = slices.Clone(path)
	e.found = append(e.found, f)
}

func (e *explainer) text(path []string, format string, args ...any) {
	e.add(path, finding{text: fmt.Sprintf(format, args...)})
}

func (e *explainer) check(schema, value any, path []string, nest int) {
	if e.steps++; e.steps > maxSteps || nest > maxNest {
		return
	}
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			e.text(path, "not allowed here")
		}
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		if target, ok := e.target(ref); ok {
			e.check(target, value, path, nest+1)
		}
	}
	if types := typesOf(s["type"]); len(types) > 0 && !isOneOf(value, types) {
		e.add(path, finding{types: types})
		return // what else the schema wants is meant for another type
	}
	e.checkValue(s, value, path)
	for _, sub := range list(s["allOf"]) {
		e.check(sub, value, path, nest+1)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		e.checkAny(list(s[key]), value, path, nest+1)
	}
	switch value := value.(type) {
	case map[string]any:
		e.checkObject(s, value, path, nest+1)
	case []any:
		e.checkArray(s, value, path, nest+1)
	}
}

// checkAny adds what every alternative finds, if none fits.
func (e *explainer) checkAny(alternatives []any, value any, path []string, nest int) {
	before := len(e.found)
	for _, sub := range alternatives {
		from := len(e.found)
		if e.check(sub, value, path, nest); len(e.found) == from {
			e.found = e.found[:before]
			return
		}
	}
}

func (e *explainer) checkValue(s map[string]any, value any, path []string) {
	if options, ok := s["enum"].([]any); ok && !slices.ContainsFunc(options, func(o any) bool { return equal(o, value) }) {
		e.text(path, "must be one of %s", strings.Join(quoted(options), ", "))
	}
	if want, ok := s["const"]; ok && !equal(want, value) {
		e.text(path, "must be %s", quoted([]any{want})[0])
	}
	switch value := value.(type) {
	case json.Number:
		got, _ := value.Float64()
		for _, bound := range []struct {
			key, words string
			broken     func(limit float64) bool
		}{
			{"minimum", "at least", func(l float64) bool { return got < l }},
			{"exclusiveMinimum", "more than", func(l float64) bool { return got <= l }},
			{"maximum", "at most", func(l float64) bool { return got > l }},
			{"exclusiveMaximum", "less than", func(l float64) bool { return got >= l }},
		} {
			if limit, ok := s[bound.key].(json.Number); ok {
				if l, _ := limit.Float64(); bound.broken(l) {
					e.text(path, "must be %s %s", bound.words, limit)
				}
			}
		}
	case string:
		e.checkSize(s, "Length", utf8.RuneCountInString(value), "characters", path)
		if p, ok := s["pattern"].(string); ok {
			if re, err := regexp.Compile(p); err == nil && !re.MatchString(value) {
				e.text(path, "must match the pattern %s", strconv.Quote(p))
			}
		}
	}
}

// checkSize checks min<what> and max<what>.
func (e *explainer) checkSize(s map[string]any, what string, size int, unit string, path []string) {
	if l, ok := whole(s["min"+what]); ok && size < l {
		e.text(path, "must have at least %d %s, has %d", l, unit, size)
	}
	if l, ok := whole(s["max"+what]); ok && size > l {
		e.text(path, "must have at most %d %s, has %d", l, unit, size)
	}
}

func (e *explainer) checkArray(s map[string]any, value []any, path []string, nest int) {
	e.checkSize(s, "Items", len(value), "items", path)
	first, rest := list(s["prefixItems"]), s["items"]
	if old, ok := rest.([]any); ok {
		first, rest = old, s["additionalItems"]
	}
	for i, item := range value {
		at := append(slices.Clip(path), strconv.Itoa(i))
		if i < len(first) {
			e.check(first[i], item, at, nest)
		} else {
			e.check(rest, item, at, nest)
		}
	}
}

func (e *explainer) checkObject(s, value map[string]any, path []string, nest int) {
	e.checkSize(s, "Properties", len(value), "properties", path)
	var missing, unknown []string
	for _, name := range list(s["required"]) {
		if name, ok := name.(string); ok {
			if _, has := value[name]; !has {
				missing = append(missing, name)
			}
		}
	}
	props, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, name := range sortedKeys(value) {
		at := append(slices.Clip(path), name)
		sub, known := props[name]
		if known {
			e.check(sub, value[name], at, nest)
		}
		for _, p := range sortedKeys(patterns) {
			if re, err := regexp.Compile(p); err == nil && re.MatchString(name) {
				known = true
				e.check(patterns[p], value[name], at, nest)
			}
		}
		switch rest := s["additionalProperties"]; {
		case known:
		case rest == false:
			unknown = append(unknown, name)
		default:
			e.check(rest, value[name], at, nest)
		}
	}
	if len(missing) > 0 {
		e.add(path, finding{missing: missing})
	}
	if len(unknown) > 0 {
		e.add(path, finding{unknown: unknown})
	}
}

// target finds what a reference within the schema means: "#" or "#/a/b".
func (e *explainer) target(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	return atPointer(e.root, pointer)
}

func typesOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, t := range v {
			if t, ok := t.(string); ok {
				out = append(out, t)
			}
		}
		return out
	}
	return nil
}

func isOneOf(v any, types []string) bool {
	has := func(t string) bool { return slices.Contains(types, t) }
	switch v := v.(type) {
	case nil:
		return has("null")
	case bool:
		return has("boolean")
	case string:
		return has("string")
	case []any:
		return has("array")
	case map[string]any:
		return has("object")
	case json.Number:
		f, err := v.Float64()
		return has("number") || has("integer") && err == nil && f == float64(int64(f))
	}
	return false
}

// equal compares as JSON does: 1 is 1.0.
func equal(a, b any) bool { return reflect.DeepEqual(same(a), same(b)) }

func same(v any) any {
	switch v := plain(v).(type) {
	case int64:
		return float64(v)
	case map[string]any:
		for k, e := range v {
			v[k] = same(e)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = same(e)
		}
		return v
	default:
		return v
	}
}

func quoted(values []any) []string {
	var out []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			out = append(out, "'"+s+"'")
			continue
		}
		raw, _ := json.Marshal(v)
		out = append(out, string(raw))
	}
	return out
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func whole(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return int(f), err == nil
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
