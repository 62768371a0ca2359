package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

const byteOrderMark = "\uFEFF"

// The reasons why an edit does not fit a text.
var (
	errNotFound  = errors.New("old_string was not found")
	errNotUnique = errors.New("old_string is not unique")
)

// textEdit is an edit that fits: what the file becomes, and the same as texts
// with CR LF folded and without byte-order mark, for showing.
type textEdit struct {
	data     []byte // the new content of the file
	old, new string // folded
	spans    []span // what was replaced, as offsets into old
	count    int    // occurrences replaced
}

// span replaces old[from:to] by text.
type span struct {
	from, to int
	text     string
}

// applyEdit replaces old_string by new_string in data. It matches literally
// (T-70) against the text with CR LF folded to LF and without a byte-order
// mark, and it changes only the bytes of the matches, less what old and new
// have in common at both ends; new line ends are those of the file (T-83).
// data is not changed.
func applyEdit(data []byte, oldString, newString string, all bool) (*textEdit, error) {
	body := bytes.TrimPrefix(data, []byte(byteOrderMark))
	mark := data[:len(data)-len(body)]
	if len(mark) > 0 { // a model that copies the mark means the text after it
		oldString = strings.TrimPrefix(oldString, byteOrderMark)
		newString = strings.TrimPrefix(newString, byteOrderMark)
	}
	f := fold(body)
	oldFolded, newFolded := foldString(oldString), foldString(newString)
	if oldFolded == "" {
		return nil, errors.New("old_string is empty")
	}

	n := strings.Count(f.text, oldFolded)
	switch {
	case n == 0:
		return nil, fmt.Errorf("%w in the file: it must match exactly, blanks and line breaks included%s", errNotFound, nearMiss(f.text, oldFolded))
	case n == 1 && !all && overlaps(f.text, oldFolded):
		return nil, fmt.Errorf("%w: it occurs at least 2 times, overlapping; add surrounding lines until it is unique", errNotUnique)
	case n > 1 && !all:
		return nil, fmt.Errorf("%w: it occurs %d times; add surrounding lines until it is unique, or set replace_all to true", errNotUnique, n)
	}

	if size := int64(len(f.text)) + int64(n)*int64(len(newFolded)-len(oldFolded)); size > maxEditSize {
		return nil, fmt.Errorf("new_string: with it in %d places the file would have %d bytes, more than the %d that Edit writes", n, size, int64(maxEditSize))
	}

	// What both have in common stays as it is, so that within a match too only
	// the bytes that differ are written.
	pre := commonPrefix(oldFolded, newFolded)
	suf := commonSuffix(oldFolded[pre:], newFolded[pre:])
	middle := newFolded[pre : len(newFolded)-suf]

	e := &textEdit{old: f.text, count: n}
	var raw bytes.Buffer
	raw.Grow(len(data) + n*max(0, len(newFolded)-len(oldFolded)))
	raw.Write(mark)
	var folded strings.Builder
	rawDone, foldedDone := 0, 0
	for at := 0; ; {
		i := strings.Index(f.text[at:], oldFolded)
		if i < 0 {
			break
		}
		start := at + i
		from, to := start+pre, start+len(oldFolded)-suf
		rawFrom, rawTo, insert := f.raw(from), f.raw(to), middle
		switch f.endsIn(start, start+len(oldFolded)) {
		case endCRLF:
			insert = strings.ReplaceAll(middle, "\n", "\r\n")
		case endNone: // the file has no line ends to follow: those given
			if len(newFolded) < len(newString) {
				rawFrom, rawTo, insert = f.raw(start), f.raw(start+len(oldFolded)), newString
			}
		}
		raw.Write(body[rawDone:rawFrom])
		raw.WriteString(insert)
		rawDone = rawTo
		folded.WriteString(f.text[foldedDone:from])
		folded.WriteString(middle)
		foldedDone = to
		e.spans = append(e.spans, span{from, to, middle})
		at = start + len(oldFolded)
		if !all {
			break
		}
	}
	raw.Write(body[rawDone:])
	folded.WriteString(f.text[foldedDone:])
	e.data, e.new = raw.Bytes(), folded.String()
	return e, nil
}

