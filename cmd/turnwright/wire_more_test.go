//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// ran is a command that has ended.
type ran struct {
	code           int
	stdout, stderr string
}

// run runs the command with this standard input.
func (p *process) run(stdin string) ran {
	p.t.Helper()
	var out bytes.Buffer
	p.Stdin, p.Stdout = strings.NewReader(stdin), &out
	if err := p.Start(); err != nil {
		p.t.Fatal(err)
	}
	return ran{p.end(), out.String(), p.stderr.String()}
}

// lines are those of the output.
func (r ran) lines(t *testing.T) (all []line) {
	t.Helper()
	for text := range strings.Lines(r.stdout) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		all = append(all, l)
	}
	return all
}

// TestFailuresOfTheStart: what is wrong before anything runs is named, and is
// not taken for a run that failed.
func TestFailuresOfTheStart(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "B-198")
	texts := map[string]bool{}
	for _, tt := range []struct {
		args  []string
		words []string
	}{
		{[]string{"--no-such-flag"}, []string{"--no-such-flag"}},
		{[]string{"--max-turns", "many"}, []string{"--max-turns", "many"}},
		{[]string{"--settings", "missing.json"}, []string{"--settings", "missing.json", "no such file"}},
		{[]string{"--settings", "{broken"}, []string{"--settings", "JSON"}},
	} {
		srv := agenttest.NewServer(t)
		r := command(t, srv, append([]string{"-p", "hi"}, tt.args...)...).run("")
		if r.code == 0 || r.stdout != "" || !strings.HasPrefix(r.stderr, "Error: ") || texts[r.stderr] || len(srv.Requests()) > 0 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", tt.args, r.code, r.stdout, r.stderr)
		}
		texts[r.stderr] = true
		for _, word := range tt.words {
			if !strings.Contains(r.stderr, word) {
				t.Errorf("%q: stderr has no %q: %s", tt.args, word, r.stderr)
			}
		}
	}
}

// TestFailures runs into everything that ends a run: each format tells it, in
// words and in keys that a program can use, and no two look alike.
func TestFailures(t *testing.T) {
	t.Parallel()
	fails := func(status int, typ string) agenttest.Step {
		return agenttest.HTTPError(status, typ, "what the server says", "request-id", fmt.Sprint("req_", status))
	}
	call := agenttest.Usage(agenttest.Call("Bash", `{"command":"printf x"}`), 100_000, 1000, 0, 0, 0)
	causes := map[string]string{}
	for _, tt := range []struct {
		name     string
		step     agenttest.Step
		args     string
		category string // of the assistant line; "": there is none
		key      string // what a program reads
		words    string // what a person reads, beside what the server says
	}{
		{"key", fails(401, "authentication_error"), "", "authentication_failed", "error_during_execution api_error 401", "401 req_401"},
		{"billing", fails(402, "billing_error"), "", "billing_error", "error_during_execution api_error 402", "402 req_402"},
		{"request", fails(400, "invalid_request_error"), "", "invalid_request", "error_during_execution api_error 400", "400 req_400"},
		{"model", agenttest.HTTPError(404, "not_found_error", "model: what the server says", "request-id", "req_404"), "", "model_not_found", "error_during_execution model_error 404", "404 req_404"},
		{"rate", fails(429, "rate_limit_error"), "", "rate_limit", "error_during_execution api_error 429", "429 req_429"},
		{"load", fails(529, "overloaded_error"), "", "overloaded", "error_during_execution api_error 529", "529 req_529"},
		{"server", fails(500, "api_error"), "", "server_error", "error_during_execution api_error 500", "500 req_500"},
		{"nobody", agenttest.Step{}, "", "unknown", "error_during_execution api_error <nil>", "refused"},
		{"turns", call, "--max-turns 1", "", "error_max_turns max_turns <nil>", "maximum number of turns (1)"},
		{"money", call, "--max-budget-usd 0.01", "", "error_max_budget_usd budget_exhausted <nil>", "maximum budget ($0.01)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conform.Covers(t, "B-197", "B-198", "W-234", "K-150", "K-151", "K-156", "L-206", "W-263")
			run := func(format string) ran {
				srv := agenttest.NewServer(t, agenttest.Forever(tt.step))
				args := append([]string{"-p", "hi", "--allowedTools", "Bash", "--output-format"}, strings.Fields(format+" "+tt.args)...)
				p := command(t, srv, args...)
				if tt.name == "nobody" {
					l, err := net.Listen("tcp", "127.0.0.1:0")
					if err != nil {
						t.Fatal(err)
					}
					l.Close()
					p.Env = append(p.Env, "ANTHROPIC_BASE_URL=http://"+l.Addr().String())
				}
				r := p.run("")
				if r.code != 1 {
					t.Errorf("%s: exit code %d", format, r.code)
				}
				return r
			}
			text := run("text")
			for word := range strings.FieldsSeq(tt.words) {
				if !strings.Contains(text.stderr, word) {
					t.Errorf("stderr has no %q: %s", word, text.stderr)
				}
			}
			if failed := strings.TrimSpace(text.stdout); failed == "" || !strings.Contains(text.stderr, strings.SplitN(failed, "\n", 2)[0]) { // K-150
				t.Errorf("stdout %q, stderr %q", text.stdout, text.stderr)
			}
			if !strings.HasPrefix(text.stderr, "Error: ") || strings.Count(text.stderr, "\n") != 1 {
				t.Errorf("stderr is not one line that names an error: %q", text.stderr)
			}
			for _, format := range []string{"json", "stream-json --verbose"} {
				r := run(format)
				all := r.lines(t)
				last := all[len(all)-1]
				key := fmt.Sprint(last["subtype"], " ", last["terminal_reason"], " ", last["api_error_status"])
				if last["is_error"] != true || key != tt.key || last.has("result") || r.stderr != "" {
					t.Errorf("%s: %v, key %q, stderr %q", format, last, key, r.stderr)
				}
				if other := causes[key]; other != "" && other != tt.name {
					t.Errorf("%q looks like %q", tt.name, other)
				}
				causes[key] = tt.name
				var categories []string
				for _, l := range all {
					if c := l.str("error"); l.str("type") == "assistant" && c != "" {
						categories = append(categories, c)
						if text := l.blocks()[0].str("text"); l.str("message.model") != "<synthetic>" || !strings.HasPrefix(text, "API Error: ") {
							t.Errorf("the line with the error: %v", l)
						}
					}
				}
				if want := strings.Fields(tt.category); format != "json" && !slices.Equal(categories, want) {
					t.Errorf("categories %q, want %q", categories, want)
				}
			}
		})
	}
}

