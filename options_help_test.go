package turnwright_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/session/file"
	"github.com/turnwright/turnwright/tool"
)

// answer runs a prompt that the model answers with one step.
func answer(t *testing.T, step agenttest.Step, set func(*turnwright.Options)) outcome {
	t.Helper()
	srv := agenttest.NewServer(t, agenttest.Forever(step))
	o := base(t, srv)
	set(&o)
	return query(t, "go", o)
}

// request is the request that a run with these options makes.
func request(t *testing.T, set func(*turnwright.Options)) *agenttest.Request {
	t.Helper()
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	o := base(t, srv)
	set(&o)
	if out := query(t, "go", o); out.err != nil {
		t.Fatal(out.err)
	}
	return srv.Last()
}

// call runs a prompt for which the model calls the tool note once.
func call(t *testing.T, notes *[]string, set func(*turnwright.Options)) outcome {
	t.Helper()
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("note", `{"text":"x"}`), agenttest.Text("done")))
	o := base(t, srv)
	o.CustomTools = []turnwright.Tool{note(notes)}
	set(&o)
	return query(t, "go", o)
}

// commandRun runs a prompt for which the model runs one command.
func commandRun(t *testing.T, command string, set func(*turnwright.Options)) outcome {
	t.Helper()
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Bash", string(mustJSON(map[string]string{"command": command}))), agenttest.Text("done")))
	o := base(t, srv)
	set(&o)
	return query(t, "go", o)
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// testReadBeforeEdit has a tool say which files it must have read.
func testReadBeforeEdit(t *testing.T) {
	conform.Covers(t, "T-64")
	outside := t.TempDir()
	for _, tt := range []struct {
		mode        turnwright.ReadBeforeEdit
		tools, deny []string
		in, out     bool
	}{
		{mode: "", in: true, out: true},
		{mode: turnwright.ReadStrict, in: true, out: true},
		{mode: turnwright.ReadRelaxed, in: false, out: true},
		{mode: turnwright.ReadRelaxed, tools: []string{"Edit"}, in: true, out: true},
		{mode: turnwright.ReadRelaxed, deny: []string{"Read"}, in: true, out: true},
		{mode: turnwright.ReadRelaxed, deny: []string{"Read(secret)"}, in: false, out: true},
	} {
		srv := agenttest.NewServer(t, agenttest.Script(agenttest.Call("probe", `{}`), agenttest.Text("done")))
		o := base(t, srv)
		var in, out, secret, denied bool
		needs := func(env *tool.Env, path string) bool { return env.NeedsRead == nil || env.NeedsRead(path) }
		o.CustomTools = []turnwright.Tool{probe(func(env *tool.Env) {
			in, out = needs(env, filepath.Join(env.Dir, "f")), needs(env, filepath.Join(outside, "f"))
			secret, denied = needs(env, filepath.Join(env.Dir, "secret")), env.ReadDenied(filepath.Join(env.Dir, "secret"))
		})}
		o.AllowedTools, o.ReadBeforeEdit, o.Tools, o.DisallowedTools = []string{"probe"}, tt.mode, tt.tools, tt.deny
		query(t, "go", o)
		if in != tt.in || out != tt.out {
			t.Errorf("%q with tools %q and deny %q: needed inside %v, outside %v", tt.mode, tt.tools, tt.deny, in, out)
		}
		if want := len(tt.deny) > 0; denied != want || want && !secret {
			t.Errorf("deny %q: denied %v, needed %v", tt.deny, denied, secret)
		}
	}
	refused(t, "ReadBeforeEdit", `"never"`, func(o *turnwright.Options) { o.ReadBeforeEdit = "never" })
}

// probe is a tool that looks at what its call knows of the session.
type probe func(*tool.Env)

func (probe) Spec() tool.Spec { return tool.Spec{Name: "probe", Description: "looks around"} }

func (p probe) Call(_ context.Context, c *tool.Call) (*tool.Result, error) {
	p(c.Env)
	return tool.Text("ok"), nil
}

// refused expects an error that names the option and the value, before any
// request and with nothing written.
func refused(t *testing.T, option, value string, set func(*turnwright.Options)) {
	t.Helper()
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("must not be asked")))
	o := base(t, srv)
	o.Store = nil // files, so that what is written is seen
	set(&o)
	out := query(t, "go", o)
	switch {
	case out.err == nil:
		t.Errorf("%s %s: no error", option, value)
	case !strings.Contains(out.err.Error(), option) || !strings.Contains(out.err.Error(), value):
		t.Errorf("%s %s: the error names not both: %v", option, value, out.err)
	}
	if srv.Count() > 0 || len(out.messages) > 0 {
		t.Errorf("%s %s: %d requests and %d messages before the error", option, value, srv.Count(), len(out.messages))
	}
	if found, _ := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", "*", "*")); len(found) > 0 {
		t.Errorf("%s %s: written: %q", option, value, found)
	}
}

