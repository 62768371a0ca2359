//go:build unix

package readfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// Whatever a name leads to is read to a bound, or refused with its name.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, size int) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	sparse := file("sparse", 1)
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		size       int
		err        string
	}{
		{"a file", file("small", 100), 100, ""},
		{"an empty one", file("empty", 0), 0, ""},
		{"at the bound", file("bound", 1<<20), 1 << 20, ""},
		{"above it", file("above", 1<<20+1), 0, "above: is larger than 1 MiB"},
		{"far above it", sparse, 0, "sparse: is larger than 1 MiB"},
		{"a device without end", "/dev/zero", 0, "/dev/zero: is larger than 1 MiB"},
		{"a device with an end", "/dev/null", 0, ""},
		{"a directory", dir, 0, "is a directory"},
		{"nothing", filepath.Join(dir, "none"), 0, "none: no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conform.Covers(t, "K-61", "K-63")
			text, err := Whole(t.Context(), tt.path, 1<<20)
			if len(text) != tt.size {
				t.Errorf("%d bytes", len(text))
			}
			if err == nil && tt.err != "" || err != nil && (tt.err == "" || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// A named pipe is read to its end, to the bound, or until the context ends:
// while nobody has opened its other end, and while its writer is silent.
func TestPipe(t *testing.T) {
	pipe := func(t *testing.T) string {
		at := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(at, 0o600); err != nil {
			t.Skip(err)
		}
		return at
	}
	write := func(t *testing.T, at string, n int, hold <-chan struct{}, wrote func()) {
		go func() {
			f, err := os.OpenFile(at, os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			_, _ = f.Write(make([]byte, n)) // fails where the reader has enough
			wrote()
			<-hold
		}()
	}
	over := make(chan struct{})
	close(over)
	t.Run("whole", func(t *testing.T) {
		at := pipe(t)
		write(t, at, 300_000, over, func() {})
		if text, err := Whole(t.Context(), at, 1<<20); len(text) != 300_000 || err != nil {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		at := pipe(t)
		write(t, at, 4<<20, over, func() {})
		if text, err := Whole(t.Context(), at, 1<<20); text != nil || err == nil || !strings.Contains(err.Error(), "larger") {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
	t.Run("nobody writes", func(t *testing.T) {
		at := pipe(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Whole(ctx, at, 1<<20); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a silent writer", func(t *testing.T) {
		at := pipe(t)
		ctx, cancel := context.WithCancel(t.Context())
		hold := make(chan struct{})
		defer close(hold)
		write(t, at, 10, hold, cancel)
		if _, err := Whole(ctx, at, 1<<20); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
