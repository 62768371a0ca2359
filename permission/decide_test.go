package permission_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
	"pgregory.net/rapid"
)

func newPolicy(t testing.TB, c permission.Config) *permission.Policy {
	t.Helper()
	p, warnings, err := permission.NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Fatalf("unexpected warnings: %q", warnings)
	}
	return p
}

// request is a call of a built-in tool; file is relative to dir.
func request(t testing.TB, tool, dir, file string) permission.Request {
	t.Helper()
	kinds := map[string]permission.Kind{"Read": permission.Read, "Glob": permission.Read, "Edit": permission.Write, "Write": permission.Write, "custom": permission.Read}
	r := permission.Request{Tool: tool, ReadOnly: tool == "Read" || tool == "custom"}
	switch kind, isFile := kinds[tool]; {
	case isFile && file != "":
		a, err := permission.NewPathAccess(kind, filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		r.Accesses = []permission.Access{a}
	case tool == "Bash":
		r.Accesses = []permission.Access{{Kind: permission.Exec, Target: "make", Written: "make"}}
	}
	return r
}

func TestDecide(t *testing.T) {
	const in, out, git = "a.txt", "../elsewhere/a.txt", ".git/config"
	type c = permission.Config
	allow, deny, ask := permission.Allow, permission.Deny, permission.Ask
	for _, test := range []struct {
		name   string
		ids    []string
		config c
		tool   string
		file   string
		want   permission.Behavior
		typ    string
		reason string
	}{
		{"default asks for what nothing allows", []string{"P-7", "L-142"}, c{}, "Bash", "", ask, "mode", "nothing allows"},
		{"default reads in scope", []string{"P-7", "P-97", "T-58"}, c{}, "Read", in, allow, "other", "inside"},
		{"default reads outside ask", []string{"P-97", "T-58"}, c{}, "Read", out, ask, "mode", ""},
		{"a read of nothing known asks", nil, c{}, "Read", "", ask, "mode", ""},
		{"glob in scope", []string{"P-97"}, c{}, "Glob", in, allow, "other", ""},
		{"default edits ask", []string{"P-7"}, c{}, "Edit", in, ask, "mode", ""},
		{"a read-only custom tool needs a rule", []string{"T-189"}, c{}, "custom", in, ask, "mode", ""},
		{"allow rule", []string{"P-27", "L-142"}, c{Allow: []string{"Bash"}}, "Bash", "", allow, "rule", `"Bash"`},
		{"allow rule with star", []string{"P-39"}, c{Allow: []string{"Bash(*)"}}, "Bash", "", allow, "rule", ""},
		{"allow rule for a custom tool", []string{"T-189"}, c{Allow: []string{"custom"}}, "custom", "", allow, "rule", ""},
		{"names are case-sensitive", []string{"T-1"}, c{Allow: []string{"bash"}}, "Bash", "", ask, "mode", ""},
		{"deny wins over allow", []string{"P-29", "P-33", "P-34"}, c{Allow: []string{"Bash"}, Deny: []string{"Bash"}}, "Bash", "", deny, "rule", `"Bash"`},
		{"deny wins over ask", []string{"P-33"}, c{Ask: []string{"Bash"}, Deny: []string{"Bash"}}, "Bash", "", deny, "rule", ""},
		{"ask wins over allow", []string{"P-30", "P-33"}, c{Ask: []string{"Bash"}, Allow: []string{"Bash"}}, "Bash", "", ask, "rule", `"Bash"`},
		{"ask in bypass", []string{"P-17", "P-30"}, c{Ask: []string{"Bash"}, Mode: "bypassPermissions", BypassAvailable: true}, "Bash", "", ask, "rule", ""},
		{"ask in dontAsk", []string{"P-30"}, c{Ask: []string{"Read"}, Allow: []string{"Read"}, Mode: "dontAsk"}, "Read", in, deny, "mode", "ask rule"},
		{"deny in bypass", []string{"P-17", "P-29"}, c{Deny: []string{"Bash"}, Mode: "bypassPermissions", BypassAvailable: true}, "Bash", "", deny, "rule", ""},
		{"deny by glob", []string{"P-43"}, c{Deny: []string{"Ba*"}, Allow: []string{"Bash"}}, "Bash", "", deny, "rule", `"Ba*"`},
		{"deny of everything", []string{"P-43"}, c{Deny: []string{"*"}}, "Read", in, deny, "rule", ""},
		{"deny of an MCP server", []string{"P-53"}, c{Deny: []string{"mcp__git"}, Allow: []string{"mcp__git__log"}}, "mcp__git__log", "", deny, "rule", ""},
		{"allow of an MCP server", []string{"P-53"}, c{Allow: []string{"mcp__git"}}, "mcp__git__log", "", allow, "rule", ""},
		{"not of another server", []string{"P-53"}, c{Allow: []string{"mcp__git"}}, "mcp__github__log", "", ask, "mode", ""},
		{"allow glob after the server", []string{"P-44"}, c{Allow: []string{"mcp__git__get_*"}}, "mcp__git__get_log", "", allow, "rule", ""},
		{"old name in a rule", []string{"T-4"}, c{Deny: []string{"Task"}}, "Agent", "", deny, "rule", ""},
		{"old name in a call", []string{"T-4"}, c{Deny: []string{"TaskStop"}}, "KillShell", "", deny, "rule", ""},

		{"acceptEdits edits in scope", nil, c{Mode: "acceptEdits"}, "Edit", in, allow, "mode", "acceptEdits"},
		{"acceptEdits outside", []string{"P-9", "P-98"}, c{Mode: "acceptEdits"}, "Edit", out, ask, "mode", ""},
		{"acceptEdits protected", []string{"P-9", "P-107"}, c{Mode: "acceptEdits"}, "Edit", git, ask, "mode", ""},
		{"acceptEdits and other commands", []string{"P-9"}, c{Mode: "acceptEdits"}, "Bash", "", ask, "mode", ""},
		{"acceptEdits and MCP tools", []string{"P-9"}, c{Mode: "acceptEdits"}, "mcp__fs__write", "", ask, "mode", ""},
		{"acceptEdits reads", nil, c{Mode: "acceptEdits"}, "Read", in, allow, "other", ""},
		{"allow rules and protected paths", []string{"P-108"}, c{Allow: []string{"Edit"}}, "Edit", git, ask, "other", "protected"},
		{"bypass and protected paths", []string{"P-17", "P-107"}, c{Mode: "bypassPermissions", BypassAvailable: true}, "Edit", git, allow, "mode", ""},
		{"dontAsk and protected paths", []string{"P-107"}, c{Allow: []string{"Edit"}, Mode: "dontAsk"}, "Edit", git, deny, "mode", ""},

		{"plan reads", []string{"P-10"}, c{Mode: "plan"}, "Read", in, allow, "other", ""},
		{"plan edits ask even when allowed", []string{"P-10"}, c{Mode: "plan", Allow: []string{"Edit"}}, "Edit", in, ask, "mode", "plan"},
		{"plan commands ask even when allowed", []string{"P-10", "P-11"}, c{Mode: "plan", Allow: []string{"Bash"}}, "Bash", "", ask, "mode", "plan"},
		{"plan and custom tools: rules", []string{"P-13"}, c{Mode: "plan", Allow: []string{"custom"}}, "custom", "", allow, "rule", ""},
		{"plan and custom tools: no rule", []string{"P-13"}, c{Mode: "plan"}, "custom", "", ask, "mode", ""},
		{"plan with bypass available", nil, c{Mode: "plan", BypassAvailable: true}, "Bash", "", allow, "mode", ""},

		{"dontAsk denies what would ask", []string{"P-15"}, c{Mode: "dontAsk"}, "Bash", "", deny, "mode", "dontAsk"},
		{"dontAsk runs what is allowed", []string{"P-15"}, c{Mode: "dontAsk", Allow: []string{"Bash"}}, "Bash", "", allow, "rule", ""},
		{"dontAsk reads in scope", []string{"P-16"}, c{Mode: "dontAsk"}, "Read", in, allow, "other", ""},
		{"dontAsk reads outside", []string{"P-16"}, c{Mode: "dontAsk"}, "Read", out, deny, "mode", ""},

		{"bypass allows", []string{"P-17"}, c{Mode: "bypassPermissions", BypassAvailable: true}, "Bash", "", allow, "mode", ""},
		{"bypass is not narrowed by allow rules", []string{"P-18"}, c{Mode: "bypassPermissions", BypassAvailable: true, Allow: []string{"Read"}}, "Bash", "", allow, "mode", ""},

		{"questions always ask", []string{"P-31"}, c{Allow: []string{"AskUserQuestion"}}, "AskUserQuestion", "", ask, "other", "person"},
		{"questions in bypass", []string{"P-17", "P-31"}, c{Mode: "bypassPermissions", BypassAvailable: true}, "AskUserQuestion", "", ask, "other", ""},
		{"questions in dontAsk", []string{"P-31"}, c{Mode: "dontAsk"}, "AskUserQuestion", "", deny, "mode", ""},
		{"spawning needs no approval", []string{"A-18"}, c{}, "Agent", "", allow, "other", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if len(test.ids) > 0 {
				conform.Covers(t, test.ids...)
			}
			dir := t.TempDir()
			test.config.Dirs = []string{dir}
			d := newPolicy(t, test.config).Decide(request(t, test.tool, dir, test.file))
			if d.Behavior != test.want || d.ReasonType != test.typ || !strings.Contains(d.Reason, test.reason) {
				t.Errorf("got %+v\nwant %s by %s (%q)", d, test.want, test.typ, test.reason)
			}
			if (d.Message != "") != (d.Behavior == permission.Deny) {
				t.Errorf("message of %+v: only a denial has one", d)
			}
			if d.Behavior == permission.Deny && !(strings.Contains(d.Message, test.tool) && strings.Contains(d.Message, d.Reason)) {
				t.Errorf("denial %q does not name the tool and the step", d.Message)
			}
		})
	}
}

