package session

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"time"
)

var _ Keeper = (*Memory)(nil)

// Projects returns directories: each is a project; see Keeper.
func (m *Memory) Projects(_ context.Context, dir string, _ bool) ([]string, error) {
	if dir != "" {
		return []string{filepath.Clean(dir)}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for key := range m.sessions {
		all = append(all, key.dir)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Stat tells of one session; see Keeper.
func (m *Memory) Stat(_ context.Context, project, id string) (Info, error) {
	id, err := ParseID(id)
	if err != nil {
		return Info{}, err
	}
	key := memKey{project, id}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[key]
	if s == nil || len(s.lines) == 0 {
		return Info{}, ErrNotFound
	}
	return s.info(key), nil
}

// Add appends lines to a session that is there; see Keeper.
func (m *Memory) Add(_ context.Context, info Info, lines [][]byte) error {
	if err := CheckLines(lines); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[memKey{info.Project, info.ID}]
	if s == nil || len(s.lines) == 0 {
		return ErrNotFound
	}
	for _, line := range lines {
		s.lines = append(s.lines, bytes.Clone(line))
	}
	s.changed = time.Now()
	s.version++
	if s.holder != nil {
		s.holder.seen = s.version
	}
	return nil
}

// Delete removes a session; see Keeper. A journal that has it open makes it
// anew with its next Append.
func (m *Memory) Delete(_ context.Context, info Info) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := memKey{info.Project, info.ID}
	s := m.sessions[key]
	if s == nil || len(s.lines) == 0 {
		return ErrNotFound
	}
	s.lines, s.blobs = nil, map[string][]byte{}
	s.version++
	if s.holder != nil {
		s.holder.seen = s.version
		return nil
	}
	delete(m.sessions, key)
	return nil
}
