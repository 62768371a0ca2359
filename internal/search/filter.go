package search

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Filter says which files [Grep] searches, by name.
type Filter struct {
	globs    []filterGlob
	includes bool
	types    []segments // base names; nil: all
}

type segments = []segment

type filterGlob struct {
	p       *pattern
	base    bool // fits the base name at any depth
	exclude bool
}

// NewFilter reads the globs and the type of a search, both as ripgrep's -g and
// -t: a glob without a slash fits the name of a file at any depth, one with a
// slash its path below the root; "!" before it leaves files out; the last glob
// that fits decides. Several globs may stand in one text, divided by commas or
// blanks outside of braces. An empty text is no filter.
func NewFilter(globs, fileType string) (*Filter, error) {
	f := &Filter{}
	for _, text := range splitGlobs(globs) {
		g := filterGlob{}
		text, g.exclude = strings.CutPrefix(text, "!")
		g.base = !strings.Contains(strings.TrimSuffix(text, "/"), "/")
		if strings.HasSuffix(text, "/") {
			text += "**"
			if g.base {
				text, g.base = "**/"+text, false
			}
		}
		if text == "" {
			return nil, fmt.Errorf("%w %q: nothing after '!'", errWildcard, globs)
		}
		var err error
		if g.p, err = compilePattern(text); err != nil {
			return nil, err
		}
		f.includes = f.includes || !g.exclude
		f.globs = append(f.globs, g)
	}
	if fileType != "" {
		list, ok := typeTable()[fileType]
		if !ok {
			return nil, unknownType(fileType)
		}
		for _, text := range list {
			p, err := compilePattern(text)
			if err != nil {
				return nil, err
			}
			f.types = append(f.types, p.alts...)
		}
	}
	return f, nil
}

// splitGlobs divides a text at commas and blanks outside of braces and classes.
// At blanks only when every part has a wildcard, for names may have blanks too.
func splitGlobs(text string) (parts []string) {
	byComma := splitOutside(text, ",")
	for _, p := range byComma {
		words := splitOutside(p, " \t\n")
		if len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return !strings.ContainsAny(w, "*?[{!") }) {
			parts = append(parts, words...)
		} else if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

func splitOutside(text, seps string) (parts []string) {
	depth, start := 0, 0
	add := func(part string) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth = max(0, depth-1)
		case depth == 0 && strings.IndexByte(seps, c) >= 0:
			add(text[start:i])
			start = i + 1
		}
	}
	add(text[start:])
	return parts
}

// want reports whether the filter lets a file through.
func (f *Filter) want(rel, name string) bool {
	if f == nil {
		return true
	}
	if f.types != nil && !slices.ContainsFunc(f.types, func(s segments) bool { return s[0].match(name) }) {
		return false
	}
	for i := len(f.globs) - 1; i >= 0; i-- {
		g := &f.globs[i]
		if g.base && g.p.match(name) || !g.base && g.p.match(rel+name) {
			return !g.exclude
		}
	}
	return !f.includes
}

// enter reports whether a directory may hold files that the filter lets through.
func (f *Filter) enter(rel string) bool {
	if f == nil || len(f.globs) == 0 {
		return true
	}
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	possible := !f.includes
	for i := range f.globs {
		g := &f.globs[i]
		possible = possible || !g.exclude && (g.base || g.p.within(rel))
	}
	return possible && !f.excludesDir(rel, name)
}

func (f *Filter) excludesDir(rel, name string) bool {
	for i := len(f.globs) - 1; i >= 0; i-- {
		g := &f.globs[i]
		if g.base && g.p.match(name) || !g.base && g.p.match(rel) {
			return g.exclude
		}
	}
	return false
}

// typesText is the table of file types: a name, a colon, its globs. It is that
// of ripgrep (MIT or Unlicense), with a few newer ones.
//
//go:embed types.txt
var typesText string

var typeTable = sync.OnceValue(func() map[string][]string {
	table := map[string][]string{}
	for line := range strings.Lines(typesText) {
		name, globs, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		table[name] = append(table[name], splitOutside(globs, ",")...)
	}
	return table
})

// Types returns the names of the file types, sorted.
func Types() []string {
	var names []string
	for name := range typeTable() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func unknownType(name string) error {
	var near []string
	for _, t := range Types() {
		for _, glob := range typeTable()[t] {
			if glob == "*."+name {
				near = append(near, t)
				break
			}
		}
		if len(near) == 3 {
			break
		}
	}
	if near != nil {
		return fmt.Errorf("unrecognized file type: %q; files *.%s have type %s", name, name, strings.Join(near, ", "))
	}
	return fmt.Errorf("unrecognized file type: %q; use a name such as go, js, ts, py, rust, java, or a glob", name)
}
