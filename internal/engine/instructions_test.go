package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/instructions"
	"github.com/turnwright/turnwright/internal/loop"
)

// TestPreludeAfterCompaction reads the files again when the conversation was
// compacted, and only then.
func TestPreludeAfterCompaction(t *testing.T) {
	conform.Covers(t, "C-53")
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "CLAUDE.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &Session{cfg: Config{Instructions: instructions.New(instructions.Config{Dir: dir, Project: true})}}
	has := func(want string) {
		t.Helper()
		blocks := s.prelude(t.Context())
		if len(blocks) != 1 || !strings.Contains(blocks[0].Text(), want) {
			t.Errorf("the prelude is %v, want %q in it", blocks, want)
		}
	}
	write("the old text")
	has("the old text")
	write("the new text")
	s.do(loop.Ready{Entries: []loop.Entry{{Kind: loop.KindUser, User: &loop.UserEntry{}}}})
	has("the old text")
	s.do(loop.Ready{Entries: []loop.Entry{{Kind: loop.KindSystem, System: &loop.SystemEntry{}}}})
	has("the new text")
	if err := os.Remove(filepath.Join(dir, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	s.do(loop.Ready{Entries: []loop.Entry{{Kind: loop.KindSystem, System: &loop.SystemEntry{}}}})
	if blocks := s.prelude(t.Context()); len(blocks) != 0 {
		t.Errorf("of no file comes %v", blocks)
	}
}
