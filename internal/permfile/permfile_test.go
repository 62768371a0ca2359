package permfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/permission"
	"pgregory.net/rapid"
)

func rules(texts ...string) (all []permission.RuleValue) {
	for _, t := range texts {
		name, content, _ := strings.Cut(strings.TrimSuffix(t, ")"), "(")
		all = append(all, permission.RuleValue{ToolName: name, RuleContent: content})
	}
	return all
}

func update(typ string, behavior permission.Behavior, texts ...string) permission.Update {
	return permission.Update{Type: typ, Behavior: behavior, Rules: rules(texts...), Destination: "localSettings"}
}

// TestEdit: an update changes its own list and leaves all other bytes as they
// are.
func TestEdit(t *testing.T) {
	conform.Covers(t, "P-122", "P-125", "P-126")
	const nice = `{
    "model": "opus",
    "permissions": {
        "deny": [
            "Bash(rm *)"
        ],
        "allow": ["Read", "Bash(ls:*)"]
    },
    "hooks": {"x" : [1,2 ]}
}
`
	add, replace, remove := permission.UpdateAddRules, permission.UpdateReplaceRules, permission.UpdateRemoveRules
	for name, tt := range map[string]struct {
		old    string
		u      permission.Update
		want   string // "": nothing changes
		change []string
	}{
		"into a long list":    {nice, update(add, "deny", "Edit"), "", []string{"\"Bash(rm *)\"\n", "\"Bash(rm *)\",\n            \"Edit\"\n"}},
		"into a line":         {nice, update(add, "allow", "Edit", "Glob"), "", []string{`"Bash(ls:*)"]`, `"Bash(ls:*)", "Edit", "Glob"]`}},
		"what is there":       {nice, update(add, "allow", "Read", "Bash(ls:*)", "Read(*)"), "", nil},
		"into a new list":     {nice, update(add, "ask", "Edit"), "", []string{"\"Bash(ls:*)\"]\n", "\"Bash(ls:*)\"],\n        \"ask\": [\n            \"Edit\"\n        ]\n"}},
		"replace":             {nice, update(replace, "allow", "Glob", "Read"), "", []string{`["Read", "Bash(ls:*)"]`, `["Read", "Glob"]`}},
		"replace by nothing":  {nice, update(replace, "deny"), "", []string{"[\n            \"Bash(rm *)\"\n        ]", "[]"}},
		"remove the first":    {nice, update(remove, "allow", "Read"), "", []string{`["Read", "Bash(ls:*)"]`, `["Bash(ls:*)"]`}},
		"remove what is not":  {nice, update(remove, "ask", "Read"), "", nil},
		"remove by another":   {nice, update(remove, "deny", "Read"), "", nil},
		"mode":                {nice, permission.Update{Type: "setMode", Mode: "acceptEdits"}, "", []string{"\"Bash(ls:*)\"]\n", "\"Bash(ls:*)\"],\n        \"defaultMode\": \"acceptEdits\"\n"}},
		"directories":         {nice, permission.Update{Type: "addDirectories", Directories: []string{"/x"}}, "", []string{"\"Bash(ls:*)\"]\n", "\"Bash(ls:*)\"],\n        \"additionalDirectories\": [\n            \"/x\"\n        ]\n"}},
		"a new file":          {"", update(add, "allow", `Bash(echo "a" \(b\))`), "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(echo \\\"a\\\" \\\\(b\\\\))\"\n    ]\n  }\n}\n", nil},
		"one line":            {`{"a":1}`, update(add, "allow", "Read"), `{"a":1,"permissions":{"allow":["Read"]}}`, nil},
		"tabs":                {"{\n\t\"a\": 1\n}", update(add, "allow", "Read"), "{\n\t\"a\": 1,\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Read\"\n\t\t]\n\t}\n}", nil},
		"the last of two":     {`{"permissions":{"allow":["X"]},"permissions":{"allow":[]}}`, update(add, "allow", "Read"), `{"permissions":{"allow":["X"]},"permissions":{"allow":["Read"]}}`, nil},
		"beside odd elements": {`{"permissions":{"allow":[7, {"a":[]}, "Foo("]}}`, update(add, "allow", "Read"), `{"permissions":{"allow":[7, {"a":[]}, "Foo(", "Read"]}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.old
			}
			if len(tt.change) > 0 {
				if strings.Count(tt.old, tt.change[0]) != 1 {
					t.Fatalf("the test's own text %q", tt.change[0])
				}
				want = strings.Replace(tt.old, tt.change[0], tt.change[1], 1)
			}
			got, err := edit([]byte(tt.old), tt.u)
			if err != nil || string(got) != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
	for old, want := range map[string]string{
		"{": "not valid JSON", `{"a":1,}`: "not valid JSON", "// c\n{}": "not valid JSON", "[]": "no JSON object",
		`{"permissions":7}`: "not an object", `{"permissions":{"allow":"Read"}}`: "not a list",
	} {
		if got, err := edit([]byte(old), update(add, "allow", "Read")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %q", old, got, err, want)
		}
	}
}

// TestEditKeepsTheRest: for any settings, every update gives valid JSON in which
// nothing but its own list is changed, and that holds what it should.
func TestEditKeepsTheRest(t *testing.T) {
	conform.Covers(t, "P-122", "P-125")
	some := []string{"Read", "Edit", "Bash(ls *)", "Bash(a \\(b\\))", "Read(/x/**)"}
	rapid.Check(t, func(rt *rapid.T) {
		lists := rapid.MapOf(rapid.SampledFrom([]string{"allow", "deny", "ask"}), rapid.SliceOfDistinct(rapid.SampledFrom(some), rapid.ID))
		before := map[string]any{"hooks": map[string]any{"a": "b"}, "z": []any{1.5, nil}}
		perms := map[string]any{"extra": true}
		for k, v := range lists.Draw(rt, "lists") {
			perms[k] = v
		}
		if rapid.Bool().Draw(rt, "with") {
			before["permissions"] = perms
		}
		var old []byte
		if indent := rapid.SampledFrom([]string{"", " ", "    ", "\t"}).Draw(rt, "indent"); indent == "" {
			old, _ = json.Marshal(before)
		} else {
			old, _ = json.MarshalIndent(before, "", indent)
		}
		u := update(rapid.SampledFrom([]string{"addRules", "replaceRules", "removeRules"}).Draw(rt, "type"),
			rapid.SampledFrom([]permission.Behavior{"allow", "deny", "ask"}).Draw(rt, "behavior"),
			rapid.SliceOfDistinct(rapid.SampledFrom(some), rapid.ID).Draw(rt, "rules")...)
		got, err := edit(old, u)
		if err != nil {
			rt.Fatal(err)
		}
		read := func(text []byte) (doc map[string]any, list []string) {
			if err := json.Unmarshal(text, &doc); err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			if p, ok := doc["permissions"].(map[string]any); ok {
				if l, ok := p[string(u.Behavior)].([]any); ok {
					for _, e := range l {
						list = append(list, e.(string))
					}
				}
				delete(p, string(u.Behavior))
				if len(p) == 0 {
					delete(doc, "permissions")
				}
			}
			return doc, list
		}
		was, had := read(old)
		is, has := read(got)
		if !reflect.DeepEqual(was, is) {
			rt.Fatalf("%s became %s", old, got)
		}
		var want []string
		for _, r := range had {
			named := slices.ContainsFunc(u.Rules, func(v permission.RuleValue) bool { return v.String() == r })
			if u.Type == "addRules" || named == (u.Type == "replaceRules") {
				want = append(want, r)
			}
		}
		for _, v := range u.Rules {
			if u.Type != "removeRules" && !slices.Contains(want, v.String()) {
				want = append(want, v.String())
			}
		}
		if !slices.Equal(has, want) {
			rt.Fatalf("%v became %v, want %v", had, has, want)
		}
		again, err := edit(got, u)
		if err != nil || string(again) != string(got) {
			rt.Fatalf("made twice: %s, then %s, %v", got, again, err)
		}
	})
}

// TestKeep writes the file of the destination, whole and with its mode, and no
// other.
func TestKeep(t *testing.T) {
	conform.Covers(t, "P-123", "P-124", "P-126", "O-55")
	root := t.TempDir()
	f := At(filepath.Join(root, "home"), filepath.Join(root, "work"))
	for i, to := range []string{"userSettings", "projectSettings", "localSettings", "session", "cliArg", ""} {
		u := permission.Update{Type: "addRules", Behavior: "allow", Rules: rules(fmt.Sprintf("T%d", i)), Destination: to}
		if err := f.Keep(u); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(root, "home", "settings.json"): "T0", filepath.Join(root, "work", ".claude", "settings.json"): "T1",
		filepath.Join(root, "work", ".claude", "settings.local.json"): "T2",
	} {
		var doc struct{ Permissions struct{ Allow []string } }
		text, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(text, &doc) != nil || !slices.Equal(doc.Permissions.Allow, []string{want}) {
			t.Errorf("%s: %s, %v; want %s", path, text, err, want)
		}
	}
	if got := files(t, root); len(got) != 3 {
		t.Errorf("files: %q", got)
	}
	if err := f.Keep(permission.Update{Type: "setMode", Mode: "bypassPermissions", Destination: "userSettings"}); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(f.User); strings.Contains(string(text), "bypass") {
		t.Errorf("%s", text)
	}
	for _, bad := range []permission.Update{
		{Type: "addRules", Behavior: "allow", Rules: rules("Read"), Destination: "policySettings"},
		{Type: "addRules", Behavior: "allow", Rules: rules("Read"), Destination: "elsewhere"},
	} {
		if err := f.Keep(bad); err == nil || !strings.Contains(err.Error(), bad.Destination) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestKeepFails: a file that cannot be changed stays as it is, and nothing is
// left beside it.
func TestKeepFails(t *testing.T) {
	conform.Covers(t, "P-123")
	root := t.TempDir()
	f := At(root, root)
	if err := os.WriteFile(f.User, []byte("{broken"), 0o640); err != nil {
		t.Fatal(err)
	}
	u := permission.Update{Type: "addRules", Behavior: "allow", Rules: rules("Read"), Destination: "userSettings"}
	var bad *Error
	if err := f.Keep(u); !errors.As(err, &bad) || bad.Path != f.User {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(f.User); string(text) != "{broken" {
		t.Errorf("%s", text)
	}
	if err := (Files{}).Keep(u); !errors.As(err, &bad) {
		t.Errorf("without a file: %v", err)
	}
	u.Destination = "localSettings"
	if err := os.MkdirAll(f.Local, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(u); !errors.As(err, &bad) || bad.Path != f.Local {
		t.Errorf("a directory: %v", err)
	}
	if got := files(t, root); len(got) != 1 {
		t.Errorf("files: %q", got)
	}
}

// TestKeepThroughLinks: a linked settings file stays a link, and the mode of
// the file stays too.
func TestKeepThroughLinks(t *testing.T) {
	conform.Covers(t, "P-123")
	root := t.TempDir()
	real := filepath.Join(root, "dotfiles.json")
	if err := os.WriteFile(real, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := At(root, root)
	if err := os.Symlink(real, f.User); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := f.Keep(permission.Update{Type: "addRules", Behavior: "deny", Rules: rules("Read"), Destination: "userSettings"}); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(f.User); err != nil || to != real {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	info, err := os.Stat(real)
	if text, _ := os.ReadFile(real); err != nil || !strings.Contains(string(text), "Read") || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%s, %v, %v", text, info.Mode(), err)
	}
}

// TestKeepTogether: changes at the same time are all kept.
func TestKeepTogether(t *testing.T) {
	conform.Covers(t, "P-123")
	f := At(t.TempDir(), t.TempDir())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := f.Keep(permission.Update{Type: "addRules", Behavior: "allow", Rules: rules(fmt.Sprintf("T%d", i)), Destination: "localSettings"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(f.Local)
	if err != nil || strings.Count(string(text), `"T`) != 20 {
		t.Errorf("%s, %v", text, err)
	}
}

// TestKeepBesideOthers: what another process writes meanwhile is not lost.
func TestKeepBesideOthers(t *testing.T) {
	conform.Covers(t, "P-123")
	path := filepath.Join(t.TempDir(), "settings.json")
	calls := 0
	err := change(path, func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			if err := os.WriteFile(path, []byte(`{"permissions":{"deny":["Theirs"]}}`), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return edit(old, update("addRules", "deny", "Ours"))
	})
	text, _ := os.ReadFile(path)
	if err != nil || calls != 2 || !strings.Contains(string(text), "Theirs") || !strings.Contains(string(text), "Ours") {
		t.Errorf("%s after %d attempts, %v", text, calls, err)
	}
}

func files(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRenamed: an update is written where settings are read, whatever the
// directory is called.
func TestRenamed(t *testing.T) {
	conform.Covers(t, "C-2")
	defer func(old string) { names.Dir = old }(names.Dir)
	names.Dir = ".agent"
	dir := t.TempDir()
	if err := At(filepath.Join(dir, "home"), dir).Keep(update(permission.UpdateAddRules, "deny", "Edit")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".agent", "settings.local.json")); err != nil {
		t.Error(err)
	}
}

// TestExclude: git is told to leave the local file out, once, where it does not
// already.
func TestExclude(t *testing.T) {
	conform.Covers(t, "C-20")
	const line = "**/.claude/settings.local.json\n"
	config := func(home string) string { return filepath.Join(home, ".config", "git", "ignore") }
	for name, tt := range map[string]struct {
		files   map[string]string // "home/…" are those of the user
		changed string            // the file that has the line afterwards; "": none
		want    string            // what stands in it
	}{
		"no repository":      {nil, "", ""},
		"not ignored":        {map[string]string{".git/HEAD": ""}, ".config/git/ignore", line},
		"a repository above": {map[string]string{"../.git/HEAD": ""}, ".config/git/ignore", line},
		"others are there":   {map[string]string{".git/HEAD": "", "home/.config/git/ignore": "*.o"}, ".config/git/ignore", "*.o\n" + line},
		"the user's own":     {map[string]string{".git/HEAD": "", "home/.gitconfig": "[core]\n\texcludesFile = ~/mine\n"}, "mine", line},
		"ignored by project": {map[string]string{".git/HEAD": "", ".gitignore": "settings.local.json\n"}, "", ""},
		"directory ignored":  {map[string]string{".git/HEAD": "", ".gitignore": "/.claude/\n"}, "", ""},
		"ignored in it":      {map[string]string{".git/HEAD": "", ".claude/.gitignore": "*.local.json\n"}, "", ""},
		"by its own list":    {map[string]string{".git/HEAD": "", ".git/info/exclude": ".claude\n"}, "", ""},
		"by the user's":      {map[string]string{".git/HEAD": "", "home/.config/git/ignore": "**/.claude/settings.local.json"}, "", ""},
		"taken back":         {map[string]string{".git/HEAD": "", ".gitignore": "!settings.local.json\n", "home/.config/git/ignore": line}, ".config/git/ignore", line},
	} {
		t.Run(name, func(t *testing.T) {
			dir, home := filepath.Join(t.TempDir(), "project"), t.TempDir()
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			before := map[string]string{}
			for file, text := range tt.files {
				if rest, ok := strings.CutPrefix(file, "home/"); ok {
					write(filepath.Join(home, rest), text)
					before[rest] = text
				} else {
					write(filepath.Join(dir, file), text)
				}
			}
			files := At("", dir)
			getenv := func(k string) string { return map[string]string{"HOME": home}[k] }
			if err := files.Exclude(getenv); err != nil { // before there is anything to exclude
				t.Fatal(err)
			}
			if _, err := os.Stat(config(home)); (err == nil) != (before[".config/git/ignore"] != "") {
				t.Error("a file that is not there is excluded")
			}
			if err := files.Keep(update(permission.UpdateAddRules, "allow", "Read")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := files.Exclude(getenv); err != nil {
					t.Fatal(err)
				}
			}
			if tt.changed != "" {
				before[tt.changed] = tt.want
			}
			for file, want := range before {
				if got, err := os.ReadFile(filepath.Join(home, file)); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", file, got, err)
				}
			}
			if _, err := os.Stat(config(home)); (err == nil) != (before[".config/git/ignore"] != "") {
				t.Error("excludes where none belong")
			}
		})
	}
	// Without a place for excludes it is told.
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := At("", dir)
	if err := files.Keep(update(permission.UpdateAddRules, "allow", "Read")); err != nil {
		t.Fatal(err)
	}
	var bad *Error
	if err := files.Exclude(func(string) string { return "" }); !errors.As(err, &bad) || bad.Path != files.Local {
		t.Errorf("%v", err)
	}
}
