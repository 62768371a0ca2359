package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// instructed is what instruction files put before the first prompt. It is the
// same in every request until the conversation is compacted, so that the
// provider's cache of the prefix stays warm.
type instructed struct {
	mu     sync.Mutex
	loaded bool
	blocks []message.Block
}

// prelude is what stands before the conversation: that of the configuration,
// then the instruction files that hold for the whole session, read when they are
// asked for the first time (C-52, L-164, L-165).
func (s *Session) prelude(ctx context.Context) []message.Block {
	if s.cfg.Instructions == nil {
		return s.cfg.Prelude
	}
	p := &s.instructed
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded {
		return p.blocks
	}
	r, err := s.cfg.Instructions.Load(ctx)
	if err != nil {
		return s.cfg.Prelude // the turn was interrupted: the next one reads them
	}
	p.loaded, p.blocks = true, s.cfg.Prelude
	if r.Text != "" {
		p.blocks = append(slices.Clip(p.blocks), message.NewText(r.Text))
	}
	return p.blocks
}

// compacted forgets what the compaction took out of the conversation (C-53,
// L-166).
func (s *Session) compacted(entries []loop.Entry) {
	if s.cfg.Instructions == nil {
		return
	}
	for _, e := range entries {
		if e.Kind == loop.KindSystem {
			s.cfg.Instructions.Reset()
			s.instructed.mu.Lock()
			s.instructed.loaded = false
			s.instructed.mu.Unlock()
		}
	}
}

// instructionKey begins the key under which the session remembers that the
// model has seen a nested file.
const instructionKey = "instructions:"

// broughtAlong adds to the outcome of a call what the file that it read brings
// along (C-44, C-60). Only Read counts.
func (s *Session) broughtAlong(ctx context.Context, t tool.Tool, name string, input json.RawMessage, f *loop.Finished) {
	reader, ok := t.(tool.Accesser)
	if s.cfg.Instructions == nil || name != "Read" || !ok || f.IsError {
		return
	}
	accesses, err := reader.Accesses(input)
	if err != nil {
		return // it was checked before the call ran
	}
	for _, a := range accesses {
		if a.Kind != permission.Read {
			continue
		}
		r := s.cfg.Instructions.Touch(ctx, a.Written, a.Target)
		if r.Text != "" {
			f.Context = append(f.Context, message.NewText(r.Text))
		}
		for _, file := range r.Files {
			f.State = append(f.State, loop.StateNote{Key: instructionKey + file.Key(), Value: []byte("true")})
		}
	}
}

// seenInstructions are the nested files that the model has seen since the last
// compaction, by what the journal says.
func seenInstructions(entries []loop.Entry) (keys []string) {
	for _, e := range entries {
		switch e.Kind {
		case loop.KindSystem:
			keys = nil
		case loop.KindState:
			if key, ok := strings.CutPrefix(e.State.Key, instructionKey); ok {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