func TestUnasked(t *testing.T) {
	conform.Covers(t, "P-35", "P-138", "L-145")
	p := newPolicy(t, permission.Config{Dirs: []string{t.TempDir()}})
	d := p.Decide(permission.Request{Tool: "Bash"}).Unasked("Bash")
	if d.Behavior != permission.Deny || d.ReasonType != permission.ReasonMode {
		t.Errorf("got %+v, want a denial by mode", d)
	}
	for _, part := range []string{"Bash", "no way to ask", "denied again"} {
		if !strings.Contains(d.Message, part) {
			t.Errorf("message %q lacks %q", d.Message, part)
		}
	}
	allowed := permission.Decision{Behavior: permission.Allow, ReasonType: "rule"}
	if got := allowed.Unasked("Bash"); !reflect.DeepEqual(got, allowed) {
		t.Errorf("an allowed call became %+v", got)
	}
}

func TestDenyOrder(t *testing.T) {
	conform.Covers(t, "P-27", "P-29", "P-33")
	tools := []string{"Read", "Edit", "Bash", "Agent", "custom", "AskUserQuestion", "mcp__a__b"}
	modes := []permission.Mode{permission.ModeDefault, permission.ModeAcceptEdits, permission.ModePlan, permission.ModeDontAsk, permission.ModeBypass}
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		c := permission.Config{
			Allow: rapid.SliceOf(rapid.SampledFrom(tools)).Draw(rt, "allow"),
			Ask:   rapid.SliceOf(rapid.SampledFrom(tools)).Draw(rt, "ask"),
			Deny:  rapid.SliceOf(rapid.SampledFrom(append(tools, "*", "mcp__*"))).Draw(rt, "deny"),
			Mode:  rapid.SampledFrom(modes).Draw(rt, "mode"),
			Dirs:  []string{dir}, BypassAvailable: true,
		}
		p, _, err := permission.NewPolicy(c)
		if err != nil {
			rt.Fatal(err)
		}
		name := rapid.SampledFrom(tools).Draw(rt, "tool")
		d := p.Decide(request(t, name, dir, "a"))
		denied := slices.Contains(c.Deny, name) || slices.Contains(c.Deny, "*") || strings.HasPrefix(name, "mcp__") && slices.Contains(c.Deny, "mcp__*")
		if denied != p.Removed(name) {
			rt.Fatalf("Removed = %v, want %v", p.Removed(name), denied)
		}
		switch {
		case denied && d.Behavior != permission.Deny:
			rt.Fatalf("deny rule overruled: %+v", d)
		case !denied && c.Mode != permission.ModeDontAsk && d.Behavior == permission.Deny:
			rt.Fatalf("denied without a deny rule: %+v", d)
		case !denied && slices.Contains(c.Ask, name) && d.Behavior == permission.Allow:
			rt.Fatalf("ask rule overruled: %+v", d)
		case c.Mode == permission.ModeDontAsk && d.Behavior == permission.Ask:
			rt.Fatalf("asks in dontAsk: %+v", d)
		}
	})
}

