package permission_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// apply makes updates that are written as in the protocol.
func apply(t testing.TB, p *permission.Policy, updates ...string) *permission.Policy {
	t.Helper()
	for _, text := range updates {
		var u permission.Update
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			t.Fatal(err)
		}
		q, warnings, err := p.Apply(u)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: %q, %v", text, warnings, err)
		}
		p = q
	}
	return p
}

// TestUpdates: what each kind of update does to the decisions that follow, and
// to those of another destination.
func TestUpdates(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name    string
		ids     []string
		config  permission.Config
		updates []string
		want    map[string]permission.Behavior // of commands, or of "Tool file"
	}{
		{
			"add",
			[]string{"P-122", "W-126"},
			permission.Config{},
			[]string{`{"type":"addRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"make *"},{"toolName":"Edit","ruleContent":null}]}`},
			map[string]permission.Behavior{"make x": allow, "touch x": ask, "Edit a.txt": allow},
		},
		{
			"escaped parentheses",
			[]string{"P-122"},
			permission.Config{},
			[]string{`{"type":"addRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"expr \\(1\\)"}],"destination":"session"}`},
			map[string]permission.Behavior{"make": ask, "expr (1": ask},
		},
		{
			"deny wins at once",
			[]string{"P-122", "P-129"},
			permission.Config{Allow: []string{"Bash"}},
			[]string{`{"type":"addRules","behavior":"deny","rules":[{"toolName":"Bash","ruleContent":"make *"}],"destination":"localSettings"}`},
			map[string]permission.Behavior{"make x": deny, "touch x": allow},
		},
		{
			"ask",
			[]string{"P-122"},
			permission.Config{Allow: []string{"Bash"}},
			[]string{`{"type":"addRules","behavior":"ask","rules":[{"toolName":"Bash","ruleContent":"make *"}],"destination":"userSettings"}`},
			map[string]permission.Behavior{"make x": ask, "touch x": allow},
		},
		{
			"replace at one destination",
			[]string{"P-125"},
			permission.Config{Allow: []string{"Bash(one)"}, Rules: []permission.RuleSet{{Source: permission.SourceLocal, Allow: []string{"Bash(two)"}, Deny: []string{"Bash(four)"}}}},
			[]string{`{"type":"replaceRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"three"}],"destination":"localSettings"}`},
			map[string]permission.Behavior{"one": allow, "two": ask, "three": allow, "four": deny},
		},
		{
			"replace by none",
			[]string{"P-125"},
			permission.Config{Rules: []permission.RuleSet{{Source: permission.SourceLocal, Deny: []string{"Bash(four)"}}}},
			[]string{`{"type":"replaceRules","behavior":"deny","rules":[],"destination":"localSettings"}`},
			map[string]permission.Behavior{"four": ask},
		},
		{
			"remove",
			[]string{"P-122"},
			permission.Config{Rules: []permission.RuleSet{{Source: permission.SourceLocal, Allow: []string{"Bash(one:*)", "Bash(two)"}}, {Source: permission.SourceUser, Allow: []string{"Bash(two)"}}}},
			[]string{
				`{"type":"removeRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"one:*"},{"toolName":"Bash","ruleContent":"no such"}],"destination":"localSettings"}`,
				`{"type":"removeRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"two"}],"destination":"localSettings"}`,
			},
			map[string]permission.Behavior{"one": ask, "two": allow},
		},
		{
			"cliArg is session",
			[]string{"P-124"},
			permission.Config{Deny: []string{"Bash(one)"}},
			[]string{
				`{"type":"addRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"two"}],"destination":"cliArg"}`,
				`{"type":"replaceRules","behavior":"allow","rules":[],"destination":"session"}`,
				`{"type":"replaceRules","behavior":"deny","rules":[],"destination":"cliArg"}`,
			},
			map[string]permission.Behavior{"one": deny, "two": ask},
		},
		{
			"mode",
			[]string{"P-122"},
			permission.Config{},
			[]string{`{"type":"setMode","mode":"acceptEdits","destination":"session"}`},
			map[string]permission.Behavior{"Edit a.txt": allow, "touch x": allow},
		},
		{
			"directories",
			[]string{"P-122", "P-96", "P-99"},
			permission.Config{},
			[]string{`{"type":"addDirectories","directories":["$O"],"destination":"session"}`},
			map[string]permission.Behavior{"Read $O/o.txt": allow, "cat $O/o.txt": allow},
		},
		{
			"relative directories",
			[]string{"P-122"},
			permission.Config{},
			[]string{`{"type":"addDirectories","directories":["../../outside"]}`},
			map[string]permission.Behavior{"Read $O/o.txt": allow},
		},
		{
			"directories again",
			[]string{"P-122"},
			permission.Config{Dirs: []string{w.home}},
			[]string{
				`{"type":"addDirectories","directories":["$O","$O"],"destination":"localSettings"}`,
				`{"type":"removeDirectories","directories":["$O","$W","/no/such","%H"],"destination":"localSettings"}`,
			},
			map[string]permission.Behavior{"Read $O/o.txt": ask, "Read a.txt": allow, "Read %H/x": allow},
		},
		{
			"a source's own directory",
			[]string{"P-80", "P-122"},
			permission.Config{Rules: []permission.RuleSet{{Source: permission.SourceUser, Dir: w.home}}},
			[]string{
				`{"type":"addRules","behavior":"allow","rules":[{"toolName":"Read","ruleContent":"/x"}],"destination":"userSettings"}`,
				`{"type":"addRules","behavior":"deny","rules":[{"toolName":"Read","ruleContent":"/a.txt"}],"destination":"localSettings"}`,
			},
			map[string]permission.Behavior{"Read %H/x": allow, "Read a.txt": deny},
		},
		{
			"protected paths",
			[]string{"P-109"},
			permission.Config{Allow: []string{"Edit"}, Rules: []permission.RuleSet{{Source: permission.SourceLocal, Allow: []string{"Edit(.git/**)", "Bash"}}}},
			[]string{`{"type":"addRules","behavior":"allow","rules":[{"toolName":"Edit","ruleContent":".git/config"}],"destination":"session"}`},
			map[string]permission.Behavior{"Edit .git/config": allow, "Edit .git/hooks/x": ask, "make > .git/config": allow, "make > .git/x": ask},
		},
		{
			"nor by other answers",
			[]string{"P-109"},
			permission.Config{},
			[]string{`{"type":"addRules","behavior":"allow","rules":[{"toolName":"Edit"}],"destination":"localSettings"}`},
			map[string]permission.Behavior{"Edit .git/config": ask, "Edit a.txt": allow},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			conform.Covers(t, test.ids...)
			p := w.policy(t, test.config)
			before := map[string]permission.Behavior{}
			for what := range test.want {
				before[what] = decided(t, w, p, what).Behavior
			}
			updates := slices.Clone(test.updates)
			for i := range updates {
				updates[i] = w.fill(updates[i])
			}
			q := apply(t, p, updates...)
			for what, want := range test.want {
				if d := decided(t, w, q, what); d.Behavior != want {
					t.Errorf("%s: %s (%s), want %s", what, d.Behavior, d.Reason, want)
				}
				if d := decided(t, w, p, what); d.Behavior != before[what] {
					t.Errorf("%s: the old policy has changed to %s", what, d.Behavior)
				}
			}
		})
	}
}

