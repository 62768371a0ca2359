package turnwright_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// storedIn are the sessions of the options' home and directory.
func storedIn(o turnwright.Options) turnwright.Sessions {
	return turnwright.Sessions{ConfigDir: o.Env["CLAUDE_CONFIG_DIR"], Dir: o.CWD}
}

func TestForkSession(t *testing.T) {
	conform.Covers(t, "S-57", "S-59", "S-60", "S-61", "B-126")
	srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
		return agenttest.Text("re " + r.UserText())
	}))
	o := onDisk(t, srv)
	o.Title = "the parser"
	a := query(t, "one", o).result.SessionID
	o.Title, o.Resume = "", a
	query(t, "two", o)
	path := transcript(t, o, a)
	appendLine(t, path, node(a, "user", "00000000-0000-4000-8000-0000000000ff", "", "of a subagent", `,"isSidechain":true`))
	appendLine(t, path, `{"type":"content-replacement","sessionId":"`+a+`","replacements":[{"old":1}]}`)
	source := read(t, path)
	if err := os.MkdirAll(filepath.Join(filepath.Dir(path), a, "tool-results"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := storedIn(o)
	b, err := s.Fork(t.Context(), a, turnwright.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Fork(t.Context(), b, turnwright.ForkOptions{Title: "a copy of a copy"})
	if err != nil || b == a || c == a || b == c {
		t.Fatalf("%s, %s, %s, %v", a, b, c, err)
	}
	raw := read(t, transcript(t, o, b))
	info, err := os.Stat(transcript(t, o, b))
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(transcript(t, o, b)) != filepath.Dir(path) {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), b)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("large outputs were copied: %v", err)
	}
	if bytes.Contains(raw, []byte("subagent")) || bytes.Contains(raw, []byte(`"kind":"turn"`)) || !bytes.Contains(raw, []byte(`"replacements":[{"old":1}]`)) {
		t.Errorf("copied too much or too little:\n%s", raw)
	}
	oneLine(t, raw)
	seen := map[string]bool{}
	for line := range bytes.Lines(raw) {
		var l struct {
			Type, UUID, SessionID, Timestamp string
			ForkedFrom                       *struct{ SessionID, MessageUUID string }
			LogicalParentUUID                json.RawMessage
			Message                          json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil || l.SessionID != b || bytes.Contains(source, []byte(`"uuid":"`+l.UUID+`"`)) {
			t.Errorf("%v in %s", err, line)
		}
		if l.Message == nil {
			continue
		}
		if l.ForkedFrom == nil || l.ForkedFrom.SessionID != a || !bytes.Contains(source, []byte(`"uuid":"`+l.ForkedFrom.MessageUUID+`"`)) || string(l.LogicalParentUUID) != "null" || seen[l.UUID] {
			t.Errorf("%+v", l)
		}
		seen[l.UUID] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d messages were copied", len(seen))
	}
	for id, want := range map[string]string{a: "the parser", b: "the parser (fork)", c: "a copy of a copy"} {
		if info, err := s.Info(t.Context(), id); err != nil || info == nil || info.CustomTitle != want || info.FirstPrompt != "one" {
			t.Errorf("%s: %+v, %v", id, info, err)
		}
	}
	// Each can be resumed without the others.
	if !bytes.Equal(read(t, path), source) {
		t.Error("the source was changed")
	}
	for _, id := range []string{a, b} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	o.Resume = c
	if r := query(t, "three", o); r.err != nil || r.result.SessionID != c || said(srv.Last()) != "user:one | assistant:re one | user:two | assistant:re two | user:three" {
		t.Errorf("%v, the model is told %s", r.err, said(srv.Last()))
	}
	oneLine(t, read(t, transcript(t, o, c)))
}

func TestForkSessionUpTo(t *testing.T) {
	conform.Covers(t, "S-60", "K-396", "K-397", "K-467", "S-29")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Call("echo", `{"text":"1"}`), agenttest.Call("echo", `{"text":"2"}`), agenttest.Call("echo", `{"text":"3"}`)),
		agenttest.Text("three"), agenttest.Text("on"), agenttest.Text("on")))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
	id := query(t, "one", o).result.SessionID
	raw := read(t, transcript(t, o, id))
	s := storedIn(o)
	var none *turnwright.NoMessageError
	if _, err := s.Fork(t.Context(), id, turnwright.ForkOptions{UpTo: sid(1)}); !errors.As(err, &none) || none.SessionID != id {
		t.Errorf("an unknown message: %v", err)
	}
	for _, c := range []struct{ upTo, want string }{
		{`"type":"tool_use"`, "user:one | call:echo | call:echo | call:echo | result:U | result:U | result:U | user:more"},
		{`"type":"tool_result"`, "user:one | call:echo | call:echo | call:echo | result:1 | result:2 | result:3 | user:more"},
	} {
		upTo := ""
		for _, l := range chainLines(t, raw) { // the last one of its kind
			if strings.Contains(string(l.Message.Content), c.upTo) {
				upTo = l.UUID
			}
		}
		if upTo == "" {
			t.Fatalf("no %s in\n%s", c.upTo, raw)
		}
		fork, err := s.Fork(t.Context(), id, turnwright.ForkOptions{UpTo: upTo})
		if err != nil {
			t.Fatal(err)
		}
		o.Resume = fork
		query(t, "more", o)
		got := strings.ReplaceAll(said(srv.Last()), "Interrupted: the outcome of this call is unknown; it may have run in part. Check before repeating it.", "U")
		if got != c.want {
			t.Errorf("up to %s the model is told\n%s, want\n%s", c.upTo, got, c.want)
		}
	}
	if !bytes.Equal(read(t, transcript(t, o, id)), raw) {
		t.Error("the source was changed")
	}
}

