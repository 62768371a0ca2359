package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/turnwright/turnwright/session"
)

// ioError names file and error symbol; it unwraps the path that package os
// adds, which would stand there twice.
func ioError(op, path string, err error) error {
	var done *session.IOError
	if err == nil || errors.As(err, &done) {
		return err
	}
	code := errnoName(err)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		err = le.Err
	}
	return &session.IOError{Op: op, Path: path, Code: code, Err: err}
}

// errnoName is the symbol of the system's error, "" if there is none.
func errnoName(err error) string {
	no, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return ""
	}
	return symbol(no)
}

func errnoOf(err error) syscall.Errno {
	no, _ := errors.AsType[syscall.Errno](err)
	return no
}
