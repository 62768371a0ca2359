package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/safeopen"
	"github.com/turnwright/turnwright/internal/vfs"
)

// Kept is how many checkpoints can be gone back to: the most recent ones, and
// the first (S-113, S-120).
const Kept = 100

// Config says where a history lives.
type Config struct {
	FS  vfs.FS // nil: the disk
	Dir string // of this session alone, absolute; it is made when there is something to keep
	Now func() time.Time
}

// History are the checkpoints of one session. Its methods may be called from
// several goroutines.
type History struct {
	fs  vfs.FS
	dir string
	now func() time.Time

	mu    sync.Mutex
	size  int64 // of the index as it was folded, or unread
	torn  bool  // it ends within a line
	made  bool  // the directory is there
	named bool  // the index's name is on disk
	marks []string
	known map[string]int      // index in marks
	files map[string]*tracked // by target
}

// tracked is a file that tools of the session changed, or were about to.
type tracked struct {
	path     string // as it was first named
	versions []version
	seen     look // spares reading it again
	unsaved  bool // the index does not know it: writing failed
}

// look is how a file was when its state was last compared.
type look struct {
	info fs.FileInfo
	at   time.Time
}

// New returns the history in c.Dir. Nothing is read or written yet.
func New(c Config) *History {
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &History{fs: c.FS, dir: c.Dir, now: c.Now, size: unread}
}

// Begin makes a checkpoint with the id of a user message: the files that are
// tracked, as they are now. One that is there already stays as it is. With an
// error there may be none, or one in which the state of some files is not known.
func (h *History) Begin(uuid string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.load(); err != nil {
		return err
	}
	uuid = strings.ToLower(uuid)
	if _, ok := h.known[uuid]; ok {
		return nil
	}
	l := line{Checkpoint: uuid}
	var faults []error
	for _, target := range h.targets() {
		t := h.files[target]
		if t.unsaved {
			l.Files = append(l.Files, t.versions[0])
		}
		v, changed, err := h.state(t.path, target, t)
		if changed {
			l.Files = append(l.Files, v)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", t.path, safeopen.Cause(err)))
		}
	}
	err := h.keep(&l, len(l.Files) > 0)
	if err == nil {
		h.prune()
	}
	return errors.Join(append(faults, err)...)
}

// Track keeps the state of a file that is about to be changed, unless it is
// tracked already. path is the file as the call names it, target the same with
// all links followed; both are absolute. With an error the state is lost, and a
// rewind leaves the file alone.
func (h *History) Track(path, target string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.load(); err != nil {
		return err
	}
	if h.files[target] != nil {
		return nil
	}
	v, _, err := h.state(path, target, nil)
	if err == nil {
		if err = h.keep(&line{Files: []version{v}}, true); err == nil {
			return nil
		}
	}
	if h.load() == nil && h.files[target] != nil {
		return err // the line is there, though perhaps not for good
	}
	// Were it forgotten, its next change would take what this one leaves for
	// the original.
	v = lostVersion(path, target)
	if h.append(&line{Files: []version{v}}, true) != nil {
		v.mark = len(h.marks) - 1
		h.files[target] = &tracked{path: path, versions: []version{v}, unsaved: true}
	}
	return err
}

// keep writes a line whose backups are there.
func (h *History) keep(l *line, durable bool) error {
	if slices.ContainsFunc(l.Files, func(v version) bool { return v.Backup != "" }) {
		if err := h.fs.SyncDir(h.dir); err != nil { // the names before the line that has them
			return err
		}
	}
	if err := h.append(l, durable); err != nil {
		return err
	}
	for _, v := range l.Files {
		h.files[string(v.Target)].unsaved = false
	}
	return nil
}

// unsaved are the files that the index does not know.
func (h *History) unsaved() map[string]*tracked {
	lost := map[string]*tracked{}
	for target, t := range h.files {
		if t.unsaved {
			lost[target] = t
		}
	}
	return lost
}

func (h *History) targets() []string {
	var all []string
	for target := range h.files {
		all = append(all, target)
	}
	slices.Sort(all)
	return all
}

