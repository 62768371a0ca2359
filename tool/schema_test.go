package tool_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
	"pgregory.net/rapid"
)

// TestFaultTexts: what each kind of fault tells the model.
func TestFaultTexts(t *testing.T) {
	conform.Covers(t, "T-17", "T-18")
	for _, c := range []struct{ schema, value, want string }{
		{`{"minimum":3}`, `2`, "v: must be at least 3; got number 2"},
		{`{"maximum":3}`, `3.5`, "v: must be at most 3; got number 3.5"},
		{`{"exclusiveMinimum":3}`, `3`, "v: must be more than 3; got number 3"},
		{`{"exclusiveMaximum":3}`, `3`, "v: must be less than 3; got number 3"},
		{`{"minLength":2}`, `"é"`, `v: must have at least 2 characters, has 1; got string "é"`},
		{`{"maxLength":2}`, `"abc"`, `v: must have at most 2 characters, has 3; got string "abc"`},
		{`{"pattern":"^a"}`, `"b"`, `v: must match the pattern "^a"; got string "b"`},
		{`{"enum":["a",1,null]}`, `"b"`, `v: must be one of 'a', 1, null; got string "b"`},
		{`{"const":{"a":1}}`, `2`, `v: must be {"a":1}; got number 2`},
		{`{"minItems":1}`, `[]`, "v: must have at least 1 items, has 0; got array of 0"},
		{`{"maxItems":1}`, `[1,2]`, "v: must have at most 1 items, has 2; got array of 2"},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, "v: must have at most 1 properties, has 2; got object"},
		{`{"type":["string","null"]}`, `true`, "v: expected string or null, got boolean true"},
		{`false`, `1`, "v: not allowed here; got number 1"},
		{`{"items":{"type":"integer"}}`, `[1,"x",2.5]`, "v[1]: expected integer, got string \"x\"\n- v[2]: expected integer, got number 2.5"},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, `[1,2]`, "v[0]: expected string, got number 1\n- v[1]: not allowed here"},
		{`{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":{"type":"boolean"}}`, `{"x1":1,"y":2}`, "v.x1: expected string, got number 1\n- v.y: expected boolean, got number 2"},
		{`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "v.a: required, but missing\n- v.b: required, but missing"},
		{`{"anyOf":[{"type":"string"},{"properties":{"a":{"type":"string"}},"type":"object"}]}`, `{"a":1}`, "v: expected string, got object\n- v.a: expected string, got number 1"},
		// Rules without a text of their own: the validator's.
		{`{"uniqueItems":true}`, `[1,1]`, "uniqueItems"},
		{`{"not":{"type":"string"}}`, `"x"`, "not"},
		{`{"multipleOf":2}`, `3`, "multipleOf"},
	} {
		r := registry(t, withSchema(`{"type":"object","properties":{"v":`+c.schema+`}}`))
		_, err := r.Validate("T", json.RawMessage(`{"v":`+c.value+`}`))
		var ie *tool.InputError
		if !errors.As(err, &ie) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: %v\nwant %s", c.schema, c.value, err, c.want)
		}
	}
}

// TestSchemaReferences: references stay within the schema, and none makes the
// check of an input endless.
func TestSchemaReferences(t *testing.T) {
	good := []string{
		`{"properties":{"a":{"$ref":"#/$defs/a%20b~1c"}},"$defs":{"a b/c":{"type":"string"}}}`,
		`{"properties":{"tree":{"$ref":"#/definitions/node"}},"definitions":{"node":{"type":"object","properties":{"next":{"$ref":"#/definitions/node"},"all":{"type":"array","items":{"$ref":"#"}}}}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/a.json","properties":{"p":{"properties":{"$id":{"type":"string"}}}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{}}`,
	}
	for _, schema := range good {
		registry(t, withSchema(schema))
	}
	for schema, want := range map[string]string{
		`{"allOf":[{"$ref":"#"}]}`: "leads back",
		`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`: "leads back",
		`{"properties":{"a":{"$id":"https://example.com/","if":{"$ref":"#"}}},"$ref":"#/properties/a"}`:                             "leads back",
		`{"properties":{"a":{"$ref":"#/$defs/none"}}}`:                                                                              "leads nowhere",
		`{"properties":{"a":{"$ref":"https://example.com"}}}`:                                                                       "not of the form",
		`{"properties":{"a":{"$ref":"other.json#/a"}}}`:                                                                             "not of the form",
		`{"properties":{"a":{"$dynamicRef":"#a"}}}`:                                                                                 "not supported",
		`{"properties":{"a":{"items":{"type":"strnig"}}}}`:                                                                          `"#/properties/a/items/type"`,
		`{"properties":{"a":{"pattern":"("}}}`:                                                                                      "pattern",
		`{"properties":{"a":{"minLength":"x"}}}`:                                                                                    "minLength",
		`{"properties":{"a":{"required":"x"}},"required":[1]}`:                                                                      "required",
	} {
		_, err := tool.NewRegistry(withSchema(schema))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
	// A named part does not change where references start.
	r := registry(t, withSchema(`{"properties":{"a":{"$id":"https://example.com/x","properties":{"b":{"$ref":"#/$defs/s"}}}},"$defs":{"s":{"type":"string"}}}`))
	if _, err := r.Validate("T", json.RawMessage(`{"a":{"b":[]}}`)); err == nil || !strings.Contains(err.Error(), "a.b: expected string") {
		t.Errorf("got %v", err)
	}
}

// schemas draws a schema without references.
func schemas(t *rapid.T, depth int) any {
	s := map[string]any{}
	sub := func() any { return schemas(t, depth-1) }
	small := rapid.IntRange(0, 3)
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	keys := []string{"type", "types", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "minItems", "maxItems", "required", "minProperties", "maxProperties", "none"}
	if depth > 0 {
		keys = append(keys, "properties", "additionalProperties", "closed", "patternProperties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "not", "if", "contains", "uniqueItems", "propertyNames", "dependentRequired", "unevaluatedProperties")
	}
	for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 1, 3).Draw(t, "keys") {
		switch key {
		case "none":
		case "type":
			s["type"] = rapid.SampledFrom([]string{"string", "integer", "number", "object", "array", "null", "boolean"}).Draw(t, "type")
		case "types":
			s["type"] = []any{"null", rapid.SampledFrom([]string{"string", "integer", "object"}).Draw(t, "type")}
		case "enum":
			s["enum"] = []any{values(t, 1), values(t, 1)}
		case "const":
			s["const"] = values(t, 1)
		case "pattern":
			s["pattern"] = "^a"
		case "required":
			s["required"] = []any{name.Draw(t, "name")}
		case "dependentRequired":
			s[key] = map[string]any{name.Draw(t, "name"): []any{name.Draw(t, "other")}}
		case "properties", "patternProperties":
			s[key] = map[string]any{name.Draw(t, "name"): sub(), name.Draw(t, "name"): sub()}
		case "closed":
			s["additionalProperties"] = false
		case "additionalProperties", "items", "not", "contains", "propertyNames", "unevaluatedProperties":
			s[key] = sub()
		case "prefixItems", "allOf", "anyOf", "oneOf":
			s[key] = []any{sub(), sub()}
		case "if":
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case "uniqueItems":
			s[key] = true
		default:
			s[key] = small.Draw(t, key)
		}
	}
	return s
}

func values(t *rapid.T, depth int) any {
	kinds := []string{"null", "true", "int", "float", "string"}
	if depth > 0 {
		kinds = append(kinds, "array", "object", "object")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "true":
		return rapid.Bool().Draw(t, "bool")
	case "int":
		return rapid.IntRange(-1, 4).Draw(t, "int")
	case "float":
		return rapid.SampledFrom([]float64{0.5, 1.5, 2.0, 3.25}).Draw(t, "float")
	case "string":
		return rapid.SampledFrom([]string{"", "a", "ab", "é", "bcd", "x y"}).Draw(t, "string")
	case "array":
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			out = append(out, values(t, depth-1))
		}
		return out
	case "object":
		out := map[string]any{}
		for _, k := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 3).Draw(t, "keys") {
			out[k] = values(t, depth-1)
		}
		return out
	}
	return nil
}

