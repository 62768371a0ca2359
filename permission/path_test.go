package permission_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
	"pgregory.net/rapid"
)

func access(t testing.TB, kind permission.Kind, path string) permission.Access {
	t.Helper()
	a, err := permission.NewPathAccess(kind, path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fileCall is a call of a tool for one file; relative paths are in the project.
func (w world) fileCall(t testing.TB, tool, path string) permission.Request {
	t.Helper()
	path = w.fill(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.project, path)
	}
	kind := permission.Read
	if tool == "Edit" || tool == "Write" || tool == "NotebookEdit" {
		kind = permission.Write
	}
	return permission.Request{Tool: tool, Accesses: []permission.Access{access(t, kind, path)}}
}

func TestPathRules(t *testing.T) {
	type c = permission.Config
	for _, test := range []struct {
		name   string
		ids    []string
		config c
		tool   string
		want   permission.Behavior
		paths  string
	}{
		{"a bare name at any depth", []string{"P-81", "P-82", "B-055"}, c{Deny: []string{"Read(.env)"}}, "Read", deny, ".env src/.env src/deep/.env src/../.env .env/x"},
		{"but not above", []string{"P-82"}, c{Deny: []string{"Read(.env)"}}, "Read", ask, "../.env $O/.env"},
		{"nor what is only like it", []string{"P-81"}, c{Deny: []string{"Read(.env)"}}, "Read", allow, ".envx x.env .env.local"},
		{"as ./name", []string{"P-79", "B-055"}, c{Deny: []string{"Read(./.env)"}}, "Read", deny, ".env"},
		{"everywhere", []string{"P-82"}, c{Deny: []string{"Read(//**/.env)"}}, "Read", deny, ".env ../.env $O/.env /.env"},
		{"double star", []string{"P-81", "B-055", "B-057"}, c{Deny: []string{"Read(**/.env*)"}}, "Read", deny, ".env .env.local src/.env.x src/deep/.envrc"},
		{"a directory behind it", []string{"B-057"}, c{Deny: []string{"Edit(**/.claude/*)", "Edit(**/.claude/**/*)"}}, "Write", deny, ".claude/t.txt .claude/rules/t.txt a/b/.claude/x"},
		{"single directory, deny", []string{"P-83"}, c{Deny: []string{"Read(src/**)"}}, "Read", deny, "src/b.go x/src/b.go src/deep/x"},
		{"single directory, allow", []string{"P-83"}, c{Allow: []string{"Edit(src/**)"}}, "Edit", allow, "src/b.go src/deep/x"},
		{"single directory, allow, elsewhere", []string{"P-83"}, c{Allow: []string{"Edit(src/**)"}}, "Edit", ask, "x/src/b.go a.txt srcs/x src ../src/x"},
		{"anchored", []string{"P-79", "P-80", "P-83"}, c{Deny: []string{"Read(/src/**)", "Read(x/y/**)"}}, "Read", deny, "src/b.go x/y/z"},
		{"anchored, elsewhere", []string{"P-79", "P-83"}, c{Deny: []string{"Read(/src/**)", "Read(x/y/**)"}}, "Read", allow, "a/src/b.go a/x/y/z src"},
		{"a star stays in its segment", []string{"P-81"}, c{Allow: []string{"Edit(/src/*.go)"}}, "Edit", ask, "src/deep/b.go src/b.gox b.go"},
		{"a star in its segment", []string{"P-81"}, c{Allow: []string{"Edit(/src/*.go)", "Edit(/d?[a-c])"}}, "Edit", allow, "src/b.go dxa"},
		{"from the root", []string{"P-79"}, c{Allow: []string{"Read(/$O/**)"}}, "Read", allow, "$O/o.txt $O/a/b"},
		{"from the home directory", []string{"P-79"}, c{Allow: []string{"Read(~/notes/**)"}}, "Read", allow, "%H/notes/x"},
		{"from the home directory, elsewhere", []string{"P-79"}, c{Allow: []string{"Read(~/notes/**)"}}, "Read", ask, "%H/x $O/notes/x"},
		{"deny wins over a broad allow", []string{"P-33", "B-056"}, c{Allow: []string{"Read(**)", "Read(~/**)"}, Deny: []string{"Read(**/.secrets*)", "Read(~/.secrets*)"}}, "Read", deny, "%H/.secrets a/.secrets.json"},
		{"odd characters", []string{"B-059"}, c{Allow: []string{"Edit(**)"}}, "Edit", allow, "app/$org+/x.($cur).tsx a,b a{b}c caf\u00e9 cafe\u0301 [x]"},
		{"edit grants reading", []string{"P-85"}, c{Allow: []string{"Edit(/$O/**)"}}, "Read", allow, "$O/o.txt"},
		{"read does not grant editing", []string{"P-85"}, c{Allow: []string{"Read(**)"}}, "Edit", ask, "a.txt"},
		{"read denies writing", []string{"P-86"}, c{Deny: []string{"Read(.env)"}, Allow: []string{"Write", "Edit"}}, "Write", deny, ".env new/.env"},
		{"read denies editing", []string{"P-86"}, c{Deny: []string{"Read(.env)"}, Mode: "acceptEdits"}, "Edit", deny, ".env"},
		{"but not notebooks", []string{"P-86", "T-88"}, c{Deny: []string{"Read(*.ipynb)"}, Mode: "acceptEdits"}, "NotebookEdit", allow, "a.ipynb"},
		{"edit rules govern notebooks", []string{"P-49", "T-88"}, c{Deny: []string{"Edit(*.ipynb)"}, Mode: "acceptEdits"}, "NotebookEdit", deny, "a.ipynb"},
		{"read rules govern searches", []string{"P-49"}, c{Deny: []string{"Read(src)"}}, "Grep", deny, "src src/deep"},
		{"edit does not deny reading", []string{"P-49"}, c{Deny: []string{"Edit(src)"}}, "Read", allow, "src/b.go"},
		{"an allow needs both names", []string{"P-87", "B-060"}, c{Allow: []string{"Edit(**)"}, Mode: "acceptEdits"}, "Edit", ask, "link/o.txt link/new"},
		{"a deny needs one", []string{"P-87", "P-88", "B-060"}, c{Deny: []string{"Edit(/$O/**)"}, Mode: "acceptEdits"}, "Edit", deny, "link/o.txt link/new/x $O/x"},
		{"or the other", []string{"P-87"}, c{Deny: []string{"Read(link)"}}, "Read", deny, "link/o.txt link"},
		{"ask is like deny", []string{"P-88"}, c{Ask: []string{"Edit(/$O/**)"}, Allow: []string{"Edit"}}, "Edit", ask, "link/o.txt"},
		{"protected paths in spite of a rule", []string{"P-108"}, c{Allow: []string{"Edit(**)"}}, "Edit", ask, ".git/config .bashrc"},
		{"deny in bypassPermissions", []string{"P-29"}, c{Deny: []string{"Read(.env)"}, Mode: "bypassPermissions", BypassAvailable: true}, "Read", deny, ".env"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if len(test.ids) > 0 {
				conform.Covers(t, test.ids...)
			}
			w := newWorld(t)
			p := w.policy(t, test.config)
			for _, path := range strings.Fields(test.paths) {
				if d := p.Decide(w.fileCall(t, test.tool, path)); d.Behavior != test.want {
					t.Errorf("%s: got %s (%s), want %s", path, d.Behavior, d.Reason, test.want)
				}
			}
		})
	}
}

