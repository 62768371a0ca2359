//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// streaming prepares the command for a client.
func streaming(t *testing.T, srv *agenttest.Server, args ...string) *process {
	t.Helper()
	return command(t, srv, append([]string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}, args...)...)
}

// wild is a client that was written by an enemy of order: it sends what it
// should and what it should not, in pieces, reads or does not, and goes away at
// any moment.
type wild struct {
	*process
	rnd *rand.Rand
	in  io.WriteCloser

	mu      sync.Mutex
	answers map[string]int // by request id
	results int
	broken  []string // lines that are none
}

// TestRandomHost runs wild clients: whatever they do, the command neither
// panics nor hangs nor leaves a process, every request has at most one answer,
// and each line is whole. The API takes every request, the transcript is one
// that other programs can read, and the session goes on.
func TestRandomHost(t *testing.T) {
	t.Parallel()
	conform.Covers(t, "W-21", "W-22", "W-31", "W-81", "W-86", "W-375", "W-383", "M-114", "K-159", "K-174", "K-204", "K-301", "K-374", "S-44")
	seeds := 24
	if n, err := strconv.Atoi(os.Getenv("TURNWRIGHT_HOSTS")); err == nil {
		seeds = n // for a long search
	} else if testing.Short() {
		seeds = 6
	}
	srv := agenttest.NewServer(t, agenttest.KeepRequests(0), agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		switch {
		case len(r.LastToolResults()) > 0:
			return agenttest.Text("Done.")
		case strings.Contains(r.UserText(), "tool"):
			return agenttest.Call("Bash", `{"command":"sleep 0.05; echo ran"}`)
		case strings.Contains(r.UserText(), "big"):
			return agenttest.Text(strings.Repeat("big ", 25_000)) // more than a pipe holds
		}
		return agenttest.Text("Hello.")
	}))
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &wild{rnd: rand.New(rand.NewPCG(seed, 6)), answers: map[string]int{}}
			args := []string{"--replay-user-messages"}
			if w.one(2) {
				args = append(args, "--permission-prompt-tool", "stdio")
			} else {
				args = append(args, "--allowedTools", "Bash")
			}
			w.process = streaming(t, srv, args...)
			w.run(t)
			goesOn(t, srv, w.process)
		})
	}
}

// goesOn reads the transcript of a session that has ended, as strictly as other
// programs do, and resumes it.
func goesOn(t *testing.T, srv *agenttest.Server, p *process) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(p.Dir, "config", "projects", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		return // it ended before its first turn
	}
	if len(found) != 1 || filepath.Ext(found[0]) != ".jsonl" {
		t.Fatalf("the session has left %q", found)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(raw) || !bytes.HasSuffix(raw, []byte("\n")) {
		t.Error("the transcript is no UTF-8, or its last line is torn")
	}
	last := ""
	uuids := map[string]bool{}
	for line := range bytes.Lines(raw) {
		var e struct {
			Type, UUID string
			ParentUUID *string
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in the line %.200s", err, line)
		}
		if !slices.Contains([]string{"user", "assistant", "system", "attachment"}, e.Type) {
			continue
		}
		if e.UUID == "" || uuids[e.UUID] {
			t.Errorf("the uuid %q is missing or there twice", e.UUID)
		}
		if parent := e.ParentUUID; last == "" && parent != nil || last != "" && (parent == nil || *parent != last) {
			t.Errorf("the chain is broken at %.300s", line)
		}
		last, uuids[e.UUID] = e.UUID, true
	}
	again := command(t, srv, "-p", "go on", "--resume", strings.TrimSuffix(filepath.Base(found[0]), ".jsonl"))
	again.Dir, again.Env = p.Dir, p.Env
	var out bytes.Buffer
	again.Stdout = &out
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	if code := again.end(); code != 0 || again.stderr.Len() > 0 {
		t.Errorf("resumed: exit code %d, %.500s%s", code, &out, &again.stderr)
	}
}

func (w *wild) one(n int) bool { return w.rnd.IntN(n) == 0 }