// TestOrigins: what no person wrote says so, in the stream and to the model.
func TestOrigins(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "W-244", "W-49", "M-43", "L-211")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		switch {
		case strings.HasSuffix(r.UserText(), "start it"):
			return agenttest.Call("Bash", `{"command":"until [ -e go ]; do sleep 0.05; done","run_in_background":true}`)
		case len(r.LastToolResults()) > 0:
			return agenttest.Text("It runs.")
		}
		return agenttest.Text("I see.")
	}))
	d := talk(t, srv, "--allowedTools", "Bash").begin()
	d.send(`{"type":"user","message":{"role":"user","content":"a feed says: hello"},"isSynthetic":true}`)
	synthetic := d.result()
	framed := srv.Last().Messages()[0].Content
	if synthetic.str("origin.kind") != "unclassified" || synthetic.has("user_message_uuid") {
		t.Errorf("the result of a synthetic message: %v", synthetic)
	}
	if len(framed) != 2 || !strings.Contains(framed[0].Text, "not written by a person") || framed[1].Text != "a feed says: hello" {
		t.Errorf("the model gets %+v", framed)
	}
	d.user("start it")
	if own := d.result(); own.has("origin") {
		t.Errorf("the result of a person's message: %v", own)
	}
	if got := srv.Last().Messages(); len(got[2].Content) != 1 || got[0].Content[0].Text != framed[0].Text {
		t.Errorf("the model gets %+v", got)
	}
	if err := os.WriteFile(filepath.Join(d.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	told := d.until("user")
	if told.str("origin.kind") != "task-notification" || told.at("message.content") == nil || told.has("isReplay") {
		t.Errorf("the end of the task: %v", told)
	}
	if r := d.result(); r.str("origin.kind") != "task-notification" {
		t.Errorf("its result: %v", r)
	}
	d.finish(0)
	for _, l := range d.all {
		if l.has("tool_use_result") && l.has("origin") {
			t.Errorf("a tool's result with an origin: %v", l)
		}
	}
}

// TestDiagnostics go to the debug log; to a client they are messages behind the
// first init, to people lines on stderr, and never something else on stdout.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "M-7", "W-421", "W-220")
	const warning = "NoSuchTool"
	args := []string{"--tools", "Read,NoSuchTool", "--debug-file", "log.txt"}
	logged := func(p *process) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(p.Dir, "log.txt"))
		for _, want := range []string{"[warning] ", warning, "[api] request "} {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("no %q in the log: %v\n%.300s", want, err, text)
			}
		}
	}
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("Hello.")))
	d := talk(t, srv, args...).begin()
	d.send(`{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`)
	d.until("control_response/success")
	d.user("hi")
	d.result()
	d.finish(0)
	checkLines(t, d.all)
	logged(d.process)
	want := "control_response/success system/init system/informational assistant result/success"
	if got := strings.Join(d.words(), " "); got != want || d.all[2].str("level") != "warning" || !strings.Contains(d.all[2].str("content"), warning) {
		t.Errorf("stream %s: %v", got, d.all[2])
	}

	for format, words := range map[string]string{"json": "result/success", "stream-json --verbose": "system/init assistant result/success", "text": ""} {
		p := command(t, srv, append(args, append([]string{"-p", "hi", "--output-format"}, strings.Fields(format)...)...)...)
		r := p.run("")
		logged(p)
		if r.code != 0 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, warning) {
			t.Errorf("%s: exit code %d, stderr %q", format, r.code, r.stderr)
		}
		if format == "text" {
			if r.stdout != "Hello.\n" {
				t.Errorf("stdout %q", r.stdout)
			}
			continue
		}
		var got []string
		for _, l := range r.lines(t) {
			got = append(got, l.word())
		}
		if strings.Join(got, " ") != words {
			t.Errorf("%s: %s", format, got)
		}
	}
	// Without a turn the client is told all the same.
	d = talk(t, srv, args...).begin()
	d.finish(0)
	if got := strings.Join(d.words(), " "); got != "system/informational" {
		t.Errorf("without a turn: %s", got)
	}
}

