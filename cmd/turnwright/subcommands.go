package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// subcommand is a command of its own, chosen by the first word (K-120).
type subcommand struct {
	name, args, about string
	flags             *pflag.FlagSet // nil: it does nothing without one of its own commands
	sub               []subcommand   // with name, args, about and flags
	run               func(args []string, stdout, stderr io.Writer) int
}

// subcommands are those of this program, for whoever runs, tells of, or
// completes them.
func subcommands() []subcommand {
	return []subcommand{
		{
			name: "sessions", about: "list, show, search and change sessions",
			flags: (&sessionsOptions{}).set(sessionsCommands[0]), sub: sessionsSubcommands(), run: runSessions,
		},
		{
			name: "explain", args: "[--all] [--json] SESSION", about: "say why the runs of a session stopped",
			flags: (&explainOptions{}).set(), run: runExplain,
		},
		{
			name: "replay", args: "[--json] SESSION", about: "feed a recorded session through the loop and report the first difference",
			flags: (&replayOptions{}).set(), run: runReplay,
		},
		{
			name: "permissions", about: "about permission rules", run: runPermissions,
			sub: []subcommand{{
				name: "check", args: "[flags] COMMAND", about: "say what would become of a call, and why",
				flags: (&checkOptions{}).set(),
			}},
		},
		{
			name: "completion", args: strings.Join(shells, "|"), about: "print the completion script of a shell",
			flags: pflag.NewFlagSet("turnwright completion", pflag.ContinueOnError), run: runCompletion,
		},
		{
			name: "demo", args: "[flags]", about: "the reference scenario, without key and network",
			flags: (&demoOptions{}).set(), run: runDemo,
		},
	}
}

func sessionsSubcommands() (all []subcommand) {
	for _, c := range sessionsCommands {
		args, about := strings.TrimSpace(c.args+" [flags]"), strings.ReplaceAll(c.about, "\n", " ")
		all = append(all, subcommand{name: c.name, args: args, about: about, flags: (&sessionsOptions{}).set(c)})
	}
	return all
}

// forms are the commands as they are written, each with what it does.
func forms() (all [][2]string) {
	for _, c := range subcommands() {
		if c.sub == nil {
			all = append(all, [2]string{"turnwright " + c.name + " " + c.args, c.about})
		}
		for _, s := range c.sub {
			all = append(all, [2]string{"turnwright " + c.name + " " + s.name + " " + s.args, s.about})
		}
	}
	return all
}

// hostCommands are commands of the contract that belong to one vendor's service
// or to a terminal interface, and laterCommands those that are to come, with the
// letter of docs/roadmap.md. Both are refused by name (K-122 to K-127).
var (
	hostCommands = []string{
		"attach", "auth", "auto-mode", "daemon", "gateway", "import", "install", "logs", "remote-control", "respawn", "rm",
		"self-hosted-runner", "setup-token", "stop", "ultrareview", "update",
	}
	laterCommands = map[string]string{"agents": "J", "doctor": "J", "mcp": "F", "plugin": "J", "project": "J"}
)

// commandOf returns the subcommand that the first word of the command line
// names; nil where it is no command but a flag or the prompt. A word that is
// nearly the name of one was hardly meant as a prompt (K-121).
func commandOf(word string) (*subcommand, error) {
	var near string
	for _, c := range subcommands() {
		if c.name == word {
			return &c, nil
		}
		if most := 1 + len(c.name)/8; near == "" && distance(word, c.name) <= most {
			near = c.name
		}
	}
	const asPrompt = "turnwright -p %s takes it as a prompt"
	letter := laterCommands[word]
	switch {
	case slices.Contains(hostCommands, word):
		return nil, fmt.Errorf("the command %s is not supported by this build; "+asPrompt, word, word)
	case letter != "":
		return nil, fmt.Errorf("the command %s is not supported yet (issue %s of docs/roadmap.md brings it); "+asPrompt, word, letter, word)
	case near != "":
		return nil, fmt.Errorf("there is no command %s: did you mean %s? "+asPrompt, word, near, word)
	}
	return nil, nil
}

// distance is how many letters have to be put in, left out, changed or exchanged
// with the next one to make a of b.
func distance(a, b string) int {
	before, last, row := []int(nil), []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
