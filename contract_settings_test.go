package turnwright_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// The settings files of the options that base returns.
func userFile(o *turnwright.Options) string {
	return filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "settings.json")
}

func projectFile(o *turnwright.Options) string {
	return filepath.Join(o.CWD, ".claude", "settings.json")
}

func localFile(o *turnwright.Options) string {
	return filepath.Join(o.CWD, ".claude", "settings.local.json")
}

func put(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// trust records that the working directory is trusted.
func trust(t testing.TB, o *turnwright.Options) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(o.CWD)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], ".claude.json"), fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":true}}}`, dir))
}

// policy puts managed settings there for the test.
func policy(t *testing.T, text string) string {
	t.Helper()
	old := names.System
	t.Cleanup(func() { names.System = old })
	names.System = t.TempDir()
	return put(t, filepath.Join(names.System, "managed-settings.json"), text)
}

// lines collects what a session tells on stderr.
func lines(o *turnwright.Options) func() []string {
	var all []string
	o.Stderr = func(line string) { all = append(all, line) }
	return func() []string { return all } // after the end of the session
}

// initOf is the first init message.
func initOf(t *testing.T, out outcome) *turnwright.InitMessage {
	t.Helper()
	if out.err != nil || len(out.messages) == 0 {
		t.Fatalf("no messages: %v", out.err)
	}
	m, ok := out.messages[0].(*turnwright.InitMessage)
	if !ok {
		t.Fatalf("the first message is %s", out.shape())
	}
	return m
}

func testSettingSources(t *testing.T) {
	conform.Covers(t, "O-2", "O-5", "O-73", "C-9", "C-10")
	for _, tt := range []struct {
		sources []string
		want    string
	}{
		{nil, "local"},
		{[]string{}, model.DefaultCatalog().Resolve("sonnet")},
		{[]string{turnwright.SourceUser}, "user"},
		{[]string{turnwright.SourceProject, turnwright.SourceUser}, "project"},
		{[]string{turnwright.SourceLocal}, "local"},
	} {
		r := request(t, func(o *turnwright.Options) {
			put(t, userFile(o), `{"model":"user"}`)
			put(t, projectFile(o), `{"model":"project"}`)
			put(t, localFile(o), `{"model":"local"}`)
			o.SettingSources, o.Model = tt.sources, ""
		})
		if r.Model() != tt.want {
			t.Errorf("sources %q: model %s, want %s", tt.sources, r.Model(), tt.want)
		}
	}
	refused(t, "SettingSources", `"policy"`, func(o *turnwright.Options) { o.SettingSources = []string{"user", "policy"} })
	// Managed settings are read in any case.
	policy(t, `{"model":"managed"}`)
	if r := request(t, func(o *turnwright.Options) { o.SettingSources = []string{} }); r.Model() != "managed" {
		t.Errorf("without sources: model %s", r.Model())
	}
}

func testSettings(t *testing.T) {
	conform.Covers(t, "O-74", "C-4", "C-13")
	r := request(t, func(o *turnwright.Options) {
		put(t, localFile(o), `{"model":"local","env":{"CLAUDE_CODE_MAX_OUTPUT_TOKENS":"900"}}`)
		o.Model, o.Settings = "", ` {"model":"flag"}`
	})
	if r.Model() != "flag" || string(r.Field("max_tokens")) != "900" {
		t.Errorf("model %s, max_tokens %s", r.Model(), r.Field("max_tokens"))
	}
	r = request(t, func(o *turnwright.Options) {
		put(t, filepath.Join(o.CWD, "s.json"), `{"model":"file"}`)
		o.Model, o.Settings = "", "s.json"
	})
	if r.Model() != "file" {
		t.Errorf("model %s", r.Model())
	}
	refused(t, "Settings", "no/such.json", func(o *turnwright.Options) { o.Settings = "no/such.json" })
	refused(t, "Settings", ":2:1: is not JSON", func(o *turnwright.Options) { o.Settings = "{\n" + "model" })
}

func testManagedSettings(t *testing.T) {
	conform.Covers(t, "O-75", "O-4", "C-23", "P-140")
	var notes []string
	out := call(t, &notes, func(o *turnwright.Options) {
		o.ManagedSettings = json.RawMessage(`{"permissions":{"deny":["note"]}}`)
		o.AllowedTools, o.PermissionMode, o.AllowDangerouslySkipPermissions = []string{"note"}, turnwright.ModeBypassPermissions, true
		o.Env["IS_SANDBOX"] = "1"
		put(t, userFile(o), `{"permissions":{"allow":["note"]}}`)
	})
	if len(notes) > 0 || len(out.result.PermissionDenials) > 1 {
		t.Errorf("the managed rule did not hold: %q", notes)
	}
	refused(t, "ManagedSettings", ":1:2: is not JSON", func(o *turnwright.Options) { o.ManagedSettings = json.RawMessage(`{x}`) })
	refused(t, "ManagedSettings", "permissions.deny: must be a list", func(o *turnwright.Options) {
		o.ManagedSettings = json.RawMessage(`{"permissions":{"deny":"note"}}`)
	})
}

