package turnwright_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
)

// checkpointed are options with file checkpoints whose tools may edit and run
// commands.
func checkpointed(t *testing.T, srv *agenttest.Server) turnwright.Options {
	t.Helper()
	o := onDisk(t, srv)
	o.CWD = realDir(t)
	o.EnableFileCheckpointing = true
	o.AllowedTools = []string{"Read", "Edit", "Write", "NotebookEdit", "Bash"}
	return o
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree are the files of a directory, by name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

func sameTree(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := tree(t, dir)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s has %q, want %q", name, got[name], text)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is there", name)
	}
}

// started begins a session and asks it one prompt after the other.
func started(t *testing.T, o turnwright.Options, prompts ...string) *turnwright.Session {
	t.Helper()
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, p := range prompts {
		if _, err := s.Ask(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

const notebook = `{"cells":[{"cell_type":"code","execution_count":null,"id":"c1","metadata":{},"outputs":[],"source":["1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`

// TestRewindFiles goes back to each of three messages, during the session and
// after resuming it. Shell commands are not undone, and the conversation stays.
func TestRewindFiles(t *testing.T) {
	conform.Covers(t, "O-65", "S-109", "S-110", "S-111", "S-112", "S-113", "S-114", "S-115", "S-117", "M-39", "K-293", "L-193")
	if runtime.GOOS == "windows" {
		t.Skip("the script uses a Unix shell")
	}
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Read", `{"file_path":"a.txt"}`),
		agenttest.Call("Edit", `{"file_path":"a.txt","old_string":"one","new_string":"ONE"}`),
		agenttest.Call("NotebookEdit", `{"notebook_path":"n.ipynb","cell_id":"c1","new_source":"2"}`),
		agenttest.Call("Bash", `{"command":"echo shell > shell.txt; echo shell >> mixed.txt"}`),
		agenttest.Text("First."),
		agenttest.Call("Write", `{"file_path":"new.txt","content":"new\n"}`),
		agenttest.Call("Read", `{"file_path":"mixed.txt"}`),
		agenttest.Call("Edit", `{"file_path":"mixed.txt","old_string":"shell","new_string":"edited"}`),
		agenttest.Text("Second."),
		agenttest.Call("Edit", `{"file_path":"a.txt","old_string":"ONE","new_string":"1"}`),
		agenttest.Call("Write", `{"file_path":"new.txt","content":"newer\n"}`),
		agenttest.Text("Third."),
		agenttest.Text("Fourth."),
	))
	o := checkpointed(t, srv)
	writeFile(t, o.CWD, "a.txt", "one\ntwo\n")
	writeFile(t, o.CWD, "n.ipynb", notebook)
	s := started(t, o)
	var ids []string
	states := []map[string]string{tree(t, o.CWD)}
	for i, prompt := range []string{"first", "second", "third"} {
		in := turnwright.Input{Text: prompt}
		if i == 1 {
			in.UUID = "6F2C0000-0000-4000-8000-000000000002" // chosen by the client
		}
		id, err := s.Send(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if res := nextResult(t, s); res.UserMessageUUID != id {
			t.Errorf("user_message_uuid %q, want %q", res.UserMessageUUID, id)
		}
		ids = append(ids, id)
		states = append(states, tree(t, o.CWD))
	}
	if states[3]["a.txt"] != "1\ntwo\n" || states[3]["new.txt"] != "newer\n" || states[3]["n.ipynb"] == notebook {
		t.Fatalf("the tools left %q", states[3])
	}
	file := transcript(t, o, s.ID())
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	dry, err := s.RewindFiles(t.Context(), ids[2], true)
	want := []string{filepath.Join(o.CWD, "a.txt"), filepath.Join(o.CWD, "new.txt")}
	if err != nil || !dry.CanRewind || !slices.Equal(dry.FilesChanged, want) || dry.Insertions != 2 || dry.Deletions != 2 {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	sameTree(t, o.CWD, states[3])
	back := func(s *turnwright.Session, to int, want map[string]string) {
		t.Helper()
		res, err := s.RewindFiles(t.Context(), ids[to], false)
		if err != nil || !res.CanRewind || res.SkippedLinks != 0 {
			t.Errorf("to message %d: %+v, %v", to+1, res, err)
		}
		sameTree(t, o.CWD, want)
	}
	back(s, 2, states[2])
	// What the first command made stays; the file that both changed is put back
	// to where it was before the tool.
	original := map[string]string{
		"a.txt": "one\ntwo\n", "n.ipynb": notebook, "shell.txt": "shell\n", "mixed.txt": "shell\n",
	}
	back(s, 0, original)
	back(s, 1, states[1])
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the transcript was changed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := s.RewindFiles(t.Context(), ids[0], false)
	if !errors.Is(err, turnwright.ErrClosed) || !strings.Contains(err.Error(), "resume session "+s.ID()) || res.CanRewind {
		t.Errorf("after the end: %+v, %v", res, err)
	}

	o.Resume = s.ID()
	again := started(t, o)
	back(again, 0, original)
	back(again, 2, states[2])
	if _, err := again.Ask(t.Context(), "fourth"); err != nil {
		t.Fatal(err)
	}
	if got := said(srv.Requests()[len(srv.Requests())-1]); !strings.Contains(got, "user:third") || !strings.HasSuffix(got, "user:fourth") {
		t.Errorf("the conversation: %s", got)
	}

	// A fork has no checkpoints, and leaves those of its source.
	o.ForkSession = true
	fork := started(t, o)
	if _, err := fork.RewindFiles(t.Context(), ids[0], false); !errors.Is(err, turnwright.ErrNoCheckpoint) {
		t.Errorf("a fork: %v", err)
	}
	back(again, 0, original)
}

// nextResult reads to the next result.
func nextResult(t *testing.T, s *turnwright.Session) *turnwright.ResultMessage {
	t.Helper()
	for m, err := range s.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := m.(*turnwright.ResultMessage); ok {
			return r
		}
	}
	t.Fatal("the session ended without a result")
	return nil
}

// TestForkHasNoCheckpoints starts a fork's history of files anew (S-61), also
// where the directory of its source is gone (K-397).
func TestForkHasNoCheckpoints(t *testing.T) {
	conform.Covers(t, "S-61", "K-397", "S-58")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Write", `{"file_path":"a.txt","content":"source\n"}`), agenttest.Text("Done."),
		agenttest.Call("Write", `{"file_path":"a.txt","content":"fork\n"}`), agenttest.Text("Done."),
	))
	o := checkpointed(t, srv)
	s := started(t, o, "one")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	history := filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "file-history")
	if err := os.Rename(history, history+".gone"); err != nil {
		t.Fatal(err)
	}
	o.Resume, o.ForkSession = s.ID(), true
	fork := started(t, o)
	id, err := fork.Send(t.Context(), turnwright.Input{Text: "two"})
	if err != nil {
		t.Fatal(err)
	}
	nextResult(t, fork)
	sameTree(t, o.CWD, map[string]string{"a.txt": "fork\n"})
	if _, err := fork.RewindFiles(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	sameTree(t, o.CWD, map[string]string{"a.txt": "source\n"})
	if entries, err := os.ReadDir(history); err != nil || len(entries) != 1 || entries[0].Name() != fork.ID() {
		t.Errorf("histories: %v, %v", entries, err)
	}
}