// TestPathsAgainstGit compares patterns with git's own reading of .gitignore.
func TestPathsAgainstGit(t *testing.T) {
	conform.Covers(t, "P-81")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	if runtime.GOOS != "linux" {
		t.Skip("compared where names keep their case")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "core.excludesFile=/dev/null", "-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) {
			t.Fatalf("git %q: %v", args, err)
		}
		return string(out)
	}
	git("", "init", "-q")
	segment := rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "*b", "?", "**", "[ab]", "[!a]", "[a-c]x", "x.y", `\*`, "a**b"})
	name := rapid.SampledFrom([]string{"a", "b", "ab", "c", "ax", "x.y", "*", "aab", "bx"})
	rapid.Check(t, func(rt *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(rt, "pattern"), "/")
		if rapid.Bool().Draw(rt, "anchored") {
			pattern = "/" + pattern
		}
		var paths []string
		for range 8 {
			paths = append(paths, strings.Join(rapid.SliceOfN(name, 1, 4).Draw(rt, "path"), "/"))
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(pattern+"\n"), 0o644); err != nil {
			rt.Fatal(err)
		}
		ignored := map[string]bool{}
		for _, path := range strings.Split(git(strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
			ignored[path] = true
		}
		p, _, err := permission.NewPolicy(permission.Config{Ask: []string{"Read(" + pattern + ")"}, Dirs: []string{dir}})
		if err != nil {
			rt.Fatal(err)
		}
		single := strings.HasSuffix(pattern, "/**") && strings.Count(pattern, "/") == 1 && pattern[0] != '/' // P-83
		for _, path := range paths {
			full := filepath.Join(dir, path)
			got := p.Decide(permission.Request{Tool: "Read", Accesses: []permission.Access{{Kind: permission.Read, Target: full, Written: full}}}).Behavior == ask
			if got != ignored[path] && !(single && got) {
				rt.Fatalf("%q covers %q: %v; for git %v", pattern, path, got, ignored[path])
			}
		}
	})
}

