package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var updateReference = flag.Bool("update-reference", false, "write docs/cli.md anew")

// TestReference holds docs/cli.md to the table of flags that the program has.
func TestReference(t *testing.T) {
	const path = "../../docs/cli.md"
	want := reference()
	if *updateReference {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the flags say: go test ./cmd/turnwright -run TestReference -update-reference", path)
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString(`# The command

<!-- Written by go test ./cmd/turnwright -run TestReference -update-reference; do not edit. -->

    turnwright [flags] -p PROMPT        run one prompt and print the answer
    turnwright sessions [--all] [--json]  list the sessions of the directory
    turnwright completion SHELL         print the completion script for bash, zsh or fish
    turnwright demo [flags]             the reference scenario, without key and network

The prompt is one argument, standard input, or both: then the prompt comes first and the piped text after a blank line. A list flag takes everything up to the next word that begins with "-", so the prompt stands before it or after ` + "`--`" + `.

The exit code is 0 when the last result is no error, 1 when it is one or the run could not start, 130 after a second interrupt and 143 after SIGTERM. With ` + "`--output-format text`" + ` the answer is all that stands on standard output; on a terminal, steps and cost are shown on standard error meanwhile (` + "`NO_COLOR=1`" + ` without colours).

## Flags

| flag | value | meaning |
|---|---|---|
`)
	(&flags{}).set().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		value := ""
		switch f.Value.Type() {
		case "bool":
		case "stringArray":
			value = "list"
		default:
			value = f.Value.Type()
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			value += " [" + f.DefValue + "]"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
	b.WriteString("\n## Completion\n\n`turnwright completion` prints a script that completes flags, their values, and the sessions behind `--resume`:\n\n" + completionSetup)
	b.WriteString("\n## Flags to come\n\nEach is an error today that names the letter of [roadmap.md](roadmap.md) which brings it.\n\n| letter | flags |\n|---|---|\n")
	byLetter := map[string][]string{}
	for name, letter := range laterFlags {
		byLetter[letter] = append(byLetter[letter], "`--"+name+"`")
	}
	for _, letter := range slices.Sorted(maps.Keys(byLetter)) {
		slices.Sort(byLetter[letter])
		fmt.Fprintf(&b, "| %s | %s |\n", letter, strings.Join(byLetter[letter], " "))
	}
	fmt.Fprintf(&b, "\n## Flags of other programs\n\nFlags that belong to one vendor's service or to a terminal interface are refused by name: %s. Accepted without an effect, since they ask for nothing that is missing here: %s.\n", flagNames(hostFlags), flagNames(ignoredFlags))
	return b.String()
}

func flagNames(names []string) string {
	return "`--" + strings.Join(names, "`, `--") + "`"
}
