package wire

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnwright/turnwright/message"
)

// MaxLine is the most characters a written line has, without its line feed
// (W-24): a longer one is the end of the session on the client's side.
const MaxLine = 1_000_000

// shortest is how many characters are left at least of a string that is cut:
// more than any id has.
const shortest = 128

// Fit returns m as one line of JSON of at most MaxLine characters. In a longer
// one the longest strings are cut, each with a note of how much is missing;
// binary data, which is of no use cut, is left out. That concerns the stream
// alone: model and transcript have the whole.
func Fit(m message.Message) ([]byte, error) {
	line, err := message.Marshal(m)
	if err != nil || fits(line) {
		return line, err
	}
	if short, ok := shorten(line); ok {
		return short, nil
	}
	// So much that is not in strings is structured data.
	line, err = message.Marshal(bare(m, characters(line)))
	if err != nil || fits(line) {
		return line, err
	}
	if short, ok := shorten(line); ok {
		return short, nil
	}
	return nil, fmt.Errorf("a message of %d characters does not fit into a line of %d", characters(line), MaxLine)
}

// bare is m without its structured data.
func bare(m message.Message, n int) message.Message {
	note := fmt.Sprintf("[%d characters left out: a line of the stream has at most %d]", n, MaxLine)
	switch m := m.(type) {
	case *message.User:
		u := message.User{
			ParentToolUseID: m.ParentToolUseID, IsSynthetic: m.IsSynthetic, IsReplay: m.IsReplay, Origin: m.Origin,
			Timestamp: m.Timestamp, Header: message.Header{UUID: m.UUID, SessionID: m.SessionID},
		}
		var blocks []message.Block
		for _, r := range m.ToolResults() {
			blocks = append(blocks, message.NewToolResult(r.ToolUseID, message.TextContent(r.Content.Text()), r.IsError))
		}
		if len(blocks) == 0 {
			blocks = append(blocks, message.NewText(m.Text()))
		}
		u.Message = message.UserBody{Role: m.Message.Role, Content: message.BlockContent(append(blocks, message.NewText(note))...)}
		return &u
	case *message.Assistant:
		a := *m
		a.Header = message.Header{UUID: m.UUID, SessionID: m.SessionID}
		a.Message.Content, a.ContextUsage = nil, nil
		for _, b := range m.Message.Content {
			if u, ok := b.ToolUse(); ok {
				b = message.NewToolUse(u.ID, u.Name, nil)
			}
			if len(b.Raw()) <= MaxLine/2 || b.Type() == message.TypeText {
				a.Message.Content = append(a.Message.Content, b)
			}
		}
		a.Message.Content = append(a.Message.Content, message.NewText(note))
		return &a
	case *message.Result:
		r := *m
		r.Header = message.Header{UUID: m.UUID, SessionID: m.SessionID}
		r.StructuredOutput, r.DeferredToolUse, r.PermissionDenials = nil, nil, nil
		r.Errors = append(r.Errors[:min(len(r.Errors), 100):min(len(r.Errors), 100)], note)
		if r.Result == nil || r.Subtype != message.Success {
			return &r
		}
		text := *r.Result + "\n" + note
		r.Result = &text
		return &r
	}
	h := m.Head()
	return &message.Informational{Content: note, Level: "warning", Header: message.Header{UUID: h.UUID, SessionID: h.SessionID}}
}

func fits(line []byte) bool { return len(line) <= MaxLine || characters(line) <= MaxLine }

func characters(line []byte) int { return utf8.RuneCount(line) }

// shorten cuts the strings of the JSON text line until it fits, the longest
// first. It fails when that is not enough.
func shorten(line []byte) ([]byte, bool) {
	var long []int
	for s := range jsonStrings(line) {
		if n := s.end - s.start; n > shortest {
			long = append(long, characters(line[s.start:s.end]))
		}
	}
	total := characters(line)
	for keep := MaxLine / 2; keep >= shortest; keep /= 2 {
		n := total
		for _, l := range long {
			n -= max(l-keep-len("… [1234567890 characters left out]"), 0)
		}
		if n > MaxLine {
			continue
		}
		if short := cutStrings(line, keep); fits(short) {
			return short, true
		}
	}
	return nil, false
}

// span is where a JSON string stands, with its quotes.
type span struct {
	start, end int
	data       bool // the value of a key "data": base64
}

// jsonStrings yields the string values of the valid JSON text line.
func jsonStrings(line []byte) iter.Seq[span] {
	return func(yield func(span) bool) {
		data := false // the last string was the key "data"
		for i := 0; ; {
			n := bytes.IndexByte(line[i:], '"')
			if n < 0 {
				return
			}
			start := i + n
			if bytes.ContainsAny(line[i:start], "{[,") {
				data = false
			}
			end := start + 1
			for line[end] != '"' {
				if line[end] == '\\' {
					end++
				}
				end++
			}
			end++
			i = end
			if next := bytes.TrimLeft(line[end:], space); len(next) > 0 && next[0] == ':' {
				data = string(line[start:end]) == `"data"`
				continue
			}
			if !yield(span{start, end, data}) {
				return
			}
			data = false
		}
	}
}

// cutStrings cuts the string values of the valid JSON text line to keep
// characters each.
func cutStrings(line []byte, keep int) []byte {
	out := make([]byte, 0, min(len(line), 4*MaxLine))
	done := 0
	for s := range jsonStrings(line) {
		str := line[s.start:s.end]
		if characters(str)-2 <= keep { // without the quotes
			continue
		}
		out = append(out, line[done:s.start]...)
		done = s.end
		if s.data {
			out = append(out, `""`...)
		} else {
			out = appendCut(out, str, keep)
		}
	}
	return append(out, line[done:]...)
}

// appendCut appends the beginning of the JSON string str, cut between two
// characters of the text that it stands for.
func appendCut(out, str []byte, keep int) []byte {
	total := characters(str) - 2
	at, n := 1, 0
	for n < keep {
		size, count := unit(str[at:])
		if n+count > keep {
			break
		}
		at, n = at+size, n+count
	}
	out = append(out, str[:at]...)
	out = append(out, "… ["...)
	out = strconv.AppendInt(out, int64(total-n), 10)
	return append(out, ` characters left out]"`...)
}

// unit is the length of the first character of a JSON string's inside, in
// bytes and in characters of the line: an escape is several, and two escaped
// surrogates are one.
func unit(s []byte) (size, count int) {
	switch {
	case s[0] != '\\':
		_, size = utf8.DecodeRune(s)
		return size, 1
	case s[1] != 'u':
		return 2, 2
	case len(s) >= 12 && s[6] == '\\' && s[7] == 'u' && surrogate(s[2:4], "89ab") && surrogate(s[8:10], "cdef"):
		return 12, 12
	}
	return 6, 6
}

// surrogate reports whether the first two digits of a \u escape are those of
// a surrogate whose second digit is one of second.
func surrogate(digits []byte, second string) bool {
	return digits[0]|0x20 == 'd' && strings.IndexByte(second, digits[1]|0x20) >= 0
}
