package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright/internal/demo"
)

// demoOptions are the flags of the demo.
type demoOptions struct {
	flags
	keep bool
}

func (f *demoOptions) set() *pflag.FlagSet {
	fs := pflag.NewFlagSet("turnwright demo", pflag.ContinueOnError)
	fs.SetOutput(discard{})
	f.limits(fs)
	fs.BoolVar(&f.keep, "keep", false, "keep the project and the journal")
	fs.BoolVarP(&f.help, "help", "h", false, "print this help")
	return fs
}

// runDemo runs the demo. Its exit code is that of the run: 1 when the result
// is an error, as it is on purpose at a low cap.
func runDemo(args []string, stdout, stderr io.Writer) int {
	var f demoOptions
	fs := f.set()
	if err := fs.Parse(args); err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", explain(err))
		return 1
	}
	if f.help {
		fmt.Fprintf(stdout, "Usage: turnwright demo [flags]\n\nFlags:\n%s", flagUsages(fs))
		return 0
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "Error: demo takes no argument, got %q\n", fs.Arg(0))
		return 1
	}
	o, err := f.options()
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := interrupts(endAtSecond(cancel), cancel)
	defer stop()
	_, err = demo.Run(ctx, demo.Config{MaxTurns: o.MaxTurns, MaxBudgetUSD: o.MaxBudgetUSD, Keep: f.keep, Out: stdout})
	if err != nil {
		if !errors.Is(err, demo.ErrRunFailed) {
			fmt.Fprintf(stderr, "Error: %v\n", err)
		}
		return 1
	}
	return 0
}
