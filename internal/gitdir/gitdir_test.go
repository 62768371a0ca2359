package gitdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAt(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for text, want := range map[string]string{
		"gitdir: " + elsewhere + "\n": elsewhere, "gitdir:../main/.git/worktrees/w": "../main/.git/worktrees/w",
		"": "", "gitdir:": "", "elsewhere": "", "gitdir: " + strings.Repeat("x", maxPointer): "",
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, ".git"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if want != "" && !filepath.IsAbs(want) {
			want = filepath.Join(root, want)
		}
		if got, err := At(root); got != want || (err == nil) != (want != "") {
			t.Errorf("%.40q: %s, %v", text, got, err)
		}
	}
	root := t.TempDir()
	if _, err := At(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no repository: %v", err)
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := At(root); err != nil || got != filepath.Join(root, ".git") {
		t.Errorf("%s, %v", got, err)
	}
}
