package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright/internal/vfs"
)

// endsOpen reports that the file's last byte is no newline.
func endsOpen(f io.ReaderAt, size int64) (bool, error) {
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return last[0] != '\n', nil
}

// mendTail cuts off a last line that does not parse, after a copy of its bytes
// is safe beside the file (S-21, K-307). It returns how the file is now. When
// cutting fails the line stays, and the next append begins with a newline.
func (j *journal) mendTail(info vfs.Info) (vfs.Info, error) {
	files.take()
	defer files.give()
	const tries = 3 // a client may append while this looks
	for range tries {
		t, err := j.readTail(info.Size)
		if err != nil {
			return info, ioError("read", j.path, err)
		}
		j.noLine = t.noLine
		if t.whole {
			return info, nil
		}
		copied, err := j.keepTorn(t.line)
		if err != nil {
			j.store.warn(fmt.Sprintf("session %s: the last line is torn and could not be cut off: %v", j.id, err))
			return info, nil
		}
		now, err := j.store.fs.Stat(j.path)
		if err != nil {
			return info, ioError("open", j.path, err)
		}
		if now.Size != info.Size || now.ID != info.ID {
			_ = j.store.fs.Remove(copied) // it was not torn, only not finished
			info = now
			continue
		}
		if t.at == 0 {
			err = j.store.fs.Remove(j.path) // K-291
			now = vfs.Info{}
		} else {
			err = j.store.fs.Truncate(j.path, t.at)
			now.Size = t.at
		}
		if err != nil {
			_ = j.store.fs.Remove(copied)
			j.store.warn(fmt.Sprintf("session %s: the last line is torn and could not be cut off: %v", j.id, ioError("write", j.path, err)))
			return info, nil
		}
		j.noLine = false
		j.store.warn(fmt.Sprintf("session %s: the last line was torn; its %d bytes were cut off and are kept in %s", j.id, len(t.line), copied))
		return now, nil
	}
	return info, nil
}

// tail is the last line of a file.
type tail struct {
	at     int64  // where it begins
	line   []byte // its bytes, newline included
	noLine bool   // it has no newline
	whole  bool   // it parses, or is blank
}

func (j *journal) readTail(size int64) (tail, error) {
	f, err := j.store.fs.OpenFile(j.path, os.O_RDONLY, 0)
	if err != nil {
		return tail{}, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	for want := int64(4 << 10); ; want *= 8 {
		start := max(0, size-want)
		data := make([]byte, size-start)
		if n, err := f.ReadAt(data, start); err != nil && (!errors.Is(err, io.EOF) || n < len(data)) {
			return tail{}, err
		}
		body := bytes.TrimSuffix(data, []byte("\n"))
		i := bytes.LastIndexByte(body, '\n')
		if i < 0 && start > 0 {
			continue
		}
		t := tail{at: start + int64(i) + 1, line: data[i+1:], noLine: len(body) == len(data)}
		line := bytes.TrimSpace(t.line)
		if t.at == 0 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		t.whole = len(line) == 0 || json.Valid(line)
		return t, nil
	}
}

// keepTorn stores the bytes of a torn line, safe from power loss, as
// <id>.torn-<n> (K-289).
func (j *journal) keepTorn(line []byte) (string, error) {
	for n := 1; ; n++ {
		path := filepath.Join(j.dir, fmt.Sprintf("%s.torn-%d", j.id, n))
		err := writeFile(j.store.fs, path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, line, true)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = ioError("sync", j.dir, j.store.fs.SyncDir(j.dir))
		}
		if err != nil {
			_ = j.store.fs.Remove(path)
			return "", err
		}
		return path, nil
	}
}
