package settings_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

const grants = `{"permissions":{"allow":["A","B"],"additionalDirectories":["/d"],"deny":["D"],"ask":["Q"]},"env":{"X":"1"},"hooks":{"Stop":[]}}`

func TestUntrusted(t *testing.T) {
	conform.Covers(t, "P-101", "P-102", "P-103", "C-38")
	p := newPlace(t)
	p.write("project", grants)
	p.write("user", `{"permissions":{"allow":["U"],"additionalDirectories":["/u"]}}`)
	check := func(name, global string, trusted bool) {
		t.Helper()
		if global != "" {
			p.write("global", global)
		}
		r, problems := p.open()
		s := r.Settings()
		if got := slices.Contains(rules(s, "allow"), "projectSettings A"); got != trusted {
			t.Errorf("%s: allow rules %q", name, rules(s, "allow"))
		}
		if got := len(s.Directories()) == 2; got != trusted {
			t.Errorf("%s: directories %v", name, s.Directories())
		}
		if strings.Contains(string(s.JSON()), `"A"`) != trusted {
			t.Errorf("%s: merged %s", name, s.JSON())
		}
		// What forbids, variables and hooks count in any case, and so does what the user allows.
		env, _ := s.Env()
		if rules(s, "deny") == nil || rules(s, "ask") == nil || env["X"] != "1" || len(s.Hooks(false)) != 1 || !slices.Contains(rules(s, "allow"), "userSettings U") {
			t.Errorf("%s: %s", name, s.JSON())
		}
		want := []string{
			"Ignoring 2 permissions.allow entries from <project>/.claude/settings.json: this workspace has not been trusted. ",
			"Ignoring 1 permissions.additionalDirectories entries from <project>/.claude/settings.json: this workspace has not been trusted. ",
		}
		switch {
		case trusted && problems != nil:
			t.Errorf("%s: problems %q", name, problems)
		case !trusted && (len(problems) != 2 || !strings.HasPrefix(problems[0], want[0]) || !strings.HasPrefix(problems[1], want[1]) || !strings.Contains(problems[0], "<home>/.claude.json")):
			t.Errorf("%s: problems %q", name, problems)
		}
	}
	entry := func(dir, value string) string {
		return fmt.Sprintf(`{"x":1, "projects": {"/other":{}, %q: {"hasTrustDialogAccepted": %s}}}`, dir, value)
	}
	check("no global file", "", false)
	check("no entry", `{"projects":{}}`, false)
	check("not true", entry(p.project, "false"), false)
	check("a text", entry(p.project, `"true"`), false)
	check("a folder above", entry(filepath.Dir(p.project), "true"), false)
	check("broken", entry(p.project, "true")[:60], false)
	check("not an object", `{"projects":[]}`, false)
	check("trusted", entry(p.project, "true"), true)

	// In a repository its root counts, and nothing else.
	if err := os.Mkdir(filepath.Join(filepath.Dir(p.project), ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	check("the folder in a repository", "", false)
	check("the root of the repository", entry(filepath.Dir(p.project), "true"), true)
	p.cfg.Global = ""
	r, problems := p.open()
	if len(problems) != 2 || slices.Contains(rules(r.Settings(), "allow"), "projectSettings A") {
		t.Errorf("without a global file: %q", problems)
	}
}

// TestTrustedLater: trust is looked up when settings change.
func TestTrustedLater(t *testing.T) {
	p := newPlace(t)
	p.write("project", grants)
	r, _ := p.open()
	p.trusted()
	p.write("project", strings.Replace(grants, `"D"`, `"E"`, 1))
	s, _, problems := r.Refresh()
	if len(problems) > 0 || len(rules(s, "allow")) != 2 {
		t.Errorf("problems %q, allow %q", problems, rules(s, "allow"))
	}
}

// git runs git in a repository of the test's own.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestTracked: a local file that came with the repository waits for trust, one
// that is the user's own does not. git made the indexes that are read.
func TestTracked(t *testing.T) {
	conform.Covers(t, "P-104")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	allowed := func(p *place) bool {
		t.Helper()
		r, problems := p.open()
		ok := len(rules(r.Settings(), "allow")) == 2
		if ok == (len(problems) > 0) {
			t.Errorf("allowed %v with problems %q", ok, problems)
		}
		return ok
	}
	many := func(p *place) { // enough files for every form of an entry
		for i := range 300 {
			path := filepath.Join(p.project, strings.Repeat("d/", i%7), fmt.Sprintf("file-%d-%s", i, strings.Repeat("x", i%40)))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		long := filepath.Join(p.project, strings.Repeat(strings.Repeat("y", 200)+"/", 8)) // more than a flag can say
		if err := os.MkdirAll(long, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(long, "f"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			p := newPlace(t)
			p.write("local", grants)
			if !allowed(p) {
				t.Error("outside of a repository the local file waits for trust")
			}
			git(t, p.project, "init", "-q", "--object-format="+format)
			if !allowed(p) {
				t.Error("without an index the local file waits for trust")
			}
			many(p)
			git(t, p.project, "config", "index.version", version)
			git(t, p.project, "config", "core.longpaths", "true")
			git(t, p.project, "add", "--", ".", ":!.claude")
			if version == "3" { // an entry with more flags than one
				git(t, p.project, "add", "-N", "--", "d")
				if err := os.WriteFile(filepath.Join(p.project, "zz"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				git(t, p.project, "add", "-N", "zz")
			}
			doc, err := os.ReadFile(filepath.Join(p.project, ".git", "index"))
			if err != nil || fmt.Sprint(doc[7]) != version {
				t.Errorf("git wrote an index of version %d, not %s (%v)", doc[7], version, err)
			}
			if !allowed(p) {
				t.Errorf("%s, index %s: an untracked local file waits for trust", format, version)
			}
			git(t, p.project, "add", "-f", ".claude/settings.local.json")
			if allowed(p) {
				t.Errorf("%s, index %s: a tracked local file does not wait for trust", format, version)
			}
			p.trusted()
			if !allowed(p) {
				t.Error("a trusted folder's local file does not count")
			}
		}
	}

	// The session starts below the root of the repository, which is trusted or not as a whole.
	p := newPlace(t)
	root := p.project
	p.project = filepath.Join(root, "sub")
	p.cfg.Dir = p.project
	p.write("local", grants)
	git(t, root, "init", "-q")
	if !allowed(p) {
		t.Error("an untracked file in a directory of the repository waits for trust")
	}
	git(t, root, "add", "-f", "sub/.claude/settings.local.json")
	if allowed(p) {
		t.Error("a tracked file in a directory of the repository does not wait for trust")
	}
	// A worktree has an index of its own.
	git(t, root, "commit", "-q", "-m", "x")
	tree := filepath.Join(filepath.Dir(root), "tree")
	git(t, root, "worktree", "add", "-q", tree)
	p.project = filepath.Join(tree, "sub")
	p.cfg.Dir = p.project
	if allowed(p) {
		t.Error("a tracked file in a worktree does not wait for trust")
	}
	git(t, tree, "rm", "-q", "--cached", "sub/.claude/settings.local.json")
	if !allowed(p) {
		t.Error("an untracked file in a worktree waits for trust")
	}
	// What cannot be understood may hide anything.
	index := filepath.Join(root, ".git", "index")
	p.project = filepath.Join(root, "sub")
	p.cfg.Dir = p.project
	git(t, root, "rm", "-q", "--cached", "sub/.claude/settings.local.json")
	if err := os.WriteFile(filepath.Join(root, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, root, "add", "f")
	if !allowed(p) {
		t.Error("an untracked file waits for trust")
	}
	doc, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"cut off": doc[:len(doc)/2], "empty": {}, "no index": []byte(strings.Repeat("x", 200)),
		"another version": slices.Concat([]byte("DIRC"), binary.BigEndian.AppendUint32(nil, 9), doc[8:]),
		"more entries":    slices.Concat(doc[:8], binary.BigEndian.AppendUint32(nil, 1<<31), doc[12:]),
	} {
		if err := os.WriteFile(index, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if allowed(p) {
			t.Errorf("%s: the local file does not wait for trust", name)
		}
	}
	if err := os.WriteFile(index, doc, 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, root, "update-index", "--split-index")
	git(t, root, "update-index", "--add", "f")
	if allowed(p) {
		t.Error("with a split index the local file does not wait for trust")
	}
}

func TestLinkedSettings(t *testing.T) {
	conform.Covers(t, "P-104")
	if runtime.GOOS == "windows" {
		t.Skip("needs symbolic links")
	}
	for _, link := range []string{".claude", ".claude/settings.local.json"} {
		p := newPlace(t)
		real := p.write("local", grants)
		from := filepath.Join(p.project, link)
		to := filepath.Join(filepath.Dir(p.project), "elsewhere")
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
		r, problems := p.open()
		if len(problems) != 2 || rules(r.Settings(), "allow") != nil || rules(r.Settings(), "deny") == nil {
			t.Errorf("%s is a link (%s): %q", link, real, problems)
		}
	}
}
