package turnwright_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

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
