package search

import (
	"os"
	"path/filepath"
	"strings"
)

// GitIgnores reports whether git ignores the file at a path, absolute and without
// links, by the .gitignore files of its repository, the repository's own excludes
// and those of the user. It need not exist. inRepo is false outside of a
// repository.
func GitIgnores(path string, getenv func(string) string) (ignores, inRepo bool) {
	root := filepath.Dir(path)
	for {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			break
		}
		parent := filepath.Dir(root)
		if parent == root {
			return false, false
		}
		root = parent
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return false, false
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	levels := []*ignoreFile{} // .gitignore of the root and of each directory below it
	own, global := gitExclude(withSlash(filepath.ToSlash(root))), globalExcludes(getenv)
	dir := root
	for i, base := range parts {
		levels = append(levels, parseIgnore(readSmall(filepath.Join(dir, ".gitignore"))))
		dir = filepath.Join(dir, base)
		isDir := i < len(parts)-1
		v := none
		for from := len(levels) - 1; from >= 0 && v == none; from-- { // the nearest decides
			v = levels[from].judge(parts[from:i+1], isDir)
		}
		for _, f := range []*ignoreFile{own, global} {
			if v == none {
				v = f.judge(parts[:i+1], isDir)
			}
		}
		if v == ignored {
			return true, true
		}
	}
	return false, true
}

// judge is match for a path in parts, relative to the file's directory. A nil
// file says nothing.
func (f *ignoreFile) judge(parts []string, isDir bool) verdict {
	if f == nil {
		return none
	}
	return f.match(strings.Join(parts, "/"), parts[len(parts)-1], isDir)
}
