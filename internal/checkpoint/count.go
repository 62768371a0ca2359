package checkpoint

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// maxCounted bounds the files whose lines are compared, in bytes.
const maxCounted = 8 << 20

// countLines counts the lines that are added and removed when old becomes new.
// In a file that is no text, or too large (nil), none are.
func countLines(old, new []byte) (insertions, deletions int) {
	if old == nil || new == nil || bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(new, 0) >= 0 {
		return 0, 0
	}
	n := 0
	for l := range bytes.Lines(diff.Diff("a", old, "b", new)) {
		if n++; n <= 3 {
			continue // the names
		}
		switch l[0] {
		case '+':
			insertions++
		case '-':
			deletions++
		}
	}
	return insertions, deletions
}
