package permission_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
)

// corpusEntry is one line of the corpus; testdata/corpus/README.txt tells the
// form.
type corpusEntry struct {
	where  string // file:line
	want   string
	text   string
	config permission.Config
	tool   string
}

// repeated is a text that stands many times: «5×x».
var repeated = regexp.MustCompile(`«(\d+)×([^»]*)»`)

func (w world) expand(s string) string {
	s = repeated.ReplaceAllStringFunc(s, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		return strings.Repeat(parts[2], n)
	})
	return w.fill(strings.NewReplacer("⏎", "\n", "⇥", "\t", "␍", "\r", "␀", "\x00").Replace(s))
}

// readCorpus reads the entries of one file.
func readCorpus(t *testing.T, w world, name string) (entries []corpusEntry) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	fresh := permission.Config{Dirs: []string{w.project}, Home: w.home}
	c := fresh
	inRules := false
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		where := fmt.Sprintf("%s:%d", filepath.Base(name), i+1)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || word == "#":
			continue
		case word == "@@":
			c, inRules = fresh, false
			continue
		case word == "@":
			kind, value, _ := strings.Cut(rest, " ")
			if value = w.expand(value); !inRules {
				c.Allow, c.Ask, c.Deny, c.Dirs = slices.Clone(c.Allow), slices.Clone(c.Ask), slices.Clone(c.Deny), slices.Clone(c.Dirs)
			}
			inRules = true
			switch kind {
			case "allow":
				c.Allow = append(c.Allow, value)
			case "ask":
				c.Ask = append(c.Ask, value)
			case "deny":
				c.Deny = append(c.Deny, value)
			case "mode":
				c.Mode, c.BypassAvailable = permission.Mode(value), value == "bypassPermissions"
			case "dir":
				c.Dirs = append(c.Dirs, value)
			default:
				t.Fatalf("%s: %q", where, line)
			}
			continue
		case !slices.Contains([]string{"allow", "ask", "deny", "no"}, word):
			t.Fatalf("%s: %q", where, line)
		}
		inRules = false
		e := corpusEntry{where: where, want: word, text: w.expand(rest), config: c, tool: "Bash"}
		if tool, path, ok := strings.Cut(rest, "}"); ok && regexp.MustCompile(`^\{\w+$`).MatchString(tool) {
			e.tool, e.text = tool[1:], w.expand(strings.TrimPrefix(path, " "))
		}
		entries = append(entries, e)
	}
	return entries
}

// request is the call of an entry. Nothing is run.
func (e corpusEntry) request(t *testing.T, w world) permission.Request {
	t.Helper()
	r := permission.Request{Tool: e.tool}
	kinds := map[string]permission.Kind{
		"Read": permission.Read, "Glob": permission.Read, "Grep": permission.Read,
		"Edit": permission.Write, "Write": permission.Write, "NotebookEdit": permission.Write,
	}
	kind, isFile := kinds[e.tool]
	switch {
	case e.tool == "Bash":
		return bash(e.text)
	case isFile:
		path := e.text
		if !filepath.IsAbs(path) {
			path = w.project + "/" + path
		}
		a, err := permission.NewPathAccess(kind, path)
		if err != nil {
			t.Fatalf("%s: %v", e.where, err)
		}
		r.Accesses = []permission.Access{a}
	}
	return r
}

// corpusWorld is the world that testdata/corpus/README.txt describes.
func corpusWorld(t *testing.T) world {
	t.Helper()
	w := newWorld(t)
	for _, dir := range []string{"locked", "docs", ".git/objects", ".git/refs", "bare/objects"} {
		if err := os.MkdirAll(filepath.Join(w.project, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"src/deep/c.go", "locked/l.txt", "docs/d.md", "with space.txt", ".git/HEAD", "bare/HEAD", "../../home/me/notes.txt"} {
		if err := os.WriteFile(filepath.Join(w.project, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"out.txt": filepath.Join(w.outside, "o.txt"), "envlink": ".env", "lockedlink": "locked", "dangling": "locked/new.txt"} {
		if err := os.Symlink(to, filepath.Join(w.project, from)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	return w
}

// TestCorpus decides every entry of the corpus.
func TestCorpus(t *testing.T) {
	conform.Covers(t, "P-7", "P-8", "P-9", "P-10", "P-11", "P-15", "P-17", "P-29", "P-30", "P-33", "P-54", "P-55", "P-56", "P-57", "P-58", "P-59", "P-60", "P-61",
		"P-62", "P-64", "P-65", "P-66", "P-67", "P-68", "P-69", "P-70", "P-71", "P-72", "P-73", "P-74", "P-75", "P-76", "P-81", "P-82", "P-83", "P-86", "P-87", "P-88",
		"P-97", "P-98", "P-105", "P-106", "P-107", "P-108", "P-110", "P-111", "P-112", "B-031", "B-032", "B-033", "B-035", "B-036", "B-037", "B-038", "B-042", "B-047",
		"B-050", "B-053", "B-055", "B-056", "B-057", "B-059", "B-060")
	if runtime.GOOS == "windows" {
		t.Skip("the entries are for a Unix shell")
	}
	w := corpusWorld(t)
	names, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	ordinary, others := 0, 0
	policies := map[string]*permission.Policy{}
	for _, name := range names {
		entries := readCorpus(t, w, name)
		for _, e := range entries {
			if filepath.Base(name) == "ordinary.txt" && e.want == "allow" {
				ordinary++
			} else if e.want != "allow" {
				others++
			}
			key := fmt.Sprint(e.config)
			p, made := policies[key]
			if !made {
				var err error
				if p, _, err = permission.NewPolicy(e.config); err != nil {
					t.Fatalf("%s: %v", e.where, err)
				}
				policies[key] = p
			}
			d := p.Decide(e.request(t, w))
			if got := string(d.Behavior); got != e.want && !(e.want == "no" && got != "allow") {
				t.Errorf("%s: %s %.200q: %s (%s: %.200s), want %s", e.where, e.tool, e.text, got, d.Step, d.Reason, e.want)
			}
		}
	}
	if ordinary < 150 || others < 400 {
		t.Errorf("the corpus has %d ordinary entries and %d others", ordinary, others)
	}
}
