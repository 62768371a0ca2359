package turnwright_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// notReplayed are the tests that change journals by hand, by name.
var notReplayed sync.Map

// changesJournals says that a test writes lines that no machine wrote.
func changesJournals(t testing.TB) { notReplayed.Store(t.Name(), true) }

// replayAtEnd replays all sessions of a test when it is over, those in the store and
// those in files under home: whatever a test of this package runs is a test of the
// replay as well.
func replayAtEnd(t testing.TB, store session.Finder, home string) {
	t.Cleanup(func() {
		ctx := context.Background() // that of the test is over
		disk, err := file.New(file.Config{Getenv: func(name string) string {
			if name == "CLAUDE_CONFIG_DIR" {
				return home
			}
			return ""
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, changed := notReplayed.Load(t.Name()); changed || t.Failed() {
			return
		}
		for _, f := range []session.Finder{store, disk} {
			list, err := f.List(ctx, "")
			if err != nil {
				t.Logf("not replayed: %v", err)
			}
			for _, info := range list {
				mustReplay(t, info.ID, f.Read(ctx, info))
			}
		}
	})
}

// mustReplay fails when a journal is not what the machine writes.
func mustReplay(t testing.TB, id string, lines iter.Seq2[[]byte, error]) {
	t.Helper()
	r, err := turnwright.Replay(id, lines)
	switch {
	case errors.Is(err, turnwright.ErrNothingToReplay), errors.Is(err, journal.ErrNewerFormat), errors.Is(err, session.ErrNotFound):
	case err != nil:
		t.Errorf("session %s: %v", id, err)
	case r.Difference != nil:
		var text strings.Builder
		_ = r.Text(&text)
		t.Error(text.String())
	}
}

// TestReplayStored replays the sessions in testdata/replay: what the loop decided
// when they were recorded, it decides today. docs/replay.md shows such a test. One that
// differs for a good reason is recorded anew.
func TestReplayStored(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "replay", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%q, %v", paths, err)
	}
	for _, path := range paths {
		id, lines, err := file.Transcript(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		mustReplay(t, id, lines)
	}
}

// TestReplaySession: a session of several runs, and its fork, by id and by title; a
// changed transcript; what cannot be replayed.
func TestReplaySession(t *testing.T) {
	conform.Covers(t, "S-44")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Call("echo", `{"text":"x"}`), agenttest.Call("Write", `{"file_path":"/nowhere/x","content":"y"}`)),
		agenttest.Text("done"), agenttest.Text("and on"), agenttest.Text("apart"),
	))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools, o.Title = []turnwright.Tool{echo()}, []string{"echo"}, "the parser"
	first := query(t, "one", o)
	id := first.result.SessionID
	o.Title, o.Resume = "", id
	query(t, "two", o)
	r, err := turnwright.ReplaySession(t.Context(), "the parser", o)
	if err != nil || r.SessionID != id || r.Difference != nil || r.Runs != 2 || r.Given != 0 || r.Checked < 20 || r.Skipped+r.Checked > r.Lines {
		t.Fatalf("%+v, %v", r, err)
	}
	o.ForkSession = true
	forked := query(t, "three", o)
	r, err = turnwright.ReplaySession(t.Context(), forked.result.SessionID, o)
	if err != nil || r.Difference != nil || r.Given < 5 || r.Checked < 4 {
		t.Errorf("%+v, %v", r, err)
	}

	path := transcript(t, o, id)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(raw), `"toolTurns":1`, `"toolTurns":3`, 1)
	at := strings.Count(changed[:strings.Index(changed, `"toolTurns":3`)], "\n") + 1
	r, err = turnwright.Replay(id, func(yield func([]byte, error) bool) {
		for l := range strings.Lines(changed) {
			if !yield([]byte(strings.TrimSuffix(l, "\n")), nil) {
				return
			}
		}
	})
	if err != nil || r.Difference == nil || r.Difference.Line != at || r.Difference.Fields[0] != (turnwright.ReplayField{Path: "turn.toolTurns", Recorded: "3", Decided: "1"}) {
		t.Errorf("line %d: %+v, %v", at, r, err)
	}

	var missing *turnwright.NoConversationError
	if _, err := turnwright.ReplaySession(t.Context(), "nobody", o); !errors.As(err, &missing) {
		t.Errorf("nobody: %v", err)
	}
	const foreign = "aaaaaaaa-0000-4000-8000-000000000001"
	line := `{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hello"}}` + "\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), foreign+".jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := turnwright.ReplaySession(t.Context(), foreign, o); !errors.Is(err, turnwright.ErrNothingToReplay) || !strings.Contains(err.Error(), foreign) {
		t.Errorf("foreign: %v", err)
	}
}
