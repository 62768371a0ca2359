package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
)

// chunk is how much is read at once. The file is not kept open between two
// chunks when others need the descriptor.
const chunk = 256 << 10

// Load yields the lines; see session.Journal.
func (j *journal) Load(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		size, err := j.startLoad(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if off, open, all := readLines(ctx, size, j.readAt, yield); all {
			j.endLoad(off, open)
		}
	}
}

// readLines yields the lines that readAt reads. It returns how far it read,
// whether the last line has no newline, and whether all lines were taken.
func readLines(ctx context.Context, size int64, readAt func([]byte, int64) (int, bool, error), yield func([]byte, error) bool) (off int64, open, all bool) {
	var (
		buf   = make([]byte, min(chunk, size+1)) // one more: the end shows at the first read
		carry []byte                             // beginning of a line that goes on in the next chunk
		last  byte
		l     = lineYielder{yield: yield}
	)
	for end := false; !end; {
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return off, false, false
		}
		n, atEnd, err := readAt(buf, off)
		if err != nil {
			yield(nil, err)
			return off, false, false
		}
		end = atEnd
		data := buf[:n]
		if n > 0 {
			last = data[n-1]
		}
		off += int64(n)
		for {
			i := bytes.IndexByte(data, '\n')
			if i < 0 {
				carry = append(carry, data...)
				break
			}
			line := append(carry, data[:i]...) // the caller's from here on
			carry, data = nil, data[i+1:]
			if !l.line(line) {
				return off, false, false
			}
		}
	}
	if len(carry) > 0 && !l.line(carry) {
		return off, false, false
	}
	return off, off > 0 && last != '\n', true
}

// lineYielder numbers lines and judges them.
type lineYielder struct {
	yield func([]byte, error) bool
	n     int
}

func (l *lineYielder) line(line []byte) bool {
	l.n++
	if l.n == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff")) // of an editor on another system
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(bytes.TrimSpace(line)) == 0 {
		return true
	}
	if err := session.CheckLine(line); err != nil {
		return l.yield(line, &session.LineError{Line: l.n, Err: err})
	}
	return l.yield(line, nil)
}

// startLoad takes the lock again and returns the size of the file.
func (j *journal) startLoad(ctx context.Context) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.wake(ctx); err != nil && !canReadOnly(err) {
		return 0, err
	}
	info, err := j.look()
	if err != nil {
		return 0, err
	}
	if j.failed.to > 0 {
		if cut, err := j.cutRemains(info); err == nil {
			info = cut
		}
	}
	j.ino = info.ID
	return info.Size, nil
}

// readAt reads at off; end says that nothing follows.
func (j *journal) readAt(buf []byte, off int64) (n int, end bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return 0, false, session.ErrClosed
	}
	if j.failed.to > 0 { // lines that were not acknowledged are not there
		buf = buf[:max(0, min(int64(len(buf)), j.failed.from-off))]
		if len(buf) == 0 {
			return 0, true, nil
		}
	}
	f, err := files.borrow(&j.h, func() (vfs.File, error) {
		return j.store.fs.OpenFile(j.path, os.O_RDWR|os.O_APPEND, 0)
	})
	switch {
	case err == nil:
		n, err = f.ReadAt(buf, off)
		files.put(&j.h)
	case errors.Is(err, fs.ErrNotExist):
		return 0, true, nil
	default: // read-only
		n, err = j.readOnly(buf, off)
	}
	if errors.Is(err, io.EOF) {
		return n, true, nil
	}
	return n, false, ioError("read", j.path, err)
}

func (j *journal) readOnly(buf []byte, off int64) (int, error) {
	files.take()
	defer files.give()
	f, err := j.store.fs.OpenFile(j.path, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return f.ReadAt(buf, off)
}

// endLoad notes that the caller knows the file up to size.
func (j *journal) endLoad(size int64, noLine bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed.to > 0 {
		return // known is right
	}
	j.known, j.noLine, j.opened = size, noLine, true
	j.stale = j.fresh && size > 0 // another session with our id stays foreign (S-6)
}