func TestRuleSets(t *testing.T) {
	conform.Covers(t, "P-34", "P-41", "P-80")
	w := newWorld(t)
	p, warnings, err := permission.NewPolicy(permission.Config{
		Allow: []string{"Edit(/a.txt)"}, Dirs: []string{w.project}, Home: w.home,
		Rules: []permission.RuleSet{
			{Source: permission.SourceUser, Dir: w.outside, Allow: []string{"Read(/o.txt)", "Foo(", "Bash(:*)", ""}, Deny: []string{"Edit(!x)", "Bash(rm *)"}},
			{Source: permission.SourceSession, Deny: []string{"Edit(/a.txt)"}},
		},
	})
	if err != nil || len(warnings) != 4 {
		t.Fatalf("warnings %q, %v", warnings, err)
	}
	for i, name := range []string{"Foo(", "Bash(:*)", `""`, "Edit(!x)"} {
		if !strings.Contains(strings.Join(warnings, "\n"), name) || !strings.Contains(warnings[i], "userSettings") {
			t.Errorf("warnings %q do not name %s", warnings, name)
		}
	}
	if d := p.Decide(w.fileCall(t, "Read", "$O/o.txt")); d.Behavior != allow {
		t.Errorf("the rule of the settings: %+v", d)
	}
	if d := p.Decide(w.fileCall(t, "Edit", "a.txt")); d.Behavior != deny {
		t.Errorf("a deny of another source: %+v", d)
	}
	if d := p.Decide(bash("ls; rm x")); d.Behavior != deny {
		t.Errorf("the rest of the file: %+v", d)
	}
	if _, _, err := permission.NewPolicy(permission.Config{Dirs: []string{w.project}, Rules: []permission.RuleSet{{Source: permission.SourceSession, Deny: []string{"Bash(:*)"}}}}); err == nil {
		t.Error("no error for a faulty rule that is in no file")
	}
}

func TestRulesThatNeverMatch(t *testing.T) {
	conform.Covers(t, "P-47", "P-78", "B-049")
	w := newWorld(t)
	for rule, want := range map[string]string{
		"Write(./a.txt)":                "Edit(./a.txt)",
		"NotebookEdit(a.ipynb)":         "Edit(a.ipynb)",
		"Glob(**/dist/**)":              "Read(**/dist/**)",
		"Bash(command:rm *)":            `"command"`,
		"Read(file_path:/etc)":          `"file_path"`,
		"Write(file_path : x)":          `"file_path"`,
		"NotebookEdit(notebook_path:x)": `"notebook_path"`,
	} {
		p, warnings, err := permission.NewPolicy(permission.Config{Deny: []string{rule}, Dirs: []string{w.project}})
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], rule[:4]) || !strings.Contains(warnings[0], want) {
			t.Errorf("%s: warnings %q, %v", rule, warnings, err)
			continue
		}
		if len(p.Deny) != 0 {
			t.Errorf("%s is kept", rule)
		}
	}
	if _, warnings, err := permission.NewPolicy(permission.Config{Allow: []string{"Glob(**/*.go)", "Write"}, Dirs: []string{w.project}}); err != nil || len(warnings) > 0 {
		t.Errorf("Glob in allowedTools, bare Write: warnings %q, %v", warnings, err)
	}
}

