package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

// command is the shell command of a request, taken apart.
type command struct {
	p      *Policy
	text   string // blanks collapsed
	script shell.Script
	err    error   // it could not be read (P-70)
	parts  []place // one for each of script.Parts
	moves  bool    // it may change its directory
	end    place   // where it may be when it is done
	depth  int     // 0: the command itself; else a script inside another
	outer  *command
	part   int  // of outer, that may run this one
	exact  bool // nothing expands in the text before a shell reads it
	left   *int // how many scripts may still be read
	edits  map[*place]*edit
	told   *told // what rules about commands ask, once it was asked
}

// told is what rules about commands look at.
type told struct {
	texts  []text
	unread bool // a part of the command could not be read (P-70)
}

// text is a text in a command; quoted says that it still has its quotes.
type text struct {
	text   string
	quoted bool
}

// place is where a part runs and what may run in it.
type place struct {
	dirs    []string // every directory that it may run in
	unknown bool     // or another one
	inner   []inner
	subs    []*command // scripts that it may hand to a shell
	feeds   bool       // it hands on names that are not in the text
	text    string     // of the part
	key     string     // of dirs, for seen; "": not made yet
	seen    *seen      // of all places
	disk    *links     // of all places
}

// seen is what was found out about paths, for one decision.
type seen struct {
	paths  map[pathKey][]Access
	behind map[behindKey]behind
	linked map[string]bool // trees: whether there are links in them
}

type pathKey struct {
	kind       Kind
	dirs, path string
}

type behindKey struct {
	source, targets string
	follow          bool
}

type behind struct {
	all []Access
	ok  bool
}

// inner is a command that a part may run, with what rules ask about it one after
// the other.
type inner struct {
	words        []shell.Word
	text, loose  string // with and without quotes
	files        *shell.Files
	named, known bool // files are those of NamedFiles; it was asked
	use          *shell.Use
	reads        bool         // use is that of ReadOnly
	shown        *shell.Files // of a command that only reads: what it shows the content of
}

// namedFiles is shell.NamedFiles, once.
func (in *inner) namedFiles() (*shell.Files, bool) {
	if !in.known {
		in.known = true
		if files, ok := shell.NamedFiles(in.words); ok {
			in.files, in.named = &files, true
		} else {
			in.files = &noFiles
		}
	}
	return in.files, in.named
}

// readOnly is shell.ReadOnly, once.
func (in *inner) readOnly() (*shell.Use, bool) {
	if in.use == nil {
		if use, ok := shell.ReadOnly(in.words); ok {
			in.use, in.reads = &use, true
		} else {
			in.use = &noUse
		}
	}
	return in.use, in.reads
}

// shownFiles are the files whose content a command shows that only reads.
func (in *inner) shownFiles() (*shell.Files, bool) {
	use, ok := in.readOnly()
	if !ok || !use.Content {
		return &noFiles, false
	}
	if in.shown == nil {
		paths := use.Paths
		if use.Git {
			paths = slices.DeleteFunc(slices.Clone(paths), func(w shell.Word) bool { return !w.Literal })
		}
		in.shown = &shell.Files{Reads: paths}
	}
	return in.shown, true
}

// What is known of other commands; not changed.
var (
	noFiles shell.Files
	noUse   shell.Use
)

// readOnly is shell.ReadOnly for the words of a part, or those that are left of
// them.
func (at *place) readOnly(words []shell.Word) (*shell.Use, bool) {
	for j := range at.inner {
		in := &at.inner[j]
		if sameWords(in.words, words) {
			return in.readOnly()
		}
	}
	use, ok := shell.ReadOnly(words)
	return &use, ok
}

// sameWords reports whether two lists are one, not only alike.
func sameWords(a, b []shell.Word) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// innerOf finds the commands that a part may run. text is that of the part.
func innerOf(part *shell.Part, text string) []inner {
	found := shell.Inner(part.Words)
	all := make([]inner, len(found))
	for i, words := range found {
		in := &all[i]
		in.words = words
		if in.text = text; !sameWords(words, part.Words) {
			in.text = shell.Text(words)
		}
		if in.loose = in.text; shell.Quoted(words) {
			in.loose = shell.Unquoted(words)
		}
	}
	return all
}

