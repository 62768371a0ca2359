package instructions

import (
	"slices"
	"strings"
)

// digest takes a Markdown text apart: out is the text without its block-level
// HTML comments (C-49), mentions are the words that begin with "@" outside code
// (C-45), in order, at most maxMentions of them. It takes time in proportion to
// the text.
//
// A comment is removed where a line begins with it, indented by at most three
// blanks. One that never ends, or that stands within a line, is text.
func digest(text string) (out string, mentions []string) {
	d := digester{text: text}
	d.out.Grow(len(text))
	for d.at < len(text) {
		d.line()
	}
	d.paragraph()
	return d.out.String(), d.mentions
}

type digester struct {
	text      string
	at        int // the start of a line, or what stands behind a comment
	end       int // of the line that at is in
	out       strings.Builder
	para      strings.Builder // lines that belong together: code spans may go over their ends
	fence     fence
	noComment bool // no comment ends behind at
	mentions  []string
}

// fence is the line that opened a fenced code block; mark is 0 outside of one.
type fence struct {
	mark   byte
	length int
	quotes int // depth of the block quote that it stands in
}

func (d *digester) line() {
	line := d.text[d.at:d.lineEnd()]
	switch {
	case d.fence.mark != 0:
		body, quotes := unquote(line)
		if quotes < d.fence.quotes {
			d.fence = fence{} // the quote has ended, and the block with it
			return
		}
		d.out.WriteString(line)
		if d.fence.closedBy(body) {
			d.fence = fence{}
		}
	case d.comment(line):
		return
	case strings.TrimSpace(line) == "":
		d.paragraph()
		d.out.WriteString(line)
	default:
		if f, ok := opens(line); ok {
			d.paragraph()
			d.fence = f
			d.out.WriteString(line)
		} else {
			if body, _ := unquote(line); body != "" && (body[0] == '#' || afterListMark(body) != "") {
				d.paragraph() // a heading or an item: no code span goes over its start
			}
			d.para.WriteString(line)
		}
	}
	d.at = d.end
}

// lineEnd is the end of the line that d.at is in. It is looked for once: a line
// may hold a million comments.
func (d *digester) lineEnd() int {
	if d.at < d.end {
		return d.end
	}
	d.end = len(d.text)
	if i := strings.IndexByte(d.text[d.at:], '\n'); i >= 0 {
		d.end = d.at + i + 1
	}
	return d.end
}

// comment removes a comment that line begins with, and says whether it did.
// What stands behind it on its last line is a line of its own.
func (d *digester) comment(line string) bool {
	body := strings.TrimLeft(line, " ")
	if d.noComment || len(line)-len(body) > 3 || !strings.HasPrefix(body, "<!--") {
		return false
	}
	from := d.at + len(line) - len(body) + 2 // "<!-->" is one, too
	end := strings.Index(d.text[from:], "-->")
	if end < 0 {
		d.noComment = true
		return false
	}
	d.paragraph()
	d.at = from + end + len("-->")
	if d.at < len(d.text) && strings.TrimLeft(d.text[d.at:d.lineEnd()], " \t\n") == "" {
		d.at = d.end
	}
	return true
}

// unquote strips the marks of block quotes and says how many there were.
func unquote(line string) (body string, quotes int) {
	for {
		body = strings.TrimLeft(line, " \t")
		if !strings.HasPrefix(body, ">") {
			return body, quotes
		}
		line = body[1:]
		quotes++
	}
}

// opens reports whether line opens a fenced code block, also in a list or a
// quote.
func opens(line string) (f fence, ok bool) {
	body, quotes := unquote(line)
	for {
		item := afterListMark(body)
		if item == "" {
			break
		}
		var more int
		body, more = unquote(item)
		quotes += more
	}
	if body == "" || body[0] != '`' && body[0] != '~' {
		return f, false
	}
	f = fence{mark: body[0], length: run(body), quotes: quotes}
	if f.length < 3 || f.mark == '`' && strings.Contains(body[f.length:], "`") {
		return fence{}, false
	}
	return f, true
}

// afterListMark returns what follows the mark of a list item; "": there is none.
func afterListMark(body string) string {
	i := 0
	for i < len(body) && i < 9 && '0' <= body[i] && body[i] <= '9' {
		i++
	}
	marks := "-*+"
	if i > 0 {
		marks = ".)"
	}
	if i+1 >= len(body) || strings.IndexByte(marks, body[i]) < 0 || body[i+1] != ' ' && body[i+1] != '\t' {
		return ""
	}
	return body[i+2:]
}

func (f fence) closedBy(body string) bool {
	return body != "" && body[0] == f.mark && run(body) >= f.length && strings.TrimSpace(body[run(body):]) == ""
}

// run is how often the first byte of s stands at its beginning.
func run(s string) int {
	n := 1
	for n < len(s) && s[n] == s[0] {
		n++
	}
	return n
}

// paragraph looks for mentions in the lines gathered so far and writes them out.
func (d *digester) paragraph() {
	text := d.para.String()
	if text == "" {
		return
	}
	d.para.Reset()
	d.out.WriteString(text)
	if strings.IndexByte(text, '@') < 0 {
		return
	}
	runs := backticks(text)
	for i := 0; i < len(text) && len(d.mentions) < maxMentions; {
		switch c := text[i]; {
		case c == '\\':
			i += 2 // what it escapes opens nothing
		case c == '`':
			i = afterSpan(text, i, runs)
		case c == '@' && (i == 0 || isBlank(text[i-1])):
			word := mention(text[i+1:])
			if word != "" && len(word) <= maxMention {
				d.mentions = append(d.mentions, strings.ReplaceAll(word, `\ `, " "))
			}
			i += 1 + len(word)
		default:
			i++
		}
	}
}

// backticks are the places of runs of backticks in text, by their length.
func backticks(text string) map[int][]int {
	var at map[int][]int
	for i := strings.IndexByte(text, '`'); i >= 0 && i < len(text); {
		n := run(text[i:])
		if at == nil {
			at = map[int][]int{}
		}
		at[n] = append(at[n], i)
		i += n
		next := strings.IndexByte(text[i:], '`')
		if next < 0 {
			break
		}
		i += next
	}
	return at
}

// afterSpan returns the place behind the code span that begins at i, or behind
// the backticks there when no span does.
func afterSpan(text string, i int, runs map[int][]int) int {
	n := run(text[i:])
	closers := runs[n]
	k, _ := slices.BinarySearch(closers, i+n)
	if k == len(closers) {
		return i + n
	}
	return closers[k] + n
}

// mention is the word that s begins with. A backslash before a blank makes it
// part of the word.
func mention(s string) string {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == ' ':
			i++
		case isBlank(s[i]) || s[i] == '`':
			return s[:i]
		}
	}
	return s
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