// TestSettingsBelowOptions: options stand above files, policy above options.
func TestSettingsBelowOptions(t *testing.T) {
	conform.Covers(t, "O-4", "C-4", "L-113", "P-2", "C-36", "C-39")
	text := `{"model":"FILE","permissions":{"defaultMode":"acceptEdits"},"env":{"CLAUDE_CODE_MAX_OUTPUT_TOKENS":"100","ANTHROPIC_CUSTOM_HEADERS":"X-From: FILE"}}`
	for _, tt := range []struct {
		name                       string
		file, managed              bool
		option                     bool
		variable                   string
		model, mode, header, limit string
	}{
		{name: "nothing", model: "claude-sonnet-4-5", mode: "default", limit: "32000"},
		{name: "file", file: true, model: "user", mode: "acceptEdits", header: "user", limit: "100"},
		{name: "variable", file: true, variable: "variable", model: "variable", mode: "acceptEdits", header: "user", limit: "100"},
		{name: "option", file: true, variable: "variable", option: true, model: "option", mode: "plan", header: "option", limit: "100"},
		{name: "policy", file: true, managed: true, variable: "variable", option: true, model: "managed", mode: "plan", header: "managed", limit: "100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
			o := base(t, srv)
			told := lines(&o)
			o.Model = ""
			delete(o.Env, "ANTHROPIC_CUSTOM_HEADERS")
			t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "")
			if tt.file {
				put(t, userFile(&o), strings.ReplaceAll(text, "FILE", "user"))
			}
			if tt.managed {
				policy(t, strings.ReplaceAll(text, "FILE", "managed"))
			}
			if o.Env["ANTHROPIC_MODEL"] = tt.variable; tt.variable == "" && !tt.file {
				o.Model = "claude-sonnet-4-5"
			}
			if tt.option {
				o.Model, o.PermissionMode, o.Env["ANTHROPIC_CUSTOM_HEADERS"] = "option", turnwright.ModePlan, "X-From: option"
			}
			out := query(t, "go", o)
			r := srv.Last()
			if r.Model() != tt.model || r.Header.Get("X-From") != tt.header || string(r.Field("max_tokens")) != tt.limit && tt.model != "claude-sonnet-4-5" {
				t.Errorf("model %s, header %q, max_tokens %s", r.Model(), r.Header.Get("X-From"), r.Field("max_tokens"))
			}
			if mode := string(initOf(t, out).PermissionMode); mode != tt.mode {
				t.Errorf("mode %s, want %s", mode, tt.mode)
			}
			if warned := slices.ContainsFunc(told(), func(l string) bool { return strings.Contains(l, `Model "option" is not used`) }); warned != tt.managed {
				t.Errorf("told %q", told())
			}
		})
	}
}

// TestSettingsEnv: variables reach commands; an empty one takes the inherited
// one away.
func TestSettingsEnv(t *testing.T) {
	conform.Covers(t, "C-28", "C-36", "C-37", "C-38", "C-40", "O-72")
	if runtime.GOOS == "windows" {
		t.Skip("needs a Unix shell")
	}
	t.Setenv("TW_INHERITED", "shell")
	t.Setenv("TW_CANCELLED", "shell")
	t.Setenv("TW_POLICY", "shell")
	for _, bare := range []bool{false, true} {
		var text string
		run := func(set func(*turnwright.Options)) string {
			srv := agenttest.NewServer(t, bashCalls(`echo "$TW_INHERITED ${TW_CANCELLED-none} $TW_FILE $TW_OPTION ${TW_POLICY-none} ${TW_EMPTY-none}"`))
			o := base(t, srv)
			o.Bare = bare
			o.AllowedTools = []string{"Bash"}
			o.Env["TW_OPTION"], o.Env["TW_EMPTY"] = "option", ""
			put(t, userFile(&o), `{"env":{"TW_INHERITED":"user","TW_FILE":"user","TW_OPTION":"user"}}`)
			put(t, projectFile(&o), `{"env":{"TW_CANCELLED":"","TW_FILE":"project"}}`) // the folder is not trusted
			set(&o)
			query(t, "go", o)
			text = srv.Last().LastToolResults()[0].Text
			return strings.TrimSpace(text)
		}
		if got := run(func(*turnwright.Options) {}); got != "user none project option shell" {
			t.Errorf("bare %v: %q", bare, got)
		}
		if got := run(func(o *turnwright.Options) {
			o.ManagedSettings = json.RawMessage(`{"env":{"TW_OPTION":"managed","TW_POLICY":""}}`)
		}); got != "user none project managed none" {
			t.Errorf("bare %v, with policy: %q", bare, got)
		}
		if got := run(func(o *turnwright.Options) {
			o.ReplaceEnv, o.Env["PATH"] = true, os.Getenv("PATH")
			put(t, userFile(o), `{"env":{"TW_FILE":"user"}}`)
		}); got != "none project option none" {
			t.Errorf("bare %v, with a replaced environment: %q", bare, got)
		}
	}
}

