package permission_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
	"pgregory.net/rapid"
)

// strict orders behaviours: a deny allows less than an ask, an ask less than an
// allow.
func strict(b permission.Behavior) int {
	return slices.Index([]permission.Behavior{allow, ask, deny}, b)
}

var (
	someCommands = []string{
		"ls", "cat a.txt", "cat .env", "rm x", "make", "make test", "npm run build", "git status", "git push", "echo hi", "cd src", "cd ..",
		"echo $(rm x)", "cat *", "sudo rm x", "FOO=1 make", "LANG=C make", "make > out", "make > /etc/x", "timeout 5 make", "$X", "touch src/x", "rm -rf /", "eval make",
		"cat < a.txt", "find . -name x", "find . -delete", "sh -c 'rm x'", "(make)", "for i in 1; do make; done", "mkdir y", "echo x > a.txt",
	}
	someRules = []string{
		"Bash", "Bash(make)", "Bash(make *)", "Bash(make:*)", "Bash(npm run *)", "Bash(rm *)", "Bash(git *)", "Bash(cat *)", "Bash(echo *)", "Bash(cd:*)", "Bash(*x*)",
		"Read(.env)", "Read(src/**)", "Read", "Edit(src/**)", "Edit(**)", "Edit", "Read(//etc/**)", "Write", "Edit(/a.txt)", "Bash(find *)",
	}
	allModes = []permission.Mode{permission.ModeDefault, permission.ModeAcceptEdits, permission.ModePlan, permission.ModeDontAsk, permission.ModeBypass}
	joints   = []string{" && ", " || ", "; ", " | ", " |& ", " & ", "\n"}
)

// drawRequest makes a call of Bash or of a file tool.
func (w world) drawRequest(rt *rapid.T) permission.Request {
	if rapid.Bool().Draw(rt, "bash") {
		command := rapid.SampledFrom(someCommands).Draw(rt, "command")
		for range rapid.IntRange(0, 2).Draw(rt, "more") {
			command += rapid.SampledFrom(joints).Draw(rt, "joint") + rapid.SampledFrom(someCommands).Draw(rt, "command")
		}
		return bash(command)
	}
	tool := rapid.SampledFrom([]string{"Read", "Edit", "Write", "Grep", "NotebookEdit"}).Draw(rt, "tool")
	kind := permission.Read
	if tool == "Edit" || tool == "Write" || tool == "NotebookEdit" {
		kind = permission.Write
	}
	path := filepath.Join(w.project, rapid.SampledFrom([]string{"a.txt", ".env", "src/b.go", "link/o.txt", "../x", ".git/config"}).Draw(rt, "path"))
	a, err := permission.NewPathAccess(kind, path)
	if err != nil {
		rt.Fatal(err)
	}
	return permission.Request{Tool: tool, Accesses: []permission.Access{a}}
}

func (w world) drawConfig(rt *rapid.T) permission.Config {
	rules := rapid.SliceOfN(rapid.SampledFrom(someRules), 0, 3)
	return permission.Config{
		Allow: rules.Draw(rt, "allow"), Ask: rules.Draw(rt, "ask"), Deny: rules.Draw(rt, "deny"),
		Mode: rapid.SampledFrom(allModes).Draw(rt, "mode"), Dirs: []string{w.project}, Home: w.home, BypassAvailable: true,
	}
}

func mustPolicy(rt *rapid.T, c permission.Config) *permission.Policy {
	p, _, err := permission.NewPolicy(c)
	if err != nil {
		rt.Fatal(err)
	}
	return p
}

