package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile gives an existing file a new content. The bytes go into a new
// file beside it, which then takes its name, so that the file is whole at every
// moment; its permission bits and, where that is allowed, its owner are kept
// (T-67). Where no file can be made beside it, it is written in place.
// target must have no symbolic link at its end.
func replaceFile(target string, data []byte, info fs.FileInfo) error {
	// A file that may not be written stays as it is: a rename asks only for
	// the directory's permission.
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return cause(err)
	}
	defer f.Close()

	tmp, err := writeTemp(target, data)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return overwrite(f, data)
		}
		return err
	}
	keepOwner(tmp, info)
	if err := os.Chmod(tmp, info.Mode().Perm()|info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		os.Remove(tmp)
		return cause(err)
	}
	f.Close() // Windows does not rename over an open file
	if err := os.Rename(tmp, target); err != nil {
		os.Remove(tmp)
		return cause(err)
	}
	return nil
}

// createFile makes a new file and the directories above it. A file that came
// into being meanwhile is not overwritten.
func createFile(target string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return cause(err)
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return cause(err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(target)
		return cause(err)
	}
	return nil
}

// writeTemp writes data to a new file in the directory of target.
func writeTemp(target string, data []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(target), ".turnwright-*.tmp")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", cause(err)
	}
	return f.Name(), nil
}

func overwrite(f *os.File, data []byte) error {
	_, err := f.Write(data)
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
