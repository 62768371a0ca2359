package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/envvar"
	"github.com/turnwright/turnwright/tool"
)

// startDir returns the directory that the next command starts in (T-109,
// T-110). Where the one that was kept cannot be used any more, the session's
// directory takes its place, and notice says so.
func startDir(env *tool.Env) (dir, notice string) {
	raw := env.State.Get(cwdKey)
	if raw == nil || keepsProjectDir(env) {
		return env.Dir, ""
	}
	if json.Unmarshal(raw, &dir) == nil && inWorkingDirs(env, dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, ""
		}
	}
	env.State.Set(cwdKey, nil)
	return env.Dir, resetNotice(env)
}

func resetNotice(env *tool.Env) string { return "Shell cwd was reset to " + env.Dir }

func keepsProjectDir(env *tool.Env) bool {
	return envvar.On(getenv(env, "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"))
}

// keepDir takes the directory that the command ended in as that of the next
// one, and removes the report. It returns a notice where it does not.
func (p *command) keepDir(env *tool.Env) (notice string) {
	_, dir, ended := readReport(p.report)
	p.dropReport()
	if keepsProjectDir(env) {
		return ""
	}
	if !ended {
		dir = p.dir // killed, or another program: it is not known where it went
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		switch {
		case real(dir) == real(env.Dir):
			env.State.Set(cwdKey, nil)
			return ""
		case inWorkingDirs(env, dir):
			if raw, err := json.Marshal(dir); err == nil {
				env.State.Set(cwdKey, raw)
			}
			return ""
		}
	}
	env.State.Set(cwdKey, nil)
	return resetNotice(env)
}

// inWorkingDirs reports whether dir is the session's directory, an additional
// one, or inside of one, after following links.
func inWorkingDirs(env *tool.Env, dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	dir = real(dir)
	return slices.ContainsFunc(append([]string{env.Dir}, env.Dirs...), func(root string) bool {
		rel, err := filepath.Rel(real(root), dir)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	})
}

// real resolves links where it can.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return filepath.Clean(path)
}

// readReport reads what a shell has left at its exit: its code, and its
// directory where it still had one. ok is false when it has left nothing.
func readReport(file string) (code int, dir string, ok bool) {
	if file == "" {
		return 0, "", false
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, "", false
	}
	return parseReport(string(raw))
}

func (p *command) dropReport() {
	if p.report != "" {
		os.Remove(p.report)
	}
}

// WorkDir is the directory that the next command starts in, for the gate. It
// changes nothing.
func (*Bash) WorkDir(env *tool.Env) string {
	dir := currentDir(env)
	if dir == env.Dir || keepsProjectDir(env) || !inWorkingDirs(env, dir) {
		return env.Dir
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return env.Dir
	}
	return dir
}
