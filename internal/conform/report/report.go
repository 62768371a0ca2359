package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Paths below the repository's root.
const (
	OutputPath   = "docs/conformance.md"
	contractPath = "docs/contract"
	lettersPath  = "internal/conform/letters.txt"
)

// Generate returns the text of docs/conformance.md for the repository at root.
//
// It fails, naming the place, when a test names an id that the contract does
// not have, when a core requirement or a case has no letter, and when a page,
// a test source or the letters file cannot be read.
func Generate(root string) ([]byte, error) {
	contract, err := ReadContract(os.DirFS(filepath.Join(root, contractPath)))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, lettersPath))
	if err != nil {
		return nil, err
	}
	letters, err := ParseLetters(string(text))
	if err != nil {
		return nil, err
	}
	proofs, err := ScanTests(root)
	if err != nil {
		return nil, err
	}
	if err := check(contract, proofs, letters); err != nil {
		return nil, err
	}
	return render(contract, proofs, letters), nil
}

func check(c *Contract, proofs []Proof, letters *Letters) error {
	var errs []error
	for _, p := range proofs {
		if !c.Has(p.ID) {
			errs = append(errs, fmt.Errorf("%s: %s names %s, which the contract does not have", p.Pos, p.Test, p.ID))
		}
	}
	if missing := letters.Missing(c); len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%s: no letter for %s", lettersPath, strings.Join(missing, " ")))
	}
	for _, r := range c.Requirements {
		if !slices.ContainsFunc(prefixes, func(p struct{ letter, page string }) bool { return p.letter == r.Prefix() && p.page == r.Page }) {
			errs = append(errs, fmt.Errorf("%s/%s:%d: %s does not belong on this page", contractPath, r.Page, r.Line, r.ID))
		}
	}
	return errors.Join(errs...)
}

// Root returns the repository's root: the nearest directory at or above dir
// that holds docs/contract beside a go.mod.
func Root(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := start; ; at = filepath.Dir(at) {
		_, errMod := os.Stat(filepath.Join(at, "go.mod"))
		_, errContract := os.Stat(filepath.Join(at, filepath.FromSlash(contractPath)))
		if errMod == nil && errContract == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no directory at or above %s holds go.mod and %s", start, contractPath)
		}
	}
}
