package settings

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// settled is how long after its last change a file is read again although it
// looks the same: a change may come within one tick of the file system's clock.
const settled = 2 * time.Second

// watched is a file and what it said when it was last looked at. Between two
// looks it costs nothing: no handle, no goroutine, no watch of the system.
type watched struct {
	as    Layer       // source, file and directory
	max   int64       // bytes
	info  os.FileInfo // nil: there is no such file
	at    time.Time   // of the last reading
	doc   []byte
	fault string // why it cannot be read; "": it can
	layer *Layer // what is in force; nil: nothing
	good  bool   // the file could be used once
}

// look reads the file if it has changed. What was good stays in force when the
// file breaks; of a file that is gone the protection stays.
func (w *watched) look(now time.Time) (changed bool, problems []Problem, notes []string) {
	info, err := os.Stat(w.as.File)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return w.gone()
	default:
		return w.unreadable(reason(err))
	}
	if w.info != nil && w.fault == "" && os.SameFile(info, w.info) && info.ModTime().Equal(w.info.ModTime()) &&
		info.Size() == w.info.Size() && w.at.Sub(info.ModTime()) > settled {
		return false, nil, nil
	}
	doc, err := readFile(w.as.File, info, w.max)
	if err != nil {
		w.info = info
		return w.unreadable(err)
	}
	same := w.info != nil && w.fault == "" && bytes.Equal(doc, w.doc)
	w.info, w.at, w.doc, w.fault = info, now, doc, ""
	if same {
		return false, nil, nil
	}
	r := w.as.read(doc)
	switch {
	case !r.broken:
		w.layer, w.good = r.layer, true
		return true, r.problems, r.notes
	case w.good:
		return false, append(r.problems, w.tell("; its last good state stays in force")), r.notes
	case r.layer != nil:
		w.layer = r.layer // C-16
		return true, append(r.problems, w.tell("; it is skipped, except for what it forbids")), r.notes
	}
	return false, append(r.problems, w.tell("; it is skipped")), r.notes
}

// tell says what becomes of a broken file.
func (w *watched) tell(what string) Problem {
	return Problem{File: w.as.Name(), Text: "the file cannot be used as it is" + what}
}

// gone is a file that does not exist.
func (w *watched) gone() (changed bool, problems []Problem, notes []string) {
	if w.info == nil && w.fault == "" {
		return false, nil, nil
	}
	w.info, w.doc, w.fault = nil, nil, ""
	if w.layer == nil {
		return false, nil, nil
	}
	w.layer = w.layer.only(protects)
	return true, []Problem{{File: w.as.Name(), Text: "is gone; what it forbade stays forbidden until the session ends or the file is back"}}, nil
}

// unreadable is a file that is there and cannot be read. It is told once.
func (w *watched) unreadable(err error) (changed bool, problems []Problem, notes []string) {
	if w.fault == err.Error() {
		return false, nil, nil
	}
	w.fault = err.Error()
	what := "; it is skipped"
	if w.layer != nil {
		what = "; its last good state stays in force"
	}
	return false, []Problem{{File: w.as.Name(), Text: err.Error() + what}}, nil
}
