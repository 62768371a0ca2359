package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/turnwright/turnwright/permission"
)

// MaxFlagFile bounds the file of --settings, in bytes (C-13).
const MaxFlagFile = 2 << 20

// maxFile bounds all other files, in bytes.
const maxFile = 16 << 20

// Layer is what one file, or one option, says.
type Layer struct {
	Source permission.Source
	File   string // absolute; "": the text of an option
	Option string // the name of that option
	Dir    string // what a path that begins with "/" in a rule is relative to (P-80)

	doc  []byte // as read
	root *node  // what of it can be used
}

// Name is what messages call the layer.
func (l *Layer) Name() string {
	if l.File != "" {
		return l.File
	}
	return l.Option
}

// JSON is what of the layer can be used, compact.
func (l *Layer) JSON() json.RawMessage { return l.root.append(nil) }

// only is the layer with nothing but the given keys.
func (l *Layer) only(paths [][]string) *Layer {
	kept := *l
	kept.root = keep(l.root, paths)
	return &kept
}

// reading is the outcome of reading a layer.
type reading struct {
	layer    *Layer // nil: nothing of it can be used
	problems []Problem
	notes    []string // for the debug log
	broken   bool     // it is not JSON, or breaks the schema
}

// read checks a document for the layer that it is to be.
func (l Layer) read(doc []byte) (r reading) {
	l.doc = doc
	fail := func(at int, why string) reading {
		line, col := position(doc, at)
		r.problems = append(r.problems, Problem{File: l.Name(), Line: line, Col: col, Text: why})
		r.broken = true
		return r
	}
	root, err := parse(doc)
	var bad *syntaxError
	switch {
	case errors.As(err, &bad):
		return fail(bad.at, bad.why)
	case root.kind != object:
		return fail(root.at, "must be an object, not "+root.kind.String())
	}
	l.root = root
	c := checker{layer: &l}
	c.object(root, "")
	r.layer, r.problems, r.notes, r.broken = &l, c.problems, c.notes, c.broken
	if c.broken {
		r.layer = l.only(protects)
	}
	return r
}

// readFile reads a regular file of at most max bytes. Opening what is no
// regular file, such as a named pipe, might wait for ever.
func readFile(path string, info os.FileInfo, max int64) ([]byte, error) {
	switch {
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	case info.Size() > max:
		return nil, fmt.Errorf("is larger than %d MiB", max>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, max+1))
	switch {
	case err != nil:
		return nil, reason(err)
	case int64(len(doc)) > max:
		return nil, fmt.Errorf("is larger than %d MiB", max>>20)
	}
	return doc, nil
}

// reason is an error of the disk without its path, which the message names.
func reason(err error) error {
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", bad.Err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}
