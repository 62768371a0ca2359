package search

import (
	"bytes"
	"strings"
)

// verdict is what ignore rules say of a path.
type verdict uint8

const (
	none verdict = iota
	ignored
	kept // by a line with "!"
)

// ignoreFile is a compiled .gitignore or a file like it. The last line that
// fits decides; lines that name just a file, or an ending, are found by map.
type ignoreFile struct {
	rules   []ignoreRule
	names   map[string][]int // literal base names
	endings map[string][]int // ".ext" of "*.ext"
	others  []int
	paths   bool // a rule looks at more than the base name
}

type ignoreRule struct {
	keep     bool
	dirOnly  bool
	baseOnly bool // no slash in it: fits the base name at any depth
	segs     []segment
}

// parseIgnore reads the text of an ignore file as gitignore(5) says. Lines
// that cannot be read match nothing, as with git. It returns nil when no rule
// is left.
func parseIgnore(text []byte) *ignoreFile {
	f := &ignoreFile{names: map[string][]int{}, endings: map[string][]int{}}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	for line := range bytes.Lines(text) {
		for _, line := range asGit(string(line)) {
			if rule, ok := parseIgnoreLine(line); ok {
				f.add(rule)
			}
		}
	}
	if len(f.rules) == 0 {
		return nil
	}
	return f
}

