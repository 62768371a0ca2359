package settings_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/project/settings"
)

// watcher follows a reader.
type watcher struct {
	*place
	r *settings.Reader
}

// see expects what a refresh finds: whether something changed, the deny rules,
// and a part of each problem.
func (w *watcher) see(step string, changed bool, deny string, problems ...string) {
	w.t.Helper()
	s, c, got := w.r.Refresh()
	if c != changed {
		w.t.Errorf("%s: changed is %v", step, c)
	}
	if d := strings.Join(rules(s, "deny"), ", "); d != deny || s != w.r.Settings() {
		w.t.Errorf("%s: deny rules %q, want %q", step, d, deny)
	}
	lines := w.lines(got)
	ok := len(lines) == len(problems)
	for i := 0; ok && i < len(lines); i++ {
		ok = strings.Contains(lines[i], problems[i])
	}
	if !ok {
		w.t.Errorf("%s: problems %q, want %q", step, lines, problems)
	}
}

// TestChanges: a change counts at the next look, a broken file keeps its last
// good state, one that is gone its protection.
func TestChanges(t *testing.T) {
	conform.Covers(t, "C-19", "B-044")
	p := newPlace(t)
	path := p.write("project", `{"permissions":{"deny":["A"],"ask":["Q"]},"env":{"X":"1"},"model":"m"}`)
	r, problems := p.open()
	if problems != nil {
		t.Fatal(problems)
	}
	w := &watcher{p, r}
	x := func(want string) {
		t.Helper()
		if env, _ := r.Settings().Env(); env["X"] != want {
			t.Errorf("X=%q, want %q", env["X"], want)
		}
	}
	w.see("unchanged", false, "projectSettings A")
	p.write("project", `{"permissions":{"deny":["B"],"ask":["Q"]},"env":{"X":"2"},"model":"m"}`)
	w.see("a change of the same size", true, "projectSettings B")
	x("2")
	p.write("project", `{"permissions":{"de`)
	w.see("half of it", false, "projectSettings B", "settings.json:1:19: is not JSON", "its last good state stays in force")
	x("2")
	w.see("told once", false, "projectSettings B")
	p.write("project", `{"permissions":{"deny":"B"}}`)
	w.see("against the schema", false, "projectSettings B", "permissions.deny: must be a list", "its last good state stays in force")
	p.write("project", "")
	w.see("empty", false, "projectSettings B", "is empty", "last good")
	p.write("project", `{"permissions":{"deny":["C"]}}`)
	w.see("good again", true, "projectSettings C")
	x("")

	// An editor that writes beside the file and renames.
	next := filepath.Join(filepath.Dir(path), "next")
	if err := os.WriteFile(next, []byte(`{"permissions":{"deny":["D"],"allow":["E"]},"env":{"X":"3"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	p.trusted()
	w.see("renamed over", true, "projectSettings D")
	x("3")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.see("removed", true, "projectSettings D", "is gone; what it forbade stays forbidden")
	x("")
	if allow := rules(r.Settings(), "allow"); allow != nil {
		t.Errorf("what the removed file allowed is still allowed: %q", allow)
	}
	w.see("told once", false, "projectSettings D")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	w.see("a directory", false, "projectSettings D", "is a directory; its last good state stays in force")
	w.see("told once", false, "projectSettings D")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.see("gone again", true, "projectSettings D", "is gone")
	p.write("project", `{}`)
	w.see("back", true, "")

	// Files that were not there at the start.
	p.write("local", `{"permissions":{"deny":["L"]}}`)
	p.write("managed-settings.d/a.json", `{"permissions":{"deny":["M"]}}`)
	w.see("new files", true, "localSettings L, policySettings M")
	if err := os.RemoveAll(filepath.Join(p.system, "managed-settings.d")); err != nil {
		t.Fatal(err)
	}
	w.see("policy removed", true, "localSettings L, policySettings M", "a.json: is gone")
}

// TestBrokenFromTheStart: until a file was good once, the newest state that can
// be read protects.
func TestBrokenFromTheStart(t *testing.T) {
	conform.Covers(t, "C-16")
	p := newPlace(t)
	p.write("project", `{"model":1,"permissions":{"deny":["A"],"allow":["X"]}}`)
	r, _ := p.open()
	w := &watcher{p, r}
	w.see("start", false, "projectSettings A")
	p.write("project", `{"model":1,"permissions":{"deny":["A","B"]}}`)
	w.see("still broken", true, "projectSettings A, projectSettings B", "model", "except for what it forbids")
	p.write("project", `{`)
	w.see("not JSON", false, "projectSettings A, projectSettings B", "ends too early", "it is skipped")
	p.write("project", `{"permissions":{"deny":["C"]}}`)
	w.see("good", true, "projectSettings C")
}

func TestUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("needs a user from whom a file can be hidden")
	}
	p := newPlace(t)
	path := p.write("user", `{"permissions":{"deny":["A"]}}`)
	r, _ := p.open()
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	(&watcher{p, r}).see("hidden", false, "userSettings A", "permission denied")
}

// TestSettled: a file is read again while a change may hide in one tick of the
// file system's clock, and left alone later.
func TestSettled(t *testing.T) {
	p := newPlace(t)
	now := time.Now()
	p.cfg.Now = func() time.Time { return now }
	path := p.write("user", `{"permissions":{"deny":["A"]}}`)
	written := now.Add(-time.Hour)
	set := func(text string) {
		t.Helper()
		p.write("user", text)
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"permissions":{"deny":["A"]}}`)
	r, _ := p.open()
	w := &watcher{p, r}
	set(`{"permissions":{"deny":["B"]}}`)
	w.see("settled: nothing looks new", false, "userSettings A")
	written = now.Add(-time.Second)
	set(`{"permissions":{"deny":["C"]}}`)
	w.see("another time", true, "userSettings C")
	set(`{"permissions":{"deny":["D"]}}`)
	w.see("the same time, a moment ago", true, "userSettings D")
}

// TestRefreshCost: files that do not exist cost little, at the start and at each
// look.
func TestRefreshCost(t *testing.T) {
	p := newPlace(t)
	r, _ := p.open()
	if n := testing.AllocsPerRun(20, func() { r.Refresh() }); n > 60 {
		t.Errorf("a look makes %v allocations", n)
	}
}

func BenchmarkOpenNone(b *testing.B) {
	p := newPlace(b)
	for b.Loop() {
		if _, _, err := settings.Open(p.cfg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefreshNone(b *testing.B) {
	p := newPlace(b)
	r, _ := p.open()
	for b.Loop() {
		r.Refresh()
	}
}

func BenchmarkRefreshThree(b *testing.B) {
	p := newPlace(b)
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"user", "project", "managed"} {
		if err := os.Chtimes(p.write(name, every(name)), old, old); err != nil {
			b.Fatal(err)
		}
	}
	r, _ := p.open()
	for b.Loop() {
		r.Refresh()
	}
}

// FuzzSettings: whatever bytes a file gets, reading it ends, what cannot be used
// is told, and a file that breaks forbids no less than before.
func FuzzSettings(f *testing.F) {
	good := `{"permissions":{"deny":["A","B(x)"],"ask":["C"],"disableBypassPermissionsMode":"disable"},"env":{"X":"1"}}`
	for _, s := range []string{
		"", "{}", "null", good, good[:40], `{"permissions":{"deny":["Z"]}}`, `{"permissions":{"deny":"A"}}`, `{"permissions":7}`,
		`{"permissions":{"deny":[1,"A",null,{"x":[]}]}}`, "\ufeff{}", "{\"a\":\"\xff\"}", `{"a":1,"a":[2],"a":{"b":3}}`, `{"model":7,"permissions":{"deny":["Q"]}}`,
		`{"hooks":{"PreToolUse":[]},"extraKnownMarketplaces":{"a":{}},"fallbackModel":["x"]}`, `{"env":{"A":null,"B":"","=":"x"}}`,
		strings.Repeat(`{"permissions":`, 50) + "1" + strings.Repeat("}", 50), `[[[[[[[[]]]]]]]]`, "{// x\n}", `{"a":"\ud800"}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	p := newPlace(f)
	f.Fuzz(func(t *testing.T, doc []byte, before bool) {
		p.t = t
		first := good
		if !before {
			first = string(doc)
		}
		p.write("project", first)
		r, _ := p.open()
		had := rules(r.Settings(), "deny")
		if before {
			p.write("project", string(doc))
		}
		s, changed, problems := r.Refresh()
		has := rules(s, "deny")
		if before {
			broken := slices.ContainsFunc(problems, func(q settings.Problem) bool { return strings.Contains(q.Text, "cannot be used as it is") })
			if broken && (changed || !slices.Equal(had, has) || s.NoBypass() == "") {
				t.Errorf("a broken file changed the rules from %q to %q", had, has)
			}
			if !broken && !changed && string(doc) != good {
				t.Errorf("a good file changed nothing: %q", doc)
			}
		} else if changed || !slices.Equal(had, has) {
			t.Errorf("without a change the rules went from %q to %q", had, has)
		}
		for _, q := range problems {
			if q.Line < 0 || q.Line > 0 && (q.Col < 1 || q.Line > strings.Count(string(doc), "\n")+1) || q.String() == "" {
				t.Errorf("%+v", q)
			}
		}
		// What is left is a file like any other, without problems of its own.
		left := s.JSON()
		p.write("project", string(left))
		again, problems, err := settings.Open(p.cfg)
		if err != nil || string(again.Settings().JSON()) != string(left) || !slices.Equal(rules(again.Settings(), "deny"), has) {
			t.Errorf("%s became %s (%v)", left, again.Settings().JSON(), err)
		}
		for _, q := range problems {
			if !strings.HasPrefix(q.Text, "Ignoring ") && !strings.Contains(q.Text, "is not known") {
				t.Errorf("what was left has a problem: %s", q)
			}
		}
	})
}
