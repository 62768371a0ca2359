package session

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Memory is a Store that lives and dies with the process. It behaves like the
// file store in everything that a Store promises; sync has nothing to do.
type Memory struct {
	mu       sync.Mutex
	sessions map[memKey]*memSession
}

type memKey struct{ dir, id string }

type memSession struct {
	lines   [][]byte
	version int // goes up with every change
	changed time.Time
	blobs   map[string][]byte
	holder  *memJournal
	freed   chan struct{} // closed when holder lets go
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{sessions: map[memKey]*memSession{}} }

var (
	_ Store  = (*Memory)(nil)
	_ Finder = (*Memory)(nil)
)

// Open opens a session; see Store.
func (m *Memory) Open(ctx context.Context, id string, o OpenOptions) (Journal, error) {
	id, err := ParseID(id)
	if err != nil {
		return nil, err
	}
	key := memKey{dir: o.Dir, id: id}
	if o.Dir != "" {
		key.dir = filepath.Clean(o.Dir)
	}
	if o.Project != "" {
		key.dir = o.Project
	}
	j := &memJournal{store: m, key: key, wait: o.Wait}
	m.mu.Lock()
	defer m.mu.Unlock()
	// What no wait can change is said at once.
	switch s := m.sessions[key]; {
	case s == nil && !o.Create:
		return nil, ErrNotFound
	case s != nil && len(s.lines) > 0 && o.Create:
		return nil, ErrExists
	}
	if err := j.lock(ctx); err != nil {
		return nil, err
	}
	exists := len(j.session.lines) > 0
	if exists == o.Create {
		j.free()
		if exists {
			return nil, ErrExists
		}
		return nil, ErrNotFound
	}
	j.seen = j.session.version
	return j, nil
}

// Find looks a session up; see Finder.
func (m *Memory) Find(_ context.Context, id, dir string) (Info, error) {
	id, err := ParseID(id)
	if err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[memKey{filepath.Clean(dir), id}]; s != nil && len(s.lines) > 0 {
		return s.info(memKey{filepath.Clean(dir), id}), nil
	}
	var found []Info
	for key, s := range m.sessions {
		if key.id == id && len(s.lines) > 0 {
			found = append(found, s.info(key))
		}
	}
	if len(found) != 1 {
		return Info{}, ErrNotFound
	}
	return found[0], nil
}

// List returns sessions; see Finder.
func (m *Memory) List(_ context.Context, dir string) ([]Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Info
	for key, s := range m.sessions {
		if len(s.lines) > 0 && (dir == "" || key.dir == filepath.Clean(dir)) {
			found = append(found, s.info(key))
		}
	}
	return Newest(found), nil
}

// Read yields a session's lines; see Finder.
func (m *Memory) Read(ctx context.Context, info Info) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		m.mu.Lock()
		var lines [][]byte
		if s := m.sessions[memKey{info.Project, info.ID}]; s != nil {
			lines = slices.Clone(s.lines)
		}
		m.mu.Unlock()
		if lines == nil {
			yield(nil, ErrNotFound)
			return
		}
		yieldLines(ctx, lines, yield)
	}
}

// Ends returns a session's beginning and end; see Finder.
func (m *Memory) Ends(_ context.Context, info Info, n int) (head, tail []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[memKey{info.Project, info.ID}]
	if s == nil || len(s.lines) == 0 {
		return nil, nil, ErrNotFound
	}
	all := append(bytes.Join(s.lines, []byte("\n")), '\n')
	return bytes.Clone(all[:min(n, len(all))]), bytes.Clone(all[max(0, len(all)-n):]), nil
}

func (s *memSession) info(key memKey) Info {
	i := Info{ID: key.id, Project: key.dir, Modified: s.changed}
	for _, line := range s.lines {
		i.Size += int64(len(line)) + 1
	}
	return i
}

// Blob returns what PutBlob stored under the path that it returned.
func (m *Memory) Blob(path string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, s := range m.sessions {
		if name, ok := strings.CutPrefix(path, key.blobPath("")); ok {
			data, ok := s.blobs[name]
			if ok {
				return bytes.Clone(data), true
			}
		}
	}
	return nil, false
}

func (k memKey) blobPath(name string) string {
	return "memory:" + k.dir + "/" + k.id + "/tool-results/" + name
}

type memJournal struct {
	store   *Memory
	key     memKey
	wait    time.Duration
	session *memSession // not nil while the lock is held
	seen    int         // version that the user of the journal knows
	stale   bool
	closed  bool
}

