package turnwright_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// put writes a file below dir.
func putIn(t testing.TB, dir, path, text string) {
	t.Helper()
	put(t, filepath.Join(dir, filepath.FromSlash(path)), text)
}

// raws are the messages of a request as they were sent, without cache marks.
func raws(r *agenttest.Request) (all []string) {
	for _, m := range r.Messages() {
		text := m.Role
		for _, b := range m.Content {
			raw := string(b.Raw)
			if b.Cache != nil {
				raw = strings.Replace(raw, `,"cache_control":`+string(b.Cache), "", 1)
			}
			text += " " + raw
		}
		all = append(all, text)
	}
	return all
}

// TestInstructionsInEveryRequest finds the instruction files ahead of the first
// prompt of every request, whatever the system prompt is: not in it, not in the
// stream and not in the session.
func TestInstructionsInEveryRequest(t *testing.T) {
	conform.Covers(t, "C-52", "C-53", "L-164", "O-21")
	for _, prompt := range []*turnwright.SystemPrompt{nil, {Coding: true}, {Text: new("mine")}, {Text: new("")}} {
		turn := []agenttest.Step{
			agenttest.Call("Read", `{"file_path":"f.txt"}`),
			agenttest.Blocks(agenttest.Call("Read", `{"file_path":"f.txt"}`), agenttest.Call("Glob", `{"pattern":"*"}`)),
			agenttest.Text("done"),
		}
		srv := agenttest.NewServer(t, agenttest.Script(append(turn, turn...)...))
		o := base(t, srv)
		o.SystemPrompt, o.Store = prompt, nil
		putIn(t, o.CWD, "CLAUDE.md", "Indent with tabs, says the project.")
		putIn(t, o.Env["CLAUDE_CONFIG_DIR"], "CLAUDE.md", "Answer in verse, says the user.")
		putIn(t, o.CWD, "f.txt", "text")
		var stream []string
		for range 2 {
			out := query(t, "the prompt", o)
			if out.err != nil {
				t.Fatal(out.err)
			}
			for _, m := range out.messages {
				stream = append(stream, fmt.Sprintf("%+v", m))
			}
			o.Resume = out.result.SessionID
		}
		if srv.Count() != 6 {
			t.Fatalf("%d requests", srv.Count())
		}
		first := ""
		for i, r := range srv.Requests() {
			head := r.Messages()[0]
			text := head.Content[0].Text
			user, project := strings.Index(text, "Answer in verse"), strings.Index(text, "Indent with tabs")
			if len(head.Content) != 2 || user < 0 || project < user || head.Content[1].Text != "the prompt" {
				t.Fatalf("request %d begins with %+v", i, head)
			}
			if strings.Count(string(r.Body), "Indent with tabs") != 1 || strings.Contains(r.SystemText(), "Answer in verse") {
				t.Errorf("request %d has them more than once: %s", i, r.Body)
			}
			if first == "" {
				first = raws(r)[0]
			}
			if got := raws(r)[0]; got != first {
				t.Errorf("request %d begins with %s, the first one with %s", i, got, first)
			}
			if i > 0 {
				if before := raws(srv.Requests()[i-1]); !slices.Equal(raws(r)[:len(before)], before) {
					t.Errorf("request %d does not begin with the one before it", i)
				}
			}
			if i > 1 && head.Content[0].Cache == nil {
				t.Errorf("request %d has no cache mark behind the instructions", i)
			}
		}
		kept := ""
		files, _ := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", "*", "*.jsonl"))
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			kept += string(raw)
		}
		if !strings.Contains(kept, "the prompt") || strings.Contains(kept, "Indent with tabs") || strings.Contains(strings.Join(stream, ""), "Indent with tabs") {
			t.Error("the instructions are in the session or in the stream")
		}
	}
}

// TestInstructionsStay keeps what was read at the start, to the end of the
// session; the next one, and one that goes on, read the files again.
func TestInstructionsStay(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
	o := base(t, srv)
	putIn(t, o.CWD, "CLAUDE.md", "the old text")
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		res, err := s.Ask(t.Context(), "go")
		if err != nil {
			t.Fatal(err)
		}
		o.Resume = res.SessionID
		if !strings.Contains(srv.Last().FirstUserText(), "the old text") {
			t.Errorf("%q", srv.Last().FirstUserText())
		}
		putIn(t, o.CWD, "CLAUDE.md", "the new text")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out := query(t, "go on", o); out.err != nil {
		t.Fatal(out.err)
	}
	if text := srv.Last().FirstUserText(); !strings.Contains(text, "the new text") || strings.Contains(text, "the old text") {
		t.Errorf("a session that goes on: %q", text)
	}
}

