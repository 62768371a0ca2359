package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/turnwright/turnwright/internal/vfs"
)

// Both file systems do the same.
func TestFS(t *testing.T) {
	for name, f := range map[string]vfs.FS{
		"OS": vfs.OS{}, "Mem": vfs.NewMem(),
		"OS with faults": vfs.WithFaults(vfs.OS{}, func(vfs.Op) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			for _, d := range parents(base) {
				if err := f.Mkdir(d, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
			}
			in := func(name string) string { return filepath.Join(base, name) }
			wantErr := func(what string, err, want error) {
				t.Helper()
				if !errors.Is(err, want) {
					t.Errorf("%s: error %v, want %v", what, err, want)
				}
			}
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}

			ok(f.Mkdir(in("d"), 0o700))
			wantErr("mkdir again", f.Mkdir(in("d"), 0o700), fs.ErrExist)
			wantErr("mkdir below nothing", f.Mkdir(in("x/y"), 0o700), fs.ErrNotExist)
			_, err := f.OpenFile(in("a"), os.O_RDONLY, 0)
			wantErr("open of nothing", err, fs.ErrNotExist)
			_, err = f.Stat(in("a"))
			wantErr("stat of nothing", err, fs.ErrNotExist)

			a, err := f.OpenFile(in("a"), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
			ok(err)
			_, err = f.OpenFile(in("a"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
			wantErr("exclusive open", err, fs.ErrExist)
			b, err := f.OpenFile(in("a"), os.O_WRONLY|os.O_APPEND, 0)
			ok(err)
			for _, file := range []vfs.File{a, b, a} {
				n, err := file.Write([]byte("xyz"))
				ok(err)
				if n != 3 {
					t.Errorf("wrote %d", n)
				}
			}
			ok(a.Sync())
			ok(f.SyncDir(base))
			buf := make([]byte, 20)
			n, err := a.ReadAt(buf, 1)
			wantErr("read to the end", err, io.EOF)
			if string(buf[:n]) != "yzxyzxyz" {
				t.Errorf("read %q", buf[:n])
			}
			_, err = a.ReadAt(buf, 100)
			wantErr("read behind the end", err, io.EOF)

			info, err := f.Stat(in("a"))
			ok(err)
			same, err := b.Stat()
			ok(err)
			if info != same || info.Size != 9 || !info.Mode.IsRegular() || info.ModTime.IsZero() {
				t.Errorf("info %+v and %+v", info, same)
			}
			if runtime.GOOS != "windows" && info.Mode != 0o600 {
				t.Errorf("mode %v", info.Mode)
			}
			dirInfo, err := f.Stat(in("d"))
			ok(err)
			if !dirInfo.Mode.IsDir() || dirInfo.ID == info.ID {
				t.Errorf("directory is %+v", dirInfo)
			}

			ok(f.Link(in("a"), in("d/link")))
			wantErr("link again", f.Link(in("a"), in("d/link")), fs.ErrExist)
			wantErr("link of nothing", f.Link(in("none"), in("d/l2")), fs.ErrNotExist)
			wantErr("link into nothing", f.Link(in("a"), in("none/l2")), fs.ErrNotExist)
			linked, err := f.Stat(in("d/link"))
			ok(err)
			if linked.ID != info.ID {
				t.Error("a link is another file")
			}
			testLocks(t, f, a, in("d/link"))
			ok(f.Truncate(in("a"), 4))
			if data, err := vfs.ReadFile(f, in("d/link")); err != nil || string(data) != "xyzx" {
				t.Errorf("after truncation: %q (%v)", data, err)
			}
			ok(a.Close())
			ok(b.Close())

			c, err := f.OpenFile(in("c"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
			ok(err)
			_, err = c.Write([]byte("new"))
			ok(err)
			ok(c.Close())
			ok(f.Rename(in("c"), in("a")))
			if data, err := vfs.ReadFile(f, in("a")); err != nil || string(data) != "new" {
				t.Errorf("after the rename: %q (%v)", data, err)
			}
			wantErr("rename of nothing", f.Rename(in("none"), in("a")), fs.ErrNotExist)
			if names, err := f.ReadDir(base); err != nil || !slices.Equal(names, []string{"a", "d"}) {
				t.Errorf("names are %v (%v)", names, err)
			}
			if err := f.Remove(in("d")); err == nil {
				t.Error("a directory with a file in it is removed")
			}
			ok(f.Remove(in("d/link")))
			ok(f.Remove(in("d")))
			wantErr("remove again", f.Remove(in("d")), fs.ErrNotExist)
			_, err = f.ReadDir(in("d"))
			wantErr("list of nothing", err, fs.ErrNotExist)
		})
	}
}

// testLocks: locks are on the file, whatever its name, and between opens of one
// process as well.
func testLocks(t *testing.T, f vfs.FS, a vfs.File, link string) {
	t.Helper()
	b, err := f.OpenFile(link, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	try := func(file vfs.File, exclusive, want bool) {
		t.Helper()
		if got, err := file.TryLock(exclusive); got != want || err != nil {
			t.Errorf("TryLock(%v) = %v, %v", exclusive, got, err)
		}
	}
	try(a, true, true)
	try(b, true, false)
	try(b, false, false)
	c, err := f.OpenFile(link, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close() // closing another one unlocks nothing
	try(b, true, false)
	d, err := f.OpenFile(link, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" { // changes no lock in place
		try(a, false, true)
		try(b, false, true)
		try(d, true, false)
		try(a, true, false)
	}
	_ = b.Close()
	_ = d.Close()
}

// parents lists the directories above dir, and dir, from the top.
func parents(dir string) []string {
	var up []string
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		up = append(up, dir)
	}
	slices.Reverse(up)
	return up
}

var root = filepath.VolumeName(os.TempDir()) + string(filepath.Separator)

func write(t *testing.T, f vfs.FS, name, data string, sync bool) {
	t.Helper()
	file, err := f.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // memory
	if _, err := file.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := file.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCrash(t *testing.T) {
	a, b, c := root+"a", root+"b", root+"c"
	m := vfs.NewMem()
	write(t, m, a, "synced", true)
	if err := m.SyncDir(root); err != nil {
		t.Fatal(err)
	}
	write(t, m, a, "-rest", false)
	write(t, m, b, "no name", true)
	if err := m.Link(a, c); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		crash vfs.Crash
		want  map[string]string
	}{
		{"process", vfs.Crash{}, map[string]string{a: "synced-rest", b: "no name", c: "synced-rest"}},
		{"power", vfs.Crash{Power: true}, map[string]string{a: "synced"}},
		{"names kept", vfs.Crash{Power: true, KeepNames: true}, map[string]string{a: "synced", b: "no name", c: "synced"}},
		{"torn", vfs.Crash{Power: true, Keep: func(_ string, n int) int { return n - 3 }}, map[string]string{a: "synced-r"}},
		{"zeros", vfs.Crash{Power: true, Zeros: true, Keep: func(string, int) int { return 1 }}, map[string]string{a: "synced-\x00\x00\x00\x00"}},
	} {
		after := m.Crash(test.crash)
		for _, name := range []string{a, b, c} {
			data, err := vfs.ReadFile(after, name)
			want, there := test.want[name]
			if there != (err == nil) || string(data) != want {
				t.Errorf("%s: %s is %q (%v), want %q", test.name, name, data, err, want)
			}
		}
	}
	if data, _ := vfs.ReadFile(m, a); string(data) != "synced-rest" {
		t.Error("a crash changes the original")
	}
}

// What was removed or cut comes back when that was not synced.
func TestCrashForgetsRemoval(t *testing.T) {
	a := root + "a"
	m := vfs.NewMem()
	write(t, m, a, "long", true)
	if err := m.SyncDir(root); err != nil {
		t.Fatal(err)
	}
	if err := m.Truncate(a, 1); err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(a); err != nil {
		t.Fatal(err)
	}
	if data, err := vfs.ReadFile(m.Crash(vfs.Crash{Power: true}), a); string(data) != "long" {
		t.Errorf("after the crash: %q (%v)", data, err)
	}
}

func TestFaults(t *testing.T) {
	a := root + "a"
	m := vfs.NewMem()
	fail := vfs.OpKind("")
	f := vfs.WithFaults(m, func(op vfs.Op) error {
		if op.Kind != fail {
			return nil
		}
		if op.Kind == vfs.OpWrite {
			return &vfs.ShortWrite{N: 2, Err: syscall.ENOSPC}
		}
		return syscall.EIO
	})
	file, err := f.OpenFile(a, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	fail = vfs.OpWrite
	if n, err := file.Write([]byte("abc")); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write of %d: %v", n, err)
	}
	if data, _ := vfs.ReadFile(m, a); string(data) != "ab" {
		t.Errorf("written is %q", data)
	}
	for kind, do := range map[vfs.OpKind]func() error{
		vfs.OpOpen:     func() error { _, err := f.OpenFile(a, os.O_RDONLY, 0); return err },
		vfs.OpStat:     func() error { _, err := f.Stat(a); return err },
		vfs.OpMkdir:    func() error { return f.Mkdir(root+"d", 0o700) },
		vfs.OpRename:   func() error { return f.Rename(a, a+"2") },
		vfs.OpRemove:   func() error { return f.Remove(a) },
		vfs.OpLink:     func() error { return f.Link(a, a+"3") },
		vfs.OpTruncate: func() error { return f.Truncate(a, 0) },
		vfs.OpReadDir:  func() error { _, err := f.ReadDir(root); return err },
		vfs.OpSyncDir:  func() error { return f.SyncDir(root) },
		vfs.OpRead:     func() error { _, err := file.ReadAt(make([]byte, 1), 0); return err },
		vfs.OpSync:     file.Sync,
		vfs.OpLock:     func() error { _, err := file.TryLock(true); return err },
	} {
		fail = kind
		if err := do(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: error %v", kind, err)
		}
	}
	if names, _ := m.ReadDir(root); !slices.Equal(names, []string{"a"}) {
		t.Errorf("failed operations happened: %v", names)
	}
}
