package builtin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	headSize  = 256 << 10 // bytes kept in memory from the start of an output
	tailSize  = 64 << 10  // and from its end
	spillSize = 64 << 20  // bytes kept of a large output (T-117)
	killSize  = 5 << 30   // a command that writes more is killed (T-120)
)

// output takes what a command writes, in bounded memory: the start, the end,
// and in a file that is made when needed the first 64 MiB, or all of it when
// the command is in the background. Its fields are read without the lock when
// nobody writes any more.
type output struct {
	tempDir func() (string, error) // where the file goes
	kill    int64                  // bytes that are too many; 0: killSize

	mu    sync.Mutex
	head  []byte
	tail  []byte // the last bytes of what no longer went into head; up to twice tailSize
	size  int64  // bytes written
	runes int64  // characters written
	spill *os.File
	all   bool  // the file gets everything, as it comes
	err   error // the first failure of the file; the output is then cut shorter
}

// max returns how many bytes a command may write.
func (o *output) max() int64 {
	if o.kill > 0 {
		return o.kill
	}
	return killSize
}

// write takes the next bytes. It reports whether they are too many by now.
func (o *output) write(p []byte) (over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(p)
	return o.size > o.max()
}

func (o *output) add(p []byte) {
	o.size += int64(len(p))
	o.runes += int64(characters(p))
	before := o.size - int64(len(p))
	if o.all && o.err == nil {
		_, o.err = o.spill.Write(p)
	}
	if room := headSize - len(o.head); room > 0 {
		o.head = append(o.head, p[:min(room, len(p))]...)
		if len(p) <= room {
			return
		}
		p, before = p[room:], headSize
	}
	if o.spill == nil && o.err == nil {
		if o.err = o.open(); o.err == nil {
			_, o.err = o.spill.Write(o.head)
		}
	}
	if !o.all && o.err == nil && before < spillSize {
		_, o.err = o.spill.Write(p[:min(int64(len(p)), spillSize-before)])
	}
	if len(p) >= tailSize {
		o.tail = append(o.tail[:0], p[len(p)-tailSize:]...)
		return
	}
	if len(o.tail)+len(p) > 2*tailSize {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-tailSize:]...)
	}
	o.tail = append(o.tail, p...)
}

func (o *output) open() error {
	dir, err := o.tempDir()
	if err != nil {
		return err
	}
	o.spill, err = os.CreateTemp(dir, "output-*.txt")
	return err
}

// keepAll makes the file, if there is none yet, and lets it have everything
// from now on (T-130, T-131). Where the file has already missed something it
// says so.
func (o *output) keepAll() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if o.spill == nil {
		if err := o.open(); err != nil {
			return err
		}
		if _, err := o.spill.Write(o.head); err != nil {
			o.discardFile()
			return err
		}
	} else if missed := o.size - spillSize; missed > 0 {
		if _, err := fmt.Fprintf(o.spill, "\n\n... [%d bytes were not kept] ...\n\n", missed); err != nil {
			return err
		}
	}
	o.all = true
	return nil
}

// path returns the name of the file; "" without one.
func (o *output) path() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spill == nil {
		return ""
	}
	return o.spill.Name()
}

// done closes the file and leaves it on disk.
func (o *output) done() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spill == nil {
		return o.err
	}
	return errors.Join(o.err, o.spill.Close())
}

// close removes the file. The output must not be used afterwards.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.discardFile()
}

func (o *output) discardFile() {
	if o.spill != nil {
		o.spill.Close()
		os.Remove(o.spill.Name())
		o.spill = nil
	}
}

// saved returns the first 64 MiB of the output.
func (o *output) saved() ([]byte, error) {
	if o.size <= int64(len(o.head)) {
		return o.head, nil
	}
	if o.err != nil {
		return nil, o.err
	}
	if o.spill == nil {
		return nil, errors.New("the output was not kept")
	}
	if _, err := o.spill.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(o.spill)
}

// text returns the whole output if it has at most limit characters.
func (o *output) text(limit int) (string, bool) {
	if o.size > int64(len(o.head)) {
		return "", false
	}
	s := strings.ToValidUTF8(string(o.head), "\uFFFD")
	return s, utf8.RuneCountInString(s) <= limit
}

// preview returns about limit characters from the start.
func (o *output) preview(limit int) string { return firstRunes(clean(o.head), limit) }

// excerpt returns about limit characters, half from the start and half from
// the end, with a marker that says how many are missing (T-118).
func (o *output) excerpt(limit int) string {
	if s, ok := o.text(limit); ok {
		return s
	}
	end := o.tail
	if o.size <= int64(len(o.head)) {
		end = o.head
	}
	head := firstRunes(clean(o.head), limit-limit/2)
	tail := lastRunes(clean(end), limit/2)
	missing := o.runes - int64(utf8.RuneCountInString(head)+utf8.RuneCountInString(tail))
	return fmt.Sprintf("%s\n\n... [%d characters truncated] ...\n\n%s", head, max(0, missing), tail)
}

// soFar returns about limit characters of what has been written until now.
func (o *output) soFar(limit int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.excerpt(limit)
}

// clean makes valid UTF-8 of the bytes; half a character at either end, where
// they were cut, is dropped (B-107).
func clean(b []byte) string {
	for i := 0; i < 3 && len(b) > 0 && b[0]&0xC0 == 0x80; i++ {
		b = b[1:]
	}
	for i := 1; i <= 3 && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				b = b[:len(b)-i]
			}
			break
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// characters counts those that begin in p, so that a character that is split
// between two writes counts once: all bytes but UTF-8's continuation bytes,
// which begin with the bits 10. Eight at a time, for every byte of an output
// comes by here.
func characters(p []byte) int {
	n := len(p)
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p)
		n -= bits.OnesCount64(x >> 7 & ^(x >> 6) & 0x0101010101010101)
	}
	for _, c := range p {
		if c&0xC0 == 0x80 {
			n--
		}
	}
	return n
}

// pump copies from r to the output until mark comes by, then calls done and
// throws away the rest until the end of r. It returns at the end of r.
//
// The reader of a pipe that other processes may keep open cannot wait for its
// end (B-099). The mark, random bytes written into the pipe by the owner of the
// command after it has exited, stands behind all that the command wrote.
func pump(r io.Reader, o *output, mark []byte, tooMuch, done func()) {
	buf := make([]byte, 64<<10)
	kept := 0 // bytes at the start of buf that are the beginning of mark
	over := false
	finished := false
	finish := func() {
		if !finished {
			finished = true
			done()
		}
	}
	defer finish()
	for {
		n, err := r.Read(buf[kept:])
		if !finished {
			data := buf[:kept+n]
			switch i := bytes.Index(data, mark); {
			case i >= 0:
				o.write(data[:i])
				finish()
				kept = 0
			default:
				keep := 0
				if err == nil {
					keep = begun(data, mark)
				}
				if o.write(data[:len(data)-keep]) && !over {
					over = true
					tooMuch()
				}
				kept = copy(buf, data[len(data)-keep:])
			}
		}
		if err != nil {
			return
		}
	}
}

// begun returns how many bytes at the end of data may be the beginning of mark.
func begun(data, mark []byte) int {
	for n := min(len(mark)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, mark[:n]) {
			return n
		}
	}
	return 0
}