// TestInstructionsOfSubdirectories come with the result of Read, and of nothing
// else, after the results of all calls of the response and once; what was sent
// before stays as it was.
func TestInstructionsOfSubdirectories(t *testing.T) {
	changesJournals(t)
	conform.Covers(t, "C-44", "C-60")
	script := []agenttest.Step{
		agenttest.Call("Bash", `{"command":"cat sub/f.go"}`),
		agenttest.Call("Grep", `{"pattern":"package","path":"sub/f.go","output_mode":"content"}`),
		agenttest.Call("Read", `{"file_path":"sub/none.go"}`),
		agenttest.Call("Write", `{"file_path":"sub/new.go","content":"package sub\n"}`),
		agenttest.Blocks(agenttest.Call("Read", `{"file_path":"sub/f.go"}`), agenttest.Call("Read", `{"file_path":"sub/g.go"}`)),
		agenttest.Call("Read", `{"file_path":"sub/g.go"}`),
		agenttest.Text("done"),
	}
	srv := agenttest.NewServer(t, agenttest.Script(script...))
	o := base(t, srv)
	o.Store, o.AllowedTools = nil, []string{"Bash", "Write"}
	putIn(t, o.CWD, "sub/CLAUDE.md", "Mind the sub, @more.md")
	putIn(t, o.CWD, "sub/more.md", "and more of it")
	putIn(t, o.CWD, ".claude/rules/go.md", "---\npaths: \"**/*.go\"\n---\nGo is formatted.")
	putIn(t, o.CWD, "sub/f.go", "package sub\n")
	putIn(t, o.CWD, "sub/g.go", "package sub // g\n")
	out := query(t, "go", o)
	if out.err != nil {
		t.Fatal(out.err)
	}
	for i, r := range srv.Requests() {
		text := r.UserText()
		has := strings.Contains(text, "Mind the sub") && strings.Contains(text, "and more of it") && strings.Contains(text, "Go is formatted")
		if has != (i == 5) || !has && strings.Contains(string(r.Body), "Mind the sub") != (i > 5) {
			t.Errorf("request %d: %s", i, raws(r)[len(r.Messages())-1])
		}
		if i == 5 {
			last := r.Messages()[len(r.Messages())-1]
			var types []string
			for _, b := range last.Content {
				types = append(types, b.Type)
			}
			if got := strings.Join(types, " "); got != "tool_result tool_result text" {
				t.Errorf("the message has %s", got)
			}
			if res := r.LastToolResults(); strings.Contains(res[0].Text+res[1].Text, "Mind the sub") {
				t.Errorf("the results were changed: %+v", res)
			}
		}
		if i > 0 {
			if before := raws(srv.Requests()[i-1]); !slices.Equal(raws(r)[:len(before)], before) {
				t.Errorf("request %d does not begin with the one before it", i)
			}
		}
	}
	for _, m := range out.messages {
		if u, ok := m.(*message.User); ok && (len(u.Message.Content.Blocks()) != 1 || len(u.ToolResults()) != 1) {
			t.Errorf("the stream has %+v", u)
		}
	}

	// A session that goes on has it in its history, and not twice; a fork too.
	for _, fork := range []bool{false, true} {
		again := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Read", `{"file_path":"sub/f.go","limit":1}`), agenttest.Text("done")))
		o.Env["ANTHROPIC_BASE_URL"] = again.URL()
		o.Resume, o.ForkSession = out.result.SessionID, fork
		if out := query(t, "again", o); out.err != nil {
			t.Fatal(out.err)
		}
		if n := strings.Count(string(again.Last().Body), "Mind the sub"); n != 1 || again.Count() != 2 {
			t.Errorf("fork %v: the text is there %d times", fork, n)
		}
	}

	// After a compaction, which another program made, it comes again.
	files, _ := filepath.Glob(filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "projects", "*", out.result.SessionID+".jsonl"))
	if len(files) != 1 {
		t.Fatalf("sessions: %q", files)
	}
	f, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, `{"type":"system","subtype":"compact_boundary","uuid":"00000000-0000-4000-8000-000000000001","parentUuid":null,"sessionId":%q,"compactMetadata":{"trigger":"manual","preTokens":1}}
{"type":"user","uuid":"00000000-0000-4000-8000-000000000002","parentUuid":"00000000-0000-4000-8000-000000000001","sessionId":%q,"isCompactSummary":true,"message":{"role":"user","content":"It went well."}}
`, out.result.SessionID, out.result.SessionID)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, fork := range []bool{true, false} {
		again := agenttest.NewServer(t, agenttest.Script(agenttest.Call("Read", `{"file_path":"sub/f.go"}`), agenttest.Text("done")))
		o.Env["ANTHROPIC_BASE_URL"] = again.URL()
		o.ForkSession = fork
		if out := query(t, "again", o); out.err != nil {
			t.Fatal(out.err)
		}
		if !strings.Contains(again.Last().UserText(), "Mind the sub") || strings.Contains(string(again.Requests()[0].Body), "Mind the sub") {
			t.Errorf("fork %v, after the compaction: %q", fork, raws(again.Last()))
		}
	}
}

