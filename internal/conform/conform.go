// Package conform lets a test name the requirements of docs/contract that it
// proves; docs/conformance.md is generated from those names.
package conform

import (
	"regexp"
	"testing"
)

var idForm = regexp.MustCompile(`^([LMOSTPHCAWK]-[0-9]+|B-[0-9]{3})$`)

// Covers states that t proves the requirements with these ids (contract ids
// such as "L-26", case ids such as "B-161"). An id of another form fails the test.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if !idForm.MatchString(id) {
			t.Errorf("conform: %q is no requirement id", id)
		}
	}
}
