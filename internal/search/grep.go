package search

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Mode says what [Grep] reports.
type Mode int

// The modes.
const (
	Files   Mode = iota // the files with a match
	Content             // the matching lines
	Count               // how many lines match in each file
)

// GrepOptions say what [Grep] looks for.
type GrepOptions struct {
	Root string // absolute path of a directory or a regular file
	// Real is Root without a link in it; "" follows those that are there. Nothing is
	// opened through a link that takes its place meanwhile.
	Real    string
	Matcher *Matcher
	Filter  *Filter // nil: all files
	Mode    Mode
	Hidden  bool // also names that begin with a dot
	Ignore  bool // leave out what .gitignore and its kin name
	// Skip reports whether a file must be neither opened nor named; nil: none.
	// It gets absolute paths and may be called from several goroutines.
	Skip   func(path string) bool
	Getenv func(string) string // for the user's git configuration; nil: none

	// Offset and Limit choose from the entries: files, or in Content lines.
	Offset int
	Limit  int // 0: all

	// For Content.
	Only          bool                     // the matches instead of their lines
	Numbers       bool                     // line numbers
	Before, After int                      // lines of context, at most MaxContext
	Name          func(path string) string // how a file is called in the lines; nil: its path
}

// MaxContext bounds the lines of context.
const MaxContext = 10_000

const (
	maxContent = 16 << 20 // bytes of all lines in a result
	maxMatches = 1 << 20  // matches counted in one file, or one line, where each is looked at
)

// FileMatches is a file with matches.
type FileMatches struct {
	Path    string // absolute
	Matches int    // lines that match; with Only or a multiline pattern, matches. In Files: 1
}

// GrepResult is what [Grep] found. Files are ordered newest first, ties by path.
type GrepResult struct {
	Files      []FileMatches // the chosen entries; in Content the files of the lines
	Lines      []string      // in Content
	More       bool          // there are entries beyond the chosen ones
	TotalFiles int           // with a match
	Matches    int           // in all files, as in FileMatches
	Searched   int           // files that the filter let through
	Unreadable int           // files and directories that could not be read
	TooLarge   int           // files left out, because a multiline pattern needs them whole
	LeftOut    bool          // ignore rules took away files, or directories with files, that the filter may let through
}

// Grep searches a file, or the files below a directory. It goes over them
// twice in Content: once to find and order the files that match, then over
// those whose lines are asked for, so that memory stays bounded. A ctx that
// ends ends the search with its cause.
func Grep(ctx context.Context, o GrepOptions) (*GrepResult, error) {
	o.Before, o.After = min(o.Before, MaxContext), min(o.After, MaxContext)
	w := &walk{root: o.Root, real: o.Real, hidden: o.Hidden, ignore: o.Ignore, getenv: o.Getenv, workers: workersFor()}
	if err := w.resolve(); err != nil {
		return nil, err
	}
	info, err := os.Lstat(w.real)
	if err != nil {
		return nil, err
	}
	searchers := make([]*searcher, w.workers)
	for i := range searchers {
		searchers[i] = newSearcher(&o, w)
	}
	if info.IsDir() {
		w.enter = o.Filter.enter
		w.want = func(f *folder, e entry) bool { return e.kind == regular && o.Filter.want(f.rel, e.name) }
		w.visit = func(worker int, f *folder, e entry) { searchers[worker].file(f.path+e.name, false) }
		err = w.run(ctx)
	} else if info.Mode().IsRegular() {
		stop := context.AfterFunc(ctx, func() { w.stopped.Store(true) })
		searchers[0].file(w.root, true)
		stop()
		err = context.Cause(ctx)
	} else {
		err = &fs.PathError{Op: "search", Path: o.Root, Err: fmt.Errorf("not a directory or regular file: %w", fs.ErrInvalid)}
	}
	if err != nil {
		return nil, err
	}
	res := &GrepResult{Unreadable: int(w.unreadable.Load()), LeftOut: w.leftOut.Load() > 0}
	var found []fileHit
	for _, s := range searchers {
		found = append(found, s.found...)
		res.Searched += s.searched
		res.Unreadable += s.unreadable
		res.TooLarge += s.tooLarge
	}
	slices.SortFunc(found, func(a, b fileHit) int { return a.compare(b.hit) })
	res.TotalFiles = len(found)
	for _, f := range found {
		res.Matches += f.matches
	}
	if o.Mode == Content {
		err = searchers[0].content(ctx, found, !info.IsDir(), res)
		return res, err
	}
	chosen := found[min(o.Offset, len(found)):]
	if o.Limit > 0 && len(chosen) > o.Limit {
		chosen, res.More = chosen[:o.Limit], true
	}
	for _, f := range chosen {
		res.Files = append(res.Files, FileMatches{filepath.FromSlash(f.path), f.matches})
	}
	return res, nil
}

