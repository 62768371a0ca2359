package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/names"
)

// protectedDirs and protectedFiles are names below which, or at which, a write
// is never approved by a mode or an allow rule: a change there can run code or
// widen permissions later (P-105, P-106). Compared without case, because on
// some file systems ".GIT" is ".git".
var (
	protectedDirs = []string{
		".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude",
	}
	protectedFiles = []string{
		".gitconfig", ".gitmodules",
		".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout",
		".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".profile", ".envrc",
		".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs", "bunfig.toml", ".bunfig.toml",
		".bazelrc", ".bazelversion", ".bazeliskrc",
		".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
		"gradle-wrapper.properties", "maven-wrapper.properties",
		".devcontainer.json", ".ripgreprc", "pyrightconfig.json", ".mcp.json", ".claude.json",
	}
)

func writesProtected(accesses []Access) bool {
	return slices.ContainsFunc(accesses, func(a Access) bool {
		return a.Kind == Write && (Protected(a.Target) || a.Written != a.Target && Protected(a.Written))
	})
}

// Protected reports whether path is a protected path (P-105, P-106).
func Protected(path string) bool {
	last := ""
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == filepath.Separator }) {
		// Windows drops dots and blanks at the end of a name.
		part = strings.ToLower(strings.TrimRight(part, ". "))
		if protectedDir(last, part) {
			return true
		}
		last = part
	}
	return protectedDir(last, "") || last == ownName+".json" || slices.Contains(protectedFiles, last)
}

var ownName = strings.ToLower(names.Dir)

// protectedDir reports whether a directory of that name is protected with what
// is in it. next is the name in it that is meant; "": the directory itself.
func protectedDir(name, next string) bool {
	switch {
	case (name == ".claude" || name == ownName) && next == "worktrees":
		return false
	}
	return slices.Contains(protectedDirs, name) || name == ownName || name == ".config" && next == "git"
}
