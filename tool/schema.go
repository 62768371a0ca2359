package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/turnwright/turnwright/message"
)

// inputSchema is a tool's input schema in the form that the API accepts and in
// the form that inputs are checked with.
type inputSchema struct {
	api      json.RawMessage
	compiled *jsonschema.Schema
	props    map[string]any // top-level properties, for error texts
	names    []string       // their names, sorted
}

var propertyForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

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
	s := &inputSchema{api: apiRaw, props: props}
	for name := range props {
		if !propertyForm.MatchString(name) {
			return nil, fmt.Errorf("property %q: the API accepts only names of 1 to 64 letters, digits, \"_\", \".\" and \"-\"", clip(name, 200))
		}
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	if !spec.OpenInput && !saysAboutRest(check) {
		check["additionalProperties"] = false
	}

	c := jsonschema.NewCompiler()
	// A schema is data: references must not read files or the network.
	c.UseLoader(jsonschema.SchemeURLLoader{})
	const url = "tool:///input.json"
	if err := c.AddResource(url, check); err != nil {
		return nil, err
	}
	s.compiled, err = c.Compile(url)
	return s, err
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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
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
		err = s.compiled.Validate(doc)
		var ve *jsonschema.ValidationError
		if !errors.As(err, &ve) {
			break
		}
		var did bool
		if doc, did = coerce(doc, ve); !did {
			break
		}
		changed = true
	}
	if err != nil {
		var ve *jsonschema.ValidationError
		if !errors.As(err, &ve) {
			return refuse(Fault{Want: err.Error()})
		}
		return refuse(s.faults(doc, ve)...)
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

func decodeObject(raw json.RawMessage) (map[string]any, bool) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, false
	}
	m, ok := v.(map[string]any)
	return m, ok
}
