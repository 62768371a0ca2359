package safeopen

import (
	"errors"
	"io/fs"
	"os"
)

// Cause drops the operation and the path that errors of files have, for a caller
// that names them in its own words.
func Cause(err error) error {
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
