// Command gen writes docs/conformance.md. Run it from anywhere in the
// repository: go run ./internal/conform/gen
//
// With -check it writes nothing and fails when the file is stale.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnwright/turnwright/internal/conform/report"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail when the file is stale")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "conform:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := report.Root(".")
	if err != nil {
		return err
	}
	page, err := report.Generate(root)
	if err != nil {
		return err
	}
	name := filepath.Join(root, filepath.FromSlash(report.OutputPath))
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if bytes.Equal(old, page) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is stale; run: go run ./internal/conform/gen", report.OutputPath)
	}
	return os.WriteFile(name, page, 0o644)
}
