package turnwright_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
)

// A branch of six turns behind one of two is what goes on, whatever a line of
// metadata at the end points at, and so it stays.
func TestResumeBranched(t *testing.T) {
	conform.Covers(t, "B-122", "K-465", "K-370")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := onDisk(t, srv)
	id := sid(1)
	var lines []string
	last := ""
	turn := func(branch string, n int) {
		u, a := fmt.Sprintf("u-%s%d", branch, n), fmt.Sprintf("a-%s%d", branch, n)
		lines = append(lines, node(id, "user", u, last, fmt.Sprintf("%s%d", branch, n), ""), node(id, "assistant", a, u, "re", ""))
		last = a
	}
	for n := 1; n <= 3; n++ {
		turn("t", n)
	}
	for _, branch := range []struct {
		name  string
		turns int
	}{{"A", 2}, {"B", 6}} {
		last = "a-t3"
		for n := range branch.turns {
			turn(branch.name, n+1)
		}
	}
	lines = append(lines, `{"type":"last-prompt","lastPrompt":"A2","leafUuid":"a-A2","sessionId":"`+id+`"}`, `{"type":"summary","summary":"A","leafUuid":"a-A2"}`)
	putSession(t, o.Env["CLAUDE_CONFIG_DIR"], o.CWD, id, time.Hour, lines...)
	want := "user:t1 | assistant:re | user:t2 | assistant:re | user:t3 | assistant:re"
	for n := 1; n <= 6; n++ {
		want += fmt.Sprintf(" | user:B%d | assistant:re", n)
	}
	o.Resume = id
	for _, prompt := range []string{"first", "second", "third"} {
		want += " | user:" + prompt
		if r := query(t, prompt, o); r.err != nil || said(srv.Last()) != want {
			t.Fatalf("%v, the model is told\n%s, want\n%s", r.err, said(srv.Last()), want)
		}
		want += " | assistant:ok"
	}
}

// The file's name says which session it is, whatever its lines say.
func TestResumeByName(t *testing.T) {
	conform.Covers(t, "B-123")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := onDisk(t, srv)
	home := o.Env["CLAUDE_CONFIG_DIR"]
	inner := sid(9)
	paths := map[string]string{}
	for n, text := range []string{"", "of one", "of two"} {
		if n > 0 {
			paths[text] = putSession(t, home, o.CWD, sid(n), time.Hour, node(inner, "user", "u", "", text, ""))
		}
	}
	for n, text := range []string{"", "of one", "of two"} {
		if n == 0 {
			continue
		}
		other := paths["of two"]
		if n == 2 {
			other = paths["of one"]
		}
		before := read(t, other)
		o.Resume = sid(n)
		r := query(t, "more", o)
		if r.err != nil || r.result.SessionID != sid(n) || !strings.HasPrefix(said(srv.Last()), "user:"+text) {
			t.Errorf("%v, %s, the model is told %s", r.err, r.result.SessionID, said(srv.Last()))
		}
		if raw := read(t, paths[text]); !bytes.Contains(raw, []byte(`"sessionId":"`+sid(n)+`"`)) {
			t.Error("the new lines do not carry the session's id")
		}
		if !bytes.Equal(before, read(t, other)) {
			t.Error("something was appended to the other file")
		}
	}
	o.Resume = inner
	var none *turnwright.NoConversationError
	if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &none) {
		t.Errorf("by the id in the lines: %v", err)
	}
}

// Directories whose paths give the same project name keep their sessions apart.
func TestDirectoriesOfOneName(t *testing.T) {
	conform.Covers(t, "B-124", "S-14")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := onDisk(t, srv)
	root := o.CWD
	long := filepath.Join(strings.Repeat("d", 100), strings.Repeat("e", 100), strings.Repeat("f", 100))
	dirs := []string{"data-analysis", "data/analysis", "data_analysis", "data.analysis", long, long + "g"}
	ids := map[string]string{}
	for _, dir := range dirs {
		o.CWD = filepath.Join(root, dir)
		if err := os.MkdirAll(o.CWD, 0o700); err != nil {
			t.Fatal(err)
		}
		ids[dir] = query(t, "in "+dir, o).result.SessionID
	}
	found, err := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", "*"))
	if err != nil || len(found) != 3 {
		t.Fatalf("project directories: %q, %v", found, err)
	}
	o.Continue = true
	for _, dir := range dirs {
		o.CWD = filepath.Join(root, dir)
		if got := listed(t, storedIn(o), turnwright.Page{}); !slices.Equal(got, []string{ids[dir]}) {
			t.Errorf("%s lists %q", dir, got)
		}
		if r := query(t, "on", o); r.result.SessionID != ids[dir] || said(srv.Last()) != "user:in "+dir+" | assistant:ok | user:on" {
			t.Errorf("%s continues %s: %s", dir, r.result.SessionID, said(srv.Last()))
		}
	}
	// A transcript that was moved here from elsewhere is listed all the same.
	o.CWD = filepath.Join(root, "data-analysis")
	putSession(t, o.Env["CLAUDE_CONFIG_DIR"], o.CWD, sid(1), -time.Minute, said1(sid(1), "/home/of/another/machine", "moved"))
	if got := listed(t, storedIn(o), turnwright.Page{}); !slices.Equal(got, []string{sid(1), ids["data-analysis"]}) {
		t.Errorf("with a moved one: %q", got)
	}
}