// The bounds of what is followed: directories that a part may run in, and
// changes of the directory. Beyond them it is not known where a part runs.
const (
	maxDirs  = 8
	maxMoves = 16
	// Scripts inside scripts, and all of them together.
	maxDepth   = 5
	maxScripts = shell.MaxScripts
)

// command reads the command of a request; nil for tools that run none.
func (p *Policy) command(name string, r Request) *command {
	if name != "Bash" && name != "Monitor" {
		return nil
	}
	left := maxScripts
	c := &command{p: p, left: &left, exact: true}
	var found bool
	for _, a := range r.Accesses {
		if a.Kind != Exec {
			continue
		}
		if found {
			c.err = errCommands
			return c
		}
		found, c.text = true, a.Target
	}
	if !found {
		c.err = errNoCommand
		return c
	}
	c.script, c.err = shell.Parse(c.text)
	c.text = shell.Collapse(strings.TrimSpace(c.text))
	at := place{dirs: p.start, seen: &seen{}, disk: &links{}}
	if r.Dir != "" {
		at.dirs = nil
		at.add(r.Dir)
	}
	c.walk(at)
	return c
}

// walk finds out where each part may run. A cd that may or may not have taken
// place leaves both directories possible.
func (c *command) walk(at place) {
	loops := false
	for i := range c.script.Parts {
		part := &c.script.Parts[i]
		if !part.Loop {
			continue
		}
		if words, _ := shell.Stripped(part.Words); isMove(words) {
			loops, at.unknown = true, true // it may have run before any other part of its loop
		}
	}
	last, moves := -1, 0 // the part that moved last, and how many did
	var to place
	c.parts = make([]place, len(c.script.Parts))
	for i := range c.script.Parts {
		part, now := &c.script.Parts[i], &c.parts[i]
		text := part.Text()
		*now = place{dirs: at.dirs, key: at.dirsKey(), unknown: at.unknown, inner: innerOf(part, text), feeds: shell.Feeds(part.Words), text: text, seen: at.seen, disk: at.disk}
		if last >= 0 && !loops && slices.Contains(part.After, last) {
			now.dirs, now.key, now.unknown = to.dirs, "", to.unknown
		}
		now.unknown = now.unknown || shell.Moves(part.Words)
		for _, script := range shell.Scripts(*part) {
			c.nest(i, script)
		}
		words, _ := shell.Stripped(part.Words)
		if len(words) > 0 && slices.Contains([]string{"eval", "source", ".", "trap"}, words[0].Text) {
			for _, sub := range now.subs { // it runs in this very shell
				if sub.err == nil && sub.moves {
					at.merge(sub.end)
					at.unknown = at.unknown || part.Loop
					c.moves, last = true, -1
				}
			}
		}
		if !isMove(words) {
			continue
		}
		if moves++; moves > maxMoves {
			last, at.unknown, c.moves = -1, true, true
			continue
		}
		if last, to = i, c.goTo(words, now); part.Name() != "cd" {
			last = -1 // "timeout 5 cd x" moves nobody
		}
		c.moves = c.moves || to.unknown || slices.ContainsFunc(to.dirs, func(d string) bool { return !slices.Contains(now.dirs, d) })
		at.merge(to)
	}
	c.end = at
}

// dirsKey is the directories as a part of a key.
func (at *place) dirsKey() string {
	if at.key == "" && len(at.dirs) > 0 {
		at.key = strings.Join(at.dirs, "\x00")
	}
	return at.key
}

// merge adds the directories of another place. Other places may hold the list
// that was.
func (at *place) merge(to place) {
	at.unknown = at.unknown || to.unknown
	at.dirs, at.key = slices.Clone(at.dirs), ""
	for _, dir := range to.dirs {
		if !slices.Contains(at.dirs, dir) {
			at.dirs = append(at.dirs, dir)
		}
	}
	if len(at.dirs) > maxDirs {
		at.dirs, at.unknown = at.dirs[:maxDirs], true
	}
}

// goTo returns where a command that changes the directory leads.
func (c *command) goTo(words []shell.Word, from *place) (to place) {
	path, ok := c.cdTarget(words)
	if !ok || from.unknown && !filepath.IsAbs(path) {
		return place{unknown: true}
	}
	to.disk = from.disk
	for _, dir := range from.dirs {
		a, err := from.disk.access(Read, dir, path)
		if err != nil {
			return place{unknown: true}
		}
		to.add(a.Written)
		to.add(a.Target)
	}
	return to
}

