package instructions_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/instructions"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden parts of testdata/*.txtar anew")

// TestScenarios lays out the files of testdata/*.txtar in a folder and plays the
// script. Its lines:
//
//	config key value…   dir, home, userhome, system, managed, sources, names,
//	                    exclude, add, fromadd, external, deny
//	link path target    a symbolic link
//	write path text     a file
//	load                a new session: what stands before its first prompt
//	reload              the same, in the session that there is
//	read path…          what a file brings along that the model read
//	reset               the conversation was compacted
//
// What came of it is in out: a line a file, then the text, where ROOT is the
// folder and the frame around the text is left out.
func TestScenarios(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			conform.CoversFile(t, ar.Comment)
			p := &play{t: t, root: realDir(t)}
			script, want := "", ""
			for _, f := range ar.Files {
				switch f.Name {
				case "script":
					script = string(f.Data)
				case "out":
					want = string(f.Data)
				default:
					p.write(f.Name, string(f.Data))
				}
			}
			for line := range strings.Lines(script) {
				p.line(strings.TrimSpace(line))
			}
			got := p.out.String()
			if *update {
				ar.Files = slices.DeleteFunc(ar.Files, func(f txtar.File) bool { return f.Name == "out" })
				ar.Files = append(ar.Files, txtar.File{Name: "out", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("%s differs (go test ./internal/instructions -update writes it anew)\n--- want\n%s--- got\n%s", name, want, got)
			}
		})
	}
}

// realDir is a folder of the test, by its name without links.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

type play struct {
	t    *testing.T
	root string
	cfg  instructions.Config
	deny []string
	set  *instructions.Set
	out  strings.Builder
}

// at is the place of a path of the script.
func (p *play) at(path string) string { return filepath.Join(p.root, filepath.FromSlash(path)) }

func (p *play) all(paths []string) (out []string) {
	for _, path := range paths {
		out = append(out, p.at(path))
	}
	return out
}

func (p *play) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.at(path)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.at(path), []byte(strings.ReplaceAll(text, "ROOT", p.root)), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *play) line(line string) {
	p.t.Helper()
	w := strings.Fields(line)
	if len(w) == 0 || w[0][0] == '#' {
		return
	}
	switch w[0] {
	case "config":
		p.config(w[1], w[2:])
	case "link":
		if err := os.MkdirAll(filepath.Dir(p.at(w[1])), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.Symlink(filepath.FromSlash(strings.ReplaceAll(w[2], "ROOT", p.root)), p.at(w[1])); err != nil {
			p.t.Skipf("no symbolic links here: %v", err)
		}
	case "write":
		p.write(w[1], strings.Join(w[2:], " ")+"\n")
	case "load", "reload":
		if w[0] == "load" {
			p.set = nil
		}
		r, err := p.begin().Load(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		p.show(line, r)
	case "read":
		p.show(line, p.begin().Touch(p.t.Context(), p.all(w[1:])...))
	case "reset":
		p.begin().Reset()
	default:
		p.t.Fatalf("the script has a line %q", line)
	}
}

func (p *play) begin() *instructions.Set {
	if p.set == nil {
		p.cfg.Denied = func(path string) bool { return slices.Contains(p.deny, path) }
		p.cfg.Warn = func(line string) { fmt.Fprintf(&p.out, "warning: %s\n", p.short(line)) }
		p.cfg.Debug = func(line string) { fmt.Fprintf(&p.out, "debug: %s\n", p.short(line)) }
		p.set = instructions.New(p.cfg)
	}
	return p.set
}

func (p *play) config(key string, values []string) {
	c := &p.cfg
	switch key {
	case "dir":
		c.Dir = p.at(values[0])
	case "home":
		c.Home = p.at(values[0])
	case "userhome":
		c.UserHome = p.at(values[0])
	case "system":
		c.SystemDir = p.at(values[0])
	case "managed":
		c.Managed = strings.Join(values, " ")
	case "sources":
		c.User, c.Project, c.Local = slices.Contains(values, "user"), slices.Contains(values, "project"), slices.Contains(values, "local")
	case "names":
		c.Names = values
	case "exclude":
		for _, v := range values {
			c.Excludes = append(c.Excludes, strings.ReplaceAll(v, "ROOT", filepath.ToSlash(p.root)))
		}
	case "add":
		c.AddDirs = append(c.AddDirs, p.all(values)...)
	case "fromadd":
		c.FromAddDirs = true
	case "external":
		c.External = true
	case "deny":
		p.deny = append(p.deny, p.all(values)...)
	default:
		p.t.Fatalf("the script configures %q", key)
	}
}

func (p *play) short(text string) string {
	text = strings.ReplaceAll(text, p.root, "ROOT")
	if filepath.Separator != '/' {
		text = strings.ReplaceAll(text, string(filepath.Separator), "/")
	}
	return text
}

func (p *play) show(line string, r instructions.Result) {
	fmt.Fprintf(&p.out, "%s:\n", line)
	for _, f := range r.Files {
		fmt.Fprintf(&p.out, "* %s %s %s", f.Reason, f.Kind, f.Path)
		if f.Parent != "" {
			fmt.Fprintf(&p.out, " from %s", f.Parent)
		}
		if f.Trigger != "" {
			fmt.Fprintf(&p.out, " by %s", f.Trigger)
		}
		if len(f.Globs) > 0 {
			fmt.Fprintf(&p.out, " for %s", strings.Join(f.Globs, " | "))
		}
		p.out.WriteString("\n")
	}
	body := r.Text
	if body != "" {
		begun, opened := strings.CutPrefix(body, "<system-reminder>\n")
		inner, closed := strings.CutSuffix(begun, "</system-reminder>")
		if body = inner; !opened || !closed {
			p.t.Errorf("no frame around %q", r.Text)
		}
		_, body, _ = strings.Cut(body, "\n") // the introduction
	}
	p.out.WriteString(body)
	text := p.short(p.out.String())
	p.out.Reset()
	p.out.WriteString(text)
}
