package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// rules is the gate of a running session: options and settings, and over them
// what answers to questions and the host have changed since. A change holds for
// every decision after it, also for later calls of the same response (P-5,
// P-129).
type rules struct {
	mu      sync.Mutex // held by whoever makes a change
	base    *permission.Policy
	mode    permission.Mode     // that was chosen; "": the one of base
	updates []permission.Update // since the start, without those of the mode
	current atomic.Pointer[permission.Policy]
}

func (r *rules) get() *permission.Policy { return r.current.Load() }

// rebase makes the changes to other rules. One that they do not admit any more
// has no effect; so has a mode that settings have forbidden since (P-24).
func (r *rules) rebase(base *permission.Policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if base == r.base {
		return
	}
	r.base = base
	p := base
	for _, u := range r.updates {
		if q, _, err := p.Apply(u); err == nil {
			p = q
		}
	}
	if r.mode != "" && r.mode != p.Mode {
		if q, err := p.WithMode(r.mode); err == nil {
			p = q
		}
	}
	r.current.Store(p)
}

func (r *rules) setMode(m permission.Mode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.get().WithMode(m)
	if err == nil {
		r.mode = p.Mode
		r.current.Store(p)
	}
	return err
}

func (r *rules) apply(u permission.Update) (warnings []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, warnings, err := r.get().Apply(u)
	if err != nil {
		return warnings, err
	}
	if u.Type == permission.UpdateSetMode {
		r.mode = p.Mode
	} else {
		r.updates = append(r.updates, u)
	}
	r.current.Store(p)
	return warnings, nil
}

// refresh looks whether the permission rules have changed. What went wrong with a
// change is told in the stream as well as on stderr (B-044).
func (s *Session) refresh() {
	p, news := s.cfg.Rules()
	s.rules.rebase(p)
	for _, line := range news {
		s.cfg.Warn(line)
		s.emit(&message.Informational{Content: line, Level: "warning"})
	}
}

// Configure changes model or mode; empty values stay.
func (s *Session) Configure(model, mode string) error {
	if mode != "" {
		if err := s.rules.setMode(permission.Mode(mode)); err != nil {
			return err
		}
	}
	return s.post(loop.Configure{Model: model, Mode: mode, Tell: true})
}

// update makes the changes that came with an answer, in order (W-126). One that
// cannot be made is told and left out: the answer stands all the same.
func (s *Session) update(updates []permission.Update) {
	for _, u := range s.admitted(updates) {
		if err := s.updateOne(u); err != nil {
			s.cfg.Warn("A permission update was left out: " + err.Error())
		}
	}
}

// admitted are the updates that may be suggested and made.
func (s *Session) admitted(all []permission.Update) []permission.Update {
	if s.cfg.Admit == nil {
		return all
	}
	return s.cfg.Admit(all)
}

func (s *Session) updateOne(u permission.Update) error {
	if u.Type == permission.UpdateSetMode && s.cfg.CheckMode != nil {
		if err := s.cfg.CheckMode(u.Mode); err != nil {
			return &permission.UpdateError{Update: u, Err: err}
		}
	}
	warnings, err := s.rules.apply(u)
	for _, w := range warnings {
		s.cfg.Warn(w)
	}
	if err != nil {
		return err
	}
	if u.Type == permission.UpdateSetMode {
		if err := s.post(loop.Configure{Mode: string(s.rules.get().Mode), Tell: true}); err != nil {
			return err
		}
	}
	if s.cfg.Keep == nil {
		return nil
	}
	if err := s.cfg.Keep(u); err != nil { // it holds for the session
		s.cfg.Warn(fmt.Sprintf("A permission update holds for this session only: %v", err))
	}
	return nil
}

// turnToAsk waits until nobody else is asked; done must be called when the
// question is over (P-121).
func (s *Session) turnToAsk(ctx context.Context) (done func(), err error) {
	if s.cfg.AskTogether {
		return func() {}, nil
	}
	select {
	case s.asking <- struct{}{}:
		return func() { <-s.asking }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rulesOf are the rules of this session for one that works for it.
func (s *Session) rulesOf() (p *permission.Policy, news []string) {
	s.refresh()
	return s.rules.get(), nil
}
