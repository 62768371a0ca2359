package instructions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/turnwright/turnwright/internal/names"
)

// Names that are not up to memoryFiles.
const (
	defaultName = "CLAUDE.md"
	localName   = "CLAUDE.local.md"
	rulesDir    = "rules"
)

// loader gathers the files of one Result.
type loader struct {
	ctx      context.Context
	set      *Set
	seen     map[string]bool       // keys of files that were taken or kept for later
	known    func(key string) bool // files that came before; nil: none
	reason   Reason
	trigger  string
	rulesToo bool // keep rules with paths

	files []File
	count int  // files that were taken or kept for later
	total int  // bytes of them
	full  bool // there is no room for more, which was said
	looks int  // files that were looked for because of a mention
	rules []rule
}

// startFiles takes what holds for the whole session, in the order of C-43.
func (l *loader) startFiles() {
	c := &l.set.cfg
	if c.SystemDir != "" {
		l.file(filepath.Join(c.SystemDir, defaultName), Managed, "")
	}
	if c.Managed != "" {
		text, mentions := shown(plain([]byte(c.Managed)))
		name := filepath.Join(c.SystemDir, "managed settings: claudeMd")
		l.take(File{Path: name, Kind: Managed, key: name, text: text}, mentions, 0)
	}
	if c.User && c.Home != "" {
		l.first(c.Home, User)
		l.rulesIn(filepath.Join(c.Home, rulesDir), c.Dir, User)
	}
	for _, dir := range parents(c.Dir) {
		l.directory(dir, c.Project, c.Local, true)
	}
	if c.FromAddDirs {
		for _, dir := range c.AddDirs {
			l.directory(dir, true, c.Local, true)
		}
	}
}

// directory takes the files of one directory of a project.
func (l *loader) directory(dir string, project, local, rules bool) {
	if project {
		l.first(dir, Project)
		// The configuration home is the user's, also where it is called as a
		// project's directory would be.
		if own := filepath.Join(dir, names.Dir); l.isDir(own) && l.set.resolve(own) != l.set.home {
			l.first(own, Project)
			if rules {
				l.rulesIn(filepath.Join(own, rulesDir), dir, Project)
			}
		}
	}
	if local {
		l.file(filepath.Join(dir, localName), Local, "")
	}
}

// between takes the files of the directories between the start directory and
// the file with that relative path (C-44).
func (l *loader) between(rel string) {
	c := &l.set.cfg
	dir := c.Dir
	parts := strings.Split(rel, string(filepath.Separator))
	for _, name := range parts[:len(parts)-1] {
		dir = filepath.Join(dir, name)
		l.directory(dir, c.Project, c.Local, false)
	}
}

// first takes the first of the wanted names that there is in dir (C-51).
func (l *loader) first(dir string, kind Kind) {
	for _, name := range l.set.cfg.Names {
		if l.file(filepath.Join(dir, name), kind, "") {
			return
		}
	}
}

func (l *loader) isDir(dir string) bool {
	info, err := l.set.cfg.FS.Stat(dir)
	return err == nil && info.IsDir()
}

// file takes a file that is there, with all it imports. base is set for a rule:
// where its globs start.
func (l *loader) file(path string, kind Kind, base string) (there bool) {
	if l.full {
		return false
	}
	key, there := l.find(path, kind)
	if key == "" {
		return there
	}
	// What the model reads must not bring along what it could link to: a nested file
	// that is really elsewhere is like an import of it (C-46, C-47).
	if l.reason == Nested && l.outside(kind, key) {
		l.set.cfg.Debug(fmt.Sprintf("%s is left out: it is a link to %s, outside the working directories", path, key))
		return true
	}
	text, ok := l.read(path, l.set.cfg.Warn)
	if !ok {
		return true
	}
	f := File{Path: path, Kind: kind, key: key}
	if base != "" {
		f.Globs, text = splitRule(text)
	}
	var mentions []string
	f.text, mentions = shown(text)
	if len(f.Globs) == 0 {
		l.take(f, mentions, 0)
	} else if l.rulesToo && l.room(f) {
		l.seen[key] = true
		l.rules = append(l.rules, rule{file: f, mentions: mentions, base: base, patterns: compile(f.Globs)})
	}
	return true
}

// find returns the key of a file that is wanted; "": it is not, or came before.
func (l *loader) find(path string, kind Kind) (key string, there bool) {
	c := &l.set.cfg
	info, err := c.FS.Stat(path)
	if err != nil {
		if !missing(err) {
			c.Warn(fmt.Sprintf("The instruction file %s cannot be read: %v", path, cause(err)))
		}
		return "", false
	}
	if !info.Mode().IsRegular() {
		return "", false
	}
	if info.Size() > maxFile {
		c.Warn(fmt.Sprintf("The instruction file %s is left out: it has %d bytes, and at most %d are loaded.", path, info.Size(), maxFile))
		return "", true
	}
	key, err = c.FS.Resolve(path)
	if err != nil {
		return "", false // it is gone meanwhile
	}
	if l.seen[key] || l.known != nil && l.known(key) {
		return "", true
	}
	if kind != Managed && (l.excluded(path) || l.excluded(key)) {
		c.Debug("left out by claudeMdExcludes: " + path)
		return "", true
	}
	if kind != Managed && c.Denied(path) {
		c.Debug("left out, as a rule denies reading it: " + path)
		return "", true
	}
	return key, true
}

func (l *loader) excluded(path string) bool {
	for _, p := range l.set.cfg.Excludes {
		if ok, err := doublestar.Match(p, filepath.ToSlash(path)); err == nil && ok {
			return true
		}
	}
	return false
}

