package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/internal/safeopen"
	"github.com/turnwright/turnwright/permission"
)

// ErrNone says that there is no checkpoint with an id, or not any more.
var ErrNone = errors.New("No file checkpoint found for this message") //nolint:staticcheck // the contract's text (S-118)

// Result is what a rewind did, or would do.
type Result struct {
	// Files are those that were changed or removed, by the names under which
	// they were first changed, in order.
	Files []string
	// Insertions and Deletions are the lines that going back added and removed.
	Insertions, Deletions int
	// Skipped are how many files were left alone (S-116): what stands in their
	// place is no regular file or has further names, the way to them leads
	// elsewhere, or their state then is not known.
	Skipped int
}

// Rewind puts all tracked files into the state that they had at a checkpoint.
// With dry it says what it would do and touches nothing. A file that cannot be
// put back keeps none of the others from it: what went wrong is returned beside
// the result. ctx is looked at between two files.
func (h *History) Rewind(ctx context.Context, uuid string, dry bool) (res Result, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.load(); err != nil {
		return res, err
	}
	mark, ok := h.known[strings.ToLower(uuid)]
	if !ok || mark > 0 && mark < len(h.marks)-Kept {
		return res, ErrNone
	}
	var faults []error
	for _, target := range h.targets() {
		if err := ctx.Err(); err != nil {
			return res, errors.Join(append(faults, err)...)
		}
		t := h.files[target]
		r := restore{h: h, path: t.path, target: target, want: t.at(mark), dry: dry}
		changed, err := r.do()
		switch {
		case errors.Is(err, errSkip):
			res.Skipped++
		case err != nil:
			faults = append(faults, fmt.Errorf("%s could not be put back: %w", t.path, err))
		case changed:
			res.Files = append(res.Files, t.path)
			res.Insertions += r.insertions
			res.Deletions += r.deletions
		}
	}
	return res, errors.Join(faults...)
}

// errSkip says that a file is left alone.
var errSkip = errors.New("skipped")

// restore puts one file back.
type restore struct {
	h                     *History
	path, target          string
	want                  *version
	dry                   bool
	insertions, deletions int

	dir  *os.Root    // nil: it does not exist
	base string      // the file's name in it
	file *os.File    // as it is now, nil: there is none
	info fs.FileInfo // of it
}

func (r *restore) do() (changed bool, err error) {
	if r.want.State == stateLost {
		return false, errSkip
	}
	if now, err := permission.Resolve(r.path); err != nil || now != r.target {
		return false, errSkip
	}
	r.base = filepath.Base(r.target)
	r.dir, err = openDir(filepath.Dir(r.target))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.dir, err = nil, nil
	case errors.Is(err, errMoved):
		return false, errSkip
	case err != nil:
		return false, safeopen.Cause(err)
	default:
		defer func() { r.dir.Close() }() //nolint:errcheck // nothing is left to be written
		r.file, r.info, err = openFile(r.dir, r.base)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, errIrregular):
		return false, errSkip
	case err != nil:
		return false, safeopen.Cause(err)
	case r.file != nil:
		defer r.file.Close() //nolint:errcheck // what was written was checked
		if links(r.file, r.info) > 1 {
			return false, errSkip
		}
	}
	if r.want.State == stateAbsent {
		return r.remove()
	}
	return r.write()
}

// remove takes away a file that was not there.
func (r *restore) remove() (changed bool, err error) {
	if r.file == nil {
		return false, nil
	}
	_, r.deletions = countLines(read(r.file, r.info.Size()), []byte{})
	if r.dry {
		return true, nil
	}
	if err := r.unchanged(); err != nil {
		return false, safeopen.Cause(err)
	}
	closeEarly(r.file)
	return true, safeopen.Cause(r.dir.Remove(r.base))
}

