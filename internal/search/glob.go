package search

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// GlobOptions say what [Glob] looks for.
type GlobOptions struct {
	Root string // absolute directory
	// Real is the directory where the search begins, Root with the directories at
	// the beginning of Pattern, without a link in it; "" follows those that are
	// there. Nothing is opened through a link that takes its place meanwhile.
	Real    string
	Pattern string // relative to Root: **, *, ?, [a-z], {a,b}
	Hidden  bool   // also names that begin with a dot
	Ignore  bool   // leave out what .gitignore and its kin name
	Limit   int    // paths returned; 0: all
	// Skip reports whether a file must not be named; nil: none. It gets
	// absolute paths and may be called from several goroutines.
	Skip   func(path string) bool
	Getenv func(string) string // for the user's git configuration; nil: none
}

// GlobResult is what [Glob] found.
type GlobResult struct {
	Paths      []string // absolute, newest first, ties by path
	Total      int      // files found, also beyond Limit
	Unreadable int      // directories that could not be read
	LeftOut    bool     // ignore rules took files or directories away
}

// SplitPattern splits a glob pattern into the leading directories that are
// written without wildcards, with a slash at the end, and the rest.
func SplitPattern(pattern string) (base, rest string) { return splitBase(pattern) }

// Glob returns the files whose path below the root fits the pattern. When ctx
// ends it returns what it has found until then together with the cause. A
// pattern that begins with directories without wildcards is searched from there,
// also when ignore rules or the dot would hide them.
func Glob(ctx context.Context, o GlobOptions) (*GlobResult, error) {
	base, rest := splitBase(filepath.ToSlash(o.Pattern))
	p, err := compilePattern(rest)
	if err != nil {
		return nil, err
	}
	res := &GlobResult{}
	root := filepath.Join(o.Root, filepath.FromSlash(base))
	start := &walk{root: root, real: o.Real}
	if err := start.resolve(); err != nil {
		return res, context.Cause(ctx)
	}
	if info, err := os.Lstat(start.real); err != nil || !info.IsDir() {
		return res, context.Cause(ctx)
	}
	ending, bySuffix := p.bySuffix()
	found := make([]newest, workersFor())
	for i := range found {
		found[i].limit = o.Limit
	}
	var w *walk
	w = &walk{
		root: start.root, real: start.real, hidden: o.Hidden, ignore: o.Ignore, getenv: o.Getenv, workers: len(found),
		enter: p.within,
		named: p.names,
		want: func(f *folder, e entry) bool {
			if bySuffix {
				return strings.HasSuffix(e.name, ending)
			}
			return p.match(f.rel + e.name)
		},
		visit: func(worker int, f *folder, e entry) {
			path := f.path + e.name
			if o.Skip != nil && o.Skip(filepath.FromSlash(path)) {
				return
			}
			mtime, ok := modTime(w.place(path), e.kind == link)
			if ok && !(e.kind == link && o.Skip != nil && skipTarget(w.place(path), o.Skip)) {
				found[worker].add(hit{path, mtime})
			}
		},
	}
	err = w.run(ctx)
	all := newest{limit: o.Limit}
	for i := range found {
		all.merge(&found[i])
	}
	for _, h := range all.sorted() {
		res.Paths = append(res.Paths, filepath.FromSlash(h.path))
	}
	res.Total, res.Unreadable, res.LeftOut = all.total, int(w.unreadable.Load()), w.leftOut.Load() > 0
	return res, err
}

func skipTarget(path string, skip func(string) bool) bool {
	target, err := filepath.EvalSymlinks(path)
	return err != nil || skip(target)
}

// hit is a file found and when it was changed, in nanoseconds.
type hit struct {
	path  string
	mtime int64
}

func (a hit) compare(b hit) int {
	if c := cmp.Compare(b.mtime, a.mtime); c != 0 {
		return c
	}
	return cmp.Compare(a.path, b.path)
}

// newest keeps the newest hits up to a limit and counts all.
type newest struct {
	limit int
	total int
	hits  []hit
	worst hit // of the kept ones, once there are limit of them
	full  bool
}

func (n *newest) add(h hit) {
	n.total++
	n.keep(h)
}

func (n *newest) keep(h hit) {
	if n.full && h.compare(n.worst) > 0 {
		return
	}
	n.hits = append(n.hits, h)
	if n.limit > 0 && len(n.hits) >= 4*n.limit { // cut now and then instead of a heap
		n.cut()
	}
}

func (n *newest) cut() {
	slices.SortFunc(n.hits, hit.compare)
	if n.limit > 0 && len(n.hits) >= n.limit {
		clear(n.hits[n.limit:])
		n.hits = n.hits[:n.limit]
		n.worst, n.full = n.hits[n.limit-1], true
	}
}

func (n *newest) merge(o *newest) {
	n.total += o.total
	for _, h := range o.hits {
		n.keep(h)
	}
}

func (n *newest) sorted() []hit {
	n.cut()
	return n.hits
}