// read reads a file. What is no text is told to noText.
func (l *loader) read(path string, noText func(string)) (text string, ok bool) {
	c := &l.set.cfg
	data, err := c.FS.Read(path, maxFile+1)
	switch {
	case err != nil:
		c.Warn(fmt.Sprintf("The instruction file %s cannot be read: %v", path, cause(err)))
		return "", false
	case len(data) > maxFile:
		c.Warn(fmt.Sprintf("The instruction file %s is left out: at most %d bytes are loaded.", path, maxFile))
		return "", false
	case bytes.IndexByte(data, 0) >= 0:
		noText(fmt.Sprintf("The instruction file %s is left out: it is no text.", path))
		return "", false
	}
	return plain(data), true
}

// plain makes valid text with one kind of line end.
func plain(data []byte) string {
	text := strings.TrimPrefix(strings.ToValidUTF8(string(data), "\uFFFD"), "\uFEFF")
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// shown is what the model sees of a text, and what the text mentions.
func shown(text string) (out string, mentions []string) {
	out, mentions = digest(text)
	if strings.TrimSpace(out) == "" {
		return "", nil
	}
	return strings.Trim(out, "\n"), mentions
}

// take adds a file and then, in their order, those that it imports.
func (l *loader) take(f File, mentions []string, hops int) {
	if l.ctx.Err() != nil || l.seen[f.key] || l.known != nil && l.known(f.key) {
		return
	}
	if !l.room(f) {
		return
	}
	l.seen[f.key] = true
	f.Trigger = l.trigger
	if f.Reason == "" {
		f.Reason = l.reason
	}
	l.files = append(l.files, f)
	if hops == maxHops {
		return
	}
	for _, m := range mentions {
		if l.looks++; l.looks > maxLooks {
			return
		}
		l.include(f, m, hops+1)
	}
}

// room reports whether there is room for one more file, and takes it.
func (l *loader) room(f File) bool {
	if l.full {
		return false
	}
	l.count++
	l.total += len(f.text)
	if l.full = l.count > maxFiles || l.total > maxTotal; l.full {
		l.set.cfg.Warn(fmt.Sprintf("Instruction files from %s on are left out: at most %d files and %d bytes are loaded.", f.Path, maxFiles, maxTotal))
	}
	return !l.full
}

// include takes the file that a mention in from names, if there is one.
func (l *loader) include(from File, mention string, hops int) {
	path := l.mentioned(from, mention)
	if path == "" || l.full {
		return
	}
	key, _ := l.find(path, from.Kind)
	if key == "" {
		return
	}
	if l.outside(from.Kind, key) {
		l.set.cfg.Debug(fmt.Sprintf("%s is not imported by %s: it is outside the working directories", path, from.Path))
		return
	}
	text, ok := l.read(path, l.set.cfg.Debug) // a picture may be mentioned, too
	if !ok {
		return
	}
	f := File{Path: path, Kind: from.Kind, Reason: Include, Parent: from.Path, key: key}
	var mentions []string
	f.text, mentions = shown(text)
	l.take(f, mentions, hops)
}

// outside reports whether an import needs an approval that there is not (C-46,
// C-47).
func (l *loader) outside(kind Kind, key string) bool {
	if kind == Managed || kind == User || l.set.cfg.External {
		return false
	}
	for _, root := range l.set.roots {
		if _, ok := below(root, key); ok {
			return false
		}
	}
	return true
}

// mentioned returns the path of the file that a mention stands for; "": there
// is none. Punctuation behind it, and "#section", are not part of it where the
// file has another name.
func (l *loader) mentioned(from File, mention string) string {
	names := []string{mention}
	if name, _, ok := strings.Cut(mention, "#"); ok {
		names = append(names, name)
	}
	if name := strings.TrimRight(mention, ".,;:!?)]}'\"*_>"); name != mention {
		names = append(names, name)
	}
	for _, name := range names {
		path := filepath.FromSlash(name)
		switch rest, home := strings.CutPrefix(path, "~"+string(filepath.Separator)); {
		case name == "" || name[0] == '~' && (!home || l.set.cfg.UserHome == ""):
			continue
		case home:
			path = filepath.Join(l.set.cfg.UserHome, rest)
		case !filepath.IsAbs(path):
			path = filepath.Join(filepath.Dir(from.Path), path)
		}
		if info, err := l.set.cfg.FS.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// rulesIn takes the rules below dir, in the order of their paths (C-58). Links
// are followed; each directory is entered once, so that cycles end (C-63).
func (l *loader) rulesIn(dir, base string, kind Kind) {
	entered, told := map[string]bool{}, false
	var walk func(dir string)
	walk = func(dir string) {
		names, err := l.set.cfg.FS.Names(dir)
		if err != nil {
			if !missing(err) {
				l.set.cfg.Warn(fmt.Sprintf("The rules in %s cannot be read: %v", dir, cause(err)))
			}
			return
		}
		real, err := l.set.cfg.FS.Resolve(dir)
		if err != nil || entered[real] {
			return
		}
		if len(entered) == maxDirs {
			if !told {
				told = true
				l.set.cfg.Warn(fmt.Sprintf("Rules from %s on are left out: at most %d directories are entered.", dir, maxDirs))
			}
			return
		}
		entered[real] = true
		for _, name := range names {
			if l.ctx.Err() != nil || l.full {
				return
			}
			path := filepath.Join(dir, name)
			if strings.HasSuffix(name, ".md") && !l.isDir(path) {
				l.file(path, kind, base)
			} else if l.isDir(path) {
				walk(path)
			}
		}
	}
	walk(dir)
}

// missing reports that there is no such file: also where a directory in its
// path is a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// cause is an error without the operation and the path, which are told anyway.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
