package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/session/file"
)

// aboutSession is a command that tells something of one stored session.
type aboutSession[T any] struct {
	name, about string
	json, help  bool // flags
	stored      func(context.Context, string, turnwright.Options) (T, error)
	lines       func(id string, lines iter.Seq2[[]byte, error]) (T, error)
	text        func(T, io.Writer) error
}

// set makes the flags that all of these commands have.
func (a *aboutSession[T]) set() *pflag.FlagSet {
	fs := pflag.NewFlagSet("turnwright "+a.name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&a.json, "json", false, "print a JSON object")
	fs.BoolVarP(&a.help, "help", "h", false, "print this help")
	return fs
}

// run tells it. done is false when there is nothing more to say than the exit code.
func (a *aboutSession[T]) run(fs *pflag.FlagSet, args []string, stdout, stderr io.Writer) (told T, done bool, code int) {
	fail := func(err error) (T, bool, int) {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return told, false, 1
	}
	if err := fs.Parse(args); err != nil {
		return fail(err)
	}
	switch {
	case a.help:
		fmt.Fprintf(stdout, "%s\n\nFlags:\n%s", a.about, flagUsages(fs))
		return told, false, 0
	case fs.NArg() != 1:
		return fail(fmt.Errorf("%s needs one session: turnwright %[1]s SESSION (an id, a title or the path of a .jsonl file)", a.name))
	}
	told, err := a.find(context.Background(), fs.Arg(0))
	if err != nil {
		return fail(err)
	}
	if a.json {
		raw, err := json.MarshalIndent(told, "", "  ")
		if err == nil {
			_, err = stdout.Write(append(raw, '\n'))
		}
		if err != nil {
			return fail(err)
		}
	} else if err := a.text(told, stdout); err != nil {
		return fail(err)
	}
	return told, true, 0
}

// find looks at the session that the argument names.
func (a *aboutSession[T]) find(ctx context.Context, arg string) (told T, err error) {
	if !strings.HasSuffix(arg, ".jsonl") {
		return a.stored(ctx, arg, turnwright.Options{})
	}
	id, lines, err := file.Transcript(ctx, arg)
	if err != nil {
		return told, err
	}
	return a.lines(id, lines)
}
