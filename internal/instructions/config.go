package instructions

// Config says which instruction files a session has. All paths are absolute.
type Config struct {
	Dir       string // the start directory, without links in it
	Home      string // the configuration home, such as ~/.claude; "": none
	UserHome  string // what "~" in an import stands for; "": not known
	SystemDir string // where the machine's own CLAUDE.md is; "": none (C-1)
	Managed   string // the managed settings key claudeMd; "": none (C-41)

	User, Project, Local bool // the setting sources that are loaded (C-11, C-12)

	// Names are the file names to look for, the first one found in a directory
	// wins; nil: CLAUDE.md (C-51).
	Names []string
	// Excludes are globs on the absolute paths of files that are not wanted.
	// They do not hold for the machine's own (C-54).
	Excludes []string
	// AddDirs are the added directories. Imports may reach into them (C-47);
	// their own instruction files are loaded with FromAddDirs (C-55).
	AddDirs     []string
	FromAddDirs bool
	// External lets imports of project files reach out of Dir: the person who
	// works there has agreed (C-46).
	External bool

	// Denied reports files whose contents are to be kept from the model; nil:
	// none. It does not hold for the machine's own.
	Denied func(path string) bool
	Warn   func(line string) // about files that cannot be used; nil: dropped
	Debug  func(line string) // about what was left out on purpose; nil: dropped
	FS     FS                // nil: the disk
}

// Kind says whose instructions a file holds. The values are those of the hook
// InstructionsLoaded (H-91).
type Kind string

// The kinds.
const (
	Managed Kind = "Managed"
	User    Kind = "User"
	Project Kind = "Project"
	Local   Kind = "Local"
)

// Reason says why a file was loaded, in the words of InstructionsLoaded (H-91).
type Reason string

// The reasons.
const (
	SessionStart Reason = "session_start"
	Nested       Reason = "nested_traversal"
	PathMatch    Reason = "path_glob_match"
	Include      Reason = "include"
	Compact      Reason = "compact"
)

// File is an instruction file that was loaded.
type File struct {
	Path    string
	Kind    Kind
	Reason  Reason
	Globs   []string // of a rule: its paths
	Trigger string   // the file that the model read; "": none
	Parent  string   // the file that imports it; "": none

	key  string // the path without links: what a file is known by
	text string // without comments, as it is shown
}

// Key is what a session remembers a nested file by, see [Set.Restore].
func (f File) Key() string { return f.key }

// Result is what instruction files give to the model.
type Result struct {
	Text  string // "": nothing
	Files []File // in the order of Text
}

// Bounds.
const (
	maxFile     = 4 << 20 // bytes of a file (C-50)
	maxFiles    = 1000    // files of one Result, imports counted
	maxTotal    = 16 << 20
	maxHops     = 4      // imports of imports (C-45)
	maxMentions = 1000   // "@path" that are looked for in a file
	maxMention  = 4096   // bytes of one
	maxLooks    = 10_000 // "@path" that are looked for in all files of one Result
	maxDirs     = 1000   // directories below one .claude/rules
)

func (c *Config) fill() {
	if len(c.Names) == 0 {
		c.Names = []string{"CLAUDE.md"}
	}
	if c.Denied == nil {
		c.Denied = func(string) bool { return false }
	}
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
	if c.Debug == nil {
		c.Debug = func(string) {}
	}
	if c.FS == nil {
		c.FS = Disk
	}
}
