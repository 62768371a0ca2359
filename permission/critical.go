package permission

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

// variableTail is a variable followed at once by a glob or by a final slash:
// with the variable empty it names everything (P-110). A glob whose name begins
// with something, as in "$DIR"/w*, is the same: it then stands in the root.
var variableTail = regexp.MustCompile(`(?:\$[A-Za-z_0-9@*?#!-]+|\$\{[^}]*\}|\$\([^)]*\)|` + "`[^`]*`" + `)["/]*(?:\.?[*?\[{].*|/"?|/"?[^/*?\[{\s"]+"?[*?\[{].*)$`)

// homeNames are spellings of the home and the working directory.
var homeNames = regexp.MustCompile(`^"?(?:\$(?:HOME|PWD|OLDPWD)|\$\{(?:HOME|PWD|OLDPWD)(?:[^A-Za-z0-9_}][^}]*)?\}|` +
	`\$\([^)]*\b(?:pwd|show-toplevel|realpath|dirname|readlink)\b.*\)|` + "`[^`]*\\b(?:pwd|show-toplevel|realpath|dirname|readlink)\\b.*`" + `)"?(?:/\.?)*"?$`)

// homeDefault is one of them as what a variable is taken for.
var homeDefault = regexp.MustCompile(`^\$\{[A-Za-z_0-9]+:?[-=+?](?:\$\{?(?:HOME|PWD|OLDPWD)\b|~)`)

// emptyQuotes takes out what quotes nothing: ""$HOME is $HOME.
var emptyQuotes = strings.NewReplacer(`"`, "", `''`, "")

// upFrom is a parent of what something expands to: it may be any directory.
var upFrom = regexp.MustCompile(`(?:^|[/"])\.\."?(?:/|$)`)

// criticalTarget reports whether removing what a word names could destroy the
// system, the user's files or the whole project (P-110).
func (p *Policy) criticalTarget(at *place, w shell.Word) bool {
	if path, ok := p.expand(w); ok {
		all, known := at.accesses(Write, path)
		if !known {
			// In an unknown directory, "." and its parents may be anything, and
			// so may be what is another directory in each process.
			return slices.ContainsFunc(append([]string{""}, at.dirs...), func(dir string) bool { return at.disk.perProcess(dir + "/" + path) }) ||
				!strings.ContainsFunc(path, func(r rune) bool { return r != '.' && r != '/' })
		}
		return slices.ContainsFunc(all, func(a Access) bool { return p.criticalDir(a.Target) || p.criticalDir(a.Written) })
	}
	if w.Literal {
		return false // an empty word
	}
	if !w.Glob {
		bare := emptyQuotes.Replace(w.Source)
		return variableTail.MatchString(w.Source) || homeNames.MatchString(w.Source) || homeNames.MatchString(bare) ||
			homeDefault.MatchString(bare) || upFrom.MatchString(w.Source)
	}
	if w.Tilde && (w.Prefix == w.Flat || !strings.HasPrefix(w.Prefix, "~/")) {
		return true // the home directory of somebody
	}
	dir, ok := p.globDir(w)
	if !ok {
		return true // a brace or a glob that may leave its directory
	}
	prefix := w.Prefix[strings.LastIndexByte(w.Prefix, '/')+1:]
	if p.globReaches(at, dir, w.Flat[len(w.Prefix)-len(prefix):]) {
		return true
	}
	if strings.Contains(w.Flat[len(w.Prefix)-len(prefix):], "/") && !strings.HasSuffix(w.Flat, "/") {
		// What the glob names lies deeper, unless its directory is the root.
		return dir == "/"
	}
	all, known := at.accesses(Write, dir)
	if !known {
		return true
	}
	return slices.ContainsFunc(all, func(a Access) bool { return p.criticalGlob(a.Target, prefix) || p.criticalGlob(a.Written, prefix) })
}

