package checkpoint

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"golang.org/x/sys/unix"
)

// TestSwappedParent has somebody exchange the file's directory for a link while
// files are put back, over and over: nothing is written where the link leads.
func TestSwappedParent(t *testing.T) {
	conform.Covers(t, "S-116")
	s := newSession(t)
	s.write("d/e/a", "old\n")
	s.begin("m1")
	s.edit("d/e/a", "new\n")
	s.edit("d/e/b", "new\n")
	s.begin("m2")
	elsewhere := filepath.Join(s.top, "elsewhere")
	s.must(os.MkdirAll(filepath.Join(elsewhere, "e"), 0o755))
	for _, name := range []string{"a", "b"} {
		s.must(os.WriteFile(filepath.Join(elsewhere, "e", name), []byte("not yours"), 0o644))
	}
	link := s.path("link")
	s.must(os.Symlink(elsewhere, link))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, s.path("d"), unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	put, skipped := 0, 0
	for i := range 300 {
		// Errors are fine: what was looked at may be another file a moment later.
		res, _ := s.Rewind(t.Context(), []string{"m1", "m2"}[i%2], false)
		put += len(res.Files)
		skipped += res.Skipped
	}
	stop.Store(true)
	<-done
	entries, err := os.ReadDir(filepath.Join(elsewhere, "e"))
	if err != nil || len(entries) != 2 {
		t.Errorf("elsewhere: %v, %v", entries, err)
	}
	for _, name := range []string{"a", "b"} {
		text, err := os.ReadFile(filepath.Join(elsewhere, "e", name))
		if err != nil || string(text) != "not yours" {
			t.Errorf("%s elsewhere was changed: %q, %v", name, text, err)
		}
	}
	t.Logf("%d files were put back, %d skipped", put, skipped)
}

// TestOpenDir opens the directory or nothing while somebody exchanges it, or the
// one above it, for a link.
func TestOpenDir(t *testing.T) {
	conform.Covers(t, "S-116")
	for name, swapped := range map[string]string{"itself": "d/e", "above": "d"} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			s.must(os.MkdirAll(s.path("d/e"), 0o755))
			want, err := os.Lstat(s.path("d/e"))
			s.must(err)
			s.must(os.MkdirAll(filepath.Join(s.top, "elsewhere", "e"), 0o755))
			s.must(os.Symlink(filepath.Join(s.top, "elsewhere"), s.path("link")))
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				for !stop.Load() {
					_ = unix.Renameat2(unix.AT_FDCWD, s.path(swapped), unix.AT_FDCWD, s.path("link"), unix.RENAME_EXCHANGE)
				}
			}()
			opened := 0
			for range 5_000 {
				root, err := openDir(s.path("d/e"))
				if err != nil {
					continue
				}
				opened++
				have, err := root.Stat(".")
				s.must(err)
				s.must(root.Close())
				if !os.SameFile(want, have) {
					t.Error("the directory that the link leads to was opened")
					break
				}
			}
			stop.Store(true)
			<-done
			t.Logf("opened %d times", opened)
		})
	}
}
