package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/crash"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model/anthropic"
	"github.com/turnwright/turnwright/session/file"
	"github.com/turnwright/turnwright/tool"
)

const sessionID = "11111111-2222-4333-8444-555555555555"

var home = filepath.Join(string(filepath.Separator), "home", ".claude") // on the disk of a world

// end says where a process ends and what is left of its disk.
type end struct {
	at    int // the point, from 0; -1: it is not ended
	cut   cut // of a write
	crash vfs.Crash
}

// cut is how much of a write gets through.
type cut int

const (
	nothing    cut = iota
	inLine         // half of the first line
	oneLine        // the first line of several, newline included
	inLast         // all lines but half of the last
	noNewline      // all but the last newline
	everything     // all, but the process never knows
)

// bytes is how many bytes of a write a cut lets through, -1 when it is no cut
// of its own.
func (c cut) bytes(data []byte) int {
	first := bytes.IndexByte(data, '\n') + 1
	last := bytes.LastIndexByte(data[:max(0, len(data)-1)], '\n') + 1
	switch {
	case c == inLine:
		return max(first, 2) / 2
	case c == oneLine && last > 0:
		return first
	case c == inLast && last > 0:
		return last + (len(data)-last)/2
	case c == noNewline:
		return len(data) - 1
	case c == everything:
		return len(data)
	case c == nothing:
		return 0
	}
	return -1
}

// world is what outlives a process, and what one process is told of it.
type world struct {
	t   *testing.T
	sc  scenario
	srv *agenttest.Server
	dir string // the working directory
	cfg string // a configuration home without anything in it

	mu       sync.Mutex
	disk     *vfs.Mem
	writing  map[string][]byte // what is being written, by file
	end      end
	points   int
	what     string // the point at which it ended
	dead     bool
	life     context.Context // of the process
	kill     context.CancelFunc
	before   []byte // the transcript when it ended, without the write that was cut
	ledger   []string
	keys     map[string]int // runs of a mutating call, by its idempotency key
	shown    []string       // uuids of messages that must not be lost
	results  []string       // uuids of results that were shown
	warned   []string       // in this process
	requests int            // in this process
}

// errEnded is what a process that has ended gets from its disk and its tools:
// nothing that it does then is ever seen.
var errEnded = errors.New("the process has ended")

// point is a moment at which a process may end. It reports whether it has, and
// how many bytes of a write get through.
func (w *world) point(what string, data []byte) (through int, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return 0, true
	}
	n := w.points
	w.points++
	if n != w.end.at {
		return 0, false
	}
	for range 20 { // let the reader have what was shown
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
	w.before, _ = vfs.ReadFile(w.disk, w.transcript())
	w.dead, w.what = true, what
	w.kill()
	return max(0, w.end.cut.bytes(data)), true
}

func (w *world) transcript() string {
	project := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, w.dir)
	return filepath.Join(home, "projects", project, sessionID+".jsonl")
}

// ofLock marks points at which the lock of a session is taken or given back.
const ofLock = "lock: "

// fs is the disk that a process sees.
func (w *world) fs() vfs.FS {
	return &tap{w: w, FS: vfs.WithFaults(w.disk, func(op vfs.Op) error {
		if !op.Kind.Changes() {
			return nil
		}
		w.mu.Lock()
		data := w.writing[op.Name]
		w.mu.Unlock()
		if op.Kind != vfs.OpWrite {
			data = nil
		}
		what := string(op.Kind) + " " + filepath.Base(op.Name)
		if strings.HasPrefix(op.Name, filepath.Join(home, "turnwright")) {
			what = ofLock + what
		}
		switch n, ended := w.point(what, data); {
		case ended && op.Kind == vfs.OpWrite:
			return &vfs.ShortWrite{N: n, Err: errEnded}
		case ended:
			return errEnded
		}
		return nil
	})}
}

// tap tells the world what is written.
type tap struct {
	vfs.FS
	w *world
}

type tapFile struct {
	vfs.File
	w    *world
	name string
}

func (t *tap) OpenFile(name string, flag int, perm fileMode) (vfs.File, error) {
	f, err := t.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &tapFile{f, t.w, name}, nil
}

func (f *tapFile) Write(p []byte) (int, error) {
	f.w.mu.Lock()
	f.w.writing[f.name] = p
	f.w.mu.Unlock()
	return f.File.Write(p)
}

// fakeTool is a tool of the plan: its input has the member "mark".
type fakeTool struct {
	w    *world
	name string
	do   func(c *tool.Call, mark string) (string, error)
	read bool
}

func (f *fakeTool) Spec() tool.Spec {
	return tool.Spec{
		Name: f.name, Description: "Does its work.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"mark":{"type":"string"}},"required":["mark"]}`),
		Traits:      tool.Traits{ReadOnly: f.read, Concurrent: f.read, Repeatable: f.read},
	}
}