func (at *place) add(dir string) {
	at.key = ""
	dir = filepath.Clean(dir)
	if !slices.Contains(at.dirs, dir) {
		at.dirs = append(at.dirs, dir)
	}
	if real, err := at.disk.resolve(dir); err != nil {
		at.unknown = true
	} else if !slices.Contains(at.dirs, real) {
		at.dirs = append(at.dirs, real)
	}
}

func isMove(words []shell.Word) bool {
	return len(words) > 0 && slices.Contains([]string{"cd", "pushd", "popd", "chdir"}, words[0].Text)
}

// cdTarget is the directory that cd goes to; ok is false when that is not known.
func (c *command) cdTarget(words []shell.Word) (dir string, ok bool) {
	switch {
	case words[0].Text != "cd", len(words) > 2:
		return "", false
	case len(words) == 1:
		if len(c.p.home) == 0 {
			return "", false
		}
		return c.p.home[0], true
	case strings.HasPrefix(words[1].Text, "-"):
		return "", false
	}
	return c.p.expand(words[1])
}

// expand returns the path that a word names: literal, or below the home
// directory.
func (p *Policy) expand(w shell.Word) (path string, ok bool) {
	switch {
	case w.Literal:
		return w.Text, w.Text != ""
	case w.Tilde && w.Glob && w.Prefix == w.Flat && len(p.home) > 0 && (w.Flat == "~" || strings.HasPrefix(w.Flat, "~/")):
		return p.home[0] + w.Flat[1:], true
	}
	return "", false
}

// upwards reports whether a text may become ".." when globs and braces expand:
// ".*" names it in some shells, and braces can put it together.
func upwards(s string) bool {
	for i := range len(s) - 1 {
		next := s[i+1]
		switch s[i] {
		case '.':
			if next == '.' || (i == 0 || s[i-1] == '/') && strings.IndexByte("*?[{", next) >= 0 {
				return true
			}
		case '{', ',':
			if next == '.' || next == ',' || next == '}' && s[i] == ',' {
				return true
			}
		}
	}
	return false
}

// globDir returns the directory below which a word with globs stays.
func (p *Policy) globDir(w shell.Word) (dir string, ok bool) {
	if !w.Glob || w.Literal || upwards(w.Flat) || w.Brace && w.Prefix == "" {
		return "", false
	}
	dir = w.Prefix
	if w.Tilde {
		if !strings.HasPrefix(dir, "~/") || len(p.home) == 0 {
			return "", false
		}
		dir = p.home[0] + dir[1:]
	}
	i := strings.LastIndexByte(dir, '/')
	switch {
	case i < 0:
		return ".", true
	case i == 0:
		return "/", true
	}
	return dir[:i], true
}

// accesses returns the accesses to a path in every directory that it may be
// relative to; ok is false when they are not all known.
func (at *place) accesses(kind Kind, path string) (all []Access, ok bool) {
	dirs, key := at.dirs, pathKey{kind: kind, path: path}
	if filepath.IsAbs(path) {
		dirs = rootDir
	} else if at.unknown || len(dirs) == 0 {
		return nil, false
	} else {
		key.dirs = at.dirsKey()
	}
	all, known := at.seen.paths[key]
	if !known {
		all = make([]Access, 0, len(dirs))
		for _, dir := range dirs {
			a, err := at.disk.access(kind, dir, path)
			if err != nil {
				all = nil
				break
			}
			all = append(all, a)
		}
		if at.seen.paths == nil {
			at.seen.paths = map[pathKey][]Access{}
		}
		at.seen.paths[key] = all
	}
	return slices.Clip(all), len(all) > 0
}

var rootDir = []string{"/"}

// hold says whether a rule that forbids covers a call.
type hold int

const (
	no    hold = iota
	maybe      // it cannot be told: somebody must look at it
	yes
)

// texts calls f with every text that rules about commands look at, until it
// returns true. quoted says that the text still has its quotes.
func (c *command) texts(f func(text string, quoted bool) bool) bool {
	return c.any(func(c *command) bool { return c.ownTexts(f) })
}

