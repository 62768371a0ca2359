package file

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/turnwright/turnwright/internal/vfs"
)

// Many more users than places: all get on, and never more than the places are
// taken.
func TestPoolIsBounded(t *testing.T) {
	const places, users, rounds = 3, 20, 200
	mem := vfs.NewMem()
	p := newPool(places)
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			var h handle
			for range rounds {
				f, err := p.borrow(&h, func() (vfs.File, error) {
					return mem.OpenFile(fmt.Sprintf("%s%d", root, u), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
				})
				if err != nil {
					t.Error(err)
					return
				}
				if n := mem.OpenFiles(); n > places {
					t.Errorf("%d files are open", n)
				}
				if _, err := f.Write([]byte("x")); err != nil {
					t.Error(err)
				}
				p.put(&h)
				p.take()
				p.give()
			}
			p.drop(&h)
		})
	}
	wg.Wait()
	if n := mem.OpenFiles(); n != 0 || p.used != 0 || p.open.Len() != 0 {
		t.Errorf("%d files are open, %d places used", n, p.used)
	}
	// A failed open gives its place back.
	for range places + 1 {
		var h handle
		if _, err := p.borrow(&h, func() (vfs.File, error) { return nil, os.ErrPermission }); err == nil {
			t.Error("no error")
		}
	}
}

var root = func() string {
	if os.PathSeparator == '\\' {
		return `C:\`
	}
	return "/"
}()