// Of an id that is there in two directories the own copy counts; from elsewhere
// it cannot be told.
func TestResumeTheOwnCopy(t *testing.T) {
	conform.Covers(t, "B-125", "S-36", "S-37")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	o := onDisk(t, srv)
	home := o.Env["CLAUDE_CONFIG_DIR"]
	dirs := map[string]string{"A": o.CWD, "B": t.TempDir(), "C": t.TempDir()}
	var a []string
	last := ""
	for n := 1; n <= 5; n++ {
		u := fmt.Sprintf("u%d", n)
		a = append(a, node(sid(1), "user", u, last, "A"+u, ""))
		last = u
	}
	putSession(t, home, dirs["A"], sid(1), time.Hour, a...)
	putSession(t, home, dirs["B"], sid(1), time.Hour, node(sid(1), "user", "v1", "", "B1", ""), node(sid(1), "user", "v2", "v1", "B2", ""))
	o.Resume = sid(1)
	for dir, want := range map[string]string{"A": "user:Au1 | user:Au2 | user:Au3 | user:Au4 | user:Au5 | user:more", "B": "user:B1 | user:B2 | user:more"} {
		o.CWD = dirs[dir]
		r := query(t, "more", o)
		got := strings.ReplaceAll(strings.ReplaceAll(said(srv.Last()), "\n", " | user:"), "| user:| user:", "| user:")
		if r.err != nil || got != want {
			t.Errorf("from %s: %v, the model is told %s", dir, r.err, got)
		}
	}
	asked := len(srv.Requests())
	o.CWD = dirs["C"]
	for _, id := range []string{sid(1), sid(2), "../" + sid(1), "../x", "/etc/passwd"} {
		o.Resume = id
		var none *turnwright.NoConversationError
		if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &none) || none.Value != id {
			t.Errorf("from C %q: %v", id, err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(home, "projects", "*", "*.jsonl")); err != nil || len(found) != 2 || len(srv.Requests()) != asked {
		t.Errorf("left are %q", found)
	}
}

// All results of parallel calls come back, each with its call.
func TestParallelResultsReload(t *testing.T) {
	conform.Covers(t, "S-29", "K-374")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Call("echo", `{"text":"1"}`), agenttest.Call("echo", `{"text":"2"}`), agenttest.Call("echo", `{"text":"3"}`), agenttest.Call("echo", `{"text":"4"}`)),
		agenttest.Text("done"), agenttest.Text("on")))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
	o.Resume = query(t, "one", o).result.SessionID
	if r := query(t, "two", o); r.err != nil || said(srv.Last()) != "user:one | call:echo | call:echo | call:echo | call:echo | result:1 | result:2 | result:3 | result:4 | assistant:done | user:two" {
		t.Errorf("%v, the model is told %s", r.err, said(srv.Last()))
	}
	m := srv.Last().Messages()
	for i, call := range m[1].Content {
		if result := m[2].Content[i]; call.ID == "" || result.ToolUseID != call.ID {
			t.Errorf("call %d is %s, its result is for %s", i, call.ID, result.ToolUseID)
		}
	}
}