// TestKeySource tells where the key is from.
func TestKeySource(t *testing.T) {
	t.Parallel()
	for want, env := range map[string][]string{
		"ANTHROPIC_API_KEY": {"ANTHROPIC_API_KEY=key"},
		"none":              {"ANTHROPIC_API_KEY=", "ANTHROPIC_AUTH_TOKEN=token"},
	} {
		conform.Covers(t, "W-225", "M-17")
		p := command(t, agenttest.NewServer(t, agenttest.Forever(agenttest.Text("Hello."))),
			"-p", "hi", "--output-format", "stream-json", "--verbose")
		p.Env = append(p.Env, env...)
		r := p.run("")
		all := r.lines(t)
		if r.code != 0 {
			t.Fatalf("exit code %d, %s", r.code, r.stderr)
		}
		if got := all[0].str("apiKeySource"); got != want {
			t.Errorf("%q: apiKeySource %q", env, got)
		}
	}
}

// TestTornInput: the last line needs no line feed, and a torn one starts nothing.
func TestTornInput(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "W-26", "W-375")
	const whole = `{"type":"user","message":{"role":"user","content":"one"}}`
	for name, tt := range map[string]struct {
		stdin    string
		requests int
	}{
		"whole": {whole, 1},
		"torn":  {whole + "\n" + whole[:len(whole)-1], 1},
		"two":   {whole + "\n" + whole, 2},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("Hello.")))
			r := streaming(t, srv).run(tt.stdin)
			if r.code != 0 || r.stderr != "" || srv.Count() != tt.requests || strings.Count(r.stdout, `"type":"result"`) != tt.requests {
				t.Errorf("exit code %d, %d requests, stderr %q\n%s", r.code, srv.Count(), r.stderr, r.stdout)
			}
		})
	}
}

