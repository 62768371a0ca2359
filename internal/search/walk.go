package search

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// kind is what a directory entry is.
type kind uint8

const (
	regular kind = iota
	directory
	link
	special // pipe, socket, device
	unknown // the file system does not say; ask for it
)

func kindOf(m fs.FileMode) kind {
	switch m.Type() {
	case 0:
		return regular
	case fs.ModeDir:
		return directory
	case fs.ModeSymlink:
		return link
	}
	return special
}

// entry is a name in a directory.
type entry struct {
	name string
	kind kind
}

// folder is a directory of the walk.
type folder struct {
	path  string // absolute, with slashes and one at the end
	rel   string // below the root: "" or with a slash at the end
	level *level // the ignore rules that hold in it
	root  bool
}

// maxWorkers bounds the goroutines of one search.
const maxWorkers = 8

// batch is how many files of a directory make one piece of work, so that a
// directory of many files is shared among the workers.
const batch = 32

// walk goes through the files below a directory with several goroutines.
// Symbolic links are not followed, so there are no loops (B-093); a directory
// that cannot be read is skipped and counted.
type walk struct {
	root    string // absolute
	real    string // root without a link in it; what is opened is opened there
	hidden  bool   // also names that begin with a dot
	ignore  bool   // leave out what .gitignore and its kin name
	getenv  func(string) string
	enter   func(rel string) bool         // whether a directory may hold wanted files; nil: always
	named   func(name string) bool        // whether a hidden name is asked for by name; nil: none is
	want    func(f *folder, e entry) bool // cheap test of a file, before the ignore rules
	visit   func(worker int, f *folder, e entry)
	workers int // filled in by start

	global *ignoreFile

	mu      sync.Mutex
	cond    *sync.Cond
	stack   []work
	pending int // pieces on the stack or being done
	failure error

	stopped    atomic.Bool
	unreadable atomic.Int64
	leftOut    atomic.Int64 // entries that ignore rules took away
}

type work struct {
	dir   *folder
	files []entry // nil: the directory is to be read
}

// run walks until the end or until ctx ends; visit is called from up to
// workers goroutines, each with its own number.
func (w *walk) run(ctx context.Context) error {
	w.cond = sync.NewCond(&w.mu)
	root := &folder{path: withSlash(filepath.ToSlash(w.root)), root: true}
	if w.ignore {
		w.global = globalExcludes(w.getenv)
		root.level = w.rootLevel(root.path)
	}
	w.push(work{dir: root})
	defer context.AfterFunc(ctx, w.stop)()
	var wg sync.WaitGroup
	for i := range w.workers {
		wg.Go(func() { w.work(i) })
	}
	wg.Wait()
	if w.failure != nil {
		return w.failure
	}
	return context.Cause(ctx)
}

// resolve fills in where the root really is.
func (w *walk) resolve() (err error) {
	if w.real == "" {
		w.real, err = filepath.EvalSymlinks(w.root)
	}
	w.root, w.real = filepath.ToSlash(w.root), filepath.ToSlash(w.real)
	return err
}

// place is where a path of the walk is opened.
func (w *walk) place(path string) string {
	if w.real == w.root {
		return path
	}
	rest := strings.TrimPrefix(path[len(w.root):], "/")
	if rest == "" {
		return w.real
	}
	return withSlash(w.real) + rest
}

// workersFor is how many goroutines a search uses.
func workersFor() int { return max(1, min(runtime.GOMAXPROCS(0), maxWorkers)) }

func withSlash(dir string) string {
	if strings.HasSuffix(dir, "/") {
		return dir
	}
	return dir + "/"
}

func (w *walk) stop() {
	w.stopped.Store(true)
	w.mu.Lock()
	w.cond.Broadcast()
	w.mu.Unlock()
}

func (w *walk) push(items ...work) {
	w.mu.Lock()
	w.stack = append(w.stack, items...)
	w.pending += len(items)
	w.mu.Unlock()
	if len(items) > 1 {
		w.cond.Broadcast()
	} else {
		w.cond.Signal()
	}
}

// pop waits for a piece of work; ok is false when there will be none. The
// last piece pushed comes first, which keeps the stack short.
func (w *walk) pop(done int) (item work, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending -= done; w.pending == 0 {
		w.cond.Broadcast()
	}
	for len(w.stack) == 0 && w.pending > 0 && !w.stopped.Load() {
		w.cond.Wait()
	}
	if len(w.stack) == 0 || w.stopped.Load() {
		return item, false
	}
	last := len(w.stack) - 1
	item, w.stack[last] = w.stack[last], work{}
	w.stack = w.stack[:last]
	return item, true
}

func (w *walk) work(worker int) {
	defer func() {
		if r := recover(); r != nil { // a fault of ours must not end the program
			w.mu.Lock()
			w.failure = fmt.Errorf("search failed: %v", r)
			w.mu.Unlock()
			w.stop()
		}
	}()
	buf := make([]byte, 32<<10)
	var entries []entry
	done := 0
	for {
		item, ok := w.pop(done)
		if !ok {
			return
		}
		done = 1
		if item.files == nil {
			entries = w.read(worker, item.dir, buf, entries[:0])
			continue
		}
		for _, e := range item.files {
			if w.stopped.Load() {
				return
			}
			w.visit(worker, item.dir, e)
		}
	}
}

