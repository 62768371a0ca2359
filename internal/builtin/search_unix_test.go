//go:build unix

package builtin

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// A pipe, a socket and a loop of links: skipped below a directory, refused when
// named (B-093). A search that waited for a pipe would never end.
func TestSearchSpecialFiles(t *testing.T) {
	conform.Covers(t, "B-093")
	s := newSession(t)
	s.write("a.txt", "hit\n")
	if err := syscall.Mkfifo(s.path("p"), 0o644); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("unix", filepath.Join(s.env.Dir, "s"))
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	for link, to := range map[string]string{"loop": ".", "self": "self", "dangling": "nowhere", "top": "/"} {
		if err := os.Symlink(to, s.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	if _, out := s.grep(in{"pattern": "hit"}); slashed(out.Filenames) != "a.txt" {
		t.Errorf("Grep: %q", out.Filenames)
	}
	if _, out := s.glob(in{"pattern": "**"}); slashed(out.Filenames) != "a.txt" {
		t.Errorf("Glob: %q", out.Filenames)
	}
	s.fails("Grep", in{"pattern": "x", "path": "p"}, "named pipe")
	s.fails("Grep", in{"pattern": "x", "path": "/dev/zero"}, "device")
	s.fails("Glob", in{"pattern": "x", "path": "p"}, "named pipe")
	s.fails("Grep", in{"pattern": "x", "path": "dangling"}, "does not exist")
	if err := os.Symlink("a.txt", s.path("good")); err != nil {
		t.Fatal(err)
	}
	if _, out := s.glob(in{"pattern": "go*"}); slashed(out.Filenames) != "good" {
		t.Errorf("a link to a file: %q", out.Filenames)
	}
	if text, _ := s.grep(in{"pattern": "hit", "path": "good", "output_mode": "content"}); !strings.HasPrefix(text, "good:1:hit") {
		t.Errorf("a named link: %q", text)
	}
}
