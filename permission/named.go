package permission

import (
	"slices"

	"github.com/turnwright/turnwright/internal/shell"
)

// namedFiles reports whether a command names a file that a rule about paths
// covers (P-75), as one that part i may run.
func (c *command) namedFiles(rule *Rule, i int, in *inner) (found hold) {
	at, words := &c.parts[i], in.words
	files, ok := in.namedFiles()
	if !ok && rule.Tool == "Read" {
		// Commands that only read and are not on the list, git among them.
		files, ok = in.shownFiles()
	}
	if !ok {
		return no
	}
	if (shell.MakesLinks(words) || c.carriesLinks(at, words)) && c.usedLater(i) {
		found = maybe // what is used then may lie behind the new link
	}
	look := func(w shell.Word, write, recursive bool) {
		if found < yes && (rule.Tool == "Read" || write) {
			found = max(found, c.names(rule.path, at, w, recursive))
		}
	}
	for _, w := range files.Reads {
		look(w, false, files.Recursive)
	}
	if files.Recursive && files.Follows {
		for _, w := range files.Reads {
			look(w, false, true)
			if found < maybe && rule.Tool == "Read" && c.leads(rule.path, at, w) {
				found = maybe
			}
		}
	}
	for _, w := range files.Writes {
		look(w, true, files.Recursive)
	}
	for _, in := range files.Into {
		switch to := c.directory(at, in.Dir, c.more()); {
		case to == no:
		case in.File.Literal:
			if c.names(rule.path, at, in.File, files.Recursive) == yes {
				found = max(found, to)
			}
		default:
			look(in.Dir, true, true)
		}
	}
	if files.Recursive && files.Operands <= 1 && words[0].Text != "find" { // where no directory is named
		look(shell.Word{Text: ".", Source: ".", Literal: true}, len(files.Writes) > 0, true)
	}
	return found
}

// more reports whether the line holds other commands than one.
func (c *command) more() bool {
	return len(c.script.Parts) > 1 || c.outer != nil && c.outer.more()
}

// usedLater reports whether a link that part i makes may be gone through: by
// another part of the line, or by itself when it runs again.
func (c *command) usedLater(i int) bool {
	part := &c.script.Parts[i]
	if part.Loop || shell.Repeats(part.Words) {
		return true
	}
	for j := range c.script.Parts {
		if j != i && c.usesFiles(j) {
			return true
		}
	}
	return c.outer != nil && c.outer.usedLater(c.part)
}

// usesFiles reports whether a part, or a script in it, uses any file.
func (c *command) usesFiles(i int) bool {
	if len(c.script.Parts[i].Redirects) > 0 {
		return true
	}
	at := &c.parts[i]
	for j := range at.inner {
		in := &at.inner[j]
		use, reads := in.readOnly()
		if _, named := in.namedFiles(); named || reads && use.Content {
			return true
		}
	}
	return slices.ContainsFunc(at.subs, func(sub *command) bool {
		if sub.err != nil {
			return true
		}
		for j := range sub.script.Parts {
			if sub.usesFiles(j) {
				return true
			}
		}
		return false
	})
}

// carriesLinks reports whether a command may put links in another place: those
// among what it moves or copies as it is.
func (c *command) carriesLinks(at *place, words []shell.Word) bool {
	return slices.ContainsFunc(shell.Carried(words), func(w shell.Word) bool {
		path, literal := c.p.expand(w)
		if !literal {
			dir, ok := c.p.globDir(w)
			if !ok {
				return !w.Literal // an empty word names nothing
			}
			path = dir
		}
		all, known := at.accesses(Read, path)
		return !known || slices.ContainsFunc(all, func(a Access) bool { return at.seen.holdsLinks(a.Written) })
	})
}

// leads reports whether links below what a word names may lead to something
// that the pattern covers.
func (c *command) leads(pattern *pathPattern, at *place, w shell.Word) bool {
	path, literal := c.p.expand(w)
	if !literal {
		return !w.Literal // an empty word names nothing
	}
	all, known := at.accesses(Read, path)
	if !known {
		return true
	}
	more, ok := at.behind(all, w, true, true)
	return !ok || slices.ContainsFunc(more, func(a Access) bool { return pattern.mayReach(a.Target) })
}

// directory reports whether the destination of a copy is a directory. more says
// that another command may make it one.
func (c *command) directory(at *place, w shell.Word, more bool) hold {
	path, ok := c.p.expand(w)
	if !ok {
		return maybe
	}
	all, known := at.accesses(Read, path)
	if !known {
		return maybe
	}
	out := no
	for _, a := range all {
		switch exists, dir := isDir(a.Target); {
		case dir:
			return yes
		case exists:
		case more:
			out = maybe
		}
	}
	return out
}

// onlyChange are commands on the list of P-75 that show nothing of their files.
var onlyChange = []string{"tee", "touch", "mkdir", "rm", "rmdir", "truncate", "chmod", "chown", "shred", "unlink"}

// mayUseFiles reports whether the command may read or, for Edit, change any file
// by a command on the list of P-75 or by a redirection. It is for rules that
// cover a whole tool: which files does not matter, but they are no rules of the
// shell either, so that somebody is asked.
func (c *command) mayUseFiles(tool string) hold {
	if c.err != nil {
		return maybe
	}
	for i, part := range c.script.Parts {
		for _, red := range part.Redirects {
			if null := red.Target.Literal && red.Target.Text == "/dev/null"; !null && (tool == "Edit" && red.Write || tool == "Read" && red.Read) {
				return maybe
			}
		}
		for j := range c.parts[i].inner {
			in := &c.parts[i].inner[j]
			words := in.words
			if use, ok := in.readOnly(); ok {
				if tool == "Read" && use.Content && (len(use.Paths) > 0 || use.Git) {
					return maybe
				}
				continue
			}
			files, ok := in.namedFiles()
			if ok && (tool == "Edit" && len(files.Writes)+len(files.Into) > 0 ||
				tool == "Read" && len(files.Reads) > 0 && !slices.Contains(onlyChange, words[0].Text)) {
				return maybe
			}
		}
	}
	return no
}
