package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// TestApprovedPath has a directory become a link, or a link lead elsewhere,
// between the judgement of a call and the call.
func TestApprovedPath(t *testing.T) {
	conform.Covers(t, "P-87", "P-88")
	for name, input := range map[string]func(at string) in{
		"Write": func(at string) in { return file(filepath.Join(at, "new"), "made") },
		"Edit":  func(at string) in { return edit(filepath.Join(at, "f"), "inside", "changed") },
		"NotebookEdit": func(at string) in {
			return in{"notebook_path": filepath.Join(at, "n.ipynb"), "new_source": "x", "cell_id": "cell-0"}
		},
		"Read": func(at string) in { return in{"file_path": filepath.Join(at, "f")} },
		"Grep": func(at string) in { return in{"pattern": ".", "path": at, "output_mode": "content"} },
		"Glob": func(at string) in { return in{"pattern": "*", "path": at} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			const cells = `{"cells":[{"cell_type":"markdown","metadata":{},"source":"inside"}],"metadata":{},"nbformat":4,"nbformat_minor":4}`
			s.write("d/f", "inside\n")
			s.write("d/n.ipynb", cells)
			outside := newSession(t)
			outside.write("f", "inside canary\n")
			outside.write("n.ipynb", strings.Replace(cells, "inside", "canary", 1))
			outside.write("canary", "canary")
			link := func(name, to string) {
				t.Helper()
				if err := os.Symlink(to, s.path(name)); err != nil {
					t.Skip("no symbolic links here:", err)
				}
			}
			link("link", s.path("d"))
			for _, in := range []string{"f", "n.ipynb"} {
				s.read(map[string]any{"file_path": s.path("d/" + in)})
			}
			direct, ok := s.judged(name, input(s.path("d")))
			linked, ok2 := s.judged(name, input(s.path("link")))
			if !ok || !ok2 {
				t.Fatal("the calls would not have been allowed")
			}
			tl, _, _ := s.tools.Get(name)

			// The link leads elsewhere: the file that was approved is used.
			if err := os.Remove(s.path("link")); err != nil {
				t.Fatal(err)
			}
			link("link", outside.env.Dir)
			res, err := tl.Call(t.Context(), linked)
			if err != nil {
				t.Errorf("by a link that was approved: %v", err)
			} else if strings.Contains(string(res.Structured)+res.Content[0].Text(), "canary") {
				t.Errorf("shows what is outside: %s", res.Structured)
			}
			// The directory is a link now: nothing is done.
			if err := os.Rename(s.path("d"), s.path("moved")); err != nil {
				t.Fatal(err)
			}
			link("d", outside.env.Dir)
			res, err = tl.Call(t.Context(), direct)
			if err == nil {
				t.Errorf("done all the same: %s", res.Structured)
			} else if !strings.Contains(err.Error(), "changed since it was approved") || strings.Contains(err.Error(), "canary") {
				t.Errorf("the error is %q", err)
			}
			if entries, err := os.ReadDir(outside.env.Dir); err != nil || len(entries) != 3 || outside.content("f") != "inside canary\n" {
				t.Errorf("outside has %v, %v", entries, err)
			}
			s.noTemp("moved")
		})
	}
}
