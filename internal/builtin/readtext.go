package builtin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

const (
	defaultTokenLimit = 25_000 // T-48
	bytesPerToken     = 4      // the estimate where there is no tokenizer
)

// tokenLimit is the size of what one Read may show, in tokens (T-47).
func tokenLimit(env *tool.Env) int {
	n, err := strconv.Atoi(getenv(env, "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"))
	if err != nil || n <= 0 {
		return defaultTokenLimit
	}
	return min(n, 10_000_000) // keeps the budget in bytes from overflowing
}

// selection is which lines to show.
type selection struct {
	first    int64 // counted from 1
	count    int64 // 0: to the end
	explicit bool  // the caller chose: too much is an error, not a page (T-45)
	budget   int   // bytes that may be shown, line numbers included
	scanAll  bool  // go on to the end of the file for hash and line count
}

// view is what a scan found.
type view struct {
	numbered  []byte // the lines as the model sees them
	content   []byte // the same lines as they are, ends folded to LF
	lines     int64  // how many of them
	total     int64  // lines of the file; a lower bound when more is set
	more      bool   // the scan stopped before the end of the file
	truncated bool   // the budget ended the first page
	cutLine   bool   // within its only line
	hash      string // "" when the scan stopped early
}

// errTooLarge says that an explicit selection does not fit (T-45, T-46).
var errTooLarge = errors.New("the selection is larger than one Read may show")

// scanText reads r line by line in bounded memory. CR LF counts as one line
// end and a byte-order mark is not shown (B-082, B-083).
func scanText(ctx context.Context, r io.Reader, sel selection) (*view, error) {
	s := scanner{sel: sel, v: &view{}, sum: sha256.New()}
	br := bufio.NewReaderSize(r, 64<<10)
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part, err := br.ReadSlice('\n')
		s.sum.Write(part)
		if first {
			part = bytes.TrimPrefix(part, []byte("\uFEFF"))
		}
		s.add(part)
		switch {
		case s.err != nil:
			return nil, s.err
		case errors.Is(err, io.EOF):
			s.endOfFile()
			if s.err != nil {
				return nil, s.err
			}
			s.v.hash = hex.EncodeToString(s.sum.Sum(nil))
			return s.v, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case s.done && !sel.scanAll:
			if _, err := br.Peek(1); errors.Is(err, io.EOF) {
				continue // the next round finds the end
			}
			s.v.more = true
			return s.v, nil
		}
	}
}

type scanner struct {
	sel    selection
	v      *view
	sum    hash.Hash
	open   bool // a line has begun and not ended
	shown  bool // its number has been written
	heldCR bool // a CR that may belong to a CR LF
	done   bool // nothing more is shown
	err    error
}

// add takes a piece of the file that holds at most one line end, at its end.
func (s *scanner) add(part []byte) {
	if len(part) == 0 {
		return
	}
	if !s.open {
		s.open, s.shown = true, false
		s.v.total++
		if s.sel.count > 0 && s.v.total >= s.sel.first+s.sel.count {
			s.done = true
		}
	}
	text, ended := bytes.CutSuffix(part, []byte("\n"))
	if s.heldCR && (len(text) > 0 || !ended) {
		s.show([]byte("\r"))
	}
	s.heldCR = false
	if t, cr := bytes.CutSuffix(text, []byte("\r")); cr {
		text, s.heldCR = t, !ended // CR LF folds; otherwise wait for what follows
	}
	s.show(text)
	if ended {
		s.open = false
		s.endLine()
	}
}

func (s *scanner) selected() bool { return !s.done && s.v.total >= s.sel.first }

// show appends text to the line, with its number when it is the first piece.
func (s *scanner) show(text []byte) {
	if !s.selected() || s.err != nil {
		return
	}
	number := ""
	if !s.shown {
		number = fmt.Sprintf("%6d\t", s.v.total)
	}
	need := len(number) + len(text) + 1
	if len(s.v.numbered)+need > s.sel.budget {
		s.full(number, text)
		return
	}
	if !s.shown {
		s.shown = true
		s.v.lines++
		s.v.numbered = append(s.v.numbered, number...)
	}
	s.v.numbered = append(s.v.numbered, text...)
	s.v.content = append(s.v.content, text...)
}

