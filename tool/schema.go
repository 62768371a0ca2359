package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/turnwright/turnwright/message"
)

// inputSchema is a tool's input schema in the form that the API accepts and in
// the forms that inputs are checked with.
type inputSchema struct {
	api      json.RawMessage
	resolved *jsonschema.Resolved // decides
	doc      map[string]any       // explains what the other refuses
	props    map[string]any       // top-level properties, for error texts
	names    []string             // their names, sorted
}

// isName reports whether s is 1 to limit letters, digits or bytes of more.
func isName(s string, limit int, more string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

// compile reads spec.InputSchema. The API wants "type":"object" at the top and
// no oneOf, anyOf or allOf there: the type is added where it is missing, and
// the three are kept for checking only. Unless the tool has an open input, a
// schema that says nothing of further properties forbids them (T-19).
func compile(spec Spec) (*inputSchema, error) {
	raw := spec.InputSchema
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	check, ok := decodeObject(raw)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	apiRaw, err := apiSchema(raw, check)
	if err != nil {
		return nil, err
	}
	check["type"] = "object"
	props, _ := check["properties"].(map[string]any)
	s := &inputSchema{api: apiRaw, doc: check, props: props}
	for name := range props {
		if !isName(name, 64, "_.-") {
			return nil, fmt.Errorf("property %q: the API accepts only names of 1 to 64 letters, digits, \"_\", \".\" and \"-\"", clip(name, 200))
		}
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	if !spec.OpenInput && !saysAboutRest(check) {
		check["additionalProperties"] = false
	}

	s.resolved, err = resolve(check)
	return s, err
}

// resolve prepares a schema for checking. A schema is data: references that
// lead out of it are an error, and so are some that the validator would follow
// for ever.
func resolve(doc map[string]any) (*jsonschema.Resolved, error) {
	if err := prepare(doc); err != nil {
		return nil, err
	}
	if v, ok := doc["$schema"].(string); ok && !strings.Contains(v, "json-schema.org/draft-07/") {
		// What tools use of the other drafts is in the latest one too.
		latest := maps.Clone(doc)
		delete(latest, "$schema")
		doc = latest
	}
	raw, err := message.Encode(doc)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	return schema.Resolve(nil)
}

// apiSchema returns raw in canonical form with what the API does not accept at
// the top mended; the order of keys is kept where nothing has to be mended.
func apiSchema(raw json.RawMessage, doc map[string]any) (json.RawMessage, error) {
	switch t := doc["type"].(type) {
	case nil:
		if _, has := doc["type"]; has {
			return nil, errors.New("\"type\" is null, must be \"object\"")
		}
	case string:
		if t != "object" {
			return nil, fmt.Errorf("\"type\" is %q, must be \"object\"", t)
		}
	case []any:
		if !slices.Contains(t, any("object")) {
			return nil, fmt.Errorf("\"type\" is %v, must be \"object\"", t)
		}
	default:
		return nil, fmt.Errorf("\"type\" is %v, must be \"object\"", t)
	}
	mend := doc["type"] != any("object")
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		_, has := doc[key]
		mend = mend || has
	}
	if !mend {
		return message.Canonical(raw)
	}
	top := map[string]any{}
	for k, v := range doc {
		if k != "oneOf" && k != "anyOf" && k != "allOf" {
			top[k] = v
		}
	}
	top["type"] = "object"
	return message.Encode(top)
}

// saysAboutRest reports whether the schema itself says what further properties
// are; combinations may name properties that are not at the top.
func saysAboutRest(doc map[string]any) bool {
	for _, key := range []string{
		"additionalProperties", "unevaluatedProperties", "patternProperties",
		"oneOf", "anyOf", "allOf", "if", "dependentSchemas", "$ref", "$dynamicRef",
	} {
		if _, has := doc[key]; has {
			return true
		}
	}
	return false
}

// check validates input and converts strings to scalars.
func (s *inputSchema) check(name string, input json.RawMessage) (json.RawMessage, error) {
	refuse := func(faults ...Fault) (json.RawMessage, error) {
		return nil, &InputError{Tool: name, Faults: faults}
	}
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	doc, err := decode(input)
	if err != nil {
		return refuse(Fault{Want: "must be a JSON object: " + clip(strings.ToValidUTF8(err.Error(), "\uFFFD"), 200)})
	}
	if _, ok := doc.(map[string]any); !ok {
		return refuse(Fault{Want: "must be a JSON object, got " + describe(doc)})
	}
	if f := hugeNumbers("", doc, nil); len(f) > 0 {
		return refuse(f...)
	}

	changed := false
	// Each round may uncover faults behind the strings that it converted, so it
	// is repeated while something changes; the bound is only a safeguard.
	for range 8 {
		if err = s.resolved.Validate(plain(doc)); err == nil {
			break
		}
		var did bool
		if doc, did = coerce(doc, explain(s.doc, doc)); !did {
			break
		}
		changed = true
	}
	if err != nil {
		if f := s.faults(doc, explain(s.doc, doc)); len(f) > 0 {
			return refuse(f...)
		}
		// It breaks a rule that explain does not know.
		return refuse(Fault{Want: clip(strings.ToValidUTF8(err.Error(), "\uFFFD"), 500)})
	}
	if !changed {
		return input, nil
	}
	out, err := message.Encode(doc)
	if err != nil {
		return refuse(Fault{Want: err.Error()})
	}
	return out, nil
}

// plain returns a copy of a document with its numbers as Go has them, because
// the validator takes a json.Number for a string in some places.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	}
	return v
}

// decode reads one JSON value and keeps its numbers as they are written.
func decode(raw json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

func decodeObject(raw json.RawMessage) (map[string]any, bool) {
	v, err := decode(raw)
	if err != nil {
		return nil, false
	}
	m, ok := v.(map[string]any)
	return m, ok
}
