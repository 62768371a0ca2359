package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/wire"
)

// rewound is a result of RewindFiles as clients get it (W-97).
type rewound struct {
	CanRewind    bool     `json:"canRewind"`
	Error        string   `json:"error,omitempty"`
	FilesChanged []string `json:"filesChanged,omitempty"`
	Insertions   *int     `json:"insertions,omitempty"`
	Deletions    *int     `json:"deletions,omitempty"`
	SkippedLinks int      `json:"skippedLinks,omitempty"`
}

func newRewound(r turnwright.RewindResult) rewound {
	w := rewound{CanRewind: r.CanRewind, Error: r.Error, FilesChanged: r.FilesChanged, SkippedLinks: r.SkippedLinks}
	if r.CanRewind {
		w.Insertions, w.Deletions = &r.Insertions, &r.Deletions
	}
	return w
}

// rewind puts files back for a client.
func (c *client) rewind(r *wire.Request) error {
	var f struct {
		ID     string `json:"user_message_id"`
		DryRun bool   `json:"dry_run"`
	}
	if err := r.Decode(&f); err != nil {
		return err
	}
	if f.ID == "" {
		return errors.New(`rewind_files: the field "user_message_id" is missing`)
	}
	res, err := c.s.RewindFiles(r.Context(), f.ID, f.DryRun)
	if err != nil {
		return err
	}
	r.Succeed(newRewound(res))
	return nil
}

// runRewind puts the files of a session back and prints what was done (K-58).
func runRewind(f *flags, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	o, err := f.options()
	if err != nil {
		return fail(err)
	}
	o.Stderr = func(line string) { fmt.Fprintln(stderr, line) }
	ctx := context.Background()
	s, err := turnwright.NewSession(ctx, o)
	if err != nil {
		return fail(named(err))
	}
	res, err := s.RewindFiles(ctx, *f.rewind, false)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, turnwright.ErrRewindDisabled) {
		err = fmt.Errorf("%w: set CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1", err)
	}
	if res.CanRewind {
		if werr := printRewound(stdout, res, f.output); err == nil {
			err = werr
		}
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

func printRewound(w io.Writer, r turnwright.RewindResult, format string) error {
	if format != "text" {
		return json.NewEncoder(w).Encode(newRewound(r))
	}
	text := "Nothing had to be changed"
	switch n := len(r.FilesChanged); {
	case n == 1:
		text = "Put 1 file back"
	case n > 1:
		text = fmt.Sprintf("Put %d files back", n)
	}
	if len(r.FilesChanged) > 0 {
		text += fmt.Sprintf(", %d lines added and %d removed:", r.Insertions, r.Deletions)
	} else {
		text += "."
	}
	for _, name := range r.FilesChanged {
		text += "\n  " + name
	}
	if n := r.SkippedLinks; n > 0 {
		text += fmt.Sprintf("\nLeft %d as they are: links, or files whose directory or backup is not what it was.", n)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
