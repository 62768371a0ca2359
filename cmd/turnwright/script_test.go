package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/names"
)

// TestMain makes the test binary the command as well: a script, and a test
// that starts "turnwright", run the real main in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"turnwright": func() {
		// No policy of the machine reaches a test, but one that the test puts there.
		if names.System = os.Getenv(policyVar); names.System == "" {
			names.System = filepath.Join(os.TempDir(), "turnwright-tests-have-no-policy")
		}
		main()
	}})
}

// policyVar names the directory of managed settings to the command in tests.
const policyVar = "TURNWRIGHT_TEST_SYSTEM"

// TestScripts runs the command lines of testdata/script. Each is a session in
// a terminal as a text file; the commands beside testscript's own are those of
// scriptCommands.
func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts use a Unix shell")
	}
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		conform.CoversFile(t, text)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for k, v := range clean(env.WorkDir) {
				env.Setenv(k, v)
			}
			env.Values[serverKey{}] = new(scriptServer)
			return nil
		},
		Cmds: scriptCommands,
	})
}

// clean is an environment in which the command touches nothing outside dir and
// reaches nobody until a test says whom.
func clean(dir string) map[string]string {
	return map[string]string{
		"HOME": dir, "CLAUDE_CONFIG_DIR": filepath.Join(dir, "config"),
		"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_MODEL": "claude-sonnet-4-5",
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "CLAUDE_CODE_MAX_RETRIES": "0",
		"CLAUDE_CODE_MAX_TURNS": "", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_CUSTOM_HEADERS": "",
		"ANTHROPIC_BETAS": "", "CLAUDE_CODE_EXTRA_BODY": "", "IS_SANDBOX": "", "SUDO_UID": "",
		"HTTP_PROXY": "", "HTTPS_PROXY": "", "http_proxy": "", "https_proxy": "", "NODE_EXTRA_CA_CERTS": "", "SSL_CERT_FILE": "",
		"ANTHROPIC_DEFAULT_OPUS_MODEL": "", "ANTHROPIC_DEFAULT_SONNET_MODEL": "", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "",
		"GORACE": "atexit_sleep_ms=0", // else a binary with the race detector takes a second to end
	}
}

// models are the scripted models that a script can start by name.
var models = map[string]func() []agenttest.Option{
	// hello answers every prompt with a text.
	"hello": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Forever(agenttest.Usage(agenttest.Text("Hello."), 1000, 20, 0, 0, 0))}
	},
	// loop calls Bash until a limit stops it.
	"loop": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			if r.Turn() >= 20 {
				return agenttest.HTTPError(400, "invalid_request_error", "no limit stopped the run")
			}
			if strings.Contains(string(r.Field("tool_choice")), `"none"`) {
				return agenttest.Text("No tools, just an answer.")
			}
			return agenttest.Usage(agenttest.Call("Bash", `{"command":"echo once >> log"}`), 1000, 20, 0, 0, 0)
		})}
	},
	// bash, read and edit call that tool once and then say how it went.
	"bash": func() []agenttest.Option { return once("Bash", `{"command":"echo ran > ran.txt"}`) },
	"read": func() []agenttest.Option { return once("Read", `{"file_path":"note.txt"}`) },
	// beside reads a file of the directory beside the working directory.
	"beside": func() []agenttest.Option { return once("Read", `{"file_path":"../more/f.txt"}`) },
	// status runs a command that only reads, and one of a prefix.
	"status": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Script(
			agenttest.Call("Bash", `{"command":"cat note.txt | head -1"}`),
			agenttest.Call("Bash", `{"command":"expr 1 + 1 > sum.txt"}`),
			agenttest.Text("Done."),
		)}
	},
	"both": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Script(
			agenttest.Call("Read", `{"file_path":"note.txt"}`),
			agenttest.Call("Edit", `{"file_path":"note.txt","old_string":"old","new_string":"new"}`),
			agenttest.Call("Bash", `{"command":"cat note.txt > ran.txt"}`),
			agenttest.Text("Done."),
		)}
	},
	// breaks cuts the project's settings in half and then runs a command.
	"breaks": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Script(
			agenttest.Call("Bash", `{"command":"head -c 40 .claude/settings.json > half; cat half > .claude/settings.json"}`),
			agenttest.Call("Bash", `{"command":"echo ran > ran.txt"}`),
			agenttest.Text("Done."),
		)}
	},
	// edits changes note.txt and makes added.txt, and then changes note.txt again.
	"edits": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Script(
			agenttest.Call("Read", `{"file_path":"note.txt"}`),
			agenttest.Call("Edit", `{"file_path":"note.txt","old_string":"old","new_string":"new\nand more"}`),
			agenttest.Call("Write", `{"file_path":"added.txt","content":"added\n"}`),
			agenttest.Text("Done."),
			agenttest.Call("Edit", `{"file_path":"note.txt","old_string":"new","new_string":"newer"}`),
			agenttest.Text("Done again."),
		)}
	},
	// variable shows a variable of the environment.
	"variable": func() []agenttest.Option { return once("Bash", `{"command":"echo $FROM > from.txt"}`) },
	// sleep calls Bash with a command that has a child and does not end.
	"sleep": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Forever(agenttest.Call("Bash", `{"command":"sleep 600 & echo $! > pid.new; mv pid.new pid; wait"}`))}
	},
	// failures fails, answers and fails again.
	"failures": func() []agenttest.Option {
		bad := agenttest.HTTPError(400, "invalid_request_error", "temperature: must not be", "request-id", "req_400")
		return []agenttest.Option{agenttest.Script(bad, agenttest.Text("Better."), bad)}
	},
	// never does not answer; stalls begins to and goes silent.
	"never": func() []agenttest.Option { return []agenttest.Option{agenttest.Forever(agenttest.Never())} },
	"stalls": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Forever(agenttest.Hold(agenttest.Text("Hello."), 0))}
	},
	"partial":  func() []agenttest.Option { return []agenttest.Option{agenttest.DeltaSize(agenttest.Text("Hello."), 2)} },
	"refusal":  func() []agenttest.Option { return []agenttest.Option{agenttest.Refusal()} },
	"needskey": func() []agenttest.Option { return []agenttest.Option{agenttest.APIKey("the-right-key")} },
	"nomodel": func() []agenttest.Option {
		return []agenttest.Option{agenttest.HTTPError(404, "not_found_error", "model: no-such-model", "request-id", "req_404")}
	},
	"overloaded": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Forever(agenttest.HTTPError(529, "overloaded_error", "Overloaded", "request-id", "req_529"))}
	},
	"throttled": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Forever(agenttest.HTTPError(429, "rate_limit_error", "Slow down", "request-id", "req_429"))}
	},
	"broken": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Forever(agenttest.HTTPError(500, "api_error", "Internal server error", "request-id", "req_500"))}
	},
	"invalid": func() []agenttest.Option {
		return []agenttest.Option{agenttest.Forever(agenttest.HTTPError(400, "invalid_request_error", "temperature: must not be", "request-id", "req_400"))}
	},
}

