package file

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"github.com/turnwright/turnwright/internal/names"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
)

// Config says where sessions are kept. The zero value is the user's own
// configuration home.
type Config struct {
	// ConfigDir is the configuration home. Empty: $CLAUDE_CONFIG_DIR, else
	// .claude in the user's home (K-280).
	ConfigDir string

	// ProjectDirName replaces the name that is made from the working
	// directory: 1 to 64 letters, digits, "-" or "_", and no device name of
	// Windows; anything else is an error. Empty: the variable
	// CLAUDE_CODE_PROJECT_DIR_NAME, which counts only if the configuration
	// home comes from CLAUDE_CONFIG_DIR, and is ignored with any other value
	// (S-15). Programs that mirror sessions into a store hide the variable
	// from Getenv (K-221).
	ProjectDirName string

	// Getenv reads the process's environment. Nil: os.Getenv.
	Getenv func(string) string

	// FS is the disk. Nil: the disk of the operating system.
	FS vfs.FS

	// Warn is told what the user should know but does not end anything, such
	// as a torn line that was cut off. It may be called on any goroutine. Nil:
	// nobody is told.
	Warn func(string)
}

// Store keeps sessions in files. It implements session.Store; it is safe for
// concurrent use and holds nothing open while no session is open.
type Store struct {
	fs       vfs.FS
	dir      string // configuration home
	fixed    string // project directory name, "" = from the working directory
	warn     func(string)
	synced   syncedDirs
	lockless sync.Once
}

var _ session.Store = (*Store)(nil)

// New returns the store of a configuration home. It touches no file. An error
// is a *session.OptionError, or says that the user's home is not known.
func New(c Config) (*Store, error) {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
	fromEnv := norm.NFC.String(c.Getenv("CLAUDE_CONFIG_DIR"))
	dir := c.ConfigDir
	if dir == "" {
		dir = fromEnv
	}
	if dir == "" {
		home, err := homeDir(c.Getenv)
		if err != nil {
			return nil, fmt.Errorf("session: no configuration home (set CLAUDE_CONFIG_DIR): %w", err)
		}
		dir = filepath.Join(home, names.Dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("session: configuration home: %w", err)
	}
	fixed := c.ProjectDirName
	switch name := c.Getenv("CLAUDE_CODE_PROJECT_DIR_NAME"); {
	case fixed != "" && !validDirName(fixed):
		return nil, &session.OptionError{
			Field: "ProjectDirName", Value: fixed,
			Reason: `must be 1 to 64 letters, digits, "-" or "_", and no device name`,
		}
	case fixed == "" && fromEnv != "" && (c.ConfigDir == "" || c.ConfigDir == fromEnv) && validDirName(name):
		fixed = name
	}
	return &Store{fs: c.FS, dir: dir, fixed: fixed, warn: c.Warn}, nil
}

// Dir returns the configuration home, absolute.
func (s *Store) Dir() string { return s.dir }

func homeDir(getenv func(string) string) (string, error) {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if home := getenv(name); home != "" {
		return home, nil
	}
	return os.UserHomeDir()
}

// validDirName is the rule of S-15.
func validDirName(name string) bool {
	const most = 64
	if name == "" || len(name) > most {
		return false
	}
	for _, c := range []byte(name) {
		if !isAlnum(rune(c)) && c != '-' && c != '_' {
			return false
		}
	}
	switch upper := strings.ToUpper(name); {
	case upper == "CON", upper == "PRN", upper == "AUX", upper == "NUL":
		return false
	case len(upper) == 4 && (strings.HasPrefix(upper, "COM") || strings.HasPrefix(upper, "LPT")):
		return upper[3] < '0' || upper[3] > '9'
	}
	return true
}