// A fork of a compacted session keeps what was replaced, and what a resume sees
// is the same; progress lines are left out, and so are branches.
func TestForkCompactedSession(t *testing.T) {
	conform.Covers(t, "S-60", "S-75")
	home, dir := t.TempDir(), t.TempDir()
	s := turnwright.Sessions{ConfigDir: home, Dir: dir}
	id := sid(1)
	putSession(t, home, dir, id, 0,
		node(id, "user", "u1", "", "one", `,"slug":"a-slug","teamName":""`),
		node(id, "assistant", "a1", "u1", "left behind", ""),
		`{"type":"progress","uuid":"p1","parentUuid":"u1","sessionId":"x"}`,
		"no JSON",
		node(id, "assistant", "a2", "lost", "an\u2028swer", `,"extra":{"kept":true}`),
		`{"type":"system","subtype":"compact_boundary","uuid":"c1","parentUuid":null,"logicalParentUuid":"a2","sessionId":"x","compactMetadata":{"trigger":"auto","preTokens":9}}`,
		node(id, "user", "s1", "c1", "what was said", `,"isCompactSummary":true`),
		node(id, "user", "k1", "s1", "one", `,"copiedFrom":"u1"`),
		node(id, "assistant", "a3", "k1", "on", ""),
	)
	fork, err := s.Fork(t.Context(), id, turnwright.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw := read(t, filepath.Join(home, "projects", file.ProjectName(dir), fork+".jsonl"))
	for _, not := range []string{"left behind", "progress", "slug", "teamName", "no JSON"} {
		if bytes.Contains(raw, []byte(not)) {
			t.Errorf("%q was copied", not)
		}
	}
	if !bytes.Contains(raw, []byte(`"extra":{"kept":true}`)) || bytes.Contains(raw, []byte("\u2028")) {
		t.Errorf("copied as\n%s", raw)
	}
	plain := regexp.MustCompile(`[0-9a-f-]{36}:|\S+:`)
	want := plain.ReplaceAllString(messagesOf(t, s, id, turnwright.Page{}), "")
	if got := plain.ReplaceAllString(messagesOf(t, s, fork, turnwright.Page{}), ""); got != want || want != "what was said one on" {
		t.Errorf("the copy is %q, the source %q", got, want)
	}
	byOld := map[string]string{}
	type line struct {
		UUID, LogicalParentUUID, CopiedFrom, Timestamp string
		ParentUUID                                     *string
		ForkedFrom                                     struct{ MessageUUID string }
	}
	var lines []line
	for l := range bytes.Lines(raw) {
		var v line
		if err := json.Unmarshal(l, &v); err != nil {
			t.Fatal(err)
		}
		byOld[v.ForkedFrom.MessageUUID] = v.UUID
		lines = append(lines, v)
	}
	for _, v := range lines {
		switch v.ForkedFrom.MessageUUID {
		case "a2":
			if v.ParentUUID == nil || *v.ParentUUID != byOld["u1"] {
				t.Errorf("the parent of a2 is %v", v.ParentUUID)
			}
		case "c1":
			if v.ParentUUID != nil || v.LogicalParentUUID != byOld["a2"] {
				t.Errorf("the boundary: %+v", v)
			}
		case "k1":
			if v.CopiedFrom != byOld["u1"] {
				t.Errorf("a kept message is copied from %s", v.CopiedFrom)
			}
		case "a3":
			if at, err := time.Parse(time.RFC3339, v.Timestamp); err != nil || time.Since(at) > time.Hour {
				t.Errorf("the last message is of %s", v.Timestamp)
			}
		}
	}
	// Nothing is left of a copy that failed.
	putSession(t, home, dir, sid(2), 0, `{"type":"custom-title","customTitle":"no messages","sessionId":"x"}`)
	var empty *session.OptionError
	if _, err := s.Fork(t.Context(), sid(2), turnwright.ForkOptions{}); !errors.As(err, &empty) {
		t.Errorf("a session without messages: %v", err)
	}
	store := session.NewMemory()
	j, err := store.Open(t.Context(), id, session.OpenOptions{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(t.Context(), [][]byte{[]byte(node(id, "user", "u1", "", strings.Repeat("x", 2<<20), ""))}, false), j.Close()); err != nil {
		t.Fatal(err)
	}
	in := turnwright.Sessions{Dir: dir, Store: &failsToCopy{store}}
	if _, err := in.Fork(t.Context(), id, turnwright.ForkOptions{}); err == nil || !strings.Contains(err.Error(), "cannot be written: disk full") {
		t.Errorf("a full disk: %v", err)
	}
	if list, err := store.List(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("left are %+v, %v", list, err)
	}
}

// failsToCopy lets the second write of a new session fail.
type failsToCopy struct{ *session.Memory }

func (s *failsToCopy) Open(ctx context.Context, id string, o session.OpenOptions) (session.Journal, error) {
	j, err := s.Memory.Open(ctx, id, o)
	return &failsSecond{Journal: j}, err
}

type failsSecond struct {
	session.Journal
	n int
}

func (j *failsSecond) Append(ctx context.Context, lines [][]byte, sync bool) error {
	if j.n++; j.n == 2 {
		return errors.New("disk full")
	}
	return j.Journal.Append(ctx, lines, sync)
}

// A fork that the official client made loads: without lines of ours, with
// metadata behind the messages that have uuids and timestamps, its spilled
// outputs missing, and ids of messages and calls that its source has as well.
func TestClientFork(t *testing.T) {
	conform.Covers(t, "K-330", "K-331", "K-394", "K-395", "K-397", "K-398")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Usage(agenttest.Call("echo", `{"text":"1"}`), 1000, 10, 0, 0, 0), agenttest.Usage(agenttest.Text("said"), 1000, 10, 0, 0, 0),
		agenttest.Usage(agenttest.Text("on"), 1000, 10, 0, 0, 0), agenttest.Usage(agenttest.Text("on"), 1000, 10, 0, 0, 0)))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
	id := query(t, "one", o).result.SessionID
	raw := read(t, transcript(t, o, id))
	fork := sid(7)
	var out []byte
	ids := map[string]string{}
	foreign := `{"type":"of-another-kind","sessionId":"` + fork + `","payload":{"deep":[1,2]}}` + "\n"
	for line := range bytes.Lines(raw) {
		var l map[string]any
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		old, _ := l["uuid"].(string)
		if old == "" {
			continue
		}
		ids[old] = fmt.Sprintf("f0f00000-0000-4000-8000-%012d", len(ids))
		l["uuid"], l["logicalParentUuid"], l["sessionId"], l["isSidechain"] = ids[old], nil, fork, false
		if parent, ok := l["parentUuid"].(string); ok {
			l["parentUuid"] = ids[parent]
		}
		l["forkedFrom"] = map[string]string{"sessionId": id, "messageUuid": old}
		l["aFieldOfTheirs"] = true
		enc, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, enc...), '\n')
	}
	out = append(out, foreign...)
	out = append(out, `{"type":"custom-title","sessionId":"`+fork+`","customTitle":"theirs (fork)","uuid":"f1f00000-0000-4000-8000-000000000000","timestamp":"2026-01-02T03:04:05.678Z"}`+"\n"...)
	path := filepath.Join(filepath.Dir(transcript(t, o, id)), fork+".jsonl")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	const history = "user:one | call:echo | result:1 | assistant:said | user:more"
	var cost []float64
	for _, resumed := range []string{"theirs (fork)", id} {
		o.Resume = resumed
		r := query(t, "more", o)
		if r.err != nil || said(srv.Last()) != history {
			t.Fatalf("%s: %v, the model is told %s", resumed, r.err, said(srv.Last()))
		}
		cost = append(cost, *r.result.TotalCostUSD)
	}
	if cost[0] != cost[1] || cost[0] == 0 {
		t.Errorf("the same turn costs %v", cost)
	}
	if after := read(t, path); !bytes.HasPrefix(after, out) || bytes.Equal(after, out) {
		t.Error("what others wrote was not kept as it is")
	}
}
