// Package conform lets a test name the requirements of docs/contract that it
// proves. The names are read from the test sources, not collected while the
// tests run: docs/conformance.md is generated from them by
//
//	go run ./internal/conform/gen
//
// and a test of this package fails when that file is stale.
package conform

import (
	"regexp"
	"strings"
	"testing"
)

//go:generate go run ./gen

var idForm = regexp.MustCompile(`^([LMOSTPHCAWK]-[0-9]+|B-[0-9]{3})$`)

// Valid reports whether id has the form of a requirement id ("L-26") or of a
// case id ("B-161"). It does not say that the contract has such an id; the
// generator does.
func Valid(id string) bool { return idForm.MatchString(id) }

// Covers states that t proves the requirements with these ids (contract ids
// such as "L-26", case ids such as "B-161"). An id of another form fails the test.
//
// The ids must be string literals, here or elsewhere in the same top-level
// function, for the generator finds them by reading the source. A test whose
// block also calls t.Skip without a condition is listed as skipped, not as a
// proof.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	if len(ids) == 0 {
		t.Errorf("conform: Covers without an id")
	}
	for _, id := range ids {
		if !Valid(id) {
			t.Errorf("conform: %q is no requirement id", id)
		}
	}
}

// CoversFile is [Covers] for a scenario kept as a txtar file: comment is the
// archive's comment, and every line of it of the form
//
//	covers: L-26 L-27
//
// names requirements. The generator counts these lines in all *.txtar files
// under the testdata directory of a package whose tests call CoversFile. A
// file without such a line covers nothing and is fine.
func CoversFile(t testing.TB, comment []byte) {
	t.Helper()
	for _, id := range FileIDs(comment) {
		if !Valid(id) {
			t.Errorf("conform: covers line names %q, which is no requirement id", id)
		}
	}
}

// FileIDs returns the words of all "covers:" lines of a txtar comment, in
// order, whether or not they are ids. A leading "#" is allowed, blanks and
// commas separate.
func FileIDs(comment []byte) []string {
	var ids []string
	for line := range strings.Lines(string(comment)) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#"))
		rest, ok := strings.CutPrefix(line, "covers:")
		if !ok {
			continue
		}
		ids = append(ids, strings.FieldsFunc(rest, func(r rune) bool {
			return r == ' ' || r == '\t' || r == ','
		})...)
	}
	return ids
}