// TestRulesAreMonotone: a further deny or ask rule never allows more, and a
// further allow rule never allows less.
func TestRulesAreMonotone(t *testing.T) {
	conform.Covers(t, "P-29", "P-33", "P-34")
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		c, r := w.drawConfig(rt), w.drawRequest(rt)
		before := mustPolicy(rt, c).Decide(r)
		rule := rapid.SampledFrom(someRules).Draw(rt, "rule")
		for _, kind := range []string{"deny", "ask", "allow"} {
			more := c
			switch kind {
			case "deny":
				more.Deny = append(slices.Clone(c.Deny), rule)
			case "ask":
				more.Ask = append(slices.Clone(c.Ask), rule)
			case "allow":
				more.Allow = append(slices.Clone(c.Allow), rule)
			}
			after := mustPolicy(rt, more).Decide(r)
			if diff := strict(after.Behavior) - strict(before.Behavior); kind == "allow" && diff > 0 || kind != "allow" && diff < 0 {
				rt.Fatalf("%+v\nwith the %s rule %q: %s (%s) instead of %s (%s)", r, kind, rule, after.Behavior, after.Reason, before.Behavior, before.Reason)
			}
		}
	})
}

// TestCompoundNeedsEveryPart: what is allowed as a chain is allowed part by
// part. Parts that stand alone are judged in the directory of the whole.
func TestCompoundNeedsEveryPart(t *testing.T) {
	conform.Covers(t, "P-59")
	w := newWorld(t)
	moves := func(s string) bool { return strings.HasPrefix(s, "cd ") }
	rapid.Check(t, func(rt *rapid.T) {
		c := w.drawConfig(rt)
		p := mustPolicy(rt, c)
		parts := rapid.SliceOfN(rapid.SampledFrom(someCommands), 2, 4).Draw(rt, "parts")
		command := parts[0]
		for _, part := range parts[1:] {
			command += rapid.SampledFrom(joints).Draw(rt, "joint") + part
		}
		// Blanks, because the parser takes "((" for arithmetic and then asks.
		if shape := rapid.SampledFrom([]string{"%", "( %)", "{ %; }", "if %; then :; fi", "echo $( %)", "! { %; }"}).Draw(rt, "shape"); !strings.HasSuffix(command, "&") {
			command = strings.Replace(shape, "%", command, 1)
		}
		whole := p.Decide(bash(command))
		for _, part := range parts {
			d := p.Decide(bash(part))
			// After a "cd" a relative path is another file.
			elsewhere := slices.ContainsFunc(parts, moves) && !strings.Contains(d.Reason, "Bash(")
			if d.Behavior == deny && whole.Behavior != deny && !elsewhere && c.Mode != permission.ModeDontAsk {
				rt.Fatalf("%q is denied (%s), but not in %q: %s", part, d.Reason, command, whole.Reason)
			}
			if whole.Behavior == allow && d.Behavior != allow && !slices.ContainsFunc(parts, moves) {
				rt.Fatalf("%q is allowed (%s), but not its part %q: %s", command, whole.Reason, part, d.Reason)
			}
		}
	})
}

