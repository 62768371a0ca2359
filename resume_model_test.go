package turnwright_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/model"
)

// A session goes on with its model (a part of S-40): the last one that was set in it, or where
// no line of ours says it the one that answered last. Whoever names a model
// gets that one.
func TestResumeKeepsModel(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	o.Model = ""
	var warned []string
	o.Stderr = func(line string) { warned = append(warned, line) }
	begin := func(model string) (id string) {
		t.Helper()
		fresh := o
		fresh.Model = model
		return query(t, "first", fresh).result.SessionID
	}
	goesOn := func(what, id, want string, set func(*turnwright.Options)) {
		t.Helper()
		again := o
		again.Resume = id
		if set != nil {
			set(&again)
		}
		if r := query(t, "more", again); r.err != nil || srv.Last().Model() != want {
			t.Errorf("%s: went on with %q, want %q (%v)", what, srv.Last().Model(), want, r.err)
		}
	}
	normal := model.DefaultCatalog().Resolve("sonnet")
	id := begin("claude-opus-4-5")
	goesOn("resumed", id, "claude-opus-4-5", nil)
	goesOn("another model named", id, "claude-haiku-4-5", func(o *turnwright.Options) { o.Model = "claude-haiku-4-5" })
	goesOn("after that", id, "claude-haiku-4-5", nil)
	goesOn("the variable", id, "some/model", func(o *turnwright.Options) { o.Env = with(o.Env, "ANTHROPIC_MODEL", "some/model") })
	goesOn("the default named", id, normal, func(o *turnwright.Options) { o.Model = "default" })
	goesOn("a fork", begin("claude-opus-4-5"), "claude-opus-4-5", func(o *turnwright.Options) { o.ForkSession = true })
	goesOn("continued", "", "claude-opus-4-5", func(o *turnwright.Options) { o.Continue = true })

	set := o
	set.Resume = begin("claude-opus-4-5")
	s, err := turnwright.NewSession(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetModel(t.Context(), "claude-haiku-4-5"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ask(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	goesOn("set meanwhile", set.Resume, "claude-haiku-4-5", nil)

	// A fork by a client has none of our own lines.
	id = begin("claude-opus-4-5")
	path := transcript(t, o, id)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []byte
	for line := range bytes.Lines(raw) {
		if !bytes.HasPrefix(line, []byte(`{"type":"turnwright"`)) {
			kept = append(kept, line...)
		}
	}
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	goesOn("without lines of ours", id, "claude-opus-4-5", nil)

	if strings.Contains(strings.Join(warned, "\n"), "retired") {
		t.Errorf("warned: %q", warned)
	}
	goesOn("retired", begin("claude-opus-4-1"), normal, nil)
	if !strings.Contains(strings.Join(warned, "\n"), `"claude-opus-4-1" is retired`) {
		t.Errorf("warned: %q", warned)
	}
}

// with is env and one variable more.
func with(env map[string]string, name, value string) map[string]string {
	more := map[string]string{name: value}
	for k, v := range env {
		if k != name {
			more[k] = v
		}
	}
	return more
}

// The permission mode stands in a line of its own, once for each change. A file
// may begin with one.
func TestPermissionModeLine(t *testing.T) {
	conform.Covers(t, "K-325")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	modes := func() (lines string) {
		t.Helper()
		raw, err := os.ReadFile(transcript(t, o, s.ID()))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, `{"type":"permission-mode"`) {
				lines += line
			}
		}
		return lines
	}
	line := func(mode string) string {
		return fmt.Sprintf(`{"type":"permission-mode","permissionMode":%q,"sessionId":%q}`+"\n", mode, s.ID())
	}
	ask := func(s *turnwright.Session) {
		t.Helper()
		if _, err := s.Ask(t.Context(), "hi"); err != nil {
			t.Fatal(err)
		}
	}
	ask(s)
	ask(s)
	if got := modes(); got != line("default") {
		t.Errorf("at the start: %s", got)
	}
	for _, mode := range []turnwright.PermissionMode{turnwright.ModePlan, turnwright.ModePlan} {
		if err := s.SetPermissionMode(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
	}
	ask(s)
	if got := modes(); got != line("default")+line("plan") {
		t.Errorf("after a change: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.Resume, o.PermissionMode, o.Model = s.ID(), turnwright.ModePlan, "claude-haiku-4-5"
	query(t, "more", o)
	if got := modes(); got != line("default")+line("plan") {
		t.Errorf("after a resume in the same mode: %s", got)
	}

	// One in front of everything else, as a client may write it.
	path := transcript(t, o, s.ID())
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte(`{"type":"permission-mode","permissionMode":"default","sessionId":"`+s.ID()+`"}`+"\n"), raw...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, o, s.ID()); got.FirstPrompt != "hi" || got.Created.IsZero() || got.CWD == "" {
		t.Errorf("listed as %+v", got)
	}
	if r := query(t, "and more", o); r.err != nil || !strings.HasPrefix(said(srv.Last()), "user:hi | assistant:hello") {
		t.Errorf("%v, the model is told %s", r.err, said(srv.Last()))
	}
}

// The branch stands in the lines as it is when the prompt comes, and a listing
// finds it.
func TestGitBranch(t *testing.T) {
	conform.Covers(t, "K-309", "K-346", "S-28")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(o.CWD, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := o.CWD
	branches := func(dir string, prompts ...func()) string {
		t.Helper()
		o := o
		o.CWD = filepath.Join(root, filepath.FromSlash(dir))
		s, err := turnwright.NewSession(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, change := range append([]func(){func() {}}, prompts...) {
			change()
			if _, err := s.Ask(t.Context(), "hi"); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := os.ReadFile(transcript(t, o, s.ID()))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(raw)) {
			if _, after, ok := strings.Cut(line, `"gitBranch":"`); ok {
				got = append(got, strings.SplitN(after, `"`, 2)[0])
			}
		}
		if n := len(got); n > 0 && ends(t, o, s.ID()).GitBranch != got[n-1] {
			t.Errorf("listed with %q", ends(t, o, s.ID()).GitBranch)
		}
		return strings.Join(got, " ")
	}
	if got := branches(""); got != "" {
		t.Errorf("outside a repository: %q", got)
	}
	write(".git/HEAD", "ref: refs/heads/feature/ä\n")
	write("deep/down/x", "")
	const head = "feature/ä feature/ä"
	if got := branches("deep/down"); got != head {
		t.Errorf("in a subdirectory: %q", got)
	}
	if got := branches("", func() { write(".git/HEAD", "ref: refs/heads/main\n") }); got != head+" main main" {
		t.Errorf("switched between two prompts: %q", got)
	}
	write(".git/HEAD", "0123456789abcdef0123456789abcdef01234567\n")
	if got := branches(""); got != "HEAD HEAD" {
		t.Errorf("detached: %q", got)
	}
	write(".git/worktrees/tree/HEAD", "ref: refs/heads/tree\n")
	write("tree/.git", "gitdir: ../.git/worktrees/tree\n")
	if got := branches("tree"); got != "tree tree" {
		t.Errorf("in a worktree: %q", got)
	}
	write("odd/.git", "no such thing")
	if got := branches("odd"); got != "" {
		t.Errorf("with an odd .git file: %q", got)
	}
}

// testContinueAdded goes on with a session of another directory that this one
// was added to, where that is wanted and nothing newer is here.
func testContinueAdded(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	there, here, link := o.CWD, t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(here, link); err != nil {
		t.Skip("no links: ", err)
	}
	ask := func(dir string, set func(*turnwright.Options)) (id string) {
		t.Helper()
		o := o
		o.CWD = dir
		set(&o)
		r := query(t, "hi", o)
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.result.SessionID
	}
	goOn := func(o *turnwright.Options) { o.Continue, o.ContinueAdded = true, true }
	plain := ask(there, func(*turnwright.Options) {})
	if got := ask(here, goOn); got == plain {
		t.Error("a session that added nothing is continued")
	}
	adds := ask(there, func(o *turnwright.Options) { o.AddDirs = []string{link} })
	if got := ask(here, func(o *turnwright.Options) { o.Continue = true }); got == adds {
		t.Error("it is continued without being asked for")
	}
	if raw, err := os.ReadFile(transcript(t, o, adds)); err != nil || strings.Count(string(raw), `"kind":"dirs"`) != 1 {
		t.Errorf("%v, the added directories are told of other than once", err)
	}
	// Added by a later run, and then pushed out of reach of what is read.
	later := ask(there, func(o *turnwright.Options) { o.Resume, o.AddDirs = plain, []string{here} })
	if got := ask(here, goOn); got != later || got != plain {
		t.Errorf("continued %s, want %s", got, plain)
	}
	long := agenttest.NewServer(t, agenttest.Forever(agenttest.Text(strings.Repeat("word ", 40_000))))
	for range 2 {
		ask(there, func(o *turnwright.Options) { o.Resume, o.Env = plain, with(o.Env, "ANTHROPIC_BASE_URL", long.URL()) })
	}
	if got := ask(here, goOn); got != plain {
		t.Errorf("behind long turns %s is continued, want %s", got, plain)
	}
	mine := ask(here, func(*turnwright.Options) {})
	if got := ask(here, goOn); got != mine {
		t.Error("a newer one of the directory itself is passed over")
	}
}
