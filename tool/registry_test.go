package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/tool"
	"pgregory.net/rapid"
)

// fake is a tool that is only a specification.
type fake struct{ spec tool.Spec }

func (f fake) Spec() tool.Spec { return f.spec }

func (fake) Call(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text("called"), nil }

func named(name string, aliases ...string) tool.Tool {
	return fake{tool.Spec{Name: name, Aliases: aliases}}
}

func withSchema(schema string) tool.Tool {
	return fake{tool.Spec{Name: "T", InputSchema: json.RawMessage(schema)}}
}

func registry(t testing.TB, tools ...tool.Tool) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewRegistryErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		tools []tool.Tool
		want  []string
	}{
		{"duplicate", []tool.Tool{named("A"), named("A")}, []string{`"A"`, "two tools"}},
		{"all faults at once", []tool.Tool{named("a b"), nil, named("ü")}, []string{`"a b"`, "tool 1: nil", `"ü"`}},
		{"empty name", []tool.Tool{named("")}, []string{`""`}},
		{"name too long", []tool.Tool{named(strings.Repeat("x", 129))}, []string{"128"}},
		{"bad alias", []tool.Tool{named("A", "old name")}, []string{`"A"`, `"old name"`}},
		{"alias of two", []tool.Tool{named("A", "x"), named("B", "x")}, []string{`"x"`, `"A"`, `"B"`}},
		{"schema of a string", []tool.Tool{withSchema(`{"type":"string"}`)}, []string{`"T"`, `"string"`}},
		{"schema no object", []tool.Tool{withSchema(`[]`)}, []string{"JSON object"}},
		{"schema broken", []tool.Tool{withSchema(`{"type":`)}, []string{"JSON object"}},
		{"schema wrong inside", []tool.Tool{withSchema(`{"type":"object","properties":{"a":{"type":"strin"}}}`)}, []string{`"T"`}},
		{"property name", []tool.Tool{withSchema(`{"type":"object","properties":{"größe":{}}}`)}, []string{"größe"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conform.Covers(t, "T-179")
			r, err := tool.NewRegistry(test.tools...)
			if err == nil {
				t.Fatalf("got %q, want an error", r.Names())
			}
			for _, w := range test.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in the error: %v", w, err)
				}
			}
		})
	}
}

// TestSchemaIsOnlyData: a reference in a schema reads no file.
func TestSchemaIsOnlyData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(path, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "file://" + filepath.ToSlash(path)
	if _, err := tool.NewRegistry(withSchema(`{"type":"object","properties":{"a":{"$ref":"` + url + `"}}}`)); err == nil || !strings.Contains(err.Error(), "other.json") {
		t.Errorf("got %v", err)
	}
}

func TestRegistryNames(t *testing.T) {
	conform.Covers(t, "T-1", "T-4")
	r := registry(t, named("Read"), named("Agent", "Task"), named("Bash", "Read"))
	for name, want := range map[string]string{"Read": "Read", "Agent": "Agent", "Task": "Agent", "Bash": "Bash", "read": "", "": ""} {
		_, spec, ok := r.Get(name)
		if spec.Name != want || ok != (want != "") {
			t.Errorf("Get(%q) = %q, %v", name, spec.Name, ok)
		}
	}
	if got := r.Names(); !slices.Equal(got, []string{"Read", "Agent", "Bash"}) {
		t.Errorf("names %q", got)
	}
	f := r.Filter(func(s tool.Spec) bool { return s.Name != "Read" })
	if _, spec, ok := f.Get("Read"); !ok || spec.Name != "Bash" {
		t.Errorf("without the tool Read its name is an alias of Bash; got %q", spec.Name)
	}
	if got := f.Names(); !slices.Equal(got, []string{"Agent", "Bash"}) || len(f.Definitions()) != 2 {
		t.Errorf("filtered names %q", got)
	}
}

func TestDefinitions(t *testing.T) {
	r := registry(t,
		fake{tool.Spec{Name: "B", Description: "second  <b> & more", InputSchema: json.RawMessage("{ \"type\": \"object\",\n\"properties\": {\"z\":{\"type\":\"string\"},\"a\":{}} }")}},
		named("A"),
		withSchema(`{"properties":{"x":{"type":"number","maximum":1e2}},"anyOf":[{"required":["x"]},{"required":["y"]}]}`),
	)
	want := []string{
		`{"name":"B","description":"second  <b> & more","input_schema":{"type":"object","properties":{"z":{"type":"string"},"a":{}}}}`,
		`{"name":"A","input_schema":{"type":"object","properties":{}}}`,
		`{"name":"T","input_schema":{"properties":{"x":{"maximum":1e2,"type":"number"}},"type":"object"}}`,
	}
	for i, d := range r.Definitions() {
		if string(d) != want[i] {
			t.Errorf("definition %d is\n%s\nwant\n%s", i, d, want[i])
		}
	}
	// The combination that the API does not take is still checked.
	if _, err := r.Validate("T", json.RawMessage(`{}`)); err == nil {
		t.Error("anyOf at the top is not checked")
	}
}

