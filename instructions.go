package turnwright

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/instructions"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/session/file"
)

// settingSources are what Options.SettingSources may name.
var settingSources = []string{"user", "project", "local"}

// checkInstructions checks the options about instruction files.
func (o *Options) checkInstructions() error {
	for _, name := range o.SettingSources {
		if !slices.Contains(settingSources, name) {
			return &OptionError{Option: "SettingSources", Value: strconv.Quote(name), Reason: "must be user, project or local"}
		}
	}
	for _, name := range o.MemoryFiles {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
			return &OptionError{Option: "MemoryFiles", Value: strconv.Quote(name), Reason: "is not the name of a file in a directory"}
		}
	}
	return nil
}

// buildInstructions says which instruction files the session has (C-41 to
// C-63). They are read when its first turn starts.
func (o *Options) buildInstructions(cfg *engine.Config, getenv func(string) string) {
	if o.Bare || truthy(getenv("CLAUDE_CODE_SIMPLE")) || truthy(getenv("CLAUDE_CODE_DISABLE_CLAUDE_MDS")) {
		return // C-56, C-135
	}
	c := instructions.Config{
		Dir: cfg.Dir, UserHome: homeDir(getenv), SystemDir: systemDir(runtime.GOOS),
		User: o.loads("user"), Project: o.loads("project"), Local: o.loads("local"),
		Names: o.MemoryFiles, AddDirs: cfg.Dirs,
		FromAddDirs: truthy(getenv("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD")),
		Denied:      keptSecret(cfg.Gate), Warn: cfg.Warn,
	}
	if st, err := file.New(file.Config{Getenv: getenv}); err == nil { // without a home there are no files of the user
		c.Home = filepath.Clean(st.Dir())
	}
	if debug := cfg.Debug; debug != nil {
		c.Debug = func(line string) { debug("instructions", line) }
	}
	cfg.Instructions = instructions.New(c)
}

// keptSecret tells which files deny rules keep from the model. A rule that only
// takes the tool Read away keeps nothing from it.
func keptSecret(gate *permission.Policy) func(path string) bool {
	paths := *gate
	paths.Deny = slices.DeleteFunc(slices.Clone(gate.Deny), permission.Rule.Bare)
	return paths.ReadDenied
}

// loads reports whether a setting source is loaded (C-9).
func (o *Options) loads(source string) bool {
	return o.SettingSources == nil || slices.Contains(o.SettingSources, source)
}

// systemDir is where the administrator of a machine keeps its files (C-1).
func systemDir(goos string) string {
	switch goos {
	case "windows":
		return `C:\Program Files\ClaudeCode`
	case "darwin":
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}
