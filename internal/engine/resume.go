package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/tool"
)

// Resume is a session that goes on.
type Resume struct {
	Transcript *journal.Transcript
	// Journal is where it goes on, opened and read to its end. Nil: a fork,
	// whose history is copied into the new session with its first lines.
	Journal session.Journal
	Source  string // of a fork: the id of the session that is copied
}

// resume makes s the session that r tells of. Nothing is written and nothing
// is decided on before the first event (K-484).
func (s *Session) resume(r *Resume) {
	entries := r.Transcript.Entries
	if r.Journal == nil {
		entries = s.copyOf(r)
		s.held = slices.Clone(entries)
	} else {
		s.jour.about.resumed(r.Transcript)
		s.jour.open, s.jour.exists, s.jour.resting, s.jour.enc.Last = r.Journal, true, true, r.Transcript.Last
		s.jour.end, s.jour.cut = r.Transcript.End, r.Transcript.Cut
	}
	s.machine = loop.Fold(s.cfg.Loop, slices.Values(entries))
	notes := map[string]json.RawMessage{}
	for _, e := range entries {
		if e.Kind == loop.KindState {
			notes[e.State.Key] = e.State.Value
		}
	}
	s.state = tool.NewState(notes)
	if s.cfg.Instructions != nil {
		s.cfg.Instructions.Restore(seenInstructions(entries))
	}
	s.recovering = true
}

// copyOf are the entries of a fork: the conversation, from its last compaction
// on, and what tools remember, under new ids.
func (s *Session) copyOf(r *Resume) (entries []loop.Entry) {
	all := r.Transcript.Entries
	from := 0
	for i, e := range all {
		if e.Kind == loop.KindSystem {
			from = i
		}
	}
	origin := map[string]string{}
	for i, e := range all {
		switch {
		case e.Kind == loop.KindState:
		case e.Chain() && i >= from:
			old := e.UUID
			e.UUID = uuidText(s.cfg.NewUUID())
			origin[e.UUID] = old
		default:
			continue
		}
		entries = append(entries, e)
	}
	s.jour.enc.Source, s.jour.enc.Origin = r.Source, origin
	return entries
}

// rejoin takes in what other programs said in the session while it was idle
// (decision 17), before a message starts a turn on top of it. What it tells of
// their turns is theirs, so nothing is shown; model and mode stay those of this run.
func (s *Session) rejoin(ev loop.Event) {
	_, rejoins := ev.(loop.Send)
	if _, closes := ev.(loop.Close); closes && s.used {
		rejoins = true // its last line must not take theirs back
	}
	if !rejoins || s.machine.State() != loop.Idle || s.machine.Turn().Drain || len(s.running) > 0 {
		return
	}
	t := s.jour.others(s.base)
	if t == nil {
		return
	}
	mine := s.machine.Settings()
	s.held = nil // what was not written was decided on the old state
	s.machine = loop.Fold(s.cfg.Loop, slices.Values(t.Entries))
	s.assembler = history.Assembler{}
	s.recover()
	s.do(s.machine.Step(s.stamp(), loop.Hooks{Batch: s.hooks.run.Has(hook.PostToolBatch), Stop: s.hooks.run.Has(hook.Stop)}))
	s.do(s.machine.Step(s.stamp(), loop.Configure{Model: mine.Model, Mode: mine.Mode}))
}

// recover brings the session of another process back into service before its
// first event. What it has to tell belongs to the run that ended, so nothing of
// it is shown.
func (s *Session) recover() {
	s.recovering = false
	r := s.machine.Recover(s.stamp(), loop.CloseOpen, s.findOut())
	r.Emit = nil
	s.do(r)
}

// recoverTime bounds what the tools take to find out what became of calls.
const recoverTime = 5 * time.Second

// findOut asks the tools what became of the calls that were running when the
// process ended (design decision 15). Of the others it knows nothing.
func (s *Session) findOut() map[string]loop.Known {
	known := map[string]loop.Known{}
	ctx, cancel := context.WithTimeout(s.base, recoverTime)
	defer cancel()
	for _, c := range s.machine.Calls() {
		t, spec, ok := s.tools.Get(c.Name)
		finder, can := t.(tool.Recoverer)
		if c.Status != loop.Running || !ok || !can {
			continue
		}
		input := s.callInput(c)
		if final := s.machine.FinalInput(c.Key); final != nil {
			input = final
		}
		call := &tool.Call{
			ID: c.ID, Key: s.cfg.Loop.SessionID + "/" + c.Key, Name: c.Name, Input: input,
			Env: s.env(),
		}
		found := false
		f := s.finish(c.Key, spec, func() (res *tool.Result, err error) {
			defer func() {
				if recover() != nil {
					found = false // as if it could not be told
				}
			}()
			res, found = finder.Recover(ctx, call)
			return res, nil
		})
		if found {
			known[c.Key] = loop.Known{Content: f.Content, IsError: f.IsError, Structured: f.Structured}
		}
	}
	return known
}

// Queued are the messages of a resumed session that run before new ones
// (decision 52), by id.
func (s *Session) Queued() (ids []string) {
	for _, in := range s.machine.Queue() {
		if !in.NoQuery {
			ids = append(ids, in.ID)
		}
	}
	return ids
}