func TestNewPolicyErrors(t *testing.T) {
	t.Run("every fault at once", func(t *testing.T) {
		conform.Covers(t, "P-84")
		_, _, err := permission.NewPolicy(permission.Config{
			Allow: []string{"WebFetch(domain:x.test)", "Bash("}, Deny: []string{"custom(x)", "Read(!a)"}, Mode: "yolo", Dirs: []string{"relative"},
		})
		if err == nil {
			t.Fatal("no error")
		}
		for _, part := range []string{`"WebFetch(domain:x.test)"`, "issue J", `"Bash("`, `"custom(x)"`, `"Read(!a)"`, `"yolo"`, `"relative"`} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not named in:\n%v", part, err)
			}
		}
		if !errors.Is(err, permission.ErrScopedRule) {
			t.Error("not an ErrScopedRule")
		}
	})
	t.Run("bypass needs its option", func(t *testing.T) {
		conform.Covers(t, "P-19", "P-20")
		_, _, err := permission.NewPolicy(permission.Config{Mode: permission.ModeBypass})
		if !errors.Is(err, permission.ErrBypassUnavailable) || !strings.Contains(err.Error(), "allowDangerouslySkipPermissions") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bypass cannot be entered later", func(t *testing.T) {
		conform.Covers(t, "P-23")
		p := newPolicy(t, permission.Config{})
		if _, err := p.WithMode(permission.ModeBypass); !errors.Is(err, permission.ErrBypassUnavailable) {
			t.Errorf("got %v", err)
		}
		p = newPolicy(t, permission.Config{BypassAvailable: true})
		q, err := p.WithMode(permission.ModeBypass)
		if err != nil || q.Mode != permission.ModeBypass || p.Mode != permission.ModeDefault {
			t.Errorf("got %+v, %v; the first is now %s", q, err, p.Mode)
		}
	})
	t.Run("root", func(t *testing.T) {
		conform.Covers(t, "P-21", "P-22")
		env := func(pairs ...string) func(string) string {
			return func(k string) string {
				for i := 0; i < len(pairs); i += 2 {
					if pairs[i] == k {
						return pairs[i+1]
					}
				}
				return ""
			}
		}
		for _, test := range []struct {
			mode permission.Mode
			goos string
			euid int
			env  func(string) string
			ok   bool
		}{
			{"bypassPermissions", "linux", 0, env(), false},
			{"bypassPermissions", "darwin", 0, env(), false},
			{"bypassPermissions", "linux", 1000, env("SUDO_UID", "0"), false},
			{"bypassPermissions", "linux", 1000, env(), true},
			{"bypassPermissions", "linux", 0, env("IS_SANDBOX", "1"), true},
			{"bypassPermissions", "linux", 0, env("IS_SANDBOX", "true"), false},
			{"bypassPermissions", "windows", -1, env(), true},
			{"default", "linux", 0, env(), true},
		} {
			if err := permission.CheckRoot(test.mode, test.goos, test.euid, test.env); (err == nil) != test.ok {
				t.Errorf("CheckRoot(%s, %s, %d) = %v", test.mode, test.goos, test.euid, err)
			}
		}
	})
}