// TestSettingsCannotMoveRules: a file cannot change what "~" means in rules, or
// where settings are found, or claim to be a sandbox.
func TestSettingsCannotMoveRules(t *testing.T) {
	conform.Covers(t, "P-22")
	home := t.TempDir()
	secret := put(t, filepath.Join(home, "secret"), "the secret")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Read", string(mustJSON(map[string]string{"file_path": secret}))), agenttest.Text("done")))
	o := base(t, srv)
	o.Env["HOME"], o.Env["USERPROFILE"] = home, home
	o.AllowedTools, o.DisallowedTools = []string{"Read"}, []string{"Read(~/secret)"}
	told := lines(&o)
	elsewhere := t.TempDir()
	put(t, projectFile(&o), string(mustJSON(map[string]any{"env": map[string]string{"HOME": elsewhere, "USERPROFILE": elsewhere, "CLAUDE_CONFIG_DIR": elsewhere}})))
	o.Store = nil
	out := query(t, "go", o)
	if len(out.result.PermissionDenials) != 1 {
		t.Error("HOME in a settings file moved a rule")
	}
	if found, _ := os.ReadDir(elsewhere); len(found) > 0 {
		t.Error("a settings file moved the configuration home")
	}
	if n := len(told()); n != 3 {
		t.Errorf("told %q", told())
	}
	if os.Geteuid() == 0 && runtime.GOOS != "windows" {
		refused(t, "PermissionMode", "root", func(o *turnwright.Options) {
			o.Env["IS_SANDBOX"] = ""
			o.PermissionMode, o.AllowDangerouslySkipPermissions = turnwright.ModeBypassPermissions, true
			o.Settings = `{"env":{"IS_SANDBOX":"1"}}`
		})
	}
}

