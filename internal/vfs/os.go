package vfs

import (
	"io/fs"
	"os"
)

// OS is the file system of the operating system.
type OS struct{}

var _ FS = OS{}

type osFile struct{ *os.File }

// OpenFile opens a file. Children of the process do not inherit it.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Stat describes the file, following symbolic links.
func (OS) Stat(name string) (Info, error) { return statPath(name) }

// Mkdir makes one directory.
func (OS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }

// Rename moves a file over newName.
func (OS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Remove removes a file or an empty directory.
func (OS) Remove(name string) error { return os.Remove(name) }

// Link makes a hard link.
func (OS) Link(oldName, newName string) error { return os.Link(oldName, newName) }

// Truncate cuts a file.
func (OS) Truncate(name string, size int64) error { return os.Truncate(name, size) }

// ReadDir lists a directory.
func (OS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// SyncDir syncs a directory, where the system knows such a thing.
func (OS) SyncDir(name string) error { return syncDir(name) }

// Stat describes the open file.
func (f osFile) Stat() (Info, error) { return statFile(f.File) }

// TryLock locks the open file.
func (f osFile) TryLock(exclusive bool) (bool, error) { return tryLock(f.File, exclusive) }