// read lists a directory, visits its files or hands them on, and pushes its
// directories.
func (w *walk) read(worker int, dir *folder, buf []byte, entries []entry) []entry {
	entries, err := readDir(w.place(dir.path), buf, entries)
	if err != nil {
		w.unreadable.Add(1)
	}
	if w.ignore && !dir.root {
		dir.level = w.levelOf(dir.level, dir.path, entries)
	}
	var dirs []work
	files := entries[:0]
	for _, e := range entries {
		if e.kind == unknown {
			info, err := os.Lstat(w.place(dir.path + e.name))
			if err != nil {
				continue
			}
			e.kind = kindOf(info.Mode())
		}
		if e.kind == special || !w.shown(e) {
			continue
		}
		if e.kind == directory {
			if w.enter != nil && !w.enter(dir.rel+e.name) {
				continue
			}
		} else if !w.want(dir, e) {
			continue
		}
		if w.ignore && dir.level.ignores(w.global, dir.path, e.name, e.kind == directory) {
			w.leftOut.Add(1)
			continue
		}
		if e.kind == directory {
			dirs = append(dirs, work{dir: &folder{path: dir.path + e.name + "/", rel: dir.rel + e.name + "/", level: dir.level}})
		} else {
			files = append(files, e)
		}
	}
	if len(files) > batch {
		shared := slices.Clone(files[batch:])
		for part := range slices.Chunk(shared, batch) {
			dirs = append(dirs, work{dir, part})
		}
		files = files[:batch]
	}
	if len(dirs) > 0 {
		w.push(dirs...)
	}
	for _, e := range files {
		if w.stopped.Load() {
			break
		}
		w.visit(worker, dir, e)
	}
	return entries
}

// vcsDirs hold the data of version control systems: never what is looked for,
// unless it is asked for by name.
var vcsDirs = []string{".git", ".hg", ".svn", ".bzr", ".jj", ".sl", "CVS"}

func (w *walk) shown(e entry) bool {
	if e.name[0] != '.' && e.name[0] != 'C' {
		return true
	}
	hide := e.name[0] == '.' && !w.hidden
	if e.kind == directory || e.name == ".git" { // a file in a linked worktree
		hide = hide || slices.Contains(vcsDirs, e.name)
	}
	return !hide || w.named != nil && w.named(e.name)
}

// levelOf returns the rules in a directory with these entries.
func (w *walk) levelOf(up *level, dir string, entries []entry) *level {
	var files [ignoreKinds]*ignoreFile
	found, git := false, false
	for _, e := range entries {
		if e.name[0] != '.' {
			continue
		}
		if e.name == ".git" && e.kind != link {
			git = true
			continue
		}
		for k, name := range ignoreNames {
			if e.name == name && e.kind != directory {
				files[k] = parseIgnore(readSmall(dir + name))
				found = found || files[k] != nil
			}
		}
	}
	if git {
		files[gitexclude] = gitExclude(dir)
	}
	if !found && !git {
		return up
	}
	return up.push(dir, files, git)
}

// rootLevel gathers the rules of the directories above the root and of the
// root. A root that they would hide, or hide whole, was named by the caller:
// then they do not count (T-100, B-094).
func (w *walk) rootLevel(root string) *level {
	var l *level
	above := root
	for i := 1; i < len(root); i++ { // each prefix that ends in a slash, but the root
		if root[i-1] == '/' {
			above = root[:i]
			name, _, _ := strings.Cut(root[i:], "/")
			l = w.levelAt(l, above)
			if l.ignores(w.global, above, name, true) {
				return w.ownLevel(root, l.inGit)
			}
		}
	}
	at := w.levelAt(l, root)
	if !at.hides(w.global, root) {
		return at
	}
	return w.ownLevel(root, at.inGit)
}

// ownLevel is the level of a root that does not heed the rules above it.
func (w *walk) ownLevel(root string, inGit bool) *level {
	// Whether it lies in a repository still decides about .gitignore files.
	base := (*level)(nil).push(root, [ignoreKinds]*ignoreFile{}, inGit)
	at := w.levelAt(base, root)
	if at.hides(nil, root) {
		return base
	}
	return at
}

// hides reports whether the rules ignore whatever lies in a directory: the
// probes are letters of names that only a pattern for all names fits together.
func (l *level) hides(global *ignoreFile, dir string) bool {
	ignores := func(name string) bool { return l.ignores(global, dir, name, false) }
	if !ignores("\x01\x02\x03\x04") || l.keepsSome(global) {
		return false
	}
	for _, a := range probes {
		if !ignores(string(a)) {
			return false
		}
		for _, b := range probes { // "*[^b]" and a line for "b" fit every single letter
			if !ignores(string([]rune{a, b})) {
				return false
			}
		}
	}
	return true
}

// keepsSome reports whether a line with "!" takes something back: a file of "*"
// and exceptions is a list of what counts, and hides no directory whole.
func (l *level) keepsSome(global *ignoreFile) bool {
	keeps := func(f *ignoreFile) bool {
		return f != nil && slices.ContainsFunc(f.rules, func(r ignoreRule) bool { return r.keep })
	}
	for at := l; at != nil; at = at.up {
		if slices.ContainsFunc(at.files[:], keeps) {
			return true
		}
	}
	return keeps(global)
}

const probes = ".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

func (w *walk) levelAt(up *level, dir string) *level {
	var entries []entry
	for _, name := range append(ignoreNames[:], ".git") {
		if info, err := os.Stat(dir + name); err == nil {
			entries = append(entries, entry{name, kindOf(info.Mode())})
		}
	}
	return w.levelOf(up, dir, entries)
}
