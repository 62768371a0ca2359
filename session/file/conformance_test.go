package file_test

import (
	"testing"

	"github.com/turnwright/turnwright/internal/vfs"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
	"github.com/turnwright/turnwright/session/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) session.Store {
		return newStore(t, file.Config{ConfigDir: t.TempDir()})
	})
}

func TestStorePair(t *testing.T) {
	storetest.RunPair(t, func(t *testing.T) (a, b session.Store) {
		c := file.Config{ConfigDir: t.TempDir()}
		return newStore(t, c), newStore(t, c)
	})
}

// memStore hides that its blobs are no real files.
type memStore struct {
	session.Store
	fs *vfs.Mem
}

func (s memStore) Blob(path string) ([]byte, bool) {
	data, err := vfs.ReadFile(s.fs, path)
	return data, err == nil
}

func TestStoreOnMem(t *testing.T) {
	storetest.Run(t, func(t *testing.T) session.Store {
		fs := vfs.NewMem()
		t.Cleanup(func() {
			if n := fs.OpenFiles(); n != 0 {
				t.Errorf("%d files are still open", n)
			}
		})
		return memStore{newStore(t, file.Config{ConfigDir: home, FS: fs}), fs}
	})
}
