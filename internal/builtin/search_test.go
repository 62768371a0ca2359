package builtin

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
	"time"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

func (s *session) glob(input in) (text string, out globOutput) {
	s.t.Helper()
	r, err := s.call("Glob", input)
	if err != nil {
		s.t.Fatalf("Glob %v: %v", input, err)
	}
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		s.t.Fatal(err)
	}
	return r.Content[0].Text(), out
}

func (s *session) grep(input in) (text string, out grepOutput) {
	s.t.Helper()
	r, err := s.call("Grep", input)
	if err != nil {
		s.t.Fatalf("Grep %v: %v", input, err)
	}
	if r.IsError {
		s.t.Fatalf("Grep %v: error result", input)
	}
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		s.t.Fatal(err)
	}
	return r.Content[0].Text(), out
}

// aged writes files, the first the newest.
func (s *session) aged(files ...[2]string) {
	s.t.Helper()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, f := range files {
		path := s.write(f[0], f[1])
		if err := os.Chtimes(path, at, at.Add(-time.Duration(i)*time.Hour)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// slashed returns the names with slashes, for comparing on every system.
func slashed(names []string) string { return filepath.ToSlash(strings.Join(names, " ")) }

func TestGlobPatterns(t *testing.T) {
	conform.Covers(t, "T-89", "T-91", "T-92", "B-096")
	s := newSession(t)
	if err := os.MkdirAll(s.path(".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.aged([2]string{"a.js", ""}, [2]string{"src/b.ts", ""}, [2]string{"src/deep/c.ts", ""}, [2]string{"src/d.css", ""},
		[2]string{"dist/a.js", ""}, [2]string{".hidden/e.ts", ""}, [2]string{".env", ""}, [2]string{".git/config.ts", ""}, [2]string{".gitignore", "dist/\n"})
	for pattern, want := range map[string]string{
		"*.js":               "a.js",
		"**/*.js":            "a.js dist/a.js",
		"**/a.js":            "a.js dist/a.js",
		"dist/a.js":          "dist/a.js",
		"dist/**":            "dist/a.js",
		"src/*.{ts,css}":     "src/b.ts src/d.css",
		"**/*.ts":            "src/b.ts src/deep/c.ts .hidden/e.ts",
		"src/**/*.ts":        "src/b.ts src/deep/c.ts",
		"{src,dist}/*.?s":    "src/b.ts dist/a.js",
		"src/[bd].*":         "src/b.ts src/d.css",
		"*":                  "a.js .env .gitignore",
		".git/*.ts":          ".git/config.ts",
		"**/.git/*.ts":       ".git/config.ts",
		"./src/b.ts":         "src/b.ts",
		"src/deep/../b.ts":   "src/b.ts",
		"nothing/**/here.ts": "",
		s.path("src/*.ts"):   "src/b.ts",
		"~/src/*.ts":         "src/b.ts",
	} {
		text, out := s.glob(in{"pattern": pattern})
		if got := slashed(out.Filenames); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
		if out.NumFiles != len(out.Filenames) || out.TotalMatches != out.NumFiles || !out.CountIsComplete || out.Truncated || out.DurationMs < 0 {
			t.Errorf("%s: output %+v", pattern, out)
		}
		if want == "" && !strings.HasPrefix(text, "No files found") || want != "" && filepath.ToSlash(text) != strings.ReplaceAll(want, " ", "\n") {
			t.Errorf("%s: text %q", pattern, text)
		}
	}
	if _, out := s.glob(in{"pattern": "*.ts", "path": "src"}); slashed(out.Filenames) != "src/b.ts" {
		t.Errorf("path: %q", out.Filenames)
	}
	if text, _ := s.glob(in{"pattern": "*.css"}); !strings.Contains(text, "**/*.css") {
		t.Errorf("no hint in %q", text)
	}
}

func TestGlobIgnoreAndHidden(t *testing.T) {
	conform.Covers(t, "T-92", "B-096")
	s := newSession(t)
	if err := os.MkdirAll(s.path(".git/info"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.aged([2]string{"a.js", ""}, [2]string{"dist/a.js", ""}, [2]string{".h/a.js", ""})
	s.write(".gitignore", "dist/\n")
	s.vars["CLAUDE_CODE_GLOB_NO_IGNORE"] = "false"
	text, out := s.glob(in{"pattern": "**/a.js"})
	if got := slashed(out.Filenames); got != "a.js .h/a.js" {
		t.Errorf("with ignore: %q", got)
	}
	if !strings.Contains(text, "ignores were left out") {
		t.Errorf("the text does not say that files were left out: %q", text)
	}
	for _, exact := range []string{"dist/a.js", "dist/**"} {
		if _, out := s.glob(in{"pattern": exact}); slashed(out.Filenames) != "dist/a.js" {
			t.Errorf("%s: %q", exact, out.Filenames)
		}
	}
	s.vars["CLAUDE_CODE_GLOB_HIDDEN"] = "false"
	if _, out := s.glob(in{"pattern": "**/a.js"}); slashed(out.Filenames) != "a.js" {
		t.Errorf("without hidden: %q", out.Filenames)
	}
	for _, named := range []string{".h/*.js", "**/.h/a.js"} {
		if _, out := s.glob(in{"pattern": named}); slashed(out.Filenames) != ".h/a.js" {
			t.Errorf("%s: %q", named, out.Filenames)
		}
	}
}

func TestGlobCapAndOrder(t *testing.T) {
	conform.Covers(t, "T-90", "T-96")
	s := newSession(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 250 {
		path := s.write(fmt.Sprintf("d%d/f%03d.txt", i%3, i), "")
		if err := os.Chtimes(path, at, at.Add(time.Duration(i/5)*time.Second)); err != nil { // groups of equal times
			t.Fatal(err)
		}
	}
	text, out := s.glob(in{"pattern": "**/*.txt"})
	if out.NumFiles != 100 || len(out.Filenames) != 100 || !out.Truncated || out.TotalMatches != 250 || !out.CountIsComplete {
		t.Fatalf("output %+v", out)
	}
	if !strings.Contains(text, "newest 100 of 250 files") {
		t.Errorf("text ends %q", text[len(text)-100:])
	}
	var want []string
	for group := 49; group >= 30; group-- {
		var names []string
		for i := group * 5; i < group*5+5; i++ {
			names = append(names, fmt.Sprintf("d%d/f%03d.txt", i%3, i))
		}
		slices.Sort(names)
		want = append(want, names...)
	}
	if got := slashed(out.Filenames); got != strings.Join(want, " ") {
		t.Errorf("order %s\nwant %s", got, strings.Join(want, " "))
	}
}

func TestGlobTimeLimit(t *testing.T) {
	conform.Covers(t, "T-93", "T-96")
	s := newSession(t)
	s.write("a.txt", "")
	var asked time.Duration
	tl, _, _ := s.tools.Get("Glob")
	g := tl.(*Glob)
	g.limit = func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
		asked = d
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errGlobTime) // the time is up at once
		return ctx, func() {}
	}
	text, out := s.glob(in{"pattern": "**"})
	if !out.Truncated || out.CountIsComplete || !strings.Contains(text, "time limit of ") {
		t.Errorf("output %+v, text %q", out, text)
	}
	usual := 20 * time.Second
	if onWSL() {
		usual = time.Minute
	}
	for value, want := range map[string]time.Duration{"": usual, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "0": usual, "-1": usual, "soon": usual} {
		s.vars["CLAUDE_CODE_GLOB_TIMEOUT_SECONDS"] = value
		if s.glob(in{"pattern": "**"}); asked != want {
			t.Errorf("%q: limit %v, want %v", value, asked, want)
		}
	}
	// A cancelled call is not a short result.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	raw, _ := json.Marshal(in{"pattern": "**"})
	if _, err := NewGlob().Call(ctx, &tool.Call{Input: raw, Env: s.env}); err == nil {
		t.Error("no error from a cancelled call")
	}
}

func TestGlobErrors(t *testing.T) {
	conform.Covers(t, "T-94")
	s := newSession(t)
	s.write("file.txt", "")
	s.fails("Glob", in{"pattern": "a\x00b"}, "pattern", "NUL")
	s.fails("Glob", in{"pattern": "*", "path": "a\x00b"}, "path", "NUL")
	s.fails("Glob", in{"pattern": ""}, "pattern")
	s.fails("Glob", in{"pattern": "*", "path": "flie.txt"}, "path", "does not exist", "file.txt")
	s.fails("Glob", in{"pattern": "*", "path": "file.txt"}, "is a file, not a directory")
	s.fails("Glob", in{"pattern": "a[b"}, "pattern", "unclosed character class")
	s.fails("Glob", in{"pattern": "{a,b"}, "pattern", "unclosed alternate group")
	s.fails("Glob", in{"pattern": "*/../x"}, "pattern", `".."`)
	s.fails("Grep", in{"pattern": ""}, "pattern")
	s.fails("Grep", in{"pattern": "a\x00b"}, "pattern", "NUL")
	s.fails("Grep", in{"pattern": "a", "path": "a\x00b"}, "path", "NUL")
	s.fails("Grep", in{"pattern": "a", "path": "flie.txt"}, "path", "does not exist", "file.txt")
}

// What a search reads is judged before it runs.
func TestSearchAccesses(t *testing.T) {
	conform.Covers(t, "T-31", "T-58", "P-97")
	s := newSession(t)
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "x.txt"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.write("sub/a.txt", "")
	linked := os.Symlink(outside, s.path("out")) == nil
	check := func(name string, input in, want string) {
		t.Helper()
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = s.tools.Prepare(s.env, name, raw); err != nil {
			t.Fatal(err)
		}
		tl, _, _ := s.tools.Get(name)
		got, err := tl.(tool.Accesser).Accesses(raw)
		if err != nil || len(got) != 1 || got[0].Kind != permission.Read || got[0].Target != want {
			t.Errorf("%s %v: accesses %+v, %v; want a read of %s", name, input, got, err, want)
		}
		if tr := tl.Spec().Traits; !tr.ReadOnly || !tr.Concurrent || !tr.Repeatable {
			t.Errorf("%s has traits %+v", name, tr)
		}
		p := permission.Policy{Mode: permission.ModeDefault, Dirs: []string{s.env.Dir}}
		inside := want == s.env.Dir || strings.HasPrefix(want, s.env.Dir+string(filepath.Separator))
		if d := p.Decide(permission.Request{Tool: name, ReadOnly: true, Accesses: got}); (d.Behavior == permission.Allow) != inside {
			t.Errorf("%s %v: decision %+v", name, input, d)
		}
	}
	check("Glob", in{"pattern": "**/*.go"}, s.env.Dir)
	check("Glob", in{"pattern": "sub/*.go"}, s.path("sub"))
	check("Glob", in{"pattern": "*.go", "path": "sub"}, s.path("sub"))
	check("Glob", in{"pattern": "../*.go"}, filepath.Dir(s.env.Dir))
	check("Glob", in{"pattern": "sub/../../*.go"}, filepath.Dir(s.env.Dir))
	check("Glob", in{"pattern": filepath.Join(outside, "*.go")}, outside)
	check("Grep", in{"pattern": "x"}, s.env.Dir)
	check("Grep", in{"pattern": "x", "path": "sub"}, s.path("sub"))
	check("Grep", in{"pattern": "x", "path": outside}, outside)
	check("Grep", in{"pattern": "x", "path": "~"}, s.env.Dir)
	if linked {
		check("Glob", in{"pattern": "out/*"}, outside)
		check("Grep", in{"pattern": "x", "path": "out"}, outside)
	}
}

func TestSearchKeepsDeniedFilesSecret(t *testing.T) {
	conform.Covers(t, "T-95", "B-055")
	s := newSession(t)
	s.write("a.txt", "token here\n")
	s.write(".env", "token secret\n")
	s.write("sub/.env", "token secret\n")
	s.env.ReadDenied = func(path string) bool { return filepath.Base(path) == ".env" }
	for _, mode := range []string{"content", "files_with_matches", "count"} {
		text, out := s.grep(in{"pattern": "token", "output_mode": mode})
		raw, _ := json.Marshal(out)
		if strings.Contains(text+string(raw), ".env") || strings.Contains(text+string(raw), "secret") || out.TotalFiles != 1 {
			t.Errorf("%s: %s\n%s", mode, text, raw)
		}
	}
	if text, out := s.glob(in{"pattern": "**/*"}); strings.Contains(text, ".env") || out.TotalMatches != 1 {
		t.Errorf("Glob: %s %+v", text, out)
	}
	if _, out := s.glob(in{"pattern": "sub/.env"}); out.TotalMatches != 0 {
		t.Errorf("Glob of the name itself: %+v", out)
	}
	s.fails("Grep", in{"pattern": "token", "path": ".env"}, "Read deny rule")
	if os.Symlink("sub", s.path("link")) == nil && os.Symlink(filepath.Join("sub", ".env"), s.path("innocent")) == nil {
		s.env.ReadDenied = func(path string) bool { return path == s.path("sub/.env") }
		if text, _ := s.grep(in{"pattern": "token", "path": "link", "output_mode": "content"}); strings.Contains(text, "secret") {
			t.Errorf("through a link: %s", text)
		}
		if _, out := s.glob(in{"pattern": "innocent"}); out.TotalMatches != 0 {
			t.Errorf("a link to it: %+v", out)
		}
	}
}

func TestGrepModes(t *testing.T) {
	conform.Covers(t, "T-97", "T-101", "T-103", "T-104", "T-105", "T-106")
	s := newSession(t)
	s.aged([2]string{"new.go", "package a\n\nfunc Alpha() {}\nfunc beta() {}\n"}, [2]string{"sub/old.py", "def alpha(): pass\r\n# ALPHA\n"}, [2]string{"none.txt", "nothing\n"})
	sep := string(filepath.Separator)
	old := "sub" + sep + "old.py"
	for _, test := range []struct {
		input in
		text  string
		out   grepOutput
	}{
		{
			in{"pattern": "alpha", "-i": true},
			"Found 2 files\nnew.go\n" + old,
			grepOutput{Mode: "files_with_matches", NumFiles: 2, Filenames: []string{"new.go", old}, TotalFiles: 2},
		},
		{
			in{"pattern": "alpha", "-i": true, "output_mode": "content"},
			"new.go:3:func Alpha() {}\n" + old + ":1:def alpha(): pass\n" + old + ":2:# ALPHA",
			grepOutput{Mode: "content", NumFiles: 2, Filenames: []string{"new.go", old}, Content: "=", NumLines: 3, NumMatches: 3, TotalFiles: 2, TotalLines: 3},
		},
		{
			in{"pattern": "alpha", "-i": "true", "output_mode": "content", "-n": false, "glob": "*.py"},
			old + ":def alpha(): pass\n" + old + ":# ALPHA",
			grepOutput{Mode: "content", NumFiles: 1, Filenames: []string{old}, Content: "=", NumLines: 2, NumMatches: 2, TotalFiles: 1, TotalLines: 2},
		},
		{
			in{"pattern": `\w+\(`, "-o": true, "output_mode": "content", "type": "go"},
			"new.go:3:Alpha(\nnew.go:4:beta(",
			grepOutput{Mode: "content", NumFiles: 1, Filenames: []string{"new.go"}, Content: "=", NumLines: 2, NumMatches: 2, TotalFiles: 1, TotalLines: 2},
		},
		{
			in{"pattern": "alpha", "-i": true, "output_mode": "count"},
			"new.go:1\n" + old + ":2\n\nFound 3 matches in 2 files.",
			grepOutput{Mode: "count", NumFiles: 2, Filenames: []string{"new.go", old}, Content: "new.go:1\n" + old + ":2", NumMatches: 3, TotalFiles: 2},
		},
		{
			in{"pattern": "alpha", "-i": true, "output_mode": "count", "head_limit": 1, "offset": 1},
			old + ":2\n\nFound 3 matches in 2 files.",
			grepOutput{Mode: "count", NumFiles: 1, Filenames: []string{old}, Content: old + ":2", NumMatches: 3, TotalFiles: 2, AppliedOffset: 1},
		},
		{
			in{"pattern": "func", "output_mode": "content", "-B": 1, "path": "new.go"},
			"new.go-2-\nnew.go:3:func Alpha() {}\nnew.go:4:func beta() {}",
			grepOutput{Mode: "content", NumFiles: 1, Filenames: []string{"new.go"}, Content: "=", NumLines: 3, NumMatches: 2, TotalFiles: 1},
		},
		{
			in{"pattern": `a\n\nfunc`, "output_mode": "content", "multiline": true},
			"new.go:1:package a\nnew.go:2:\nnew.go:3:func Alpha() {}",
			grepOutput{Mode: "content", NumFiles: 1, Filenames: []string{"new.go"}, Content: "=", NumLines: 3, NumMatches: 1, TotalFiles: 1},
		},
		{in{"pattern": "zzz"}, "No files found", grepOutput{Mode: "files_with_matches", Filenames: []string{}}},
		{in{"pattern": "zzz", "output_mode": "content"}, "No matches found", grepOutput{Mode: "content", Filenames: []string{}}},
		{in{"pattern": "zzz", "output_mode": "count"}, "No matches found", grepOutput{Mode: "count", Filenames: []string{}}},
	} {
		text, out := s.grep(test.input)
		if text != test.text {
			t.Errorf("%v: text\n%s\nwant\n%s", test.input, text, test.text)
		}
		if test.out.Content == "=" {
			test.out.Content = test.text
		}
		if got, want := fmt.Sprintf("%+v", out), fmt.Sprintf("%+v", test.out); got != want {
			t.Errorf("%v: output\n%s\nwant\n%s", test.input, got, want)
		}
	}
}

func TestGrepPages(t *testing.T) {
	conform.Covers(t, "T-101", "T-102", "T-103", "T-105")
	s := newSession(t)
	s.aged([2]string{"a.txt", strings.Repeat("match\n", 300)}, [2]string{"b.txt", strings.Repeat("match\n", 10)})
	lines := func(input in) (got []string, text string, out grepOutput) {
		input["pattern"], input["output_mode"] = "match", "content"
		text, out = s.grep(input)
		body, _, _ := strings.Cut(text, "\n\n[")
		return strings.Split(body, "\n"), text, out
	}
	got, text, out := lines(in{})
	if len(got) != 250 || out.NumLines != 250 || out.AppliedLimit != 250 || out.TotalLines != 310 || out.NumMatches != 310 || !strings.Contains(text, "offset 250") {
		t.Errorf("default: %d lines, %+v", len(got), out)
	}
	if got, _, out = lines(in{"offset": 250}); len(got) != 60 || got[0] != "a.txt:251:match" || got[59] != "b.txt:10:match" || out.AppliedLimit != 0 || out.AppliedOffset != 250 {
		t.Errorf("second page: %d lines from %q, %+v", len(got), got[0], out)
	}
	if got, _, out = lines(in{"head_limit": 0}); len(got) != 310 || out.AppliedLimit != 0 {
		t.Errorf("all: %d lines", len(got))
	}
	if got, _, _ = lines(in{"head_limit": 2, "offset": 305}); strings.Join(got, " ") != "b.txt:6:match b.txt:7:match" {
		t.Errorf("part of the second file: %q", got)
	}
	for _, offset := range []int{310, 311, 100_000} {
		if _, text, _ = lines(in{"offset": offset}); text != "No entries at this offset" {
			t.Errorf("offset %d: %q", offset, text)
		}
	}
	if text, out := s.grep(in{"pattern": "match", "head_limit": 1}); out.AppliedLimit != 1 || out.TotalFiles != 2 || out.NumFiles != 1 || !strings.Contains(text, "Found 2 files\na.txt") {
		t.Errorf("files: %q %+v", text, out)
	}
}

func TestGrepLongLines(t *testing.T) {
	conform.Covers(t, "T-105", "B-104")
	s := newSession(t)
	s.write("f.txt", strings.Repeat("é", 2000)+"NEEDLE"+strings.Repeat("x", 3000)+"\nshort NEEDLE\n")
	text, _ := s.grep(in{"pattern": "NEEDLE", "output_mode": "content"})
	first, second, _ := strings.Cut(text, "\n")
	if second != "f.txt:2:short NEEDLE" {
		t.Errorf("second line %q", second)
	}
	body := strings.TrimPrefix(first, "f.txt:1:")
	if !strings.HasPrefix(body, "[1753 characters] éé") || !strings.Contains(body, "éNEEDLEx") || !strings.HasSuffix(body, "x [2753 characters]") {
		t.Errorf("long line %q", body)
	}
	if n := strings.Count(body, "é") + strings.Count(body, "x") + len("NEEDLE"); n != 500 {
		t.Errorf("%d characters shown", n)
	}
	// One endless line, larger than what is searched of a line.
	s.write("huge.txt", strings.Repeat("a", 9<<20)+"\nNEEDLE after it\n")
	if text, _ := s.grep(in{"pattern": "NEEDLE", "output_mode": "content", "path": "huge.txt"}); text != "huge.txt:2:NEEDLE after it" {
		t.Errorf("after a huge line: %q", text)
	}
	if text, _ := s.grep(in{"pattern": "a+$", "output_mode": "content", "path": "huge.txt"}); len(text) > 600 || !strings.HasPrefix(text, "huge.txt:1:aaa") {
		t.Errorf("in a huge line: %.100q, %d bytes", text, len(text))
	}
}

func TestGrepLargeResultGoesToAFile(t *testing.T) {
	s := newSession(t)
	s.write("f.txt", strings.Repeat("a matching line of some length, again and again\n", 5000))
	text, out := s.grep(in{"pattern": "matching", "output_mode": "content", "head_limit": 0})
	if len(text) > grepInline+500 || !strings.Contains(text, "is saved in") || len(s.blobs) != 1 || len(out.Content) > grepInline {
		t.Fatalf("%d bytes of text, %d blobs, ends %q", len(text), len(s.blobs), text[len(text)-200:])
	}
	for _, blob := range s.blobs {
		if n := strings.Count(string(blob), "\n") + 1; n != 5000 {
			t.Errorf("%d lines saved", n)
		}
	}
}

func TestGrepFilters(t *testing.T) {
	conform.Covers(t, "T-99", "T-104", "B-098")
	s := newSession(t)
	s.aged([2]string{"a.nix", "hit\n"}, [2]string{"d/b.nix", "hit\n"}, [2]string{"d/c.txt", "hit\n"}, [2]string{"Makefile", "hit\n"})
	for glob, want := range map[string]string{
		"*.nix": "a.nix d/b.nix", "**/*.nix": "a.nix d/b.nix", "d/**": "d/b.nix d/c.txt", "d/": "d/b.nix d/c.txt", "*.{nix,txt}": "a.nix d/b.nix d/c.txt",
		"!*.nix": "d/c.txt Makefile", "*.nix,*.txt": "a.nix d/b.nix d/c.txt", "*.nix *.txt": "a.nix d/b.nix d/c.txt", "/a*": "a.nix", "!d": "a.nix Makefile", "*.nix !d/**": "a.nix",
	} {
		if _, out := s.grep(in{"pattern": "hit", "glob": glob}); slashed(out.Filenames) != want {
			t.Errorf("%s: %q, want %q", glob, slashed(out.Filenames), want)
		}
	}
	for typ, want := range map[string]string{"make": "Makefile", "txt": "d/c.txt", "nix": "a.nix d/b.nix"} {
		if _, out := s.grep(in{"pattern": "hit", "type": typ}); slashed(out.Filenames) != want {
			t.Errorf("type %s: %q, want %q", typ, slashed(out.Filenames), want)
		}
	}
	// A filter that no file fits is told from no hits.
	text, _ := s.grep(in{"pattern": "hit", "glob": "*.zig"})
	if !strings.Contains(text, "No files found") || !strings.Contains(text, `none fits glob "*.zig"`) {
		t.Errorf("no file fits: %q", text)
	}
	if text, _ := s.grep(in{"pattern": "miss", "glob": "*.nix"}); text != "No files found" {
		t.Errorf("no hits: %q", text)
	}
	s.fails("Grep", in{"pattern": "x", "type": "klingon"}, "type", "klingon")
	s.fails("Grep", in{"pattern": "x", "type": "rs"}, "rs", "rust")
	s.fails("Grep", in{"pattern": "x", "glob": "a[b"}, "glob", "unclosed character class")
	s.fails("Grep", in{"pattern": "x", "glob": "{a"}, "glob", "unclosed alternate group")
	s.fails("Grep", in{"pattern": "a(b"}, "pattern", "regex parse error", "missing closing )")
	s.fails("Grep", in{"pattern": "(?=a)b"}, "pattern", "look-around")
	s.fails("Grep", in{"pattern": `a\nb`}, "pattern", "multiline")
	s.fails("Grep", in{"pattern": `\<word`}, "pattern", `\b`)
	s.fails("Grep", in{"pattern": "x", "output_mode": "lines"}, "output_mode")
	s.fails("Grep", in{"pattern": "x", "-A": -1}, "-A")
}

func TestGrepIgnoredAndHidden(t *testing.T) {
	conform.Covers(t, "T-100", "B-094")
	s := newSession(t)
	if err := os.MkdirAll(s.path(".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.aged([2]string{"a.txt", "hit\n"}, [2]string{"dist/b.txt", "hit\n"}, [2]string{"dist/sub/c.txt", "hit\n"}, [2]string{".claude/hooks/h.sh", "hit\n"},
		[2]string{".git/HEAD", "hit\n"}, [2]string{"all/x.txt", "hit\n"}, [2]string{"all/.gitignore", "*\n"}, [2]string{"logs/y.log", "hit\n"})
	s.write(".gitignore", "dist/\nlogs/**\n")
	for _, test := range []struct{ path, want string }{
		{"", "a.txt .claude/hooks/h.sh"},
		{"dist", "dist/b.txt dist/sub/c.txt"},
		{"dist/sub", "dist/sub/c.txt"},
		{"dist/b.txt", "dist/b.txt"},
		{".claude/hooks", ".claude/hooks/h.sh"},
		{".claude", ".claude/hooks/h.sh"},
		{"all", "all/x.txt"},
		{"logs", "logs/y.log"},
		{"logs/y.log", "logs/y.log"},
		{".git", ".git/HEAD"},
	} {
		input := in{"pattern": "hit"}
		if test.path != "" {
			input["path"] = test.path
		}
		if _, out := s.grep(input); slashed(out.Filenames) != test.want {
			t.Errorf("path %q: %q, want %q", test.path, slashed(out.Filenames), test.want)
		}
	}
}

func TestGrepBinaryAndEncodings(t *testing.T) {
	s := newSession(t)
	s.write("bin", "hit\x00hit\n")
	s.write("utf16.txt", "\xFF\xFEh\x00i\x00t\x00\n\x00")
	s.write("bom.txt", "\uFEFFhit\n")
	s.write("latin.txt", "caf\xe9 hit\n")
	_, out := s.grep(in{"pattern": "^hit|hit$"})
	names := strings.Fields(slashed(out.Filenames))
	if slices.Sort(names); strings.Join(names, " ") != "bom.txt latin.txt utf16.txt" {
		t.Errorf("found in %q", names)
	}
	if text, _ := s.grep(in{"pattern": "hit", "output_mode": "content", "path": "latin.txt"}); text != "latin.txt:1:caf\uFFFD hit" {
		t.Errorf("invalid UTF-8: %q", text)
	}
	if text, _ := s.grep(in{"pattern": "hit", "output_mode": "content", "path": "bin"}); text != "bin: binary file matches" {
		t.Errorf("a binary file named in path: %q", text)
	}
}

func TestSearchUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("permissions do not stop this user")
	}
	s := newSession(t)
	s.write("a.txt", "hit")
	s.write("closed/b.txt", "hit")
	if err := os.Chmod(s.path("closed"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(s.path("closed"), 0o755) })
	for name, want := range map[string]string{"Grep": "hit", "Glob": "**"} {
		if text := s.text(name, in{"pattern": want}); !strings.Contains(text, "a.txt") || !strings.Contains(text, "1 file or directory could not be read") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
