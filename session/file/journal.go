package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
)

// journal is one open session.
type journal struct {
	store   *Store
	project string // name of the project directory
	dir     string // the project directory
	path    string // the transcript
	id      string
	wait    time.Duration

	mu     sync.Mutex // Release may come from another goroutine
	closed bool
	lease  *lease // nil: released
	h      handle

	// What is known of the file. While the lease is held only the official
	// clients append to it besides us, and only metadata (K-306).
	opened bool       // known and ino were read once
	known  int64      // size
	ino    vfs.FileID // which file it is; zero when there is none
	noLine bool       // the last line has no newline
	fresh  bool       // made with Create, nothing appended yet
	stale  bool       // somebody else wrote while it was released
	failed remains

	named bool     // the name of the file was synced
	blobs []string // written and not synced
}

// remains is what a failed write left and could not be cut off at once.
type remains struct{ from, to int64 }

var _ session.Journal = (*journal)(nil)

// Path is the transcript's file.
func (j *journal) Path() string { return j.path }

// wake takes the lock after Release, and looks what happened to the file.
func (j *journal) wake(ctx context.Context) error {
	if j.closed {
		return session.ErrClosed
	}
	if j.lease != nil {
		return nil
	}
	l, err := j.store.lock(ctx, j.project, j.id, j.wait)
	if err != nil {
		return err
	}
	if err := j.inspect(); err != nil {
		l.release()
		return err
	}
	j.lease = l
	return nil
}

// inspect compares the file with what was known of it, and mends its tail.
func (j *journal) inspect() error {
	info, err := j.look()
	if err != nil {
		return err
	}
	if j.failed.to > 0 {
		if cut, err := j.cutRemains(info); err == nil {
			info = cut
		}
	}
	if info.Size > 0 && (!j.opened || info.Size != j.known || info.ID != j.ino || j.failed.to > 0) {
		if info, err = j.mendTail(info); err != nil {
			return err
		}
		j.failed = remains{}
	}
	if info.Size > 0 && (j.fresh || j.opened && (info.Size != j.known || info.ID != j.ino)) {
		j.stale = true
	}
	j.known, j.ino, j.opened = info.Size, info.ID, true
	return nil
}

// look describes the file by its name: zero when there is none. A file that is
// open here and is no longer the one with the name is let go (K-393).
func (j *journal) look() (vfs.Info, error) {
	info, err := j.store.fs.Stat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info, err = vfs.Info{}, nil
	case err != nil:
		return info, ioError("open", j.path, err)
	case !info.Mode.IsRegular():
		return info, ioError("open", j.path, errNotRegular)
	}
	if info.ID != j.ino {
		files.drop(&j.h)
	}
	return info, err
}

// Append writes all lines with one write; see session.Journal.
func (j *journal) Append(ctx context.Context, lines [][]byte, sync bool) error {
	if err := session.CheckLines(lines); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.wake(ctx); err != nil {
		return err
	}
	if j.stale {
		if j.fresh {
			return session.ErrExists
		}
		return session.ErrChanged
	}
	if len(lines) > 0 {
		if err := j.write(lines); err != nil {
			return err
		}
	}
	if sync {
		if err := j.sync(); err != nil {
			return &session.SyncError{Err: err}
		}
	}
	return nil
}

func (j *journal) write(lines [][]byte) error {
	info, err := j.look()
	if err != nil {
		return err
	}
	if j.failed.to > 0 {
		if info, err = j.cutRemains(info); err != nil {
			return err
		}
	}
	changed := info.Size != j.known || info.ID != j.ino
	switch {
	case info.Size == 0:
		// New, or deleted by somebody: made (again) by this write.
		j.noLine, j.named = false, false
		if err := j.store.mkdirAll(j.dir); err != nil {
			return err
		}
	case changed && j.fresh:
		return session.ErrExists
	}
	f, err := files.borrow(&j.h, j.open)
	if err != nil {
		return ioError("open", j.path, err)
	}
	if changed && info.Size > 0 {
		// A client appended. Its own last line may be torn, or not be
		// finished yet, so it is not cut off but ended.
		if j.noLine, err = endsOpen(f, info.Size); err != nil {
			files.put(&j.h)
			return ioError("read", j.path, err)
		}
	}
	buf := buffers.Get().(*[]byte)
	defer putBuffer(buf)
	b := (*buf)[:0]
	if j.noLine {
		b = append(b, '\n')
	}
	for _, line := range lines {
		b = append(b, line...)
		b = append(b, '\n')
	}
	*buf = b
	n, err := f.Write(b)
	files.put(&j.h)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		j.takeBack(info.Size, int64(n))
		return ioError("write", j.path, err)
	}
	j.known, j.noLine, j.fresh = info.Size+int64(len(b)), false, false
	return nil
}

