//go:build unix

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/vfs"
	"pgregory.net/rapid"
)

// fileState is how a file is, as the model sees it.
type fileState struct {
	kind string // "", "file", "special"
	text string
	mode fs.FileMode
	hard bool // it has a further name
}

func (s fileState) is(o fileState) bool {
	return s.kind == o.kind && s.text == o.text && s.mode == o.mode
}

// world is the model: the states that every checkpoint must give back.
type world struct {
	t     *rapid.T
	dir   string // the user's files
	mem   *vfs.Mem
	h     *History
	paths []string
	names []string // further hard links that there were

	messages []string
	trees    map[string]map[string]fileState // of the tracked files, by checkpoint
	first    map[string]fileState            // before a tool changed a file for the first time
	soft     map[string]bool                 // checkpoints that a power loss may take
	made     int
	cut      int // operations until the power fails; -1: it does not
	after    *vfs.Mem
}

var errPower = errors.New("the power is gone")

// open starts a process on what is on disk.
func (w *world) open() {
	w.cut, w.after = -1, nil
	w.h = New(Config{Dir: filepath.Join(filepath.Dir(w.dir), "history", "session"), FS: vfs.WithFaults(w.mem, func(op vfs.Op) error {
		switch {
		case w.after != nil:
			return &fs.PathError{Op: "io", Path: op.Name, Err: errPower}
		case w.cut == 0:
			w.after = w.mem.Crash(w.loss())
			return &fs.PathError{Op: "io", Path: op.Name, Err: errPower}
		case w.cut > 0:
			w.cut--
		}
		return nil
	})})
}

// loss is what a power loss leaves.
func (w *world) loss() vfs.Crash {
	seed := rapid.Uint64().Draw(w.t, "loss")
	r := rand.New(rand.NewPCG(seed, 0))
	return vfs.Crash{
		Power: seed%4 != 0, Zeros: seed%3 == 0, KeepNames: seed%5 == 0,
		Keep: func(_ string, unsynced int) int { return r.IntN(unsynced + 1) },
	}
}

// look is how a file is now.
func (w *world) look(path string) fileState {
	full := filepath.Join(w.dir, path)
	for up := filepath.Dir(full); len(up) > len(w.dir); up = filepath.Dir(up) {
		if info, err := os.Lstat(up); err == nil && !info.IsDir() {
			return fileState{kind: "special"}
		}
	}
	info, err := os.Lstat(full)
	if err != nil {
		return fileState{}
	}
	if !info.Mode().IsRegular() {
		return fileState{kind: "special"}
	}
	text, err := os.ReadFile(full)
	if err != nil {
		w.t.Fatal(err)
	}
	return fileState{"file", string(text), info.Mode(), info.Sys().(*syscall.Stat_t).Nlink > 1}
}

func (w *world) tree() map[string]fileState {
	all := map[string]fileState{}
	for _, p := range w.paths {
		all[p] = w.look(p)
	}
	return all
}

// message begins a checkpoint.
func (w *world) message() {
	w.made++
	id := fmt.Sprintf("message-%d", w.made)
	before := w.tree()
	err := w.h.Begin(id)
	if w.after != nil {
		w.restart()
		if _, ok := w.h.known[id]; !ok {
			return
		}
	} else if err != nil {
		w.t.Fatalf("Begin: %v", err)
	}
	w.messages = append(w.messages, id)
	w.trees[id] = map[string]fileState{}
	for p := range w.first {
		w.trees[id][p] = before[p]
	}
	w.soft[id] = true
}

// edit is a tool that changes a file.
func (w *world) edit(path string) {
	now := w.look(path)
	full := filepath.Join(w.dir, path)
	if now.kind == "special" {
		return // the tools change regular files; what a link leads to is another path
	}
	err := w.h.Track(full, full)
	if w.after != nil {
		w.restart()
		if _, known := w.first[path]; !known && w.h.files[full] != nil {
			w.first[path] = now
		}
		return // the process died before it changed anything
	}
	if err != nil {
		w.t.Fatalf("Track: %v", err)
	}
	if _, ok := w.first[path]; !ok {
		w.first[path] = now
		clear(w.soft) // the line of a file is on disk, and so are those before it
	}
	w.write(path)
}

