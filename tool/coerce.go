package tool

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// coerce replaces strings in doc, where a finding says that a string stands in
// the place of a number or a boolean, by the value that they spell (T-21). did
// is false when nothing was replaced.
func coerce(doc any, found []finding) (out any, did bool) {
	for _, f := range found {
		old, ok := at(doc, f.path).(string)
		if !ok {
			continue // it is none, or an earlier finding replaced it
		}
		if v, ok := spelled(old, f.types); ok && put(doc, f.path, v) {
			did = true
		}
	}
	return doc, did
}

var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// spelled returns the number or boolean that s spells in JSON, if one of the
// wanted types is that.
func spelled(s string, want []string) (any, bool) {
	switch {
	case slices.Contains(want, "boolean") && (s == "true" || s == "false"):
		return s == "true", true
	case !numberForm.MatchString(s) || huge(s):
		return nil, false
	case slices.Contains(want, "number"):
		return json.Number(s), true
	case slices.Contains(want, "integer"):
		if f, err := strconv.ParseFloat(s, 64); err != nil || f != math.Trunc(f) {
			return nil, false
		}
		return json.Number(s), true
	}
	return nil, false
}

func at(doc any, path []string) any {
	for _, key := range path {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			doc = v[i]
		default:
			return nil
		}
	}
	return doc
}

func put(doc any, path []string, value any) bool {
	if len(path) == 0 {
		return false
	}
	last := path[len(path)-1]
	switch v := at(doc, path[:len(path)-1]).(type) {
	case map[string]any:
		v[last] = value
		return true
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i >= 0 && i < len(v) {
			v[i] = value
			return true
		}
	}
	return false
}

// huge reports whether a number in JSON has so many digits or so large an
// exponent that exact arithmetic with it would cost without bound.
func huge(s string) bool {
	if len(s) > 400 {
		return true
	}
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return false
	}
	exp, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
	return err != nil || exp > 400 || exp < -400
}

// hugeNumbers adds a fault for every number in v that is refused before the
// validator computes with it.
func hugeNumbers(path string, v any, faults []Fault) []Fault {
	switch v := v.(type) {
	case json.Number:
		if huge(string(v)) {
			faults = append(faults, Fault{Field: path, Want: "the number is out of range: " + clip(string(v), 40)})
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			faults = hugeNumbers(join(path, k), v[k], faults)
		}
	case []any:
		for i, e := range v {
			faults = hugeNumbers(path+"["+strconv.Itoa(i)+"]", e, faults)
		}
	}
	return faults
}