// What a run was given does not come back with its session: directories,
// settings, and approvals for the session (S-42). Settings files are read anew.
func TestNotRestored(t *testing.T) {
	conform.Covers(t, "S-41", "S-42")
	more := t.TempDir()
	if err := os.WriteFile(filepath.Join(more, "f.txt"), []byte("in reach"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := agenttest.Call("Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(more, "f.txt")))
	srv := agenttest.NewServer(t, agenttest.Script(look, agenttest.Call("echo", `{"text":"1"}`), agenttest.Text("ok"),
		look, agenttest.Call("echo", `{"text":"2"}`), agenttest.Text("ok")))
	o := onDisk(t, srv)
	o.CustomTools = []turnwright.Tool{echo()}
	file := filepath.Join(o.CWD, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"permissions":{"deny":["Bash"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first := o
	first.AddDirs, first.Settings = []string{more}, `{"permissions":{"allow":["echo"]}}`
	r := query(t, "one", first)
	if got := said(srv.Last()); !strings.Contains(got, "in reach") || !strings.HasSuffix(got, "result:1") || slices.Contains(srv.Last().ToolNames(), "Bash") {
		t.Fatalf("the model is told %s, with %q", got, srv.Last().ToolNames())
	}
	if err := os.WriteFile(file, []byte(`{"permissions":{"deny":["Write"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Resume = r.result.SessionID
	query(t, "two", o)
	_, got, _ := strings.Cut(said(srv.Last()), "user:two")
	if strings.Contains(got, "in reach") || strings.Contains(got, "result:2") {
		t.Errorf("directory or rule came back: %s", got)
	}
	if names := srv.Last().ToolNames(); !slices.Contains(names, "Bash") || slices.Contains(names, "Write") {
		t.Errorf("settings are not those of the file: %q", names)
	}
}

// The recipe for many tenants: nothing of the machine's user is read, and
// nothing of one tenant is seen by another.
func TestTenants(t *testing.T) {
	conform.Covers(t, "S-124", "S-123")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("ok")))
	home := t.TempDir()
	for name, text := range map[string]string{
		".claude/settings.json": `{"model":"claude-opus-4-1","permissions":{"deny":["Bash"]}}`, ".claude/CLAUDE.md": "of the user",
		".claude/settings.local.json": `{"permissions":{"deny":["Bash"]}}`,
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]string{}
	tenants := map[string]turnwright.Options{}
	for _, name := range []string{"ann", "ben"} {
		o := onDisk(t, srv)
		o.Env["HOME"], o.Env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = home, "1"
		o.SettingSources = []string{}
		for path, text := range map[string]string{".claude/settings.json": `{"permissions":{"deny":["Bash"]}}`, "CLAUDE.md": "of the project"} {
			path = filepath.Join(o.CWD, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := query(t, "I am "+name, o)
		ids[name], tenants[name] = r.result.SessionID, o
		if last := srv.Last(); !slices.Contains(last.ToolNames(), "Bash") || strings.Contains(string(last.Body), "of the user") || strings.Contains(string(last.Body), "of the project") || last.Model() != "claude-sonnet-4-5" {
			t.Errorf("%s: settings or instructions were read: %s", name, last.Body)
		}
	}
	for name, o := range tenants {
		other := ids["ben"]
		if name == "ben" {
			other = ids["ann"]
		}
		if got := listed(t, turnwright.Sessions{ConfigDir: o.Env["CLAUDE_CONFIG_DIR"]}, turnwright.Page{}); !slices.Equal(got, []string{ids[name]}) {
			t.Errorf("%s sees %q", name, got)
		}
		o.Resume = other
		var none *turnwright.NoConversationError
		if _, err := turnwright.NewSession(t.Context(), o); !errors.As(err, &none) {
			t.Errorf("%s resumes the session of another: %v", name, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(home, ".claude", "*")); err != nil || len(left) != 3 {
		t.Errorf("the user's home has %q", left)
	}
}

func TestSearchSessions(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	s := turnwright.Sessions{ConfigDir: home, Dir: dir}
	long := strings.Repeat("before ", 50) + "The NEEDLE\nis here" + strings.Repeat(" after", 50)
	putSession(t, home, dir, sid(1), 3*time.Hour, said1(sid(1), dir, long), `{"type":"turnwright","kind":"input","input":"needle"}`)
	putSession(t, home, dir, sid(2), 2*time.Hour, said1(sid(2), dir, "two"),
		`{"type":"assistant","uuid":"a1","parentUuid":"u-`+sid(2)+`","message":{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"Bash","input":{"command":"grep \"needle\" 'größe'"}}]}}`,
		`{"type":"user","uuid":"r1","parentUuid":"a1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"a needle"}]}]}}`,
		`{"type":"custom-title","customTitle":"Needle work","sessionId":"x"}`, `{"type":"tag","tag":"needles","sessionId":"x"}`)
	putSession(t, home, dir, sid(3), time.Hour, said1(sid(3), dir, "hay"))
	putSession(t, home, t.TempDir(), sid(4), 0, said1(sid(4), "/elsewhere", "needle"))
	search := func(text string, o turnwright.SearchOptions) (got []string) {
		t.Helper()
		for f, err := range s.Search(t.Context(), text, o) {
			if err != nil {
				t.Fatal(err)
			}
			line := f.SessionID[35:]
			for _, p := range f.Places {
				line += " " + p.In + "=" + p.Text
			}
			got = append(got, line)
		}
		return got
	}
	snippet := "…" + strings.TrimSpace(strings.Repeat("before ", 50)[350-36:]) + " The NEEDLE is here"
	for _, c := range []struct {
		text string
		o    turnwright.SearchOptions
		want []string
	}{
		{"needle", turnwright.SearchOptions{Places: 9}, []string{`2 title=Needle work tag=needles assistant=Bash command grep "needle" 'größe' tool=a needle`, "1 user=" + snippet}},
		{"needle", turnwright.SearchOptions{Places: 1, Limit: 1}, []string{"2 title=Needle work"}},
		{"NEEDLE\" 'GRÖSSE", turnwright.SearchOptions{}, nil},
		{"NEEDLE\" 'GRÖß", turnwright.SearchOptions{}, []string{`2 assistant=Bash command grep "needle" 'größe'`}},
		{"n.edle", turnwright.SearchOptions{}, nil},
		{"hay", turnwright.SearchOptions{}, []string{"3 user=hay"}},
	} {
		got := search(c.text, c.o)
		for i := range got {
			if strings.HasPrefix(got[i], "1 ") && len(c.want) > i && strings.HasPrefix(got[i], c.want[i]) {
				got[i] = c.want[i] // what follows is cut
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q %+v:\n%q, want\n%q", c.text, c.o, got, c.want)
		}
	}
	for _, bad := range []struct {
		text string
		o    turnwright.SearchOptions
	}{{" ", turnwright.SearchOptions{}}, {"x", turnwright.SearchOptions{Limit: -1}}, {"x", turnwright.SearchOptions{Places: -1}}} {
		for _, err := range s.Search(t.Context(), bad.text, bad.o) {
			if invalid := (*turnwright.OptionError)(nil); !errors.As(err, &invalid) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for f, err := range s.Search(ended, "needle", turnwright.SearchOptions{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of its context: %+v, %v", f, err)
		}
	}
	// A store that cannot is told so.
	only := turnwright.Sessions{Store: struct{ session.Store }{session.NewMemory()}}
	for _, err := range only.Search(t.Context(), "x", turnwright.SearchOptions{}) {
		if invalid := (*turnwright.OptionError)(nil); !errors.As(err, &invalid) || invalid.Option != "Store" {
			t.Errorf("a store that is no Keeper: %v", err)
		}
	}
}

// A session loads without our own lines, and keeps what others put into it.
func TestForeignAndOwnLines(t *testing.T) {
	conform.Covers(t, "K-330", "K-331")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("echo", `{"text":"1"}`), agenttest.Text("one"), agenttest.Text("two"), agenttest.Text("three"), agenttest.Text("three")))
	o := onDisk(t, srv)
	o.CustomTools, o.AllowedTools = []turnwright.Tool{echo()}, []string{"echo"}
	id := query(t, "one", o).result.SessionID
	o.Resume = id
	query(t, "two", o)
	path := transcript(t, o, id)
	var whole, stripped []string
	for line := range bytes.Lines(read(t, path)) {
		text := strings.TrimSuffix(string(line), "\n")
		// Others put entries of their own between, and fields into ours.
		whole = append(whole, text[:len(text)-1]+`,"theirs":{"type":"user","uuid":"x"}}`,
			`{"type":"of-theirs","uuid":"`+sid(len(whole))+`","parentUuid":null,"message":{"role":"user","content":"no"}}`)
		if !strings.HasPrefix(text, `{"type":"turnwright"`) {
			stripped = append(stripped, text)
		}
	}
	if len(stripped)*2 >= len(whole) {
		t.Fatal("there are no own lines")
	}
	for name, lines := range map[string][]string{"stripped": stripped, "whole": whole} {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := read(t, path)
		r := query(t, "three", o)
		if r.err != nil || said(srv.Last()) != "user:one | call:echo | result:1 | assistant:one | user:two | assistant:two | user:three" {
			t.Errorf("%s: %v, the model is told %s", name, r.err, said(srv.Last()))
		}
		if !bytes.HasPrefix(read(t, path), before) {
			t.Errorf("%s: lines were changed", name)
		}
	}
}

// A fork works on the same files: what it changes is changed (S-58).
func TestForkChangesFiles(t *testing.T) {
	conform.Covers(t, "S-58", "S-57")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Write", `{"file_path":"a.txt","content":"of the source"}`), agenttest.Text("ok"),
		agenttest.Call("Write", `{"file_path":"a.txt","content":"of the fork"}`), agenttest.Text("ok")))
	o := onDisk(t, srv)
	o.AllowedTools = []string{"Write"}
	id := query(t, "one", o).result.SessionID
	before := read(t, transcript(t, o, id))
	o.Resume, o.ForkSession = id, true
	if r := query(t, "two", o); r.err != nil || string(read(t, filepath.Join(o.CWD, "a.txt"))) != "of the fork" {
		t.Errorf("%v, the file is %q", r.err, read(t, filepath.Join(o.CWD, "a.txt")))
	}
	if !bytes.Equal(before, read(t, transcript(t, o, id))) {
		t.Error("the source was changed")
	}
}