// TestSuggestionsHold: with the suggested rules the same call is allowed, and
// they allow nothing that is longer (P-77, P-89).
func TestSuggestionsHold(t *testing.T) {
	conform.Covers(t, "P-77", "P-89", "P-114", "P-127", "P-128")
	w := newWorld(t)
	apply := func(u []permission.Update, c permission.Config) permission.Config {
		for _, u := range u {
			switch u.Type {
			case "setMode":
				c.Mode = u.Mode
			case "addRules":
				for _, r := range u.Rules {
					rule := r.ToolName
					if r.RuleContent != "" {
						rule += "(" + r.RuleContent + ")"
					}
					c.Allow = append(c.Allow, rule)
				}
			}
		}
		return c
	}
	for _, test := range []struct {
		request   permission.Request
		rules     int
		where     string
		notAlso   permission.Request
		blockedIn string
	}{
		{bash("make test"), 1, "localSettings", bash("make test x"), ""},
		{bash("make (x"), 0, "", bash("make"), ""},
		{bash("make test && npm run build; ls"), 2, "localSettings", bash("npm run"), ""},
		{bash("a1; a2; a3; a4; a5"), 5, "localSettings", bash("a6"), ""},
		{bash("a1; a2; a3; a4; a5; a6"), 0, "", bash("a1"), ""},
		{bash("make *.o"), 0, "", bash("make"), ""},
		{bash("make 'a(b)'"), 1, "localSettings", bash("make 'a(b)c'"), ""},
		{bash("cd " + w.outside + " && make"), 2, "localSettings", bash("cd " + w.home), w.outside},
		{bash("cat " + w.outside + "/o.txt"), 1, "localSettings", bash("cat " + w.outside + "/o2"), w.outside + "/o.txt"},
		{bash("FOO=1 make"), 0, "", bash("make"), ""},
		{bash("eval make"), 0, "", bash("make"), ""},
		{bash("echo x > out.txt"), 1, "localSettings", bash("echo x > ../out.txt"), ""},
		{bash("echo x > .git/config"), 0, "", bash("echo x > a.txt"), ""},
		{bash("echo x > " + w.outside + "/out.txt"), 0, "", bash("echo x > a.txt"), w.outside + "/out.txt"},
		{w.fileCall(t, "Edit", "a.txt"), 0, "session", w.fileCall(t, "Edit", "$O/o.txt"), ""},
		{w.fileCall(t, "Edit", "$O/o*.txt"), 1, "session", w.fileCall(t, "Edit", "$O/ox.txt"), w.outside + "/o*.txt"},
		{w.fileCall(t, "Read", "$O/[a] !#.txt"), 1, "session", w.fileCall(t, "Read", "$O/a !#.txt"), w.outside + "/[a] !#.txt"},
		{w.fileCall(t, "Read", `$O/back\slash (x)`), 1, "session", w.fileCall(t, "Read", "$O/x"), w.outside + `/back\slash (x)`},
		{w.fileCall(t, "Read", "link/o.txt"), 0, "", w.fileCall(t, "Read", "$O/x"), w.outside + "/o.txt"},
		{w.fileCall(t, "Edit", ".git/config"), 0, "", w.fileCall(t, "Edit", ".git/x"), ""},
		{permission.Request{Tool: "deploy"}, 1, "localSettings", permission.Request{Tool: "deploy2"}, ""},
	} {
		c := permission.Config{Dirs: []string{w.project}, Home: w.home}
		d := newPolicy(t, c).Decide(test.request)
		if d.Behavior != ask || d.BlockedPath != test.blockedIn {
			t.Errorf("%+v: got %+v, want a question with the path %q", test.request, d, test.blockedIn)
		}
		rules := 0
		for _, u := range d.Suggestions {
			rules += len(u.Rules)
			if u.Destination != test.where {
				t.Errorf("%+v: goes to %q, want %q", test.request, u.Destination, test.where)
			}
		}
		if rules != test.rules || (len(d.Suggestions) > 0) != (test.where != "") || len(d.Suggestions) > 1 {
			t.Errorf("%+v: suggested %+v", test.request, d.Suggestions)
		}
		if len(d.Suggestions) == 0 {
			continue
		}
		p := newPolicy(t, apply(d.Suggestions, c))
		if again := p.Decide(test.request); again.Behavior != allow {
			t.Errorf("%+v with %+v: %+v", test.request, d.Suggestions, again)
		}
		if other := p.Decide(test.notAlso); other.Behavior == allow {
			t.Errorf("%+v allows %+v too: %+v", d.Suggestions, test.notAlso, other)
		}
	}
	raw, err := json.Marshal(newPolicy(t, permission.Config{}).Decide(permission.Request{Tool: "deploy"}).Suggestions)
	if want := `[{"type":"addRules","rules":[{"toolName":"deploy"}],"behavior":"allow","destination":"localSettings"}]`; err != nil || string(raw) != want {
		t.Errorf("got %s, %v", raw, err)
	}
}

