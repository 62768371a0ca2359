package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// OpKind is a kind of file-system operation.
type OpKind string

// Kinds of operations, as WithFaults reports them.
const (
	OpOpen     OpKind = "open"
	OpStat     OpKind = "stat"
	OpMkdir    OpKind = "mkdir"
	OpRename   OpKind = "rename"
	OpRemove   OpKind = "remove"
	OpLink     OpKind = "link"
	OpTruncate OpKind = "truncate"
	OpReadDir  OpKind = "readdir"
	OpSyncDir  OpKind = "syncdir"
	OpRead     OpKind = "read"
	OpWrite    OpKind = "write"
	OpSync     OpKind = "sync"
	OpLock     OpKind = "lock"
)

// Changes reports whether the operation can change the disk. Opening counts:
// it may create the file.
func (k OpKind) Changes() bool {
	switch k {
	case OpStat, OpReadDir, OpRead, OpLock:
		return false
	default:
		return true
	}
}

// Op is one operation that is about to happen.
type Op struct {
	Kind OpKind
	Name string
	Flag int // of an open
	Len  int // bytes of a read or write
}

// ShortWrite as the error of a write lets its first N bytes through.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string { return e.Err.Error() }
func (e *ShortWrite) Unwrap() error { return e.Err }

// WithFaults asks hook before every operation of under. An error of the hook
// is the result of the operation, which then does not happen; for a write it
// may be a *ShortWrite. Closing never fails. The hook may run on several
// goroutines at once.
func WithFaults(under FS, hook func(Op) error) FS { return &faulty{under: under, hook: hook} }

type faulty struct {
	under FS
	hook  func(Op) error
}

type faultyFile struct {
	File
	fs   *faulty
	name string
}

func (f *faulty) ask(op Op) error {
	err := f.hook(op)
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: string(op.Kind), Path: op.Name, Err: err}
}

func (f *faulty) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if err := f.ask(Op{Kind: OpOpen, Name: name, Flag: flag}); err != nil {
		return nil, err
	}
	file, err := f.under.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, fs: f, name: name}, nil
}

func (f *faulty) Stat(name string) (Info, error) {
	if err := f.ask(Op{Kind: OpStat, Name: name}); err != nil {
		return Info{}, err
	}
	return f.under.Stat(name)
}

func (f *faulty) Mkdir(name string, perm fs.FileMode) error {
	if err := f.ask(Op{Kind: OpMkdir, Name: name}); err != nil {
		return err
	}
	return f.under.Mkdir(name, perm)
}

func (f *faulty) Rename(oldName, newName string) error {
	if err := f.ask(Op{Kind: OpRename, Name: newName}); err != nil {
		return err
	}
	return f.under.Rename(oldName, newName)
}

func (f *faulty) Remove(name string) error {
	if err := f.ask(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	return f.under.Remove(name)
}

func (f *faulty) Link(oldName, newName string) error {
	if err := f.ask(Op{Kind: OpLink, Name: newName}); err != nil {
		return err
	}
	return f.under.Link(oldName, newName)
}

func (f *faulty) Truncate(name string, size int64) error {
	if err := f.ask(Op{Kind: OpTruncate, Name: name}); err != nil {
		return err
	}
	return f.under.Truncate(name, size)
}

func (f *faulty) ReadDir(name string) ([]string, error) {
	if err := f.ask(Op{Kind: OpReadDir, Name: name}); err != nil {
		return nil, err
	}
	return f.under.ReadDir(name)
}

func (f *faulty) SyncDir(name string) error {
	if err := f.ask(Op{Kind: OpSyncDir, Name: name}); err != nil {
		return err
	}
	return f.under.SyncDir(name)
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.ask(Op{Kind: OpRead, Name: f.name, Len: len(p)}); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *faultyFile) Write(p []byte) (int, error) {
	err := f.fs.ask(Op{Kind: OpWrite, Name: f.name, Len: len(p)})
	if err == nil {
		return f.File.Write(p)
	}
	short, ok := errors.AsType[*ShortWrite](err)
	if !ok {
		return 0, err
	}
	n, werr := f.File.Write(p[:min(max(short.N, 0), len(p))])
	if werr != nil {
		return n, werr
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	if err := f.fs.ask(Op{Kind: OpSync, Name: f.name}); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Stat() (Info, error) {
	if err := f.fs.ask(Op{Kind: OpStat, Name: f.name}); err != nil {
		return Info{}, err
	}
	return f.File.Stat()
}

func (f *faultyFile) TryLock(exclusive bool) (bool, error) {
	if err := f.fs.ask(Op{Kind: OpLock, Name: f.name}); err != nil {
		return false, err
	}
	return f.File.TryLock(exclusive)
}

// writes reports whether a file opened with flag can be written.
func writes(flag int) bool { return flag&(os.O_WRONLY|os.O_RDWR) != 0 }
