//go:build linux || darwin

package builtin

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"golang.org/x/sys/unix"
)

func TestWriteKeepsAttributes(t *testing.T) {
	conform.Covers(t, "T-67")
	s := newSession(t)
	path := s.write("f", "one")
	if err := unix.Setxattr(path, "user.test", []byte("kept"), 0); err != nil {
		t.Skip("no extended attributes here:", err)
	}
	s.read(in{"file_path": path})
	s.text("Write", file(path, "two"))
	value := make([]byte, 10)
	if n, err := unix.Getxattr(path, "user.test", value); err != nil || string(value[:n]) != "kept" || s.content("f") != "two" {
		t.Errorf("attribute %q, content %q, %v", value[:max(0, n)], s.content("f"), err)
	}
	s.noTemp(".")
}

func TestWriteKeepsOwner(t *testing.T) {
	conform.Covers(t, "T-67")
	if os.Geteuid() != 0 {
		t.Skip("only the superuser has files of others")
	}
	s := newSession(t)
	path := s.write("f", "one")
	if err := errors.Join(os.Chown(path, 12345, 23456), os.Chmod(path, 0o4750|os.ModeSetuid)); err != nil {
		t.Skip("the owner cannot be changed here:", err)
	}
	s.read(in{"file_path": path})
	s.text("Write", file(path, "two"))
	s.text("Edit", edit(path, "two", "three"))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if st.Uid != 12345 || st.Gid != 23456 || info.Mode() != 0o750|os.ModeSetuid || s.content("f") != "three" {
		t.Errorf("owner %d:%d, mode %v, content %q", st.Uid, st.Gid, info.Mode(), s.content("f"))
	}
}

// TestReplaceOthersFile writes a file of another owner, which may be written
// but not given back to them: in place, so that the owner stays.
func TestReplaceOthersFile(t *testing.T) {
	conform.Covers(t, "T-67")
	info, err := os.Stat("/dev/null") // some file of root
	if err != nil || os.Geteuid() == 0 {
		t.Skip("needs an ordinary user")
	}
	path := t.TempDir() + "/f"
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if keepOwner(f, info) {
		t.Error("an ordinary user gave a file away")
	}
}
