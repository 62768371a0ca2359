package instructions

import (
	"context"
	"path/filepath"
	"sync"
)

// Set are the instruction files of one session. Several goroutines may use it.
type Set struct {
	cfg Config

	mu     sync.Mutex
	roots  []string        // what imports may reach into, without links
	home   string          // the configuration home, without links
	start  map[string]bool // files of Load, by key
	nested map[string]bool // files of Touch, by key
	rules  []rule          // with paths, in the order in which they hold
	again  bool            // Load follows a compaction
}

// New returns a set that has read nothing yet.
func New(c Config) *Set {
	c.fill()
	return &Set{cfg: c, nested: map[string]bool{}}
}

// Load reads the files that hold for the whole session from disk: at its start,
// and after each [Set.Reset] (C-42, C-53). A file that cannot be used is left
// out with a warning. The only error is that of ctx.
func (s *Set) Load(ctx context.Context) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := SessionStart
	if s.again {
		reason = Compact
	}
	s.roots = s.roots[:0]
	for _, dir := range append([]string{s.cfg.Dir}, s.cfg.AddDirs...) {
		s.roots = append(s.roots, s.resolve(dir))
	}
	s.home = s.resolve(s.cfg.Home)
	l := loader{ctx: ctx, set: s, seen: map[string]bool{}, reason: reason, rulesToo: true}
	l.startFiles()
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	s.start, s.rules = l.seen, l.rules
	for _, r := range l.rules {
		delete(s.start, r.file.key) // it is still to come
	}
	return Result{Text: compose(startIntro, l.files), Files: l.files}, nil
}

// Touch says what the file that the model has read brings along: the
// instruction files of the directories below the start directory that it is in
// (C-44), and rules whose paths it fits (C-60). Each file comes once, until
// [Set.Reset]. names are the absolute paths of the file, as it was called and
// without links. Before the first Load nothing comes.
func (s *Set) Touch(ctx context.Context, names ...string) Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.start == nil || len(names) == 0 {
		return Result{}
	}
	l := loader{ctx: ctx, set: s, seen: map[string]bool{}, known: func(key string) bool { return s.start[key] || s.nested[key] }}
	l.reason, l.trigger = Nested, names[0]
	for _, name := range names {
		if rel, ok := below(s.cfg.Dir, name); ok {
			l.between(rel)
			break
		}
	}
	l.reason = PathMatch
	for i := range s.rules {
		if r := &s.rules[i]; r.fits(names) {
			l.take(r.file, r.mentions, 0)
		}
	}
	if ctx.Err() != nil {
		return Result{} // whoever asked is gone, so nothing of it has been seen
	}
	for _, f := range l.files {
		s.nested[f.key] = true
	}
	return Result{Text: compose(touchIntro, l.files), Files: l.files}
}

// Restore says which files the model has seen already: the keys of files that
// Touch returned in an earlier life of the session.
func (s *Set) Restore(keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		s.nested[k] = true
	}
}

// Reset says that the conversation was compacted: nested files and rules with
// paths come again when a file triggers them, and Load is due (C-53, L-166).
func (s *Set) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nested, s.again = map[string]bool{}, true
}

// resolve is path without links, or path where that cannot be told.
func (s *Set) resolve(path string) string {
	if real, err := s.cfg.FS.Resolve(path); err == nil {
		return real
	}
	return path
}

// parents are the directories from the root of the file system down to dir.
func parents(dir string) (all []string) {
	for {
		all = append([]string{dir}, all...)
		up := filepath.Dir(dir)
		if up == dir {
			return all
		}
		dir = up
	}
}
