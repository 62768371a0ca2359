package main

import (
	"io"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	aboutSession[*turnwright.ReplayReport]
}

func (o *replayOptions) set() *pflag.FlagSet {
	o.aboutSession = aboutSession[*turnwright.ReplayReport]{
		name:   "replay",
		about:  "Usage: turnwright replay [--json] SESSION\n\nFeeds a recorded session through the agent loop of this version and reports the\nfirst line that it would not have written. Nothing is asked of a model and no tool\nruns. SESSION is an id, a title or the path of a transcript. The exit code is 0\nwhen there is no difference, 1 when there is one or the session cannot be\nreplayed.",
		stored: turnwright.ReplaySession, lines: turnwright.Replay,
		text: (*turnwright.ReplayReport).Text,
	}
	return o.aboutSession.set()
}

// runReplay feeds a recorded session through the loop and reports the first difference.
func runReplay(args []string, stdout, stderr io.Writer) int {
	var o replayOptions
	r, done, code := o.run(o.set(), args, stdout, stderr)
	if done && r.Difference != nil {
		return 1
	}
	return code
}
