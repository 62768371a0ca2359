package search

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/turnwright/turnwright/internal/conform"
	"pgregory.net/rapid"
)

// tree writes files, whose names have slashes, below a directory.
func tree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// walked returns the files below root, relative and sorted.
func walked(t testing.TB, root string, getenv func(string) string) []string {
	t.Helper()
	res, err := Glob(t.Context(), GlobOptions{Root: root, Pattern: "**", Hidden: true, Ignore: true, Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, p := range res.Paths {
		rel, err := filepath.Rel(root, p)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.ToSlash(rel))
	}
	slices.Sort(names)
	return names
}

// git runs git without any configuration of the machine's.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}

// ignoreLines draws lines for a .gitignore out of pieces that meet in files of
// the tests.
func ignoreLines() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "b", "ab", "a.o", ".o", "d", "e", "*", "**", "?", "/", "/", "a**/", "b/a**", "[ab]", "[!a]", "[^b]", "[a-c]", "[[:alpha:]]", "[]a]", `\a`, `\*`, "***", ".", " ", `\ `, "[", "c d", "[a/b]", "#", `\#`,
	})
	line := rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "pieces"), "")
		if rapid.IntRange(0, 4).Draw(t, "negated") == 0 {
			s = "!" + s
		}
		return s + rapid.SampledFrom([]string{"", "", "", "/", " ", "\r"}).Draw(t, "end")
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 4).Draw(t, "lines"), "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "last")
	})
}

// Git itself says which files its ignore files leave over.
func TestIgnoreAgreesWithGit(t *testing.T) {
	needGit(t)
	root := t.TempDir()
	git(t, root, "init", "-q")
	files := map[string]string{}
	dirs := map[string]bool{"": true, "a/": true, "d/": true, "d/e/": true, "d/a/": true, "ab/": true, "ab/e/d/": true, "c d/": true}
	for dir := range dirs {
		for _, name := range []string{"a", "b", "ab", "a.o", "x.o", "c d", "*", "#", "a.txt"} {
			if _, isDir := dirs[dir+name+"/"]; !isDir {
				files[dir+name] = ""
			}
		}
	}
	tree(t, root, files)
	names := slices.Sorted(maps.Keys(files))
	rapid.Check(t, func(rt *rapid.T) {
		tree(t, root, map[string]string{
			".gitignore":        ignoreLines().Draw(rt, "root"),
			"d/.gitignore":      ignoreLines().Draw(rt, "d"),
			".git/info/exclude": ignoreLines().Draw(rt, "exclude"),
		})
		want := strings.Split(strings.TrimSuffix(git(t, root, "ls-files", "-z", "-o", "--exclude-standard"), "\x00"), "\x00")
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 5, 5).Draw(rt, "names") {
			if got, inRepo := GitIgnores(filepath.Join(root, filepath.FromSlash(name)), nil); !inRepo || got == slices.Contains(want, name) {
				rt.Fatalf("%q: ignored %v", name, got)
			}
		}
		if want[0] == "" {
			return // all ignored: a root that is named is searched all the same (T-100)
		}
		slices.Sort(want)
		if got := walked(t, root, nil); !slices.Equal(got, want) {
			rt.Fatalf("walk and git differ:\nonly walk: %q\nonly git: %q", without(got, want), without(want, got))
		}
	})
}

func without(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

func globPattern() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "b", "ab", "é", ".", "*", "**", "/**/", "?", "/", "/", "[ab]", "[a-c]", `\a`, `\*`, "{a,b}", "{a,b/c}", "{,a}", "{a,{b,c}}", "{*.a,b?}",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pieces"), "")
	})
}

// The doublestar library says what a pattern means. (But for [!a], which it
// lets fit a slash; git, the other witness, does not. And for "**/**", which is
// no other than "**" here: it lets a/** fit a, but not a/**/**.)
func TestPatternAgreesWithDoublestar(t *testing.T) {
	path := rapid.StringMatching(`[abcé.*]{1,3}(/[abcé.*]{1,3}){0,3}`)
	rapid.Check(t, func(rt *rapid.T) {
		text := globPattern().Draw(rt, "pattern")
		if strings.Contains("/"+text, "//") || strings.HasSuffix(text, "/") || strings.Contains("/"+text+"/", "/./") || strings.Contains(text, "..") || strings.Contains(text, "***") || strings.Contains(text, "*{") || strings.Contains(text, "}*") || emptySegment(text) {
			return // read more leniently here
		}
		p, err := compilePattern(text)
		if err != nil && strings.Contains(text, "{") && strings.Contains(err.Error(), `".." is possible`) {
			return // a choice makes two dots of it: .{,a}.
		}
		if err != nil {
			rt.Fatalf("%q: %v", text, err)
		}
		for range 20 {
			name := path.Draw(rt, "path")
			if strings.Contains("/"+name+"/", "/./") || strings.Contains("/"+name+"/", "/../") {
				continue // no name of a file
			}
			want, err := doublestar.Match(strings.ReplaceAll(strings.ReplaceAll(text, "**/**", "**"), "**/**", "**"), name)
			if err != nil {
				return
			}
			if got := p.match(name); got != want {
				rt.Fatalf("pattern %q, path %q: %v, doublestar says %v", text, name, got, want)
			}
			// A directory on the way to a path that fits must be entered.
			if want {
				for i := range name {
					if name[i] == '/' && !p.within(name[:i]) {
						rt.Fatalf("pattern %q fits %q, but %q is not entered", text, name, name[:i])
					}
				}
			}
		}
	})
}

