package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/turnwright/turnwright"
)

const (
	maxPiped  = 10 << 20        // K-6
	stdinWait = 3 * time.Second // K-8
)

// runPrint runs one prompt and prints what the output format asks for.
func runPrint(f *flags, stdin *os.File, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	o, err := f.options()
	if err != nil {
		return fail(err)
	}
	prompt, err := readPrompt(f.prompt, stdin, stderr)
	if err != nil {
		return fail(err)
	}
	o.Stderr = func(line string) { fmt.Fprintln(stderr, inFlags(line)) }
	s, err := turnwright.NewSession(context.Background(), o)
	if err != nil {
		return fail(named(err))
	}
	var ending atomic.Bool // the process ends without a result
	stop := interrupts(
		endAtSecond(func() { _, _ = s.Interrupt(context.Background()) }),
		func() { ending.Store(true); _ = s.Terminate() },
	)
	defer stop()
	var seen *live
	if f.output == "text" {
		seen = newLive(stderr, s.CostUSD)
	}
	out := newPrinter(s, stdout)
	res, err := printRun(s, prompt, f.output, out, seen, &ending)
	seen.clear()
	if ending.Load() {
		select {} // the signal's handler ends the process
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err == nil && res == nil {
		err = errors.New("the run ended without a result")
	}
	if err == nil && f.output == "text" {
		err = out.line([]byte(resultText(res)))
	}
	if err == nil {
		err = out.drain()
	}
	switch {
	case errors.Is(err, errReaderGone):
		return 1
	case err != nil:
		return fail(err)
	}
	if f.output == "text" {
		if res.IsError {
			fmt.Fprintf(stderr, "Error: %s\n", failureLine(res, seen != nil && onTerminal(stdout)))
		}
		seen.summary(res)
	}
	if res.IsError {
		return 1
	}
	return 0
}

// errReaderGone tells that nobody reads the output any more (K-159).
var errReaderGone = errors.New("the reader of the output is gone")

// printRun sends the prompt and prints the stream, or in json format its last
// result.
func printRun(s *turnwright.Session, prompt, format string, out *printer, seen *live, ending *atomic.Bool) (res *turnwright.ResultMessage, err error) {
	ctx := context.Background()
	if _, err := s.Send(ctx, turnwright.Input{Text: prompt}); err != nil {
		return nil, err
	}
	s.EndInput()
	for m, err := range s.Messages(ctx) {
		if err != nil {
			return res, err
		}
		if ending.Load() {
			return nil, nil
		}
		seen.show(m)
		r, isResult := m.(*turnwright.ResultMessage)
		if isResult {
			res = r
		}
		if format == "stream-json" {
			if err := out.message(m); err != nil {
				return res, err
			}
		}
	}
	// The end of a background task leads to a result more: the last one counts.
	if format == "json" && res != nil {
		return res, out.message(res)
	}
	return res, nil
}

// resultText is what the text format prints: the final text, or the failure
// text of a failed run (K-150).
func resultText(r *turnwright.ResultMessage) string {
	if r.Result != nil {
		return *r.Result
	}
	return strings.Join(r.Errors, "\n")
}

// failureLine names the failure of a run in one line. Where told, its text stands
// right above.
func failureLine(r *turnwright.ResultMessage, told bool) string {
	line := string(r.Subtype)
	if r.TerminalReason != "" {
		line += " (" + string(r.TerminalReason) + ")"
	}
	if r.APIErrorStatus != nil {
		line += fmt.Sprintf(", HTTP status %d", *r.APIErrorStatus)
	}
	if len(r.Errors) > 0 && !told {
		line += ": " + r.Errors[0]
	}
	return strings.ReplaceAll(line, "\n", " ") + " [session " + r.SessionID + "]"
}

// onTerminal reports whether a person reads what is written to w.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// readPrompt joins the prompt argument and piped text (K-5 to K-10).
func readPrompt(args []string, stdin *os.File, stderr io.Writer) (string, error) {
	prompt := strings.Join(args, " ")
	piped, err := readPiped(stdin, len(args) > 0)
	if err != nil {
		if errors.Is(err, errTooLong) || len(args) == 0 {
			return "", err
		}
		fmt.Fprintf(stderr, "Warning: standard input could not be read: %v\n", err)
	}
	switch {
	case len(args) == 0 && piped == "":
		return "", errors.New("Input must be provided either through stdin or as a prompt argument when using --print") //nolint:staticcheck // the contract's text (K-9)
	case len(args) == 0:
		prompt = piped
	case strings.TrimSpace(piped) != "":
		prompt += "\n\n" + piped
	}
	if strings.TrimSpace(prompt) == "" {
		return "", errors.New("Input contained only whitespace. Give a prompt as an argument or through stdin") //nolint:staticcheck // the contract's text (K-10)
	}
	return prompt, nil
}

var errTooLong = fmt.Errorf("piped input is larger than %d MB; put it into a file and name the file in the prompt", maxPiped>>20)

// readPiped reads standard input unless it is a terminal or a device. With a
// prompt argument it waits at most three seconds for a first byte (K-8).
func readPiped(stdin *os.File, havePrompt bool) (string, error) {
	if stdin == nil {
		return "", nil
	}
	info, err := stdin.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeCharDevice != 0 {
		return "", nil
	}
	type outcome struct {
		text string
		err  error
	}
	first, done := make(chan struct{}), make(chan outcome, 1)
	go func() { // ends with the process when stdin stays silent
		r := bufio.NewReader(stdin)
		_, _ = r.Peek(1)
		close(first)
		raw, err := io.ReadAll(io.LimitReader(r, maxPiped+1))
		if len(raw) > maxPiped {
			err = errTooLong
		}
		done <- outcome{string(raw), err}
	}()
	if havePrompt {
		select {
		case <-first:
		case <-time.After(stdinWait):
			return "", nil
		}
	}
	o := <-done
	return o.text, o.err
}
