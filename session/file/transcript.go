package file

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/internal/vfs"
)

// Transcript opens a transcript for reading, wherever it lies: copied from another
// machine, or in nobody's configuration home. The id is what the file's name says.
// The lines are those of session.Finder's Read, up to the size that the file has
// now; they take no lock and change nothing. The error is a *session.IOError.
func Transcript(ctx context.Context, path string) (id string, lines iter.Seq2[[]byte, error], err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	info, err := vfs.OS{}.Stat(path)
	if err != nil {
		return "", nil, ioError("open", path, err)
	}
	id = strings.TrimSuffix(filepath.Base(path), ".jsonl")
	return id, func(yield func([]byte, error) bool) {
		f, err := vfs.OS{}.OpenFile(path, os.O_RDONLY, 0)
		if err != nil {
			yield(nil, ioError("open", path, err))
			return
		}
		defer f.Close() //nolint:errcheck // nothing was written
		readLines(ctx, info.Size, func(buf []byte, off int64) (int, bool, error) {
			n, err := f.ReadAt(buf, off)
			if errors.Is(err, io.EOF) {
				return n, true, nil
			}
			return n, false, ioError("read", path, err)
		}, yield)
	}, nil
}