// oneAnswer is a model of one text.
type oneAnswer string

func (m oneAnswer) Stream(_ context.Context, r *model.Request, _ func(model.Event)) (*model.Response, error) {
	resp := &model.Response{ID: "msg_1", Model: r.Model, StopReason: "end_turn"}
	resp.Usage.OutputTokens = 1
	resp.Blocks = []model.Block{{Block: message.NewText(string(m)), Done: true}}
	return resp, nil
}

// testSync counts how often the journal is forced to disk.
func testSync(t *testing.T) {
	count := func(policy turnwright.SyncPolicy) int32 {
		var syncs atomic.Int32
		fs := vfs.WithFaults(vfs.NewMem(), func(op vfs.Op) error {
			if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".jsonl") {
				syncs.Add(1)
			}
			return nil
		})
		st, err := file.New(file.Config{ConfigDir: "/config", FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		var notes []string
		call(t, &notes, func(o *turnwright.Options) { o.Store, o.Sync, o.AllowedTools = st, policy, []string{"note"} })
		return syncs.Load()
	}
	never, turn, always := count(turnwright.SyncNever), count(turnwright.SyncTurn), count(turnwright.SyncAlways)
	if never != 0 || turn != 2 || always <= turn {
		t.Errorf("synced %d, %d and %d times; the default is once before the call and once at the end", never, turn, always)
	}
}

// testSteer sends a message while a tool runs.
func testSteer(t *testing.T, steer bool) {
	synctest.Test(t, func(t *testing.T) {
		srv, o := inMemory(t, agenttest.Script(calls("look a"), agenttest.Text("one"), agenttest.Text("two")))
		var tr track
		o.CustomTools, o.AllowedTools, o.Steer = tr.tools(), []string{"look"}, steer
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, text := range []string{"go", "and this"} {
			if _, err := s.Send(t.Context(), turnwright.Input{Text: text}); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				time.Sleep(500 * time.Millisecond) // look takes a second
			}
		}
		s.EndInput()
		var out outcome
		for m, err := range s.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			out.add(m)
		}
		want := "init assistant(look) user(ok) assistant(text) result(success) init assistant(text) result(success)"
		if steer {
			want = "init assistant(look) user(ok) user() assistant(text) result(success)"
		}
		if out.shape() != want {
			t.Errorf("steer %v: %s", steer, out.shape())
		}
		if with := strings.Contains(srv.Requests()[1].UserText(), "and this"); with != steer {
			t.Errorf("steer %v: the second request has the message: %v", steer, with)
		}
	})
}

