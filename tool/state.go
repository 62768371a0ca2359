package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// NewState returns a state that starts with the given values, as loaded from a
// session. Nothing in it counts as changed.
func NewState(values map[string]json.RawMessage) *State {
	s := &State{m: make(map[string]json.RawMessage, len(values))}
	for k, v := range values {
		if !isNull(v) {
			s.m[k] = v
		}
	}
	return s
}

// Get returns the value under key, nil when there is none. The caller must not
// change the bytes. A nil State holds nothing.
func (s *State) Get(key string) json.RawMessage {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[key]
}

// Set stores value under key; nil or null removes the key. Setting the value
// that is already there changes nothing. On a nil State it does nothing.
func (s *State) Set(key string, value json.RawMessage) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.m[key]
	if isNull(value) {
		if !had {
			return
		}
		delete(s.m, key)
	} else {
		if had && bytes.Equal(old, value) {
			return
		}
		if s.m == nil {
			s.m = map[string]json.RawMessage{}
		}
		s.m[key] = bytes.Clone(value)
	}
	if s.dirty == nil {
		s.dirty = map[string]bool{}
	}
	s.dirty[key] = true
}

// Keys returns the keys in sorted order.
func (s *State) Keys() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.m))
}

// Dirty returns the keys changed since the last call, with their values, for
// the journal; a removed key has the value null. It returns nil when nothing
// changed.
func (s *State) Dirty() map[string]json.RawMessage {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dirty) == 0 {
		return nil
	}
	out := make(map[string]json.RawMessage, len(s.dirty))
	for k := range s.dirty {
		v, ok := s.m[k]
		if !ok {
			v = json.RawMessage("null")
		}
		out[k] = v
	}
	clear(s.dirty)
	return out
}

func isNull(v json.RawMessage) bool {
	t := bytes.TrimSpace(v)
	return len(t) == 0 || string(t) == "null"
}
