package search

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/internal/gitdir"
)

// maxIgnoreFile bounds what is read of an ignore file or a configuration.
const maxIgnoreFile = 16 << 20

// readSmall returns the content of a regular file that is not too large, nil
// for anything else.
func readSmall(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}

// globalExcludes reads the user's file of excludes.
func globalExcludes(getenv func(string) string) *ignoreFile {
	path := ExcludesFile(getenv)
	if path == "" {
		return nil
	}
	return parseIgnore(readSmall(path))
}

// ExcludesFile is the user's own file of excludes, which need not exist:
// core.excludesFile of the user's git configuration, else git/ignore in the
// configuration directory. "": the user has no place for one.
func ExcludesFile(getenv func(string) string) string {
	if getenv == nil {
		return ""
	}
	home := getenv("HOME")
	if home == "" {
		home = getenv("USERPROFILE")
	}
	xdg := getenv("XDG_CONFIG_HOME")
	if xdg == "" && home != "" {
		xdg = filepath.Join(home, ".config")
	}
	path := ""
	if xdg != "" {
		path = filepath.Join(xdg, "git", "ignore")
	}
	var configs []string
	if xdg != "" {
		configs = append(configs, filepath.Join(xdg, "git", "config"))
	}
	if home != "" {
		configs = append(configs, filepath.Join(home, ".gitconfig"))
	}
	for _, c := range configs {
		if p := excludesFile(string(readSmall(c))); p != "" {
			path = p
		}
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// excludesFile finds core.excludesFile in the text of a git configuration.
func excludesFile(text string) (path string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			end := strings.IndexByte(line, ']')
			if end < 0 {
				continue
			}
			section, line = strings.ToLower(strings.TrimSpace(line[1:end])), strings.TrimSpace(line[end+1:])
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && section == "core" && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			value = strings.TrimSpace(value)
			if !strings.HasPrefix(value, `"`) {
				if i := strings.IndexAny(value, "#;"); i >= 0 {
					value = strings.TrimSpace(value[:i])
				}
			}
			path = strings.ReplaceAll(strings.Trim(value, `"`), `\\`, `\`)
		}
	}
	return path
}

// gitExclude reads info/exclude of the repository whose root is dir (with a
// slash at the end). In a linked worktree .git is a file that says where the
// repository is.
func gitExclude(dir string) *ignoreFile {
	git, err := gitdir.At(dir)
	if err != nil {
		return nil
	}
	if common := strings.TrimSpace(string(readSmall(filepath.Join(git, "commondir")))); common != "" {
		git = absoluteIn(git, common)
	}
	return parseIgnore(readSmall(filepath.Join(git, "info", "exclude")))
}

func absoluteIn(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
