package settings_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/project/settings"
	"github.com/turnwright/turnwright/permission"
)

// place is a machine with one project.
type place struct {
	t                     testing.TB
	home, project, system string // directories
	cfg                   settings.Config
}

// The files of a place, by short names.
var files = map[string]func(p *place) string{
	"user":    func(p *place) string { return filepath.Join(p.home, "settings.json") },
	"project": func(p *place) string { return filepath.Join(p.project, ".claude", "settings.json") },
	"local":   func(p *place) string { return filepath.Join(p.project, ".claude", "settings.local.json") },
	"managed": func(p *place) string { return filepath.Join(p.system, "managed-settings.json") },
	"global":  func(p *place) string { return filepath.Join(p.home, ".claude.json") },
}

func newPlace(t testing.TB) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: filepath.Join(root, "home"), project: filepath.Join(root, "project"), system: filepath.Join(root, "system")}
	p.cfg = settings.Config{Home: p.home, Dir: p.project, System: p.system, Global: filepath.Join(p.home, ".claude.json")}
	if err := os.MkdirAll(p.project, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// write makes a file, named as in files or by its path below the system
// directory.
func (p *place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.system, name)
	if at := files[name]; at != nil {
		path = at(p)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// trusted records that the project's folder is trusted.
func (p *place) trusted() {
	p.write("global", fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":true}}}`, p.project))
}

func (p *place) open() (*settings.Reader, []string) {
	p.t.Helper()
	r, problems, err := settings.Open(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	return r, p.lines(problems)
}

// lines are problems with the directories shortened.
func (p *place) lines(problems []settings.Problem) (lines []string) {
	for _, problem := range problems {
		line := problem.String()
		for short, dir := range map[string]string{"<home>": p.home, "<project>": p.project, "<system>": p.system} {
			line = strings.ReplaceAll(line, dir, short)
		}
		lines = append(lines, filepath.ToSlash(line))
	}
	return lines
}

// rules are the rules of one kind, each with its source.
func rules(s *settings.Settings, kind string) (all []string) {
	for _, set := range s.Rules() {
		for _, text := range map[string][]string{"allow": set.Allow, "ask": set.Ask, "deny": set.Deny}[kind] {
			all = append(all, string(set.Source)+" "+text)
		}
	}
	return all
}

// every is a file with one rule of each kind, a variable and a model.
func every(name string) string {
	return fmt.Sprintf(`{"permissions":{"allow":["Allow%[1]s"],"ask":["Ask%[1]s"],"deny":["Deny%[1]s"]},
		"env":{"WHO":%[1]q,"ONLY_%[1]s":"1"},"model":%[1]q,"custom":{"by":%[1]q,"list":[%[1]q]}}`, name)
}

func TestPrecedence(t *testing.T) {
	conform.Covers(t, "C-1", "C-4", "C-5", "C-6", "C-7", "O-5", "P-34")
	p := newPlace(t)
	p.trusted()
	for _, name := range []string{"user", "project", "local", "managed"} {
		p.write(name, every(name))
	}
	p.cfg.Flag = every("flag")
	order := []string{"user", "project", "local", "flag", "managed"}
	sources := map[string]permission.Source{
		"user": permission.SourceUser, "project": permission.SourceProject, "local": permission.SourceLocal,
		"flag": permission.SourceFlag, "managed": permission.SourceManaged,
	}
	// Taking the highest away leaves the next one.
	for n := len(order); n > 0; n-- {
		r, problems := p.open()
		if len(problems) > 0 {
			t.Fatalf("problems: %q", problems)
		}
		s := r.Settings()
		top := order[n-1]
		model := s.Get("model")
		if model.Text() != top || model.Source != sources[top] {
			t.Errorf("model %s of %s, want %s", model.JSON, model.Source, top)
		}
		env, managed := s.Env()
		all := maps.Clone(env)
		maps.Copy(all, managed)
		if all["WHO"] != top {
			t.Errorf("WHO=%s, want %s", all["WHO"], top)
		}
		if by := s.Get("custom", "by").Text(); by != top {
			t.Errorf("an unknown key is %q, want %q", by, top)
		}
		var list []string
		if err := json.Unmarshal(s.Get("custom", "list").JSON, &list); err != nil || !slices.Equal(list, order[:n]) {
			t.Errorf("lists are %q, want %q (%v)", list, order[:n], err)
		}
		for _, name := range order {
			has := slices.Contains(order[:n], name)
			if _, ok := all["ONLY_"+name]; ok != has {
				t.Errorf("with %q: ONLY_%s is there: %v", order[:n], name, ok)
			}
			for _, kind := range []string{"allow", "ask", "deny"} {
				want := string(sources[name]) + " " + strings.ToUpper(kind[:1]) + kind[1:] + name
				if got := rules(s, kind); slices.Contains(got, want) != has || len(got) != n {
					t.Errorf("with %q: %s rules %q", order[:n], kind, got)
				}
			}
		}
		if top == "flag" {
			p.cfg.Flag = ""
		} else if err := os.Remove(files[top](p)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSources(t *testing.T) {
	conform.Covers(t, "C-9", "C-10", "O-73")
	p := newPlace(t)
	p.trusted()
	for _, name := range []string{"user", "project", "local", "managed"} {
		p.write(name, every(name))
	}
	user, project, local := permission.SourceUser, permission.SourceProject, permission.SourceLocal
	for _, tt := range []struct {
		sources []permission.Source
		want    string
	}{
		{nil, "userSettings projectSettings localSettings policySettings"},
		{[]permission.Source{}, "policySettings"},
		{[]permission.Source{project}, "projectSettings policySettings"},
		{[]permission.Source{local, user}, "userSettings localSettings policySettings"},
	} {
		p.cfg.Sources = tt.sources
		r, problems := p.open()
		if problems != nil {
			t.Errorf("sources %q: the record of trust was not read: %q", tt.sources, problems)
		}
		var got []string
		for _, l := range r.Settings().Layers {
			got = append(got, string(l.Source))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("sources %q: %q, want %q", tt.sources, got, tt.want)
		}
	}
	// There is no search in the directories above, nor anywhere without a home.
	p.cfg.Sources, p.cfg.Dir, p.cfg.Home = nil, filepath.Join(p.project, "sub"), ""
	r, _ := p.open()
	if n := len(r.Settings().Layers); n != 1 {
		t.Errorf("%d layers below the project and without a home", n)
	}
}

// TestInTheHomeDirectory: where the project's file is the user's, it is the
// user's, and needs no trust.
func TestInTheHomeDirectory(t *testing.T) {
	conform.Covers(t, "C-1")
	p := newPlace(t)
	p.cfg.Home = filepath.Join(p.project, ".claude")
	p.write("project", every("x"))
	r, problems := p.open()
	if got := rules(r.Settings(), "allow"); problems != nil || !slices.Equal(got, []string{"userSettings Allowx"}) {
		t.Errorf("%q, problems %q", got, problems)
	}
	p.cfg.Sources = []permission.Source{permission.SourceProject}
	r, _ = p.open()
	if got := rules(r.Settings(), "deny"); !slices.Equal(got, []string{"projectSettings Denyx"}) {
		t.Errorf("%q", got)
	}
}

// TestProblems has one file with a fault a row, and what it says of it. What is
// left of the file is given as JSON; "-" stands for nothing.
func TestProblems(t *testing.T) {
	conform.Covers(t, "C-15", "C-16", "C-17", "C-21", "C-26", "C-28", "B-048")
	for name, tt := range map[string]struct{ file, text, problems, left string }{
		"good":           {"project", `{"model":"m","hooks":{"Stop":[1]},"x":{"y":[1,"z",null]}}`, "", `{"model":"m","hooks":{"Stop":[1]},"x":{"y":[1,"z",null]}}`},
		"nothing":        {"project", `{}`, "", `{}`},
		"byte mark":      {"project", "\ufeff{\"model\":\"m\"}", "", `{"model":"m"}`},
		"null":           {"project", `{"model":null,"permissions":{"deny":null}}`, "", `{"permissions":{}}`},
		"escapes":        {"project", `{"\u006dodel":"\u006d","a\"b":"\ud83d\ude00"}`, "", `{"model":"\u006d","a\"b":"\ud83d\ude00"}`},
		"empty":          {"project", " \n", "<F>:1:1: is empty; the least that a file may hold is {}|skip", "-"},
		"comment":        {"project", "{\n  // no\n  \"model\": \"m\"\n}", "<F>:2:3: is not JSON: comments are not allowed|skip", "-"},
		"hash":           {"project", "{\n# no\n}", "<F>:2:1: is not JSON: comments are not allowed|skip", "-"},
		"trailing comma": {"project", "{\"env\":{\"A\":\"b\",\n }}", "<F>:2:2: is not JSON: no comma may stand before \"}\"|skip", "-"},
		"comma in list":  {"project", "{\"permissions\":{\"deny\":[\"Bash\" , ]}}", "<F>:1:34: is not JSON: no comma may stand before \"]\"|skip", "-"},
		"cut off":        {"project", `{"permissions":{"deny":["Bash"`, "<F>:1:30: is not JSON: it ends too early|skip", "-"},
		"behind it":      {"project", `{} {}`, "<F>:1:4: is not JSON: invalid character '{' after top-level value|skip", "-"},
		"no object":      {"project", ` ["a"]`, "<F>:1:2: must be an object, not a list|skip", "-"},
		"not UTF-8":      {"project", "{\"a\":\"é\xff\"}", "<F>:1:8: is not UTF-8|skip", "-"},
		"number in list": {
			"project", "{\"permissions\":{\n\"deny\":[\"A\", 7, {\"x\":1},\n  \"B\"]}}",
			"<F>:2:14: permissions.deny[1]: must be a string, not a number; the entry is skipped|<F>:2:17: permissions.deny[2]: must be a string, not an object; the entry is skipped",
			`{"permissions":{"deny":["A","B"]}}`,
		},
		"env": {
			"project", `{"env":{"A":"b","N":7,"":"x","A=B":"x","HOME":"/x","Claude_Config_Dir":"/x","Z":"a\u0000b"}}`,
			`<F>:1:21: env.N: must be a string, not a number; the entry is skipped|<F>:1:23: env.: is not the name of a variable; the entry is skipped|` +
				`<F>:1:30: env.A=B: is not the name of a variable; the entry is skipped|` +
				`<F>:1:40: env.HOME: cannot be set by a settings file, because rules and settings are found with it; the entry is skipped|` +
				`<F>:1:52: env.Claude_Config_Dir: cannot be set by a settings file, because rules and settings are found with it; the entry is skipped|` +
				`<F>:1:81: env.Z: has a NUL character; the entry is skipped`,
			`{"env":{"A":"b"}}`,
		},
		"mode":      {"project", `{"permissions":{"defaultMode":"wild","deny":["A"]}}`, `<F>:1:31: permissions.defaultMode: must be one of default, acceptEdits, plan, dontAsk, bypassPermissions, auto, manual, not "wild"; the key is skipped`, `{"permissions":{"deny":["A"]}}`},
		"disable":   {"project", `{"permissions":{"disableBypassPermissionsMode":"yes"}}`, `<F>:1:48: permissions.disableBypassPermissionsMode: must be "disable", not "yes"; the key is skipped`, `{"permissions":{}}`},
		"cleanup":   {"project", `{"cleanupPeriodDays":0}`, `<F>:1:22: cleanupPeriodDays: must be a whole number of at least 1, not 0; the key is skipped`, `{}`},
		"window":    {"project", `{"autoCompactWindow":1e7}`, `<F>:1:22: autoCompactWindow: must be a whole number from 100000 to 1000000, not 1e7; the key is skipped`, `{}`},
		"slip":      {"project", `{"permissions":{"denny":["A"]}}`, `<F>:1:17: permissions.denny: is not known and has no effect`, `{"permissions":{"denny":["A"]}}`},
		"schema":    {"project", `{"model":7,"env":{"A":"b"}}`, `<F>:1:10: model: must be a string, not a number|skip`, `{}`},
		"two kinds": {"project", `{"fallbackModel":true}`, `<F>:1:18: fallbackModel: must be a string or a list, not true or false|skip`, `{}`},
		"what forbids": {
			"project", `{"permissions":{"allow":["A"],"deny":["B"],"ask":["C"],"additionalDirectories":"/x","disableBypassPermissionsMode":"disable"},"disableAutoMode":"disable","hooks":{"Stop":[]},"env":{"A":"b"}}`,
			`<F>:1:80: permissions.additionalDirectories: must be a list, not a string|skip`,
			`{"permissions":{"deny":["B"],"ask":["C"],"disableBypassPermissionsMode":"disable"},"disableAutoMode":"disable","hooks":{"Stop":[]}}`,
		},
		"twice": {
			"user", `{"permissions":{"deny":["A"]},"model":"a","permissions":{"deny":["B"]},"model":"b"}`,
			`<F>:1:43: permissions: stands twice; lists and objects are joined, of other values the later one counts|<F>:1:72: model: stands twice; lists and objects are joined, of other values the later one counts`,
			`{"permissions":{"deny":["A","B"]},"model":"b"}`,
		},
		"twice, and of another kind": {
			"user", `{"permissions":{"deny":["A"],"deny":null},"permissions":7}`,
			`<F>:1:43: permissions: stands twice; lists and objects are joined, of other values the later one counts|<F>:1:30: permissions.deny: stands twice; lists and objects are joined, of other values the later one counts`,
			`{"permissions":{"deny":["A"]}}`,
		},
		"not for a project": {
			"project", `{"pluginConfigs":{},"autoMode":{},"askUserQuestionTimeout":"5m","sandbox":{"network":{"tlsTerminate":true,"strictAllowlist":true,"x":1},"filesystem":{"disabled":true}},"allowManagedHooksOnly":true}`,
			"", `{"sandbox":{"network":{"x":1},"filesystem":{}}}`,
		},
		"for the user": {
			"user", `{"pluginConfigs":{},"autoMode":{},"askUserQuestionTimeout":"5m","sandbox":{"network":{"strictAllowlist":true},"filesystem":{"disabled":true}},"allowManagedHooksOnly":true}`,
			"", `{"pluginConfigs":{},"autoMode":{},"askUserQuestionTimeout":"5m","sandbox":{"network":{"strictAllowlist":true},"filesystem":{"disabled":true}}}`,
		},
		"for policy": {"managed", `{"allowManagedHooksOnly":true,"claudeMd":"x"}`, "", `{"allowManagedHooksOnly":true,"claudeMd":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			path := p.write(tt.file, tt.text)
			r, problems := p.open()
			var want []string
			if tt.problems != "" {
				want = strings.Split(tt.problems, "|")
			}
			short := p.lines([]settings.Problem{{Text: path}})[0]
			for i, w := range want {
				w = strings.ReplaceAll(w, "<F>", short)
				if w == "skip" {
					w = short + ": the file cannot be used as it is; it is skipped"
					if tt.left != "-" {
						w += ", except for what it forbids"
					}
				}
				want[i] = w
			}
			if !slices.Equal(problems, want) {
				t.Errorf("problems\n got %s\nwant %s", strings.Join(problems, "\n     "), strings.Join(want, "\n     "))
			}
			layers := r.Settings().Layers
			switch {
			case tt.left == "-" && len(layers) == 0:
			case tt.left == "-" || len(layers) != 1:
				t.Errorf("%d layers", len(layers))
			case string(layers[0].JSON()) != tt.left || string(r.Settings().JSON()) != tt.left:
				t.Errorf("left\n %s\nwant\n %s", layers[0].JSON(), tt.left)
			}
		})
	}
}

// TestNotes: keys that have no effect are for the debug log alone.
func TestNotes(t *testing.T) {
	conform.Covers(t, "C-18", "C-21")
	p := newPlace(t)
	p.write("project", `{"theme":"dark","permissions.deny":["A"],"autoMode":{},"model":"m"}`)
	r, problems := p.open()
	notes := strings.Join(r.Settings().Notes, "\n")
	if len(problems) > 0 || strings.Count(notes, "\n") != 2 || !strings.Contains(notes, `"theme" is not known`) ||
		!strings.Contains(notes, `"permissions.deny" is not known`) || !strings.Contains(notes, `"autoMode" does not count in this file`) {
		t.Errorf("problems %q, notes %s", problems, notes)
	}
	if deny := rules(r.Settings(), "deny"); deny != nil {
		t.Errorf("a key with a dot was read as a path: %q", deny)
	}
}

func TestListsAndEntries(t *testing.T) {
	conform.Covers(t, "C-6", "C-8")
	p := newPlace(t)
	p.write("user", `{"fallbackModel":["a","b"],"availableModels":["a"],"extraKnownMarketplaces":{"m":{"x":1,"l":[1]},"n":{"y":1}},"enabledPlugins":{"p":true}}`)
	p.write("project", `{"availableModels":["b"],"extraKnownMarketplaces":{"m":{"z":2}},"enabledPlugins":{"q":false}}`)
	want := func(json string) {
		t.Helper()
		r, _ := p.open()
		if got := string(r.Settings().JSON()); got != json {
			t.Errorf("got\n %s\nwant\n %s", got, json)
		}
	}
	want(`{"fallbackModel":["a","b"],"availableModels":["a","b"],"extraKnownMarketplaces":{"m":{"z":2},"n":{"y":1}},"enabledPlugins":{"p":true,"q":false}}`)
	p.write("local", `{"fallbackModel":["c"]}`)
	p.write("managed", `{"availableModels":["m"]}`)
	want(`{"fallbackModel":["c"],"availableModels":["m"],"extraKnownMarketplaces":{"m":{"z":2},"n":{"y":1}},"enabledPlugins":{"p":true,"q":false}}`)
}

func TestManagedFiles(t *testing.T) {
	conform.Covers(t, "C-1", "C-22", "C-23", "P-139", "P-140", "O-75")
	p := newPlace(t)
	p.write("user", every("user"))
	p.cfg.Managed = json.RawMessage(`{"model":"host","permissions":{"allow":["AllowHost"],"deny":["DenyHost"]}}`)
	check := func(model string, want ...string) {
		t.Helper()
		r, problems := p.open()
		s := r.Settings()
		if got := rules(s, "deny"); len(problems) > 0 || s.Get("model").Text() != model || !slices.Equal(got, want) {
			t.Errorf("model %s, deny %q, want %s, %q; problems %q", s.Get("model").JSON, got, model, want, problems)
		}
	}
	check("host", "userSettings Denyuser", "policySettings DenyHost")
	// An administrator's file puts the host's aside, unless it lets it in; then it may only forbid.
	p.write("managed-settings.d/20-b.json", `{"model":"b","permissions":{"deny":["DenyB"]}}`)
	check("b", "userSettings Denyuser", "policySettings DenyB")
	p.write("managed-settings.d/10-a.json", `{"model":"a","parentSettingsBehavior":"merge","permissions":{"deny":["DenyA"]}}`)
	check("b", "userSettings Denyuser", "policySettings DenyHost", "policySettings DenyA", "policySettings DenyB")
	r, _ := p.open()
	if got := rules(r.Settings(), "allow"); !slices.Equal(got, []string{"userSettings Allowuser"}) {
		t.Errorf("the host's settings allowed: %q", got)
	}
	p.write("managed", `{"model":"main","permissions":{"deny":["DenyMain"]}}`)
	p.write("managed-settings.d/.hidden.json", `{"permissions":{"deny":["DenyHidden"]}}`)
	p.write("managed-settings.d/notes.txt", `{"permissions":{"deny":["DenyText"]}}`)
	check("b", "userSettings Denyuser", "policySettings DenyHost", "policySettings DenyMain", "policySettings DenyA", "policySettings DenyB")
	// Managed rules may be the only ones.
	p.write("managed", `{"allowManagedPermissionRulesOnly":true,"permissions":{"deny":["DenyMain"]}}`)
	check("b", "policySettings DenyHost", "policySettings DenyMain", "policySettings DenyA", "policySettings DenyB")
	r, _ = p.open()
	if got := rules(r.Settings(), "allow"); got != nil || !r.Settings().ManagedRulesOnly() {
		t.Errorf("allowed: %q", got)
	}
	// Policy that cannot be read is no policy: it is an error.
	for _, text := range []string{`{"permissions":`, `{"model":7}`, `[]`} {
		p.cfg.Managed = json.RawMessage(text)
		_, _, err := settings.Open(p.cfg)
		if bad, ok := errors.AsType[*settings.ManagedError](err); !ok || !strings.HasPrefix(bad.Error(), "ManagedSettings:1:") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFlag(t *testing.T) {
	conform.Covers(t, "C-13", "O-74", "K-90", "P-80")
	p := newPlace(t)
	more := filepath.Join(p.home, "more")
	if err := os.MkdirAll(more, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(more, "s.json")
	if err := os.WriteFile(file, []byte(every("file")), 0o644); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(p.project, file)
	if err != nil {
		t.Fatal(err)
	}
	for flag, dir := range map[string]string{file: more, rel: more, " \n" + every("file"): p.project} {
		p.cfg.Flag = flag
		r, _ := p.open()
		s := r.Settings()
		if set := s.Rules(); s.Get("model").Text() != "file" || len(set) != 1 || set[0].Dir != dir || set[0].Source != permission.SourceFlag {
			t.Errorf("%s: %+v", flag, set)
		}
	}
	big := filepath.Join(more, "big.json")
	if err := os.WriteFile(big, fmt.Appendf(nil, `{"x":"%s"}`, strings.Repeat("x", settings.MaxFlagFile)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, settings.MaxFlagFile+1); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(more, "broken.json")
	if err := os.WriteFile(broken, []byte("{\n  broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		filepath.Join(more, "none.json"): "none.json: cannot be read",
		more:                             "is a directory",
		big:                              "is larger than 2 MiB",
		broken:                           "broken.json:2:3: is not JSON",
		os.DevNull:                       "is not a regular file",
		`{"model":`:                      "Settings:1:9: is not JSON: it ends too early",
		`{"a":1,}`:                       "Settings:1:8: is not JSON: no comma",
	} {
		p.cfg.Flag = flag
		_, _, err := settings.Open(p.cfg)
		if bad, ok := errors.AsType[*settings.FlagError](err); !ok || !strings.Contains(bad.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
	// Exactly 2 MiB are allowed.
	doc := `{"model":"big"}`
	if err := os.WriteFile(big, []byte(doc+strings.Repeat(" ", settings.MaxFlagFile-len(doc))), 0o644); err != nil {
		t.Fatal(err)
	}
	p.cfg.Flag = big
	if r, _ := p.open(); r.Settings().Get("model").Text() != "big" {
		t.Error("a file of 2 MiB was not read")
	}
	// A value of the wrong type ends nothing.
	p.cfg.Flag = `{"model":7,"permissions":{"deny":["A"]}}`
	r, problems := p.open()
	if len(problems) != 2 || rules(r.Settings(), "deny") == nil || r.Settings().Get("model") != nil {
		t.Errorf("problems %q", problems)
	}
}

func TestRuleDirs(t *testing.T) {
	conform.Covers(t, "P-80")
	p := newPlace(t)
	p.trusted()
	for _, name := range []string{"user", "project", "local", "managed"} {
		p.write(name, every(name))
	}
	r, _ := p.open()
	want := map[permission.Source]string{
		permission.SourceUser: p.home, permission.SourceProject: p.project, permission.SourceLocal: p.project, permission.SourceManaged: p.system,
	}
	for _, set := range r.Settings().Rules() {
		if set.Dir != want[set.Source] {
			t.Errorf("%s: %s, want %s", set.Source, set.Dir, want[set.Source])
		}
		if got := p.lines([]settings.Problem{{Text: set.Where("deny", 0)}})[0]; !strings.Contains(got, ".json:1:") || !strings.HasSuffix(got, ": permissions.deny[0]") {
			t.Errorf("the rule stands at %s", got)
		}
	}
}

func TestDefaultMode(t *testing.T) {
	conform.Covers(t, "P-2", "P-3")
	mode := func(m string) string { return fmt.Sprintf(`{"permissions":{"defaultMode":%q}}`, m) }
	for _, tt := range []struct{ user, project, local, flag, managed, want string }{
		{want: ""},
		{user: "plan", want: "plan"},
		{user: "plan", project: "acceptEdits", want: "acceptEdits"},
		{user: "plan", project: "acceptEdits", local: "dontAsk", want: "dontAsk"},
		{user: "plan", local: "dontAsk", flag: "default", want: "default"},
		{flag: "default", managed: "plan", want: "plan"},
		{user: "plan", project: "auto", want: "default"},
		{user: "plan", local: "auto", want: "default"},
		{user: "auto", want: "auto"},
		{project: "plan", flag: "auto", want: "auto"},
		{project: "auto", flag: "plan", want: "plan"},
		{user: "plan", project: "bypassPermissions", want: "bypassPermissions"},
		{user: "manual", want: "manual"},
	} {
		p := newPlace(t)
		for name, m := range map[string]string{"user": tt.user, "project": tt.project, "local": tt.local, "managed": tt.managed} {
			if m != "" {
				p.write(name, mode(m))
			}
		}
		if tt.flag != "" {
			p.cfg.Flag = mode(tt.flag)
		}
		r, _ := p.open()
		if got := r.Settings().DefaultMode().Text(); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestDisabledModes(t *testing.T) {
	conform.Covers(t, "P-24", "P-26")
	for text, want := range map[string]string{
		`{}`: "false false",
		`{"permissions":{"disableBypassPermissionsMode":"disable"}}`: "true false",
		`{"permissions":{"disableAutoMode":"disable"}}`:              "false true",
		`{"disableAutoMode":"disable"}`:                              "false true",
	} {
		for _, name := range []string{"user", "project", "local", "managed"} {
			p := newPlace(t)
			path := p.write(name, text)
			p.write("global", "{}")
			r, _ := p.open()
			s := r.Settings()
			if got := fmt.Sprint(s.NoBypass() == path, s.NoAuto() == path); got != want {
				t.Errorf("%s in %s: %s, want %s", text, name, got, want)
			}
		}
	}
}

func TestHooks(t *testing.T) {
	conform.Covers(t, "C-7")
	hooks := func(more string) string { return `{"hooks":{"Stop":[{"hooks":[]}]}` + more + `}` }
	for _, tt := range []struct {
		name                         string
		user, project, flag, managed string
		bare                         bool
		want                         string
	}{
		{"all", "", "", "", "", false, "userSettings projectSettings flagSettings policySettings"},
		{"off by the user, on by the project", `,"disableAllHooks":true`, `,"disableAllHooks":false`, "", "", false, "userSettings projectSettings flagSettings policySettings"},
		{"off by the flag", "", "", `,"disableAllHooks":true`, "", false, "policySettings"},
		{"all off by policy", "", "", "", `,"disableAllHooks":true`, false, ""},
		{"policy alone", "", "", "", `,"allowManagedHooksOnly":true`, false, "policySettings"},
		{"bare", "", "", "", "", true, "flagSettings policySettings"},
	} {
		p := newPlace(t)
		p.write("user", hooks(tt.user))
		p.write("project", hooks(tt.project))
		p.write("managed", hooks(tt.managed))
		p.cfg.Flag = hooks(tt.flag)
		r, _ := p.open()
		var got []string
		for _, h := range r.Settings().Hooks(tt.bare) {
			got = append(got, string(h.Source))
			if h.File == "" || string(h.JSON) != `{"Stop":[{"hooks":[]}]}` {
				t.Errorf("%+v", h)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: hooks of %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDirectories(t *testing.T) {
	p := newPlace(t)
	p.trusted()
	p.write("user", `{"permissions":{"additionalDirectories":["~","~/a","/abs/../b"]}}`)
	p.write("project", `{"permissions":{"additionalDirectories":["../c","~x"]}}`)
	r, _ := p.open()
	var got []string
	for _, d := range r.Settings().Directories() {
		got = append(got, filepath.ToSlash(d.Resolve("/p/q", "/home/u")))
	}
	if want := "/home/u /home/u/a /b /p/c /p/q/~x"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestKeys(t *testing.T) {
	conform.Covers(t, "C-25")
	p := newPlace(t)
	p.write("user", `{"model":"a","agent":"x"}`)
	p.write("local", `{"model":"b"}`)
	r, _ := p.open()
	if got := fmt.Sprint(r.Settings().Keys()); got != "map[agent:userSettings model:localSettings]" {
		t.Error(got)
	}
}
