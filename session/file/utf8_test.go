package file_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session/file"
)

// A disk that takes a part of a line leaves no part of a character behind: the
// clients' readers cannot read such a file. What the end of the process leaves
// is cut off by the next one that writes.
func TestNoHalfCharacter(t *testing.T) {
	conform.Covers(t, "K-301")
	const first, line = `{"n":"größe"}`, `{"text":"ä€😀"}`
	for n := range len(line) + 1 {
		for _, dies := range []bool{false, true} {
			mem := vfs.NewMem()
			mkdirs(t, mem, "/home")
			s := newStore(t, file.Config{ConfigDir: home, FS: mem})
			j := open(t, s, sid, dir, true)
			add(t, j, first)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			failed := false
			s = newStore(t, file.Config{ConfigDir: home, FS: vfs.WithFaults(mem, func(op vfs.Op) error {
				switch {
				case failed && dies && op.Kind.Changes():
					return syscall.EIO // nothing can be taken back
				case op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".jsonl") && !failed:
					failed = true
					return &vfs.ShortWrite{N: n, Err: syscall.ENOSPC}
				}
				return nil
			})})
			j = open(t, s, sid, dir, false)
			if err := j.Append(t.Context(), split([]string{line}), false); err == nil {
				t.Fatalf("%d bytes got through, and no error", n)
			}
			_ = j.Close()
			what := fmt.Sprintf("%d bytes of the line, the process dies: %v", n, dies)
			if got := contents(t, mem, transcript(dir)); !dies && got != first+"\n" {
				t.Errorf("%s: the file is %q", what, got)
			}
			next := newStore(t, file.Config{ConfigDir: home, FS: mem})
			j = open(t, next, sid, dir, false)
			add(t, j, line)
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			if got := contents(t, mem, transcript(dir)); !utf8.ValidString(got) || !strings.HasPrefix(got, first+"\n") || !strings.HasSuffix(got, line+"\n") {
				t.Errorf("%s: after the next write the file is %q", what, got)
			}
		}
	}
}
