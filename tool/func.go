package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/turnwright/turnwright/message"
)

// Option changes what Func makes.
type Option func(*funcConfig)

type funcConfig struct {
	traits  Traits
	timeout time.Duration
	aliases []string
	fields  []fieldText
	open    bool
}

type fieldText struct{ name, text string }

// ReadOnly promises that the tool changes nothing: it sets all three traits
// (design decision 14). Without it a tool runs alone and is not repeated after
// a crash (T-34). It approves nothing: permission is still needed (T-189).
func ReadOnly() Option {
	return WithTraits(Traits{ReadOnly: true, Concurrent: true, Repeatable: true})
}

// WithTraits sets the traits one by one.
func WithTraits(t Traits) Option { return func(c *funcConfig) { c.traits = t } }

// Timeout bounds one call; a call that takes longer is an error result. 0, the
// default, is no bound.
func Timeout(d time.Duration) Option { return func(c *funcConfig) { c.timeout = d } }

// Alias adds old names that calls and rules may still use.
func Alias(names ...string) Option {
	return func(c *funcConfig) { c.aliases = append(c.aliases, names...) }
}

// FieldDescription sets the description of a top-level input field, as the
// struct tag jsonschema:"…" does; it wins over the tag.
func FieldDescription(field, text string) Option {
	return func(c *funcConfig) { c.fields = append(c.fields, fieldText{field, text}) }
}

// OpenInput lets unknown input properties pass instead of being refused (T-19).
func OpenInput() Option { return func(c *funcConfig) { c.open = true } }

// Func makes a tool of a Go function. In is a struct, or a map with string
// keys; its JSON Schema is inferred: names come from the json tags, fields
// without omitempty or omitzero are required, jsonschema:"text" describes a
// field. Out is
//
//   - string: the text of the result,
//   - *Result, Result: the result itself,
//   - message.Block, []message.Block: its content,
//   - anything else: its JSON as text (L-234), and as structured output too.
//
// An error of fn becomes an is_error tool_result with its text (L-137). A panic
// is returned as *PanicError. fn finds its Call with FromContext.
//
// Func fails when the name is not valid or In has no JSON Schema.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) (Tool, error) {
	fail := func(err error) (Tool, error) { return nil, fmt.Errorf("tool %q: %w", name, err) }
	if fn == nil {
		return fail(errors.New("the function is nil"))
	}
	var c funcConfig
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	schema, err := inferSchema[In](c)
	if err != nil {
		return fail(err)
	}
	spec := Spec{
		Name: name, Description: description, InputSchema: schema,
		Traits: c.traits, Timeout: c.timeout, Aliases: c.aliases, OpenInput: c.open,
	}
	t := &funcTool[In, Out]{spec: spec, fn: fn}
	if _, err := newEntry(t); err != nil { // what NewRegistry would find is said here
		return nil, err
	}
	return t, nil
}

func inferSchema[In any](c funcConfig) (json.RawMessage, error) {
	t := reflect.TypeFor[In]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil, fmt.Errorf("input type %v: must be a struct or a map", reflect.TypeFor[In]())
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, // any value, not an array of numbers
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}})
	if err != nil {
		return nil, fmt.Errorf("input type %v: %w", reflect.TypeFor[In](), err)
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("input type %v: its JSON is no object", reflect.TypeFor[In]())
	}
	if c.open && t.Kind() == reflect.Struct {
		schema.AdditionalProperties = nil
	}
	for _, f := range c.fields {
		p := schema.Properties[f.name]
		if p == nil {
			return nil, fmt.Errorf("description of field %q: the input has no such field", f.name)
		}
		p.Description = f.text
	}
	return json.Marshal(schema)
}

type funcTool[In, Out any] struct {
	spec Spec
	fn   func(context.Context, In) (Out, error)
}

func (t *funcTool[In, Out]) Spec() Spec { return t.spec }

func (t *funcTool[In, Out]) Call(ctx context.Context, c *Call) (r *Result, err error) {
	var in In
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, &InputError{Tool: t.spec.Name, Faults: []Fault{{Want: err.Error()}}}
	}
	out, err := t.run(context.WithValue(ctx, callKey{}, c), in)
	if err != nil {
		return nil, err
	}
	r, err = resultOf(out)
	if err != nil {
		return nil, fmt.Errorf("%s: result: %w", t.spec.Name, err)
	}
	return r, nil
}

func (t *funcTool[In, Out]) run(ctx context.Context, in In) (out Out, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Tool: t.spec.Name, Value: v, Stack: debug.Stack()}
		}
	}()
	return t.fn(ctx, in)
}

// PanicError says that a tool panicked. Its text, the content of the error
// result, names the tool and what it panicked with; the stack is for logs.
type PanicError struct {
	Tool  string
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("tool %s panicked: %v", e.Tool, e.Value) }

// Unwrap returns the value that the tool panicked with, if it is an error.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

func resultOf(out any) (*Result, error) {
	switch v := out.(type) {
	case string:
		return Text(v), nil
	case *Result:
		if v == nil {
			return &Result{}, nil
		}
		return v, nil
	case Result:
		return &v, nil
	case message.Block:
		return &Result{Content: []message.Block{v}}, nil
	case []message.Block:
		return &Result{Content: v}, nil
	}
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	return &Result{Content: []message.Block{message.NewText(string(raw))}, Structured: raw}, nil
}

type callKey struct{}

// FromContext returns the call that a function given to Func is running for:
// its Key, its Env. ok is false outside such a function.
func FromContext(ctx context.Context) (c *Call, ok bool) {
	c, ok = ctx.Value(callKey{}).(*Call)
	return c, ok
}