// TestFailsClosed: what is not known is not allowed.
func TestFailsClosed(t *testing.T) {
	conform.Covers(t, "P-7", "P-70")
	w := newWorld(t)
	everything := permission.Config{Allow: []string{"Bash", "Read(**)", "Edit(**)"}}
	relative := permission.Access{Kind: permission.Read, Target: "a.txt", Written: "a.txt"}
	exec := permission.Access{Kind: permission.Exec, Target: "ls", Written: "ls"}
	for name, r := range map[string]permission.Request{
		"no command":            {Tool: "Bash"},
		"two commands":          {Tool: "Bash", Accesses: []permission.Access{exec, exec}},
		"a relative path":       {Tool: "Read", Accesses: []permission.Access{relative}},
		"no path":               {Tool: "Read"},
		"a relative path, edit": {Tool: "Edit", Accesses: []permission.Access{{Kind: permission.Write, Target: "a", Written: "a"}}},
		"an empty access":       {Tool: "Read", Accesses: []permission.Access{{}}},
		"a long command":        bash("echo " + strings.Repeat("x", 10_000)),
		"a control character":   bash("ls\r"),
		"a NUL":                 bash("ls\x00"),
		"not UTF-8":             bash("make \xff $(\xff"),
	} {
		if d := w.policy(t, everything).Decide(r); d.Behavior != ask {
			t.Errorf("%s: %+v", name, d)
		}
	}
	// Policies put together by hand: no rule is read wider than NewPolicy would.
	scoped := permission.Rule{Tool: "Bash", Specifier: "ls"}
	byHand := permission.Policy{Allow: []permission.Rule{scoped}}
	if d := byHand.Decide(bash("make")); d.Behavior != ask {
		t.Errorf("an allow rule that nobody compiled: %+v", d)
	}
	byHand = permission.Policy{Allow: []permission.Rule{{Tool: "Bash"}}, Deny: []permission.Rule{scoped}}
	if d := byHand.Decide(bash("make")); d.Behavior != deny {
		t.Errorf("a deny rule that nobody compiled: %+v", d)
	}
	if d := (&permission.Policy{Mode: "sometimes"}).Decide(permission.Request{Tool: "custom"}); d.Behavior != ask {
		t.Errorf("an unknown mode: %+v", d)
	}
	if d := (*permission.Policy)(nil).Decide(bash("ls")); d.Behavior != deny || !reflect.DeepEqual(d.Suggestions, []permission.Update(nil)) {
		t.Errorf("a panic: %+v", d)
	}
}

// TestStartDirectory: a command is judged in the directory that it starts in.
func TestStartDirectory(t *testing.T) {
	conform.Covers(t, "P-67", "P-76")
	w := newWorld(t)
	p := w.policy(t, permission.Config{})
	for command, dirs := range map[string][]string{
		"cat ../a.txt": {w.project + "/src"},
		"cat o.txt":    {w.project, w.project + "/src"},
		"git status":   {w.project, ""},
		"ls":           {w.project, w.project + "/src", ""},
	} {
		for _, dir := range []string{w.project, w.project + "/src", w.outside, w.project + "/link", ""} {
			r := bash(command)
			r.Dir = dir
			if d := p.Decide(r); (d.Behavior == allow) != slices.Contains(dirs, dir) && !(command == "cat o.txt" && dir == "" && d.Behavior == allow) {
				t.Errorf("%q in %q: %+v", command, dir, d)
			}
		}
	}
}

// FuzzDecideCommand: the gate never fails on a command, denies nothing without
// a rule, and with rules that deny allows nothing that it did not allow before.
// That a harmless command is harmless is the business of FuzzReadOnly in
// internal/shell.
func FuzzDecideCommand(f *testing.F) {
	for _, list := range []string{harmless, notHarmless} {
		for _, line := range strings.Split(list, "\n") {
			f.Add(strings.ReplaceAll(strings.TrimSpace(line), "⏎", "\n"))
		}
	}
	for _, part := range []string{"cd a;", "cd a&&", "env ", "sudo sh -c '", "(", "$(", "find . -exec ", "{a,", "if "} {
		f.Add(strings.Repeat(part, 2_000/len(part)) + "x")
	}
	w := newWorld(f)
	open := w.policy(f, permission.Config{})
	closed := w.policy(f, permission.Config{Deny: []string{"Read(.env)", "Edit(src/**)", "Bash(rm *)"}, Allow: []string{"Bash(make *)"}})
	f.Fuzz(func(t *testing.T, command string) {
		d := open.Decide(bash(command))
		if d.Behavior == deny {
			t.Fatalf("denied without a rule: %+v", d)
		}
		if c := closed.Decide(bash(command)); c.Behavior == allow && d.Behavior != allow && !strings.Contains(command, "make") {
			t.Fatalf("%q: rules that deny allow more: %+v", command, c)
		}
	})
}
