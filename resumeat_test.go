package turnwright_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
)

// chainLine is what tests look at in a transcript's line.
type chainLine struct {
	Type, Kind, UUID, Kept string
	ParentUUID             *string
	Message                struct {
		Content json.RawMessage
	}
}

func chainLines(t *testing.T, raw []byte) (lines []chainLine) {
	t.Helper()
	for line := range bytes.Lines(raw) {
		var l chainLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// uuidOf is the uuid of the first message that contains the text.
func uuidOf(t *testing.T, raw []byte, text string) string {
	t.Helper()
	for _, l := range chainLines(t, raw) {
		if l.UUID != "" && bytes.Contains(l.Message.Content, []byte(text)) {
			return l.UUID
		}
	}
	t.Fatalf("no message contains %q", text)
	return ""
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestResumeSessionAt(t *testing.T) {
	conform.Covers(t, "O-62", "S-62", "S-64", "K-471", "K-473", "K-474", "S-57")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		return agenttest.Text("re " + r.UserText())
	}))
	o := onDisk(t, srv)
	id := query(t, "one", o).result.SessionID
	o.Resume = id
	query(t, "two", o)
	query(t, "three", o)
	path := transcript(t, o, id)
	before := read(t, path)
	kept := uuidOf(t, before, "re one")

	o.ResumeSessionAt = "00000000-0000-4000-8000-00000000000f"
	var none *turnwright.NoMessageError
	if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &none) || none.SessionID != id ||
		err.Error() != "No message found with message.uuid of: 00000000-0000-4000-8000-00000000000f" {
		t.Errorf("an unknown uuid: %v", err)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("an error changed the file")
	}

	// In a fork only what is kept is copied.
	o.ResumeSessionAt, o.ForkSession = kept, true
	fork := query(t, "four", o)
	if got := said(srv.Last()); fork.err != nil || got != "user:one | assistant:re one | user:four" {
		t.Errorf("the fork tells %s, %v", got, fork.err)
	}
	if raw := read(t, transcript(t, o, fork.result.SessionID)); bytes.Contains(raw, []byte("two")) || !bytes.Contains(raw, []byte("re one")) {
		t.Error("the fork has more or less than what was kept")
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the fork changed its source")
	}

	// Without one the rest stays in the file, off the chain.
	o.ForkSession = false
	five := query(t, "five", o)
	const cut = "user:one | assistant:re one | user:five"
	if got := said(srv.Last()); five.err != nil || five.result.SessionID != id || got != cut {
		t.Errorf("the model is told %s, %v", got, five.err)
	}
	after := read(t, path)
	if !bytes.HasPrefix(after, before) {
		t.Fatal("lines were rewritten")
	}
	var parent string
	for _, l := range chainLines(t, after[len(before):]) {
		if l.UUID != "" {
			parent = *l.ParentUUID
			break
		}
	}
	if parent != kept {
		t.Errorf("the next message's parent is %s, want %s", parent, kept)
	}
	// It stays so, also when somebody appends while the session is idle.
	o.ResumeSessionAt = ""
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	appendLine(t, path, `{"type":"tag","tag":"blue","sessionId":"`+id+`"}`)
	if _, err := s.Ask(t.Context(), "six"); err != nil || said(srv.Last()) != cut+" | assistant:re five | user:six" {
		t.Errorf("then the model is told %s, %v", said(srv.Last()), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	// The cut part can be gone back to.
	o.ResumeSessionAt = uuidOf(t, before, "re three")
	if query(t, "seven", o); said(srv.Last()) != "user:one | assistant:re one | user:two | assistant:re two | user:three | assistant:re three | user:seven" {
		t.Errorf("back on the old branch the model is told %s", said(srv.Last()))
	}
	// And with Continue.
	o.Resume, o.Continue, o.ResumeSessionAt = "", true, kept
	if query(t, "eight", o); said(srv.Last()) != "user:one | assistant:re one | user:eight" {
		t.Errorf("continued, the model is told %s", said(srv.Last()))
	}
}

// While the session is idle after a cut that wrote nothing yet, a tag from
// outside does not move it back to the end that was cut off.
func TestResumeSessionAtThenIdle(t *testing.T) {
	conform.Covers(t, "K-473", "K-306", "S-64")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := onDisk(t, srv)
	var warned []string
	o.Stderr = func(line string) { warned = append(warned, line) }
	id := query(t, "one", o).result.SessionID
	path := transcript(t, o, id)
	kept := uuidOf(t, read(t, path), "ok")
	o.Resume = id
	query(t, "two", o)
	o.ResumeSessionAt = kept
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	appendLine(t, path, `{"type":"tag","tag":"blue","sessionId":"`+id+`"}`)
	if _, err := s.Ask(t.Context(), "three"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	o.ResumeSessionAt = ""
	if query(t, "four", o); said(srv.Last()) != "user:one | assistant:ok | user:three | assistant:ok | user:four" {
		t.Errorf("the model is told %s", said(srv.Last()))
	}
	if len(warned) > 0 {
		t.Errorf("warnings: %q", warned)
	}
}

// The cut may go between a call and its result (K-472), and what a tool
// remembered behind it is forgotten: a file that only the part that was cut off
// has read must be read again.
func TestResumeSessionAtACall(t *testing.T) {
	conform.Covers(t, "K-472", "K-467", "S-44")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Text("hello"),
		agenttest.Call("Read", `{"file_path":"a.txt"}`), agenttest.Text("I have read it."),
		agenttest.Call("Edit", `{"file_path":"a.txt","old_string":"old","new_string":"new"}`), agenttest.Text("no"),
		agenttest.Call("Edit", `{"file_path":"a.txt","old_string":"old","new_string":"new"}`), agenttest.Text("no"),
	))
	o := onDisk(t, srv)
	o.AllowedTools = []string{"Edit"}
	if err := os.WriteFile(o.CWD+"/a.txt", []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := query(t, "one", o).result.SessionID
	o.Resume = id
	query(t, "two", o)
	path := transcript(t, o, id)
	o.ResumeSessionAt = uuidOf(t, read(t, path), "tool_use")
	query(t, "three", o)
	const unknown = "result:Interrupted: the outcome of this call is unknown; it may have run in part. Check before repeating it."
	refused := func() {
		t.Helper()
		got := said(srv.Last())
		if !strings.HasPrefix(got, "user:one | assistant:hello | user:two | call:Read | "+unknown+" | user:three | call:Edit | result:") ||
			strings.Contains(got, "I have read it") {
			t.Errorf("the model is told %s", got)
		}
		if raw := read(t, o.CWD+"/a.txt"); string(raw) != "old\n" {
			t.Errorf("the file was edited: %q", raw)
		}
	}
	refused()
	o.ResumeSessionAt = "" // another process
	query(t, "four", o)
	refused()
}

// faultyFinder is a faulty store whose sessions can be found.
type faultyFinder struct {
	*faultyStore
	session.Finder
}

// Behind a cut the session is one line again: what is known of open calls is
// kept when the process ends.
func TestCrashAfterACut(t *testing.T) {
	conform.Covers(t, "K-473", "S-44")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := base(t, srv)
	store := session.NewMemory()
	o.Store = store
	first := query(t, "one", o)
	o.Resume = first.result.SessionID
	query(t, "two", o)
	list, err := store.List(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	var raw []byte
	for line, err := range store.Read(t.Context(), list[0]) {
		if err != nil {
			t.Fatal(err)
		}
		raw = append(append(raw, line...), '\n')
	}
	var notes []string
	o.ResumeSessionAt = uuidOf(t, raw, "ok")
	withNote(&o, &notes)
	told := map[string]bool{}
	for at := 2; at <= 8; at++ {
		calls := agenttest.NewServer(t, agenttest.Script(
			agenttest.Blocks(agenttest.Call("note", `{"text":"a"}`), agenttest.Call("note", `{"text":"b"}`)), agenttest.Text("done")))
		crashing := o
		crashing.Store = faultyFinder{&faultyStore{store, at}, store}
		crashing.ModelClient = nil
		crashing.Env = map[string]string{}
		for k, v := range o.Env {
			crashing.Env[k] = v
		}
		crashing.Env["ANTHROPIC_BASE_URL"] = calls.URL()
		query(t, "three", crashing)
		then := o
		then.ResumeSessionAt = ""
		query(t, "four", then)
		got := said(srv.Last())
		if i := strings.Index(got, "call:note"); i >= 0 {
			told[got[i:strings.Index(got, " | user:four")]] = true
		}
	}
	const never = "Not executed: the process ended before this call started."
	found := false
	for text := range told {
		found = found || strings.Contains(text, never)
	}
	if !found {
		t.Errorf("no call is told %q: %v", never, told)
	}
}

func TestResumeDropsTurn(t *testing.T) {
	conform.Covers(t, "O-63", "S-63", "K-480", "K-481", "K-482", "K-483")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := onDisk(t, srv)
	id := query(t, "one", o).result.SessionID
	o.Resume = id
	query(t, "two", o)
	query(t, "three", o)
	path := transcript(t, o, id)
	before := read(t, path)
	users := map[string]string{}
	var answers []string
	for _, l := range chainLines(t, before) {
		switch l.Type {
		case "user":
			users[strings.Trim(string(l.Message.Content), `"`)] = l.UUID
		case "assistant":
			answers = append(answers, l.UUID)
		}
	}
	for _, c := range []struct{ name, at, turn, want string }{
		{"more than the turn", answers[0], users["two"], "message " + users["three"] + " would be dropped as well"},
		{"another turn", answers[0], users["three"], "the first prompt that would be dropped is " + users["two"]},
		{"the end of the turn before", users["two"], users["three"], "message " + answers[1] + " of an earlier turn"},
		{"nothing is dropped", answers[2], users["three"], "no turn of prompt " + users["three"]},
	} {
		bad := o
		bad.ResumeSessionAt, bad.ResumeDropsTurn = c.at, c.turn
		var refused *turnwright.DropsTurnError
		_, err := turnwright.NewSession(t.Context(), bad)
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), "Resume rejected by --resume-drops-turn: "+c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, c := range []struct{ at, turn, option string }{
		{"", users["three"], "ResumeDropsTurn"}, {answers[1], "three", "ResumeDropsTurn"},
	} {
		bad := o
		bad.ResumeSessionAt, bad.ResumeDropsTurn = c.at, c.turn
		var invalid *turnwright.OptionError
		if _, err := turnwright.NewSession(t.Context(), bad); !errors.As(err, &invalid) || invalid.Option != c.option {
			t.Errorf("%+v: %v", c, err)
		}
	}
	bad := o
	bad.Resume, bad.ResumeSessionAt = "", answers[0]
	var invalid *turnwright.OptionError
	if _, err := turnwright.NewSession(t.Context(), bad); !errors.As(err, &invalid) || invalid.Option != "ResumeSessionAt" {
		t.Errorf("without Resume: %v", err)
	}
	if !bytes.Equal(read(t, path), before) || len(srv.Requests()) != 3 {
		t.Error("a refusal changed the file, or asked the model")
	}
	o.ResumeSessionAt, o.ResumeDropsTurn = answers[1], strings.ToUpper(users["three"])
	if r := query(t, "four", o); r.err != nil || said(srv.Last()) != "user:one | assistant:ok | user:two | assistant:ok | user:four" {
		t.Errorf("%v, the model is told %s", r.err, said(srv.Last()))
	}
}