// TestSchemaOracle: an input is accepted exactly when another validator accepts
// it, and what is refused has at least one fault.
func TestSchemaOracle(t *testing.T) {
	conform.Covers(t, "T-17")
	rapid.Check(t, func(t *rapid.T) {
		schema, _ := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"v": schemas(t, 2)}})
		input, _ := json.Marshal(map[string]any{"v": values(t, 3)})
		c := oracle.NewCompiler()
		doc, err := oracle.UnmarshalJSON(bytes.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("x:///s.json", doc); err != nil {
			t.Fatal(err)
		}
		want, err := c.Compile("x:///s.json")
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		value, _ := oracle.UnmarshalJSON(bytes.NewReader(input))
		r, err := tool.NewRegistry(withSchema(string(schema)))
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		_, err = r.Validate("T", input)
		var ie *tool.InputError
		if is := want.Validate(value) == nil; is != (err == nil) {
			t.Fatalf("%s\n%s: %v; the oracle: %v", schema, input, err, is)
		}
		if err != nil && (!errors.As(err, &ie) || len(ie.Faults) == 0 || slices.ContainsFunc(ie.Faults, func(f tool.Fault) bool { return f.Want == "" })) {
			t.Fatalf("%s\n%s: %v", schema, input, err)
		}
	})
}

// FuzzSchema: no schema and no input makes the check panic or endless.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		editLike, `{"allOf":[{"$ref":"#"}]}`, `{"properties":{"a":{"$ref":"#/properties/b"},"b":{"items":{"$ref":"#/properties/a"}}}}`,
		`{"$id":"a","$anchor":"x","properties":{"a":{"$ref":"#x"}}}`, `{"properties":{"a":{"enum":[null,{"b":[1e3]}],"const":null}}}`,
	} {
		f.Add([]byte(s), []byte(`{"a":[[["x"]]],"b":"1"}`))
	}
	f.Fuzz(func(t *testing.T, schema, input []byte) {
		r, err := tool.NewRegistry(withSchema(string(schema)))
		if err != nil {
			return
		}
		if _, err := r.Validate("T", input); err != nil && !strings.HasPrefix(err.Error(), "<tool_use_error>") {
			t.Errorf("error text %q", err)
		}
	})
}
