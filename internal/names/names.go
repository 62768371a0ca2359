// Package names holds the names of the directories that the program looks for.
//
// A distribution that wants others sets the variables when it links (C-2):
//
//	go build -ldflags "-X github.com/turnwright/turnwright/internal/names.Dir=.agent" ./cmd/turnwright
package names

import (
	"path/filepath"
	"runtime"
)

var (
	// Dir is the configuration home below the user's home, and the directory of
	// settings in a project. With ".json" behind it, it is the global file.
	Dir = ".claude"
	// System is the directory of managed settings, absolute; "": the one of the
	// operating system. It is no variable of the environment, because policy is
	// not for the user to move.
	System = ""
)

// SystemDir is the directory of managed settings (C-1).
func SystemDir() string {
	if System != "" {
		return System
	}
	return systemDir(runtime.GOOS)
}

func systemDir(goos string) string {
	switch goos {
	case "darwin":
		return "/Library/Application Support/ClaudeCode"
	case "windows":
		return `C:\Program Files\ClaudeCode`
	}
	return "/etc/claude-code"
}

// Settings are the settings files of a session: in its configuration home and in
// the directory that it starts in (C-1, C-14). Without a home there is no user's.
func Settings(home, dir string) (user, project, local string) {
	if home != "" {
		user = filepath.Join(home, "settings.json")
	}
	return user, filepath.Join(dir, Dir, "settings.json"), filepath.Join(dir, Dir, "settings.local.json")
}
