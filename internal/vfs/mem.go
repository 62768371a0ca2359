package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory that knows what a power loss would leave: a
// file's contents survive after Sync, a name after SyncDir of its directory.
// It is as strict as POSIX allows a disk to be. Every volume root exists.
type Mem struct {
	mu    sync.Mutex
	roots map[string]*node // by volume name
	next  uint64
	open  int
	clock func() time.Time
}

var _ FS = (*Mem)(nil)

// node is a file or a directory.
type node struct {
	id      uint64
	dir     bool
	perm    fs.FileMode
	mtime   time.Time
	data    []byte
	durable []byte           // data as of the last Sync; shares bytes with data, which are never changed in place
	names   map[string]*node // of a directory
	kept    map[string]*node // names as of the last SyncDir
	writer  *memFile         // holder of the exclusive lock
	readers int              // holders of the shared lock
}

// NewMem returns an empty file system.
func NewMem() *Mem {
	return &Mem{roots: map[string]*node{}, clock: time.Now}
}

// OpenFiles returns how many files are open.
func (m *Mem) OpenFiles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

func (m *Mem) newNode(dir bool, perm fs.FileMode) *node {
	m.next++
	n := &node{id: m.next, dir: dir, perm: perm & 0o777, mtime: m.clock()}
	if dir {
		n.names, n.kept = map[string]*node{}, map[string]*node{}
	}
	return n
}

// walk finds the directory of name and its last element.
func (m *Mem) walk(name string) (*node, string, error) {
	if !filepath.IsAbs(name) {
		return nil, "", syscall.EINVAL
	}
	volume := filepath.VolumeName(name)
	at := m.roots[volume]
	if at == nil {
		at = m.newNode(true, 0o755)
		m.roots[volume] = at
	}
	parts := strings.FieldsFunc(name[len(volume):], func(r rune) bool {
		return r < 0x80 && os.IsPathSeparator(uint8(r))
	})
	if len(parts) == 0 {
		return at, ".", nil
	}
	for _, part := range parts[:len(parts)-1] {
		next, ok := at.names[part]
		if !ok {
			return nil, "", syscall.ENOENT
		}
		if !next.dir {
			return nil, "", syscall.ENOTDIR
		}
		at = next
	}
	return at, parts[len(parts)-1], nil
}

func (m *Mem) find(name string) (*node, error) {
	dir, base, err := m.walk(name)
	if err != nil {
		return nil, err
	}
	if base == "." {
		return dir, nil
	}
	n, ok := dir.names[base]
	if !ok {
		return nil, syscall.ENOENT
	}
	return n, nil
}

func (n *node) info() Info {
	mode := n.perm
	if n.dir {
		mode |= fs.ModeDir
	}
	return Info{Size: int64(len(n.data)), Mode: mode, ModTime: n.mtime, ID: FileID{Dev: 1, Ino: n.id}}
}

// OpenFile opens or creates a file.
func (m *Mem) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.openNode(name, flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	m.open++
	return &memFile{m: m, n: n, name: name, flag: flag}, nil
}

func (m *Mem) openNode(name string, flag int, perm fs.FileMode) (*node, error) {
	dir, base, err := m.walk(name)
	if err != nil {
		return nil, err
	}
	n, ok := dir.names[base]
	switch {
	case base == ".":
		n = dir
	case !ok && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case !ok:
		n = m.newNode(false, perm)
		dir.names[base] = n
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, syscall.EEXIST
	}
	if n.dir && writes(flag) {
		return nil, syscall.EISDIR
	}
	if writes(flag) && n.perm&0o200 == 0 && ok {
		return nil, syscall.EACCES
	}
	if flag&os.O_TRUNC != 0 {
		n.data = nil
	}
	return n, nil
}

// Stat describes a file.
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return n.info(), nil
}

// Mkdir makes a directory.
func (m *Mem) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.walk(name)
	if err == nil && (base == "." || dir.names[base] != nil) {
		err = syscall.EEXIST
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	dir.names[base] = m.newNode(true, perm)
	return nil
}

// Rename moves a file over newName.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := func() error {
		from, a, err := m.walk(oldName)
		if err != nil {
			return err
		}
		to, b, err := m.walk(newName)
		if err != nil {
			return err
		}
		n, ok := from.names[a]
		if !ok {
			return syscall.ENOENT
		}
		if old := to.names[b]; old != nil && old.dir != n.dir {
			return syscall.EISDIR
		}
		delete(from.names, a)
		to.names[b] = n
		return nil
	}()
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

// Remove removes a name.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.walk(name)
	if err == nil {
		n := dir.names[base]
		switch {
		case n == nil:
			err = syscall.ENOENT
		case n.dir && len(n.names) > 0:
			err = syscall.ENOTEMPTY
		default:
			delete(dir.names, base)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// Link gives a file a second name.
func (m *Mem) Link(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := func() error {
		n, err := m.find(oldName)
		if err != nil {
			return err
		}
		dir, base, err := m.walk(newName)
		if err != nil {
			return err
		}
		if base == "." || dir.names[base] != nil {
			return syscall.EEXIST
		}
		dir.names[base] = n
		return nil
	}()
	if err != nil {
		return &os.LinkError{Op: "link", Old: oldName, New: newName, Err: err}
	}
	return nil
}

// Truncate cuts a file.
func (m *Mem) Truncate(name string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && (n.dir || size < 0 || size > int64(len(n.data))) {
		err = syscall.EINVAL
	}
	if err != nil {
		return &fs.PathError{Op: "truncate", Path: name, Err: err}
	}
	n.data = slices.Clone(n.data[:size])
	n.mtime = m.clock()
	return nil
}

// ReadDir lists a directory.
func (m *Mem) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	names := make([]string, 0, len(n.names))
	for name := range n.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// SyncDir makes the names in a directory durable.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return &fs.PathError{Op: "sync", Path: name, Err: err}
	}
	n.kept = maps.Clone(n.names)
	return nil
}

