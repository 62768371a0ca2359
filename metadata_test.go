package turnwright_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
)

// ends are what a listing reads of a session.
func ends(t *testing.T, o turnwright.Options, id string) session.Summary {
	t.Helper()
	raw, err := os.ReadFile(transcript(t, o, id))
	if err != nil {
		t.Fatal(err)
	}
	return session.Summarize(raw[:min(len(raw), session.SummaryBytes)], raw[max(0, len(raw)-session.SummaryBytes):])
}

func appendLine(t *testing.T, path, line string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTitle(t *testing.T) {
	conform.Covers(t, "O-17", "S-31", "S-47", "K-57", "K-323", "K-341", "K-342", "S-82")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	o.Title = " the\tparser \x1b[2J" + strings.Repeat("x", 300)
	id := query(t, "first", o).result.SessionID
	want := ("the parser  [2J" + strings.Repeat("x", 300))[:200]
	if s := ends(t, o, id); s.Title != want || s.Text != want {
		t.Errorf("title %q, want %q", s.Title, want)
	}
	o.Resume, o.Title = id, "another"
	query(t, "second", o)
	if s := ends(t, o, id); s.Title != want {
		t.Errorf("after a resume the title is %q", s.Title)
	}
	o.Resume, o.Title = "", ""
	id = query(t, strings.Repeat("é", 1200), o).result.SessionID
	if s := ends(t, o, id); s.Title != "" || s.Text != strings.Repeat("é", 1000) {
		t.Errorf("without a title it is listed as %q", s.Text)
	}
}

// Title, tag and last prompt stay within reach of a listing, also those that
// somebody else gave meanwhile, behind long turns and one very long line.
func TestMetadataStaysInReach(t *testing.T) {
	conform.Covers(t, "K-344", "K-345", "K-306", "K-340", "K-343", "K-353", "K-390", "K-391", "K-303", "S-31", "K-320", "K-322")
	long := strings.Repeat("word ", 40_000)
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text(long)))
	o := onDisk(t, srv)
	o.Title = "first title"
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ask := func(prompt string) session.Summary {
		t.Helper()
		if _, err := s.Ask(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
		return ends(t, o, s.ID())
	}
	if got := ask("one"); got.Title != "first title" || got.Tag != "" {
		t.Errorf("%+v", got)
	}
	path := transcript(t, o, s.ID())
	appendLine(t, path, `{"type":"custom-title","customTitle":"second title","sessionId":"`+s.ID()+`"}`)
	appendLine(t, path, `{"type":"tag","tag":"blue","sessionId":"`+s.ID()+`"}`)
	if got := ask("two"); got.Title != "second title" || got.Tag != "blue" {
		t.Errorf("%+v", got)
	}
	reach, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reach = reach[len(reach)-session.SummaryBytes:]
	for _, line := range []string{`{"type":"custom-title","customTitle":"second title",`, `{"type":"tag","tag":"blue",`} {
		if !bytes.Contains(reach, []byte("\n"+line+`"sessionId":"`+s.ID()+`"}`+"\n")) {
			t.Errorf("within reach there is no line %s", line)
		}
	}
	appendLine(t, path, `{"type":"tag","tag":"","sessionId":"`+s.ID()+`"}`)
	ask("three")
	if got := ask("four"); got.Title != "second title" || got.Tag != "" {
		t.Errorf("%+v", got)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tail := raw[len(raw)-session.SummaryBytes:]
	if !bytes.Contains(tail, []byte(`"lastPrompt":"four"`)) || bytes.Contains(tail, []byte("first title")) {
		t.Error("the last prompt is out of reach, or an older title was written back")
	}
	oneLine(t, raw)
}

// A first prompt longer than what a listing reads hides neither the session nor
// its directory and time.
func TestLongFirstPrompt(t *testing.T) {
	conform.Covers(t, "K-348", "K-350", "K-343")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	began := time.Now()
	id := query(t, strings.Repeat("long ", 30_000), o).result.SessionID
	info, err := storedIn(o).Info(t.Context(), id)
	if err != nil || info == nil {
		t.Fatalf("the session is not listed: %v", err)
	}
	dir, err := filepath.EvalSymlinks(o.CWD)
	if err != nil {
		t.Fatal(err)
	}
	if info.CWD != dir || info.CreatedAt.Sub(began).Abs() > time.Minute || !strings.HasPrefix(info.Summary, "long long") {
		t.Errorf("%s, created %s, %.30s", info.CWD, info.CreatedAt, info.Summary)
	}
}

// What a client's store folds of the entries of a session (K-356) is what a
// listing of its file finds: nothing of ours stands where it is taken for theirs.
func TestFoldedSummary(t *testing.T) {
	conform.Covers(t, "K-356", "K-328")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("echo", `{"text":"x","summary":"of the model","tag":"no","cwd":"/no"}`),
		agenttest.Text("hello"), agenttest.Text("hello")))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools, o.Title = []turnwright.Tool{echo()}, []string{"echo"}, "the title"
	id := query(t, "first", o).result.SessionID
	if err := storedIn(o).Tag(t.Context(), id, "blue"); err != nil {
		t.Fatal(err)
	}
	o.Resume = id
	query(t, "second", o)
	folded := map[string]any{}
	for line := range bytes.Lines(read(t, transcript(t, o, id))) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if len(folded) == 0 {
			folded["isSidechain"] = e["isSidechain"] == true
		}
		for _, key := range []string{"customTitle", "aiTitle", "lastPrompt", "summary", "gitBranch"} {
			if v, ok := e[key].(string); ok {
				folded[key] = v
			}
		}
		for _, key := range []string{"cwd", "timestamp"} {
			if _, known := folded[key]; !known && e[key] != nil {
				folded[key] = e[key]
			}
		}
		if e["type"] == "tag" {
			folded["tag"] = e["tag"]
		}
	}
	info, err := storedIn(o).Info(t.Context(), id)
	if err != nil || info == nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, fmt.Sprint(folded["timestamp"]))
	if err != nil || !at.Equal(info.CreatedAt) || folded["customTitle"] != "the title" || folded["customTitle"] != info.CustomTitle || folded["tag"] != "blue" ||
		info.Tag != "blue" || folded["lastPrompt"] != "second" || folded["cwd"] != info.CWD || folded["isSidechain"] != false ||
		folded["summary"] != nil || folded["aiTitle"] != nil || folded["gitBranch"] != nil || info.GitBranch != "" {
		t.Errorf("%v is folded of %+v, %v", folded, info, err)
	}
}