// overlaps reports whether old, found once, occurs again within itself.
func overlaps(text, old string) bool {
	i := strings.Index(text, old)
	return strings.Contains(text[i+1:min(len(text), i+2*len(old)-1)], old)
}

type lineEnd int

const (
	endNone lineEnd = iota
	endLF
	endCRLF
)

// foldedText is a text with each CR LF folded to LF, which knows where the
// dropped CRs were.
type foldedText struct {
	text  string
	crs   []int // offsets in text of the LFs that had a CR before them, rising
	major lineEnd
}

func fold(body []byte) foldedText {
	var f foldedText
	crlf := bytes.Count(body, []byte("\r\n"))
	lf := bytes.Count(body, []byte("\n")) - crlf
	switch {
	case crlf > lf:
		f.major = endCRLF
	case lf > 0:
		f.major = endLF
	}
	if crlf == 0 {
		f.text = string(body)
		return f
	}
	f.crs = make([]int, 0, crlf)
	var b strings.Builder
	b.Grow(len(body) - crlf)
	for {
		i := bytes.Index(body, []byte("\r\n"))
		if i < 0 {
			break
		}
		b.Write(body[:i])
		f.crs = append(f.crs, b.Len())
		b.WriteByte('\n')
		body = body[i+2:]
	}
	b.Write(body)
	f.text = b.String()
	return f
}

func foldString(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// raw returns the offset in the file's bytes of an offset in the folded text;
// at a folded line end it is that of the CR.
func (f foldedText) raw(at int) int { return at + lowerBound(f.crs, at) }

// endsIn returns the kind of line end that new text in the place of
// text[from:to] gets: that of the first line end in there, else the file's.
func (f foldedText) endsIn(from, to int) lineEnd {
	i := strings.IndexByte(f.text[from:to], '\n')
	if i < 0 {
		return f.major
	}
	k := lowerBound(f.crs, from+i)
	if k < len(f.crs) && f.crs[k] == from+i {
		return endCRLF
	}
	return endLF
}

// lowerBound returns how many of the rising numbers are less than x.
func lowerBound(rising []int, x int) int {
	lo, hi := 0, len(rising)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); rising[mid] < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// nearMiss says what kind of difference keeps old from matching, where that is
// only in blanks or in characters that look alike (B-088).
func nearMiss(text, old string) string {
	const most = 8 << 20 // beyond that the search for a reason is not worth its time
	if len(text) > most || strings.ContainsRune(old, '\uFFFD') && !strings.ContainsRune(text, '\uFFFD') {
		if strings.ContainsRune(old, '\uFFFD') {
			return "; it holds U+FFFD, which Read shows for bytes that are no UTF-8 text: leave those out of old_string"
		}
		return ""
	}
	if strings.Contains(text, "\u00A0") || strings.Contains(old, "\u00A0") {
		if strings.Contains(strings.ReplaceAll(text, "\u00A0", " "), strings.ReplaceAll(old, "\u00A0", " ")) {
			return "; the file and old_string differ in non-breaking spaces (U+00A0)"
		}
	}
	if composed := norm.NFC.String(old); strings.Contains(norm.NFC.String(text), composed) {
		return "; the file and old_string write accented characters differently (as one character, or as a letter and a combining mark)"
	}
	if plain := lookAlikes.Replace(old); strings.Contains(lookAlikes.Replace(text), plain) {
		return "; the file and old_string differ in quotation marks or dashes that look alike (such as U+2019 and ')"
	}
	if blanks := collapseBlanks(old); strings.TrimSpace(blanks) != "" && strings.Contains(collapseBlanks(text), blanks) {
		return "; there is a place that differs only in blanks (tabs, spaces or their number)"
	}
	return ""
}

// lookAlikes turns typographic quotation marks and dashes into plain ones.
var lookAlikes = strings.NewReplacer(
	"\u2018", "'", "\u2019", "'", "\u201C", `"`, "\u201D", `"`, "\u2010", "-", "\u2011", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-",
)

func collapseBlanks(s string) string {
	var b strings.Builder
	blank := false
	for _, r := range s {
		if r == ' ' || r == '\t' || r == '\u00A0' {
			blank = true
			continue
		}
		if blank && r != '\n' { // blanks at a line's end vanish
			b.WriteByte(' ')
		}
		blank = false
		b.WriteRune(r)
	}
	return b.String()
}
