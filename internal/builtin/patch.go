package builtin

import (
	"fmt"
	"sort"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// hunk is one element of structuredPatch (T-60).
type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"` // each begins with " ", "-" or "+"
}

const contextLines = 3

// linePatch describes the difference of two texts as hunks with three lines of
// context. The result is never nil.
func linePatch(old, new string) []hunk {
	hunks := []hunk{}
	for i, l := range splitLines(string(diff.Diff("a", []byte(old), "b", []byte(new)))) {
		if i < 3 {
			continue // the names
		}
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "@@ ") {
			h := hunk{Lines: []string{}}
			// Nothing else writes this line, so that it always can be read.
			_, _ = fmt.Sscanf(l, "@@ -%d,%d +%d,%d @@", &h.OldStart, &h.OldLines, &h.NewStart, &h.NewLines)
			h.OldStart, h.NewStart = max(1, h.OldStart), max(1, h.NewStart)
			hunks = append(hunks, h)
			continue
		}
		h := &hunks[len(hunks)-1]
		h.Lines = append(h.Lines, l)
	}
	return hunks
}

// region says that the lines old[from:to], counted from 0, become lines.
type region struct {
	from, to int
	lines    []string
}

// structuredPatch describes replacements in a text as hunks with three lines
// of context. The replacements are known, so nothing has to be searched: the
// time is linear in the text, also for very many of them. spans rise and do
// not overlap. The result is never nil.
func structuredPatch(old string, spans []span) []hunk {
	lines := splitLines(old)
	regions := lineRegions(old, lines, spans)
	hunks := []hunk{}
	shift := 0 // lines that the regions so far added
	for i := 0; i < len(regions); {
		j := i + 1
		for j < len(regions) && regions[j].from-regions[j-1].to <= 2*contextLines {
			j++
		}
		first := max(0, regions[i].from-contextLines)
		last := min(len(lines), regions[j-1].to+contextLines)
		h := hunk{OldStart: first + 1, NewStart: first + 1 + shift, Lines: []string{}}
		at := first
		for _, r := range regions[i:j] {
			h.add(" ", lines[at:r.from])
			h.add("-", lines[r.from:r.to])
			h.add("+", r.lines)
			at = r.to
			shift += len(r.lines) - (r.to - r.from)
		}
		h.add(" ", lines[at:last])
		hunks = append(hunks, h)
		i = j
	}
	return hunks
}

func (h *hunk) add(sign string, lines []string) {
	for _, l := range lines {
		text, ended := strings.CutSuffix(l, "\n")
		h.Lines = append(h.Lines, sign+text)
		if !ended {
			h.Lines = append(h.Lines, "\\ No newline at end of file")
		}
	}
	if sign != "+" {
		h.OldLines += len(lines)
	}
	if sign != "-" {
		h.NewLines += len(lines)
	}
}

// lineRegions widens the spans to whole lines, joins those that meet in a line
// and drops the lines at both ends of a region that stay as they are.
func lineRegions(old string, lines []string, spans []span) []region {
	starts := make([]int, len(lines)+1)
	for i, l := range lines {
		starts[i+1] = starts[i] + len(l)
	}
	lineOf := func(offset int) int {
		i := sort.Search(len(starts), func(i int) bool { return starts[i] > offset }) - 1
		if i == len(lines) && i > 0 && !strings.HasSuffix(old, "\n") {
			i-- // the end of a last line without a line end
		}
		return i
	}
	var regions []region
	for i := 0; i < len(spans); {
		first, from := i, lineOf(spans[i].from)
		r := region{from: from, to: from}
		var text strings.Builder
		at := starts[from]
		for ; i < len(spans) && (i == first || lineOf(spans[i].from) < r.to); i++ {
			text.WriteString(old[at:spans[i].from])
			text.WriteString(spans[i].text)
			at = spans[i].to
			r.to = min(lineOf(at)+1, len(lines))
		}
		text.WriteString(old[at:starts[r.to]])
		r.lines = splitLines(text.String())
		for len(r.lines) > 0 && r.from < r.to && r.lines[0] == lines[r.from] {
			r.from, r.lines = r.from+1, r.lines[1:]
		}
		for len(r.lines) > 0 && r.from < r.to && r.lines[len(r.lines)-1] == lines[r.to-1] {
			r.to, r.lines = r.to-1, r.lines[:len(r.lines)-1]
		}
		if len(r.lines) > 0 || r.from < r.to {
			regions = append(regions, r)
		}
	}
	return regions
}

// splitLines splits after each LF; the last line may have none.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
