package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	textmessage "golang.org/x/text/message"
)

// faults turns what the validator found into one fault a field, in the order
// of the fields' names, each saying what was expected.
func (s *inputSchema) faults(doc any, err *jsonschema.ValidationError) []Fault {
	var out []Fault
	english := textmessage.NewPrinter(language.English)
	for leaf := range leaves(err) {
		loc := leaf.InstanceLocation
		path := fieldPath(doc, loc)
		add := func(field, format string, args ...any) {
			f := Fault{Field: field, Want: fmt.Sprintf(format, args...)}
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
		switch k := leaf.ErrorKind.(type) {
		case *kind.Required:
			for _, name := range k.Missing {
				want := "required, but missing"
				if t := s.typeOf(loc, name); t != "" {
					want += "; expected " + t
				}
				add(join(path, name), "%s", want)
			}
		case *kind.AdditionalProperties:
			names := slices.Sorted(slices.Values(k.Properties))
			for _, name := range names {
				if len(loc) > 0 || len(s.names) == 0 {
					add(join(path, name), "unknown property")
				} else {
					add(join(path, name), "unknown property; known are %s", strings.Join(s.names, ", "))
				}
			}
		case *kind.Type:
			add(path, "expected %s, got %s", strings.Join(k.Want, " or "), describe(at(doc, loc)))
		case *kind.FalseSchema:
			add(path, "not allowed here")
		case nil:
			add(path, "not valid; got %s", describe(at(doc, loc)))
		default:
			add(path, "%s; got %s", clip(leaf.ErrorKind.LocalizedString(english), 500), describe(at(doc, loc)))
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

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
