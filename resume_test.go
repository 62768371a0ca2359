package turnwright_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// onDisk are options whose sessions are files, for several runs of one home
// and one working directory.
func onDisk(t *testing.T, srv *agenttest.Server) turnwright.Options {
	t.Helper()
	o := base(t, srv)
	o.Store = nil
	return o
}

// transcript is the path of a session's file.
func transcript(t *testing.T, o turnwright.Options, id string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", "*", id+".jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("transcripts of %s: %q, %v", id, found, err)
	}
	return found[0]
}

// said is what a request carries, in short.
func said(r *agenttest.Request) string {
	var out []string
	for _, m := range r.Messages() {
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				out = append(out, m.Role+":"+b.Text)
			case "tool_use":
				out = append(out, "call:"+b.Name)
			case "tool_result":
				text := "result"
				for _, c := range b.Content {
					text += ":" + c.Text
				}
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, " | ")
}

func TestResume(t *testing.T) {
	conform.Covers(t, "S-34", "S-35", "S-43", "L-37", "S-7", "K-463")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("echo", `{"text":"42"}`), agenttest.Call("echo", `{"text":"43"}`),
		agenttest.Text("Both are there."), agenttest.Text("You are welcome."),
	))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools, o.MaxTurns = []turnwright.Tool{echo()}, []string{"echo"}, new(1)
	first := query(t, "Look.", o)
	if first.result.Subtype != turnwright.ErrorMaxTurns {
		t.Fatal(first.shape())
	}
	path := transcript(t, o, first.result.SessionID)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o.Resume, o.MaxTurns = first.result.SessionID, new(2)
	second := query(t, "Go on.", o)
	if second.err != nil || *second.result.Result != "Both are there." || second.result.SessionID != first.result.SessionID {
		t.Fatalf("%s %v", second.shape(), second.err)
	}
	if second.result.NumTurns != 1 || *second.result.TotalCostUSD >= *first.result.TotalCostUSD {
		t.Errorf("turns %d, cost %v after %v", second.result.NumTurns, *second.result.TotalCostUSD, *first.result.TotalCostUSD)
	}
	const history = "user:Look. | call:echo | result:42 | call:echo | result:Not executed: the run reached its maximum number of turns (1). | user:Go on."
	if got := said(srv.Last()); got != history {
		t.Errorf("the model is told\n%s, want\n%s", got, history)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(after, before) || len(after) == len(before) {
		t.Errorf("the file was not appended to: %v", err)
	}
	oneLine(t, after)
	third := query(t, "Thanks.", o)
	if *third.result.Result != "You are welcome." || said(srv.Last()) != history+" | assistant:Both are there. | user:Thanks." {
		t.Errorf("then the model is told %s", said(srv.Last()))
	}
}

