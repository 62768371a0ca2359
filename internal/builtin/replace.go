package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright/internal/safeopen"
)

// errChangedMeanwhile says that a file is not any more what it was when it was
// looked at for the change.
var errChangedMeanwhile = errors.New("it was changed by something else at this very moment")

// replaceFile gives an existing file a new content; info is how it was when
// the new content was made. The bytes go into a new file beside it, which then
// takes its name, so that the file is whole at every moment; permission bits,
// owner and extended attributes are kept (T-67). Where that cannot be, it is
// written in place: in a directory that takes no new file, for a file that has
// further hard links (which a rename would cut off), an owner or attributes
// that cannot be given to the new file, and one that cannot be renamed over,
// such as a mount point. Nothing is forced to the disk: a crash of the process
// loses nothing, one of the machine may.
//
// target must have no symbolic link in it. All is done in its directory once that
// is open, wherever it is moved to. key tells calls apart, see tempName.
func replaceFile(target string, data []byte, info fs.FileInfo, key string) error {
	dir, err := safeopen.OpenDir(filepath.Dir(target))
	if err != nil {
		return safeopen.Cause(err)
	}
	defer dir.Close()
	base := filepath.Base(target)
	// A file that may not be written stays as it is: a rename asks only for
	// the directory's permission.
	f, err := dir.Open(base, os.O_WRONLY, 0)
	if err != nil {
		return safeopen.Cause(err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !sameState(info, now) {
		return errors.Join(errChangedMeanwhile, safeopen.Cause(err))
	}
	if linkCount(info) > 1 {
		return overwrite(f, data)
	}
	alike := true // the new file could be made like the old one
	tmp, err := writeTemp(dir, target, data, key, 0o600, func(t *os.File) {
		alike = keepOwner(t, info) && keepAttributes(f, t) &&
			t.Chmod(info.Mode().Perm()|info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)) == nil
	})
	if errors.Is(err, fs.ErrPermission) {
		return overwrite(f, data)
	}
	if err != nil {
		return err
	}
	defer dir.Remove(tmp) // gone already when the rename was done
	if !alike {
		return overwrite(f, data)
	}
	switch now, err := dir.Lstat(base); {
	case err != nil:
		return safeopen.Cause(err)
	case !sameState(info, now):
		return errChangedMeanwhile
	}
	closeForRename(f)
	if err := dir.Rename(tmp, base); err == nil {
		return nil
	}
	if f, err = dir.Open(base, os.O_WRONLY, 0); err != nil {
		return safeopen.Cause(err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !sameState(info, now) {
		return errors.Join(errChangedMeanwhile, safeopen.Cause(err))
	}
	return overwrite(f, data)
}

// sameState reports whether a file is as it was, as far as its state tells.
func sameState(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.Mode() == now.Mode() &&
		before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// createFile makes a new file and the directories above it (T-66), whole or
// not at all. A file that came into being meanwhile is not overwritten.
func createFile(target string, data []byte, key string) error {
	dir, err := safeopen.MakeDir(filepath.Dir(target))
	if err != nil {
		return safeopen.Cause(err)
	}
	defer dir.Close()
	base := filepath.Base(target)
	tmp, err := writeTemp(dir, target, data, key, 0o666, nil)
	if err != nil {
		return err
	}
	defer dir.Remove(tmp)
	// A link is made only where the name is free; a rename would take it.
	err = dir.Link(tmp, base)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return safeopen.Cause(err)
	}
	// The file system knows no hard links.
	f, err := dir.Open(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return safeopen.Cause(err)
	}
	return fill(dir, base, f, data, nil)
}

// tempName is the name of the temporary file of a call, in the directory of
// target. It is the same when the call is looked at after a crash, so that
// nothing is left.
func tempName(target, key string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + target))
	return ".turnwright-" + hex.EncodeToString(sum[:8]) + ".tmp"
}

// removeTemp removes the temporary file of a call, if there is one.
func removeTemp(target, key string) {
	dir, err := safeopen.OpenDir(filepath.Dir(target))
	if err != nil {
		return
	}
	defer dir.Close()
	_ = dir.Remove(tempName(target, key))
}

// writeTemp writes data to a new file in the directory of target. finish, if not
// nil, is called with the file before it is closed.
func writeTemp(dir *safeopen.Dir, target string, data []byte, key string, mode fs.FileMode, finish func(*os.File)) (name string, err error) {
	name = tempName(target, key)
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := dir.Open(name, flags, mode)
	if errors.Is(err, fs.ErrExist) { // left by a crash
		if err = dir.Remove(name); err == nil {
			f, err = dir.Open(name, flags, mode)
		}
	}
	if err != nil {
		return "", safeopen.Cause(err)
	}
	return name, fill(dir, name, f, data, finish)
}

// fill writes a new file and closes it; one that cannot be filled is removed.
func fill(dir *safeopen.Dir, name string, f *os.File, data []byte, finish func(*os.File)) error {
	_, err := f.Write(data)
	if err == nil && finish != nil {
		finish(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(safeopen.Cause(err), safeopen.Cause(dir.Remove(name)))
	}
	return nil
}

func overwrite(f *os.File, data []byte) error {
	_, err := f.WriteAt(data, 0)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err != nil {
		return fmt.Errorf("writing in place: %w", safeopen.Cause(err))
	}
	return nil
}
