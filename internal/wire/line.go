package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxInput bounds one line of input, in bytes. The API takes requests of at
// most 32 MB, so no line that can be used is longer; without a bound a line
// that never ends would take all memory.
const maxInput = 128 << 20

// keptBuffer is how much memory the reader keeps for the next line.
const keptBuffer = 1 << 20

// Causes of a LineError, for errors.Is. Others come from the decoder.
var (
	ErrNotObject = errors.New("not a JSON object")
	ErrTooLong   = fmt.Errorf("longer than %d MiB", maxInput>>20)
)

// LineError says why a line of input was ignored (K-174).
type LineError struct {
	Line  int    // number of the line, from 1
	More  int    // so many later lines were ignored as well
	Start string // how it begins
	Err   error
}

func (e *LineError) Error() string {
	if e.More > 0 {
		return fmt.Sprintf("line %d of standard input and %d more were ignored: %v: %q", e.Line, e.More, e.Err, e.Start)
	}
	return fmt.Sprintf("line %d of standard input was ignored: %v: %q", e.Line, e.Err, e.Start)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

const space = " \t\r\n\v\f"

// lines splits the input into lines of any length (W-27). Only what may become
// an object is kept: garbage without an end takes no memory.
type lines struct {
	r   *bufio.Reader
	max int
	buf []byte
	n   int // lines read
}

func newLines(r io.Reader) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), max: maxInput}
}

// next returns the next line that is not blank, without the white space around
// it (W-29). It is valid until the next call. The error is a *LineError for a
// line that is no object, and what ended the input otherwise: io.EOF, or why it
// cannot be read. A last line without line feed is a line like the others.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.read()
		line = bytes.TrimRight(line, space)
		var bad *LineError
		switch {
		case errors.As(err, &bad):
			return nil, bad
		case len(line) > 0:
			return line, nil // an error of the reader comes again
		case err != nil:
			return nil, err
		}
	}
}

func (l *lines) read() ([]byte, error) {
	if cap(l.buf) > keptBuffer {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	l.n++
	var fault error
	for {
		chunk, err := l.r.ReadSlice('\n')
		if l.n == 1 && len(l.buf) == 0 {
			chunk = bytes.TrimPrefix(chunk, []byte("\ufeff")) // some shells begin with it
		}
		if len(l.buf) == 0 {
			chunk = bytes.TrimLeft(chunk, space)
		}
		switch {
		case fault != nil: // the rest of a line that is of no use
		case len(l.buf) == 0 && len(chunk) > 0 && chunk[0] != '{':
			fault = ErrNotObject
			l.buf = append(l.buf, chunk[:min(len(chunk), 4*excerptLen)]...)
		case len(l.buf)+len(chunk) > l.max:
			fault = ErrTooLong
			l.buf = append(l.buf[:0:0], l.buf[:min(len(l.buf), 4*excerptLen)]...)
		default:
			if need := len(l.buf) + len(chunk); need > cap(l.buf) {
				// Twice as much each time: append would copy a long line more often.
				l.buf = slices.Grow(l.buf, max(need, min(2*cap(l.buf), l.max))-len(l.buf))
			}
			l.buf = append(l.buf, chunk...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case fault != nil:
			return nil, l.fault(l.buf, fault)
		default:
			return l.buf, err
		}
	}
}

func (l *lines) fault(line []byte, err error) *LineError {
	return &LineError{Line: l.n, Start: excerpt(line), Err: err}
}

const excerptLen = 60 // characters of a line that are shown

// excerpt is how line begins, in characters that can be shown.
func excerpt(line []byte) string {
	line = bytes.TrimRight(line[:min(len(line), 4*excerptLen)], space)
	text := []rune(strings.ToValidUTF8(string(line), "\ufffd"))
	if len(text) > excerptLen {
		return string(text[:excerptLen]) + "…"
	}
	return string(text)
}
