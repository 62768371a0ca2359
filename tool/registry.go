package tool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/turnwright/turnwright/message"
)

// Registry is the set of tools of a session, with their compiled input
// schemas. It does not change; it may be used from several goroutines.
type Registry struct {
	entries []*entry
	byName  map[string]*entry // canonical names and aliases
	defs    []json.RawMessage
	names   []string
}

type entry struct {
	tool   Tool
	spec   Spec
	schema *inputSchema
	def    json.RawMessage // API definition
}

// NewRegistry makes a registry of tools, in the given order. It fails, with
// every fault at once, for a nil tool, a name or alias that is not 1 to 128
// letters, digits, "_" or "-" (T-179), two tools of one name, and an input
// schema that does not describe an object or does not compile. An alias that
// is also a tool's name means that tool.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: map[string]*entry{}}
	var errs []error
	for i, t := range tools {
		if t == nil {
			errs = append(errs, fmt.Errorf("tool %d: nil", i))
			continue
		}
		e, err := newEntry(t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, dup := r.byName[e.spec.Name]; dup {
			errs = append(errs, fmt.Errorf("tool %q: two tools have this name", e.spec.Name))
			continue
		}
		r.add(e)
	}
	if err := r.addAliases(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

func newEntry(t Tool) (*entry, error) {
	spec := t.Spec()
	for _, name := range append([]string{spec.Name}, spec.Aliases...) {
		if !isName(name, 128, "_-") {
			return nil, fmt.Errorf("tool %q: name %q must be 1 to 128 letters, digits, \"_\" or \"-\"", spec.Name, clip(name, 200))
		}
	}
	if spec.Timeout < 0 {
		return nil, fmt.Errorf("tool %q: timeout %v is negative", spec.Name, spec.Timeout)
	}
	schema, err := compile(spec)
	if err != nil {
		return nil, fmt.Errorf("tool %q: input schema: %w", spec.Name, err)
	}
	spec.InputSchema = schema.api
	def, err := message.Encode(struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}{spec.Name, spec.Description, schema.api})
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", spec.Name, err)
	}
	return &entry{tool: t, spec: spec, schema: schema, def: def}, nil
}

func (r *Registry) add(e *entry) {
	r.entries = append(r.entries, e)
	r.byName[e.spec.Name] = e
	r.names = append(r.names, e.spec.Name)
	r.defs = append(r.defs, e.def)
}

// addAliases comes after all names, so that a name wins over an alias.
func (r *Registry) addAliases() error {
	var errs []error
	for _, e := range r.entries {
		for _, alias := range e.spec.Aliases {
			switch old := r.byName[alias]; {
			case old == nil:
				r.byName[alias] = e
			case old != e && old.spec.Name != alias:
				errs = append(errs, fmt.Errorf("tool %q: alias %q is also an alias of %q", e.spec.Name, alias, old.spec.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// Filter returns the registry without the tools for which keep is false.
func (r *Registry) Filter(keep func(Spec) bool) *Registry {
	f := &Registry{byName: map[string]*entry{}}
	for _, e := range r.entries {
		if keep(e.spec) {
			f.add(e)
		}
	}
	_ = f.addAliases() // a subset has no clash that the whole did not have
	return f
}

// Get returns the tool of that name or alias (T-4) and its specification.
// Names are case-sensitive (T-1).
func (r *Registry) Get(name string) (Tool, Spec, bool) {
	e, ok := r.byName[name]
	if !ok {
		return nil, Spec{}, false
	}
	return e.tool, e.spec, true
}

// Names returns the canonical names in the order of NewRegistry. The caller
// must not change the slice.
func (r *Registry) Names() []string { return r.names }

// Definitions returns the API's tool definitions in the order of NewRegistry:
// always the same bytes, so that a request's prefix stays cached. The caller
// must not change them.
func (r *Registry) Definitions() []json.RawMessage { return r.defs }

// Validate checks the input of a call against the tool's schema and returns it
// with scalars that were sent as strings converted where nothing is lost
// (T-21). Unknown properties are refused unless the tool has OpenInput (T-19).
// Errors are *UnknownToolError and *InputError; the latter holds every fault.
func (r *Registry) Validate(name string, input json.RawMessage) (json.RawMessage, error) {
	e, ok := r.byName[name]
	if !ok {
		return nil, &UnknownToolError{Name: name, Known: r.names}
	}
	return e.schema.check(e.spec.Name, input)
}

// Prepare is Validate and then, for a tool that is a Normalizer, Normalize: the
// form of the input that hooks, rules and the call get (T-22).
func (r *Registry) Prepare(env *Env, name string, input json.RawMessage) (json.RawMessage, error) {
	input, err := r.Validate(name, input)
	if err != nil {
		return nil, err
	}
	e := r.byName[name]
	n, ok := e.tool.(Normalizer)
	if !ok {
		return input, nil
	}
	out, err := n.Normalize(env, input)
	if err != nil {
		return nil, &InputError{Tool: e.spec.Name, Faults: []Fault{{Want: err.Error()}}}
	}
	return out, nil
}
