package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"golang.org/x/sys/unix"
)

// TestSwappedWay has somebody exchange a directory, or a file, for a link to
// outside as fast as they can while calls run whose accesses were judged when the
// way led inside: nothing outside is written, shown or listed, and no temporary
// file is left anywhere.
func TestSwappedWay(t *testing.T) {
	conform.Covers(t, "P-87", "P-88")
	for name, swapped := range map[string]string{"parent": "d", "deep": "d/e", "file": "d/e/old"} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			s.write("d/e/old", "inside\n")
			outside := t.TempDir()
			const secret = "canary of outside"
			for _, dir := range []string{"", "e"} {
				if err := os.MkdirAll(filepath.Join(outside, dir), 0o755); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"old", "secretname"} {
					if err := os.WriteFile(filepath.Join(outside, dir, name), []byte(secret), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			to := outside
			switch name {
			case "deep":
				to = filepath.Join(outside, "e")
			case "file":
				to = filepath.Join(outside, "old")
			}
			link := s.path("link")
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
			swap := func() { _ = unix.Renameat2(unix.AT_FDCWD, s.path(swapped), unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) }

			calls := []struct {
				name  string
				input func(i int) in
			}{
				{"Write", func(i int) in { return file(s.path(fmt.Sprintf("d/e/new%d", i)), "made") }},
				{"Write", func(i int) in { return file(s.path(fmt.Sprintf("d/e/n%d/m/new", i)), "made") }},
				{"Write", func(i int) in { return file(s.path("d/e/old"), fmt.Sprintf("inside %d", i)) }},
				{"Edit", func(int) in { return edit(s.path("d/e/old"), "inside", "inside") }},
				{"Edit", func(int) in { return edit(s.path("d/e/old"), "canary", "changed") }},
				{"Edit", func(i int) in { return edit(s.path("d/e/old"), "inside", fmt.Sprintf("inside %d", i%7)) }},
				{"Read", func(int) in { return in{"file_path": s.path("d/e/old")} }},
				{"Read", func(int) in { return in{"file_path": s.path("d/e/secretnam")} }},
				{"Grep", func(int) in { return in{"pattern": ".", "path": s.path("d"), "output_mode": "content"} }},
				{"Grep", func(int) in { return in{"pattern": ".", "path": s.path("d/e/old"), "output_mode": "content"} }},
				{"Glob", func(int) in { return in{"pattern": "d/e/*", "path": s.env.Dir} }},
				{"Glob", func(int) in { return in{"pattern": "**", "path": s.path("d")} }},
			}
			var stop atomic.Bool
			done := make(chan struct{})
			approved, ran, refused := 0, 0, 0
			go func() {
				defer close(done)
				for !stop.Load() {
					swap()
				}
			}()
			for i := range 60 {
				for _, c := range calls {
					call, ok := s.judged(c.name, c.input(i))
					if !ok {
						continue // the gate would not have let it pass
					}
					approved++
					tl, _, _ := s.tools.Get(c.name)
					res, err := tl.Call(t.Context(), call)
					text := fmt.Sprint(err)
					if err == nil {
						ran++
						text = string(res.Structured)
						for _, b := range res.Content {
							text += b.Text()
						}
					} else if strings.Contains(text, "changed since it was approved") {
						refused++
					}
					if strings.Contains(text, secret) || strings.Contains(strings.ReplaceAll(text, "secretnam does", ""), "secretname") {
						t.Errorf("%s %s shows what is outside: %s", c.name, call.Input, text)
					}
				}
			}
			stop.Store(true)
			<-done
			t.Logf("%d calls were approved, %d ran, %d were told of the change", approved, ran, refused)
			if ran == 0 {
				t.Error("no call ran: this shows nothing")
			}
			count := 0
			if err := filepath.WalkDir(outside, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				count++
				if text, err := os.ReadFile(path); err != nil || string(text) != secret {
					t.Errorf("%s has %q, %v", path, text, err)
				}
				return nil
			}); err != nil || count != 4 {
				t.Errorf("%d files outside, %v", count, err)
			}
			for _, root := range []string{s.env.Dir, outside} {
				_ = filepath.WalkDir(root, func(path string, _ os.DirEntry, _ error) error {
					if strings.HasPrefix(filepath.Base(path), ".turnwright") {
						t.Errorf("left behind: %s", path)
					}
					return nil
				})
			}
		})
	}
}
