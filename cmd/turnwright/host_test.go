package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptHost is the script command host FILE ARG…: it starts turnwright with
// these arguments and plays its client. Lines of the file:
//
//	> TEXT              writes the line TEXT
//	< WORD [TEXT…]      the next line of the command is of the type WORD, as in
//	                    the command stream, and contains each TEXT
//	<< WORD [TEXT…]     likewise, after lines that are passed over
//	eof                 closes standard input
//	wait FILE           waits for the file
//	int, term           sends SIGINT, SIGTERM
//	exit CODE           nothing more is written, and the command ends with CODE
//
// Texts are separated by " && ". Standard error must stay empty.
func scriptHost(ts *testscript.TestScript, neg bool, args []string) {
	wellUsed(ts, neg, len(args) >= 1, "host FILE ARG…")
	cmd := exec.Command("turnwright", args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = os.Environ()
	for k := range clean("") {
		cmd.Env = append(cmd.Env, k+"="+ts.Getenv(k))
	}
	for _, k := range []string{"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"} {
		cmd.Env = append(cmd.Env, k+"="+ts.Getenv(k))
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	watchdog := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	r := bufio.NewReader(out)
	for n, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		fail := func(format string, a ...any) {
			ts.Fatalf("%s:%d: %s: %s\n%s", args[0], n+1, line, fmt.Sprintf(format, a...), &stderr)
		}
		op, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch op {
		case "", "#":
		case ">":
			if _, err := io.WriteString(in, rest+"\n"); err != nil {
				fail("%v", err)
			}
		case "<", "<<":
			word, texts, _ := strings.Cut(rest, " ")
			var seen []string
			for {
				got, err := r.ReadString('\n')
				if err != nil {
					fail("%v, after %q", err, seen)
				}
				w := wordOf(got)
				if w == word && containsAll(got, texts) {
					break
				}
				seen = append(seen, w)
				if op == "<" {
					fail("got %s", got)
				}
			}
		case "eof":
			ts.Check(in.Close())
		case "wait":
			within(ts, "there is no file "+rest, func() bool {
				_, err := os.Stat(ts.MkAbs(rest))
				return err == nil
			})
		case "int":
			ts.Check(cmd.Process.Signal(syscall.SIGINT))
		case "term":
			ts.Check(cmd.Process.Signal(syscall.SIGTERM))
		case "exit":
			more, err := io.ReadAll(r)
			ts.Check(err)
			err = cmd.Wait()
			ended = true
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				fail("%v", err)
			}
			if code := cmd.ProcessState.ExitCode(); fmt.Sprint(code) != rest || len(more) > 0 {
				fail("exit code %d, more lines: %s", code, more)
			}
			if stderr.Len() > 0 {
				fail("there is something on stderr")
			}
		default:
			fail("unknown operation")
		}
	}
	if !ended {
		ts.Fatalf("%s does not wait for the exit", args[0])
	}
}

// wordOf is the type of a line, with a slash before the subtype.
func wordOf(line string) string {
	var m struct {
		Type, Subtype     string
		Request, Response struct{ Subtype string }
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return err.Error()
	}
	for _, sub := range []string{m.Subtype, m.Request.Subtype, m.Response.Subtype} {
		if sub != "" {
			return m.Type + "/" + sub
		}
	}
	return m.Type
}

func containsAll(line, texts string) bool {
	for _, text := range strings.Split(texts, " && ") {
		if !strings.Contains(line, strings.TrimSpace(text)) {
			return false
		}
	}
	return true
}

func init() { scriptCommands["host"] = scriptHost }
