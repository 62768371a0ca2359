package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// gate asks the rules and the mode about a call (P-27).
// byHook, if not nil, adds what hooks said of it.
func (s *Session) gate(t tool.Tool, spec tool.Spec, input json.RawMessage, byHook func(*permission.Request)) (permission.Decision, error) {
	s.refresh()
	r, err := s.inquiry(t, spec, input)
	if err != nil {
		return permission.Decision{}, err
	}
	if byHook != nil {
		byHook(&r)
	}
	return s.rules.get().Decide(r), nil
}

// approvals are what calls that were allowed access, as it was judged, from the moment
// that a call may run until it does.
type approvals struct {
	mu     sync.Mutex
	byCall map[string][]permission.Access
}

func (a *approvals) put(key string, accesses []permission.Access) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byCall == nil {
		a.byCall = map[string][]permission.Access{}
	}
	a.byCall[key] = accesses
}

func (a *approvals) take(key string) []permission.Access {
	a.mu.Lock()
	defer a.mu.Unlock()
	accesses := a.byCall[key]
	delete(a.byCall, key)
	return accesses
}

// inquiry is a call as rules see it.
func (s *Session) inquiry(t tool.Tool, spec tool.Spec, input json.RawMessage) (permission.Request, error) {
	r := permission.Request{Tool: spec.Name, ReadOnly: spec.Traits.ReadOnly, Input: input, Outputs: s.outputs.all()}
	if l, ok := t.(tool.Locator); ok {
		r.Dir = l.WorkDir(s.env())
	}
	if a, ok := t.(tool.Accesser); ok {
		accesses, err := a.Accesses(input)
		if err != nil {
			return r, err
		}
		r.Accesses = accesses
	}
	return r, nil
}

// outputs are the files that this session made for the model to read.
type outputs struct {
	mu    sync.Mutex
	paths []string
}

func (o *outputs) add(path string) {
	resolved, err := permission.Resolve(path)
	if err != nil {
		return // a store that keeps no files
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.paths, resolved) {
		o.paths = append(o.paths, resolved)
	}
}

func (o *outputs) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.paths[:len(o.paths):len(o.paths)]
}

// needsRead says which files must have been read before they are changed
// (T-64), by the rules at the start of a call.
func (s *Session) needsRead() func(string) bool {
	if !s.cfg.RelaxedEdits || s.rules.get().Removed("Read") {
		return nil // every file
	}
	if _, _, ok := s.cfg.Tools.Get("Read"); !ok {
		return nil
	}
	return s.rules.get().NeedsApprovalToRead
}

// question is what whoever approves gets to see of a call.
func (s *Session) question(c loop.Call, spec tool.Spec, input json.RawMessage, dec permission.Decision) AskRequest {
	r := AskRequest{
		ToolName: spec.Name, ToolUseID: c.ID, Input: input, Reason: dec.Reason, RequestID: NewID(),
		BlockedPath: dec.BlockedPath, Suggestions: s.admitted(dec.Suggestions), DisplayName: spec.Name,
	}
	var in struct {
		Command     string `json:"command"`
		FilePath    string `json:"file_path"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(input, &in) // other tools have other inputs
	r.Description = in.Description
	what := in.Command
	if what == "" {
		what = in.FilePath
	}
	r.Title = "Allow " + spec.Name + "?"
	if what = strings.Join(strings.Fields(what), " "); what != "" {
		if rs := []rune(what); len(rs) > titleSize {
			what = string(rs[:titleSize]) + "…"
		}
		r.Title = "Allow " + spec.Name + ": " + what + "?"
	}
	return r
}

// titleSize bounds the part of a title that comes from the input, in characters.
const titleSize = 200

// offered are the tools of the session: those that no deny rule of its start
// removes (T-10).
func (s *Session) offered() *tool.Registry {
	s.refresh()
	rules := s.rules.get()
	return s.cfg.Tools.Filter(func(spec tool.Spec) bool { return !rules.Removed(spec.Name) })
}

// shown are the tools that the model sees now: those of the session without what
// rules of answers and of changed settings have withdrawn since (T-10). It belongs
// to the actor.
func (s *Session) shown() *tool.Registry {
	rules := s.rules.get()
	if s.shownBy != rules {
		s.shownBy, s.shownTools = rules, s.tools
		if slices.ContainsFunc(s.tools.Names(), rules.Removed) {
			s.shownTools = s.tools.Filter(func(spec tool.Spec) bool { return !rules.Removed(spec.Name) })
		}
	}
	return s.shownTools
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
	o := history.Options{Model: r.Model, System: s.cfg.System, Prelude: s.prelude(s.base), Tools: len(r.Tools)}
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