func TestWarnings(t *testing.T) {
	t.Run("allow globs", func(t *testing.T) {
		conform.Covers(t, "P-44")
		for _, rule := range []string{"*", "Ba*", "mcp__*", "mcp__git*", "mcp__*__log", "mcp____*"} {
			p, warnings, err := permission.NewPolicy(permission.Config{Allow: []string{rule}})
			if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], rule) {
				t.Errorf("%q: warnings %q, error %v", rule, warnings, err)
				continue
			}
			for _, name := range []string{"Bash", "mcp__git__log"} {
				if d := p.Decide(permission.Request{Tool: name}); d.Behavior != permission.Ask {
					t.Errorf("%q approves %s: %+v", rule, name, d)
				}
			}
		}
	})
	t.Run("unknown tools", func(t *testing.T) {
		conform.Covers(t, "P-45")
		_, warnings, err := permission.NewPolicy(permission.Config{
			Tools: []string{"Read", "Agent"},
			Allow: []string{"Nope"}, Deny: []string{"Raed", "mcp__x", "X*", "Task"}, Ask: []string{"Read"},
		})
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "Raed") {
			t.Errorf("warnings %q, error %v", warnings, err)
		}
	})
	t.Run("auto", func(t *testing.T) {
		conform.Covers(t, "P-4")
		p, warnings, err := permission.NewPolicy(permission.Config{Mode: permission.ModeAuto})
		if err != nil || p.Mode != permission.ModeDefault || len(warnings) != 1 {
			t.Errorf("mode %v, warnings %q, error %v", p, warnings, err)
		}
	})
}