// decided judges a command, or "Tool file".
func decided(t testing.TB, w world, p *permission.Policy, what string) permission.Decision {
	t.Helper()
	tool, file, _ := strings.Cut(w.fill(what), " ")
	if tool != "Read" && tool != "Edit" {
		return p.Decide(bash(w.fill(what)))
	}
	dir := w.project
	if filepath.IsAbs(file) {
		dir = ""
	}
	return p.Decide(request(t, tool, dir, file))
}

// TestUpdatesThatCannotBe are errors that say which update and why, and change
// nothing; the organization's rules are out of reach.
func TestUpdatesThatCannotBe(t *testing.T) {
	conform.Covers(t, "P-122", "P-23", "P-140", "W-122")
	w := newWorld(t)
	p := w.policy(t, permission.Config{Rules: []permission.RuleSet{{Source: permission.SourceManaged, Deny: []string{"Bash(make *)"}}}})
	notDir := filepath.Join(w.project, "a.txt")
	for want, u := range map[string]permission.Update{
		"policySettings":    {Type: "removeRules", Behavior: deny, Rules: []permission.RuleValue{{ToolName: "Bash", RuleContent: "make *"}}, Destination: "policySettings"},
		"\"addRule\"":       {Type: "addRule", Behavior: deny, Rules: []permission.RuleValue{{ToolName: "Bash"}}},
		"\"maybe\"":         {Type: "addRules", Behavior: "maybe", Rules: []permission.RuleValue{{ToolName: "Bash"}}},
		"no rules":          {Type: "addRules", Behavior: allow},
		"must end with":     {Type: "addRules", Behavior: allow, Rules: []permission.RuleValue{{ToolName: "Read"}, {ToolName: "Bash(x"}}},
		"WebFetch(x)":       {Type: "addRules", Behavior: allow, Rules: []permission.RuleValue{{ToolName: "WebFetch", RuleContent: "x"}}},
		"no mode":           {Type: "setMode"},
		"\"yolo\"":          {Type: "setMode", Mode: "yolo"},
		"bypassPermissions": {Type: "setMode", Mode: "bypassPermissions"},
		"no directories":    {Type: "addDirectories"},
		"not a directory":   {Type: "addDirectories", Directories: []string{notDir}},
		"does not exist":    {Type: "addDirectories", Directories: []string{"/no/such/directory"}},
		"is empty":          {Type: "addDirectories", Directories: []string{""}},
	} {
		q, _, err := p.Apply(u)
		var bad *permission.UpdateError
		if !errors.As(err, &bad) || q != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", u, err, want)
		}
	}
	q := apply(t, p, `{"type":"replaceRules","behavior":"deny","rules":[],"destination":"session"}`, `{"type":"removeRules","behavior":"deny","rules":[{"toolName":"Bash","ruleContent":"make *"}],"destination":"userSettings"}`,
		`{"type":"addRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"make *"}],"destination":"session"}`)
	if d := q.Decide(bash("make x")); d.Behavior != deny {
		t.Errorf("the organization's rule was overridden: %+v", d)
	}
	if _, _, err := p.Apply(permission.Update{Type: "setMode", Mode: "bypassPermissions"}); !errors.Is(err, permission.ErrBypassUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestUpdateWarnings: a rule that never matches is told, as at the start.
func TestUpdateWarnings(t *testing.T) {
	conform.Covers(t, "P-44", "P-78")
	p := newPolicy(t, permission.Config{Dirs: []string{t.TempDir()}})
	for _, v := range []permission.RuleValue{{ToolName: "Ba*"}, {ToolName: "Write", RuleContent: "x"}} {
		q, warnings, err := p.Apply(permission.Update{Type: "addRules", Behavior: allow, Rules: []permission.RuleValue{v}})
		if err != nil || len(warnings) != 1 || len(q.Allow) != 0 {
			t.Errorf("%s: %q, %v", v, warnings, err)
		}
	}
}

// TestAddedDirectories are told as they were given, once each.
func TestAddedDirectories(t *testing.T) {
	conform.Covers(t, "P-96")
	w := newWorld(t)
	link := filepath.Join(w.root, "l")
	if err := os.Symlink(w.outside, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	p := w.policy(t, permission.Config{Dirs: []string{w.home}, Rules: []permission.RuleSet{{Source: permission.SourceLocal, Dirs: []string{link, w.home}}}})
	if got := p.Added(); !slices.Equal(got, []string{w.home, link}) {
		t.Errorf("%q", got)
	}
	if d := decided(t, w, p, "Read $O/o.txt"); d.Behavior != allow {
		t.Errorf("through the link: %+v", d)
	}
	q := apply(t, p, w.fill(`{"type":"removeDirectories","directories":["`+filepath.ToSlash(link)+`","%H"],"destination":"localSettings"}`))
	if got := q.Added(); !slices.Equal(got, []string{w.home}) {
		t.Errorf("%q", got)
	}
	if d := decided(t, w, q, "Read $O/o.txt"); d.Behavior != ask {
		t.Errorf("removed: %+v", d)
	}
}