// TestRewindDuringTurn goes back while a call runs, and has a message that was
// absorbed into the turn as a checkpoint of its own.
func TestRewindDuringTurn(t *testing.T) {
	conform.Covers(t, "S-111", "S-117")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Write", `{"file_path":"a.txt","content":"1\n"}`),
		agenttest.Call("meanwhile", `{}`),
		agenttest.Call("Write", `{"file_path":"a.txt","content":"2\n"}`),
		agenttest.Call("meanwhile", `{}`),
		agenttest.Text("Done."),
	))
	o := checkpointed(t, srv)
	o.Steer = true
	var s *turnwright.Session
	var first, second string
	calls := 0
	back := func(id, want string) {
		t.Helper()
		if res, err := s.RewindFiles(t.Context(), id, false); err != nil || !res.CanRewind {
			t.Errorf("%+v, %v", res, err)
		}
		if got := tree(t, o.CWD)["a.txt"]; got != want {
			t.Errorf("a.txt has %q, want %q", got, want)
		}
	}
	o.CustomTools = []turnwright.Tool{turnwright.NewTool("meanwhile", "Meanwhile.", func(ctx context.Context, _ struct{}) (string, error) {
		if calls++; calls == 1 {
			var err error
			second, err = s.Send(ctx, turnwright.Input{Text: "go on"})
			return "", err
		}
		back(second, "1\n")
		back(first, "")
		back(second, "1\n")
		return "", nil
	})}
	o.AllowedTools = append(o.AllowedTools, "meanwhile")
	s = started(t, o)
	var err error
	if first, err = s.Send(t.Context(), turnwright.Input{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	nextResult(t, s)
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
	back(first, "")
}

// TestCheckpointsOff says what switches file checkpoints on and off, and where
// nothing is kept.
func TestCheckpointsOff(t *testing.T) {
	conform.Covers(t, "O-65", "S-118", "S-121", "K-227", "S-25")
	for name, c := range map[string]struct {
		change func(*turnwright.Options)
		on     bool
		warns  string
	}{
		"default":  {func(o *turnwright.Options) { o.EnableFileCheckpointing = false }, false, ""},
		"option":   {func(*turnwright.Options) {}, true, ""},
		"variable": {func(o *turnwright.Options) { o.EnableFileCheckpointing = false; set(o, "ENABLE_SDK", "true") }, true, ""},
		"disabled": {func(o *turnwright.Options) { set(o, "DISABLE", "1") }, false, "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING is set"},
		"setting":  {func(o *turnwright.Options) { o.Settings = `{"fileCheckpointingEnabled":false}` }, false, "fileCheckpointingEnabled is false"},
		"allowed":  {func(o *turnwright.Options) { o.Settings = `{"fileCheckpointingEnabled":true}` }, true, ""},
		"set only": {func(o *turnwright.Options) {
			o.EnableFileCheckpointing, o.Settings = false, `{"fileCheckpointingEnabled":true}`
		}, false, ""},
		"kept nowhere": {func(o *turnwright.Options) { o.NoSessionPersistence = true }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Script(
				agenttest.Call("Write", `{"file_path":"a.txt","content":"a\n"}`), agenttest.Text("Done."),
			))
			o := checkpointed(t, srv)
			var mu sync.Mutex
			var lines []string
			o.Stderr = func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			}
			c.change(&o)
			s := started(t, o)
			id, err := s.Send(t.Context(), turnwright.Input{Text: "go"})
			if err != nil {
				t.Fatal(err)
			}
			nextResult(t, s)
			dry, dryErr := s.RewindFiles(t.Context(), id, true)
			res, err := s.RewindFiles(t.Context(), id, false)
			left := map[string]string{"a.txt": "a\n"}
			if c.on {
				if err != nil || dryErr != nil || !res.CanRewind || !dry.CanRewind || len(res.FilesChanged) != 1 {
					t.Errorf("%+v, %v; dry: %+v, %v", res, err, dry, dryErr)
				}
				left = nil
			} else if !errors.Is(err, turnwright.ErrRewindDisabled) || err.Error() != "File rewinding is not enabled" ||
				res.CanRewind || res.Error != err.Error() || dryErr != nil || dry.CanRewind || dry.Error != res.Error {
				t.Errorf("%+v, %v; dry: %+v, %v", res, err, dry, dryErr)
			}
			sameTree(t, o.CWD, left)
			_, err = os.Stat(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "file-history"))
			if kept := c.on && !o.NoSessionPersistence; kept != (err == nil) {
				t.Errorf("file-history: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if told := strings.Join(lines, "\n"); c.warns == "" && told != "" || !strings.Contains(told, c.warns) {
				t.Errorf("told: %q", told)
			}
		})
	}
}

