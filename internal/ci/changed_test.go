package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// repository makes a git repository in a temporary directory.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	// The settings of the person who runs the test must not matter.
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(root, "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	gitIn(t, root, "init", "-q", "-b", "main")
	return root
}

func gitIn(t *testing.T, root string, args ...string) string {
	t.Helper()
	out, err := git(root, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func commit(t *testing.T, root, message string) string {
	t.Helper()
	gitIn(t, root, "add", "-A")
	gitIn(t, root, "commit", "-q", "--allow-empty", "-m", message)
	return gitIn(t, root, "rev-parse", "HEAD")
}

// write puts files into root; a file with the single line "(deleted)" is removed.
func write(t *testing.T, root string, files []txtar.File) {
	t.Helper()
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.Name))
		if string(f.Data) == "(deleted)\n" {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChangedTests runs the scenarios of testdata: files before and after a
// change, and the line that the change is expected to give for each package.
func TestChangedTests(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var before, after []txtar.File
			want := ""
			for _, f := range archive.Files {
				stage, rest, _ := strings.Cut(f.Name, "/")
				switch stage {
				case "before":
					before = append(before, txtar.File{Name: rest, Data: f.Data})
				case "after":
					after = append(after, txtar.File{Name: rest, Data: f.Data})
				case "want":
					want = string(f.Data)
				default:
					t.Fatalf("file %s is neither before/, after/ nor want", f.Name)
				}
			}
			root := repository(t)
			write(t, root, before)
			base := commit(t, root, "before")
			write(t, root, after)
			check := func(when string) {
				got, err := changedTests(root, base)
				if err != nil {
					t.Fatal(err)
				}
				var lines strings.Builder
				for _, s := range got {
					fmt.Fprintf(&lines, "%s %s %s\n", s.module, s.pkg, strings.Join(s.tests, " "))
				}
				if lines.String() != want {
					t.Errorf("%s:\n%swant:\n%s", when, &lines, want)
				}
			}
			check("not committed")
			commit(t, root, "after")
			check("committed")
		})
	}
}

func TestBaseCommit(t *testing.T) {
	expect := func(t *testing.T, root, want string) {
		t.Helper()
		if got, err := baseCommit(root); err != nil || got != want {
			t.Errorf("base %q, %v, want %q", got, err, want)
		}
	}
	const empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

	t.Run("no commit yet", func(t *testing.T) {
		expect(t, repository(t), empty)
	})
	t.Run("short history on main", func(t *testing.T) {
		root := repository(t)
		commit(t, root, "one")
		commit(t, root, "two")
		expect(t, root, empty)
	})
	t.Run("long history on main", func(t *testing.T) {
		root := repository(t)
		var ids []string
		for i := range 25 {
			ids = append(ids, commit(t, root, fmt.Sprint(i)))
		}
		expect(t, root, ids[len(ids)-21])
	})
	t.Run("branch, and main went on", func(t *testing.T) {
		root := repository(t)
		left := commit(t, root, "one")
		gitIn(t, root, "checkout", "-q", "-b", "work")
		commit(t, root, "work")
		gitIn(t, root, "checkout", "-q", "main")
		commit(t, root, "two")
		gitIn(t, root, "checkout", "-q", "work")
		expect(t, root, left)
	})
	t.Run("detached clone of a branch", func(t *testing.T) {
		root := repository(t)
		left := commit(t, root, "one")
		gitIn(t, root, "checkout", "-q", "-b", "work")
		tip := commit(t, root, "work")
		clone := filepath.Join(t.TempDir(), "clone")
		gitIn(t, root, "clone", "-q", root, clone)
		gitIn(t, clone, "checkout", "-q", "--detach", tip)
		expect(t, clone, left)
	})
	t.Run("single branch, depth one", func(t *testing.T) {
		root := repository(t)
		commit(t, root, "one")
		gitIn(t, root, "checkout", "-q", "-b", "work")
		commit(t, root, "work")
		clone := filepath.Join(t.TempDir(), "clone")
		gitIn(t, root, "clone", "-q", "--depth=1", "--single-branch", "--branch=work", "file://"+filepath.ToSlash(root), clone)
		expect(t, clone, empty)
	})
}

func TestTouches(t *testing.T) {
	for _, tc := range []struct {
		span     lineSpan
		from, to int
		want     bool
	}{
		{lineSpan{5, 7}, 1, 4, false},
		{lineSpan{5, 7}, 1, 5, true},
		{lineSpan{5, 7}, 7, 9, true},
		{lineSpan{5, 7}, 8, 9, false},
		{lineSpan{5, 7}, 6, 6, true},
		{lineSpan{5, 4}, 1, 4, false}, // deleted right behind it
		{lineSpan{5, 4}, 5, 9, false}, // deleted right before it
		{lineSpan{5, 4}, 4, 5, true},  // deleted inside
		{lineSpan{1, 0}, 1, 5, false}, // deleted at the start of the file
	} {
		if got := tc.span.touches(tc.from, tc.to); got != tc.want {
			t.Errorf("%v touches %d to %d: %v, want %v", tc.span, tc.from, tc.to, got, tc.want)
		}
	}
}

func TestParseDiff(t *testing.T) {
	diff := strings.Join([]string{
		"diff --git a/a_test.go b/a_test.go",
		"--- a/a_test.go", "+++ b/a_test.go",
		"@@ -1 +1,2 @@ func", "-old", "+++ b/not_a_header_test.go", "+new",
		"@@ -9,2 +10,0 @@", "-x", "-y",
		`\ No newline at end of file`,
		"diff --git a/gone_test.go b/gone_test.go", "deleted file mode 100644",
		"--- a/gone_test.go", "+++ /dev/null", "@@ -1 +0,0 @@", "-x",
		"diff --git a/p/testdata/b.bin b/p/testdata/b.bin", "index 1..2",
		"Binary files a/p/testdata/b.bin and b/p/testdata/b.bin differ",
		"diff --git a/p/testdata/gone b/p/testdata/gone", "deleted file mode 100644",
		"--- a/p/testdata/gone", "+++ /dev/null", "@@ -1 +0,0 @@", "-x",
	}, "\n")
	got := parseDiff(diff)
	if len(got) != 2 || got[0].name != "a_test.go" || got[1].name != "p/testdata/b.bin" {
		t.Fatalf("files: %+v", got)
	}
	if want := []lineSpan{{1, 2}, {11, 10}}; !slices.Equal(got[0].spans, want) {
		t.Errorf("spans %v, want %v", got[0].spans, want)
	}
	if got[1].testDir() != "p" || !got[1].isTestData() {
		t.Errorf("test data of %q", got[1].testDir())
	}
}

func TestPrintChanged(t *testing.T) {
	root := repository(t)
	write(t, root, []txtar.File{
		{Name: "go.mod", Data: []byte("module m\n")},
		{Name: "a_test.go", Data: []byte("package m\n\nfunc TestA() {}\nfunc TestB() {}\n")},
	})
	t.Chdir(root)
	var out strings.Builder
	if err := printChanged(&out, ""); err != nil {
		t.Fatal(err)
	}
	if want := ".\t.\t^(TestA|TestB)$\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
