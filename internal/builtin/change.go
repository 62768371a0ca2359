package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/tool"
)

// change is a call that is about to change a file: what its tools have in
// common. Until unlock no other call changes the file.
type change struct {
	place
	before fileRecord // what the session knows of the file
	known  bool       // whether it knows anything
	unlock func()
}

// openChange finds and locks the file that a field of the input names. A Read
// deny rule that covers the path, as it was given or as it resolves, refuses
// the call before the file is touched; verb says what cannot be done (T-65,
// T-76). With an empty verb such rules do not count (T-88).
func openChange(ctx context.Context, c *tool.Call, field, given, verb string) (*change, error) {
	path, err := absolute(c.Env, field, given)
	if err != nil {
		return nil, err
	}
	denied := func(path string) bool { return verb != "" && c.Env.ReadDenied != nil && c.Env.ReadDenied(path) }
	if denied(path) {
		return nil, readDeniedError(verb)
	}
	at, err := locate(c, field, path)
	if err != nil {
		return nil, err
	}
	if denied(at.target) {
		return nil, readDeniedError(verb)
	}
	unlock, err := fileLocks.lock(ctx, at.target)
	if err != nil {
		return nil, err
	}
	ch := &change{place: at, unlock: unlock}
	ch.before, ch.known = loadRecord(c.Env.State, at.target)
	return ch, nil
}

func readDeniedError(verb string) error {
	return errors.New("File is covered by a Read deny rule in your permission settings and cannot be " + verb + ".")
}

// needsRead reports whether the file must have been read before (T-64).
func (p place) needsRead(env *tool.Env) bool {
	return env.NeedsRead == nil || env.NeedsRead(p.path) || env.NeedsRead(p.target)
}

// announce tells the session that the file is about to be changed. With an
// error it must not be.
func (p place) announce(c *tool.Call) error {
	if c.Env.BeforeChange == nil {
		return nil
	}
	if err := c.Env.BeforeChange(p.path, p.target); err != nil {
		return fmt.Errorf("%s was left as it is: %w", p.path, err)
	}
	return nil
}

// remember refreshes the record of the file, so that the next change needs no
// read (T-79).
func (p place) remember(c *tool.Call, data []byte) {
	info, err := os.Lstat(p.target) // of another file's time no more comes than one more look at the content
	if err != nil {
		return // gone again: the next change finds out
	}
	r := recordOf(info, data)
	r.Size = int64(len(data))
	storeRecord(c.Env.State, p.target, r)
}

func isNotebook(path string) bool { return strings.EqualFold(filepath.Ext(path), ".ipynb") }