// set sets a variable about checkpoints.
func set(o *turnwright.Options, which, value string) {
	o.Env["CLAUDE_CODE_"+which+"_FILE_CHECKPOINTING"] = value
}

// TestCheckpointsUnsaved edits files whose state cannot be saved, with one
// warning; with Durability Strict it leaves them as they are.
func TestCheckpointsUnsaved(t *testing.T) {
	conform.Covers(t, "S-109")
	for _, strict := range []bool{false, true} {
		srv := agenttest.NewServer(t, agenttest.Script(
			agenttest.Call("Write", `{"file_path":"a.txt","content":"a\n"}`),
			agenttest.Call("Write", `{"file_path":"b.txt","content":"b\n"}`),
			agenttest.Text("Done."),
		))
		o := checkpointed(t, srv)
		var mu sync.Mutex
		var lines []string
		o.Stderr = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}
		// A file where the directory should be.
		writeFile(t, o.Env["CLAUDE_CONFIG_DIR"], "file-history", "")
		want := map[string]string{"a.txt": "a\n", "b.txt": "b\n"}
		if strict {
			o.Durability, want = turnwright.Strict, nil
		}
		s := started(t, o, "go")
		sameTree(t, o.CWD, want)
		last := said(srv.Requests()[2])
		if told := strings.Contains(last, "b.txt was left as it is: its state could not be saved"); told != strict {
			t.Errorf("strict %t: the model sees %s", strict, last)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if len(lines) != 1 || !strings.Contains(lines[0], "File checkpoints of session "+s.ID()+" could not be saved") {
			t.Errorf("told: %q", lines)
		}
		mu.Unlock()
	}
}

