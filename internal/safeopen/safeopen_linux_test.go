package safeopen

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"golang.org/x/sys/unix"
)

// bothWays runs a test with openat2 and as on a kernel without it.
func bothWays(t *testing.T, f func(t *testing.T)) {
	t.Run("openat2", func(t *testing.T) {
		if !hasOpenat2() {
			t.Skip("no openat2 here")
		}
		f(t)
	})
	t.Run("steps", func(t *testing.T) {
		before := hasOpenat2
		hasOpenat2 = func() bool { return false }
		defer func() { hasOpenat2 = before }()
		f(t)
	})
}

// world makes a directory with a file "d/e/f", and links to each part of the way.
func world(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "d", "e"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "d", "e", "f"), []byte("text"), 0o644)
	}
	for link, to := range map[string]string{"dlink": "d", "d/elink": "e", "d/e/flink": "f", "gone": "nowhere"} {
		err = errors.Join(err, os.Symlink(to, filepath.Join(dir, link)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOpen(t *testing.T) {
	conform.Covers(t, "P-88")
	bothWays(t, func(t *testing.T) {
		dir := world(t)
		for path, want := range map[string]error{
			"d/e/f": nil, "d/e": nil, "": nil,
			"dlink": ErrMoved, "dlink/e/f": ErrMoved, "d/elink/f": ErrMoved, "d/e/flink": ErrMoved, "gone": ErrMoved, "gone/x": ErrMoved,
			"d/e/missing": fs.ErrNotExist, "d/missing/f": fs.ErrNotExist, "d/e/f/x": syscall.ENOTDIR,
		} {
			path = filepath.Join(dir, path)
			f, err := Open(path, os.O_RDONLY, 0)
			if !errors.Is(err, want) {
				t.Errorf("Open %s: %v, want %v", path, err, want)
			}
			if err == nil {
				f.Close()
			}
			if _, err := Mode(path); !errors.Is(err, want) {
				t.Errorf("Mode %s: %v, want %v", path, err, want)
			}
		}
		if _, err := Mode("/"); err != nil {
			t.Error(err)
		}
		for path, want := range map[string]error{"d/e": nil, "dlink": ErrMoved, "dlink/e": ErrMoved, "d/e/f": syscall.ENOTDIR, "d/elink": ErrMoved, "x": fs.ErrNotExist} {
			d, err := OpenDir(filepath.Join(dir, path))
			if !errors.Is(err, want) {
				t.Errorf("OpenDir %s: %v, want %v", path, err, want)
			}
			if err == nil {
				d.Close()
			}
			root, err := OpenRoot(filepath.Join(dir, path))
			if !errors.Is(err, want) {
				t.Errorf("OpenRoot %s: %v, want %v", path, err, want)
			}
			if err == nil {
				root.Close()
			}
		}
	})
}

func TestMakeDir(t *testing.T) {
	conform.Covers(t, "P-88")
	bothWays(t, func(t *testing.T) {
		dir := world(t)
		for path, want := range map[string]error{"d/new/deeper": nil, "d/e": nil, "dlink/new": ErrMoved, "gone/new": ErrMoved, "d/e/f/new": syscall.ENOTDIR} {
			d, err := MakeDir(filepath.Join(dir, path))
			if !errors.Is(err, want) {
				t.Errorf("MakeDir %s: %v, want %v", path, err, want)
			}
			if err == nil {
				d.Close()
			}
		}
		for _, path := range []string{"nowhere", "d/new/new"} {
			if _, err := os.Lstat(filepath.Join(dir, path)); err == nil {
				t.Errorf("%s was made", path)
			}
		}
	})
}

// TestDir works in a directory that is moved away meanwhile.
func TestDir(t *testing.T) {
	conform.Covers(t, "P-88")
	bothWays(t, func(t *testing.T) {
		dir := world(t)
		d, err := OpenDir(filepath.Join(dir, "d", "e"))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "moved")); err != nil {
			t.Fatal(err)
		}
		f, err := d.Open("new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("made")
		if err = errors.Join(err, f.Close(), d.Link("new", "second"), d.Rename("new", "third"), d.Remove("second")); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "moved", "e", "third")); err != nil || string(text) != "made" {
			t.Errorf("%q, %v", text, err)
		}
		if err := d.Link("third", "f"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a name that is taken: %v", err)
		}
		if _, err := d.Open("flink", os.O_RDONLY, 0); !errors.Is(err, ErrMoved) {
			t.Errorf("a link: %v", err)
		}
		if info, err := d.Lstat("flink"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("Lstat of a link: %v, %v", info, err)
		}
	})
}

// TestOpenRace opens a file while a directory above it is exchanged for a link.
func TestOpenRace(t *testing.T) {
	conform.Covers(t, "P-87", "P-88")
	bothWays(t, func(t *testing.T) {
		dir := world(t)
		outside := t.TempDir()
		err := errors.Join(os.Mkdir(filepath.Join(outside, "e"), 0o755), os.WriteFile(filepath.Join(outside, "e", "f"), []byte("canary"), 0o644),
			os.Symlink(outside, filepath.Join(dir, "link")))
		if err != nil {
			t.Fatal(err)
		}
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !stop.Load() {
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "d"), unix.AT_FDCWD, filepath.Join(dir, "link"), unix.RENAME_EXCHANGE)
			}
		}()
		opened, moved := 0, 0
		for range 3000 {
			f, err := Open(filepath.Join(dir, "d", "e", "f"), os.O_RDONLY, 0)
			switch {
			case errors.Is(err, ErrMoved):
				moved++
				continue
			case err != nil:
				t.Errorf("unexpected: %v", err)
				continue
			}
			opened++
			text, err := io.ReadAll(f)
			f.Close()
			if err != nil || string(text) != "text" {
				t.Errorf("opened %q, %v", text, err)
			}
		}
		stop.Store(true)
		<-done
		t.Logf("opened %d times, moved %d times", opened, moved)
	})
}