// asGit returns the lines that stand for one. Git compares the text before the
// first wildcard by itself and looks only at the rest, so that in "a**/b" and
// "c/a**" the stars begin the pattern for it and reach over slashes, whatever
// gitignore(5) says of such stars.
func asGit(line string) []string {
	at := strings.IndexAny(line, `*?[\`)
	if at < 1 || line[at] != '*' || line[at-1] == '/' || line[at-1] == '!' && at == 1 || line[0] == '#' {
		return []string{line}
	}
	before, keep := strings.CutPrefix(line[:at], "!")
	before = "/" + strings.TrimPrefix(before, "/") // also where what is left has no other slash
	if keep {
		before = "!" + before
	}
	rest := strings.TrimLeft(line[at:], "*")
	if len(line)-len(rest)-at >= 2 && strings.TrimRight(rest, " \r\n") == "//" {
		return []string{before + "/"}
	}
	if len(line)-len(rest)-at < 2 || !strings.Contains(strings.TrimRight(strings.TrimLeft(line, "!"), "/ \r\n"), "/") {
		return []string{line}
	}
	switch below, ok := strings.CutPrefix(rest, "/"); {
	case ok && strings.TrimRight(below, " \r\n") != "":
		return []string{before + below, before + "*/**/" + below}
	case strings.TrimRight(rest, "/ \r\n") == "":
		return []string{before + "*" + rest, before + "*/**" + rest}
	}
	return []string{line}
}

func parseIgnoreLine(line string) (r ignoreRule, ok bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimBlanks(line)
	if rest, neg := strings.CutPrefix(line, "!"); neg {
		r.keep, line = true, rest
	}
	line, r.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return r, false
	}
	r.baseOnly = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	segs, err := parseSegments(line)
	if err != nil {
		return r, false
	}
	if r.baseOnly && segs[0].kind == deep {
		segs[0].kind = anything
	}
	for i, s := range segs { // "**" repeated is one
		if s.kind == exact && s.lit == "" {
			return r, false // nothing has an empty name
		}
		if s.kind == deep && i > 0 && segs[i-1].kind == deep && i == len(segs)-1 {
			segs = segs[:i]
		}
	}
	if len(segs) == 2 && segs[0].kind == deep && segs[1].kind != deep {
		segs, r.baseOnly = segs[1:], true // "**/name" is "name"
	}
	r.segs = segs
	return r, true
}

// trimBlanks removes blanks from the end, unless a backslash is before them.
func trimBlanks(line string) string {
	end := len(line)
	for end > 0 && line[end-1] == ' ' {
		slashes := 0
		for i := end - 2; i >= 0 && line[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 1 {
			break
		}
		end--
	}
	return line[:end]
}

func (f *ignoreFile) add(r ignoreRule) {
	i := len(f.rules)
	f.rules = append(f.rules, r)
	if r.baseOnly {
		switch s := r.segs[0]; {
		case s.kind == exact:
			f.names[s.lit] = append(f.names[s.lit], i)
			return
		case s.kind == suffix && strings.LastIndexByte(s.lit, '.') == 0:
			f.endings[s.lit] = append(f.endings[s.lit], i)
			return
		}
	}
	f.others = append(f.others, i)
	f.paths = f.paths || !r.baseOnly
}

// match judges a path relative to the file's directory; base is its last
// element.
func (f *ignoreFile) match(path, base string, isDir bool) verdict {
	best := -1
	last := func(list []int) {
		for j := len(list) - 1; j >= 0 && list[j] > best; j-- {
			if isDir || !f.rules[list[j]].dirOnly {
				best = list[j]
				return
			}
		}
	}
	if len(f.names) > 0 {
		last(f.names[base])
	}
	if len(f.endings) > 0 {
		if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
			last(f.endings[base[dot:]])
		}
	}
	for j := len(f.others) - 1; j >= 0 && f.others[j] > best; j-- {
		r := &f.rules[f.others[j]]
		if r.dirOnly && !isDir {
			continue
		}
		if r.baseOnly && r.segs[0].match(base) || !r.baseOnly && matchPath(r.segs, path, true) {
			best = f.others[j]
		}
	}
	switch {
	case best < 0:
		return none
	case f.rules[best].keep:
		return kept
	}
	return ignored
}

// The kinds of ignore files, the strongest first, as ripgrep orders them.
const (
	rgignore = iota
	dotignore
	gitignore
	gitexclude // .git/info/exclude of the repository
	ignoreKinds
)

// ignoreNames are the files looked for in every directory.
var ignoreNames = [...]string{rgignore: ".rgignore", dotignore: ".ignore", gitignore: ".gitignore"}

// level is a directory with ignore files of its own, or the root of a
// repository. Directories without share the level above.
type level struct {
	up      *level
	dir     string // absolute, with a slash at the end
	files   [ignoreKinds]*ignoreFile
	gitRoot bool
	inGit   bool              // it, or a level above, is a repository's root
	has     [ignoreKinds]bool // it, or a level above, has a file of the kind
}

func (l *level) push(dir string, files [ignoreKinds]*ignoreFile, gitRoot bool) *level {
	n := &level{up: l, dir: dir, files: files, gitRoot: gitRoot, inGit: gitRoot}
	for k := range files {
		n.has[k] = files[k] != nil
	}
	if l != nil {
		n.inGit = n.inGit || l.inGit
		for k := range files {
			n.has[k] = n.has[k] || l.has[k]
		}
	}
	return n
}

// ignores judges the entry base of the directory dir (absolute, with a slash at
// the end); global is the user's own file of excludes, or nil.
func (l *level) ignores(global *ignoreFile, dir, base string, isDir bool) bool {
	if l == nil {
		return false
	}
	path := "" // of the entry, made when needed
	judge := func(f *ignoreFile, at *level) verdict {
		if !f.paths {
			return f.match("", base, isDir)
		}
		if path == "" {
			path = dir + base
		}
		return f.match(path[len(at.dir):], base, isDir)
	}
	for k := range ignoreKinds {
		if !l.has[k] || k >= gitignore && !l.inGit {
			continue
		}
		for at := l; at != nil; at = at.up {
			if f := at.files[k]; f != nil {
				if v := judge(f, at); v != none {
					return v == ignored
				}
			}
			if k >= gitignore && at.gitRoot {
				break // what is above belongs to another repository
			}
		}
	}
	if global != nil && l.inGit {
		at := l
		for !at.gitRoot {
			at = at.up
		}
		return judge(global, at) == ignored
	}
	return false
}
