package turnwright

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/envvar"
	"github.com/turnwright/turnwright/internal/instructions"
	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/permission"
)

// checkInstructions checks the options about instruction files.
func (o *Options) checkInstructions() error {
	for _, name := range o.MemoryFiles {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
			return &OptionError{Option: "MemoryFiles", Value: strconv.Quote(name), Reason: "is not the name of a file in a directory"}
		}
	}
	return nil
}

// buildInstructions says which instruction files the session has (C-41 to
// C-63). They are read when its first turn starts.
func (o *Options) buildInstructions(cfg *engine.Config, getenv func(string) string, set *live) {
	if o.bare(getenv) || envvar.On(getenv("CLAUDE_CODE_DISABLE_CLAUDE_MDS")) {
		return // C-56, C-135
	}
	now := set.reader.Settings()
	c := instructions.Config{
		Dir: cfg.Dir, UserHome: homeDir(getenv), SystemDir: names.SystemDir(),
		Managed: now.Get("claudeMd").Text(), Excludes: now.Get("claudeMdExcludes").Texts(),
		User: o.loads(SourceUser), Project: o.loads(SourceProject), Local: o.loads(SourceLocal),
		Names: o.MemoryFiles, AddDirs: cfg.Dirs,
		FromAddDirs: envvar.On(getenv("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD")),
		Denied:      keptSecret(set), Warn: cfg.Warn,
	}
	if c.Names == nil {
		c.Names = now.Get("memoryFiles").Texts() // C-51
	}
	if home, err := configHome(getenv); err == nil { // without one there are no files of the user
		c.Home = filepath.Clean(home)
	}
	if debug := cfg.Debug; debug != nil {
		c.Debug = func(line string) { debug("instructions", line) }
	}
	cfg.Instructions = instructions.New(c)
}

// keptSecret tells which files deny rules keep from the model. A rule that only
// takes the tool Read away keeps nothing from it.
func keptSecret(set *live) func(path string) bool {
	return func(path string) bool {
		paths := *set.current()
		paths.Deny = slices.DeleteFunc(slices.Clone(paths.Deny), permission.Rule.Bare)
		return paths.ReadDenied(path)
	}
}

// loads reports whether a setting source is loaded (C-9).
func (o *Options) loads(source string) bool {
	return o.SettingSources == nil || slices.Contains(o.SettingSources, source)
}
