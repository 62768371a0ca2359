package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	firstBuffer = 256 << 10 // most files need no more
	sniffed     = 64 << 10  // a NUL byte in here makes a file binary
	maxLine     = 8 << 20   // bytes searched of one line
	maxWhole    = 64 << 20  // size of a file that is searched as a whole
)

// errTooLarge says that a file that must be searched as a whole is too large.
var errTooLarge = errors.New("too large to be searched as a whole")

// reader hands out the text of files in pieces of whole lines, in bounded
// memory. It belongs to one goroutine.
type reader struct {
	buf []byte
}

// read calls each with one piece after the other, until it returns false. The
// bytes are valid during the call. The end of a very long line is left out. A
// file with a NUL byte counts as binary: at the start, it is left out; later,
// the text ends there; only a named one is read to its end. whole asks for the
// file in one piece. A byte-order mark is no part of the text, and UTF-16 is
// converted.
func (r *reader) read(path string, named, whole bool, each func(text []byte) bool) (isBinary bool, err error) {
	f, err := openFile(path)
	if err != nil {
		return false, err
	}
	defer f.close()
	if r.buf == nil {
		r.buf = make([]byte, firstBuffer)
	}
	n, eof := 0, false
	fill := func() error { // until the buffer is full or the file ends
		for n < len(r.buf) && !eof {
			k, err := f.Read(r.buf[n:])
			n += k
			if errors.Is(err, io.EOF) {
				eof = true
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	grow := func(limit int) error { // all of it
		for {
			if err := fill(); err != nil || eof {
				return err
			}
			if n >= limit {
				return errTooLarge
			}
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
	}
	defer func() {
		if len(r.buf) > 2*maxLine { // not for the next thousand files
			r.buf = nil
		}
	}()
	if err := fill(); err != nil {
		return false, err
	}
	start := 0
	switch {
	case bytes.HasPrefix(r.buf[:n], []byte("\xEF\xBB\xBF")):
		start = 3
	case bytes.HasPrefix(r.buf[:n], []byte("\xFF\xFE")), bytes.HasPrefix(r.buf[:n], []byte("\xFE\xFF")):
		if err := grow(maxWhole); err != nil {
			return false, err
		}
		each(fromUTF16(r.buf[:n]))
		return false, nil
	}
	if bytes.IndexByte(r.buf[:min(n, sniffed)], 0) >= 0 {
		if isBinary = true; !named {
			return isBinary, nil
		}
	}
	if whole {
		if err := grow(maxWhole); err != nil {
			return isBinary, err
		}
	}
	for skip := false; ; {
		text := r.buf[start:n]
		cut := len(text) // the end of the last whole line
		if !eof {
			cut = bytes.LastIndexByte(text, '\n') + 1
			if cut == 0 && len(text) < maxLine {
				if start == 0 {
					r.buf = append(r.buf, make([]byte, len(r.buf))...)
				} else {
					n = copy(r.buf, text)
					start = 0
				}
				if err := fill(); err != nil {
					return isBinary, err
				}
				continue
			}
		}
		rest := text[cut:]
		long := cut == 0 && !eof // a line without an end in sight
		if long {
			text, rest = text[:maxLine], nil
		} else {
			text = text[:cut]
		}
		if skip { // still in the line whose start was given out
			if i := bytes.IndexByte(text, '\n'); i >= 0 {
				text, skip = text[i+1:], false
			} else {
				text = nil
			}
		}
		end := false
		if !named || !isBinary {
			if i := bytes.IndexByte(text, 0); i >= 0 {
				isBinary = true
				if !named {
					text, end = text[:i], true
				}
			}
		}
		if len(text) > 0 && !each(text) || end || eof {
			return isBinary, nil
		}
		skip = skip || long
		n = copy(r.buf, rest)
		start = 0
		if err := fill(); err != nil {
			return isBinary, err
		}
	}
}

// fromUTF16 converts text with a byte-order mark to UTF-8.
func fromUTF16(raw []byte) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	if raw[0] == 0xFE {
		order = binary.BigEndian
	}
	raw = raw[2:]
	out := make([]byte, 0, len(raw))
	for len(raw) >= 2 {
		u := order.Uint16(raw)
		raw = raw[2:]
		rn := rune(u)
		if utf16.IsSurrogate(rn) {
			rn = '\uFFFD'
			if len(raw) >= 2 {
				if pair := utf16.DecodeRune(rune(u), rune(order.Uint16(raw))); pair != '\uFFFD' {
					rn, raw = pair, raw[2:]
				}
			}
		}
		out = utf8.AppendRune(out, rn)
	}
	if len(raw) == 1 {
		out = utf8.AppendRune(out, '\uFFFD')
	}
	return out
}
