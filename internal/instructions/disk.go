package instructions

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is what this package needs of a file system. Names are absolute paths of
// the operating system.
type FS interface {
	// Stat follows links.
	Stat(name string) (fs.FileInfo, error)
	// Names returns the names in a directory, sorted.
	Names(dir string) ([]string, error)
	// Read returns the first limit bytes of a regular file. It does not wait
	// for the other end of a pipe.
	Read(name string, limit int) ([]byte, error)
	// Resolve follows all links in a path that exists.
	Resolve(name string) (string, error)
}

// Disk is the file system of the machine.
var Disk FS = disk{}

type disk struct{}

func (disk) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (disk) Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (disk) Read(name string, limit int) ([]byte, error) {
	// It was a regular file when it was found; it may have been replaced since.
	f, err := os.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	buf := make([]byte, 0, min(int(info.Size())+1, limit))
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.Read(buf[len(buf):min(cap(buf), limit)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func (disk) Resolve(name string) (string, error) { return filepath.EvalSymlinks(name) }
