//go:build !linux

package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// walk goes down to a directory, link by link refused, and says which it is.
func walk(dir string) (fs.FileInfo, error) {
	volume := filepath.VolumeName(dir)
	root, err := os.OpenRoot(volume + string(filepath.Separator))
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(dir[len(volume):], string(filepath.Separator)) {
		if part == "" {
			continue
		}
		next, err := down(root, part)
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		root = next
	}
	info, err := root.Stat(".")
	return info, errors.Join(err, root.Close())
}

// down opens a directory that is no link.
func down(root *os.Root, part string) (*os.Root, error) {
	info, err := root.Lstat(part)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errMoved
	}
	next, err := root.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = errMoved
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}
