package settings

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzIndex: no bytes make the reader of git's index fail, and what it does not
// understand it says.
func FuzzIndex(f *testing.F) {
	entry := func(name string) []byte {
		b := make([]byte, 62)
		b[61] = byte(len(name))
		b = append(append(b, name...), 0)
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
		return b
	}
	head := func(version, n byte) []byte { return []byte{'D', 'I', 'R', 'C', 0, 0, 0, version, 0, 0, 0, n} }
	sum := make([]byte, 20)
	f.Add(append(append(head(2, 1), entry(".claude/settings.local.json")...), sum...), 20)
	f.Add(append(append(head(4, 2), entry("a")...), sum...), 20)
	f.Add(append(append(head(3, 255), entry("sub/")...), sum...), 32)
	f.Add([]byte("DIRC"), 20)
	f.Fuzz(func(t *testing.T, doc []byte, hash int) {
		if hash != 20 && hash != 32 {
			return
		}
		if found, ok := indexHas(doc, hash, ".claude/settings.local.json"); found && !ok {
			t.Error("found in an index that was not understood")
		}
	})
}

// TestTrackedFails: where nothing can be told the file may be tracked.
func TestTrackedFails(t *testing.T) {
	repo := t.TempDir()
	file := filepath.Join(repo, ".claude", "settings.local.json")
	if !tracked(repo, "relative") {
		t.Error("a path that is not absolute")
	}
	if err := os.WriteFile(filepath.Join(repo, ".git"), []byte("gitdir: /no/such/dir\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !tracked(repo, file) {
		t.Error("the gitdir is not there")
	}
	if err := os.WriteFile(filepath.Join(repo, ".git"), []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !tracked(repo, file) {
		t.Error("no gitdir")
	}
}