// TestRewindOldSession finds no checkpoint of what was said while they were off.
func TestRewindOldSession(t *testing.T) {
	conform.Covers(t, "S-117", "S-118")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Write", `{"file_path":"a.txt","content":"a\n"}`), agenttest.Text("Done."),
	))
	o := checkpointed(t, srv)
	o.EnableFileCheckpointing = false
	s := started(t, o)
	id, err := s.Send(t.Context(), turnwright.Input{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	nextResult(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.EnableFileCheckpointing, o.Resume = true, s.ID()
	again := started(t, o)
	for _, id := range []string{id, "no uuid", ""} {
		if res, err := again.RewindFiles(t.Context(), id, false); !errors.Is(err, turnwright.ErrNoCheckpoint) || res.CanRewind {
			t.Errorf("%q: %+v, %v", id, res, err)
		}
	}
	sameTree(t, o.CWD, map[string]string{"a.txt": "a\n"})
	if _, err := os.Stat(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "file-history")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("asking left something: %v", err)
	}
}

// watchedStore calls append before lines are written.
type watchedStore struct {
	session.Store
	append func(lines [][]byte)
}

func (w *watchedStore) Open(ctx context.Context, id string, o session.OpenOptions) (session.Journal, error) {
	j, err := w.Store.Open(ctx, id, o)
	return &watchedJournal{j, w.append}, err
}

type watchedJournal struct {
	session.Journal
	append func(lines [][]byte)
}

func (w *watchedJournal) Append(ctx context.Context, lines [][]byte, sync bool) error {
	w.append(lines)
	return w.Journal.Append(ctx, lines, sync)
}

// TestCheckpointBeforeRecord has the checkpoint of a message before the message
// is in the transcript, and the first state of a file before the model is told
// of its change: what a crash leaves can be put back.
func TestCheckpointBeforeRecord(t *testing.T) {
	conform.Covers(t, "S-109", "S-111", "S-117")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Write", `{"file_path":"a.txt","content":"a\n"}`), agenttest.Text("Done."),
	))
	o := checkpointed(t, srv)
	var index string
	const id = "6f2c0000-0000-4000-8000-000000000001"
	messages, results := 0, 0
	o.Store = &watchedStore{session.NewMemory(), func(lines [][]byte) {
		kept, err := os.ReadFile(index)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		for _, l := range lines {
			if !bytes.Contains(l, []byte(`"type":"user"`)) {
				continue
			}
			what := id
			if bytes.Contains(l, []byte(`"tool_result"`)) {
				results++
				what = "a.txt"
			} else {
				messages++
			}
			if !bytes.Contains(kept, []byte(what)) {
				t.Errorf("%s is not in the index before %s", what, l)
			}
		}
	}}
	s := started(t, o)
	index = filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "file-history", s.ID(), "checkpoints.jsonl")
	if _, err := s.Send(t.Context(), turnwright.Input{Text: "go", UUID: id}); err != nil {
		t.Fatal(err)
	}
	nextResult(t, s)
	if messages != 1 || results != 1 {
		t.Errorf("%d messages and %d results were written", messages, results)
	}
}
