package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path"
	"strconv"
	"strings"
)

// lineSpan is a range of lines, 1-based, both ends included. A deletion has
// to == from-1: it lies between the lines to and from.
type lineSpan struct{ from, to int }

// fileChange is what a diff says about one file that still exists.
type fileChange struct {
	name  string // slash-separated, below the repository's root
	spans []lineSpan
}

// git runs a git command in dir and returns its output without the last newline.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// baseCommit chooses what the working tree is compared with: the commit where
// the current branch left main; on main itself (or in a clone that knows no
// main) the 20th commit before HEAD; in a shorter or shallow history the empty
// tree, so that every test counts as new.
func baseCommit(dir string) (string, error) {
	head, err := git(dir, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return emptyTree(dir) // no commit yet
	}
	for _, main := range []string{"refs/remotes/origin/main", "refs/heads/main"} {
		base, err := git(dir, "merge-base", "HEAD", main)
		if err == nil && base != head {
			return base, nil
		}
	}
	if base, err := git(dir, "rev-parse", "--verify", "--quiet", "HEAD~20^{commit}"); err == nil {
		return base, nil
	}
	return emptyTree(dir)
}

func emptyTree(dir string) (string, error) { return git(dir, "hash-object", "-t", "tree", "--stdin") }

// changedFiles compares the working tree with base and returns the Go tests
// and the test data that are new or changed, untracked files included.
func changedFiles(dir, base string) ([]fileChange, error) {
	paths := []string{"*_test.go", "**/testdata/**", "testdata/**"}
	// The fixed prefixes keep the parser independent of the user's settings.
	diff, err := git(dir, append([]string{
		"-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv",
		"--unified=0", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", base, "--",
	}, globs(paths)...)...)
	if err != nil {
		return nil, err
	}
	changes := parseDiff(diff)
	untracked, err := git(dir, append([]string{"ls-files", "-z", "--others", "--exclude-standard", "--"}, globs(paths)...)...)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(untracked, "\x00") {
		if name != "" {
			changes = append(changes, fileChange{name: name, spans: []lineSpan{{1, 1 << 30}}})
		}
	}
	return changes, nil
}

func globs(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = ":(top,glob)" + p
		if !strings.Contains(p, "/") {
			out[i] = ":(top,glob)**/" + p
		}
	}
	return out
}

// parseDiff reads a unified diff without context. Deleted files are left out.
func parseDiff(diff string) []fileChange {
	var changes []fileChange
	inFile := false
	left := 0 // lines of the current hunk still to come
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case left > 0 && line != "" && (line[0] == '+' || line[0] == '-'):
			left-- // content, even where it looks like a header
		case strings.HasPrefix(line, "diff --git "):
			// Binary test data has no +++ line; the name stands here then.
			inFile = false
			if _, name, ok := strings.Cut(line, " b/"); ok && strings.Contains(line, "/testdata/") {
				changes, inFile = append(changes, fileChange{name: name}), true
			}
		case strings.HasPrefix(line, "deleted file"):
			if inFile {
				changes, inFile = changes[:len(changes)-1], false
			}
		case strings.HasPrefix(line, "+++ "):
			name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\t"), "+++ b/")
			if ok && !inFile {
				changes, inFile = append(changes, fileChange{name: name}), true
			}
		case strings.HasPrefix(line, "@@ "):
			span, count := parseHunk(line)
			left = count
			if inFile {
				last := &changes[len(changes)-1]
				last.spans = append(last.spans, span)
			}
		}
	}
	return changes
}

// parseHunk reads "@@ -a,b +c,d @@": the lines on the new side, and how many
// content lines follow.
func parseHunk(header string) (span lineSpan, count int) {
	fields := strings.Fields(header)
	if len(fields) < 3 {
		return lineSpan{}, 0
	}
	_, removed := hunkRange(fields[1])
	start, added := hunkRange(fields[2])
	if added == 0 {
		return lineSpan{start + 1, start}, removed
	}
	return lineSpan{start, start + added - 1}, removed + added
}

func hunkRange(s string) (start, count int) {
	first, second, two := strings.Cut(strings.TrimLeft(s, "+-"), ",")
	start, _ = strconv.Atoi(first)
	if count = 1; two {
		count, _ = strconv.Atoi(second)
	}
	return start, count
}

// touches reports whether a change of span is a change of the lines from to to.
func (s lineSpan) touches(from, to int) bool {
	if s.to < s.from { // a deletion counts where both neighbours are inside
		return from <= s.to && s.from <= to
	}
	return s.from <= to && from <= s.to
}

// testDir returns the package directory that a changed file belongs to.
func (f fileChange) testDir() string {
	if before, _, ok := strings.Cut("/"+f.name, "/testdata/"); ok {
		return path.Clean(strings.TrimPrefix(before+"/", "/"))
	}
	return path.Dir(f.name)
}

func (f fileChange) isTestData() bool { return strings.Contains("/"+f.name, "/testdata/") }
