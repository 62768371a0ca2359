package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
// target must have no symbolic link at its end. key tells calls apart, see
// tempName.
func replaceFile(target string, data []byte, info fs.FileInfo, key string) error {
	// A file that may not be written stays as it is: a rename asks only for
	// the directory's permission.
	f, err := os.OpenFile(target, os.O_WRONLY|openNonblock, 0)
	if err != nil {
		return cause(err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !sameState(info, now) {
		return errors.Join(errChangedMeanwhile, cause(err))
	}
	if linkCount(info) > 1 {
		return overwrite(f, data)
	}
	tmp, err := writeTemp(target, data, key, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return overwrite(f, data)
	}
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // gone already when the rename was done
	if !keepOwner(tmp, info) || !keepAttributes(target, tmp) {
		return overwrite(f, data)
	}
	if err := os.Chmod(tmp, info.Mode().Perm()|info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return overwrite(f, data)
	}
	switch now, err := os.Lstat(target); {
	case err != nil:
		return cause(err)
	case !sameState(info, now):
		return errChangedMeanwhile
	}
	closeForRename(f)
	if err := os.Rename(tmp, target); err == nil {
		return nil
	}
	if f, err = os.OpenFile(target, os.O_WRONLY|openNonblock, 0); err != nil {
		return cause(err)
	}
	defer f.Close()
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
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return cause(err)
	}
	tmp, err := writeTemp(target, data, key, 0o666)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	// A link is made only where the name is free; a rename would take it.
	err = os.Link(tmp, target)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return cause(err)
	}
	// The file system knows no hard links.
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return cause(err)
	}
	return fill(f, data)
}

// tempName is the name of the temporary file of a call beside target. It is
// the same when the call is looked at after a crash, so that nothing is left.
func tempName(target, key string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + target))
	return filepath.Join(filepath.Dir(target), ".turnwright-"+hex.EncodeToString(sum[:8])+".tmp")
}

// writeTemp writes data to a new file in the directory of target.
func writeTemp(target string, data []byte, key string, mode fs.FileMode) (name string, err error) {
	name = tempName(target, key)
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(name, flags, mode)
	if errors.Is(err, fs.ErrExist) { // left by a crash
		if err = os.Remove(name); err == nil {
			f, err = os.OpenFile(name, flags, mode)
		}
	}
	if err != nil {
		return "", cause(err)
	}
	return name, fill(f, data)
}

// fill writes a new file and closes it; one that cannot be filled is removed.
func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return cause(err)
	}
	return nil
}

func overwrite(f *os.File, data []byte) error {
	_, err := f.WriteAt(data, 0)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err != nil {
		return fmt.Errorf("writing in place: %w", cause(err))
	}
	return nil
}

// cause drops the operation and path that the caller names in its own words.
func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}