// memFile is an open file of Mem.
type memFile struct {
	m      *Mem
	n      *node
	name   string
	flag   int
	off    int64
	shared bool
	closed bool
}

func (f *memFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return 0, f.fail("read", fs.ErrClosed)
	case f.flag&os.O_WRONLY != 0:
		return 0, f.fail("read", syscall.EBADF)
	case f.n.dir:
		return 0, f.fail("read", syscall.EISDIR)
	case off < 0:
		return 0, f.fail("read", syscall.EINVAL)
	case off >= int64(len(f.n.data)):
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return 0, f.fail("write", fs.ErrClosed)
	}
	if !writes(f.flag) {
		return 0, f.fail("write", syscall.EBADF)
	}
	if f.flag&os.O_APPEND != 0 {
		f.off = int64(len(f.n.data))
	}
	if gap := f.off - int64(len(f.n.data)); gap > 0 {
		f.n.data = append(f.n.data, make([]byte, gap)...)
	}
	if f.off < int64(len(f.n.data)) {
		f.n.data = slices.Clone(f.n.data) // durable keeps the old bytes
	}
	over := copy(f.n.data[f.off:], p)
	f.n.data = append(f.n.data, p[over:]...)
	f.off += int64(len(p))
	f.n.mtime = f.m.clock()
	return len(p), nil
}

func (f *memFile) Stat() (Info, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return Info{}, f.fail("stat", fs.ErrClosed)
	}
	return f.n.info(), nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return f.fail("sync", fs.ErrClosed)
	}
	f.n.durable = slices.Clip(f.n.data)
	return nil
}

func (f *memFile) TryLock(exclusive bool) (bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return false, f.fail("lock", fs.ErrClosed)
	}
	others := f.n.readers
	if f.shared {
		others--
	}
	if f.n.writer != nil && f.n.writer != f || exclusive && others > 0 {
		return false, nil
	}
	f.unlock()
	if exclusive {
		f.n.writer = f
	} else {
		f.n.readers++
		f.shared = true
	}
	return true, nil
}

func (f *memFile) unlock() {
	if f.n.writer == f {
		f.n.writer = nil
	}
	if f.shared {
		f.n.readers--
		f.shared = false
	}
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return f.fail("close", fs.ErrClosed)
	}
	f.closed = true
	f.unlock()
	f.m.open--
	return nil
}

// Crash says what a crash leaves.
type Crash struct {
	// Power is true for a power loss: what was not synced may be gone. False
	// is the death of the process only: all bytes and names are there.
	Power bool
	// Keep chooses how many of the bytes that were appended to a file since
	// its last Sync are there after a power loss; nil keeps none. A file that
	// was changed in another way than by appending has its old contents.
	Keep func(name string, unsynced int) int
	// Zeros fills the bytes that were lost with zeros instead of cutting them
	// off, as some file systems do.
	Zeros bool
	// KeepNames keeps names that were not synced.
	KeepNames bool
}

// Crash returns the file system that is found after a crash, with nothing open
// and nothing locked. The receiver stays as it is.
func (m *Mem) Crash(c Crash) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMem()
	after.clock = m.clock
	after.next = m.next
	copied := map[*node]*node{}
	for volume, root := range m.roots {
		after.roots[volume] = root.crash(c, volume+string(filepath.Separator), copied)
	}
	return after
}

func (n *node) crash(c Crash, name string, copied map[*node]*node) *node {
	if done, ok := copied[n]; ok {
		return done
	}
	now := &node{id: n.id, dir: n.dir, perm: n.perm, mtime: n.mtime}
	copied[n] = now
	if !n.dir {
		now.data = slices.Clone(n.data)
		if c.Power {
			now.data = n.left(c, name)
		}
		now.durable = slices.Clip(now.data)
		return now
	}
	from := n.names
	if c.Power && !c.KeepNames {
		from = n.kept
	}
	now.names, now.kept = map[string]*node{}, map[string]*node{}
	for base, child := range from {
		now.names[base] = child.crash(c, filepath.Join(name, base), copied)
		now.kept[base] = now.names[base]
	}
	return now
}

// left is what a power loss leaves of a file.
func (n *node) left(c Crash, name string) []byte {
	data := slices.Clone(n.durable)
	if len(n.data) <= len(n.durable) || string(n.data[:len(n.durable)]) != string(n.durable) {
		return data
	}
	unsynced := n.data[len(n.durable):]
	keep := 0
	if c.Keep != nil {
		keep = min(max(c.Keep(name, len(unsynced)), 0), len(unsynced))
	}
	data = append(data, unsynced[:keep]...)
	if c.Zeros {
		data = append(data, make([]byte, len(unsynced)-keep)...)
	}
	return data
}

// ReadFile returns the contents of a file.
func ReadFile(f FS, name string) ([]byte, error) {
	file, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size)
	n, err := file.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}