// emptySegment reports whether braces make a segment empty or a dot.
func emptySegment(text string) bool {
	all, err := expandBraces(text)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(s string) bool {
		return slices.ContainsFunc(strings.Split(s, "/"), func(seg string) bool { return seg == "" || seg == "." })
	})
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"**/*.go", "a/{b,c}/*.[ch]", "[[:alpha:]]*", `\*`, "{a,{b,c}}", "[!]a-]", "a**b", "["} {
		f.Add(s, "a/b/x.c")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := compilePattern(text)
		if err != nil {
			return
		}
		got := p.match(path)
		for i := range path {
			if got && path[i] == '/' && i > 0 && !p.within(path[:i]) {
				t.Errorf("pattern %q fits %q, but %q is not entered", text, path, path[:i])
			}
		}
		// What a pattern of ordinary characters fits is known.
		if !strings.ContainsAny(text, `*?[]{}\`) && path != "" {
			var kept []string
			for seg := range strings.SplitSeq(text, "/") {
				if seg != "" && seg != "." {
					kept = append(kept, seg)
				}
			}
			if want := len(kept) > 0 && path == strings.Join(kept, "/"); got != want {
				t.Errorf("pattern %q, path %q: %v, want %v", text, path, got, want)
			}
		}
	})
}

func FuzzIgnore(f *testing.F) {
	f.Add("*.o\n!a.o\n/d/\nd/**/x\n", "d/a.o")
	f.Add("[a-\n\\", "a")
	f.Fuzz(func(t *testing.T, text, path string) {
		file := parseIgnore([]byte(text))
		if file == nil || path == "" || strings.HasSuffix(path, "/") {
			return
		}
		base := path[strings.LastIndexByte(path, '/')+1:]
		want := none // line by line, the last one that fits
		for i := range file.rules {
			r := &file.rules[i]
			if r.dirOnly {
				continue
			}
			if r.baseOnly && matchPath(r.segs, base, true) || !r.baseOnly && matchPath(r.segs, path, true) {
				if want = ignored; r.keep {
					want = kept
				}
			}
		}
		if got := file.match(path, base, false); got != want {
			t.Errorf("rules %q, path %q: %v, want %v", text, path, got, want)
		}
	})
}

func TestIgnoreSources(t *testing.T) {
	home := t.TempDir()
	getenv := func(k string) string { return map[string]string{"HOME": home}[k] }
	check := func(name, root string, files map[string]string, want ...string) {
		t.Helper()
		tree(t, root, files)
		got := slices.DeleteFunc(walked(t, root, getenv), func(n string) bool { return strings.HasPrefix(filepath.Base(n), ".") })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	check(".gitignore outside of a repository does not count", t.TempDir(), map[string]string{"a": "", ".gitignore": "a"}, "a")
	check(".ignore counts everywhere", t.TempDir(), map[string]string{"a": "", "b": "", ".ignore": "a"}, "b")
	check("the stronger kinds", t.TempDir(), map[string]string{
		".git/HEAD": "", "a": "", "b": "", "c": "", "d/a": "", ".gitignore": "a\nb\nc\n", "d/.gitignore": "!a\n", ".ignore": "!b\na\n", ".rgignore": "!c\n",
	}, "b", "c")
	check("info/exclude", t.TempDir(), map[string]string{".git/info/exclude": "a\nb\n", ".gitignore": "!b\n", "a": "", "b": ""}, "b")
	outer := t.TempDir()
	tree(t, outer, map[string]string{".git/HEAD": "", ".gitignore": "*.o\nouter\n", "x/y/f.o": "", "x/y/f.c": ""})
	check("the directories above count", filepath.Join(outer, "x", "y"), nil, "f.c")
	check("but not those of another repository", filepath.Join(outer, "inner"), map[string]string{".git/HEAD": "", "f.o": "", "sub/outer": ""}, "f.o", "sub/outer")
	check("a nested repository below the root", outer, nil, "inner/f.o", "inner/sub/outer", "x/y/f.c")
	main := t.TempDir()
	linked := t.TempDir()
	tree(t, main, map[string]string{".git/info/exclude": "a\n", ".git/worktrees/w/commondir": "../..\n"})
	check("a linked worktree", linked, map[string]string{".git": "gitdir: " + filepath.Join(main, ".git", "worktrees", "w") + "\n", "a": "", "b": ""}, "b")

	tree(t, home, map[string]string{".config/git/ignore": "a\n"})
	repo := t.TempDir()
	check("the user's excludes", repo, map[string]string{".git/HEAD": "", "a": "", "b": "", "sub/a": ""}, "b")
	tree(t, home, map[string]string{".gitconfig": "[user]\n\texcludesfile = wrong\n[core] # mine\n\tExcludesFile = \"~/my excludes\"\n", "my excludes": "b\n"})
	check("core.excludesFile", repo, nil, "a", "sub/a")
}

func TestBracesAreBounded(t *testing.T) {
	if _, err := compilePattern(strings.Repeat("{a,b}", 12)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("error %v", err)
	}
	if p, err := compilePattern(strings.Repeat("{a,b}", 9)); err != nil || !p.match("ababababa") || p.match("abababab") {
		t.Errorf("error %v", err)
	}
}

// A list of what counts ("*" and exceptions) hides no directory whole, so it is
// heeded in a root that is named.
func TestIgnoreAllButSome(t *testing.T) {
	conform.Covers(t, "T-100")
	needGit(t)
	root := t.TempDir()
	git(t, root, "init", "-q")
	tree(t, root, map[string]string{".gitignore": "*\n!keep.txt\n", "keep.txt": "", "other.txt": "", "d/keep.txt": ""})
	if got := walked(t, root, nil); !slices.Equal(got, []string{"keep.txt"}) {
		t.Errorf("found %q", got)
	}
}
