// Package readfile reads the files that a user names: whole, and never more of
// them than makes sense, whatever the name leads to.
package readfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Whole reads a file of at most limit bytes. A pipe is read to its end, so that
// <(command) of a shell is a file too; that, and the wait for its writer, ends
// with ctx. What never ends, such as /dev/zero, is too large. The error names
// the path unless it is that of ctx.
func Whole(ctx context.Context, path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	case info.Mode().IsRegular():
		return read(path, info.Size(), limit, func(*os.File) {})
	}
	type outcome struct {
		text []byte
		err  error
	}
	// Opening a pipe waits for its other end and cannot be stopped: the
	// goroutine then lives until somebody comes.
	done := make(chan outcome, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		text, err := read(path, 0, limit, func(f *os.File) {
			context.AfterFunc(ctx, func() { _ = f.Close() })
		})
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the file, of which size is known; opened is called with it.
func read(path string, size, limit int64, opened func(*os.File)) ([]byte, error) {
	tooLarge := &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d MiB", limit>>20)}
	if size > limit {
		return nil, tooLarge
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened(f)
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > limit:
		return nil, tooLarge
	}
	return text, nil
}
