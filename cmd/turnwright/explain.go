package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/session/file"
)

// explainOptions are the flags of explain.
type explainOptions struct{ json, all, help bool }

func (o *explainOptions) set() *pflag.FlagSet {
	fs := pflag.NewFlagSet("turnwright explain", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.json, "json", false, "print a JSON object")
	fs.BoolVar(&o.all, "all", false, "every user turn in full, not only the last")
	fs.BoolVarP(&o.help, "help", "h", false, "print this help")
	return fs
}

// runExplain says why the runs of a session stopped.
func runExplain(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	var o explainOptions
	fs := o.set()
	if err := fs.Parse(args); err != nil {
		return fail(err)
	}
	switch {
	case o.help:
		fmt.Fprintf(stdout, "Usage: turnwright explain [--all] [--json] SESSION\n\nSays why the runs of a session stopped: what decided, the turns and calls that led\nthere with cost and time, and what to do next. SESSION is an id, a title or the\npath of a transcript.\n\nFlags:\n%s", flagUsages(fs))
		return 0
	case fs.NArg() != 1:
		return fail(errors.New("explain needs one session: turnwright explain SESSION (an id, a title or the path of a .jsonl file)"))
	}
	e, err := explainSession(context.Background(), fs.Arg(0))
	if err != nil {
		return fail(err)
	}
	if o.json {
		raw, err := json.MarshalIndent(e, "", "  ")
		if err == nil {
			_, err = stdout.Write(append(raw, '\n'))
		}
		if err != nil {
			return fail(err)
		}
		return 0
	}
	if err := e.Text(stdout, o.all); err != nil {
		return fail(err)
	}
	return 0
}

// explainSession explains the session that the argument names.
func explainSession(ctx context.Context, arg string) (*turnwright.Explanation, error) {
	if !strings.HasSuffix(arg, ".jsonl") {
		return turnwright.ExplainSession(ctx, arg, turnwright.Options{})
	}
	id, lines, err := file.Transcript(ctx, arg)
	if err != nil {
		return nil, err
	}
	return turnwright.Explain(id, lines)
}