// testMaxBufferSize sends thousands of messages that are much more than the
// bound together, and then one that is too large by itself: it is refused by
// name, and the next one goes on.
func testMaxBufferSize(t *testing.T) {
	conform.Covers(t, "O-86", "B-201")
	text := strings.Repeat("0123456789", 1500) // less than the API takes, all together
	srv := agenttest.NewServer(t, agenttest.NoValidate(), agenttest.Forever(agenttest.Text("hi")))
	o := base(t, srv)
	o.MaxBufferSize = 1 << 20
	big := strings.Repeat(text, 75)
	var refused *turnwright.InputSizeError
	out, sent := outcome{}, 0
	for m, err := range turnwright.QueryInputs(t.Context(), func(yield func(turnwright.Input, error) bool) {
		for range 1999 {
			if sent++; !yield(turnwright.Input{Text: text, NoQuery: true}, nil) {
				return
			}
		}
		if !yield(turnwright.Input{Text: "and now?"}, nil) {
			return
		}
		yield(turnwright.Input{Blocks: []turnwright.Block{message.NewText(big)}}, nil)
	}, o) {
		if err != nil {
			out.err = err
			break
		}
		out.add(m)
	}
	if !errors.As(out.err, &refused) || refused.Size < len(big) || refused.Limit != 1<<20 || out.result == nil || out.result.IsError || sent != 1999 {
		t.Fatalf("%d messages, %v, %s", sent, out.err, out.shape())
	}
	if n := bytes.Count(srv.Last().Body, []byte(`"text":"`)); n < 2000 { // the system prompt is one, too
		t.Errorf("the model got %d of 2000 messages", n)
	}
	for limit, fits := range map[int]bool{0: true, len(big) - 1: false, 2 * len(big): true} {
		o := base(t, srv)
		o.MaxBufferSize = limit
		s := start(t, o)
		if _, err := s.Send(t.Context(), turnwright.Input{Text: big}); (err == nil) != fits || !fits && !errors.As(err, &refused) {
			t.Errorf("limit %d: %v", limit, err)
		}
		if fits {
			readTurn(t, s)
		}
		if r, err := s.Ask(t.Context(), "next"); err != nil || r.IsError {
			t.Errorf("limit %d: after it %+v, %v", limit, r, err)
		}
	}
}

// testQueueBytes lets the run wait for a reader that is behind.
func testQueueBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conform.Covers(t, "L-212")
		big := strings.Repeat("x", 10_000)
		srv, o := inMemory(t, agenttest.Forever(agenttest.Call("echo", `{"text":"`+big+`"}`)))
		o.CustomTools, o.AllowedTools, o.MaxTurns, o.QueueBytes = []turnwright.Tool{echo()}, []string{"echo"}, new(50), 30_000
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Send(t.Context(), turnwright.Input{Text: "go"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // nobody reads
		if n := srv.Count(); n > 4 {
			t.Errorf("%d requests were made for a reader that reads nothing", n)
		}
		s.EndInput()
		var out outcome
		for m, err := range s.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			out.add(m)
		}
		if out.result == nil || out.result.ToolTurns != 50 {
			t.Errorf("%+v", out.result)
		}
	})
}

// TestControls changes model and mode between the calls of a session.
func TestControls(t *testing.T) {
	conform.Covers(t, "O-6", "O-118", "L-113", "P-5", "L-187")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		if strings.Contains(r.UserText(), "note") {
			return agenttest.Call("note", `{"text":"x"}`)
		}
		return agenttest.Text("hi")
	}))
	o := base(t, srv)
	var notes []string
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes)}, []string{"note"}
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, step := range []struct{ set, want string }{
		{"", "claude-sonnet-4-5"}, {"claude-opus-4-1", "claude-opus-4-1"}, {"default", "claude-sonnet-4-5"},
	} {
		if step.set != "" {
			if err := s.SetModel(t.Context(), step.set); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Ask(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		if got := srv.Last().Model(); got != step.want {
			t.Errorf("after SetModel(%q) the model is %q", step.set, got)
		}
	}
	if err := s.SetPermissionMode(t.Context(), "sometimes"); err == nil {
		t.Error("an unknown mode was accepted")
	}
	if err := s.SetPermissionMode(t.Context(), turnwright.ModeBypassPermissions); err == nil {
		t.Error("bypassPermissions was entered without its option")
	}
	if err := s.SetPermissionMode(t.Context(), turnwright.ModePlan); err != nil {
		t.Error(err)
	}
}

// TestZeroOptions runs with nothing but a model, as the documented defaults
// are (O-1). The environment stands for the user's own.
func TestZeroOptions(t *testing.T) {
	conform.Covers(t, "O-1", "O-9", "L-10", "L-235", "L-14")
	srv := agenttest.NewServer(t, agenttest.Script(agenttest.Text("hi")))
	for k, v := range base(t, srv).Env {
		t.Setenv(k, v)
	}
	t.Chdir(t.TempDir())
	out := query(t, "hello", turnwright.Options{})
	if out.err != nil || out.shape() != "init assistant(text) result(success)" {
		t.Errorf("%s, %v", out.shape(), out.err)
	}
	found, _ := filepath.Glob(filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "projects", "*", out.result.SessionID+".jsonl"))
	if len(found) != 1 {
		t.Errorf("transcripts: %q", found)
	}
}

