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
		return a.Kind == Write && (Protected(a.Target) || Protected(a.Written))
	})
}

// Protected reports whether path is a protected path (P-105, P-106).
func Protected(path string) bool {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	for i, part := range parts {
		// Windows drops dots and blanks at the end of a name.
		parts[i] = strings.ToLower(strings.TrimRight(part, ". "))
	}
	own := strings.ToLower(names.Dir)
	for i, part := range parts {
		next := ""
		if i+1 < len(parts) {
			next = parts[i+1]
		}
		switch {
		case (part == ".claude" || part == own) && next == "worktrees":
		case slices.Contains(protectedDirs, part), part == own, part == ".config" && next == "git":
			return true
		}
	}
	if len(parts) == 0 {
		return false
	}
	last := parts[len(parts)-1]
	return last == own+".json" || slices.Contains(protectedFiles, last)
}