func (f *fakeTool) Call(_ context.Context, c *tool.Call) (*tool.Result, error) {
	var in struct{ Mark string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, err
	}
	if _, ended := f.w.point("start of "+f.name, nil); ended {
		return nil, errEnded
	}
	text, err := f.do(c, in.Mark)
	if _, ended := f.w.point("end of "+f.name, nil); ended {
		return nil, errEnded
	}
	return tool.Text(text), err
}

func (w *world) tools() []turnwright.Tool {
	note := func(c *tool.Call, mark string) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.keys[c.Key]++
		w.ledger = append(w.ledger, mark)
		return "noted", nil
	}
	return []turnwright.Tool{
		&fakeTool{w: w, name: "note", do: note},
		&fakeTool{w: w, name: "forbidden", do: note},
		&fakeTool{w: w, name: "echo", read: true, do: func(_ *tool.Call, mark string) (string, error) { return mark, nil }},
		&fakeTool{w: w, name: "look", read: true, do: func(*tool.Call, string) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return "ledger: " + strings.Join(w.ledger, " "), nil
		}},
		&fakeTool{w: w, name: "job", do: func(c *tool.Call, mark string) (string, error) {
			text, err := note(c, mark)
			id, tasks := "task-"+c.ID, c.Env.Tasks
			tasks.Started(tool.Task{ID: id, Type: "local_bash", ToolUseID: c.ID, Description: "a job", OutputFile: "/out"})
			w.mu.Lock()
			defer w.mu.Unlock()
			go func(life context.Context) {
				select {
				case <-time.After(2 * time.Second):
					tasks.Ended(id, tool.TaskEnd{Status: tool.TaskCompleted, Summary: "the job is over"})
				case <-life.Done():
				}
			}(w.life)
			return text, err
		}},
	}
}

func newWorld(t *testing.T, sc scenario, dir, cfg string) *world {
	w := &world{
		t: t, sc: sc, dir: dir, cfg: cfg, disk: vfs.NewMem(), keys: map[string]int{}, writing: map[string][]byte{},
	}
	if err := w.disk.Mkdir(filepath.Dir(home), 0o700); err != nil {
		t.Fatal(err)
	}
	w.disk = w.disk.Crash(vfs.Crash{}) // what is there is durable
	w.srv = agenttest.NewServer(t, agenttest.InMemory(), agenttest.Respond(w.respond))
	return w
}

func (w *world) respond(r *agenttest.Request) agenttest.Step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests++; w.requests <= w.sc.failures {
		return agenttest.HTTPError(529, "overloaded_error", "Overloaded")
	}
	if w.requests > 60 {
		w.t.Errorf("%s: the model does not come to an end", w.what)
		return agenttest.Text("I give up.")
	}
	return w.sc.plan.Next(r)
}

func (w *world) options() turnwright.Options {
	client, err := anthropic.New(anthropic.Config{BaseURL: w.srv.URL(), APIKey: "x", HTTPClient: w.srv.Client()})
	if err != nil {
		w.t.Fatal(err)
	}
	warn := func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.dead {
			w.warned = append(w.warned, text)
		}
	}
	store, err := file.New(file.Config{ConfigDir: home, FS: w.fs(), Getenv: func(string) string { return "" }, Warn: warn})
	if err != nil {
		w.t.Fatal(err)
	}
	return turnwright.Options{
		Model: "claude-sonnet-4-5", ModelClient: client, CWD: w.dir, Store: store, Stderr: warn,
		CustomTools: w.tools(), AllowedTools: []string{"note", "echo", "look", "job"}, Tools: []string{},
		Hooks: w.sc.hooks,
		Env: map[string]string{
			"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_MODEL": "",
			"CLAUDE_CONFIG_DIR": w.cfg, "CLAUDE_CODE_SKIP_PROMPT_HISTORY": "", "CLAUDE_CODE_MAX_TURNS": "", "CLAUDE_CODE_MAX_RETRIES": "",
		},
	}
}

// live runs a process. It reports whether it came to its own end.
func (w *world) live(e end, sittings []sitting) bool {
	w.mu.Lock()
	w.end, w.points, w.dead, w.warned, w.requests = e, 0, false, nil, 0
	w.mu.Unlock()
	for _, s := range sittings {
		w.sit(s)
		w.mu.Lock()
		dead := w.dead
		w.mu.Unlock()
		if dead {
			w.disk = w.disk.Crash(e.crash)
			return false
		}
	}
	return true
}

// sit opens the session, sends what there is to send and reads to the end.
func (w *world) sit(prompts sitting) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	w.mu.Lock()
	w.life, w.kill = ctx, cancel
	w.mu.Unlock()
	o := w.options()
	if data, err := vfs.ReadFile(w.disk, w.transcript()); err == nil && len(bytes.TrimSpace(data)) > 0 {
		o.Resume = sessionID
	} else {
		o.SessionID = sessionID
	}
	s, err := turnwright.NewSession(ctx, o)
	var none *turnwright.NoConversationError
	if errors.As(err, &none) { // what is there is no conversation yet
		o.Resume, o.SessionID = "", sessionID
		s, err = turnwright.NewSession(ctx, o)
	}
	if err != nil {
		if !w.isDead() {
			w.t.Errorf("%s: the session does not open: %v", w.what, err)
		}
		return
	}
	defer s.Close() //nolint:errcheck // the process may have ended
	w.drive(ctx, s, prompts)
}

