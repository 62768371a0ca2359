package hook

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/turnwright/turnwright/permission"
)

// Source is where hooks come from. Hooks of an event are in the order of the
// constants (H-61).
type Source string

// The sources.
const (
	SourceManaged  Source = "policySettings"
	SourceUser     Source = "userSettings"
	SourceProject  Source = "projectSettings"
	SourceLocal    Source = "localSettings"
	SourceFlag     Source = "flagSettings" // --settings
	SourcePlugin   Source = "plugin"
	SourceSkill    Source = "skill"
	SourceAgent    Source = "agent"
	SourceCallback Source = "callback"
)

// order is the configuration order.
var order = []Source{
	SourceManaged, SourceUser, SourceProject, SourceLocal, SourceFlag,
	SourcePlugin, SourceSkill, SourceAgent, SourceCallback,
}

// settings reports whether identical handlers of such sources count once (H-6).
func (s Source) settings() bool {
	return slices.Index(order, s) <= slices.Index(order, SourceFlag)
}

// File is the hooks of one file, as Parse read them.
type File struct {
	Source Source
	Path   string // for messages
	// PluginRoot and PluginData are directories of the plugin that the hooks
	// come from (H-28).
	PluginRoot, PluginData string

	groups map[Event][]fileGroup
}

type fileGroup struct {
	matcher  matcher
	handlers []Handler
}

// Command is a handler that runs a program (H-26).
type Command struct {
	// Command is run by a shell; with Args it is a program that is started with
	// exactly these arguments.
	Command string
	Args    []string
	Shell   string // bash, powershell; "": sh, on Windows bash or PowerShell
	// Async does not wait for the command (H-68); Rewake also wakes the model
	// when it exits with 2 (H-69).
	Async, Rewake bool
}

// Problem is something in a file that is left out. The rest of the file holds.
type Problem struct {
	File  string
	Place string // "hooks.PreToolUse[0].hooks[1].timeout"
	Err   error
}

func (p *Problem) Error() string { return fmt.Sprintf("%s: %s: %v", p.File, p.Place, p.Err) }

// Unwrap returns the reason.
func (p *Problem) Unwrap() error { return p.Err }

// Parse reads the value of "hooks" in a settings file or plugin (H-1). What
// cannot be used is a *Problem and left out alone: an unknown event (H-3), a
// matcher that is no regular expression (H-21), a handler of a kind that the
// event does not take (H-40) or that is not built yet, a value of a wrong type.
// Nothing of a file switches off another part of it.
func Parse(source Source, file string, raw json.RawMessage) (File, []*Problem) {
	p := parser{file: file}
	f := File{Source: source, Path: file, groups: map[Event][]fileGroup{}}
	if isNull(raw) {
		return f, nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		p.problem("hooks", "must be an object")
		return f, p.problems
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		ev, place := Event(name), "hooks."+name
		if !ev.Known() {
			p.problem(place, "is not the name of an event")
			continue
		}
		for i, item := range p.list(place, all[name]) {
			if g, ok := p.group(fmt.Sprintf("%s[%d]", place, i), ev, item); ok {
				f.groups[ev] = append(f.groups[ev], g)
			}
		}
	}
	return f, p.problems
}

type parser struct {
	file     string
	problems []*Problem
}

func (p *parser) problem(place, format string, args ...any) {
	p.problems = append(p.problems, &Problem{File: p.file, Place: place, Err: fmt.Errorf(format, args...)})
}

func (p *parser) list(place string, raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		p.problem(place, "must be a list")
	}
	return list
}

func (p *parser) object(place string, raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil || o == nil {
		p.problem(place, "must be an object")
		return nil
	}
	return o
}

// field reads a field into v; false when it has another type.
func (p *parser) field(place string, o object, key, want string, v any) bool {
	if raw := o[key]; !isNull(raw) && json.Unmarshal(raw, v) != nil {
		p.problem(place+"."+key, "must be %s, not %.60s", want, raw)
		return false
	}
	return true
}