// full ends the page: at the last whole line, or within the first line when
// that alone is too long.
func (s *scanner) full(number string, text []byte) {
	s.done = true
	if s.sel.explicit {
		s.err = errTooLarge
		return
	}
	s.v.truncated = true
	first := s.v.lines == 0 || s.v.lines == 1 && s.shown
	switch {
	case first:
		s.v.cutLine = true
		room := max(0, s.sel.budget-len(s.v.numbered)-len(number)-1)
		text = cutUTF8(text, room)
		s.v.lines = 1
		s.v.numbered = append(append(s.v.numbered, number...), text...)
		s.v.content = append(s.v.content, text...)
	case s.shown: // drop the line that has begun
		s.v.lines--
		s.v.numbered = s.v.numbered[:bytes.LastIndexByte(s.v.numbered, '\n')+1]
		s.v.content = s.v.content[:bytes.LastIndexByte(s.v.content, '\n')+1]
	}
}

func (s *scanner) endLine() {
	if !s.selected() {
		return
	}
	s.show(nil) // writes the number of an empty line
	if s.done {
		return
	}
	s.v.numbered = append(s.v.numbered, '\n')
	s.v.content = append(s.v.content, '\n')
}

func (s *scanner) endOfFile() {
	if s.heldCR {
		s.show([]byte("\r"))
		s.heldCR = false
	}
}

// result renders the view for the model and for tool_use_result (T-41).
func (v *view) result(path string, sel selection) (*tool.Result, error) {
	text := ""
	switch {
	case v.total == 0:
		text = fmt.Sprintf("The file %s exists and is empty.", path)
	case v.lines == 0 && !v.truncated:
		text = fmt.Sprintf("The file %s has %s; offset %d is past its end.", path, plural(v.total, "line"), sel.first)
	default:
		text = string(bytes.TrimSuffix(v.numbered, []byte("\n")))
	}
	if v.truncated {
		text += v.notice(path)
	}
	if !utf8.Valid(v.content) {
		text += "\n\n[Some bytes here are no UTF-8 text and are shown as U+FFFD. Edit keeps them when old_string leaves them out; Write would lose them.]"
	}
	type file struct {
		FilePath            string `json:"filePath"`
		Content             string `json:"content"`
		NumLines            int64  `json:"numLines"`
		StartLine           int64  `json:"startLine"`
		TotalLines          int64  `json:"totalLines"`
		TruncatedByTokenCap bool   `json:"truncatedByTokenCap,omitempty"`
	}
	structured, err := message.Encode(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"text", file{path, string(v.content), v.lines, sel.first, v.total, v.truncated}})
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewText(text)}, Structured: structured}, nil
}

func (v *view) notice(path string) string {
	of := fmt.Sprintf("of %d", v.total)
	if v.more {
		of = fmt.Sprintf("of more than %d", v.total)
	}
	if v.cutLine {
		return fmt.Sprintf("\n\n[PARTIAL view of %s: only the first %d bytes of line 1 %s are shown, because the line is longer than one Read may show. "+
			"Lines after it can be read with offset and limit, parts of it with Grep or a shell command such as cut -c.]", path, len(v.content), of)
	}
	return fmt.Sprintf("\n\n[PARTIAL view of %s: lines 1 to %d %s are shown, because the file is larger than one Read may show. "+
		"Go on with offset %d and a limit of about %d.]", path, v.lines, of, v.lines+1, v.lines)
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cutUTF8 returns at most n bytes of b, without half a character at the end.
func cutUTF8(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for i := n; i > 0 && i > n-4; i-- {
		if b[i]&0xC0 != 0x80 { // a character begins here
			return b[:i]
		}
	}
	return b[:n] // no UTF-8 text anyway
}