func (w *world) drive(ctx context.Context, s *turnwright.Session, prompts sitting) {
	next := func(due when) {
		for len(prompts) > 0 && (prompts[0].when == due || prompts[0].when == atOnce) {
			if _, err := s.Send(ctx, turnwright.Input{Text: prompts[0].text, Steer: new(prompts[0].when == afterCall)}); err != nil && !w.isDead() {
				w.t.Errorf("%s: send: %v", w.what, err)
			}
			prompts = prompts[1:]
			due = atOnce
		}
		if len(prompts) == 0 {
			s.EndInput()
		}
	}
	next(atOnce)
	for m, err := range s.Messages(ctx) {
		if err != nil {
			return // it ended
		}
		w.show(m)
		switch m := m.(type) {
		case *message.User:
			if len(m.ToolResults()) > 0 && len(prompts) > 0 {
				next(afterCall)
			}
		case *message.Result:
			if len(prompts) > 0 {
				next(afterResult)
			}
		}
	}
}

func (w *world) show(m turnwright.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return
	}
	switch m := m.(type) {
	case *message.Assistant:
		w.shown = append(w.shown, m.UUID)
	case *message.User:
		w.shown = append(w.shown, m.UUID)
	case *message.Result:
		w.shown, w.results = append(w.shown, m.UUID), append(w.results, m.UUID)
	}
}

func (w *world) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// check looks at the whole after the last process.
func (w *world) check(first end, kept, shown []string) {
	t := w.t
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: ended at %d (%s), cut %d, power %v: %s", w.sc.name, first.at, w.what, first.cut, first.crash.Power, fmt.Sprintf(format, args...))
	}
	lost, doubled := w.sc.plan.Faults(w.ledger)
	if len(lost)+len(doubled) > 0 {
		fail("lost %q, doubled %q; the ledger is %q", lost, doubled, w.ledger)
	}
	for key, n := range w.keys {
		if n > 1 {
			fail("the call %s ran %d times", key, n)
		}
	}
	data, err := vfs.ReadFile(w.disk, w.transcript())
	if err != nil {
		fail("%v", err)
		return
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	at := 0
	for _, line := range kept {
		i := slices.Index(lines[at:], line)
		if i < 0 {
			fail("a line is lost: %s", line)
			break
		}
		at += i + 1
	}
	for _, id := range shown {
		if !bytes.Contains(data, []byte(id)) {
			fail("a message that was shown is lost: %s", id)
		}
	}
	if len(w.warned) > 1 {
		fail("warnings: %q", w.warned)
	}
	tr, err := journal.Read(func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield([]byte(line), nil) {
				return
			}
		}
	})
	if err != nil || tr.Skipped > 1 {
		fail("the transcript: %v, %d lines unreadable", err, tr.Skipped)
		return
	}
	for id, n := range resultsOf(tr.Entries) {
		if n != 1 {
			fail("the input %s has %d results", id, n)
		}
	}
	if m := loop.Fold(loop.Config{SessionID: sessionID}, slices.Values(tr.Entries)); len(m.Queue()) > 0 {
		fail("%d inputs wait at the end", len(m.Queue()))
	}
}

// resultsOf counts the results of each input that had a turn. One that was taken
// into the turn of another shares its result.
func resultsOf(entries []loop.Entry) map[string]int {
	n := map[string]int{}
	cur := ""
	for i, e := range entries {
		if e.Kind != loop.KindTurn {
			continue
		}
		if id := e.Turn.Turn.Input; id != "" && id != cur {
			if cur != "" && n[cur] == 0 && waitsAgain(entries[:i], cur) {
				delete(n, cur)
			}
			cur = id
			n[cur] += 0
		}
		if e.Turn.Result != nil {
			n[cur]++
			cur = ""
		}
	}
	return n
}

// waitsAgain reports an input that gave its turn to another one.
func waitsAgain(entries []loop.Entry, id string) bool {
	return slices.ContainsFunc(entries, func(e loop.Entry) bool {
		return e.Kind == loop.KindInput && e.Input.First && e.Input.ID == id
	})
}

// wholeLines are the complete lines of a file.
func wholeLines(data []byte) (lines []string) {
	for line := range bytes.Lines(data) {
		if body, ok := bytes.CutSuffix(line, []byte("\n")); ok && json.Valid(body) {
			lines = append(lines, string(body))
		}
	}
	return lines
}

func call(name, mark string, changes bool) crash.Call {
	return crash.Call{Tool: name, Input: fmt.Sprintf(`{"mark":%q}`, mark), Mark: mark, Changes: changes}
}
