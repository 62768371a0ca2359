package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/turnwright/turnwright/permission"
)

const permissionsUsage = `Usage: turnwright permissions check [flags] COMMAND
       turnwright permissions check [flags] --tool TOOL [PATH]

Says what would become of a call, and why. Nothing is run. Only the rules that
are given here count, in the working directory and its mode; settings files are
not read.

Flags:
`

// checkOptions are the flags of the check.
type checkOptions struct {
	rules, dirs []string
	mode, tool  string
	json, help  bool
}

func (o *checkOptions) set() *pflag.FlagSet {
	fs := pflag.NewFlagSet("turnwright permissions", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	fs.StringArrayVar(&o.rules, "rules", nil, "rules with their list in front, such as \"deny:Bash(rm *) ask:Edit allow:Bash(make *)\"; without one a rule allows")
	fs.StringVar(&o.mode, "permission-mode", "", "default, acceptEdits, plan, dontAsk, bypassPermissions")
	fs.StringArrayVar(&o.dirs, "add-dir", nil, "further working directories")
	fs.StringVar(&o.tool, "tool", "Bash", "the tool that is called; file tools take a path in place of the command")
	fs.BoolVar(&o.json, "json", false, "print a JSON object")
	fs.BoolVarP(&o.help, "help", "h", false, "print this help")
	return fs
}

// runPermissions explains what becomes of a call (docs/permissions.md).
func runPermissions(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	var o checkOptions
	fs := o.set()
	if err := fs.Parse(args); err != nil {
		return fail(err)
	}
	switch rest := fs.Args(); {
	case o.help:
		fmt.Fprint(stdout, permissionsUsage+flagUsages(fs))
		return 0
	case len(rest) == 0 || rest[0] != "check":
		return fail(errors.New("permissions: say \"turnwright permissions check COMMAND\""))
	case len(rest) > 2:
		return fail(fmt.Errorf("unexpected argument %q: the command is one argument (put it in quotes)", rest[2]))
	}
	config, err := checkConfig(o.rules, o.mode, o.dirs)
	if err != nil {
		return fail(err)
	}
	policy, warnings, err := permission.NewPolicy(config)
	if err != nil {
		return fail(err)
	}
	for _, w := range warnings {
		fmt.Fprintln(stderr, w)
	}
	r, err := checkRequest(o.tool, fs.Arg(1), fs.NArg() > 1, config.Dirs[0])
	if err != nil {
		return fail(err)
	}
	e := policy.Explain(r)
	if o.json {
		raw, err := json.MarshalIndent(explained(e), "", "  ")
		if err == nil {
			_, err = stdout.Write(append(raw, '\n'))
		}
		if err != nil {
			return fail(err)
		}
		return 0
	}
	fmt.Fprint(stdout, explanation(e))
	return 0
}

// checkConfig is a policy from the flags.
func checkConfig(lists []string, mode string, dirs []string) (c permission.Config, err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return c, err
	}
	home, _ := os.UserHomeDir()
	c = permission.Config{Mode: permission.Mode(mode), Dirs: []string{cwd}, BypassAvailable: mode == string(permission.ModeBypass)}
	if filepath.IsAbs(home) {
		c.Home = home
	}
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err == nil {
			err = permission.CheckDir(abs)
		}
		if err != nil {
			return c, fmt.Errorf("--add-dir %q: %w", dir, err)
		}
		c.Dirs = append(c.Dirs, abs)
	}
	for _, list := range lists {
		for _, text := range permission.SplitRules(list) {
			kind, rule, named := strings.Cut(text, ":")
			switch {
			case named && kind == "deny":
				c.Deny = append(c.Deny, rule)
			case named && kind == "ask":
				c.Ask = append(c.Ask, rule)
			case named && kind == "allow":
				c.Allow = append(c.Allow, rule)
			default:
				c.Allow = append(c.Allow, text)
			}
		}
	}
	return c, nil
}

// fileKinds are the tools that take a path.
var fileKinds = map[string]permission.Kind{
	"Read": permission.Read, "Glob": permission.Read, "Grep": permission.Read,
	"Edit": permission.Write, "Write": permission.Write, "NotebookEdit": permission.Write,
}

