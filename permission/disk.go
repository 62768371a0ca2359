package permission

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/shell"
)

// The bounds of what is looked at: directory entries for one path, files that
// a copy makes, parts of a line with file commands, words with globs or trees.
const (
	maxEntries = 5000
	maxCopied  = 2000
	maxEdits   = 32
	maxBehind  = 64
)

// entry is a file below a directory.
type entry struct {
	rel  string // "." for the directory itself
	link bool
}

// tree lists a file or a directory with all that is in it, without following
// links; nothing where there is no such file. ok is false when it cannot be
// read or is too large.
func tree(root string) (entries []entry, ok bool) {
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if p == root && missing(err) {
				return nil
			}
			return err
		}
		if len(entries) >= maxEntries {
			return fs.ErrInvalid
		}
		rel, err := filepath.Rel(root, p)
		entries = append(entries, entry{filepath.ToSlash(rel), d.Type()&fs.ModeSymlink != 0})
		return err
	})
	return entries, err == nil
}

// linked returns what the links lead to that a word with globs may expand to or
// go through: dir is the directory of the word's literal beginning. It errs by
// finding too many. ok is false when that would take too long.
func linked(dir string, w shell.Word) (targets []string, ok bool) {
	literal := strings.LastIndexByte(w.Prefix, '/') + 1
	if literal > len(w.Flat) {
		return nil, false
	}
	parts := slices.DeleteFunc(strings.Split(w.Flat[literal:], "/"), func(s string) bool { return s == "" || s == "." })
	if w.Brace || strings.Contains(w.Flat, "**") { // any depth
		return linksBelow(dir)
	}
	left := maxEntries
	var look func(dir string, parts []string) bool
	look = func(dir string, parts []string) bool {
		if len(parts) == 0 {
			return true
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return missing(err) // it then expands to nothing
		}
		if left -= len(entries); left < 0 {
			return false
		}
		for _, e := range entries {
			if !globbed(parts[0], e.Name()) {
				continue
			}
			at := filepath.Join(dir, e.Name())
			if e.Type()&fs.ModeSymlink != 0 {
				if at, err = Resolve(at); err != nil {
					return false
				}
				targets = append(targets, at)
			}
			if !look(at, parts[1:]) {
				return false
			}
		}
		return true
	}
	return targets, look(dir, parts)
}

// behind returns what the links lead to that a command may go through: those
// that a word with globs may expand to, and with follow all below a directory.
func (at *place) behind(all []Access, w shell.Word, literal, follow bool) (more []Access, ok bool) {
	if literal && !follow {
		return nil, true
	}
	key := behindKey{source: w.Source, follow: follow}
	if len(all) == 1 {
		key.targets = all[0].Target
	} else {
		targets := make([]string, len(all))
		for i, a := range all {
			targets[i] = a.Target
		}
		key.targets = strings.Join(targets, "\x00")
	}
	if known, done := at.seen.behind[key]; done {
		return known.all, known.ok
	}
	if len(at.seen.behind) >= maxBehind {
		return nil, false
	}
	if at.seen.behind == nil {
		at.seen.behind = map[behindKey]behind{}
	}
	at.seen.behind[key] = behind{}
	add := func(targets []string) {
		for _, t := range targets {
			more = append(more, Access{Read, t, t})
		}
	}
	for _, a := range all {
		roots := []string{a.Target}
		if !literal {
			targets, ok := linked(a.Target, w)
			if !ok {
				return nil, false
			}
			add(targets)
			roots = append(roots, targets...)
		}
		for _, root := range roots {
			if !follow {
				break
			}
			targets, ok := linksBelow(root)
			if !ok {
				return nil, false
			}
			add(targets)
		}
	}
	at.seen.behind[key] = behind{slices.Clip(more), true}
	return more, true
}

