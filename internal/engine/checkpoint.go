package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnwright/turnwright/internal/checkpoint"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// ErrNoCheckpoints says that the session keeps no states of files.
var ErrNoCheckpoints = errors.New("File rewinding is not enabled") //nolint:staticcheck // the contract's text (S-118)

// checkpoints are the user messages that wait for their checkpoint. The actor
// only notes them: looking at files is no work for it.
type checkpoints struct {
	mu      sync.Mutex
	pending []string // uuids
	warned  bool     // one warning until it goes well again
}

// noteCheckpoints notes the user messages among what the machine decided: each
// is a checkpoint (S-111), with what was absorbed into a turn. Tool results, and
// what the session says to itself, belong to the message before.
func (s *Session) noteCheckpoints(entries []loop.Entry) {
	if s.cfg.Checkpoints == nil {
		return
	}
	for _, e := range entries {
		if e.Kind != loop.KindUser {
			continue
		}
		u := e.User
		notified := u.Origin != nil && u.Origin.Kind == message.OriginTaskNotification
		if u.ToolUseID != "" || u.Meta || u.Summary || u.CopiedFrom != "" || notified {
			continue
		}
		s.checkpoints.mu.Lock()
		s.checkpoints.pending = append(s.checkpoints.pending, e.UUID)
		s.checkpoints.mu.Unlock()
	}
}

// checkpoint makes the checkpoints that are due, and those of messages that are
// about to be taken up. It comes before the next model request and before any
// change of a file.
func (s *Session) checkpoint(uuids ...string) {
	h, c := s.cfg.Checkpoints, &s.checkpoints
	if h == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	due := append(uuids, c.pending...)
	c.pending = nil
	for _, uuid := range due {
		s.saved(h.Begin(uuid))
	}
}

// saved warns of checkpoints that could not be saved. It needs checkpoints.mu.
func (s *Session) saved(err error) {
	if err == nil {
		s.checkpoints.warned = false
		return
	}
	if !s.checkpoints.warned {
		s.checkpoints.warned = true
		s.cfg.Warn(fmt.Sprintf("File checkpoints of session %s could not be saved, rewinding may leave files as they are: %v", s.cfg.Loop.SessionID, err))
	}
}

// beforeChange keeps the state of a file that a call is about to change; nil:
// none is kept. Where that fails the call goes on, as it does when the journal
// fails (S-24), except with Durability: Strict.
func (s *Session) beforeChange() func(path, target string) error {
	h := s.cfg.Checkpoints
	if h == nil {
		return nil
	}
	return func(path, target string) error {
		s.checkpoint()
		err := h.Track(path, target)
		s.checkpoints.mu.Lock()
		s.saved(err)
		s.checkpoints.mu.Unlock()
		if err != nil && s.cfg.Strict {
			return fmt.Errorf("its state could not be saved: %w", err)
		}
		return nil
	}
}

// Rewind puts files back into their state at a user message (S-112). Nothing
// else of the session changes.
func (s *Session) Rewind(ctx context.Context, uuid string, dry bool) (checkpoint.Result, error) {
	if s.cfg.Checkpoints == nil {
		return checkpoint.Result{}, ErrNoCheckpoints
	}
	s.checkpoint()
	return s.cfg.Checkpoints.Rewind(ctx, uuid, dry)
}