func (p *parser) group(place string, ev Event, raw json.RawMessage) (g fileGroup, ok bool) {
	o := p.object(place, raw)
	text := ""
	if o == nil || !p.field(place, o, "matcher", "a string", &text) {
		return g, false
	}
	var err error
	if g.matcher, err = compile(ev, text); err != nil {
		p.problem(place+".matcher", "%w", err)
		return g, false
	}
	for i, item := range p.list(place+".hooks", o["hooks"]) {
		if h, ok := p.handler(fmt.Sprintf("%s.hooks[%d]", place, i), ev, item); ok {
			g.handlers = append(g.handlers, h)
		}
	}
	return g, len(g.handlers) > 0
}

func (p *parser) handler(place string, ev Event, raw json.RawMessage) (h Handler, ok bool) {
	o := p.object(place, raw)
	if o == nil {
		return h, false
	}
	typ, seconds := "", 0.0
	if !p.field(place, o, "type", "a string", &typ) {
		return h, false
	}
	switch {
	case !slices.Contains(allTypes, typ):
		p.problem(place+".type", "must be one of %q, not %q", allTypes, typ)
		return h, false
	case !slices.Contains(events[ev].types, typ):
		p.problem(place+".type", "%s takes no hooks of the type %q, only %s", ev, typ, strings.Join(events[ev].types, ", "))
		return h, false
	case typ == typeMCP:
		p.problem(place+".type", "hooks of the type %q are not supported yet", typ)
		return h, false
	}
	h.place = place
	ok = p.field(place, o, "if", "a string", &h.If)
	ok = p.field(place, o, "timeout", "a number of seconds", &seconds) && ok
	ok = p.field(place, o, "once", "true or false", &h.Once) && ok
	ok = p.field(place, o, "statusMessage", "a string", &h.StatusMessage) && ok
	switch typ {
	case typeCommand:
		h.Command, ok = p.command(place, o, ok)
	case typeHTTP:
		h.HTTP, ok = p.http(place, o, ok)
	default:
		h.Prompt, ok = p.prompt(place, o, typ == typeAgent, ok)
	}
	if !ok {
		return h, false
	}
	switch {
	case seconds < 0 || seconds > math.MaxInt64/float64(time.Second):
		p.problem(place+".timeout", "must be a number of seconds, not %v", seconds)
		return h, false
	case h.If != "" && !events[ev].rules:
		p.problem(place+".if", "is not looked at for %s, so the hook never runs", ev) // H-22
		return h, false
	}
	h.Timeout = time.Duration(seconds * float64(time.Second))
	if h.If != "" {
		if _, err := permission.ParseRule(h.If); err != nil {
			p.problem(place+".if", "%w", err)
			return h, false
		}
	}
	h.key = h.identity()
	if h.Timeout == 0 {
		h.Timeout = timeoutOf(ev, typ)
	}
	return h, true
}

// identity is a text that identical handlers have in common (H-6).
func (h *Handler) identity() string {
	text := fmt.Sprintf("%q %v %v %q", h.If, h.Once, h.Timeout, h.StatusMessage)
	switch {
	case h.Command != nil:
		return text + fmt.Sprintf("%#v", *h.Command)
	case h.HTTP != nil:
		return text + fmt.Sprintf("%#v", *h.HTTP)
	}
	return text + fmt.Sprintf("%#v", *h.Prompt)
}

// command reads the fields of a command (H-26). ok says whether those that all
// handlers have can be used.
func (p *parser) command(place string, o object, ok bool) (*Command, bool) {
	c := &Command{}
	ok = p.field(place, o, "command", "a string", &c.Command) && ok
	ok = p.field(place, o, "args", "a list of strings", &c.Args) && ok
	ok = p.field(place, o, "shell", "a string", &c.Shell) && ok
	ok = p.field(place, o, "async", "true or false", &c.Async) && ok
	ok = p.field(place, o, "asyncRewake", "true or false", &c.Rewake) && ok
	c.Async = c.Async || c.Rewake
	switch {
	case !ok:
	case strings.TrimSpace(c.Command) == "":
		p.problem(place+".command", "is missing or empty")
		return nil, false
	case c.Shell != "" && c.Shell != "bash" && c.Shell != "powershell":
		p.problem(place+".shell", "must be bash or powershell, not %q", c.Shell)
		return nil, false
	}
	return c, ok
}