// TestSettingsHome: the user's file is in the configuration home, and so is the
// record of trust when that was moved.
func TestSettingsHome(t *testing.T) {
	conform.Covers(t, "C-1", "C-3", "P-103")
	home := t.TempDir()
	for _, moved := range []bool{false, true} {
		var notes []string
		out := call(t, &notes, func(o *turnwright.Options) {
			o.Env["HOME"], o.Env["USERPROFILE"] = home, home
			dir, global := filepath.Join(home, ".claude"), filepath.Join(home, ".claude.json")
			if moved {
				dir = o.Env["CLAUDE_CONFIG_DIR"]
				global = filepath.Join(dir, ".claude.json")
			} else {
				o.Env["CLAUDE_CONFIG_DIR"] = ""
			}
			put(t, filepath.Join(dir, "settings.json"), `{"outputStyle":"mine"}`)
			put(t, projectFile(o), `{"permissions":{"allow":["note"]}}`)
			real, err := filepath.EvalSymlinks(o.CWD)
			if err != nil {
				t.Fatal(err)
			}
			put(t, global, fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":true}}}`, real))
		})
		if style := initOf(t, out).OutputStyle; style != "mine" || len(notes) != 1 {
			t.Errorf("moved %v: output style %q, notes %q", moved, style, notes)
		}
	}
}

// TestSettingsRules: rules of every file decide, and a decision says where its
// rule comes from.
func TestSettingsRules(t *testing.T) {
	conform.Covers(t, "P-34", "P-138", "P-130", "C-26")
	for name, tt := range map[string]struct {
		user, project, local, flag string
		allow                      bool
	}{
		"nothing":            {},
		"allow of the user":  {user: "allow", allow: true},
		"of the project":     {project: "allow", allow: true},
		"of the local file":  {local: "allow", allow: true},
		"of the option":      {flag: "allow", allow: true},
		"deny over allow":    {user: "deny", project: "allow", local: "allow", flag: "allow"},
		"deny of a project":  {user: "allow", project: "deny"},
		"ask over allow":     {user: "ask", local: "allow"},
		"deny of the option": {local: "allow", flag: "deny"},
	} {
		var notes []string
		var told func() []string
		call(t, &notes, func(o *turnwright.Options) {
			told = lines(o)
			trust(t, o)
			text := func(kind string) string { return fmt.Sprintf(`{"permissions":{%q:["note"]}}`, kind) }
			for file, kind := range map[string]string{userFile(o): tt.user, projectFile(o): tt.project, localFile(o): tt.local} {
				if kind != "" {
					put(t, file, text(kind))
				}
			}
			if tt.flag != "" {
				o.Settings = text(tt.flag)
			}
		})
		if (len(notes) == 1) != tt.allow || len(told()) > 0 {
			t.Errorf("%s: notes %q, told %q", name, notes, told())
		}
	}
	// A scoped deny rule leaves the tool there and is named to the model.
	var notes []string
	out := call(t, &notes, func(o *turnwright.Options) {
		put(t, projectFile(o), `{"permissions":{"deny":["note(text:x)"]}}`)
		o.AllowedTools = []string{"note"}
	})
	var denied *message.PermissionDenied
	for _, m := range out.messages {
		if d, ok := m.(*message.PermissionDenied); ok {
			denied = d
		}
	}
	want := `deny rule "note(text:x)" (projectSettings)`
	if denied == nil || denied.DecisionReason != want || !strings.Contains(denied.Message, want) || denied.DecisionReasonType != "rule" {
		t.Errorf("%+v", denied)
	}
	// Rules of settings do not hide a callback; one of an option does.
	for option, warned := range map[string]bool{"": false, "note": true} {
		var told func() []string
		call(t, &notes, func(o *turnwright.Options) {
			told = lines(o)
			put(t, userFile(o), `{"permissions":{"allow":["note"]}}`)
			if option != "" {
				o.AllowedTools = []string{option}
			}
			o.CanUseTool = func(context.Context, turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
				return turnwright.PermissionAnswer{}, nil
			}
		})
		if got := slices.ContainsFunc(told(), func(l string) bool { return strings.Contains(l, "SHADOWED") }); got != warned {
			t.Errorf("allowed by option %q: told %q", option, told())
		}
	}
}

// TestSettingsPaths: a path in a rule begins where its file says.
func TestSettingsPaths(t *testing.T) {
	conform.Covers(t, "P-79", "P-80")
	for _, tt := range []struct {
		name   string
		file   func(*turnwright.Options) string
		denied func(o *turnwright.Options) string
	}{
		{"user", userFile, func(o *turnwright.Options) string { return o.Env["CLAUDE_CONFIG_DIR"] }},
		{"project", projectFile, func(o *turnwright.Options) string { return o.CWD }},
		{"local", localFile, func(o *turnwright.Options) string { return o.CWD }},
		{"option", func(o *turnwright.Options) string {
			o.Settings = filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "sub", "s.json")
			return o.Settings
		}, func(o *turnwright.Options) string { return filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "sub") }},
	} {
		srv := agenttest.NewServer(t, agenttest.Respond(func(r *agenttest.Request) agenttest.Step {
			if r.Turn() < 3 {
				return agenttest.Call("Read", string(mustJSON(map[string]string{"file_path": filepath.Join(strings.Split(r.FirstUserText(), "|")[r.Turn()], "secret")})))
			}
			return agenttest.Text("done")
		}))
		o := base(t, srv)
		put(t, tt.file(&o), `{"permissions":{"deny":["Read(/secret)"]}}`)
		o.AllowedTools = []string{"Read"}
		dirs := []string{o.Env["CLAUDE_CONFIG_DIR"], o.CWD, filepath.Join(o.Env["CLAUDE_CONFIG_DIR"], "sub")}
		for _, dir := range dirs {
			put(t, filepath.Join(dir, "secret"), "text")
		}
		out := query(t, strings.Join(dirs, "|"), o)
		var denied []string
		for _, d := range out.result.PermissionDenials {
			denied = append(denied, string(d.ToolInput))
		}
		if len(denied) != 1 || !strings.Contains(denied[0], string(mustJSON(filepath.Join(tt.denied(&o), "secret")))) {
			t.Errorf("%s: denied %q, want that of %s", tt.name, denied, tt.denied(&o))
		}
	}
}

