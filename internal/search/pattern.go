package search

import (
	"fmt"
	"strings"
)

// maxBraces bounds the patterns that the braces of one pattern stand for.
const maxBraces = 1000

// expandBraces returns the patterns that a pattern with {a,b} stands for.
// Braces may be nested; a backslash takes away the meaning of one.
func expandBraces(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "{}") {
		return []string{pattern}, nil
	}
	out := []string{""}
	for i := 0; i < len(pattern); {
		switch pattern[i] {
		case '\\':
			n := min(2, len(pattern)-i)
			appendAll(out, pattern[i:i+n])
			i += n
		case '[': // braces in a class are ordinary
			_, next, err := parseClass(pattern, i)
			if err != nil {
				return nil, err
			}
			appendAll(out, pattern[i:next])
			i = next
		case '}':
			return nil, fmt.Errorf("%w %q: unopened alternate group; missing '{' (escape '}' with '\\')", errWildcard, pattern)
		case '{':
			alts, next, err := splitBraces(pattern, i)
			if err != nil {
				return nil, err
			}
			var all []string
			for _, alt := range alts {
				inner, err := expandBraces(alt)
				if err != nil {
					return nil, err
				}
				if len(out)*(len(all)+len(inner)) > maxBraces {
					return nil, fmt.Errorf("%w %q: its braces stand for more than %d patterns", errWildcard, pattern, maxBraces)
				}
				all = append(all, inner...)
			}
			var product []string
			for _, a := range out {
				for _, b := range all {
					product = append(product, a+b)
				}
			}
			out = product
			i = next
		default:
			n := strings.IndexAny(pattern[i:], `\[{}`)
			if n < 0 {
				n = len(pattern) - i
			}
			appendAll(out, pattern[i:i+n])
			i += n
		}
	}
	return out, nil
}

func appendAll(list []string, s string) {
	for i := range list {
		list[i] += s
	}
}

// splitBraces returns the alternatives of the group that opens at pattern[i].
func splitBraces(pattern string, i int) (alts []string, next int, err error) {
	open, depth, start := i, 0, i+1
	for i < len(pattern) {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			_, end, err := parseClass(pattern, i)
			if err != nil {
				return nil, 0, err
			}
			i = end - 1
		case '{':
			depth++
		case ',':
			if depth == 1 {
				alts = append(alts, pattern[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return append(alts, pattern[start:i]), i + 1, nil
			}
		}
		i++
	}
	return nil, 0, fmt.Errorf("%w %q: unclosed alternate group; missing '}'", errWildcard, pattern[open:])
}

// pattern is a glob pattern for paths relative to a directory.
type pattern struct {
	alts [][]segment // one of them must fit
}

// compilePattern reads a pattern with **, *, ?, classes and braces. Empty
// segments, as in "a//b", and "." count as none.
func compilePattern(text string) (*pattern, error) {
	expanded, err := expandBraces(text)
	if err != nil {
		return nil, err
	}
	p := &pattern{}
	for _, e := range expanded {
		segs, err := parseSegments(e)
		if err != nil {
			return nil, err
		}
		kept := segs[:0]
		for i, s := range segs {
			if s.kind == exact && s.lit == ".." {
				return nil, fmt.Errorf("%w %q: \"..\" is possible at the start only", errWildcard, text)
			}
			if s.kind == exact && (s.lit == "" || s.lit == ".") {
				continue
			}
			if s.kind == deep && i > 0 && len(kept) > 0 && kept[len(kept)-1].kind == deep {
				continue
			}
			kept = append(kept, s)
		}
		if len(kept) > 0 {
			p.alts = append(p.alts, kept)
		}
	}
	return p, nil
}

// match reports whether a path with slashes fits.
func (p *pattern) match(path string) bool {
	for _, segs := range p.alts {
		if matchPath(segs, path, false) {
			return true
		}
	}
	return false
}

// within reports whether files that fit may lie somewhere below a directory.
func (p *pattern) within(dir string) bool {
	if dir == "" {
		return true
	}
	for _, segs := range p.alts {
		if leadsInto(segs, dir) {
			return true
		}
	}
	return false
}

func leadsInto(segs []segment, dir string) bool {
	for i := range segs {
		if segs[i].kind == deep {
			return true
		}
		name, rest, more := strings.Cut(dir, "/")
		if !segs[i].match(name) {
			return false
		}
		if !more {
			return i+1 < len(segs)
		}
		dir = rest
	}
	return false
}

// names reports whether a segment of the pattern is exactly this name.
func (p *pattern) names(name string) bool {
	for _, segs := range p.alts {
		for i := range segs {
			if segs[i].kind == exact && segs[i].lit == name {
				return true
			}
		}
	}
	return false
}

// bySuffix returns the ending that alone decides when the pattern is
// "**/*suffix", which most patterns are.
func (p *pattern) bySuffix() (string, bool) {
	if len(p.alts) == 1 && len(p.alts[0]) == 2 && p.alts[0][0].kind == deep && p.alts[0][1].kind == suffix {
		return p.alts[0][1].lit, true
	}
	return "", false
}

// base splits off the leading directories that have no wildcard.
func splitBase(text string) (base, rest string) {
	end := strings.IndexAny(text, `*?[{\`)
	if end < 0 {
		end = len(text)
	}
	slash := strings.LastIndexByte(text[:end], '/')
	if slash < 0 {
		return "", text
	}
	return text[:slash+1], text[slash+1:]
}
