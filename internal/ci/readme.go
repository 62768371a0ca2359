package main

import (
	"errors"
	"fmt"
	"strings"
)

// setupCommands returns the first two commands in the fenced code below the
// heading "## Set-up" of README.md, so that CI runs what newcomers are told to
// run. Comments, a leading "$ " and the lines that fetch the repository (git
// clone, cd) are left out. A command that does not start with "go " is an
// error: CI runs nothing else out of a text file.
func setupCommands(readme string) ([]string, error) {
	var commands []string
	inSection, inFence := false, false
	for line := range strings.Lines(readme) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inFence = !inFence
			continue
		case !inFence && strings.HasPrefix(line, "#"):
			inSection = line == "## Set-up"
			continue
		case !inSection || !inFence:
			continue
		}
		command := strings.TrimPrefix(line, "$ ")
		if i := strings.Index(command, " #"); i >= 0 {
			command = strings.TrimSpace(command[:i])
		}
		switch {
		case command == "", strings.HasPrefix(command, "#"),
			strings.HasPrefix(command, "git clone "), strings.HasPrefix(command, "cd "):
			continue
		case !strings.HasPrefix(command, "go "):
			return nil, fmt.Errorf("README.md, Set-up: %q is no go command", command)
		}
		if commands = append(commands, command); len(commands) == 2 {
			return commands, nil
		}
	}
	return nil, errors.New(`README.md has no two commands in fenced code below "## Set-up"`)
}