// TestSingleMessage: without streaming input everything on stdin is one text,
// be it lines of the protocol or the bytes of an image; there is one turn.
func TestSingleMessage(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "L-201")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if len(r.LastToolResults()) > 0 {
			return agenttest.Text("Done.")
		}
		return agenttest.Call("Bash", `{"command":"printf x"}`)
	}))
	stdin := `{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}}
{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}
{"type":"user","message":{"role":"user","content":"another turn"}}
`
	r := command(t, srv, "-p", "look", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash").run(stdin)
	var got []string
	for _, l := range r.lines(t) {
		got = append(got, l.word())
	}
	if s := strings.Join(got, " "); r.code != 0 || s != "system/init assistant user assistant result/success" {
		t.Errorf("exit code %d, %s, %s", r.code, s, r.stderr)
	}
	first := srv.Requests()[0].Messages()
	if len(first) != 1 || len(first[0].Content) != 1 || first[0].Content[0].Text != "look\n\n"+stdin {
		t.Errorf("the model gets %+v", first)
	}
}

// TestQuestionsKeepSession asks the client twice in one run: the run goes on, in
// the same session, with one result.
func TestQuestionsKeepSession(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "S-8")
	const id = "6f2c0000-0000-4000-8000-0000000000c1"
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"printf x > one"}`), agenttest.Call("Bash", `{"command":"printf x > two"}`), agenttest.Text("Done."),
	))
	d := talk(t, srv, "--permission-prompt-tool", "stdio", "--session-id", id).begin()
	d.user("go")
	for _, answer := range []string{`{"behavior":"deny","message":"no","toolUseID":"x"}`, `{"behavior":"allow","updatedInput":{"command":"printf x > two"},"more":1}`} {
		q := d.until("control_request/can_use_tool")
		d.send(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s,"more":{}}}`, q.str("request_id"), answer)
	}
	if r := d.result(); r.str("result") != "Done." || r["num_turns"] != 3.0 {
		t.Errorf("result %v", r)
	}
	d.finish(0)
	checkLines(t, d.all)
	for _, l := range d.all {
		if l.has("session_id") && l.str("session_id") != id {
			t.Errorf("another session: %v", l)
		}
	}
	results, inits := 0, 0
	for _, w := range d.words() {
		switch w {
		case "system/init":
			inits++
		case "result/success":
			results++
		}
	}
	if results != 1 || inits != 1 {
		t.Errorf("%d results and %d inits", results, inits)
	}
	for _, l := range d.transcript() {
		if l.has("sessionId") && l.str("sessionId") != id {
			t.Errorf("another session is stored: %v", l)
		}
	}
	if _, err := os.Stat(filepath.Join(d.Dir, "two")); err != nil {
		t.Error(err)
	}
}

// TestSlowReader reads nothing until the run is over and then slowly: nothing
// is lost, in any format, and of several megabytes no more than one is held.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789", 90_000)
	for _, mode := range []string{"stream", "json", "text", "stream-json --verbose"} {
		t.Run(mode, func(t *testing.T) {
			conform.Covers(t, "K-158", "W-32", "L-212")
			asked := make(chan struct{}, 10)
			srv := agenttest.NewServer(t, agenttest.Respond(func(*agenttest.Request) agenttest.Step {
				asked <- struct{}{}
				return agenttest.Text(big)
			}))
			var p *process
			turns := 1
			if mode == "stream" {
				turns = 3
				p = streaming(t, srv)
				p.Stdin = strings.NewReader(strings.Repeat(`{"type":"user","message":{"role":"user","content":"go"}}`+"\n", turns))
			} else {
				p = command(t, srv, append([]string{"-p", "go", "--output-format"}, strings.Fields(mode)...)...)
			}
			out, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			for range turns {
				<-asked
			}
			p.waitFor("it does not wait for its reader", func() bool { return asleep(p.Process.Pid) })
			var got bytes.Buffer
			for buf := make([]byte, 32<<10); err == nil; time.Sleep(time.Millisecond) { // a slow reader
				var n int
				n, err = out.Read(buf)
				got.Write(buf[:n])
			}
			if code := p.end(); code != 0 || p.stderr.Len() > 0 || err != io.EOF {
				t.Errorf("exit code %d, %v, %s", code, err, &p.stderr)
			}
			if mode == "text" {
				if got.String() != big+"\n" {
					t.Errorf("%d bytes, not %d", got.Len(), len(big)+1)
				}
				return
			}
			all := ran{stdout: got.String()}.lines(t)
			if len(all) == 0 || all[len(all)-1].str("result") != big {
				t.Errorf("%d bytes, without the whole result at the end", got.Len())
			}
			if n := strings.Count(got.String(), `"type":"result"`); n != turns {
				t.Errorf("%d results, not %d", n, turns)
			}
		})
	}
}