// TestInstructionsInTheLinkedDirectory reads a file by a name that a link leads
// through; the session's directory is known without links.
func TestInstructionsInTheLinkedDirectory(t *testing.T) {
	srv := agenttest.NewServer(t)
	o := base(t, srv)
	putIn(t, o.CWD, "sub/CLAUDE.md", "Mind the sub")
	putIn(t, o.CWD, "sub/f.txt", "text")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(o.CWD, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	srv = agenttest.NewServer(t, agenttest.Script(agenttest.Call("Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(link, "sub", "f.txt"))), agenttest.Text("done")))
	o.Env["ANTHROPIC_BASE_URL"], o.AllowedTools = srv.URL(), []string{"Read"}
	if out := query(t, "go", o); out.err != nil {
		t.Fatal(out.err)
	}
	if !strings.Contains(srv.Last().UserText(), "Mind the sub") {
		t.Errorf("%q", raws(srv.Last()))
	}
}

// TestInstructionsSwitchedOff loads none in bare mode and where the variable
// says so, keeps what a deny rule covers from the model, and reads added
// directories only where that is asked for.
func TestInstructionsSwitchedOff(t *testing.T) {
	conform.Covers(t, "C-55", "C-56")
	all := "root user local"
	for name, tt := range map[string]struct {
		set  func(o *turnwright.Options, added string)
		want string
	}{
		"default":  {func(*turnwright.Options, string) {}, all},
		"bare":     {func(o *turnwright.Options, _ string) { o.Bare = true }, ""},
		"simple":   {func(o *turnwright.Options, _ string) { o.Env["CLAUDE_CODE_SIMPLE"] = "1" }, ""},
		"variable": {func(o *turnwright.Options, _ string) { o.Env["CLAUDE_CODE_DISABLE_CLAUDE_MDS"] = "1" }, ""},
		"off":      {func(o *turnwright.Options, _ string) { o.Env["CLAUDE_CODE_DISABLE_CLAUDE_MDS"] = "0" }, all},
		"denied":   {func(o *turnwright.Options, _ string) { o.DisallowedTools = []string{"Read(CLAUDE.md)"} }, "user local"},
		"no Read":  {func(o *turnwright.Options, _ string) { o.DisallowedTools = []string{"Read"} }, all},
		"no Read, and denied": {func(o *turnwright.Options, _ string) {
			o.DisallowedTools = []string{"Read", "Read(CLAUDE.local.md)"}
		}, "root user"},
		"added": {func(o *turnwright.Options, added string) { o.AddDirs = []string{added} }, all},
		"added, asked": {func(o *turnwright.Options, added string) {
			o.AddDirs, o.Env["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] = []string{added}, "1"
		}, all + " added"},
		"asked": {func(o *turnwright.Options, _ string) { o.Env["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] = "1" }, all},
	} {
		added := t.TempDir()
		putIn(t, added, "CLAUDE.md", "says added")
		r := request(t, func(o *turnwright.Options) {
			putIn(t, o.CWD, "CLAUDE.md", "says root")
			putIn(t, o.CWD, "CLAUDE.local.md", "says local")
			putIn(t, o.Env["CLAUDE_CONFIG_DIR"], "CLAUDE.md", "says user")
			tt.set(o, added)
		})
		var got []string
		for _, who := range []string{"root", "user", "local", "added"} {
			if strings.Contains(string(r.Body), "says "+who) {
				got = append(got, who)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q are loaded, want %q", name, got, tt.want)
		}
	}
}

// TestInstructionsInTheLog warns of a file that cannot be used and writes to the
// debug log what was left out on purpose.
func TestInstructionsInTheLog(t *testing.T) {
	conform.Covers(t, "C-47", "C-50")
	var lines []string
	log := filepath.Join(t.TempDir(), "log")
	outside := t.TempDir()
	putIn(t, outside, "x.md", "says outside")
	r := request(t, func(o *turnwright.Options) {
		o.Stderr, o.DebugFile = func(line string) { lines = append(lines, line) }, log
		putIn(t, o.CWD, "CLAUDE.md", "Import @"+filepath.ToSlash(filepath.Join(outside, "x.md")))
		putIn(t, o.CWD, "CLAUDE.local.md", strings.Repeat("x", 4<<20+1))
	})
	if strings.Contains(string(r.Body), "says outside") || strings.Contains(string(r.Body), "xxxx") || !strings.Contains(r.FirstUserText(), "Import @") {
		t.Errorf("%.1000s", r.Body)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "CLAUDE.local.md") {
		t.Errorf("warned %q", lines)
	}
	text, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "[instructions]") || !strings.Contains(string(text), "x.md is not imported") {
		t.Errorf("%v, the log has no line: %.2000s", err, text)
	}
}
