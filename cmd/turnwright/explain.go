package main

import (
	"io"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	aboutSession[*turnwright.Explanation]
	all bool
}

func (o *explainOptions) set() *pflag.FlagSet {
	o.aboutSession = aboutSession[*turnwright.Explanation]{
		name:   "explain",
		about:  "Usage: turnwright explain [--all] [--json] SESSION\n\nSays why the runs of a session stopped: what decided, the turns and calls that led\nthere with cost and time, and what to do next. SESSION is an id, a title or the\npath of a transcript.",
		stored: turnwright.ExplainSession, lines: turnwright.Explain,
		text: func(e *turnwright.Explanation, w io.Writer) error { return e.Text(w, o.all) },
	}
	fs := o.aboutSession.set()
	fs.BoolVar(&o.all, "all", false, "every user turn in full, not only the last")
	return fs
}

// runExplain says why the runs of a session stopped.
func runExplain(args []string, stdout, stderr io.Writer) int {
	var o explainOptions
	_, _, code := o.run(o.set(), args, stdout, stderr)
	return code
}