// TestMissingKey fails the run with a result, before any tool.
func TestMissingKey(t *testing.T) {
	conform.Covers(t, "L-112", "O-119", "L-204")
	o := turnwright.Options{
		CWD: t.TempDir(), NoSessionPersistence: true,
		Env: map[string]string{"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_BASE_URL": "", "ANTHROPIC_CUSTOM_HEADERS": ""},
	}
	out := query(t, "hello", o)
	if out.result == nil || out.result.Subtype != turnwright.ErrorDuringExecution || !strings.Contains(out.result.Errors[0], "ANTHROPIC_API_KEY") {
		t.Fatalf("%+v, %v", out.result, out.err)
	}
	for _, m := range out.messages {
		if a, ok := m.(*turnwright.AssistantMessage); ok && a.Error != "authentication_failed" {
			t.Errorf("category %q", a.Error)
		}
	}
}

// testExcludeDynamic moves the facts about the machine from the system prompt
// to the first user message of every request, and only there.
func testExcludeDynamic(t *testing.T) {
	conform.Covers(t, "O-12")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := base(t, srv)
	ask := func(p turnwright.SystemPrompt) (system, user string) {
		o.SystemPrompt = &p
		query(t, "the prompt", o)
		return srv.Last().SystemText(), said(srv.Last())
	}
	with, plain := ask(turnwright.SystemPrompt{Coding: true, Append: "And kind."})
	if plain != "user:the prompt" || !strings.Contains(with, "Platform: ") {
		t.Fatalf("without it: %q, %q", with, plain)
	}
	o.Continue = true
	var systems []string
	for range 2 { // a session that goes on, and a new one in another directory
		dir, err := filepath.EvalSymlinks(o.CWD)
		if err != nil {
			t.Fatal(err)
		}
		system, user := ask(turnwright.SystemPrompt{Coding: true, Append: "And kind.", ExcludeDynamic: true})
		for _, fact := range []string{"Working directory: " + dir, "Git repository: no", "Platform: ", "Date: "} {
			if strings.Contains(system, fact) || strings.Count(user, fact) != 1 || !strings.Contains(strings.SplitN(user, " | ", 2)[0], fact) {
				t.Errorf("%q: system prompt %q, messages %q", fact, system, user)
			}
		}
		if strings.Contains(user, "assistant:hello") != o.Continue {
			t.Errorf("continue %v: %q", o.Continue, user)
		}
		systems = append(systems, system)
		o.CWD, o.Continue = t.TempDir(), false
	}
	if systems[0] != systems[1] || !strings.HasSuffix(systems[0], "And kind.") {
		t.Errorf("the system prompt of two directories: %q", systems)
	}
	if _, user := ask(turnwright.SystemPrompt{Text: new("mine"), ExcludeDynamic: true}); user != "user:the prompt" {
		t.Errorf("with a prompt of one's own: %q", user)
	}
}
