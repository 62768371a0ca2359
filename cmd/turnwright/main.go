// Command turnwright runs agents from the command line.
//
//	turnwright -p PROMPT     run one prompt
//	turnwright --input-format stream-json --output-format stream-json --verbose
//	                         serve a client process over stdin and stdout
//	turnwright sessions      list, show, search, rename, tag, copy and delete sessions
//	turnwright explain       say why the runs of a session stopped
//	turnwright completion SHELL
//	                         the completion script for bash, zsh or fish
//	turnwright permissions check COMMAND
//	                         say what would become of a call, and why
//	turnwright demo          the reference scenario, without key and network
//
// See docs/contract/cli.md.
package main

import (
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
		switch args[0] {
		case "demo":
			return runDemo(args[1:], stdout, stderr)
		case "sessions":
			return runSessions(args[1:], stdout, stderr)
		case "explain":
			return runExplain(args[1:], stdout, stderr)
		case "completion":
			return runCompletion(args[1:], stdout, stderr)
		case cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return runComplete(args, stdout, stderr)
		case "permissions":
			return runPermissions(args[1:], stdout, stderr)
		}
	}
	f, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	case f.version:
		fmt.Fprintf(stdout, "%s (Turnwright %s)\n", turnwright.CompatVersion, turnwright.Version())
		return 0
	case f.help:
		fmt.Fprint(stdout, usage())
		return 0
	}
	if f.input == "stream-json" {
		return runStream(f, stdin, stdout, stderr)
	}
	return runPrint(f, stdin, stdout, stderr)
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