const editLike = `{"type":"object","properties":{
	"file_path":{"type":"string"},"limit":{"type":"integer","minimum":1},"ratio":{"type":"number"},"all":{"type":"boolean"},
	"mode":{"enum":["a","b"]},"maybe":{"type":["null","integer"]},"text_or_number":{"type":["string","number"]},
	"todos":{"type":"array","items":{"$ref":"#/$defs/todo"}},
	"any":{"anyOf":[{"type":"integer"},{"type":"boolean"}]}},
	"$defs":{"todo":{"type":"object","properties":{"id":{"type":"integer"},"done":{"type":"boolean"}},"required":["id"],"additionalProperties":false}},
	"required":["file_path"]}`

func TestValidate(t *testing.T) {
	r := registry(t, withSchema(editLike), fake{tool.Spec{Name: "Open", OpenInput: true}}, fake{tool.Spec{Name: "None"}})
	t.Run("as it is", func(t *testing.T) {
		for _, in := range []string{`{"file_path":"x"}`, `{ "limit": 3.0, "file_path":"\u00e9", "text_or_number":"5" }`} {
			got, err := r.Validate("T", json.RawMessage(in))
			if err != nil || string(got) != in {
				t.Errorf("%s became %s, %v", in, got, err)
			}
		}
	})
	t.Run("strings as scalars", func(t *testing.T) {
		conform.Covers(t, "T-21")
		for in, want := range map[string]string{
			`{"file_path":"x","limit":"120000"}`:                                `{"file_path":"x","limit":120000}`,
			`{"file_path":"x","all":"true"}`:                                    `{"all":true,"file_path":"x"}`,
			`{"file_path":"x","ratio":"-1.5e3"}`:                                `{"file_path":"x","ratio":-1.5e3}`,
			`{"file_path":"x","maybe":"7"}`:                                     `{"file_path":"x","maybe":7}`,
			`{"file_path":"x","any":"false"}`:                                   `{"any":false,"file_path":"x"}`,
			`{"file_path":"5","text_or_number":"6"}`:                            `{"file_path":"5","text_or_number":"6"}`,
			`{"file_path":"x","todos":[{"id":"1","done":"false"},{"id":"22"}]}`: `{"file_path":"x","todos":[{"done":false,"id":1},{"id":22}]}`,
			`{"file_path":"x","limit":"9007199254740993"}`:                      `{"file_path":"x","limit":9007199254740993}`,
		} {
			got, err := r.Validate("T", json.RawMessage(in))
			if err != nil || string(got) != want {
				t.Errorf("%s became %s, %v; want %s", in, got, err, want)
			}
		}
		for _, in := range []string{
			`{"file_path":"x","limit":"1.5"}`, `{"file_path":"x","limit":" 5"}`, `{"file_path":"x","limit":"0x10"}`, `{"file_path":"x","limit":""}`,
			`{"file_path":"x","limit":"05"}`, `{"file_path":"x","all":"True"}`, `{"file_path":"x","all":"1"}`, `{"file_path":"x","ratio":"NaN"}`,
			`{"file_path":"x","ratio":"1e999999999"}`, `{"file_path":5}`, `{"file_path":"x","limit":"0"}`,
		} {
			if got, err := r.Validate("T", json.RawMessage(in)); err == nil {
				t.Errorf("%s was accepted as %s", in, got)
			}
		}
	})
	t.Run("all faults", func(t *testing.T) {
		conform.Covers(t, "T-18", "T-17")
		_, err := r.Validate("T", json.RawMessage(`{"limit":0,"all":"maybe","mode":"c","bogus":1,"todos":[{"id":1},{"done":3,"x":1}]}`))
		var ie *tool.InputError
		if !errors.As(err, &ie) || ie.Tool != "T" {
			t.Fatalf("got %v", err)
		}
		var fields []string
		for _, f := range ie.Faults {
			fields = append(fields, f.Field)
		}
		if want := []string{"all", "bogus", "file_path", "limit", "mode", "todos[1].done", "todos[1].id", "todos[1].x"}; !slices.Equal(fields, want) {
			t.Errorf("fields %q\nwant   %q", fields, want)
		}
		text := err.Error()
		for _, part := range []string{
			"<tool_use_error>The input of T", "</tool_use_error>", `all: expected boolean, got string "maybe"`,
			"bogus: unknown property; known are all, any, file_path", "file_path: required, but missing; expected string",
			"todos[1].id: required, but missing", "'a', 'b'",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in\n%s", part, text)
			}
		}
	})
	t.Run("unknown properties", func(t *testing.T) {
		conform.Covers(t, "T-19")
		if _, err := r.Validate("None", json.RawMessage(`{"a":1}`)); err == nil || !strings.Contains(err.Error(), "a: unknown property") {
			t.Errorf("got %v", err)
		}
		if got, err := r.Validate("Open", json.RawMessage(`{"a":1}`)); err != nil || string(got) != `{"a":1}` {
			t.Errorf("got %s, %v", got, err)
		}
	})
	t.Run("no object", func(t *testing.T) {
		conform.Covers(t, "T-17")
		for _, in := range []string{`[]`, `"x"`, `null`, `{"a":`, `{} {}`, `5`, "\xff"} {
			if got, err := r.Validate("Open", json.RawMessage(in)); err == nil || !strings.Contains(err.Error(), "JSON object") {
				t.Errorf("%q: got %s, %v", in, got, err)
			}
		}
		if got, err := r.Validate("None", nil); err != nil || string(got) != "{}" {
			t.Errorf("no input: got %s, %v", got, err)
		}
	})
	t.Run("unknown tool", func(t *testing.T) {
		conform.Covers(t, "T-16", "T-18", "L-137")
		_, err := r.Validate("Raed", json.RawMessage(`{}`))
		var ue *tool.UnknownToolError
		if !errors.As(err, &ue) || ue.Name != "Raed" {
			t.Fatalf("got %v", err)
		}
		if text := err.Error(); !strings.HasPrefix(text, "<tool_use_error>") || !strings.Contains(text, `"Raed"`) || !strings.Contains(text, "T, Open, None") {
			t.Errorf("text %q", text)
		}
	})
	t.Run("hostile numbers", func(t *testing.T) {
		for _, in := range []string{`{"file_path":"x","ratio":1e999999999}`, `{"file_path":"x","limit":` + strings.Repeat("9", 100_000) + `}`} {
			_, err := r.Validate("T", json.RawMessage(in))
			if err == nil || !strings.Contains(err.Error(), "out of range") || len(err.Error()) > 1000 {
				t.Errorf("%.60s: got %.200v", in, err)
			}
		}
	})
}

