package turnwright_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// putSession writes a transcript into the project of dir and gives it an age.
func putSession(t *testing.T, home, dir, id string, age time.Duration, lines ...string) string {
	t.Helper()
	path := filepath.Join(home, "projects", file.ProjectName(dir), id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, l := range lines {
		text += l + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age).Truncate(time.Second)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return path
}

// sid is the n-th id of a test.
func sid(n int) string { return fmt.Sprintf("5e550000-0000-4000-8000-%012d", n) }

// said1 is a user line, with members in front.
func said1(id, dir, text string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"u-%s","parentUuid":null,"sessionId":%q,"timestamp":"2026-01-02T03:04:05.678Z","cwd":%q,"message":{"role":"user","content":%q}}`, id, id, dir, text)
}

func listed(t *testing.T, s turnwright.Sessions, page turnwright.Page) (ids []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), page) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.SessionID)
	}
	return ids
}

func TestListSessions(t *testing.T) {
	conform.Covers(t, "S-69", "S-70", "S-71", "S-72", "K-347", "K-354", "K-355", "K-341", "K-342", "K-346")
	home, dir, other := t.TempDir(), t.TempDir(), t.TempDir()
	for _, d := range []*string{&dir, &other} {
		if real, err := filepath.EvalSymlinks(*d); err == nil {
			*d = real
		}
	}
	s := turnwright.Sessions{ConfigDir: home}
	if got := listed(t, s, turnwright.Page{}); got != nil {
		t.Fatalf("an empty home has %q", got)
	}
	branch := func(id, name string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"a-%s","parentUuid":"u-%s","gitBranch":%q,"message":{"role":"assistant","content":[]}}`, id, id, name)
	}
	putSession(t, home, dir, sid(1), 3*time.Hour, said1(sid(1), dir, "first\nprompt"), branch(sid(1), "main"),
		`{"type":"custom-title","customTitle":"a title","sessionId":"x"}`, `{"type":"tag","tag":"blue","sessionId":"x"}`)
	putSession(t, home, dir, sid(2), 2*time.Hour, said1(sid(2), dir, "second"), `{"type":"last-prompt","lastPrompt":"the last one","sessionId":"x"}`)
	putSession(t, home, dir, sid(3), time.Hour, said1(sid(3), dir, "third"), `{"type":"summary","summary":"a summary"}`)
	putSession(t, home, other, sid(4), 30*time.Minute, said1(sid(4), other, "fourth"))
	// None of these is listed.
	putSession(t, home, dir, sid(5), time.Minute)                                                                         // empty
	putSession(t, home, dir, sid(6), time.Minute, `{"type":"permission-mode","permissionMode":"plan"}`)                   // nothing to show
	putSession(t, home, dir, sid(7), time.Minute, `{"isSidechain":true,`+said1(sid(7), dir, "of a subagent")[1:])         // a subagent's
	putSession(t, home, dir, "agent-1", time.Minute, said1("agent-1", dir, "no session"))                                 // no UUID
	putSession(t, home, dir, strings.ToUpper("5e550000-0000-4000-8000-00000000000a"), time.Minute, said1("x", dir, "no")) // not ours (K-282)
	if err := os.Mkdir(filepath.Join(home, "projects", file.ProjectName(dir), sid(8)+".jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	unreadable := putSession(t, home, dir, sid(9), time.Minute, said1(sid(9), dir, "unreadable"))
	if err := os.Chmod(unreadable, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{sid(4), sid(3), sid(2), sid(1)}
	if os.Geteuid() == 0 { // who may read everything
		want = append([]string{sid(9)}, want...)
	}
	if got := listed(t, s, turnwright.Page{}); !slices.Equal(got, want) {
		t.Errorf("all: %q, want %q", got, want)
	}
	if err := os.Remove(unreadable); err != nil {
		t.Fatal(err)
	}
	here := s
	here.Dir = dir
	if got := listed(t, here, turnwright.Page{}); !slices.Equal(got, []string{sid(3), sid(2), sid(1)}) {
		t.Errorf("of the directory: %q", got)
	}
	if got := listed(t, here, turnwright.Page{Offset: 1, Limit: 1}); !slices.Equal(got, []string{sid(2)}) {
		t.Errorf("the second: %q", got)
	}
	if got := listed(t, here, turnwright.Page{Offset: 5}); got != nil {
		t.Errorf("beyond the end: %q", got)
	}
	for _, bad := range []turnwright.Page{{Offset: -1}, {Limit: -1}} {
		for _, err := range s.List(t.Context(), bad) {
			if invalid := (*turnwright.OptionError)(nil); !errors.As(err, &invalid) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	}
	infos := map[string]turnwright.SessionInfo{}
	for info, err := range here.List(t.Context(), turnwright.Page{}) {
		if err != nil {
			t.Fatal(err)
		}
		infos[info.SessionID] = info
	}
	one := infos[sid(1)]
	created := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	if one.Summary != "a title" || one.CustomTitle != "a title" || one.FirstPrompt != "first prompt" || one.Tag != "blue" ||
		one.GitBranch != "main" || one.CWD != dir || !one.CreatedAt.Equal(created) || one.FileSize == 0 ||
		time.Since(one.LastModified).Round(time.Minute) != 3*time.Hour {
		t.Errorf("%+v", one)
	}
	if infos[sid(2)].Summary != "the last one" || infos[sid(3)].Summary != "a summary" {
		t.Errorf("summaries %q and %q", infos[sid(2)].Summary, infos[sid(3)].Summary)
	}
	// The same id in two projects appears once, the newest.
	putSession(t, home, other, sid(3), 0, said1(sid(3), other, "a copy"))
	if got := listed(t, s, turnwright.Page{}); !slices.Equal(got, []string{sid(3), sid(4), sid(2), sid(1)}) {
		t.Errorf("with a copy: %q", got)
	}
}

func TestListSessionsOfWorktrees(t *testing.T) {
	conform.Covers(t, "S-69", "K-355")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	home, repo := t.TempDir(), filepath.Join(t.TempDir(), "repo")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "x")
	tree := filepath.Join(filepath.Dir(repo), "tree")
	git("worktree", "add", "-q", tree)
	putSession(t, home, repo, sid(1), time.Hour, said1(sid(1), repo, "one"))
	putSession(t, home, tree, sid(2), 0, said1(sid(2), tree, "two"))
	putSession(t, home, t.TempDir(), sid(3), 0, said1(sid(3), "/elsewhere", "three"))
	s := turnwright.Sessions{ConfigDir: home, Dir: repo}
	if got := listed(t, s, turnwright.Page{}); !slices.Equal(got, []string{sid(2), sid(1)}) {
		t.Errorf("with worktrees: %q", got)
	}
	if info, err := s.Info(t.Context(), sid(2)); err != nil || info == nil {
		t.Errorf("of the other worktree: %+v, %v", info, err)
	}
	if info, err := s.Info(t.Context(), sid(3)); err != nil || info != nil {
		t.Errorf("of another project: %+v, %v", info, err)
	}
	s.OwnWorktree = true
	if got := listed(t, s, turnwright.Page{}); !slices.Equal(got, []string{sid(1)}) {
		t.Errorf("without: %q", got)
	}
}

func TestSessionInfo(t *testing.T) {
	conform.Covers(t, "S-76", "S-77", "S-73")
	home, dir := t.TempDir(), t.TempDir()
	putSession(t, home, dir, sid(1), time.Hour, said1(sid(1), dir, "one"))
	s := turnwright.Sessions{ConfigDir: home, Dir: dir}
	for _, id := range []string{sid(2), "../" + sid(1), "x", ""} {
		if info, err := s.Info(t.Context(), id); info != nil || err != nil {
			t.Errorf("%q: %+v, %v", id, info, err)
		}
		for m, err := range s.Messages(t.Context(), id, turnwright.Page{}) {
			t.Errorf("messages of %q: %+v, %v", id, m, err)
		}
	}
	// No other session of the directory is looked at.
	if err := os.Chmod(putSession(t, home, dir, sid(3), 0, "no JSON"), 0); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{sid(1), strings.ToUpper(sid(1))} {
		if info, err := s.Info(t.Context(), id); err != nil || info == nil || info.SessionID != sid(1) || info.Summary != "one" {
			t.Errorf("%s: %+v, %v", id, info, err)
		}
	}
	if err := s.Rename(t.Context(), sid(1), "  my title\n"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "projects", file.ProjectName(dir), sid(1)+".jsonl")
	for range 100 {
		appendLine(t, path, said1(sid(1), dir, strings.Repeat("x", 300)))
	}
	if info, err := s.Info(t.Context(), sid(1)); err != nil || info.CustomTitle != "my title" {
		t.Errorf("%+v, %v", info, err)
	}
}

// Sessions are renamed, tagged and deleted while another process has them open,
// as a store of its own stands for here.
func TestChangeOpenSessions(t *testing.T) {
	changesJournals(t)
	conform.Covers(t, "S-78", "S-79", "S-80", "S-84", "K-392", "K-390", "K-391", "K-393", "K-303")
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	ctx := t.Context()
	running, err := turnwright.NewSession(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if _, err := running.Ask(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	id := running.ID()
	home := o.Env["CLAUDE_CONFIG_DIR"]
	path := transcript(t, o, id)
	holder, err := file.New(file.Config{ConfigDir: home})
	if err != nil {
		t.Fatal(err)
	}
	hold := func() session.Journal {
		t.Helper()
		j, err := holder.Open(ctx, id, session.OpenOptions{Dir: o.CWD, Wait: time.Minute}) // the run gives it back after its result
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	s := turnwright.Sessions{ConfigDir: home, Dir: o.CWD}
	held := hold()
	if err := s.Rename(ctx, id, "first"); err != nil {
		t.Error(err)
	}
	if err := s.Rename(ctx, id, " the \x1b parser "); err != nil {
		t.Error(err)
	}
	if err := s.Tag(ctx, id, "\u200b bl\u202eue ﬁve\n"); err != nil {
		t.Error(err)
	}
	info, err := s.Info(ctx, id)
	if err != nil || info.CustomTitle != "the   parser" || info.Tag != "blue five" || info.Summary != "the   parser" {
		t.Errorf("%+v, %v", info, err)
	}
	raw := read(t, path)
	for _, line := range []string{`{"type":"custom-title","customTitle":"first","sessionId":"` + id + `"}`, `{"type":"tag","tag":"blue five","sessionId":"` + id + `"}`} {
		if !bytes.Contains(raw, []byte("\n"+line+"\n")) {
			t.Errorf("no line %s", line)
		}
	}
	if err := s.Untag(ctx, id); err != nil {
		t.Error(err)
	}
	if info, err := s.Info(ctx, id); err != nil || info.Tag != "" || info.CustomTitle != "the   parser" {
		t.Errorf("%+v, %v", info, err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	// The running session goes on behind it.
	if _, err := running.Ask(ctx, "two"); err != nil || said(srv.Last()) != "user:one | assistant:hello | user:two" {
		t.Errorf("%v, the model is told %s", err, said(srv.Last()))
	}
	oneLine(t, read(t, path))

	// What cannot be.
	var noTitle *session.OptionError
	for _, blank := range []string{"", " \n", "\u200b\u2028"} {
		if err := s.Rename(ctx, id, blank); !errors.As(err, &noTitle) || noTitle.Field != "title" {
			t.Errorf("Rename(%q): %v", blank, err)
		}
		if err := s.Tag(ctx, id, blank); !errors.As(err, &noTitle) || noTitle.Field != "tag" {
			t.Errorf("Tag(%q): %v", blank, err)
		}
	}
	empty := putSession(t, home, o.CWD, sid(1), 0)
	elsewhere := turnwright.Sessions{ConfigDir: home, Dir: t.TempDir()}
	var none *turnwright.NoConversationError
	var noID *session.IDError
	for _, c := range []struct {
		s  turnwright.Sessions
		id string
	}{{s, sid(2)}, {s, sid(1)}, {elsewhere, id}} {
		for what, err := range map[string]error{
			"Rename": c.s.Rename(ctx, c.id, "x"), "Tag": c.s.Tag(ctx, c.id, "x"), "Untag": c.s.Untag(ctx, c.id), "Delete": c.s.Delete(ctx, c.id),
		} {
			if !errors.As(err, &none) || !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s(%s): %v", what, c.id, err)
			}
		}
	}
	for what, err := range map[string]error{
		"Rename": s.Rename(ctx, "../x", "x"), "Tag": s.Tag(ctx, "x", "x"), "Delete": s.Delete(ctx, ""),
	} {
		if !errors.As(err, &noID) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if raw := read(t, empty); len(raw) != 0 {
		t.Errorf("an empty file was written to: %q", raw)
	}

	// Deleting takes the session's own directory and nothing else.
	beside := filepath.Join(filepath.Dir(path), id)
	outside := filepath.Join(t.TempDir(), "kept.txt")
	for _, name := range []string{outside, filepath.Join(beside, "subagents", "agent-1.jsonl"), filepath.Join(beside, "tool-results", "out.txt"), beside + ".torn-1", filepath.Join(filepath.Dir(path), "notes.txt")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(beside, "link")); err != nil {
		t.Fatal(err)
	}
	kept := putSession(t, home, o.CWD, sid(3), 0, said1(sid(3), o.CWD, "another"))
	held = hold()
	if err := s.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if want := []string{empty, kept, filepath.Join(filepath.Dir(path), "notes.txt")}; err != nil || !slices.Equal(names, want) {
		t.Errorf("left are %q, want %q", names, want)
	}
	if raw := read(t, outside); string(raw) != "x" {
		t.Error("a link was followed")
	}
	// A process that has it open survives that and begins the file anew.
	if _, err := running.Ask(ctx, "three"); err != nil || said(srv.Last()) != "user:one | assistant:hello | user:two | assistant:hello | user:three" {
		t.Errorf("%v, the model is told %s", err, said(srv.Last()))
	}
	if raw := read(t, path); !bytes.Contains(raw, []byte("three")) {
		t.Error("the session is not kept any more")
	}
}

// messagesOf is what readers see of a session, in short.
func messagesOf(t *testing.T, s turnwright.Sessions, id string, page turnwright.Page) string {
	t.Helper()
	var out []string
	for m, err := range s.Messages(t.Context(), id, page) {
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Role    string
			Content json.RawMessage
		}
		if err := json.Unmarshal(m.Message, &body); err != nil || body.Role != m.Type || m.SessionID != id || m.ParentToolUseID != nil || m.ParentAgentID != nil {
			t.Errorf("%+v, %v", m, err)
		}
		var text string
		if json.Unmarshal(body.Content, &text) != nil {
			var blocks []struct{ Text string }
			if err := json.Unmarshal(body.Content, &blocks); err != nil {
				t.Fatal(err)
			}
			text = blocks[0].Text
		}
		out = append(out, m.UUID+":"+text)
	}
	return strings.Join(out, " ")
}

// node is a chain line with members of its own.
func node(id, typ, uuid, parent, text, more string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	content := fmt.Sprintf("%q", text)
	if typ == "assistant" {
		content = fmt.Sprintf(`[{"type":"text","text":%q}]`, text)
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":%q,"timestamp":"2026-01-02T03:04:05.678Z"%s,"message":{"role":%q,"content":%s}}`, typ, uuid, p, id, more, typ, content)
}

func TestSessionMessages(t *testing.T) {
	conform.Covers(t, "S-74", "S-75", "S-76", "K-372", "K-373", "K-377", "K-465", "K-370")
	home, dir := t.TempDir(), t.TempDir()
	s := turnwright.Sessions{ConfigDir: home, Dir: dir}
	id := sid(1)
	putSession(t, home, dir, id, 0,
		node(id, "user", "u1", "", "one", ""),
		node(id, "assistant", "a1", "u1", "left behind", ""),
		node(id, "assistant", "a2", "u1", "answer", ""),
		node(id, "user", "m1", "a2", "a reminder", `,"isMeta":true`),
		"no JSON",
		node(id, "user", "x1", "m1", "of a subagent", `,"isSidechain":true`),
		node(id, "user", "u2", "m1", "two", ""),
		`{"type":"tag","tag":"x","sessionId":"x"}`,
		node(id, "assistant", "a3", "u2", "end", ""),
		node(id, "assistant", "a3", "u2", "end, imported again", ""),
	)
	const all = "u1:one a2:answer u2:two a3:end"
	if got := messagesOf(t, s, id, turnwright.Page{}); got != all {
		t.Errorf("%s, want %s", got, all)
	}
	if got := messagesOf(t, s, id, turnwright.Page{Offset: 1, Limit: 2}); got != "a2:answer u2:two" {
		t.Errorf("the middle: %s", got)
	}
	putSession(t, home, dir, sid(2), 0,
		node(sid(2), "user", "u1", "", "one", ""),
		node(sid(2), "assistant", "a1", "u1", "answer", ""),
		`{"type":"system","subtype":"compact_boundary","uuid":"c1","parentUuid":null,"logicalParentUuid":"a1","compactMetadata":{"trigger":"auto","preTokens":9}}`,
		node(sid(2), "user", "s1", "c1", "what was said", `,"isCompactSummary":true`),
		node(sid(2), "assistant", "a2", "s1", "on", ""),
	)
	if got := messagesOf(t, s, sid(2), turnwright.Page{}); got != "s1:what was said a2:on" {
		t.Errorf("after a compaction: %s", got)
	}
	// A resume tells the model the same.
	srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hello")))
	o := onDisk(t, srv)
	o.Env["CLAUDE_CONFIG_DIR"], o.CWD = home, dir
	for id, want := range map[string]string{
		id:     "user:one | assistant:answer | user:a reminder | user:two | assistant:end | user:more",
		sid(2): "user:what was said | assistant:on | user:more",
	} {
		o.Resume = id
		if query(t, "more", o); said(srv.Last()) != want {
			t.Errorf("the model is told %s, want %s", said(srv.Last()), want)
		}
	}
}
