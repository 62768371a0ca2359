package vfs

import (
	"io"
	"io/fs"
	"time"
)

// FS is the disk. Names are absolute paths of the operating system. Errors are
// *fs.PathError or *os.LinkError with the system's error number inside, so
// that errors.Is(err, fs.ErrNotExist) and the like work. Implementations are
// comparable and safe for concurrent use.
type FS interface {
	// OpenFile opens a file with the flags of package os. With os.O_APPEND
	// every Write goes to the end of the file, wherever others moved it.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Stat follows symbolic links.
	Stat(name string) (Info, error)
	// Mkdir makes one directory.
	Mkdir(name string, perm fs.FileMode) error
	// Rename replaces an existing file.
	Rename(oldName, newName string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Link makes newName a second name of the file. It fails with
	// fs.ErrExist when newName is taken.
	Link(oldName, newName string) error
	// Truncate cuts the file to size bytes.
	Truncate(name string, size int64) error
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// SyncDir makes the names in a directory survive power loss.
	SyncDir(name string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Writer
	Stat() (Info, error)
	// Sync makes the contents survive power loss; the name does with SyncDir.
	Sync() error
	// TryLock takes an advisory lock on the file itself (on all its names),
	// shared or exclusive, without waiting. It reports false when somebody
	// else's lock is in the way. The lock ends with Close or with the process.
	TryLock(exclusive bool) (bool, error)
	Close() error
}

// Info says what a file is.
type Info struct {
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
	ID      FileID
}

// FileID tells files of one machine apart; it is the same for all names of a
// file.
type FileID struct{ Dev, Ino uint64 }
