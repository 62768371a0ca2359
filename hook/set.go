package hook

import (
	"slices"
	"time"
)

// Config is all hooks of a session.
type Config struct {
	Files     []File
	Callbacks Table
	// Off runs managed hooks only: the effective disableAllHooks is true (H-7).
	Off bool
	// AllOff runs no hook at all: managed settings say disableAllHooks (H-7).
	AllOff bool
	// ManagedOnly runs managed hooks and callbacks only (H-8).
	ManagedOnly bool
}

// Set is the hooks of a session, ready to be matched. It does not change, so it
// may be used from several goroutines.
type Set struct {
	groups map[Event][]setGroup
}

type setGroup struct {
	matcher  matcher
	handlers []Handler
}

// Handler is something that runs at an event. It is one of Func, Command, HTTP
// and Prompt; the others are nil.
type Handler struct {
	Source                 Source
	PluginRoot, PluginData string

	Func    Func     // a callback
	Command *Command // runs a program
	HTTP    *HTTP    // sends a request
	Prompt  *Prompt  // asks a model

	If            string // a permission rule that the call must match (H-22); "": none
	Once          bool   // of a skill: it runs once (H-12)
	StatusMessage string
	Timeout       time.Duration

	key   string // of identical handlers of files
	place string // in its file, as in Problem
}

// NewSet makes hooks ready. It fails for a table of callbacks that Check
// refuses.
func NewSet(c Config) (*Set, error) {
	if err := c.Callbacks.Check(); err != nil {
		return nil, err
	}
	s := &Set{groups: map[Event][]setGroup{}}
	if c.AllOff {
		return s, nil
	}
	files := slices.Clone(c.Files)
	slices.SortStableFunc(files, func(a, b File) int { return slices.Index(order, a.Source) - slices.Index(order, b.Source) })
	for _, f := range files {
		if f.Source != SourceManaged && (c.Off || c.ManagedOnly) {
			continue
		}
		for ev, groups := range f.groups {
			for _, g := range groups {
				s.groups[ev] = append(s.groups[ev], f.group(g))
			}
		}
	}
	if c.Off {
		return s, nil
	}
	for ev, groups := range c.Callbacks {
		for _, g := range groups {
			m, err := compile(ev, g.Matcher)
			if err != nil {
				return nil, err
			}
			limit := g.Timeout
			if limit == 0 {
				limit = ev.Timeout()
			}
			own := setGroup{matcher: m}
			for _, f := range g.Hooks {
				own.handlers = append(own.handlers, Handler{Source: SourceCallback, Func: f, Timeout: limit})
			}
			if len(own.handlers) > 0 {
				s.groups[ev] = append(s.groups[ev], own)
			}
		}
	}
	return s, nil
}

func (f *File) group(g fileGroup) setGroup {
	own := setGroup{matcher: g.matcher}
	for _, h := range g.handlers {
		h.Source, h.PluginRoot, h.PluginData = f.Source, f.PluginRoot, f.PluginData
		own.handlers = append(own.handlers, h)
	}
	return own
}

// Empty reports whether there are no hooks at all.
func (s *Set) Empty() bool { return s == nil || len(s.groups) == 0 }

// Has reports whether anything may run at the event.
func (s *Set) Has(ev Event) bool { return s != nil && len(s.groups[ev]) > 0 }

// Match returns what runs for the input, in configuration order (H-61). Of
// identical handlers of settings files there is one (H-6).
func (s *Set) Match(in Input) (matched []Handler) {
	if s == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, g := range s.groups[in.Event()] {
		if !g.matcher.match(in.Subject()) {
			continue
		}
		for _, h := range g.handlers {
			if h.Func == nil && h.Source.settings() {
				if seen[h.key] {
					continue
				}
				seen[h.key] = true
			}
			matched = append(matched, h)
		}
	}
	return matched
}

// EndTimeout is what the hooks of SessionEnd have together: EndTimeout, or the
// longest time that a settings file gives one of them, up to MaxEndTimeout
// (H-63).
func (s *Set) EndTimeout() time.Duration {
	limit := EndTimeout
	if s == nil {
		return limit
	}
	for _, g := range s.groups[SessionEnd] {
		for _, h := range g.handlers {
			if h.Func == nil && h.Source.settings() {
				limit = max(limit, min(h.Timeout, MaxEndTimeout))
			}
		}
	}
	return limit
}