// holdsLinks reports whether a path is a link or a tree with links, or too large
// to tell.
func (s *seen) holdsLinks(path string) bool {
	holds, known := s.linked[path]
	if known {
		return holds
	}
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return err != nil && !missing(err) || err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	if len(s.linked) >= maxBehind {
		return true
	}
	entries, ok := tree(path)
	holds = !ok || slices.ContainsFunc(entries, func(e entry) bool { return e.link })
	if s.linked == nil {
		s.linked = map[string]bool{}
	}
	s.linked[path] = holds
	return holds
}

// linksBelow returns what the links in a tree lead to.
func linksBelow(root string) (targets []string, ok bool) {
	entries, ok := tree(root)
	if !ok {
		return nil, false
	}
	for _, e := range entries {
		if !e.link {
			continue
		}
		to, err := Resolve(filepath.Join(root, e.rel))
		if err != nil {
			return nil, false
		}
		targets = append(targets, to)
	}
	return targets, true
}

// regular reports whether a path is a file, below which there is nothing.
func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// hides reports whether a rule may forbid to read something in one of the
// directories.
func (p *Policy) hides(dirs []string) bool {
	return p.anyForbidding(func(r *Rule) bool {
		return r.Tool == "Read" && r.path != nil && slices.ContainsFunc(dirs, r.path.mayReach)
	})
}

// guards reports whether a rule forbids to read a file.
func (p *Policy) guards(a Access) bool {
	return p.anyForbidding(func(r *Rule) bool { return r.Tool == "Read" && r.path != nil && r.path.covers(a) })
}

// anyForbidding reports whether f holds for a deny or ask rule.
func (p *Policy) anyForbidding(f func(*Rule) bool) bool {
	return anyRule(p.Deny, f) || anyRule(p.Ask, f)
}

func anyRule(rules []Rule, f func(*Rule) bool) bool {
	for i := range rules {
		if f(&rules[i]) {
			return true
		}
	}
	return false
}

// globbed reports whether a part of a word may expand to a name. Quotes are
// gone from the part, so that of what could be read in two ways all is taken.
func globbed(part, name string) bool {
	if part == ".." || strings.ContainsAny(part, `[\`) {
		return true
	}
	ok, err := path.Match(strings.ToLower(part), strings.ToLower(name)) // some file systems ignore case
	return ok || err != nil
}

// foreignRepository reports whether git, run in dir, may take settings from
// files that are not protected: those of a bare repository in the directory or
// above it, or of one that ".git" only points to (P-9).
func (p *Policy) foreignRepository(disk *links, dir string) bool {
	foreign, known := disk.foreign[dir]
	if !known {
		if disk.foreign == nil {
			disk.foreign = map[string]bool{}
		}
		foreign = p.findForeign(disk, dir)
		disk.foreign[dir] = foreign
	}
	return foreign
}

func (p *Policy) findForeign(disk *links, dir string) bool {
	exists := func(dir, name string) bool { return !disk.at(strings.TrimSuffix(dir, "/") + "/" + name).gone }
	for {
		// A file "commondir" names another place for the objects and settings.
		if exists(dir, "HEAD") && (exists(dir, "objects") || exists(dir, "commondir")) {
			return true
		}
		git := filepath.Join(dir, ".git")
		if exists(dir, ".git") {
			to := git
			if !exists(git, "HEAD") { // it may be a file, which names the place
				info, err := os.Lstat(git)
				if err != nil {
					return true
				}
				if info.Mode().IsRegular() {
					text, err := os.ReadFile(git)
					if err != nil || len(text) > 4096 {
						return true
					}
					to = strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:"))
					if !filepath.IsAbs(to) {
						to = filepath.Join(dir, to)
					}
				}
			}
			real, err := disk.resolve(to)
			if err != nil || p.inDirs(real) && !Protected(real) {
				return true
			}
			if exists(real, "HEAD") {
				return false // git looks no further
			}
		}
		up := parent(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// isDir says what a path leads to now.
func isDir(path string) (exists, dir bool) {
	info, err := os.Stat(path)
	return err == nil, err == nil && info.IsDir()
}