type fileHit struct {
	hit
	matches int
	binary  bool
}

// searcher searches one file after the other. It belongs to one goroutine.
type searcher struct {
	o    *GrepOptions
	walk *walk
	scan *scanner
	r    reader

	found      []fileHit
	searched   int
	unreadable int
	tooLarge   int
}

func newSearcher(o *GrepOptions, w *walk) *searcher {
	s := &searcher{o: o, walk: w, scan: o.Matcher.scanner()}
	s.scan.auto.stop = &w.stopped
	return s
}

// file looks whether, and in how many places, a file matches.
func (s *searcher) file(path string, named bool) {
	if s.o.Skip != nil && s.o.Skip(filepath.FromSlash(path)) {
		return
	}
	s.searched++
	matches := 0
	isBinary, err := s.r.read(s.walk.place(path), named, s.o.Matcher.multiline, func(text []byte) bool {
		matches += s.count(text)
		return (s.o.Mode != Files || matches == 0) && !s.walk.stopped.Load()
	})
	switch {
	case err == errTooLarge:
		s.tooLarge++
	case err != nil:
		s.unreadable++
	case matches > 0:
		if s.o.Mode == Files {
			matches = 1
		}
		if mtime, ok := modTime(s.walk.place(path), false); ok {
			s.found = append(s.found, fileHit{hit{path, mtime}, matches, isBinary})
		}
	}
}

// count returns the matching lines of a text, or its matches; for Files one is
// enough.
func (s *searcher) count(text []byte) (n int) {
	m := s.o.Matcher
	if m.multiline {
		switch {
		case !s.scan.anywhere(text):
			return 0
		case s.o.Mode == Files:
			return 1
		}
		return len(m.re.FindAllIndex(text, maxMatches))
	}
	s.scan.begin(text)
	for pos := 0; ; {
		start, end, ok := s.scan.line(text, pos)
		switch {
		case !ok:
			return n
		case s.o.Mode == Content && s.o.Only:
			n += len(s.only(text[start:end]))
		default:
			n++
		}
		if s.o.Mode == Files {
			return n
		}
		pos = end + 1
	}
}

// only returns the places of the matches in a line that are not empty.
func (s *searcher) only(line []byte) [][]int {
	all := s.o.Matcher.re.FindAllIndex(line, maxMatches)
	return slices.DeleteFunc(all, func(m []int) bool { return m[0] == m[1] })
}

// content writes the chosen lines of the files into res.
func (s *searcher) content(ctx context.Context, found []fileHit, named bool, res *GrepResult) error {
	out := &page{offset: s.o.Offset, limit: s.o.Limit}
	plain := s.o.Before == 0 && s.o.After == 0 && !s.o.Matcher.multiline
	for _, f := range found {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if out.full() {
			res.More = true
			break
		}
		if plain && !f.binary && out.offset-out.seen >= f.matches {
			out.seen += f.matches // none of its lines is asked for
			continue
		}
		before := len(out.lines)
		p := newPrinter(s, f.path, out)
		if f.binary && named {
			out.add(p.name + ": binary file matches")
		} else if _, err := s.r.read(s.walk.place(f.path), named, s.o.Matcher.multiline, p.text); err != nil {
			res.Unreadable++ // it was readable a moment ago
		}
		if len(out.lines) > before {
			res.Files = append(res.Files, FileMatches{filepath.FromSlash(f.path), f.matches})
		}
	}
	res.Lines, res.More = out.lines, res.More || out.more
	return nil
}

// page takes lines and keeps those of one page.
type page struct {
	offset, limit int
	seen          int
	bytes         int
	lines         []string
	more          bool // a line came after the last one kept
}

func (p *page) full() bool {
	return p.limit > 0 && len(p.lines) >= p.limit || p.bytes >= maxContent
}

func (p *page) wants() bool { return p.seen >= p.offset && !p.full() }

func (p *page) add(line string) {
	if p.full() {
		p.more = true
		return
	}
	if p.seen++; p.seen > p.offset {
		p.lines = append(p.lines, line)
		p.bytes += len(line) + 1
	}
}

var newline = []byte("\n")

// linesIn is the number of lines in a text; the last need not have an end.
func linesIn(text []byte) int {
	n := bytes.Count(text, newline)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}
