package conform_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/conform/report"
)

// recorder is a testing.TB that notes whether the helper complained.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestCoversChecksForm(t *testing.T) {
	for _, tc := range []struct {
		ids  []string
		fail bool
	}{
		{[]string{"L-9001", "K-9485", "B-001"}, false},
		{[]string{"L-9001", "L1"}, true},
		{[]string{"X-1"}, true},
		{[]string{"B-1"}, true},
		{[]string{"L-9001 "}, true},
		{nil, true},
	} {
		r := &recorder{TB: t}
		conform.Covers(r, tc.ids...)
		if r.failed != tc.fail {
			t.Errorf("Covers(%q): failed %v, want %v", tc.ids, r.failed, tc.fail)
		}
	}
}

func TestFileIDs(t *testing.T) {
	comment := "A cap of one.\n# covers: L-9026 L-9027\ncovers:\tB-001, L-9029\ndiscovers: L-9099\ncovers:\n"
	got := conform.FileIDs([]byte(comment))
	if want := []string{"L-9026", "L-9027", "B-001", "L-9029"}; !slices.Equal(got, want) {
		t.Errorf("FileIDs: %q, want %q", got, want)
	}
	r := &recorder{TB: t}
	if conform.CoversFile(r, []byte(comment)); r.failed {
		t.Error("CoversFile fails for good ids")
	}
	if conform.CoversFile(r, []byte("covers: L26\n")); !r.failed {
		t.Error("CoversFile accepts L26")
	}
}

func TestConformancePageIsFresh(t *testing.T) {
	root, err := report.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Generate(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(report.OutputPath)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale; run: go run ./internal/conform/gen", report.OutputPath)
	}
}
