package permission

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// anchors are the directories that path patterns start from (P-79), each in all
// of its forms: as written and as resolved.
type anchors struct {
	cwd, home, source []string
}

// pathPattern is the specifier of a Read or Edit rule: a pattern as in a
// .gitignore file, below its anchor (P-81, P-82).
type pathPattern struct {
	anchors []string // forms of one directory, with forward slashes and one at the end
	runs    []run
	below   bool     // covers only what lies in what it names
	all     bool     // covers the anchor itself
	root    string   // the literal directories that the pattern begins with, relative to the anchor
	roots   []string // root below each of the anchors
}

// caseless says whether the system's file names usually ignore case: a rule that
// forbids must not be got round by other letters.
var caseless = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

var (
	errNegated = errors.New("begins with \"!\": a rule cannot be an exception from another one (P-84)")
	errUpwards = errors.New("holds \"..\": write the path from the root as //path or from the home directory as ~/path")
)

// singleDir is a relative pattern of one directory and all that is in it (P-83).
var singleDir = regexp.MustCompile(`^[^/]+/(\*\*)?$`)

// compilePath reads a pattern. wide is for rules that forbid or ask: where the
// syntax leaves room they cover more, and rules that allow less.
func compilePath(spec string, a anchors, wide bool) (*pathPattern, error) {
	p := &pathPattern{}
	rest := strings.TrimSpace(spec)
	if strings.HasSuffix(rest, `\`) && strings.Contains(spec, rest+" ") {
		rest += " " // a name that ends with a blank
	}
	relative := false
	switch {
	case strings.HasPrefix(rest, "!"):
		return nil, errNegated
	case strings.HasPrefix(rest, "//"):
		p.anchors, rest = []string{"/"}, rest[1:]
	case rest == "~" || strings.HasPrefix(rest, "~/"):
		if len(a.home) == 0 {
			return nil, errors.New("the home directory is not known")
		}
		p.anchors, rest = a.home, rest[1:]
	case strings.HasPrefix(rest, "/"):
		p.anchors = a.source
	default:
		p.anchors, relative = a.cwd, true
		for strings.HasPrefix(rest, "./") {
			rest = strings.TrimLeft(rest[2:], "/")
		}
		if rest == "." {
			rest = ""
		}
	}
	if len(p.anchors) == 0 {
		return nil, errors.New("is relative to a directory that is not known")
	}
	anchored := strings.HasPrefix(rest, "/") || strings.Contains(strings.TrimSuffix(rest, "/"), "/")
	if relative && singleDir.MatchString(rest) && !strings.HasPrefix(rest, "**") {
		anchored = !wide
	}
	rest = strings.TrimLeft(rest, "/")
	dirOnly := strings.HasSuffix(rest, "/")
	rest = strings.TrimRight(rest, "/")
	if rest == "" {
		rest = "**" // the anchor itself and all below
	}
	var parts []string
	for _, part := range strings.Split(rest, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			return nil, errUpwards
		}
		parts = append(parts, part)
	}
	p.all = len(parts) == 1 && parts[0] == "**"
	if err := p.compile(parts, anchored, dirOnly, wide); err != nil {
		return nil, err
	}
	forms := make([]string, len(p.anchors))
	for i, dir := range p.anchors {
		forms[i] = strings.TrimSuffix(slashed(dir), "/") + "/"
	}
	p.anchors = forms
	for _, anchor := range forms {
		root := anchor + p.root
		if root != "/" {
			root = strings.TrimSuffix(root, "/")
		}
		p.roots = append(p.roots, root)
	}
	return p, nil
}

// run is a part of a pattern between two "**": names one below the other.
type run struct {
	names []name
	float bool // at any depth
}

// name is the pattern of one name in a path.
type name struct {
	any  bool
	text string
	glob []string       // in place of text: what stands between stars
	re   *regexp.Regexp // in place of both
}

func (n *name) match(s string) bool {
	switch {
	case n.any:
		return true
	case n.re != nil:
		return n.re.MatchString(s)
	case n.glob != nil:
		return globParts(n.glob, s)
	}
	return n.text == s
}

func (p *pathPattern) compile(parts []string, anchored, dirOnly, wide bool) error {
	p.below = dirOnly && !wide
	ignoreCase := wide && caseless
	now := run{float: !anchored}
	literal := anchored
	for i, part := range parts {
		last := i == len(parts)-1
		if part == "**" {
			literal = false
			if len(now.names) > 0 {
				p.runs = append(p.runs, now)
			}
			if now = (run{float: true}); last {
				now.names = []name{{any: true}}
			}
			continue
		}
		re, plain, err := segment(part)
		if err != nil {
			return err
		}
		n := name{text: plain}
		switch {
		case plain != "" && !ignoreCase:
		case !ignoreCase && !strings.ContainsAny(part, `?[\`): // what is left are stars
			n = name{glob: strings.Split(part, "*")}
		default:
			flags := "(?s)"
			if ignoreCase {
				flags = "(?si)"
			}
			if n.re, err = regexp.Compile(flags + "^" + re + "$"); err != nil {
				return fmt.Errorf("is no pattern: %w", err)
			}
		}
		now.names = append(now.names, n)
		if literal = literal && plain != ""; literal && !last {
			p.root = strings.TrimPrefix(p.root+"/"+plain, "/")
		}
	}
	p.runs = append(p.runs, now)
	return nil
}

// matchBelow reports whether the pattern covers a path relative to its anchor;
// what a directory holds is covered with it. Each run is taken where it is found
// first: that leaves the most for the others.
func (p *pathPattern) matchBelow(rest string) bool {
	for i := range p.runs {
		r := &p.runs[i]
		for {
			after, ok := r.match(rest)
			if ok {
				rest = after
				break
			}
			_, next, more := strings.Cut(rest, "/")
			if !r.float || !more {
				return false
			}
			rest = next
		}
	}
	return !p.below || rest != ""
}

// match matches the names at the beginning of a path; after is what follows.
func (r *run) match(path string) (after string, ok bool) {
	for i := range r.names {
		if path == "" {
			return "", false
		}
		var first string
		if first, path, _ = strings.Cut(path, "/"); !r.names[i].match(first) {
			return "", false
		}
	}
	return path, true
}

// segment translates one part of a path. plain is the part itself where it has
// nothing special.
func segment(part string) (re, plain string, err error) {
	var b, lit strings.Builder
	special := false
	for i := 0; i < len(part); i++ {
		switch c := part[i]; c {
		case '*':
			special = true
			for i+1 < len(part) && part[i+1] == '*' {
				i++
			}
			b.WriteString("[^/]*")
		case '?':
			special = true
			b.WriteString("[^/]")
		case '[':
			special = true
			class, n, err := bracket(part[i:])
			if err != nil {
				return "", "", err
			}
			b.WriteString(class)
			i += n - 1
		default:
			if c == '\\' {
				if i++; i == len(part) {
					return "", "", errors.New("ends with a backslash")
				}
			}
			// Bytes above 0x7f are parts of characters and are kept together.
			j := i + 1
			for part[i] >= 0x80 && j < len(part) && part[j] >= 0x80 {
				j++
			}
			b.WriteString(regexp.QuoteMeta(part[i:j]))
			lit.WriteString(part[i:j])
			i = j - 1
		}
	}
	if special {
		return b.String(), "", nil
	}
	return b.String(), lit.String(), nil
}

// bracket translates a bracket expression, which never matches "/"; n is its
// length.
func bracket(s string) (re string, n int, err error) {
	i := 1
	negated := i < len(s) && (s[i] == '!' || s[i] == '^')
	if negated {
		i++
	}
	type span struct{ from, to rune }
	var spans []span
	names := ""
	rs := []rune(s)
	if len(string(rs)) != len(s) {
		return "", 0, errors.New("is not UTF-8")
	}
	for first := true; ; first = false {
		if i >= len(rs) {
			return "", 0, errors.New("has a \"[\" without \"]\"; write \\[ for the character")
		}
		if rs[i] == ']' && !first {
			break
		}
		if rs[i] == '[' && i+1 < len(rs) && rs[i+1] == ':' {
			end := strings.Index(string(rs[i:]), ":]")
			name := ""
			if end > 0 {
				name = string(rs[i:])[2:end]
			}
			switch name {
			case "alpha", "digit", "alnum", "upper", "lower", "space", "blank", "xdigit":
			default:
				return "", 0, fmt.Errorf("has the class %q, which is not supported", name)
			}
			names += "[:" + name + ":]"
			i += end + 2
			continue
		}
		if rs[i] == '\\' && i+1 < len(rs) {
			i++
		}
		from := rs[i]
		to := from
		i++
		if i+1 < len(rs) && rs[i] == '-' && rs[i+1] != ']' {
			i++
			if rs[i] == '\\' && i+1 < len(rs) {
				i++
			}
			to = rs[i]
			i++
		}
		spans = append(spans, span{from, to})
	}
	var b strings.Builder
	b.WriteString("[")
	if negated {
		b.WriteString("^/")
	}
	empty := names == "" && !negated
	add := func(from, to rune) {
		if from > to {
			return
		}
		empty = false
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, from, to)
	}
	for _, sp := range spans {
		if !negated && sp.from <= '/' && '/' <= sp.to {
			add(sp.from, '/'-1)
			add('/'+1, sp.to)
			continue
		}
		add(sp.from, sp.to)
	}
	b.WriteString(names + "]")
	if empty {
		return "", 0, errors.New("has an empty bracket expression")
	}
	return b.String(), len(string(rs[:i+1])), nil
}

// match reports whether the pattern covers an absolute path.
func (p *pathPattern) match(path string) bool {
	path = slashed(path)
	for _, dir := range p.anchors {
		rel, ok := below(dir, path)
		if ok && (rel == "" && p.all || rel != "" && p.matchBelow(rel)) {
			return true
		}
	}
	return false
}

// covers reports whether the pattern covers an access under one of its names.
func (p *pathPattern) covers(a Access) bool {
	return p.match(a.Target) || a.Written != a.Target && p.match(a.Written)
}

// mayReach reports whether something at or below dir may be covered.
func (p *pathPattern) mayReach(dir string) bool {
	dir = slashed(dir)
	return slices.ContainsFunc(p.roots, func(root string) bool { return atOrBelow(root, dir) || atOrBelow(dir, root) })
}

// atOrBelow reports whether path is dir or lies below it; both are absolute,
// clean and slashed.
func atOrBelow(dir, path string) bool {
	dir = strings.TrimSuffix(dir, "/")
	if len(path) < len(dir) || len(path) > len(dir) && path[len(dir)] != '/' {
		return false
	}
	return path[:len(dir)] == dir || caseless && strings.EqualFold(path[:len(dir)], dir)
}

// below returns path relative to dir; both are absolute, clean and slashed, and
// dir ends with a slash.
func below(dir, path string) (rel string, ok bool) {
	if len(path) >= len(dir) && (path[:len(dir)] == dir || caseless && strings.EqualFold(path[:len(dir)], dir)) {
		return path[len(dir):], true
	}
	same := path == dir[:len(dir)-1] || caseless && strings.EqualFold(path, dir[:len(dir)-1])
	return "", same
}

// slashed is a path with forward slashes; on Windows C:\x is /c/x (P-90).
func slashed(path string) string {
	path = filepath.ToSlash(path)
	if vol := filepath.VolumeName(path); len(vol) == 2 && vol[1] == ':' {
		path = "/" + strings.ToLower(vol[:1]) + path[2:]
	}
	return path
}

// escapePath writes a path as a pattern that matches only it and what lies
// below it (P-89).
func escapePath(path string) string {
	var b strings.Builder
	for _, r := range slashed(path) {
		if strings.ContainsRune(`\*?[]!# `, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return "/" + b.String()
}
