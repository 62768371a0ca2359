package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// faults turns findings into one fault a field and rule, in the order of the
// fields' names, each saying what was expected.
func (s *inputSchema) faults(doc any, found []finding) []Fault {
	var out []Fault
	for _, f := range found {
		path := fieldPath(doc, f.path)
		add := func(field, format string, args ...any) {
			f := Fault{Field: field, Want: fmt.Sprintf(format, args...)}
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
		for _, name := range f.missing {
			want := "required, but missing"
			if t := s.typeOf(f.path, name); t != "" {
				want += "; expected " + t
			}
			add(join(path, name), "%s", want)
		}
		for _, name := range f.unknown {
			if len(f.path) > 0 || len(s.names) == 0 {
				add(join(path, name), "unknown property")
			} else {
				add(join(path, name), "unknown property; known are %s", strings.Join(s.names, ", "))
			}
		}
		if len(f.types) > 0 {
			add(path, "expected %s, got %s", strings.Join(f.types, " or "), describe(at(doc, f.path)))
		}
		if f.text != "" {
			add(path, "%s; got %s", clip(f.text, 500), describe(at(doc, f.path)))
		}
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return strings.Compare(a.Field, b.Field) })
	return out
}

// typeOf returns the type that the schema gives a top-level property, "" when
// it says none.
func (s *inputSchema) typeOf(loc []string, name string) string {
	if len(loc) > 0 {
		return ""
	}
	p, _ := s.props[name].(map[string]any)
	switch t := p["type"].(type) {
	case string:
		return t
	case []any:
		var types []string
		for _, e := range t {
			types = append(types, fmt.Sprint(e))
		}
		return strings.Join(types, " or ")
	}
	return ""
}

// fieldPath writes a location as a person would: todos[2].status.
func fieldPath(doc any, loc []string) string {
	path := ""
	for i, key := range loc {
		if _, isArray := at(doc, loc[:i]).([]any); isArray {
			path += "[" + key + "]"
		} else {
			path = join(path, key)
		}
	}
	return path
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// describe names the type of a JSON value and shows a scalar, shortened.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean " + strconv.FormatBool(v)
	case json.Number:
		return "number " + clip(v.String(), 40)
	case string:
		return "string " + strconv.Quote(clip(v, 60))
	case []any:
		return fmt.Sprintf("array of %d", len(v))
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}