// normal makes the field path absolute in the simplest way.
type normal struct{ fake }

func (normal) Normalize(env *tool.Env, input json.RawMessage) (json.RawMessage, error) {
	if string(input) == `{"p":"bad"}` {
		return nil, errors.New("p: is bad")
	}
	return json.RawMessage(`{"p":"` + env.Dir + `"}`), nil
}

func TestPrepare(t *testing.T) {
	r := registry(t, normal{fake{tool.Spec{Name: "N", InputSchema: json.RawMessage(`{"type":"object","properties":{"p":{"type":"string"}}}`)}}}, named("Plain"))
	env := &tool.Env{Dir: "/work"}
	if got, err := r.Prepare(env, "N", json.RawMessage(`{"p":"x"}`)); err != nil || string(got) != `{"p":"/work"}` {
		t.Errorf("got %s, %v", got, err)
	}
	var ie *tool.InputError
	if _, err := r.Prepare(env, "N", json.RawMessage(`{"p":"bad"}`)); !errors.As(err, &ie) || !strings.Contains(err.Error(), "p: is bad") {
		t.Errorf("got %v", err)
	}
	if _, err := r.Prepare(env, "N", json.RawMessage(`{"p":1}`)); !errors.As(err, &ie) {
		t.Errorf("got %v", err)
	}
	if got, err := r.Prepare(env, "Plain", json.RawMessage(`{}`)); err != nil || string(got) != `{}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestCoercionIsLossless compares with the plain reading of the string: what
// is accepted is exactly the JSON scalar that the string spells.
func TestCoercionIsLossless(t *testing.T) {
	conform.Covers(t, "T-21")
	r := registry(t, withSchema(`{"type":"object","properties":{"v":{"type":["number","boolean"]}}}`))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching(`-?[0-9]{1,6}(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?`), rapid.StringMatching(`true|false|[ +.x0-9a-f]{0,5}`)).Draw(t, "s")
		in, _ := json.Marshal(map[string]string{"v": s})
		got, err := r.Validate("T", in)
		scalar := json.Valid([]byte(s)) && strings.TrimSpace(s) == s && s != "null" && s != ""
		if (err == nil) != scalar {
			t.Fatalf("%q: got %s, %v", s, got, err)
		}
		if err == nil && string(got) != `{"v":`+s+`}` {
			t.Fatalf("%q became %s", s, got)
		}
	})
}

func FuzzValidate(f *testing.F) {
	r := registry(f, withSchema(editLike))
	for _, s := range []string{`{"file_path":"x","limit":"3"}`, `{"todos":[{"id":"1"}]}`, `{"any":"1e5"}`, `[`, `{"file_path":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := r.Validate("T", in)
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "<tool_use_error>") {
				t.Errorf("error text %q", text)
			}
			return
		}
		again, err := r.Validate("T", got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s was accepted as %s, and that as %s, %v", in, got, again, err)
		}
	})
}