// write gives the file its old contents and mode.
func (r *restore) write() (changed bool, err error) {
	if r.file != nil && r.info.Size() == r.want.Size {
		sum, err := hashOf(r.file)
		if err != nil {
			return false, safeopen.Cause(err)
		}
		if sum == r.want.SHA256 {
			return r.chmod()
		}
	}
	backup, err := r.h.openBackup(r.want)
	if err != nil {
		return false, errSkip
	}
	defer backup.Close() //nolint:errcheck // nothing was written
	now := []byte{}
	if r.file != nil {
		now = read(r.file, r.info.Size())
	}
	r.insertions, r.deletions = countLines(now, read(backup, r.want.Size))
	if r.dry {
		return true, nil
	}
	if r.dir == nil {
		// Directories are not tracked, but a file without one would be lost.
		if r.dir, err = makeDir(filepath.Dir(r.target)); err != nil {
			if errors.Is(err, errMoved) {
				return false, errSkip
			}
			return false, safeopen.Cause(err)
		}
		defer func() { r.dir.Close(); r.dir = nil }() //nolint:errcheck // nothing is left to be written
	}
	if err := r.replace(io.NewSectionReader(backup, 0, r.want.Size)); err != nil {
		return false, safeopen.Cause(err)
	}
	return true, nil
}

// chmod gives a file whose contents are right its old mode.
func (r *restore) chmod() (changed bool, err error) {
	if modeBits(r.info.Mode()) == r.want.Mode {
		return false, nil
	}
	if r.dry {
		return true, nil
	}
	return true, safeopen.Cause(r.file.Chmod(fs.FileMode(r.want.Mode)))
}

// replace writes the old contents beside the file and renames them over it
// (S-122). Where that cannot be, in a directory that takes no new file and over
// a mount point, they are written in place.
func (r *restore) replace(old *io.SectionReader) error {
	sum := sha256.Sum256([]byte(r.target))
	temp := fmt.Sprintf(".turnwright-%x.rewind.tmp", sum[:8]) // the same after a crash, so that nothing is left
	if err := r.dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	f, err := r.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrPermission) && r.file != nil {
		return r.overwrite(old)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, old)
	if err == nil {
		if r.info != nil {
			keepOwner(f, r.info)
		}
		err = f.Chmod(fs.FileMode(r.want.Mode))
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = r.unchanged()
	}
	if err == nil {
		closeEarly(r.file)
		if err = r.dir.Rename(temp, r.base); err != nil && r.file != nil {
			_, _ = old.Seek(0, io.SeekStart)
			err = errors.Join(r.overwrite(old), r.dir.Remove(temp))
			return err
		}
	}
	if err != nil {
		_ = r.dir.Remove(temp)
	}
	return err
}

// errChanged says that a file is not what it was a moment ago.
var errChanged = errors.New("it was changed by something else at this very moment")

// unchanged finds out whether the file is still what was looked at.
func (r *restore) unchanged() error {
	now, err := r.dir.Lstat(r.base)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.info == nil:
		return nil
	case err != nil:
		return err
	case r.info == nil, !os.SameFile(r.info, now), r.info.Size() != now.Size(), !r.info.ModTime().Equal(now.ModTime()):
		return errChanged
	}
	return nil
}

// overwrite writes the old contents into the file as it is.
func (r *restore) overwrite(old io.Reader) error {
	f, err := r.dir.OpenFile(r.base, os.O_WRONLY|openNonblock, 0)
	if err != nil {
		return err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(r.info, now) {
		err = errChanged
	}
	if err == nil {
		_, err = io.Copy(f, old)
	}
	if err == nil {
		err = f.Truncate(r.want.Size)
	}
	if err == nil && modeBits(now.Mode()) != r.want.Mode {
		err = f.Chmod(fs.FileMode(r.want.Mode))
	}
	return errors.Join(err, f.Close())
}

// backupFile is a backup that is whole.
type backupFile interface {
	io.ReaderAt
	io.Closer
}

// openBackup opens a backup and finds out whether it is what was kept.
func (h *History) openBackup(v *version) (backupFile, error) {
	f, err := h.fs.OpenFile(h.backup(v), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size != v.Size {
		err = errors.New("its size is not what was kept")
	}
	if err == nil {
		var sum []byte
		content := sha256.New()
		if _, err = io.Copy(content, io.NewSectionReader(f, 0, v.Size)); err == nil {
			if sum = content.Sum(nil); hex.EncodeToString(sum) != v.SHA256 {
				err = errors.New("its contents are not what was kept")
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// read returns the contents of a file whose lines are to be counted; nil: it is
// too large, or cannot be read.
func read(f io.ReaderAt, size int64) []byte {
	if size > maxCounted {
		return nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err != nil {
		return nil
	}
	return data
}
