package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxEventSize bounds one server-sent event, in bytes (B-161). The API's
// largest are a few megabytes; past this a server is broken or hostile.
const maxEventSize = 256 << 20

// errEventSize says that an event went over the limit.
var errEventSize = errors.New("server-sent event too large")

// frame is one server-sent event.
type frame struct {
	name string // the event field, often empty
	data []byte // the data lines joined by \n; never reused
	cut  bool   // the stream ended before the blank line that ends an event
}

// sseScanner reads server-sent events. Lines may be of any length up to limit
// and end in LF, CRLF or CR.
type sseScanner struct {
	r     io.Reader
	limit int

	pooled     *[bufferSize]byte
	buf        []byte // what was read and not yet used is buf[start:end]
	start, end int
	skipLF     bool   // the last line ended in CR: a LF now belongs to it
	line       []byte // the begun line, when it spans reads
	first      bool   // the first line is done: no byte order mark any more
	err        error

	name    string
	data    []byte
	hasData bool
}

// bufferSize is how much is read at once, until lines turn out to be long.
const bufferSize = 16 << 10

// buffers holds read buffers between answers. What leaves the scanner is never
// a part of one.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func newSSEScanner(r io.Reader) *sseScanner {
	b := buffers.Get().(*[bufferSize]byte)
	return &sseScanner{r: r, limit: maxEventSize, pooled: b, buf: b[:]}
}

// free gives the buffer back. The scanner is at its end then.
func (s *sseScanner) free() {
	buffers.Put(s.pooled)
	s.pooled, s.buf, s.start, s.end, s.err = nil, nil, 0, 0, io.EOF
}

// next returns the next event, io.EOF after the last, or the reader's error.
// An event that the end of the stream cut short comes first, with cut set.
func (s *sseScanner) next() (frame, error) {
	for {
		line, owned, err := s.readLine()
		if err != nil && len(line) == 0 {
			if s.hasData {
				f := s.take()
				f.cut = true
				return f, nil
			}
			return frame{}, err
		}
		if len(line) == 0 {
			if s.hasData {
				return s.take(), nil
			}
			s.name = ""
			continue
		}
		if err := s.field(line, owned); err != nil {
			return frame{}, err
		}
	}
}

func (s *sseScanner) take() frame {
	f := frame{name: s.name, data: s.data}
	s.name, s.data, s.hasData = "", nil, false
	return f
}

// field uses one line that is not blank. owned says that the line's bytes are
// the caller's to keep.
func (s *sseScanner) field(line []byte, owned bool) error {
	key, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(key) {
	case "event":
		if name, ok := names[string(value)]; ok {
			s.name = name
		} else {
			s.name = string(value)
		}
	case "data":
		switch {
		case s.hasData:
			if len(s.data)+1+len(value) > s.limit {
				return fmt.Errorf("%w: more than %d bytes", errEventSize, s.limit)
			}
			s.data = append(append(s.data, '\n'), value...)
		case owned:
			s.data = value
		default:
			s.data = bytes.Clone(value)
		}
		s.hasData = true
	}
	return nil // comments, id, retry and unknown fields are of no use here
}

// readLine returns the next line without its end. At the end of the stream it
// returns the rest, then the error. The line is valid until the next call
// unless owned.
func (s *sseScanner) readLine() (line []byte, owned bool, err error) {
	for {
		if s.skipLF && s.start < s.end {
			if s.buf[s.start] == '\n' {
				s.start++
			}
			s.skipLF = false
		}
		if i := lineEnd(s.buf[s.start:s.end]); i >= 0 {
			part := s.buf[s.start : s.start+i]
			s.skipLF = s.buf[s.start+i] == '\r'
			s.start += i + 1
			if s.line == nil {
				return s.noMark(part), false, nil
			}
			line, s.line = append(s.line, part...), nil
			return s.noMark(line), true, nil
		}
		if s.err != nil {
			line, s.line = append(s.line, s.buf[s.start:s.end]...), nil
			s.start = s.end
			if len(line) > 0 {
				return s.noMark(line), true, nil
			}
			return nil, false, s.err
		}
		if s.start < s.end {
			if len(s.line)+s.end-s.start > s.limit {
				return nil, false, fmt.Errorf("%w: more than %d bytes", errEventSize, s.limit)
			}
			s.line = append(s.line, s.buf[s.start:s.end]...)
		}
		s.fill()
	}
}

// fill reads more, with a larger buffer once lines are long.
func (s *sseScanner) fill() {
	if len(s.line) > 8*len(s.buf) && len(s.buf) < 1<<20 {
		s.buf = make([]byte, 8*len(s.buf))
	}
	s.start, s.end = 0, 0
	for range 100 { // as bufio does: a reader that gives nothing is at fault
		n, err := s.r.Read(s.buf)
		s.end = n
		if err != nil {
			s.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// noMark drops a byte order mark from the first line.
func (s *sseScanner) noMark(line []byte) []byte {
	if s.first {
		return line
	}
	s.first = true
	return bytes.TrimPrefix(line, []byte("\uFEFF"))
}

// lineEnd returns the index of the first CR or LF, -1 when there is none.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}
