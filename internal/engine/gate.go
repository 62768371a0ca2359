package engine

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// gate asks the rules and the mode about a call (P-27).
func (s *Session) gate(t tool.Tool, spec tool.Spec, mode permission.Mode, input json.RawMessage) (permission.Decision, error) {
	policy := s.cfg.Gate
	if mode != "" && mode != policy.Mode {
		p, err := policy.WithMode(mode)
		if err != nil {
			return permission.Decision{}, err
		}
		policy = p
	}
	r := permission.Request{Tool: spec.Name, ReadOnly: spec.Traits.ReadOnly, Input: input}
	if a, ok := t.(tool.Accesser); ok {
		accesses, err := a.Accesses(input)
		if err != nil {
			return permission.Decision{}, err
		}
		r.Accesses = accesses
	}
	return policy.Decide(r), nil
}

// offered are the tools that the model sees: those that no deny rule removes
// (T-10).
func offered(cfg *Config) *tool.Registry {
	return cfg.Tools.Filter(func(spec tool.Spec) bool { return !cfg.Gate.Removed(spec.Name) })
}

// initTools are the names that init lists (M-18): Agent is called Task there (T-5).
func initTools(r *tool.Registry) []string {
	names := slices.Clone(r.Names())
	for i, n := range names {
		if n == "Agent" {
			names[i] = "Task"
		}
	}
	if names == nil {
		names = []string{}
	}
	return names
}

// assemble fills in what comes from the history.
func (s *Session) assemble(r *model.Request) {
	o := history.Options{Model: r.Model, System: s.cfg.System, Tools: len(r.Tools)}
	switch s.cfg.Cache {
	case Cache1h:
		o.Cache = history.Cache1h
	case CacheOff:
		o.Cache = history.CacheOff
	}
	req := s.assembler.Assemble(s.machine.History().Items(), o)
	r.System = req.System
	r.Messages = make([]model.Message, len(req.Messages))
	for i, m := range req.Messages {
		r.Messages[i] = model.Message(m)
	}
	r.Marks = make([]model.Mark, len(req.Marks))
	for i, m := range req.Marks {
		r.Marks[i] = model.Mark{Where: model.Where(m.Where), Index: m.Index, Block: m.Block, TTL: m.TTL}
	}
}

// sortNotes orders the notes of a call, since they come from a map.
func sortNotes(notes []loop.StateNote) {
	slices.SortFunc(notes, func(a, b loop.StateNote) int { return strings.Compare(a.Key, b.Key) })
}
