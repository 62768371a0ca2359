package search

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
)

// ripgrep runs rg in dir and returns its lines, sorted; ok is false when it
// refuses the arguments.
func ripgrep(t testing.TB, dir string, args ...string) (lines []string, ok bool) {
	t.Helper()
	cmd := exec.Command("rg", append([]string{"--no-config", "--color=never", "--no-messages"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil && exit.ExitCode() != 1 { // 1 is no match
		return nil, false
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		lines = append(lines, strings.ToValidUTF8(strings.TrimPrefix(filepath.ToSlash(line), "./"), "\uFFFD"))
	}
	slices.Sort(lines)
	return lines, true
}

func needRipgrep(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("ripgrep (rg) is not on PATH: nothing to compare with")
	}
}

// ours runs a search and returns what ripgrep prints for it, sorted.
func ours(t testing.TB, o GrepOptions) (lines []string) {
	t.Helper()
	o.Ignore, o.Numbers = true, true
	root := o.Root
	o.Name = func(path string) string {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.ToSlash(rel)
	}
	res, err := Grep(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range res.Files {
		switch o.Mode {
		case Files:
			lines = append(lines, o.Name(f.Path))
		case Count:
			lines = append(lines, fmt.Sprintf("%s:%d", o.Name(f.Path), f.Matches))
		}
	}
	lines = append(lines, res.Lines...)
	slices.Sort(lines)
	return lines
}

func sampleTree(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	tree(t, root, map[string]string{
		".git/config": "needle in git\n", ".gitignore": "*.log\n/build/\n!keep.log\n**/cache/\n", ".ignore": "ignored.txt\n",
		"a.go": "package a\n\nfunc Needle() error {\n\treturn nil // needle\n}\n", "b.GO": "needle\n", "keep.log": "needle\n", "drop.log": "needle\n",
		"build/x.go": "needle\n", "sub/build/y.go": "// Needle\n", "sub/cache/z.go": "needle\n", "sub/.gitignore": "z*\n!zz.py\n", "sub/z.py": "needle\n", "sub/zz.py": "needle needle\n",
		"ignored.txt": "needle\n", ".hidden/h.txt": "needle\n", ".env": "needle=1\n", "deep/er/still/f.tsx": "a needle\nand a\nneedle", "empty": "",
		"crlf.txt": "one\r\nneedle\r\nthree\r\n", "bom.md": "\uFEFFneedle\n", "utf16.txt": "\xFF\xFEn\x00e\x00e\x00d\x00l\x00e\x00\n\x00=\xD8\x00\xDE\n\x00",
		"bin": "needle\x00\x01needle\n", "é/ü.txt": "Nädel needle NEEDLE\n", "Makefile": "needle:\n\ttrue\n", "many.txt": strings.Repeat("x\ny\nneedle\nz\n", 30),
	})
	return root
}

func TestAgreesWithRipgrep(t *testing.T) {
	conform.Covers(t, "T-98", "T-99", "T-100")
	needRipgrep(t)
	root := sampleTree(t)
	for _, test := range []struct {
		name    string
		pattern string
		args    []string // of rg
		o       GrepOptions
		fold    bool
		multi   bool
		glob    string
		typ     string
	}{
		{name: "files", pattern: "needle", args: []string{"-l"}},
		{name: "files with hidden", pattern: "needle", args: []string{"-l", "--hidden", "-g", "!.git"}, o: GrepOptions{Hidden: true}},
		{name: "count", pattern: "needle", args: []string{"-c"}, o: GrepOptions{Mode: Count}},
		{name: "ignore case", pattern: "needle", args: []string{"-ci"}, o: GrepOptions{Mode: Count}, fold: true},
		{name: "content", pattern: `n\w+e`, args: []string{"-n"}, o: GrepOptions{Mode: Content}},
		{name: "only", pattern: `\w+e`, args: []string{"-no"}, o: GrepOptions{Mode: Content, Only: true}},
		{name: "after", pattern: "needle", args: []string{"-n", "-A1"}, o: GrepOptions{Mode: Content, After: 1}},
		{name: "before", pattern: "needle", args: []string{"-n", "-B2"}, o: GrepOptions{Mode: Content, Before: 2}},
		{name: "around", pattern: "needle$", args: []string{"-n", "-C1"}, o: GrepOptions{Mode: Content, Before: 1, After: 1}},
		{name: "glob", pattern: "needle", args: []string{"-l", "-g", "*.go"}, glob: "*.go"},
		{name: "glob with braces", pattern: "needle", args: []string{"-l", "-g", "*.{txt,md}"}, glob: "*.{txt,md}"},
		{name: "glob with a slash", pattern: "needle", args: []string{"-l", "-g", "sub/**/*.go"}, glob: "sub/**/*.go"},
		{name: "glob from the root", pattern: "needle", args: []string{"-l", "-g", "/*.go"}, glob: "/*.go"},
		{name: "glob that excludes", pattern: "needle", args: []string{"-l", "-g", "!*.txt"}, glob: "!*.txt"},
		{name: "glob that excludes a directory", pattern: "needle", args: []string{"-l", "-g", "!deep"}, glob: "!deep"},
		{name: "two globs", pattern: "needle", args: []string{"-l", "-g", "*.t*", "-g", "!*.txt"}, glob: "*.t* !*.txt"},
		{name: "type", pattern: "needle", args: []string{"-l", "-tgo"}, typ: "go"},
		{name: "type of names", pattern: "needle", args: []string{"-l", "-tmake"}, typ: "make"},
		{name: "type and glob", pattern: "needle", args: []string{"-l", "-ttxt", "-g", "c*"}, typ: "txt", glob: "c*"},
		{name: "multiline", pattern: `x\ny`, args: []string{"-nU", "--multiline-dotall"}, o: GrepOptions{Mode: Content}, multi: true},
		{name: "multiline count", pattern: `needle\nz`, args: []string{"-cU", "--multiline-dotall"}, o: GrepOptions{Mode: Count}, multi: true},
		{name: "multiline with dot", pattern: `Needle.*?nil`, args: []string{"-nU", "--multiline-dotall"}, o: GrepOptions{Mode: Content}, multi: true},
		{name: "emoji", pattern: `\u{1F600}`, args: []string{"-l"}},
		{name: "no match", pattern: "haystack", args: []string{"-l"}},
		{name: "every line", pattern: "", args: []string{"-c"}, o: GrepOptions{Mode: Count}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, ok := ripgrep(t, root, append(append([]string{"--with-filename", "--no-heading"}, test.args...), "-e", test.pattern, "./")...)
			if !ok {
				t.Fatal("rg refuses")
			}
			o := test.o
			o.Root = root
			var err error
			if o.Matcher, err = Compile(test.pattern, test.fold, test.multi); err != nil {
				t.Fatal(err)
			}
			if o.Filter, err = NewFilter(test.glob, test.typ); err != nil {
				t.Fatal(err)
			}
			// ripgrep shows what it read of a binary file before it noticed.
			// And a glob of ripgrep's brings back files that are ignored.
			want = slices.DeleteFunc(want, func(s string) bool {
				return strings.HasPrefix(s, "bin") || strings.HasPrefix(s, "WARNING") || strings.HasPrefix(s, "ignored.txt")
			})
			if got := ours(t, o); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
	for _, pattern := range []string{"a(b", "[a", "a{2", `(?=x)`, `(x)\1`, "*a", `\pQ`, "a\\", `a\nb`} {
		_, ok := ripgrep(t, root, "-l", "-e", pattern, "./")
		if _, err := Compile(pattern, false, false); ok != (err == nil) && pattern != "a{2" { // Go reads that brace as itself
			t.Errorf("%q: error %v, rg accepts it: %v", pattern, err, ok)
		}
	}
}

// Any pattern, any text: the lines are those of ripgrep.
func TestRandomPatternsAgreeWithRipgrep(t *testing.T) {
	needRipgrep(t)
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		pattern, fold := expression().Draw(rt, "pattern"), rapid.Bool().Draw(rt, "fold")
		if strings.Contains(pattern, `\A`) || strings.Contains(pattern, `\z`) {
			return // of the text for ripgrep, of the line here
		}
		if i := strings.Index(pattern, "$"); i >= 0 && strings.Contains(pattern[i:], "^") {
			return // ripgrep 13 does not find "$^" on an empty line
		}
		m, err := Compile(pattern, fold, false)
		if err != nil {
			return
		}
		for i := range 4 {
			text := strings.ReplaceAll(subject().Draw(rt, "text"), "\xff", "")
			if strings.Contains(strings.ToLower(pattern), `\b`) { // of ASCII here, of Unicode there
				text = strings.Map(func(r rune) rune {
					if r >= 0x80 {
						return 'n'
					}
					return r
				}, text)
			}
			tree(t, root, map[string]string{"f" + strconv.Itoa(i): text})
		}
		args := []string{"-n", "--with-filename", "--no-heading", "-e", pattern, "./"}
		if fold {
			args = append([]string{"-i"}, args...)
		}
		want, ok := ripgrep(t, root, args...)
		if !ok {
			return
		}
		if got := ours(t, GrepOptions{Root: root, Matcher: m, Mode: Content}); !slices.Equal(got, want) {
			rt.Fatalf("pattern %q (fold %v):\n%q\nwant\n%q", pattern, fold, got, want)
		}
	})
}

func TestGlobAgreesWithRipgrep(t *testing.T) {
	needRipgrep(t)
	root := sampleTree(t)
	for _, pattern := range []string{"**/*.go", "**/*.{go,py}", "/*", "sub/**", "**/[a-z]*.go", "**/.*", "*/*/*/*.tsx", "**"} {
		for _, hidden := range []bool{true, false} {
			for _, ignore := range []bool{true, false} {
				args := []string{"--files", "-g", "!.git/"}
				if hidden {
					args = append(args, "--hidden")
				}
				if !ignore {
					args = append(args, "--no-ignore")
				}
				want, ok := ripgrep(t, root, append(args, "./")...)
				if !ok {
					t.Fatal("rg refuses")
				}
				p, err := compilePattern(pattern)
				if err != nil {
					t.Fatal(err)
				}
				want = slices.DeleteFunc(want, func(name string) bool { return !p.match(name) })
				base, _ := SplitPattern(pattern)
				res, err := Glob(t.Context(), GlobOptions{Root: root, Pattern: pattern, Hidden: hidden, Ignore: ignore})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, path := range res.Paths {
					rel, err := filepath.Rel(root, path)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, filepath.ToSlash(rel))
				}
				slices.Sort(got)
				if base == "" || base == "/" {
					if !slices.Equal(got, want) {
						t.Errorf("%s (hidden %v, ignore %v): got %q, want %q", pattern, hidden, ignore, got, want)
					}
				} else if len(without(want, got)) > 0 { // a named directory shows at least as much
					t.Errorf("%s (hidden %v, ignore %v): lacks %q", pattern, hidden, ignore, without(want, got))
				}
			}
		}
	}
}
