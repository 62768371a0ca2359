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

// replayOptions are the flags of replay.
type replayOptions struct{ json, help bool }

func (o *replayOptions) set() *pflag.FlagSet {
	fs := pflag.NewFlagSet("turnwright replay", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.json, "json", false, "print a JSON object")
	fs.BoolVarP(&o.help, "help", "h", false, "print this help")
	return fs
}

// runReplay feeds a recorded session through the loop and reports the first difference.
func runReplay(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	var o replayOptions
	fs := o.set()
	if err := fs.Parse(args); err != nil {
		return fail(err)
	}
	switch {
	case o.help:
		fmt.Fprintf(stdout, "Usage: turnwright replay [--json] SESSION\n\nFeeds a recorded session through the agent loop of this version and reports the\nfirst line that it would not have written. Nothing is asked of a model and no tool\nruns. SESSION is an id, a title or the path of a transcript. The exit code is 0\nwhen there is no difference, 1 when there is one or the session cannot be\nreplayed.\n\nFlags:\n%s", fs.FlagUsages())
		return 0
	case fs.NArg() != 1:
		return fail(errors.New("replay needs one session: turnwright replay SESSION (an id, a title or the path of a .jsonl file)"))
	}
	r, err := replaySession(context.Background(), fs.Arg(0))
	if err != nil {
		return fail(err)
	}
	if o.json {
		raw, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			_, err = stdout.Write(append(raw, '\n'))
		}
		if err != nil {
			return fail(err)
		}
	} else if err := r.Text(stdout); err != nil {
		return fail(err)
	}
	if r.Difference != nil {
		return 1
	}
	return 0
}

// replaySession replays the session that the argument names.
func replaySession(ctx context.Context, arg string) (*turnwright.ReplayReport, error) {
	if !strings.HasSuffix(arg, ".jsonl") {
		return turnwright.ReplaySession(ctx, arg, turnwright.Options{})
	}
	id, lines, err := file.Transcript(ctx, arg)
	if err != nil {
		return nil, err
	}
	return turnwright.Replay(id, lines)
}