// TestOddRules: a rule or an entry that cannot be used is told and left out
// alone; the rest of its file holds.
func TestOddRules(t *testing.T) {
	conform.Covers(t, "P-41", "P-44", "P-45", "P-78", "P-84", "C-16", "C-17", "B-046", "B-048", "B-049")
	var notes []string
	var told func() []string
	var file string
	out := call(t, &notes, func(o *turnwright.Options) {
		told = lines(o)
		file = put(t, projectFile(o), `{
  "permissions": {
    "deny": ["Bash(:*)", "Bash(npm publish)*", "Foo(", "", 7, {"a": 1}, "Read(!x)", "Write(./a.txt)", "NoTool", "note(text:x)"],
    "ask": ["Glob(**/dist/**)"],
    "defaultMode": "wild"
  }
}`)
		o.AllowedTools = []string{"note"}
	})
	if len(notes) > 0 || len(out.result.PermissionDenials) != 1 {
		t.Errorf("the good rule did not hold: %q", notes)
	}
	all := told()
	for _, want := range []string{
		":3:14: permissions.deny[0]: deny rule of projectSettings is skipped: permission rule \"Bash(:*)\"",
		":3:26: permissions.deny[1]: deny rule of projectSettings is skipped: permission rule \"Bash(npm publish)*\"",
		":3:48: permissions.deny[2]: deny rule of projectSettings is skipped: permission rule \"Foo(\"",
		":3:56: permissions.deny[3]: deny rule of projectSettings is skipped: permission rule \"\"",
		":3:60: permissions.deny[4]: must be a string, not a number",
		":3:63: permissions.deny[5]: must be a string, not an object",
		":3:73: permissions.deny[6]: deny rule of projectSettings is skipped: permission rule \"Read(!x)\"",
		":3:85: permissions.deny[7]: Permission deny rule (projectSettings): Write(./a.txt) is not matched by file permission checks — only Edit(path) rules are. Use Edit(./a.txt) instead",
		":3:103: permissions.deny[8]: deny rule \"NoTool\" names no known tool",
		":4:13: permissions.ask[0]: Permission ask rule (projectSettings): Glob(**/dist/**) is not matched by file permission checks — only Read(path) rules are",
		":5:20: permissions.defaultMode: must be one of",
	} {
		if n := count(all, want); n != 1 {
			t.Errorf("%q was told %d times", want, n)
		}
	}
	for _, line := range all {
		if !strings.Contains(line, filepath.Base(file)) {
			t.Errorf("names no file: %s", line)
		}
	}
	if len(all) != 11 {
		t.Errorf("%d lines: %q", len(all), all)
	}
}

