package loop_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden parts of testdata/*.txtar anew")

// TestScenarios plays testdata/*.txtar. Each archive says what it shows, has a
// script (see line) and what came of it. After every event the checks of world
// hold, and every outcome that came before is given once more.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			conform.CoversFile(t, ar.Comment)
			part := map[string]string{}
			for _, f := range ar.Files {
				part[f.Name] = string(f.Data)
			}
			got, err := play(t, part["script"])
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				ar.Files = []txtar.File{
					{Name: "script", Data: []byte(part["script"])},
					{Name: "out", Data: []byte(got)},
				}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != part["out"] {
				t.Errorf("%s differs (go test ./internal/loop -update writes it anew)\n%s", file, firstDiff(part["out"], got))
			}
		})
	}
}

// firstDiff shows the first line that differs with a little of what is around.
func firstDiff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i < len(w) && i < len(g) && w[i] == g[i] {
			continue
		}
		from := max(0, i-4)
		return "want:\n" + strings.Join(w[from:min(len(w), i+3)], "\n") + "\ngot:\n" + strings.Join(g[from:min(len(g), i+3)], "\n")
	}
	return ""
}