func lostVersion(path, target string) version {
	return version{Path: name(path), Target: name(target), State: stateLost}
}

// state finds out how a file is now and keeps its contents, unless it is as in
// the last version of t (nil: there is none).
func (h *History) state(path, target string, t *tracked) (v version, changed bool, err error) {
	var last *version
	if t != nil {
		last = &t.versions[len(t.versions)-1]
	}
	v = lostVersion(path, target)
	defer func() { changed = last == nil || !v.same(last) }()
	dir, err := openDir(filepath.Dir(target))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.State = stateAbsent
		return v, false, nil
	case errors.Is(err, errMoved):
		return v, false, nil
	case err != nil:
		return v, false, err
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	f, info, err := openFile(dir, filepath.Base(target))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.State = stateAbsent
		return v, false, nil
	case errors.Is(err, errIrregular):
		return v, false, nil
	case err != nil:
		return v, false, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if last != nil && last.State == stateFile && t.seen.still(info) {
		return *last, false, nil
	}
	at := h.now()
	v.State, v.Mode = stateFile, modeBits(info.Mode())
	if last != nil && last.State == stateFile && last.Size == info.Size() && last.Mode == v.Mode {
		sum, err := hashOf(f)
		if err != nil {
			return lostVersion(path, target), false, err
		}
		if sum == last.SHA256 {
			t.seen = look{info, at}
			return *last, false, nil
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return lostVersion(path, target), false, err
		}
	}
	v.Number = 1
	if last != nil {
		v.Number = last.Number + 1
	}
	if err := h.save(&v, f); err != nil {
		return lostVersion(path, target), false, err
	}
	if t != nil {
		t.seen = look{info, at}
	}
	return v, true, nil
}

// racy is how old a file must have been when it was looked at for its state to
// tell that its contents are the same: the clocks of file systems are coarse.
const racy = 3 * time.Second

func (l look) still(now fs.FileInfo) bool {
	return l.info != nil && os.SameFile(l.info, now) && l.info.Size() == now.Size() && l.info.Mode() == now.Mode() &&
		l.info.ModTime().Equal(now.ModTime()) && l.at.Sub(now.ModTime()) > racy
}

func hashOf(r io.Reader) (string, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// save copies contents into a new backup that is on disk when it returns; its
// name is not.
func (h *History) save(v *version, r io.Reader) error {
	if err := h.makeDirs(); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(v.Target))
	for {
		v.Backup = fmt.Sprintf("%x@v%d", sum[:8], v.Number)
		f, err := h.fs.OpenFile(h.backup(v), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) { // left by a crash, or by another program
			v.Number++
			continue
		}
		if err != nil {
			return err
		}
		content := sha256.New()
		v.Size, err = io.Copy(f, io.TeeReader(r, content))
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			h.drop(v)
		}
		v.SHA256 = hex.EncodeToString(content.Sum(nil))
		return err
	}
}

func (h *History) backup(v *version) string { return filepath.Join(h.dir, v.Backup) }

// drop removes a backup; whether it could does not matter.
func (h *History) drop(v *version) {
	if v.Backup != "" {
		_ = h.fs.Remove(h.backup(v))
	}
}

// prune drops the backups that no checkpoint needs any more (S-120).
func (h *History) prune() {
	oldest := len(h.marks) - Kept
	if oldest <= 0 {
		return
	}
	for _, t := range h.files {
		for i := 1; i+1 < len(t.versions) && t.versions[i+1].mark <= oldest; i++ {
			if v := &t.versions[i]; !v.gone {
				h.drop(v)
				v.gone = true
			}
		}
	}
}

// at is the state of the file at the checkpoint with that index. Of a file that
// was not tracked then it is the first one known: nobody had changed it since.
func (t *tracked) at(mark int) *version {
	for i := len(t.versions) - 1; i > 0 && mark > 0; i-- {
		if t.versions[i].mark <= mark {
			return &t.versions[i]
		}
	}
	return &t.versions[0]
}
