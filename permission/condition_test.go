package permission

import (
	"path/filepath"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// TestCondition: which calls a rule is about.
func TestCondition(t *testing.T) {
	conform.Covers(t, "H-22", "H-23", "H-24")
	dir := t.TempDir()
	p, _, err := NewPolicy(Config{Dirs: []string{dir}, Deny: []string{"Bash(git *)", "Edit"}})
	if err != nil {
		t.Fatal(err)
	}
	bash := func(command string) Request {
		return Request{Tool: "Bash", Accesses: []Access{{Kind: Exec, Target: command}}}
	}
	edit := func(path string) Request {
		path = filepath.Join(dir, path)
		return Request{Tool: "Edit", Accesses: []Access{{Kind: Write, Target: path, Written: path}}}
	}
	for _, tt := range []struct {
		rule string
		call Request
		want bool
	}{
		{"Bash", bash("ls"), true},
		{"Bash", edit("a.go"), false},
		{"Edit", edit("a.go"), true},
		{"Bash(git push *)", bash("git push origin"), true},
		{"Bash(git push *)", bash("git pull"), false},
		{"Bash(git push *)", bash("A=1 git push"), true},
		{"Bash(git push *)", bash("ls && git push"), true},
		{"Bash(git push *)", bash("echo $(git push)"), true},
		{"Bash(git push *)", bash("echo `git push`"), true},
		{"Bash(git push *)", bash("git $CMD"), true},
		{"Bash(git push *)", bash("echo `date`"), true},
		{"Bash(git push *)", bash("echo '"), true}, // cannot be read
		{"Bash(git *)", bash("echo $HOME"), false}, // the command's name alone
		{"Bash(git push *)", bash("echo 5$"), false},
		{"Edit(src/**)", edit("src/a.go"), true},
		{"Edit(src/**)", edit("lib/src/a.go"), false}, // as in allow rules
		{"Edit(*.go)", edit("lib/a.go"), true},
		{"Edit(*.go)", edit("lib/a.py"), false},
	} {
		c, err := p.Condition(tt.rule)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if got := c.Holds(tt.call); got != tt.want {
			t.Errorf("%s for %v: %v", tt.rule, tt.call.Accesses, got)
		}
	}
	for _, bad := range []string{"", "Bash(", "Write(x)", "WebFetch(domain:x)"} {
		if _, err := p.Condition(bad); err == nil {
			t.Errorf("%q can be used", bad)
		}
	}
}

// TestHookAllows: where the approval of a hook counts.
func TestHookAllows(t *testing.T) {
	conform.Covers(t, "P-30", "P-31", "P-32", "P-109", "P-142", "P-15")
	dir := t.TempDir()
	for _, tt := range []struct {
		name  string
		mode  Mode
		r     Request
		allow bool
	}{
		{"a custom tool", ModeDefault, Request{Tool: "x"}, true},
		{"in dontAsk", ModeDontAsk, Request{Tool: "x"}, true},
		{"in plan", ModePlan, Request{Tool: "x"}, true},
		{"a question", ModeDefault, Request{Tool: "AskUserQuestion"}, false},
		{"an answered question", ModeDefault, Request{Tool: "AskUserQuestion", HookInput: true}, true},
		{"a tool that needs a person", ModeDefault, Request{Tool: "x", Interactive: true, HookInput: true}, false},
		{"a plan", ModePlan, Request{Tool: "ExitPlanMode"}, false},
		{"a plan with input", ModePlan, Request{Tool: "ExitPlanMode", HookInput: true}, true},
		{"an edit in plan", ModePlan, Request{Tool: "Edit", Accesses: []Access{{Kind: Write, Target: dir + "/a", Written: dir + "/a"}}}, false},
		{"a command in plan", ModePlan, Request{Tool: "Bash", Accesses: []Access{{Kind: Exec, Target: "touch a"}}}, false},
		{"a protected path", ModeDefault, Request{Tool: "Edit", Accesses: []Access{{Kind: Write, Target: dir + "/.npmrc", Written: dir + "/.npmrc"}}}, true},
		{"a rule that asks", ModeDefault, Request{Tool: "asked"}, false},
		{"a rule that denies", ModeDefault, Request{Tool: "denied"}, false},
	} {
		p, _, err := NewPolicy(Config{Dirs: []string{dir}, Mode: tt.mode, Ask: []string{"asked"}, Deny: []string{"denied"}})
		if err != nil {
			t.Fatal(err)
		}
		tt.r.HookAllows = true
		if d := p.Decide(tt.r); (d.Behavior == Allow) != tt.allow {
			t.Errorf("%s: %+v", tt.name, d)
		}
		tt.r.HookAllows, tt.r.HookInput = false, false
		if d := p.Decide(tt.r); d.Behavior == Allow {
			t.Errorf("%s is allowed without a hook: %+v", tt.name, d)
		}
	}
}
