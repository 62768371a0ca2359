package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/vfs"
)

// indexName is the file that says which states there are.
const indexName = "checkpoints.jsonl"

// indexFormat is the version of its lines. A line of a newer one is not
// understood and left out.
const indexFormat = 1

// line is one line of the index: a checkpoint with the files that were found
// changed, or a file that is new.
type line struct {
	Format     int       `json:"v"`
	Checkpoint string    `json:"checkpoint,omitempty"` // uuid of the user message
	Time       time.Time `json:"time,omitzero"`
	Files      []version `json:"files,omitempty"`
}

// The states of a file.
const (
	stateFile   = "file"   // its contents are in the backup
	stateAbsent = "absent" // there was none
	stateLost   = "lost"   // it could not be kept: unreadable, no regular file, or the disk was full
)

// version is the state of a file at one moment.
type version struct {
	Path   name   `json:"path"`   // as the call named it, absolute
	Target name   `json:"target"` // the same with all links followed
	State  string `json:"state"`
	Backup string `json:"backup,omitempty"` // name of the file with the contents
	Number int    `json:"version"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits, and setuid, setgid and sticky
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256,omitempty"`

	mark int  // index of the checkpoint that it belongs to; -1: before the first
	gone bool // its backup was dropped
}

// same reports whether two states are the same.
func (v *version) same(w *version) bool {
	return v.State == w.State && v.Mode == w.Mode && v.SHA256 == w.SHA256
}

// name is the name of a file. One that is no UTF-8 is kept in base64, for JSON
// would put other bytes in its place.
type name string

func (n name) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	return json.Marshal(struct {
		Base64 []byte `json:"base64"`
	}{[]byte(n)})
}

func (n *name) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '{' {
		var v struct {
			Base64 []byte `json:"base64"`
		}
		err := json.Unmarshal(raw, &v)
		*n = name(v.Base64)
		return err
	}
	return json.Unmarshal(raw, (*string)(n))
}

// load folds the index, unless it is as it was at the last look: another
// process may have gone on with the session meanwhile.
func (h *History) load() error {
	info, err := h.fs.Stat(h.index())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.made, h.named = false, false // also when somebody removed what was there
	case err != nil:
		return err
	}
	if info.Size == h.size {
		return nil
	}
	var data []byte
	if info.Size > 0 {
		if data, err = vfs.ReadFile(h.fs, h.index()); err != nil {
			return err
		}
	}
	lost := h.unsaved()
	h.marks, h.known, h.files = nil, map[string]int{}, map[string]*tracked{}
	for text := range bytes.Lines(data) {
		var l line
		// A line that was torn by a crash counts for nothing: what it tells of
		// was not changed yet.
		if json.Unmarshal(text, &l) == nil && l.Format == indexFormat {
			h.apply(&l)
		}
	}
	h.size, h.torn = int64(len(data)), len(data) > 0 && data[len(data)-1] != '\n'
	for target, t := range lost {
		if h.files[target] == nil {
			h.files[target] = t
		}
	}
	return nil
}

// unread is the size of an index that has not been looked at.
const unread = -1

func (h *History) index() string { return filepath.Join(h.dir, indexName) }

// apply takes a line of the index.
func (h *History) apply(l *line) {
	if l.Checkpoint != "" {
		h.known[l.Checkpoint] = len(h.marks)
		h.marks = append(h.marks, l.Checkpoint)
	}
	for _, v := range l.Files {
		v.mark = len(h.marks) - 1
		target := string(v.Target)
		t := h.files[target]
		if t == nil {
			t = &tracked{path: string(v.Path)}
			h.files[target] = t
		}
		t.versions = append(t.versions, v)
	}
}

// append writes a line behind the others, and applies it when it is there.
func (h *History) append(l *line, sync bool) error {
	l.Format, l.Time = indexFormat, h.now().UTC().Truncate(time.Millisecond)
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if h.torn { // the rest of a line that a crash cut off stays a line of its own
		text = append([]byte{'\n'}, text...)
	}
	if err := h.appendText(append(text, '\n'), sync); err != nil {
		h.size = unread // what of it is there is found out by reading
		return err
	}
	h.torn = false
	h.apply(l)
	return nil
}

func (h *History) appendText(text []byte, sync bool) error {
	if err := h.makeDirs(); err != nil {
		return err
	}
	f, err := h.fs.OpenFile(h.index(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && sync {
		err = f.Sync()
	}
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return err
	}
	if sync && !h.named {
		if err := h.fs.SyncDir(h.dir); err != nil {
			return err
		}
		h.named = true
	}
	if h.size+int64(len(text)) == info.Size {
		h.size = info.Size
	} else {
		h.size = unread // somebody else appends too
	}
	return nil
}

// makeDirs makes the directory of the session and those above it, only for the
// owner (S-22).
func (h *History) makeDirs() error {
	if h.made {
		return nil
	}
	var missing []string
	for dir := h.dir; ; dir = filepath.Dir(dir) {
		if _, err := h.fs.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		missing = append(missing, dir)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := h.fs.Mkdir(missing[i], 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := h.fs.SyncDir(filepath.Dir(missing[i])); err != nil {
			return err
		}
	}
	h.made = true
	return nil
}
