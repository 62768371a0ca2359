package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

var numeric = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
	"minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties",
}

// Keywords of JSON Schema that hold schemas: one, a list, or a map of them.
// Those in place apply to the same value as the schema that they stand in.
var (
	oneInPlace   = []string{"not", "if", "then", "else"}
	listsInPlace = []string{"allOf", "anyOf", "oneOf"}
	mapsInPlace  = []string{"dependentSchemas", "dependencies"}
	oneBelow     = []string{"items", "additionalItems", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	listsBelow   = []string{"prefixItems", "items"}
	mapsBelow    = []string{"properties", "patternProperties", "$defs", "definitions"}
)

// prepare refuses what the validator does not look at: types that JSON does not
// have, and references that lead back to where they stand without going into the
// value, which it would follow until the stack ends. It removes the names of
// schemas, so that every reference starts at the root.
func prepare(root map[string]any) error {
	c := schemaCheck{root: root, onPath: map[string]bool{}, done: map[string]bool{}}
	return c.visit(root, "", true)
}

type schemaCheck struct {
	root         map[string]any
	onPath, done map[string]bool // by JSON pointer
}

// visit follows what applies in place from the schema at the pointer and, with
// all, starts anew at the schemas below it.
func (c *schemaCheck) visit(schema any, at string, all bool) error {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if c.onPath[at] {
		return fmt.Errorf("the reference at %q leads back to itself", "#"+at)
	}
	if !c.done[at] {
		c.onPath[at] = true
		err := c.inPlace(s, at)
		c.onPath[at] = false
		if err != nil {
			return err
		}
		c.done[at] = true
	}
	if !all {
		return nil
	}
	delete(s, "$id")
	for _, t := range typesOf(s["type"]) {
		if !slices.Contains(typeNames, t) {
			return fmt.Errorf("%q: %q is no type; the types are %s", "#"+at+"/type", clip(t, 100), strings.Join(typeNames, ", "))
		}
	}
	for _, key := range numeric {
		if _, ok := s[key].(json.Number); !ok && s[key] != nil {
			return fmt.Errorf("%q: %s is no number", "#"+at+"/"+key, describe(s[key]))
		}
	}
	return each(s, at, slices.Concat(oneInPlace, oneBelow), slices.Concat(listsInPlace, listsBelow), slices.Concat(mapsInPlace, mapsBelow),
		func(sub any, at string) error { return c.visit(sub, at, true) })
}

func (c *schemaCheck) inPlace(s map[string]any, at string) error {
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, has := s[key]; has {
			return fmt.Errorf("%q: the keyword is not supported in a tool's schema", "#"+at+"/"+key)
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		pointer, ok := strings.CutPrefix(ref, "#")
		if !ok || pointer != "" && !strings.HasPrefix(pointer, "/") {
			return fmt.Errorf("%q: the reference %q is not of the form \"#/$defs/name\"", "#"+at+"/$ref", clip(ref, 200))
		}
		target, ok := atPointer(c.root, pointer)
		if !ok {
			return fmt.Errorf("%q: the reference %q leads nowhere", "#"+at+"/$ref", clip(ref, 200))
		}
		if err := c.visit(target, unescape(pointer), false); err != nil {
			return err
		}
	}
	return each(s, at, oneInPlace, listsInPlace, mapsInPlace, func(sub any, at string) error { return c.visit(sub, at, false) })
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~") // the escapes of JSON pointers

// each calls f with every schema that stands under the keywords.
func each(s map[string]any, at string, one, lists, maps []string, f func(sub any, at string) error) error {
	var errs []error
	for _, key := range one {
		if _, ok := s[key].(map[string]any); ok {
			errs = append(errs, f(s[key], at+"/"+key))
		}
	}
	for _, key := range lists {
		for i, sub := range list(s[key]) {
			errs = append(errs, f(sub, at+"/"+key+"/"+strconv.Itoa(i)))
		}
	}
	for _, key := range maps {
		m, _ := s[key].(map[string]any)
		for _, name := range sortedKeys(m) {
			errs = append(errs, f(m[name], at+"/"+key+"/"+name))
		}
	}
	return errors.Join(errs...)
}

// atPointer resolves the JSON pointer of a reference (RFC 6901, in a URL).
func atPointer(doc any, pointer string) (any, bool) {
	if pointer == "" {
		return doc, true
	}
	text, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, false
	}
	for key := range strings.SplitSeq(text[1:], "/") {
		key = unescaped.Replace(key)
		switch v := doc.(type) {
		case map[string]any:
			sub, ok := v[key]
			if !ok {
				return nil, false
			}
			doc = sub
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// unescape writes a pointer as each does.
func unescape(pointer string) string {
	text, err := url.PathUnescape(pointer)
	if err != nil {
		return pointer
	}
	return unescaped.Replace(text)
}