func (c *command) ownTexts(f func(text string, quoted bool) bool) bool {
	if f(c.text, true) {
		return true
	}
	if c.err != nil { // a rough look is better than none
		for _, piece := range strings.FieldsFunc(c.text, func(r rune) bool { return strings.ContainsRune(";&|\n()`{}", r) }) {
			piece = shell.Collapse(piece)
			for {
				if f(piece, true) {
					return true
				}
				first, rest, more := strings.Cut(piece, " ")
				if !more || !slices.Contains([]string{"if", "then", "else", "elif", "while", "until", "do", "time", "!"}, first) {
					break
				}
				piece = rest
			}
		}
		return false
	}
	for _, s := range c.script.Statements {
		if f(s, true) {
			return true
		}
	}
	for i := range c.script.Parts {
		if c.partTexts(i, f) {
			return true
		}
	}
	return false
}

// partTexts is texts for one part, without the scripts inside it. Rules that allow
// do not see them: a command without some of its options is another one.
func (c *command) partTexts(i int, f func(text string, quoted bool) bool) bool {
	at := &c.parts[i]
	if at.text != "" && f(at.text, true) {
		return true
	}
	for j := range at.inner {
		in := &at.inner[j]
		if f(in.text, true) || f(in.loose, false) {
			return true
		}
		for _, words := range shell.Direct(in.words) {
			if f(shell.Text(words), true) || shell.Quoted(words) && f(shell.Unquoted(words), false) {
				return true
			}
		}
	}
	return false
}

// forbids reports whether a deny or ask rule about commands covers the command
// or any part of it.
func (c *command) forbids(rule *commandPattern) hold {
	if c.told == nil {
		c.told = &told{unread: c.unread(), texts: make([]text, 0, 1+len(c.script.Statements)+len(c.script.Parts))}
		c.texts(func(text string, quoted bool) bool {
			c.told.add(text, quoted)
			return false
		})
	}
	for _, t := range c.told.texts {
		if rule.matchText(t.text, t.quoted) {
			return yes
		}
	}
	if c.told.unread {
		return maybe
	}
	return no
}

// add notes a text, if it is another one than the last few: a simple command is a
// statement, a part and what the part runs. Without quotes a text matches more.
func (t *told) add(s string, quoted bool) {
	for i := max(0, len(t.texts)-4); i < len(t.texts); i++ {
		if last := &t.texts[i]; last.text == s {
			last.quoted = last.quoted && quoted
			return
		}
	}
	t.texts = append(t.texts, text{s, quoted})
}

// reaches reports whether the command names a file that a deny or ask rule
// about paths covers (P-73 to P-75).
func (c *command) reaches(rule *Rule) hold {
	found := no
	c.any(func(c *command) bool {
		found = max(found, c.itselfReaches(rule))
		return found == yes
	})
	return found
}

func (c *command) itselfReaches(rule *Rule) hold {
	if c.err != nil {
		return maybe
	}
	found := no
	for i := range c.script.Parts {
		found = max(found, c.partReaches(i, rule))
	}
	return found
}

// partReaches is reaches for one part.
func (c *command) partReaches(i int, rule *Rule) (found hold) {
	part, at := &c.script.Parts[i], &c.parts[i]
	for _, red := range part.Redirects {
		if rule.Tool == "Read" || red.Write {
			found = max(found, c.names(rule.path, at, red.Target, false))
		}
	}
	for j := range at.inner {
		in := &at.inner[j]
		if at.feeds { // it gets names that are not in the text
			more, _ := shell.NamedFiles(append(slices.Clone(in.words), shell.Word{Text: "x", Source: "x", Literal: true}))
			if rule.Tool != "Edit" || len(more.Writes) > 0 {
				found = max(found, maybe)
			}
		}
		found = max(found, c.namedFiles(rule, i, in))
	}
	return found
}

// names reports whether a word names something that the pattern covers.
func (c *command) names(pattern *pathPattern, at *place, w shell.Word, recursive bool) hold {
	path, literal := c.p.expand(w)
	if !literal {
		if w.Literal { // an empty word
			return no
		}
		dir, ok := c.p.globDir(w)
		if !ok {
			return maybe
		}
		path = dir
	}
	all, known := at.accesses(Read, path)
	if !known {
		return maybe
	}
	out := no
	if !literal {
		more, ok := at.behind(all, w, false, false)
		if !ok {
			return maybe
		}
		all = append(all, more...)
	}
	for _, a := range all {
		switch {
		case literal && pattern.covers(a):
			return yes
		case (recursive && !regular(a.Target) || !literal) && (pattern.mayReach(a.Target) || pattern.mayReach(a.Written)):
			out = maybe
		}
	}
	return out
}