// oneLine checks that every chain line's parent is the one before it (K-374).
func oneLine(t *testing.T, raw []byte) {
	t.Helper()
	last := ""
	for line := range bytes.Lines(raw) {
		var l struct {
			UUID   string  `json:"uuid"`
			Parent *string `json:"parentUuid"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.UUID == "" {
			continue
		}
		if parent := l.Parent; (parent == nil) != (last == "") || parent != nil && *parent != last {
			t.Errorf("the parent of %s is %v, want %s", l.UUID, parent, last)
		}
		last = l.UUID
	}
}

// Resuming by itself changes nothing, and neither does a fork.
func TestResumeLeavesTheFileAlone(t *testing.T) {
	conform.Covers(t, "K-484", "S-56", "K-354")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	id := query(t, "first", o).result.SessionID
	path := transcript(t, o, id)
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	unchanged := func(what string) {
		t.Helper()
		after, _ := os.ReadFile(path)
		info, err := os.Stat(path)
		if err != nil || !bytes.Equal(after, before) || !info.ModTime().Equal(old) {
			t.Errorf("%s changed the file", what)
		}
	}
	o.Resume = id
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if s.ID() != id {
		t.Errorf("id %s, want %s", s.ID(), id)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	unchanged("resuming")
	o.ForkSession = true
	if s, err = turnwright.NewSession(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	unchanged("a fork that was not used")
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(found) != 1 {
		t.Errorf("files: %q", found)
	}
	fork := query(t, "second", o)
	unchanged("a fork")
	if fork.result.SessionID == id {
		t.Error("the fork has the id of its source")
	}
	if got := said(srv.Last()); got != "user:first | assistant:hello | user:second" {
		t.Errorf("the fork tells %s", got)
	}
}

func TestFork(t *testing.T) {
	conform.Covers(t, "S-5", "S-56", "K-468", "K-469", "K-52", "K-53")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	id := query(t, "first", o).result.SessionID
	o.Resume, o.SessionID = id, "11111111-2222-4333-8444-555555555555"
	var bad *turnwright.OptionError
	if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &bad) || bad.Option != "SessionID" {
		t.Errorf("a chosen id without fork: %v", err)
	}
	o.ForkSession = true
	fork := query(t, "second", o)
	if fork.err != nil || fork.result.SessionID != o.SessionID {
		t.Fatalf("%v, id %s", fork.err, fork.result.SessionID)
	}
	raw, err := os.ReadFile(transcript(t, o, o.SessionID))
	if err != nil {
		t.Fatal(err)
	}
	oneLine(t, raw)
	source, _ := os.ReadFile(transcript(t, o, id))
	copied := 0
	for line := range bytes.Lines(raw) {
		var l struct {
			UUID, SessionID string
			ForkedFrom      *struct{ SessionID, MessageUUID string }
		}
		if err := json.Unmarshal(line, &l); err != nil || l.SessionID != o.SessionID {
			t.Errorf("%s, %v", line, err)
		}
		if l.ForkedFrom == nil {
			continue
		}
		copied++
		if l.ForkedFrom.SessionID != id || !bytes.Contains(source, []byte(`"uuid":"`+l.ForkedFrom.MessageUUID+`"`)) || bytes.Contains(source, []byte(l.UUID)) {
			t.Errorf("forked from %+v: %s", *l.ForkedFrom, line)
		}
	}
	if copied != 2 {
		t.Errorf("%d lines are copied", copied)
	}
	// The fork is a session like any other.
	o.SessionID, o.ForkSession, o.Resume = "", false, fork.result.SessionID
	if query(t, "third", o); said(srv.Last()) != "user:first | assistant:hello | user:second | assistant:hello | user:third" {
		t.Errorf("the fork's resume tells %s", said(srv.Last()))
	}
}

func TestContinue(t *testing.T) {
	conform.Covers(t, "S-51", "S-52", "S-55", "K-462", "K-470", "S-14")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	o.Continue = true
	one := query(t, "one", o) // nothing to continue
	if one.err != nil {
		t.Fatal(one.err)
	}
	o.Continue = false
	two := query(t, "two", o)
	// A touched file has no newer message.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(transcript(t, o, one.result.SessionID), later, later); err != nil {
		t.Fatal(err)
	}
	o.Continue = true
	if three := query(t, "three", o); three.result.SessionID != two.result.SessionID || said(srv.Last()) != "user:two | assistant:hello | user:three" {
		t.Errorf("continued %s, want %s: %s", three.result.SessionID, two.result.SessionID, said(srv.Last()))
	}
	// Another directory's path may give the same project name.
	other := o
	other.CWD = filepath.Join(t.TempDir(), "a b")
	same := filepath.Join(filepath.Dir(other.CWD), "a-b")
	for _, dir := range []string{other.CWD, same} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	theirs := query(t, "theirs", other)
	other.CWD = same
	if ours := query(t, "ours", other); ours.result.SessionID == theirs.result.SessionID {
		t.Error("the session of another directory was continued")
	}
	o.Resume = one.result.SessionID
	if r := query(t, "resume wins", o); r.result.SessionID != one.result.SessionID {
		t.Error("Continue won over Resume")
	}
}

func TestResumeLooksEverywhere(t *testing.T) {
	conform.Covers(t, "S-36", "S-37", "S-38", "S-39", "K-460", "K-461", "K-464")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	id := query(t, "first", o).result.SessionID
	path := transcript(t, o, id)
	elsewhere := o
	elsewhere.CWD, elsewhere.Resume = t.TempDir(), id
	if r := query(t, "second", elsewhere); r.err != nil || r.result.SessionID != id || transcript(t, o, id) != path {
		t.Fatalf("from another directory: %v", r.err)
	}
	raw, _ := os.ReadFile(path)
	for _, dir := range []string{o.CWD, elsewhere.CWD} {
		if real, _ := filepath.EvalSymlinks(dir); !bytes.Contains(raw, []byte(`"cwd":"`+real+`"`)) {
			t.Errorf("no line of %s", dir)
		}
	}
	missing := func(value, want string) {
		t.Helper()
		bad := elsewhere
		bad.Resume = value
		var none *turnwright.NoConversationError
		if _, err := turnwright.NewSession(t.Context(), bad); !errors.As(err, &none) || err.Error() != want {
			t.Errorf("%s: %v", value, err)
		}
	}
	const unknown = "00000000-0000-4000-8000-000000000000"
	missing(unknown, "No conversation found with session ID: "+unknown)
	missing("no such title", "No conversation found with session ID: no such title")
	// In two other projects it cannot be told which one is meant.
	copied := filepath.Join(filepath.Dir(filepath.Dir(path)), "-moved-here", id+".jsonl")
	if err := os.Mkdir(filepath.Dir(copied), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	missing(id, "No conversation found with session ID: "+id)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r := query(t, "third", elsewhere); r.err != nil || r.result.SessionID != id || transcript(t, o, id) != copied {
		t.Errorf("a transcript that was moved: %v", r.err)
	}

	// By title, in the directory's own project.
	name := func(id, title string) {
		t.Helper()
		appendLine(t, transcript(t, o, id), fmt.Sprintf(`{"type":"custom-title","customTitle":%q,"sessionId":%q}`, title, id))
	}
	a, b := query(t, "a", o).result.SessionID, query(t, "b", o).result.SessionID
	name(a, "old name")
	name(a, "the parser")
	titled := o
	titled.Resume = "the parser"
	if r := query(t, "more", titled); r.err != nil || r.result.SessionID != a {
		t.Errorf("by title: %v", r.err)
	}
	titled.Resume = "old name"
	if _, err := turnwright.NewSession(t.Context(), titled); err == nil {
		t.Error("an old title still counts")
	}
	name(b, "the parser")
	titled.Resume = "the parser"
	if _, err := turnwright.NewSession(t.Context(), titled); err == nil || !strings.HasPrefix(err.Error(), `Several conversations are titled "the parser": `) || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
		t.Errorf("two of a title: %v", err)
	}
}

// reads notes which sessions are read whole.
type reads struct {
	*file.Store
	whole []string
}

func (r *reads) Read(ctx context.Context, s session.Info) iter.Seq2[[]byte, error] {
	r.whole = append(r.whole, s.ID)
	return r.Store.Read(ctx, s)
}

// A title is looked for where the listing finds it, and not by reading all that
// was ever said.
func TestResumeByTitleReadsEnds(t *testing.T) {
	conform.Covers(t, "K-340", "K-341", "K-461")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	var ids []string
	for _, titles := range [][]string{{"early"}, {"old", "late"}, {"", "middle", ""}, {""}} {
		id := query(t, "hi", o).result.SessionID
		ids = append(ids, id)
		path := transcript(t, o, id)
		for i, title := range titles {
			if i > 0 { // out of reach of what stands before
				appendLine(t, path, fmt.Sprintf(`{"type":"of-our-own","text":%q,"sessionId":%q}`, strings.Repeat("x", 2*session.SummaryBytes), id))
			}
			if title != "" {
				appendLine(t, path, fmt.Sprintf(`{"type":"custom-title","customTitle":%q,"sessionId":%q}`, title, id))
			}
		}
		appendLine(t, path, fmt.Sprintf(`{"type":"of-our-own","text":%q,"sessionId":%q}`, `{"type":"custom-title","customTitle":"inside"}`, id))
	}
	appendLine(t, transcript(t, o, ids[0]), fmt.Sprintf(`{"type":"of-our-own","text":%q,"sessionId":%q}`, strings.Repeat("x", 2*session.SummaryBytes), ids[0]))
	for _, tt := range []struct {
		title string
		want  int // of ids; -1: none
	}{{"early", 0}, {"late", 1}, {"old", -1}, {"middle", -1}, {"inside", -1}} {
		store, err := file.New(file.Config{Getenv: func(name string) string { return o.Env[name] }})
		if err != nil {
			t.Fatal(err)
		}
		counted := &reads{Store: store}
		titled := o
		titled.Store, titled.Resume = counted, tt.title
		r := query(t, "more", titled)
		if tt.want < 0 {
			if r.err == nil {
				t.Errorf("%s: found %s", tt.title, r.result.SessionID)
			}
		} else if r.err != nil || r.result.SessionID != ids[tt.want] {
			t.Errorf("%s: %v", tt.title, r.err)
		}
		for _, id := range counted.whole {
			if tt.want < 0 || id != ids[tt.want] {
				t.Errorf("%s: session %s was read whole", tt.title, id)
			}
		}
	}
}

// A session of the original product: metadata, split responses, a call without
// result, a branch, a line that cannot be read.
func TestResumeForeign(t *testing.T) {
	conform.Covers(t, "K-485", "K-466", "K-467", "K-370", "K-371", "K-374", "K-375", "S-44", "S-21", "K-372")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	const id = "aaaaaaaa-0000-4000-8000-000000000001"
	dir := filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", file.ProjectName(o.CWD))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		`{"type":"permission-mode","permissionMode":"default"}`,
		`{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"sessionId":"` + id + `","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"Fix it."}}`,
		`{"type":"attachment","uuid":"x1","parentUuid":"u1","attachment":{"type":"odd"}}`,
		`{"type":"assistant","uuid":"a1","parentUuid":"x1","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"An old branch."}],"stop_reason":"end_turn","usage":{}}}`,
		`{"type":"assistant","uuid":"a2","parentUuid":"x1","message":{"id":"m2","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"I look."}],"stop_reason":null,"usage":{}}}`,
		`{"type":"user","uuid":"s1","parentUuid":"a2","isSidechain":true,"message":{"role":"user","content":"aside"}}`,
		`this is no JSON`,
		`{"type":"assistant","uuid":"a3","parentUuid":"lost","message":{"id":"m2","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_9","name":"Bash","input":{"command":"ls"}}],"stop_reason":"tool_use","usage":{}}}`,
		`{"type":"assistant","uuid":"a3","parentUuid":"lost","message":{"id":"m2","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_9","name":"Bash","input":{"command":"ls"}}],"stop_reason":"tool_use","usage":{}}}`,
		`{"type":"summary","summary":"what it was about","leafUuid":"a3"}`,
	}
	if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var warned []string
	o.Stderr = func(line string) { warned = append(warned, line) }
	o.Resume = id
	out := query(t, "Go on.", o)
	if out.err != nil {
		t.Fatal(out.err)
	}
	const want = "user:Fix it. | assistant:I look. | call:Bash | result:Interrupted: the outcome of this call is unknown; it may have run in part. Check before repeating it. | user:Go on."
	if got := said(srv.Last()); got != want {
		t.Errorf("the model is told\n%s, want\n%s", got, want)
	}
	if got := strings.Join(warned, "\n"); !strings.Contains(got, "1 lines could not be read") {
		t.Errorf("warnings: %s", got)
	}
	raw, _ := os.ReadFile(filepath.Join(dir, id+".jsonl"))
	if !bytes.Contains(raw, []byte(`"parentUuid":"a3"`)) || !bytes.Contains(raw, []byte(`"tool_use_id":"toolu_9"`)) {
		t.Error("the call's result is not in the file, or not linked to the chain's end")
	}
	// And again, now with lines of ours behind theirs.
	query(t, "And on.", o)
	if got := said(srv.Last()); got != want+" | assistant:hello | user:And on." {
		t.Errorf("then the model is told\n%s", got)
	}
}

// What a process left behind that was ended at any write is closed: every call
// gets a result that says what is known of it, and none runs again.
func TestResumeAfterACrash(t *testing.T) {
	conform.Covers(t, "S-44", "S-50", "K-467", "S-19")
	told := map[string]bool{}
	for at := 2; at <= 12; at++ {
		srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("I see.")))
		o := base(t, srv)
		store := session.NewMemory()
		var notes []string
		withNote(&o, &notes)
		crashing := o
		crashing.Env = maps.Clone(o.Env)
		first := agenttest.NewServer(t, agenttest.Script(
			agenttest.Blocks(agenttest.Call("note", `{"text":"a"}`), agenttest.Call("note", `{"text":"b"}`)),
			agenttest.Text("done"),
		))
		crashing.Env["ANTHROPIC_BASE_URL"] = first.URL()
		crashing.Store = &faultyStore{store, at}
		out := query(t, "first", crashing)
		ran := len(notes)
		if out.result.Subtype == turnwright.Success && at < 5 {
			t.Fatalf("write %d did not fail", at)
		}
		list, err := store.List(t.Context(), "")
		if err != nil || len(list) != 1 {
			t.Fatalf("write %d: %v, %v", at, list, err)
		}
		o.Store, o.Resume = store, list[0].ID
		r := query(t, "second", o)
		if r.err != nil || *r.result.Result != "I see." || len(notes) != ran {
			t.Errorf("write %d: %v, %d notes, then %d", at, r.err, ran, len(notes))
		}
		got := said(srv.Last())
		if !strings.HasPrefix(got, "user:first") || !strings.HasSuffix(got, "user:second") {
			t.Errorf("write %d: the model is told %s", at, got)
		}
		for _, kind := range []string{"result:Interrupted: the outcome", "result:Not executed: the process ended"} {
			told[kind] = told[kind] || strings.Contains(got, kind)
		}
	}
	if len(told) != 2 || !told["result:Interrupted: the outcome"] || !told["result:Not executed: the process ended"] {
		t.Errorf("told of calls: %v", told)
	}
}

