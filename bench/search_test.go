package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/internal/search"
)

// corpora are the trees that are searched: Go's own sources, and a made one of
// many small files.
var corpora = []struct {
	name string
	make func(b *testing.B) string
}{
	{"goroot", func(b *testing.B) string {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			b.Skip("the go command is not there")
		}
		src := filepath.Join(strings.TrimSpace(string(out)), "src")
		if small() {
			src = filepath.Join(src, "net")
		}
		return src
	}},
	{"files200k", manyFiles},
}

// small reports whether the trees are to be small: the test that runs the
// commands of the documentation wants to know that they work, not how fast.
func small() bool { return os.Getenv("TURNWRIGHT_BENCH_SMALL") != "" }

// manyFiles makes a repository of 200,000 files in 4,000 directories, some of
// them ignored. It is removed at the end.
func manyFiles(b *testing.B) string {
	root := b.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		b.Fatal(err)
	}
	write(".gitignore", "*.log\n/out/\nnode_modules/\n**/tmp/*.bin\n!keep.log\n")
	line := "func (r *record%d) handle(ctx context.Context, name string) error { return r.next(name, %d) }\n"
	endings := []string{".go", ".go", ".ts", ".md", ".log"}
	dirs := 4000
	if small() {
		dirs = 20
	}
	for d := range dirs {
		dir := fmt.Sprintf("m%02d/p%02d", d/100, d%100)
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			b.Fatal(err)
		}
		if d%10 == 0 {
			write(filepath.Join(dir, ".gitignore"), "*.tmp\nbuild\n/f7.md\n")
		}
		for f := range 50 {
			text := strings.Repeat(fmt.Sprintf(line, f, d), 5+f%10)
			if d%97 == 0 && f == 3 {
				text += "// rareNeedle stands here\n"
			}
			write(fmt.Sprintf("%s/f%d%s", dir, f, endings[f%len(endings)]), text)
		}
	}
	return root
}

// BenchmarkSearch runs each search and ripgrep's in turn, in one process and as
// a process; it reports the fastest and the median time of both. A search that
// finds something else than ripgrep is a fault.
func BenchmarkSearch(b *testing.B) {
	if _, err := exec.LookPath("rg"); err != nil {
		b.Skip("ripgrep (rg) is not on PATH: nothing to compare with")
	}
	for _, corpus := range corpora {
		b.Run(corpus.name, func(b *testing.B) {
			root := corpus.make(b)
			for _, c := range []struct {
				name, pattern string
				fold          bool
				args          []string
				mode          search.Mode
			}{
				{"literal", "ReadMemStats", false, nil, search.Files},
				{"literal-rare", "rareNeedle", false, nil, search.Files},
				{"ignore-case", "readmemstats", true, []string{"-i"}, search.Files},
				{"regex", `[A-Z]\w+Error\b`, false, nil, search.Files},
				{"regex-inner-literal", `func \w+\(ctx context`, false, nil, search.Files},
				{"regex-without-literal", `[a-z]{3,}_[0-9]{2,}`, false, nil, search.Files},
				{"alternatives", `(?:foo|bar|baz|qux|quux)\d`, false, nil, search.Files},
				{"no-match", "zqxjkvw", false, nil, search.Files},
				{"count", "return", false, nil, search.Count},
			} {
				b.Run("grep/"+c.name, func(b *testing.B) {
					m, err := search.Compile(c.pattern, c.fold, false)
					if err != nil {
						b.Fatal(err)
					}
					flag := "-l"
					if c.mode == search.Count {
						flag = "-c"
					}
					args := append([]string{flag, "--no-config", "--hidden", "-g", "!.git", "-e", c.pattern, "./"}, c.args...)
					compare(b, root, args, func() int {
						res, err := search.Grep(context.Background(), search.GrepOptions{Root: root, Matcher: m, Mode: c.mode, Hidden: true, Ignore: true, Getenv: os.Getenv})
						if err != nil {
							b.Fatal(err)
						}
						return res.TotalFiles
					})
				})
			}
			for _, ignore := range []bool{false, true} {
				name, args := "glob/all-files", []string{"--files", "--no-config", "--hidden", "-g", "**/*.go", "-g", "!.git", "./"}
				if ignore {
					name = "glob/with-ignore"
				} else {
					args = append(args, "--no-ignore")
				}
				b.Run(name, func(b *testing.B) {
					compare(b, root, args, func() int {
						res, err := search.Glob(context.Background(), search.GlobOptions{Root: root, Pattern: "**/*.go", Hidden: true, Ignore: ignore, Limit: 100, Getenv: os.Getenv})
						if err != nil {
							b.Fatal(err)
						}
						return res.Total
					})
				})
			}
		})
	}
}

// compare runs both in turn, b.N times.
func compare(b *testing.B, root string, args []string, run func() int) {
	rg := func() int {
		cmd := exec.Command("rg", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 {
			b.Fatal(err)
		}
		return strings.Count(string(out), "\n")
	}
	if got, want := run(), rg(); got != want { // this also warms the caches
		b.Fatalf("%d files, ripgrep finds %d", got, want)
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		run()
		mid := time.Now()
		rg()
		ours, theirs = append(ours, mid.Sub(start)), append(theirs, time.Since(mid))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(ours[0]), "ms-best")
	b.ReportMetric(ms(theirs[0]), "rg-ms-best")
	b.ReportMetric(float64(ours[0])/float64(theirs[0]), "ratio-best")
	half := len(ours) / 2
	b.ReportMetric(ms(ours[half]), "ms-median")
	b.ReportMetric(ms(theirs[half]), "rg-ms-median")
	b.ReportMetric(float64(ours[half])/float64(theirs[half]), "ratio-median")
	runtime.GC()
}
