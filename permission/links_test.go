package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"pgregory.net/rapid"
)

// TestLinksAreFollowed: in any tree of files and links, what is remembered of
// them leads where the system goes; what does not exist is where it would be.
func TestLinksAreFollowed(t *testing.T) {
	conform.Covers(t, "P-87", "P-88")
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(rt *rapid.T) {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			rt.Fatal(err)
		}
		part := rapid.SampledFrom(append([]string{".."}, names...))
		for range rapid.IntRange(1, 8).Draw(rt, "files") {
			at := filepath.Join(root, filepath.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(rt, "at")...))
			if strings.HasPrefix(filepath.Dir(at), root) {
				_ = os.MkdirAll(filepath.Dir(at), 0o755) // fails below a file
			}
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				_ = os.Mkdir(at, 0o755)
			case 1:
				_ = os.WriteFile(at, nil, 0o644)
			default:
				to := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "to"), "/")
				if rapid.Bool().Draw(rt, "absolute") {
					to = root + "/" + to
				}
				if os.Symlink(to, at) != nil && os.Remove(at) == nil {
					_ = os.Symlink(to, at)
				}
			}
		}
		l := &links{}
		for range 10 {
			path := root + "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(rt, "path"), "/")
			got, err := l.resolve(path)
			if want, wantErr := filepath.EvalSymlinks(path); wantErr == nil && got != want {
				rt.Fatalf("%s: %q, %v; want %q", path, got, err, want)
			}
			if err != nil {
				continue // a circle
			}
			if again, err := new(links).resolve(got); err != nil || again != got {
				rt.Fatalf("%s: %q holds a link: %q, %v", path, got, again, err)
			}
		}
	})
}
