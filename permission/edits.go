package permission

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

// concurrent finds what may run at the same time as the rest of a line.
var concurrent = regexp.MustCompile(`(?:^|[^&<>])&(?:[^&>]|$)|(?:^|[^|>])\|(?:[^|]|$)`)

// edit is a file command of acceptEdits with what it changes.
type edit struct {
	shell.Edit
	from    []Access // of cp and mv
	touched []Access // the operands, and what they become in a directory
	copies  int      // files that it makes
	links   bool     // it may put a link elsewhere or remove one
}

// editsInScope approves the file commands of acceptEdits (P-8, P-9). It judges
// by what is on disk before the line runs, so no other part of the line may
// change what its paths lead to.
func (c *command) editsInScope(words []shell.Word, at *place) bool {
	if c.p.deniesEdits() || len(c.parts) > maxEdits {
		return false
	}
	e := c.edit(words, at)
	if e == nil {
		return false
	}
	mine := 0
	for &c.parts[mine] != at {
		mine++
	}
	parallel := concurrent.MatchString(c.text)
	for i, part := range c.script.Parts {
		if i == mine {
			continue
		}
		if e.Copies() && slices.ContainsFunc(part.Redirects, func(r shell.Redirect) bool { return r.Write }) {
			return false
		}
		if len(part.Words) == 0 {
			continue
		}
		words, read := shell.Stripped(part.Words)
		if read && c.harmless(words, &c.parts[i]).ok {
			if use, ok := shell.ReadOnly(words); ok && use.Git && slices.ContainsFunc(e.touched, ofRepository) {
				return false // the line makes a bare repository and asks git about it
			}
			continue
		}
		switch other := c.edit(words, &c.parts[i]); {
		case other != nil && read:
			if other.links || e.links || overlap(other.touched, e.from) {
				return false
			}
		case i < mine || parallel || part.Loop || placesLinks(words):
			return false
		}
	}
	return true
}

// placesLinks reports whether a command is one of those that put links in
// place, whatever approves it.
func placesLinks(words []shell.Word) bool {
	return slices.Contains([]string{"mv", "cp", "ln", "install", "rsync", "rm"}, words[0].Text)
}

// ofRepository reports whether a file may make its directory a repository.
func ofRepository(a Access) bool {
	return slices.ContainsFunc([]string{a.Target, a.Written}, func(path string) bool {
		return slices.Contains([]string{"head", "objects", "commondir"}, strings.ToLower(filepath.Base(path)))
	})
}

// overlap reports whether a path of one list is, holds or lies below one of the
// other; too many to compare count as overlapping.
func overlap(some, others []Access) bool {
	if len(some)*len(others) > 100*maxCopied {
		return true
	}
	for _, a := range some {
		for _, b := range others {
			for _, x := range []string{a.Target, a.Written} {
				for _, y := range []string{b.Target, b.Written} {
					if within(x, y) || within(y, x) {
						return true
					}
				}
			}
		}
	}
	return false
}

// edit takes a file command apart; nil when it is none, or when it may change a
// file that acceptEdits does not approve.
func (c *command) edit(words []shell.Word, at *place) *edit {
	e, done := c.edits[at]
	if !done {
		if c.edits == nil {
			c.edits = map[*place]*edit{}
		}
		e = c.readEdit(words, at)
		c.edits[at] = e
	}
	return e
}

func (c *command) readEdit(words []shell.Word, at *place) *edit {
	named, ok := shell.Edits(words)
	if !ok || named.Copies() && len(named.Paths) < 2 {
		return nil
	}
	e := &edit{Edit: named}
	for i, w := range e.Paths {
		all, ok := c.writable(at, w.Text)
		if !ok {
			return nil
		}
		e.touched = append(e.touched, all...)
		switch {
		case e.Copies() && i < len(e.Paths)-1:
			e.from = append(e.from, all...)
			if !c.copied(e, at, w.Text, all) {
				return nil
			}
		case e.Name == "rm" || e.Name == "rmdir":
			for _, a := range all {
				if e.links { // enough is known
					break
				}
				entries, ok := tree(a.Written)
				e.links = !ok || slices.ContainsFunc(entries, func(e entry) bool { return e.link })
			}
		}
	}
	return e
}

// copied checks where one source of cp or mv ends up: at the destination, or in
// it under its own name, and so does everything below it.
func (c *command) copied(e *edit, at *place, source string, from []Access) bool {
	last := e.Paths[len(e.Paths)-1].Text
	to := []string{last}
	if name := filepath.Base(source); name != "." && name != ".." && name != string(filepath.Separator) {
		to = append(to, last+"/"+name)
	}
	entries := []entry{{}}
	if e.Tree {
		for _, a := range from {
			below, ok := tree(a.Written)
			if !ok || len(below) == 0 { // missing: another part of the line makes it
				return false
			}
			for _, entry := range below {
				// Some cp follow the links of a tree.
				if to, err := Resolve(filepath.Join(a.Written, entry.rel)); entry.link && e.Name == "cp" && (err != nil || !c.p.inDirs(to)) {
					return false
				}
			}
			if a.Target != a.Written {
				more, ok := tree(a.Target)
				if !ok {
					return false
				}
				below = append(below, more...)
			}
			entries = append(entries, below...)
		}
	}
	if e.copies += len(entries); e.copies > maxCopied {
		return false
	}
	for _, entry := range entries {
		e.links = e.links || entry.link
		for _, dir := range to {
			path := dir
			if entry.rel != "" && entry.rel != "." {
				path += "/" + entry.rel
			}
			all, ok := c.writable(at, path)
			if !ok {
				return false
			}
			e.touched = append(e.touched, all...)
		}
	}
	return true
}

// writable returns the accesses of a write that acceptEdits approves.
func (c *command) writable(at *place, path string) ([]Access, bool) {
	all, known := at.accesses(Write, path)
	return all, known && !writesProtected(all) && c.p.inScope(all, Write)
}

// deniesEdits reports whether a rule forbids every edit or every write (P-75):
// then no command is approved for being one.
func (p *Policy) deniesEdits() bool {
	return p.anyForbidding(func(r *Rule) bool {
		return r.Bare() && (matchName(r.Tool, "Edit") || matchName(r.Tool, "Write"))
	})
}
