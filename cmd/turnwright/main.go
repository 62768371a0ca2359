// Command turnwright runs agents from the command line.
//
//	turnwright -p PROMPT     run one prompt
//	turnwright --input-format stream-json --output-format stream-json --verbose
//	                         serve a client process over stdin and stdout
//	turnwright sessions      list, show, search, rename, tag, copy and delete sessions
//	turnwright explain       say why the runs of a session stopped
//	turnwright replay        report where a recorded session would go on otherwise
//	turnwright completion SHELL
//	                         the completion script for bash, zsh or fish
//	turnwright permissions check COMMAND
//	                         say what would become of a call, and why
//	turnwright demo          the reference scenario, without key and network
//
// See docs/contract/cli.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/turnwright/turnwright"
)

func main() {
	// A reader that goes away ends the run in order, with its tools stopped
	// (K-159), instead of killing the process.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process. It returns the exit code.
func run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch c, err := commandOf(args[0]); {
		case err != nil:
			fmt.Fprintf(stderr, "Error: %v\n", err)
			return 1
		case c != nil:
			return written(stdout, stderr, func(out io.Writer) int { return c.run(args[1:], out, stderr) })
		case args[0] == cobra.ShellCompRequestCmd, args[0] == cobra.ShellCompNoDescRequestCmd:
			return runComplete(args, stdout, stderr)
		}
	}
	f, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	case f.version:
		return written(stdout, stderr, func(out io.Writer) int {
			fmt.Fprintf(out, "%s (Turnwright %s)\n", turnwright.CompatVersion, turnwright.Version())
			return 0
		})
	case f.help:
		return written(stdout, stderr, func(out io.Writer) int {
			fmt.Fprint(out, usage())
			return 0
		})
	}
	if f.rewind != nil {
		return runRewind(f, stdout, stderr)
	}
	if f.input == "stream-json" {
		return runStream(f, stdin, stdout, stderr)
	}
	return runPrint(f, stdin, stdout, stderr)
}

// written runs a command that writes to standard output. It has failed when that
// could not be written; a reader that has gone away is told nothing (K-159).
func written(stdout, stderr io.Writer, command func(out io.Writer) int) (code int) {
	out := &checked{w: stdout}
	code = command(out)
	switch err := readerGone(out.err); {
	case err == nil:
		return code
	case code == 0 && !errors.Is(err, errReaderGone):
		fmt.Fprintf(stderr, "Error: %v\n", err)
	}
	return 1
}

// checked keeps the first error of a writer for whoever tells of it, and then
// writes no more.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	if c.err == nil {
		_, c.err = c.w.Write(p)
	}
	return len(p), nil
}

// interrupts hands each SIGINT to interrupt, which says whether it is the end
// of the process, and turns SIGTERM and SIGHUP into an orderly end without a
// result (K-204, K-205). stop frees it.
func interrupts(interrupt func() (end bool), terminate func()) (stop func()) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // a closed terminal, unless nohup says otherwise
		signal.Notify(ch, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case sig := <-ch:
				switch {
				case sig == syscall.SIGTERM:
					terminate()
					os.Exit(143)
				case sig == syscall.SIGHUP:
					terminate()
					os.Exit(129)
				case interrupt():
					terminate()
					os.Exit(130)
				}
			}
		}
	}()
	return func() { signal.Stop(ch); close(done) }
}

// endAtSecond calls interrupt the first time; the second is the end.
func endAtSecond(interrupt func()) func() (end bool) {
	seen := false
	return func() bool {
		if seen {
			return true
		}
		seen = true
		interrupt()
		return false
	}
}