func (w *world) write(path string) {
	full := filepath.Join(w.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	text := rapid.SampledFrom([]string{"", "one\n", "one\ntwo\n", "two", "\x00\x01"}).Draw(w.t, "text")
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// outside is what other programs do.
func (w *world) outside(path string) {
	full := filepath.Join(w.dir, path)
	elsewhere := filepath.Join(filepath.Dir(w.dir), "elsewhere")
	must := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	switch what := rapid.SampledFrom([]string{"write", "remove", "chmod", "dir", "link", "hard", "gone", "moved", "mend"}).Draw(w.t, "what"); what {
	case "write":
		if w.look(path).kind != "special" {
			w.write(path)
		}
	case "remove":
		if real, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil && real == filepath.Dir(full) {
			must(os.RemoveAll(full))
		}
	case "chmod":
		if w.look(path).kind == "file" {
			must(os.Chmod(full, rapid.SampledFrom([]fs.FileMode{0o600, 0o755, 0o644}).Draw(w.t, "mode")))
		}
	case "dir", "link":
		if w.look(path).kind == "special" {
			return
		}
		must(os.RemoveAll(full))
		must(os.MkdirAll(filepath.Dir(full), 0o755))
		if what == "dir" {
			must(os.Mkdir(full, 0o755))
		} else {
			must(os.Symlink(filepath.Join(elsewhere, "c"), full))
		}
	case "hard":
		if w.look(path).kind == "file" {
			w.names = append(w.names, filepath.Join(filepath.Dir(w.dir), fmt.Sprintf("name-%d", len(w.names))))
			must(os.Link(full, w.names[len(w.names)-1]))
		}
	case "gone", "moved":
		d := filepath.Join(w.dir, "d")
		must(os.RemoveAll(d))
		if what == "moved" {
			must(os.Symlink(elsewhere, d))
		}
	case "mend":
		for _, name := range w.names {
			_ = os.Remove(name)
		}
		d := filepath.Join(w.dir, "d")
		if info, err := os.Lstat(d); err == nil && !info.IsDir() {
			must(os.Remove(d))
		}
	}
}

// restart goes on with what the power loss left.
func (w *world) restart() {
	if w.after == nil {
		w.after = w.mem.Crash(w.loss())
	}
	w.mem = w.after
	w.open()
	if err := w.h.load(); err != nil {
		w.t.Fatal(err)
	}
	w.messages = slices.DeleteFunc(w.messages, func(id string) bool {
		_, known := w.h.known[id]
		if !known && !w.soft[id] {
			w.t.Fatalf("%s is lost", id)
		}
		return !known
	})
	for path := range w.first {
		if w.h.files[filepath.Join(w.dir, path)] == nil {
			w.t.Fatalf("the first state of %s is lost", path)
		}
	}
	clear(w.soft) // what a crash left is on disk
}

// rewind compares going back with the model.
func (w *world) rewind() {
	if len(w.messages) == 0 {
		if _, err := w.h.Rewind(context.Background(), "none", false); !errors.Is(err, ErrNone) {
			w.t.Fatalf("Rewind: %v", err)
		}
		return
	}
	i := rapid.IntRange(0, len(w.messages)-1).Draw(w.t, "checkpoint")
	id, dry := w.messages[i], rapid.Bool().Draw(w.t, "dry")
	want, skipped := w.tree(), 0
	var changed []string
	for _, p := range slices.Sorted(maps.Keys(w.first)) {
		old, tracked := w.trees[id][p]
		if !tracked || w.h.known[id] == 0 {
			old = w.first[p]
		}
		switch now := want[p]; {
		case old.kind == "special", now.kind == "special", now.hard:
			skipped++
		case !now.is(old):
			changed = append(changed, filepath.Join(w.dir, p))
			if !dry {
				want[p] = old
			}
		}
	}
	res, err := w.h.Rewind(context.Background(), id, dry)
	if err != nil {
		w.t.Fatalf("Rewind: %v", err)
	}
	if !slices.Equal(res.Files, changed) || res.Skipped != skipped {
		w.t.Fatalf("rewind to %s: files %v, %d skipped; want %v, %d", id, res.Files, res.Skipped, changed, skipped)
	}
	for p, s := range w.tree() {
		if !s.is(want[p]) {
			w.t.Fatalf("rewind to %s (dry: %t): %s is %+v, want %+v", id, dry, p, s, want[p])
		}
	}
}

// checkElsewhere finds what was written outside of the user's directory.
func (w *world) checkElsewhere() {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(w.dir), "elsewhere", "c"))
	if err != nil || string(text) != "not yours" {
		w.t.Fatalf("a file elsewhere was changed: %q, %v", text, err)
	}
}

// TestRandom plays edits, outside changes, messages, power losses and rewinds
// against the model.
func TestRandom(t *testing.T) {
	conform.Covers(t, "S-109", "S-112", "S-113", "S-116", "S-120", "S-122")
	rapid.Check(t, func(rt *rapid.T) {
		top, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			rt.Fatal(err)
		}
		w := &world{
			t: rt, dir: filepath.Join(top, "work"), mem: vfs.NewMem(),
			paths: []string{"a", "b", "d/c", "d/e/f"},
			trees: map[string]map[string]fileState{}, first: map[string]fileState{}, soft: map[string]bool{},
		}
		for _, dir := range []string{"work/d/e", "elsewhere/e"} {
			if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
				rt.Fatal(err)
			}
		}
		for _, file := range []string{"elsewhere/c", "elsewhere/e/f", "work/a", "work/d/c"} {
			if err := os.WriteFile(filepath.Join(top, file), []byte("not yours"), 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		w.open()
		path := rapid.SampledFrom(w.paths)
		rt.Repeat(map[string]func(*rapid.T){
			"message": func(*rapid.T) { w.message() },
			"edit":    func(*rapid.T) { w.edit(path.Draw(rt, "path")) },
			"outside": func(*rapid.T) { w.outside(path.Draw(rt, "path")) },
			"rewind":  func(*rapid.T) { w.rewind() },
			"crash":   func(*rapid.T) { w.restart() },
			"cut": func(*rapid.T) {
				w.cut = rapid.IntRange(0, 20).Draw(rt, "operations")
				if rapid.Bool().Draw(rt, "message") {
					w.message()
				} else {
					w.edit(path.Draw(rt, "path"))
				}
				w.cut = -1
			},
			"": func(*rapid.T) { w.checkElsewhere() },
		})
	})
}
