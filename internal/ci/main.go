// Command ci answers two questions of .ci/run, where a few lines of shell would
// be too weak and could not be tested:
//
//	go run ./internal/ci changed [-base REF]   which tests are new or changed
//	go run ./internal/ci readme                the commands of README's Set-up
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say what to do: changed or readme")
	}
	switch args[0] {
	case "changed":
		flags := flag.NewFlagSet("changed", flag.ContinueOnError)
		base := flags.String("base", "", "commit to compare with (default: where this branch left main)")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return printChanged(out, *base)
	case "readme":
		text, err := os.ReadFile("README.md")
		if err != nil {
			return err
		}
		commands, err := setupCommands(string(text))
		if err != nil {
			return err
		}
		for _, command := range commands {
			fmt.Fprintln(out, command)
		}
		return nil
	}
	return fmt.Errorf("unknown command %q: changed or readme", args[0])
}