// open opens the file for appending and notes which one it is.
func (j *journal) open() (vfs.File, error) {
	f, err := j.store.fs.OpenFile(j.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	j.ino = info.ID
	return f, nil
}

// takeBack removes the n bytes that a failed write left behind size, so that
// none of its lines is there.
func (j *journal) takeBack(size, n int64) {
	j.known = size
	j.failed = remains{from: size, to: size + n}
	info, err := j.store.fs.Stat(j.path)
	if err == nil {
		_, _ = j.cutRemains(info) // else before the next write
	}
}

// cutRemains is called with the session's file not borrowed. It cuts off what a failed write left, if nothing came after it: what
// a client appended must stay, and the next write then begins with a newline.
func (j *journal) cutRemains(info vfs.Info) (vfs.Info, error) {
	if info.Size != j.failed.to || info.ID != j.ino {
		j.failed = remains{}
		return info, nil
	}
	var err error
	switch {
	case j.failed.from == 0: // K-291
		if err = j.store.fs.Remove(j.path); err == nil {
			info = vfs.Info{}
			files.drop(&j.h) // it is open without a name
		}
	case j.failed.from < j.failed.to:
		if err = j.store.fs.Truncate(j.path, j.failed.from); err == nil {
			info.Size = j.failed.from
		}
	}
	if err != nil {
		return info, ioError("write", j.path, err)
	}
	j.failed = remains{}
	return info, nil
}

// sync makes durable what was appended: the file, its name, the blobs.
func (j *journal) sync() error {
	if j.known == 0 {
		return nil
	}
	f, err := files.borrow(&j.h, func() (vfs.File, error) {
		return j.store.fs.OpenFile(j.path, os.O_RDWR|os.O_APPEND, 0)
	})
	if err != nil {
		return ioError("sync", j.path, err)
	}
	err = f.Sync()
	files.put(&j.h)
	if err != nil {
		return ioError("sync", j.path, err)
	}
	if len(j.blobs) == 0 && j.named {
		return nil
	}
	files.take()
	defer files.give()
	if err := j.syncBlobs(); err != nil {
		return err
	}
	if !j.named {
		if err := j.store.fs.SyncDir(j.dir); err != nil {
			return ioError("sync", j.dir, err)
		}
		if err := j.store.syncAbove(j.project); err != nil {
			return err
		}
		j.named = true
	}
	return nil
}

// Release gives back lock and handle; see session.Journal.
func (j *journal) Release() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.release()
	return nil
}

func (j *journal) release() {
	if j.failed.to > 0 && j.lease != nil {
		if info, err := j.store.fs.Stat(j.path); err == nil {
			_, _ = j.cutRemains(info) // a last try
		}
	}
	files.drop(&j.h)
	if j.lease != nil {
		j.lease.release()
		j.lease = nil
	}
}

// Close releases for good.
func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.release()
	if !j.closed {
		opened.add(j.path, -1)
	}
	j.closed = true
	return nil
}

// PutBlob stores an output beside the session; see session.Journal.
func (j *journal) PutBlob(ctx context.Context, name string, data []byte) (string, error) {
	if err := session.CheckBlobName(name); err != nil {
		return "", err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.wake(ctx); err != nil {
		return "", err
	}
	path := filepath.Join(j.blobDir(), name)
	if err := j.store.mkdirAll(j.blobDir()); err != nil {
		return "", err
	}
	files.take()
	defer files.give()
	// Written beside and moved, so that nobody reads half of it.
	part := path + ".part"
	err := writeFile(j.store.fs, part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, data, false)
	if err == nil {
		err = ioError("rename", path, j.store.fs.Rename(part, path))
	}
	if err != nil {
		_ = j.store.fs.Remove(part)
		return "", err
	}
	j.blobs = append(j.blobs, path)
	return path, nil
}

func (j *journal) blobDir() string { return filepath.Join(j.dir, j.id, "tool-results") }

func (j *journal) syncBlobs() error {
	if len(j.blobs) == 0 {
		return nil
	}
	for _, path := range j.blobs {
		f, err := j.store.fs.OpenFile(path, os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted by somebody
		}
		if err == nil {
			err = f.Sync()
			_ = f.Close()
		}
		if err != nil {
			return ioError("sync", path, err)
		}
	}
	for _, dir := range []string{j.blobDir(), filepath.Dir(j.blobDir())} {
		if err := j.store.fs.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ioError("sync", dir, err)
		}
	}
	j.blobs, j.named = nil, false
	return nil
}

// writeFile writes a file whole.
func writeFile(on vfs.FS, path string, flag int, data []byte, sync bool) error {
	f, err := on.OpenFile(path, flag, 0o600)
	if err != nil {
		return ioError("open", path, err)
	}
	n, err := f.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = ioError("write", path, err)
	} else if sync {
		err = ioError("sync", path, f.Sync())
	}
	if cerr := f.Close(); err == nil {
		err = ioError("write", path, cerr)
	}
	return err
}

// buffers holds the bytes of writes; a large one is not kept.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func putBuffer(b *[]byte) {
	const most = 1 << 20
	if cap(*b) <= most {
		buffers.Put(b)
	}
}