func count(all []string, part string) (n int) {
	for _, line := range all {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// TestUntrustedProject: what a project grants waits for trust, what it forbids
// does not.
func TestUntrustedProject(t *testing.T) {
	conform.Covers(t, "P-101", "P-102", "P-96")
	beside := t.TempDir()
	put(t, filepath.Join(beside, "f.txt"), "text of f")
	for _, trusted := range []bool{false, true} {
		srv := agenttest.NewServer(t, agenttest.Script(
			agenttest.Call("note", `{"text":"one"}`), agenttest.Call("note", `{"text":"two"}`),
			agenttest.Call("Read", string(mustJSON(map[string]string{"file_path": filepath.Join(beside, "f.txt")}))), agenttest.Text("done")))
		o := base(t, srv)
		var notes []string
		o.CustomTools = []turnwright.Tool{note(&notes)}
		told := lines(&o)
		put(t, projectFile(&o), fmt.Sprintf(`{"permissions":{"allow":["note","note(*)"],"deny":["note(text:two)"],"additionalDirectories":[%q,"/no/such/dir"]}}`, beside))
		want, denials, told2 := "", 3, "Ignoring 2 permissions.allow entries from "
		if trusted {
			trust(t, &o)
			want, denials, told2 = "one", 1, "permissions.additionalDirectories[1]: \"/no/such/dir\" does not exist; the entry is skipped"
		}
		out := query(t, "go", o)
		if strings.Join(notes, " ") != want || len(out.result.PermissionDenials) != denials {
			t.Errorf("trusted %v: notes %q, denials %+v", trusted, notes, out.result.PermissionDenials)
		}
		if count(told(), told2) != 1 || !trusted && !strings.HasPrefix(told()[0], "Ignoring ") {
			t.Errorf("trusted %v: told %q", trusted, told())
		}
	}
}

// TestStartModes: the mode of a file, and what stands against it.
func TestStartModes(t *testing.T) {
	conform.Covers(t, "P-2", "P-3", "P-20", "P-24", "P-26")
	mode := func(set func(*turnwright.Options)) string {
		t.Helper()
		out := answer(t, agenttest.Text("hi"), func(o *turnwright.Options) { o.Env["IS_SANDBOX"] = "1"; set(o) })
		return string(initOf(t, out).PermissionMode)
	}
	file := func(o *turnwright.Options, m string) {
		put(t, projectFile(o), fmt.Sprintf(`{"permissions":{"defaultMode":%q}}`, m))
	}
	for want, set := range map[string]func(*turnwright.Options){
		"plan":    func(o *turnwright.Options) { file(o, "plan") },
		"dontAsk": func(o *turnwright.Options) { file(o, "plan"); o.PermissionMode = turnwright.ModeDontAsk },
		"acceptEdits": func(o *turnwright.Options) {
			file(o, "plan")
			o.Settings = `{"permissions":{"defaultMode":"acceptEdits"}}`
		},
		"default": func(o *turnwright.Options) {
			put(t, userFile(o), `{"permissions":{"defaultMode":"plan"}}`)
			file(o, "auto")
		},
		"bypassPermissions": func(o *turnwright.Options) { file(o, "bypassPermissions"); o.AllowDangerouslySkipPermissions = true },
	} {
		if got := mode(set); got != want {
			t.Errorf("mode %s, want %s", got, want)
		}
	}
	refused(t, "AllowDangerouslySkipPermissions", "settings.json", func(o *turnwright.Options) { file(o, "bypassPermissions") })

	const off = `{"permissions":{"disableBypassPermissionsMode":"disable"},"disableAutoMode":"disable"}`
	refused(t, "PermissionMode", "settings.json", func(o *turnwright.Options) {
		put(t, projectFile(o), off)
		o.Env["IS_SANDBOX"] = "1"
		o.PermissionMode, o.AllowDangerouslySkipPermissions = turnwright.ModeBypassPermissions, true
	})
	var told func() []string
	if got := mode(func(o *turnwright.Options) {
		told = lines(o)
		put(t, localFile(o), off)
		file(o, "bypassPermissions")
		o.AllowDangerouslySkipPermissions = true
	}); got != "default" || count(told(), "bypassPermissions is disabled by ") != 1 {
		t.Errorf("mode %s, told %q", got, told())
	}
	if got := mode(func(o *turnwright.Options) {
		told = lines(o)
		put(t, localFile(o), off)
		o.PermissionMode = turnwright.PermissionMode("auto")
	}); got != "default" || count(told(), "auto is disabled by ") != 1 {
		t.Errorf("mode %s, told %q", got, told())
	}
	o := base(t, agenttest.NewServer(t))
	o.Env["IS_SANDBOX"], o.AllowDangerouslySkipPermissions = "1", true
	put(t, userFile(&o), off)
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, m := range []turnwright.PermissionMode{turnwright.ModeBypassPermissions, turnwright.PermissionMode("auto")} {
		if err := s.SetPermissionMode(t.Context(), m); err == nil || !strings.Contains(err.Error(), "settings.json") {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// TestResumedMode: a session that goes on keeps its mode, unless an option or a
// file names one.
func TestResumedMode(t *testing.T) {
	conform.Covers(t, "P-6")
	for _, tt := range []struct{ last, option, file, want turnwright.PermissionMode }{
		{last: turnwright.ModeAcceptEdits, want: turnwright.ModeAcceptEdits},
		{last: turnwright.ModeDontAsk, want: turnwright.ModeDontAsk},
		{last: turnwright.ModePlan, want: turnwright.ModeDefault},
		{last: turnwright.ModeBypassPermissions, want: turnwright.ModeDefault},
		{last: turnwright.ModeAcceptEdits, option: turnwright.ModeDefault, want: turnwright.ModeDefault},
		{last: turnwright.ModeAcceptEdits, file: turnwright.ModePlan, want: turnwright.ModePlan},
	} {
		for _, fork := range []bool{false, true} {
			srv := agenttest.NewServer(t, agenttest.Forever(agenttest.Text("hi")))
			o := base(t, srv)
			o.Env["IS_SANDBOX"], o.AllowDangerouslySkipPermissions = "1", true
			s, err := turnwright.NewSession(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetPermissionMode(t.Context(), tt.last); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Ask(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.Resume, o.ForkSession, o.PermissionMode = s.ID(), fork, tt.option
			if tt.file != "" {
				put(t, localFile(&o), fmt.Sprintf(`{"permissions":{"defaultMode":%q}}`, tt.file))
			}
			if got := initOf(t, query(t, "two", o)).PermissionMode; string(got) != string(tt.want) {
				t.Errorf("%+v, fork %v: mode %s", tt, fork, got)
			}
		}
	}
}

// TestManagedRulesOnly: policy can make its rules the only ones.
func TestManagedRulesOnly(t *testing.T) {
	conform.Covers(t, "P-139", "P-140")
	policy(t, `{"allowManagedPermissionRulesOnly":true,"permissions":{"allow":["echo"]}}`)
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("note", `{"text":"x"}`), agenttest.Call("echo", `{"text":"y"}`), agenttest.Text("done")))
	o := base(t, srv)
	var notes []string
	o.CustomTools, o.AllowedTools = []turnwright.Tool{note(&notes), echo()}, []string{"note"}
	put(t, userFile(&o), `{"permissions":{"allow":["note"],"deny":["echo"]}}`)
	var asked []turnwright.PermissionRequest
	o.CanUseTool = func(_ context.Context, r turnwright.PermissionRequest) (turnwright.PermissionAnswer, error) {
		asked = append(asked, r)
		return turnwright.PermissionAnswer{Message: "no"}, nil
	}
	query(t, "go", o)
	if len(asked) != 1 || asked[0].ToolName != "note" || len(asked[0].Suggestions) > 0 || len(notes) > 0 {
		t.Errorf("asked %+v, notes %q", asked, notes)
	}
	if res := srv.Last().LastToolResults(); len(res) != 1 || res[0].Text != "y" {
		t.Errorf("%+v", res)
	}
}

// TestManagedRulesOnlyForHooks: nor do hooks that answer for a person get to
// remember a rule.
func TestManagedRulesOnlyForHooks(t *testing.T) {
	conform.Covers(t, "P-139")
	for managed, want := range map[bool]int{true: 2, false: 1} {
		policy(t, fmt.Sprintf(`{"allowManagedPermissionRulesOnly":%v}`, managed))
		srv := agenttest.NewServer(t, agenttest.Script(
			agenttest.Call("note", `{"text":"x"}`), agenttest.Call("note", `{"text":"y"}`), agenttest.Text("done")))
		o := base(t, srv)
		var notes []string
		o.CustomTools = []turnwright.Tool{note(&notes)}
		asked := 0
		o.Hooks = on(hook.PermissionRequest, hook.On(func(_ context.Context, in *hook.PermissionRequestInput) (hook.Output, error) {
			if asked++; managed && len(in.Suggestions) > 0 {
				t.Errorf("suggested %+v", in.Suggestions)
			}
			return hook.Output{Answer: &hook.Answer{Allow: true, Updates: []permission.Update{{
				Type: permission.UpdateAddRules, Behavior: "allow", Rules: []permission.RuleValue{{ToolName: "note"}}, Destination: "session",
			}}}}, nil
		}))
		query(t, "go", o)
		if asked != want || len(notes) != 2 {
			t.Errorf("managed rules only %v: asked %d times, notes %q", managed, asked, notes)
		}
	}
}

// rewrite is a tool that gives a file new contents, as somebody else would do
// meanwhile.
func rewrite(path *string) turnwright.Tool {
	return turnwright.NewTool("rewrite", "Rewrites.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return "ok", os.WriteFile(*path, []byte(in.Text), 0o644)
	})
}

// TestSettingsWhileRunning: a change counts for the next call of the same turn; a
// file that breaks keeps its last good rules, and everybody is told.
func TestSettingsWhileRunning(t *testing.T) {
	conform.Covers(t, "C-19", "C-17", "B-044")
	text := func(deny, value string) string { // the model is that of the start
		return fmt.Sprintf(`{"permissions":{"deny":["note(text:%s)"]},"env":{"TW_LIVE":%[2]q},"model":"model-%[2]s"}`, deny, value)
	}
	var path string
	var notes, seen []string
	step := func(text string) agenttest.Step {
		return agenttest.Call("rewrite", string(mustJSON(map[string]string{"text": text})))
	}
	a, b := agenttest.Call("note", `{"text":"a"}`), agenttest.Call("note", `{"text":"b"}`)
	look := agenttest.Call("probe", `{}`)
	srv := agenttest.NewServer(t, agenttest.Script(
		a, b, look, step(text("b", "two")), look, a, b,
		step(text("a", "x")[:30]), b, a, agenttest.Text("one"), // half a file
		b, step(`{"permissions":{"deny":[]}}`), b, agenttest.Text("two")))
	o := base(t, srv)
	o.Model = ""
	told := lines(&o)
	path = put(t, projectFile(&o), text("a", "one"))
	o.CustomTools = []turnwright.Tool{note(&notes), rewrite(&path), probe(func(env *tool.Env) {
		seen = append(seen, env.Getenv("TW_LIVE"))
	})}
	o.AllowedTools = []string{"note", "rewrite", "probe"}
	s, err := turnwright.NewSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var news []string
	var denials []string
	read := make(chan struct{})
	go func() {
		defer close(read)
		for m := range s.Messages(t.Context()) {
			switch m := m.(type) {
			case *message.Informational:
				news = append(news, m.Content)
			case *message.PermissionDenied:
				denials = append(denials, string(m.DecisionReason))
			}
		}
	}()
	for _, prompt := range []string{"one", "two"} {
		if _, err := s.Send(t.Context(), turnwright.Input{Text: prompt}); err != nil {
			t.Fatal(err)
		}
	}
	s.EndInput()
	<-read
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(notes, " "); got != "b a a b" {
		t.Errorf("ran %q", got)
	}
	if len(denials) != 4 || !strings.Contains(denials[0], "text:a") || !strings.Contains(denials[3], "text:b") {
		t.Errorf("denials %q", denials)
	}
	if strings.Join(seen, " ") != "one two" || srv.Last().Model() != "model-one" {
		t.Errorf("the variable was %q, the model is %s", seen, srv.Last().Model())
	}
	if n := len(news); n != 2 || count(news, "settings.json:1:30: is not JSON: it ends too early") != 1 || count(news, "its last good state stays in force") != 1 {
		t.Errorf("the stream told %q", news)
	}
	if got := told(); len(got) != 3 || !slices.Equal(got[1:], news) { // the first is about the price of the model
		t.Errorf("stderr %q", got)
	}
}

// TestBypassIsTakenAway: policy that comes while a session runs in
// bypassPermissions ends that.
func TestBypassIsTakenAway(t *testing.T) {
	conform.Covers(t, "C-19")
	var notes []string
	var path string
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("note", `{"text":"a"}`),
		agenttest.Call("rewrite", `{"text":"{\"permissions\":{\"disableBypassPermissionsMode\":\"disable\"}}"}`),
		agenttest.Call("note", `{"text":"b"}`), agenttest.Text("done")))
	o := base(t, srv)
	o.CustomTools = []turnwright.Tool{note(&notes), rewrite(&path)}
	path = put(t, projectFile(&o), `{}`)
	o.Env["IS_SANDBOX"], o.PermissionMode, o.AllowDangerouslySkipPermissions = "1", turnwright.ModeBypassPermissions, true
	out := query(t, "go", o)
	if len(notes) != 1 || len(out.result.PermissionDenials) != 1 || out.result.Subtype != turnwright.Success {
		t.Errorf("notes %q, %+v", notes, out.result)
	}
}

// TestResolveSettings: what a session would start with, without one.
func TestResolveSettings(t *testing.T) {
	conform.Covers(t, "C-25", "C-18")
	o := base(t, agenttest.NewServer(t))
	user := put(t, userFile(&o), `{"model":"a","theme":"dark","permissions":{"deny":["A"]}}`)
	put(t, projectFile(&o), `{"model":"b","permissions":{"deny":["B",1]}}`)
	o.Settings = `{"model":"c"}`
	r, err := turnwright.ResolveSettings(o)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Merged); got != `{"model":"c","theme":"dark","permissions":{"deny":["A","B"]}}` {
		t.Error(got)
	}
	if got := fmt.Sprint(r.Keys); got != "map[model:flagSettings permissions:projectSettings theme:userSettings]" {
		t.Error(got)
	}
	if len(r.Layers) != 3 || r.Layers[0].File != user || r.Layers[2].File != "Settings" || string(r.Layers[1].JSON) != `{"model":"b","permissions":{"deny":["B"]}}` {
		t.Errorf("%+v", r.Layers)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "permissions.deny[1]") {
		t.Errorf("%q", r.Problems)
	}
	o.SettingSources = []string{"x"}
	if _, err := turnwright.ResolveSettings(o); err == nil || !strings.Contains(err.Error(), "SettingSources") {
		t.Error(err)
	}
}

// TestSettingsDebugLog: keys without an effect are in the debug log and nowhere
// else.
func TestSettingsDebugLog(t *testing.T) {
	conform.Covers(t, "C-18", "C-21")
	log := filepath.Join(t.TempDir(), "log")
	var told func() []string
	answer(t, agenttest.Text("hi"), func(o *turnwright.Options) {
		told = lines(o)
		o.DebugFile, o.DebugFilter = log, "settings"
		put(t, projectFile(o), `{"theme":"dark","pluginConfigs":{},"remoteControlAtStartup":true,"spinnerTips":{"a":1}}`)
	})
	text, err := os.ReadFile(log)
	if err != nil || strings.Count(string(text), "\n") != 4 || !strings.Contains(string(text), `[settings] `) || !strings.Contains(string(text), `"theme" is not known`) || len(told()) > 0 {
		t.Errorf("%s, told %q (%v)", text, told(), err)
	}
}
