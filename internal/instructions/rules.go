package instructions

import (
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// rule is a file of .claude/rules that holds for some files only (C-60).
type rule struct {
	file     File
	mentions []string
	base     string // what its globs start from
	patterns []string
}

// splitRule takes the frontmatter off a rule: the globs of its key paths, and
// the rest. A frontmatter that never ends is text.
func splitRule(text string) (globs []string, body string) {
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(first, " \t") != "---" {
		return nil, text
	}
	var head []string
	for {
		line, next, more := strings.Cut(rest, "\n")
		if strings.TrimRight(line, " \t") == "---" {
			return pathsOf(head), next
		}
		if !more {
			return nil, text
		}
		head, rest = append(head, line), next
	}
}

// pathsOf reads the key paths of a frontmatter. Globs are often no valid YAML,
// as "*" begins an alias there, so what people write is read, not YAML:
//
//	paths: src/**/*.ts, lib/**
//	paths: ["src/**/*.{ts,tsx}", lib/**]
//	paths:
//	  - "src/**"
func pathsOf(head []string) (globs []string) {
	for i, line := range head {
		value, ok := strings.CutPrefix(line, "paths:")
		if !ok {
			continue
		}
		value = uncomment(value)
		list := []string{value}
		if value == "" {
			list = nil
			for _, item := range head[i+1:] {
				body := strings.TrimLeft(item, " \t")
				entry, ok := strings.CutPrefix(body, "-")
				switch {
				case ok:
					list = append(list, uncomment(entry))
				case body == "" || body[0] == '#':
				default:
					return splitAll(list)
				}
			}
		} else if inner, ok := strings.CutPrefix(value, "["); ok {
			for _, more := range head[i+1:] { // a list over several lines
				if strings.Contains(inner, "]") {
					break
				}
				inner += " " + uncomment(more)
			}
			list = []string{strings.TrimSuffix(strings.TrimSpace(inner), "]")}
		}
		return splitAll(list)
	}
	return nil
}

// uncomment takes blanks and a YAML comment off a value.
func uncomment(value string) string {
	value = strings.TrimSpace(value)
	if value == "" || value[0] == '#' {
		return ""
	}
	from := 0 // a "#" within quotes or a list is none
	if closer := strings.IndexByte(`"'[`, value[0]); closer >= 0 {
		from = strings.LastIndexByte(value, `"']`[closer])
	}
	if i := strings.Index(value[max(from, 0):], " #"); i >= 0 {
		value = value[:max(from, 0)+i]
	}
	return strings.TrimSpace(value)
}

// splitAll splits values at their commas outside quotes and braces.
func splitAll(values []string) (globs []string) {
	add := func(s string) {
		s = strings.TrimSpace(s)
		if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
			s = s[1 : n-1]
		}
		if s != "" {
			globs = append(globs, s)
		}
	}
	for _, v := range values {
		start, depth, quote := 0, 0, byte(0)
		for i := 0; i < len(v); i++ {
			switch c := v[i]; {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '{':
				depth++
			case c == '}':
				depth = max(0, depth-1)
			case c == ',' && depth == 0:
				add(v[start:i])
				start = i + 1
			}
		}
		add(v[start:])
	}
	return globs
}

// compile makes patterns of globs: braces are expanded within their bounds
// (C-61), and what is invalid is left out and matches nothing (C-62).
func compile(globs []string) (patterns []string) {
	var b braces
	for _, g := range globs {
		g = strings.TrimPrefix(g, "./")
		if g == "" || strings.HasSuffix(g, "/") {
			g += "**"
		}
		for _, p := range b.expand(g) {
			if p != "" && doublestar.ValidatePattern(p) {
				patterns = append(patterns, p)
			}
		}
	}
	return patterns
}

// fits reports whether the rule holds for a file, given by all its names.
func (r *rule) fits(names []string) bool {
	for _, name := range names {
		abs := filepath.ToSlash(name)
		rel, inside := below(r.base, name)
		for _, p := range r.patterns {
			if inside && doublestar.MatchUnvalidated(strings.TrimPrefix(p, "/"), filepath.ToSlash(rel)) ||
				p[0] == '/' && doublestar.MatchUnvalidated(p, abs) {
				return true
			}
		}
	}
	return false
}

// below returns the path of a file relative to a directory that it is in.
func below(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return rel, true
}