// lock takes the session; the store's mutex is held, and let go while waiting.
func (j *memJournal) lock(ctx context.Context) error {
	if j.closed {
		return ErrClosed
	}
	if j.session != nil {
		return nil
	}
	var limit <-chan time.Time
	for {
		s := j.store.sessions[j.key]
		if s == nil {
			s = &memSession{blobs: map[string][]byte{}}
			j.store.sessions[j.key] = s
		}
		if s.holder == nil {
			s.holder, s.freed = j, make(chan struct{})
			j.session = s
			return nil
		}
		locked := &LockedError{ID: j.key.id, Holder: "this process"}
		if j.wait <= 0 {
			return locked
		}
		if limit == nil {
			timer := time.NewTimer(j.wait)
			defer timer.Stop()
			limit = timer.C
		}
		freed := s.freed
		j.store.mu.Unlock()
		var err error
		select {
		case <-freed:
		case <-limit:
			err = locked
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		j.store.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// retake is lock for a journal that may have been released.
func (j *memJournal) retake(ctx context.Context) error {
	if j.session != nil && !j.closed {
		return nil
	}
	if err := j.lock(ctx); err != nil {
		return err
	}
	if j.session.version != j.seen {
		j.stale = true
	}
	return nil
}

// free lets the session go; nothing is left of one that has no lines (K-291).
func (j *memJournal) free() {
	s := j.session
	if s == nil {
		return
	}
	j.session = nil
	s.holder = nil
	close(s.freed)
	if len(s.lines) == 0 && len(s.blobs) == 0 {
		delete(j.store.sessions, j.key)
	}
}

func (j *memJournal) Append(ctx context.Context, lines [][]byte, _ bool) error {
	if err := CheckLines(lines); err != nil {
		return err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if err := j.retake(ctx); err != nil {
		return err
	}
	if j.stale {
		return ErrChanged
	}
	if len(lines) == 0 {
		return nil
	}
	for _, line := range lines {
		j.session.lines = append(j.session.lines, bytes.Clone(line))
	}
	j.session.version++
	j.session.changed = time.Now()
	j.seen = j.session.version
	return nil
}

func (j *memJournal) Load(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		j.store.mu.Lock()
		err := j.retake(ctx)
		var lines [][]byte
		var version int
		if err == nil {
			lines = slices.Clone(j.session.lines)
			version = j.session.version
		}
		j.store.mu.Unlock()
		if err != nil {
			yield(nil, err)
			return
		}
		if !yieldLines(ctx, lines, yield) {
			return
		}
		j.store.mu.Lock()
		defer j.store.mu.Unlock()
		if j.session != nil && j.session.version == version {
			j.seen, j.stale = version, false
		}
	}
}

// yieldLines reports whether all lines were taken.
func yieldLines(ctx context.Context, lines [][]byte, yield func([]byte, error) bool) bool {
	for i, line := range lines {
		if err := ctx.Err(); err != nil {
			yield(nil, context.Cause(ctx))
			return false
		}
		var bad error
		if err := CheckLine(line); err != nil {
			bad = &LineError{Line: i + 1, Err: err}
		}
		if !yield(bytes.Clone(line), bad) {
			return false
		}
	}
	return true
}

// Tail returns the last bytes; see Tailer.
func (j *memJournal) Tail(ctx context.Context, n int) ([]byte, error) {
	_, tail, err := j.store.Ends(ctx, Info{ID: j.key.id, Project: j.key.dir}, n)
	return tail, err
}

func (j *memJournal) PutBlob(ctx context.Context, name string, data []byte) (string, error) {
	if err := CheckBlobName(name); err != nil {
		return "", err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if err := j.retake(ctx); err != nil {
		return "", err
	}
	j.session.blobs[name] = bytes.Clone(data)
	return j.key.blobPath(name), nil
}

func (j *memJournal) Release() error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.free()
	return nil
}

func (j *memJournal) Close() error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.free()
	j.closed = true
	return nil
}

// CheckBlobName refuses names that are no plain name of a file: empty, "." and
// "..", longer than 200 bytes, with a path separator, a colon or a control
// character. For authors of a Store. The error is an *OptionError.
func CheckBlobName(name string) error {
	const most = 200
	reason := ""
	switch {
	case name == "" || name == "." || name == "..":
		reason = "is not a file name"
	case len(name) > most:
		reason = "is longer than " + strconv.Itoa(most) + " bytes"
	case strings.ContainsAny(name, `/\:`):
		reason = "contains a path separator"
	case strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		reason = "contains a control character"
	default:
		return nil
	}
	return &OptionError{Field: "blob name", Value: fmt.Sprintf("%.60s", name), Reason: reason}
}
