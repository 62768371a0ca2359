//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session/file"
)

// projects are the project folders of the process's configuration home that
// hold a transcript, by session id.
func (p *process) projects() map[string]string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.Dir, "config", "projects", "*", "*.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	at := map[string]string{}
	for _, path := range found {
		at[strings.TrimSuffix(filepath.Base(path), ".jsonl")] = filepath.Base(filepath.Dir(path))
	}
	return at
}

// TestPlaceOfSession starts in a directory below a repository's top, through a
// link, while PWD tells something else, a further directory is added and the
// run goes elsewhere: the session belongs to the directory that it began in.
func TestPlaceOfSession(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "K-288", "K-283", "S-13")
	const id = "6f2c0000-0000-4000-8000-00000000000d"
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Bash", `{"command":"cd ../../more && pwd"}`), agenttest.Text("Done."), agenttest.Text("Again."),
	))
	p := command(t, srv, "-p", "go", "--allowedTools", "Bash", "--session-id", id, "--add-dir", "../../more")
	home := p.Dir
	sub := filepath.Join(home, "repo", "deep down")
	for _, dir := range []string{filepath.Join(home, "repo", ".git"), sub, filepath.Join(home, "more")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(home, "link")
	if err := os.Symlink(sub, link); err != nil {
		t.Fatal(err)
	}
	p.Args = append(p.Args[:len(p.Args)-1], filepath.Join(home, "more"))
	p.Cmd.Dir = link
	p.Env = append(p.Env, "PWD="+filepath.Join(home, "more"))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, &p.stderr)
	}
	if got := srv.Last().LastToolResults(); len(got) != 1 || !strings.HasSuffix(strings.TrimSpace(got[0].Text), "/more") {
		t.Fatalf("the command was elsewhere: %q", got[0].Text)
	}
	p.Cmd.Dir = home // where projects looks
	if got := p.projects(); len(got) != 1 || got[id] != file.ProjectName(sub) {
		t.Errorf("sessions are in %q, want %s", got, file.ProjectName(sub))
	}
	again := command(t, srv, "-p", "more", "--continue")
	again.Cmd.Dir, again.Env = sub, p.Env
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	if code := again.end(); code != 0 || len(srv.Last().Messages()) < 4 {
		t.Errorf("not continued from the directory itself: exit code %d, %d messages", code, len(srv.Last().Messages()))
	}
}

// TestSessionInsideSession has the tool of one session start another one.
func TestSessionInsideSession(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "S-26", "K-252")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		switch {
		case r.FirstUserText() == "inner":
			return agenttest.Text("From inside.")
		case len(r.LastToolResults()) == 0:
			return agenttest.Call("Bash", `{"command":"echo $CLAUDECODE > mark; turnwright -p inner --output-format json"}`)
		}
		return agenttest.Text("From outside.")
	}))
	p := command(t, srv, "-p", "outer", "--allowedTools", "Bash", "--output-format", "json")
	var out bytes.Buffer
	p.Stdout = &out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, &p.stderr)
	}
	if mark, err := os.ReadFile(filepath.Join(p.Dir, "mark")); err != nil || string(mark) != "1\n" {
		t.Fatalf("the command does not run inside a session: %q, %v", mark, err)
	}
	var outer, inner struct {
		SessionID string `json:"session_id"`
		Result    string `json:"result"`
	}
	if err := json.Unmarshal(out.Bytes(), &outer); err != nil {
		t.Fatal(err)
	}
	results := srv.Last().LastToolResults()
	if len(results) != 1 {
		t.Fatalf("%d results", len(results))
	}
	if err := json.Unmarshal([]byte(results[0].Text), &inner); err != nil {
		t.Fatalf("%v in %s", err, results[0].Text)
	}
	if inner.Result != "From inside." || outer.Result != "From outside." || inner.SessionID == outer.SessionID {
		t.Errorf("outer %+v, inner %+v", outer, inner)
	}
	if got := p.projects(); len(got) != 2 || got[inner.SessionID] == "" || got[outer.SessionID] == "" {
		t.Errorf("kept: %q", got)
	}
}

// TestContinueAnyOrigin goes on with the newest session of the directory,
// whether print mode, a client or a program with the library made it.
func TestContinueAnyOrigin(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "S-53", "K-470")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("Hello.")))
	home := command(t, srv)
	cli := func(stdin string, args ...string) {
		t.Helper()
		p := command(t, srv, args...)
		p.Dir, p.Env = home.Dir, append(home.Env, "CLAUDE_CODE_ENTRYPOINT=")
		if stdin != "" {
			p.Stdin, p.Env = strings.NewReader(stdin), append(home.Env, "CLAUDE_CODE_ENTRYPOINT=sdk-py")
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if code := p.end(); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, &p.stderr)
		}
	}
	told := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range srv.Last().Messages() {
			if m.Role == "user" {
				got = append(got, m.Content[0].Text)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("the model is told %q, want %q", got, want)
		}
	}
	stream := []string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}
	line := func(prompt string) string {
		return `{"type":"user","message":{"role":"user","content":"` + prompt + `"}}` + "\n"
	}

	cli("", "-p", "print-1")
	cli("", "-p", "print-2", "-c")
	told("print-1", "print-2")
	cli(line("client-1"), stream...)
	told("client-1")
	cli("", "-p", "print-3", "-c")
	told("client-1", "print-3")

	o := turnwright.Options{CWD: home.Dir, ReplaceEnv: true, Env: map[string]string{}}
	for _, kv := range append(home.Env, "PATH="+os.Getenv("PATH")) {
		k, v, _ := strings.Cut(kv, "=")
		o.Env[k] = v
	}
	for _, err := range turnwright.Query(t.Context(), "library-1", o) {
		if err != nil {
			t.Fatal(err)
		}
	}
	told("library-1")
	cli("", "-p", "print-4", "-c")
	told("library-1", "print-4")
	cli(line("client-2"), append(stream, "--continue")...)
	told("library-1", "print-4", "client-2")
	o.Continue = true
	for _, err := range turnwright.Query(t.Context(), "library-2", o) {
		if err != nil {
			t.Fatal(err)
		}
	}
	told("library-1", "print-4", "client-2", "library-2")
}