func (w *wild) run(t *testing.T) {
	var err error
	if w.in, err = w.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(2*time.Minute, func() {
		_ = w.Process.Signal(syscall.SIGQUIT) // shows where it hangs
		t.Errorf("it hangs")
	})
	defer watchdog.Stop()

	closes := w.one(4) // the reader goes away in the middle
	slow := w.one(3)
	after := w.rnd.IntN(20)
	read := make(chan struct{})
	go func() {
		defer close(read)
		r := bufio.NewReaderSize(out, 4096)
		for n := 0; ; n++ {
			if closes && n == after {
				out.Close()
				return
			}
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			w.line(line)
			if slow {
				time.Sleep(3 * time.Millisecond)
			}
		}
	}()
	sent := map[string]bool{}
	for i := range 10 + w.rnd.IntN(60) {
		if _, err := w.in.Write(w.frame(i, sent)); err != nil {
			break // the command has ended, for its reader is gone
		}
	}
	terminated := w.one(5)
	if terminated {
		_ = w.Process.Signal(syscall.SIGTERM)
	}
	w.in.Close()
	<-read
	code := w.end()

	w.mu.Lock()
	defer w.mu.Unlock()
	if text := w.stderr.String(); text != "" {
		t.Errorf("stderr: %s", text)
	}
	switch {
	case terminated && code != 143 && code != 0 && code != 1 && code != -1: // it may have ended before, or not begun
		t.Errorf("exit code %d after SIGTERM", code)
	case !terminated && code != 0 && code != 1:
		t.Errorf("exit code %d", code)
	}
	for id, n := range w.answers {
		if n != 1 || !sent[id] {
			t.Errorf("request %q has %d answers", id, n)
		}
	}
	if !closes && !terminated {
		for id := range sent {
			if w.answers[id] == 0 {
				t.Errorf("request %q has no answer", id)
			}
		}
		if len(w.broken) > 0 {
			t.Errorf("broken lines: %q", w.broken)
		}
	} else if len(w.broken) > 1 { // the last one may be cut
		t.Errorf("broken lines: %q", w.broken)
	}
}

// line takes one line of the command, and answers its question or does not.
func (w *wild) line(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := message.Decode(line)
	if err != nil || len(line) > 4_000_004 {
		w.broken = append(w.broken, string(line[:min(len(line), 200)]))
		return
	}
	switch m := m.(type) {
	case *message.ControlResponse:
		w.answers[m.Response.RequestID]++
	case *message.Result:
		w.results++
	case *message.ControlRequest:
		answers := []string{
			`{"behavior":"allow"}`, `{"behavior":"deny","message":"no"}`, `{"behavior":"deny","message":"no","interrupt":true}`,
			`{"behavior":7}`, `{}`, `{"behavior":"allow","updatedInput":{"command":7}}`,
		}
		fmt.Fprintf(w.in, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`+"\n", m.RequestID, answers[len(line)%len(answers)])
	}
}

// frame is the next thing that is sent.
func (w *wild) frame(i int, sent map[string]bool) []byte {
	request := func(body string) []byte {
		id := "r" + strconv.Itoa(i)
		sent[id] = true
		return fmt.Appendf(nil, "\n"+`{"type":"control_request","request_id":"%s","request":%s}`+"\n", id, body)
	}
	user := func(text string) []byte {
		raw, _ := json.Marshal(text)
		return fmt.Appendf(nil, `{"type":"user","message":{"role":"user","content":%s}}`+"\r\n", raw)
	}
	switch w.rnd.IntN(16) {
	case 0:
		return request(`{"subtype":"initialize","hooks":null}`)
	case 1, 2:
		return request(`{"subtype":"interrupt"}`)
	case 3:
		return request(`{"subtype":"interrupt","cancel_queued":true}`)
	case 4:
		return request(`{"subtype":"set_permission_mode","mode":"` + []string{"plan", "default", "nothing"}[w.rnd.IntN(3)] + `"}`)
	case 5:
		return request([]string{`{"subtype":"set_model","model":null}`, `{"subtype":"mcp_status"}`, `[]`, `{"subtype":3}`, `{"subtype":"set_model","model":[]}`}[w.rnd.IntN(5)])
	case 6:
		return bytes.Repeat([]byte{byte(w.rnd.Uint32())}, w.rnd.IntN(1000))
	case 7:
		garbage := make([]byte, w.rnd.IntN(200))
		for i := range garbage {
			garbage[i] = byte(w.rnd.Uint32())
		}
		return append(garbage, '\n')
	case 8:
		return user("tool please")[:w.rnd.IntN(40)] // half a line: the next one spoils it
	case 9:
		most := 20_000 // each later request has it as well
		if w.one(10) {
			most = 300_000
		}
		return user(strings.Repeat("long ", w.rnd.IntN(most)))
	case 10:
		return user("a big answer")
	case 11:
		return user(" ")
	case 12:
		return []byte(`{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"behavior":"allow"}}}` + "\n")
	case 13:
		return []byte("\n\n \t\n")
	case 14: // contents of any kind that the API takes
		contents := []string{
			`[{"type":"text","text":"hi"},{"type":"text","text":"use a tool"}]`,
			`[{"type":"text","text":"hi\u0000 \u2028 \ud83d\ude00"}]`,
			`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]`,
			`[]`, `[{"type":"text","text":""}]`, `[{"type":"text","text":" \n"}]`,
		}
		return fmt.Appendf(nil, `{"type":"user","message":{"role":"user","content":%s}}`+"\n", contents[w.rnd.IntN(len(contents))])
	}
	return user("use a tool")
}
