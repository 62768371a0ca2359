package instructions

import "strings"

// The bounds of brace expansion of one rule file (C-61).
const (
	maxPatterns     = 1000
	maxPatternBytes = 4 << 20
	maxDepth        = maxPatterns // braces within braces: each adds a pattern, so deeper ones need not be parsed
)

// braces expands the braces in the globs of one rule file.
type braces struct{ patterns, bytes int64 }

// expand returns the patterns that g stands for: "a{b,c}" for "ab" and "ac".
// Where they would be more than the file may have, g stays as it is, its braces
// literal. Braces that are not closed or hold no comma are literal too.
func (b *braces) expand(g string) []string {
	match, depth := matchBraces(g)
	if depth > maxDepth {
		return []string{literalBraces(g)}
	}
	t := (&braceParser{text: g, close: match}).series(0, len(g))
	n, size := t.size()
	if b.patterns+n > maxPatterns || b.bytes+size > maxPatternBytes {
		return []string{literalBraces(g)}
	}
	b.patterns += n
	b.bytes += size
	return t.all()
}

// series is a sequence of parts, each either a text or a choice.
type series []bracePart

type bracePart struct {
	text    string // escaped: it holds no brace that means something
	choices []series
}

// matchBraces finds for each "{" that is a choice its "}", and how deep they
// stand in each other.
func matchBraces(g string) (match map[int]int, depth int) {
	match = map[int]int{}
	type open struct {
		at    int
		comma bool
	}
	var stack []open
	for i := 0; i < len(g); i++ {
		switch g[i] {
		case '\\':
			i++
		case '{':
			stack = append(stack, open{at: i})
			depth = max(depth, len(stack))
		case ',':
			if len(stack) > 0 {
				stack[len(stack)-1].comma = true
			}
		case '}':
			if len(stack) > 0 {
				if top := stack[len(stack)-1]; top.comma {
					match[top.at] = i
				}
				stack = stack[:len(stack)-1]
			}
		}
	}
	return match, depth
}

type braceParser struct {
	text  string
	close map[int]int
}

func (p *braceParser) series(from, to int) (s series) {
	start := from
	flush := func(i int) {
		if i > start {
			s = append(s, bracePart{text: literalBraces(p.text[start:i])})
		}
	}
	for i := from; i < to; i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '{':
			end, ok := p.close[i]
			if !ok {
				continue
			}
			flush(i)
			s = append(s, bracePart{choices: p.choices(i+1, end)})
			i, start = end, end+1
		}
	}
	flush(to)
	return s
}

// choices splits what stands between two braces at its own commas.
func (p *braceParser) choices(from, to int) (all []series) {
	start := from
	for i := from; i < to; i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '{':
			if end, ok := p.close[i]; ok {
				i = end
			}
		case ',':
			all = append(all, p.series(start, i))
			start = i + 1
		}
	}
	return append(all, p.series(start, to))
}

// size is how many texts s stands for and how many bytes they have, counted
// without making them. Neither is counted far beyond its bound.
func (s series) size() (n, bytes int64) {
	n = 1
	for _, part := range s {
		if part.choices == nil {
			bytes = min(bytes+n*int64(len(part.text)), maxPatternBytes+1)
			continue
		}
		var sumN, sumBytes int64
		for _, c := range part.choices {
			cn, cb := c.size()
			sumN, sumBytes = min(sumN+cn, maxPatterns+1), min(sumBytes+cb, maxPatternBytes+1)
		}
		bytes = min(bytes*sumN+sumBytes*n, maxPatternBytes+1)
		n = min(n*sumN, maxPatterns+1)
	}
	return n, bytes
}

func (s series) all() []string {
	out := []string{""}
	for _, part := range s {
		tails := []string{part.text}
		if part.choices != nil {
			tails = nil
			for _, c := range part.choices {
				tails = append(tails, c.all()...)
			}
		}
		next := make([]string, 0, len(out)*len(tails))
		for _, head := range out {
			for _, tail := range tails {
				next = append(next, head+tail)
			}
		}
		out = next
	}
	return out
}

// literalBraces escapes the braces of s that are not escaped yet.
func literalBraces(s string) string {
	if !strings.ContainsAny(s, "{}") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			b.WriteByte('\\')
			if i++; i == len(s) {
				return b.String()
			}
		case '{', '}':
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