func once(tool, input string) []agenttest.Option {
	return []agenttest.Option{agenttest.Script(agenttest.Call(tool, input)), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if res := r.LastToolResults(); len(res) == 1 && res[0].IsError {
			return agenttest.Text("It was refused: " + res[0].Text)
		}
		return agenttest.Text("It ran.")
	})}
}

type serverKey struct{}

// scriptServer is the model that a script has started last.
type scriptServer struct{ srv *agenttest.Server }

func server(ts *testscript.TestScript) *agenttest.Server {
	s := ts.Value(serverKey{}).(*scriptServer)
	if s.srv == nil {
		ts.Fatalf("no server was started")
	}
	return s.srv
}

var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// server NAME: starts the scripted model of that name in place of the last.
	"server": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 1, "server NAME")
		model := models[args[0]]
		if model == nil {
			ts.Fatalf("there is no model %q", args[0])
		}
		srv, err := agenttest.Start(model()...)
		ts.Check(err)
		s := ts.Value(serverKey{}).(*scriptServer)
		if s.srv != nil {
			s.srv.Close()
		}
		s.srv = srv
		ts.Defer(srv.Close)
		ts.Setenv("ANTHROPIC_BASE_URL", srv.URL())
	},
	// nobody: points the command at a port where nobody listens.
	"nobody": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 0, "nobody")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Setenv("ANTHROPIC_BASE_URL", "http://"+l.Addr().String())
		ts.Check(l.Close())
	},
	// status CODE COMMAND…: runs the command and expects its exit code.
	"status": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) >= 2, "status CODE COMMAND [ARG…]")
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		code := 0
		var exit *exec.ExitError
		if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else {
			ts.Check(err)
		}
		if code != want {
			ts.Fatalf("exit code %d, want %d\n[stdout]\n%s[stderr]\n%s", code, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
	},
	// requests N: expects that the model was asked N times.
	"requests": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 1, "requests N")
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		if n := server(ts).Count(); n != want {
			ts.Fatalf("the model was asked %d times, not %d", n, want)
		}
	},
	// asked user|prompt|system|model|messages|messages-with|tools TEXT: expects a
	// part of the last request to be TEXT: prompt is the system prompt as a whole,
	// with system it contains TEXT, as the messages do with messages-with. \n
	// stands for a line break.
	"asked": func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) != 2 {
			ts.Fatalf("usage: [!] asked user|prompt|system|model|messages|tools TEXT")
		}
		r := server(ts).Last()
		if r == nil {
			ts.Fatalf("the model was not asked")
		}
		want, ok := strings.ReplaceAll(args[1], `\n`, "\n"), false
		var got string
		switch args[0] {
		case "user":
			got = r.UserText()
		case "prompt":
			got = r.SystemText()
		case "system":
			got = r.SystemText()
			ok = strings.Contains(got, want)
		case "model":
			got = r.Model()
		case "messages", "messages-with": // the texts of all user messages
			var texts []string
			for _, m := range r.Messages() {
				for _, b := range m.Content {
					if m.Role == "user" && b.Type == "text" {
						texts = append(texts, b.Text)
					}
				}
			}
			got = strings.Join(texts, " ")
			ok = args[0] == "messages-with" && strings.Contains(got, want)
		case "tools":
			got = strings.Join(r.ToolNames(), " ")
		default:
			ts.Fatalf("asked: unknown part %q", args[0])
		}
		if (ok || got == want) == neg {
			ts.Fatalf("asked %s: %q (! is %v)", args[0], got, neg)
		}
	},
	// stream WORD…: expects the last stdout to be JSON lines of these types,
	// with a slash before the subtype.
	"stream": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) > 0, "stream TYPE[/SUBTYPE]…")
		out := ts.ReadFile("stdout")
		if !strings.HasSuffix(out, "\n") {
			ts.Fatalf("the last line is not whole: %q", out)
		}
		var got []string
		for line := range strings.Lines(out) {
			var m struct{ Type, Subtype string }
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				ts.Fatalf("%v in the line %s", err, line)
			}
			word := m.Type
			if m.Subtype != "" {
				word += "/" + m.Subtype
			}
			got = append(got, word)
		}
		if g, w := strings.Join(got, " "), strings.Join(args, " "); g != w {
			ts.Fatalf("stream\n got %s\nwant %s", g, w)
		}
	},
	// result KEY VALUE…: expects fields of the result, the last line of the
	// last stdout. VALUE is JSON; "-" means that there is no such key.
	"result": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) >= 2 && len(args)%2 == 0, "result KEY VALUE…")
		lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &m); err != nil {
			ts.Fatalf("%v in the line %s", err, lines[len(lines)-1])
		}
		if string(m["type"]) != `"result"` {
			ts.Fatalf("the last line is no result: %s", lines[len(lines)-1])
		}
		for i := 0; i < len(args); i += 2 {
			got, ok := m[args[i]]
			if text := string(got); ok && text != args[i+1] || !ok && args[i+1] != "-" {
				ts.Fatalf("%s is %s, want %s", args[i], text, args[i+1])
			}
		}
	},
	// empty DIR: expects that the directory has nothing in it, or does not exist.
	"empty": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 1, "empty DIR")
		entries, err := os.ReadDir(ts.MkAbs(args[0]))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
		for _, e := range entries {
			ts.Fatalf("%s has %s", args[0], e.Name())
		}
	},
	// transcripts N: expects so many session files in the configuration home.
	"transcripts": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 1, "transcripts N")
		found, err := filepath.Glob(filepath.Join(ts.Getenv("CLAUDE_CONFIG_DIR"), "projects", "*", "*.jsonl"))
		ts.Check(err)
		if fmt.Sprint(len(found)) != args[0] {
			ts.Fatalf("%d transcripts, not %s: %q", len(found), args[0], found)
		}
	},
	// signal int|term FILE: waits for the file and then sends the signal to the
	// background command that was started last.
	"signal": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 2, "signal int|term FILE")
		sig := map[string]os.Signal{"int": syscall.SIGINT, "term": syscall.SIGTERM}[args[0]]
		all := ts.BackgroundCmds()
		if sig == nil || len(all) == 0 {
			ts.Fatalf("no signal %q, or no background command", args[0])
		}
		within(ts, "there is no file "+args[1], func() bool {
			_, err := os.Stat(ts.MkAbs(args[1]))
			return err == nil
		})
		ts.Check(all[len(all)-1].Process.Signal(sig))
	},
	// gone FILE: expects that the process whose number is in the file ends.
	"gone": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 1, "gone FILE")
		pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
		ts.Check(err)
		within(ts, fmt.Sprintf("process %d is still there", pid), func() bool {
			p, err := os.FindProcess(pid)
			return err != nil || p.Signal(syscall.Signal(0)) != nil || zombie(pid)
		})
	},
	// bytes NAME N: writes a file of N bytes of text.
	"bytes": func(ts *testscript.TestScript, neg bool, args []string) {
		wellUsed(ts, neg, len(args) == 2, "bytes NAME N")
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat("x", n)), 0o644))
	},
}

// within waits until the condition holds, for as long as a slow machine may take.
func within(ts *testscript.TestScript, failure string, holds func() bool) {
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s", failure)
		}
	}
}

// zombie reports a process that has ended and was not waited for by whoever
// inherited it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := strings.Cut(string(stat), ") ")
	return ok && strings.HasPrefix(after, "Z")
}

func wellUsed(ts *testscript.TestScript, neg, ok bool, text string) {
	if neg {
		ts.Fatalf("unsupported: ! in front of %s", text)
	}
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}