func TestInputRules(t *testing.T) {
	conform.Covers(t, "P-46", "P-48")
	w := newWorld(t)
	p, warnings, err := permission.NewPolicy(permission.Config{
		Deny: []string{"Bash(run_in_background:true)", "deploy(target : prod*)", "Bash(ls:*)"}, Ask: []string{"deploy(count:3)"},
		Allow: []string{"deploy", "Bash"}, Dirs: []string{w.project},
		Inputs: map[string][]string{"Bash": {"command", "run_in_background"}, "deploy": {"target", "count"}},
	})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	for _, test := range []struct {
		tool, input string
		want        permission.Behavior
	}{
		{"deploy", `{"target":"prod-1"}`, deny},
		{"deploy", `{"target":"pro"}`, allow},
		{"deploy", `{"target":["prod"]}`, allow},
		{"deploy", `{"count":3}`, ask},
		{"deploy", `{"count":33}`, allow},
		{"deploy", `{}`, allow},
		{"deploy", `{"target":`, deny},
		{"Bash", `{"command":"make","run_in_background":true}`, deny},
		{"Bash", `{"command":"make","run_in_background":false}`, allow},
		{"Bash", `{"command":"make"}`, allow},
	} {
		r := bash("make")
		r.Tool, r.Input = test.tool, []byte(test.input)
		if d := p.Decide(r); d.Behavior != test.want {
			t.Errorf("%s %s: got %+v, want %s", test.tool, test.input, d, test.want)
		}
	}
	if d := p.Decide(bash("ls -l")); d.Behavior != deny {
		t.Errorf("a command with a colon rule: %+v", d)
	}
	if _, _, err := permission.NewPolicy(permission.Config{Allow: []string{"deploy(target:x)"}, Inputs: map[string][]string{"deploy": {"target"}}}); err == nil {
		t.Error("an allow rule about an input is accepted")
	}
}

func TestReadDenied(t *testing.T) {
	conform.Covers(t, "P-87", "T-95")
	w := newWorld(t)
	file := func(name string) string { return filepath.Join(w.project, name) }
	if err := os.Symlink(file(".env"), file("innocent")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file("loop"), file("loop")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		deny   []string
		path   string
		denied bool
		needs  bool
	}{
		{nil, "a.txt", false, false},
		{nil, "new/file", false, false},
		{nil, "../x", false, true},
		{nil, "link/o.txt", false, true},
		{nil, "loop", false, true},
		{[]string{"Read"}, "a.txt", true, true},
		{[]string{"*"}, "a.txt", true, true},
		{[]string{"Read(*)"}, "a.txt", true, true},
		{[]string{"Edit(a.txt)", "Edit"}, "a.txt", false, false},
		{[]string{"Read(.env)"}, "a.txt", false, false},
		{[]string{"Read(.env)"}, ".env", true, true},
		{[]string{"Read(.env)"}, "innocent", true, true},
		{[]string{"Read(innocent)"}, "innocent", true, true},
		{[]string{"Read(innocent)"}, ".env", false, false},
		{[]string{"Read(.env)"}, "loop", true, true},
	} {
		p := w.policy(t, permission.Config{Deny: test.deny})
		if got := p.ReadDenied(file(test.path)); got != test.denied {
			t.Errorf("deny %q: ReadDenied(%s) = %v", test.deny, test.path, got)
		}
		if got := p.NeedsApprovalToRead(file(test.path)); got != test.needs {
			t.Errorf("deny %q: NeedsApprovalToRead(%s) = %v", test.deny, test.path, got)
		}
	}
	p := w.policy(t, permission.Config{Deny: []string{"Read(.env)"}})
	if !p.ReadDenied("relative") || !p.NeedsApprovalToRead("relative") {
		t.Error("a relative path is not refused")
	}
}

func TestScopedDenyKeepsTheTool(t *testing.T) {
	conform.Covers(t, "T-10")
	w := newWorld(t)
	p := w.policy(t, permission.Config{Deny: []string{"Bash(rm *)", "Read(.env)", "Edit(*)", "Gr*"}})
	for name, removed := range map[string]bool{"Bash": false, "Read": false, "Edit": true, "Write": false, "Grep": true} {
		if p.Removed(name) != removed {
			t.Errorf("Removed(%s) = %v", name, !removed)
		}
	}
}

func TestCheckDir(t *testing.T) {
	conform.Covers(t, "P-100")
	w := newWorld(t)
	for path, ok := range map[string]bool{w.project: true, filepath.Join(w.project, "link"): true, filepath.Join(w.project, "a.txt"): false, filepath.Join(w.project, "none"): false} {
		if err := permission.CheckDir(path); (err == nil) != ok {
			t.Errorf("CheckDir(%s) = %v", path, err)
		}
	}
}