func TestParseMode(t *testing.T) {
	conform.Covers(t, "P-1")
	for text, want := range map[string]permission.Mode{
		"": "default", "manual": "default", "default": "default", "acceptEdits": "acceptEdits", "plan": "plan",
		"dontAsk": "dontAsk", "bypassPermissions": "bypassPermissions", "auto": "auto",
	} {
		if got, err := permission.ParseMode(text); err != nil || got != want {
			t.Errorf("ParseMode(%q) = %q, %v", text, got, err)
		}
	}
	if _, err := permission.ParseMode("Plan"); err == nil || !strings.Contains(err.Error(), `"Plan"`) {
		t.Errorf("ParseMode of a wrong name: %v", err)
	}
}

func TestLinks(t *testing.T) {
	conform.Covers(t, "P-87", "P-88")
	root := t.TempDir()
	dir, outside := filepath.Join(root, "work"), filepath.Join(root, "outside")
	for _, d := range []string{dir, filepath.Join(outside, "sub")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{
		filepath.Join(dir, "out"):        outside,
		filepath.Join(dir, "dangling"):   filepath.Join(outside, "not", "yet"),
		filepath.Join(dir, "relative"):   filepath.Join("..", "outside", "missing"),
		filepath.Join(dir, "self"):       dir,
		filepath.Join(dir, "sub"):        filepath.Join(outside, "sub"),
		filepath.Join(outside, "sub/up"): filepath.Join("..", "missing"),
		filepath.Join(outside, "inside"): dir,
		filepath.Join(dir, "loop"):       filepath.Join(dir, "loop"),
		filepath.Join(root, "alias"):     dir,
	}
	for name, to := range links {
		if err := os.Symlink(to, name); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	p := newPolicy(t, permission.Config{Mode: permission.ModeAcceptEdits, Dirs: []string{dir}})
	for path, want := range map[string]permission.Behavior{
		"work/new/deep/file":      permission.Allow,
		"work/self/self/x":        permission.Allow,
		"work/out/x":              permission.Ask, // the link's target is outside
		"work/out":                permission.Ask,
		"work/dangling":           permission.Ask, // writing would create it outside
		"work/dangling/x":         permission.Ask,
		"work/relative/x/y":       permission.Ask,
		"work/sub/up":             permission.Ask, // relative to where the link really is
		"outside/inside/x":        permission.Ask, // as written it is outside
		"outside/x":               permission.Ask,
		"workshop/x":              permission.Ask, // only a common prefix of the name
		"work/../outside/x":       permission.Ask,
		"work/new/../ok":          permission.Allow,
		"work/sub/../../outside/": permission.Ask,
	} {
		a, err := permission.NewPathAccess(permission.Write, root+"/"+path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if d := p.Decide(permission.Request{Tool: "Edit", Accesses: []permission.Access{a}}); d.Behavior != want {
			t.Errorf("%s → %s: got %+v, want %s", path, a.Target, d, want)
		}
	}
	for _, path := range []string{filepath.Join(dir, "loop"), filepath.Join(dir, "loop", "x"), "relative", "/a\x00b"} {
		if a, err := permission.NewPathAccess(permission.Write, path); err == nil {
			t.Errorf("%q: got %+v, want an error", path, a)
		}
	}
	// A working directory that is a link is known by both names.
	p = newPolicy(t, permission.Config{Dirs: []string{filepath.Join(root, "alias")}})
	for _, path := range []string{"alias/x", "work/x"} {
		a, err := permission.NewPathAccess(permission.Read, filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Decide(permission.Request{Tool: "Read", Accesses: []permission.Access{a}}); d.Behavior != permission.Allow {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

func TestProtected(t *testing.T) {
	conform.Covers(t, "P-105", "P-106")
	for path, want := range map[string]bool{
		"/w/.git/hooks/pre-commit": true, "/w/.git": true, "/w/.GIT/config": true, "/w/.git./config": true,
		"/w/.claude/settings.json": true, "/w/.claude/worktrees/a/x.go": false, "/w/.claude/worktrees/a/.git/config": true,
		"/h/.config/git/config": true, "/h/.config/other": false, "/w/.bashrc": true, "/w/sub/.mcp.json": true,
		"/w/gitconfig": false, "/w/.gitignore": false, "/w/.bashrc/x": false, "/w/src/main.go": false, "/": false,
	} {
		if got := permission.Protected(path); got != want {
			t.Errorf("Protected(%q) = %v", path, got)
		}
	}
}