// criticalDir reports whether a path is the root or a child of it, the home
// directory, or a working directory's ancestor or the session's own.
func (p *Policy) criticalDir(path string) bool {
	dir := parent(path)
	if dir == path || parent(dir) == dir || slices.Contains(p.home, path) {
		return true
	}
	return slices.ContainsFunc(p.start, func(dir string) bool { return within(path, dir) })
}

// criticalGlob reports whether a glob directly under dir may take a whole
// directory that matters: the root, the home directory, an additional directory
// or a parent of a working directory. prefix is what stands before the glob in
// the name.
func (p *Policy) criticalGlob(dir, prefix string) bool {
	if filepath.Dir(dir) == dir {
		return true
	}
	if slices.Contains(p.home, dir) && prefix == "" {
		return true
	}
	return slices.ContainsFunc(p.Dirs, func(d string) bool {
		if d == dir {
			return !slices.Contains(p.start, d)
		}
		rel, err := filepath.Rel(dir, d)
		return err == nil && filepath.IsLocal(rel) && strings.HasPrefix(rel, prefix)
	})
}

// globReaches reports whether a glob below dir may become the home directory, a
// directory that the session works in, or one above them: /home/m?.
func (p *Policy) globReaches(at *place, dir, glob string) bool {
	all, _ := at.accesses(Write, dir)
	for _, a := range all {
		for _, c := range slices.Concat(p.home, p.start) {
			rel, err := filepath.Rel(a.Target, c)
			if err != nil || rel == "." || !filepath.IsLocal(rel) {
				continue
			}
			names, left := strings.Split(filepath.ToSlash(rel), "/"), strings.Split(strings.TrimRight(glob, "/"), "/")
			for i, part := range left {
				if i == len(names) || !strings.ContainsAny(part, "{,}") && !globbed(part, names[i]) {
					break // it lies deeper, or is another
				}
				if i == len(left)-1 || strings.ContainsAny(part, "{,}") {
					return true
				}
			}
		}
	}
	return false
}

// wholeVariable is a word that is one variable, as "$DIR" and ${DIR}/.
var wholeVariable = regexp.MustCompile(`^"?\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})"?/?\.?"?$`)

// criticalTarget is that of the policy, also through a variable that the text
// itself sets: X=~; rm -rf "$X".
func (c *command) criticalTarget(at *place, w shell.Word) bool {
	if c.p.criticalTarget(at, w) {
		return true
	}
	m := wholeVariable.FindStringSubmatch(w.Source)
	if m == nil {
		return false
	}
	critical := func(value shell.Word) bool { return c.p.criticalTarget(at, value) }
	for in := c; in != nil; in = in.outer {
		for _, part := range in.script.Parts {
			for _, a := range part.Assigns {
				if a.Name == m[1]+m[2] && critical(a.Value) {
					return true
				}
			}
			for _, w := range part.Words { // export X=~
				value, ok := strings.CutPrefix(w.Source, m[1]+m[2]+"=")
				if !ok {
					continue
				}
				if s, err := shell.Parse("rm " + value); err == nil && len(s.Parts) > 0 && slices.ContainsFunc(s.Parts[0].Words[1:], critical) {
					return true
				}
			}
		}
	}
	return false
}

// removal finds what may remove something in a text that could not be read.
var removal = regexp.MustCompile(`(?:^|[^\w-]|[<>]&[0-9]*-)(?:rm|rmdir)(?:$|[^\w-])|\$'`)

// critical returns the first target of a removal that nothing but an answer
// approves (P-110 to P-112).
func (c *command) critical() (target string, found bool) {
	found = c.any(func(c *command) bool {
		if c.err != nil {
			target = "something in a text that cannot be read"
			return removal.MatchString(strings.NewReplacer(`\`, "", `"`, "", "''", "").Replace(c.text))
		}
		for i := range c.script.Parts {
			at := &c.parts[i]
			for j := range at.inner {
				in := &at.inner[j]
				for _, w := range shell.Removed(in.words) {
					if shell.Elsewhere(c.script.Parts[i].Words) || c.criticalTarget(at, w) {
						target = w.Source
						return true
					}
				}
			}
		}
		return false
	})
	return target, found
}