// resumed runs twice with one store and checks that the second run has the
// history of the first, under the same id or another.
func resumed(t *testing.T, change func(o *turnwright.Options, id string), sameID bool) {
	t.Helper()
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	o := base(t, srv)
	first := query(t, "one", o).result.SessionID
	change(&o, first)
	second := query(t, "two", o)
	if second.err != nil || (second.result.SessionID == first) != sameID || said(srv.Last()) != "user:one | assistant:hi | user:two" {
		t.Errorf("%v, same id %v, %s", second.err, second.result.SessionID == first, said(srv.Last()))
	}
}

// A process that ended between the writing of a file and the note of it leaves
// a call whose outcome its tool can find out: the model is told that it was
// made, and it is not made again.
func TestResumeFindsOut(t *testing.T) {
	conform.Covers(t, "S-44", "K-467")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Write", `{"file_path":"new.txt","content":"made once"}`), agenttest.Text("done"),
	))
	o := base(t, srv)
	o.AllowedTools = []string{"Write"}
	store := session.NewMemory()
	// The write behind the call's permission is the one that tells its result.
	for at := 2; ; at++ {
		o.Store = &faultyStore{store, at}
		query(t, "first", o)
		if raw, err := os.ReadFile(filepath.Join(o.CWD, "new.txt")); err == nil {
			if string(raw) != "made once" {
				t.Fatalf("wrote %q", raw)
			}
			break
		}
		if at > 10 {
			t.Fatal("the file is never written")
		}
		store = session.NewMemory()
		srv = agenttest.NewServer(t, agenttest.Script(
			agenttest.Call("Write", `{"file_path":"new.txt","content":"made once"}`), agenttest.Text("done"),
		))
		o.Env["ANTHROPIC_BASE_URL"] = srv.URL()
	}
	list, err := store.List(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	again := agenttest.NewServer(t, agenttest.Text("I see."))
	o.Env["ANTHROPIC_BASE_URL"], o.Store, o.Resume = again.URL(), store, list[0].ID
	if r := query(t, "second", o); r.err != nil {
		t.Fatal(r.err)
	}
	got := said(again.Last())
	if strings.Contains(got, "outcome of this call is unknown") || !strings.Contains(got, "call:Write | result:") || !strings.Contains(got, "written") {
		t.Errorf("the model is told %s", got)
	}
}