// checkRequest is the call that is asked about.
func checkRequest(tool, what string, given bool, cwd string) (r permission.Request, err error) {
	r = permission.Request{Tool: tool}
	kind, isFile := fileKinds[tool]
	switch {
	case tool == "Bash" || tool == "Monitor":
		if !given {
			return r, errors.New("permissions check: the command is missing")
		}
		r.Accesses = []permission.Access{{Kind: permission.Exec, Target: what, Written: what}}
	case isFile:
		if !given {
			return r, fmt.Errorf("permissions check: the path for %s is missing", tool)
		}
		if !filepath.IsAbs(what) {
			what = filepath.Join(cwd, what)
		}
		a, err := permission.NewPathAccess(kind, what)
		if err != nil {
			return r, err
		}
		r.Accesses = []permission.Access{a}
	case given:
		return r, fmt.Errorf("permissions check: nothing is known of what %s does with %q; leave it out", tool, what)
	}
	return r, nil
}

// explainedPart and explainedCall are the JSON form of an explanation.
type explainedPart struct {
	Command  string              `json:"command"`
	Behavior permission.Behavior `json:"behavior"`
	Reason   string              `json:"reason"`
	Reads    []string            `json:"reads,omitempty"`
	Writes   []string            `json:"writes,omitempty"`
	Unknown  []string            `json:"unknown,omitempty"` // words whose files are known only when it runs
	Inside   []explainedPart     `json:"inside,omitempty"`
}

type explainedCall struct {
	Behavior    permission.Behavior `json:"behavior"`
	Step        permission.Step     `json:"step"`
	ReasonType  string              `json:"reason_type"`
	Reason      string              `json:"reason"`
	Rule        string              `json:"rule,omitempty"`
	Source      permission.Source   `json:"source,omitempty"`
	BlockedPath string              `json:"blocked_path,omitempty"`
	Suggestions []permission.Update `json:"suggestions,omitempty"`
	Parts       []explainedPart     `json:"parts,omitempty"`
}

func explained(e permission.Explanation) explainedCall {
	return explainedCall{
		e.Behavior, e.Step, e.ReasonType, e.Reason, e.Rule, e.Source, e.BlockedPath, e.Suggestions, explainedParts(e.Parts),
	}
}

func explainedParts(parts []permission.Part) (out []explainedPart) {
	for _, p := range parts {
		x := explainedPart{Command: p.Command, Behavior: p.Behavior, Reason: p.Reason, Unknown: p.Unknown, Inside: explainedParts(p.Inside)}
		for _, a := range p.Files {
			list := &x.Reads
			if a.Kind == permission.Write {
				list = &x.Writes
			}
			for _, path := range []string{a.Written, a.Target} {
				if !slices.Contains(*list, path) {
					*list = append(*list, path)
				}
			}
		}
		out = append(out, x)
	}
	return out
}

// explanation is the form for people.
func explanation(e permission.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", e.Behavior, e.Step, e.Reason)
	if e.BlockedPath != "" {
		fmt.Fprintf(&b, "outside the working directories: %s\n", e.BlockedPath)
	}
	var parts func(list []explainedPart, indent string)
	parts = func(list []explainedPart, indent string) {
		for _, p := range list {
			name := p.Command
			if name == "" {
				name = "(a redirection or an assignment)"
			}
			fmt.Fprintf(&b, "%s%-5s  %s\n%s       %s\n", indent, p.Behavior, oneLine(name, 100), indent, p.Reason)
			for _, files := range []struct {
				what  string
				names []string
			}{{"reads", p.Reads}, {"writes", p.Writes}, {"not known", p.Unknown}} {
				if len(files.names) > 0 {
					fmt.Fprintf(&b, "%s       %s: %s\n", indent, files.what, strings.Join(files.names, ", "))
				}
			}
			parts(p.Inside, indent+"  ")
		}
	}
	parts(explainedParts(e.Parts), "  ")
	for _, u := range e.Suggestions {
		switch u.Type {
		case permission.UpdateSetMode:
			fmt.Fprintf(&b, "would spare the question: mode %s (%s)\n", u.Mode, u.Destination)
		default:
			for _, r := range u.Rules {
				fmt.Fprintf(&b, "would spare the question: %s %s (%s)\n", u.Behavior, r, u.Destination)
			}
		}
	}
	return b.String()
}
