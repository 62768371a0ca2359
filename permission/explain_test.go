package permission_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// TestExplain: the parts of a command are told one by one, with the files that
// they open, and together they bear the decision out.
func TestExplain(t *testing.T) {
	conform.Covers(t, "P-59", "P-60", "P-61", "P-73")
	w := newWorld(t)
	p := w.policy(t, permission.Config{Allow: []string{"Bash(make *)"}, Deny: []string{"Bash(rm *)", "Edit(locked)"}, Ask: []string{"Bash(git push:*)"}})
	e := p.Explain(bash("FOO=1 ls src; make all >out 2>>$LOG <a.txt && timeout 5 sh -c 'rm x; git push' | tee locked; eval 'git push'; rmdir .; cp a.txt src"))
	if e.Behavior != deny || e.Step != permission.StepDeny || e.Rule != "Bash(rm *)" || e.Source != permission.SourceOption {
		t.Errorf("%+v", e.Decision)
	}
	var got []string
	var tell func([]permission.Part, string)
	tell = func(parts []permission.Part, indent string) {
		for _, p := range parts {
			line := indent + string(p.Behavior) + " " + p.Command
			for _, a := range p.Files {
				line += " " + string(a.Kind) + ":" + strings.TrimPrefix(a.Target, w.project+"/")
			}
			got = append(got, strings.TrimSpace(line+" "+strings.Join(p.Unknown, " ")))
			tell(p.Inside, indent+"+")
		}
	}
	tell(e.Parts, "")
	for _, want := range []string{
		"ask ls src read:src", "ask make all write:out read:a.txt $LOG", "deny timeout 5 sh -c 'rm x; git push' write:x read:x",
		"+deny rm x write:x read:x", "+ask git push", "deny tee locked write:locked read:locked", "+ask git push", "ask rmdir . write:. read:.",
	} {
		if !slices.ContainsFunc(got, func(line string) bool { return line == want || strings.ReplaceAll(line, w.project, ".") == want }) {
			t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	for name, r := range map[string]permission.Request{"not read": bash("echo '"), "no command": {Tool: "deploy"}} {
		if e := p.Explain(r); e.Parts != nil || e.Behavior != ask || e.Reason == "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestSteps: every decision says where in the order it was made, and by which
// rule of which source.
func TestSteps(t *testing.T) {
	conform.Covers(t, "P-27", "P-138")
	w := newWorld(t)
	c := permission.Config{
		Allow: []string{"Bash(make *)", "Edit"}, Ask: []string{"Bash(git push)"},
		Rules: []permission.RuleSet{{Source: permission.SourceLocal, Deny: []string{"Bash(rm *)", "Read(.env)"}}},
	}
	for what, want := range map[string]struct {
		mode permission.Mode
		step permission.Step
		rule string
		from permission.Source
	}{
		"rm x":                 {"", permission.StepDeny, "Bash(rm *)", permission.SourceLocal},
		"git push":             {"", permission.StepAsk, "Bash(git push)", permission.SourceOption},
		"Read .env":            {"", permission.StepDeny, "Read(.env)", permission.SourceLocal},
		"cat $X":               {"", permission.StepDeny, "Read(.env)", permission.SourceLocal}, // cannot be ruled out
		"rmdir /":              {"", permission.StepPerson, "", ""},
		"touch x":              {permission.ModeAcceptEdits, permission.StepMode, "", ""},
		"make ":                {permission.ModePlan, permission.StepMode, "", ""},
		"ls":                   {"", permission.StepBuiltin, "", ""},
		"Read a.txt":           {"", permission.StepBuiltin, "", ""},
		"make x":               {"", permission.StepAllow, "Bash(make *)", permission.SourceOption},
		"Edit a.txt":           {"", permission.StepAllow, "Edit", permission.SourceOption},
		"Edit .git/config":     {"", permission.StepAllow, "", ""},
		"touch y":              {"", permission.StepPrompt, "", ""},
		"touch z":              {permission.ModeDontAsk, permission.StepMode, "", ""},
		"Read $O/o.txt":        {"", permission.StepPrompt, "", ""},
		"expr 1 && rm x":       {permission.ModeBypass, permission.StepDeny, "Bash(rm *)", permission.SourceLocal},
		"expr 1 && echo a > b": {permission.ModeBypass, permission.StepMode, "", ""},
	} {
		c := c
		c.Mode, c.BypassAvailable = want.mode, want.mode == permission.ModeBypass
		d := decided(t, w, w.policy(t, c), what)
		if d.Step != want.step || d.Rule != want.rule || d.Source != want.from || d.Reason == "" {
			t.Errorf("%s: %+v", what, d)
		}
		if want.rule != "" && !strings.Contains(d.Reason, want.rule) {
			t.Errorf("%s: the reason %q does not name the rule", what, d.Reason)
		}
		if d.Behavior == deny && want.from != "" && !strings.Contains(d.Message, string(want.from)) && !strings.Contains(d.Message, "Read deny rule") {
			t.Errorf("%s: the model is told %q", what, d.Message)
		}
		if no := d.Unasked("x"); no.Step != d.Step || no.Rule != d.Rule || no.Source != d.Source {
			t.Errorf("%s: unasked %+v", what, no)
		}
	}
}
