package turnwright

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/readfile"
)

// debugLog writes what a session does to a file, a line an event:
//
//	2026-12-01T10:00:00.123Z [api] request 3: model claude-sonnet-4-5, 7 messages
//
// It holds prompts, tool inputs and results, like the transcript.
type debugLog struct {
	only, not []string // categories

	mu   sync.Mutex
	file *os.File // nil: closed
}

// openDebug opens the debug log; nil when none is wanted. The default place is
// debug/<session id>.txt in the configuration home (K-249).
func (o *Options) openDebug(home, sessionID string) (*debugLog, error) {
	if !o.Debug && o.DebugFile == "" && o.DebugFilter == "" {
		return nil, nil
	}
	d := &debugLog{}
	for part := range strings.SplitSeq(o.DebugFilter, ",") {
		part = strings.TrimSpace(part)
		if name, ok := strings.CutPrefix(part, "!"); ok {
			d.not = append(d.not, name)
		} else if part != "" {
			d.only = append(d.only, part)
		}
	}
	path := o.DebugFile
	if path == "" {
		path = filepath.Join(home, "debug", sessionID+".txt")
	}
	fail := func(err error) (*debugLog, error) {
		return nil, &OptionError{Option: "DebugFile", Value: strconv.Quote(path), Reason: "cannot be written: " + err.Error(), Err: err}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(err)
	}
	// A named pipe that nobody reads is an error and not a wait.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|readfile.Nonblock, 0o600)
	if err != nil {
		return fail(err)
	}
	d.file = f
	return d, nil
}

// wants reports whether events of the category are logged: with names in the
// filter only those, with "!name" all but those (K-103).
func (d *debugLog) wants(category string) bool {
	return (len(d.only) == 0 || slices.Contains(d.only, category)) && !slices.Contains(d.not, category)
}

// log writes an event. A disk that fails ends nothing (M-7).
func (d *debugLog) log(category, text string) {
	if !d.wants(category) {
		return
	}
	line := fmt.Sprintf("%s [%s] %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), category, strings.ReplaceAll(text, "\n", `\n`))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file != nil {
		_, _ = d.file.WriteString(line)
	}
}

// warnings takes the diagnostics of a session, from before its debug log is
// open: what was said until then is in the log as well (M-7).
type warnings struct {
	tell func(line string)

	mu    sync.Mutex
	early []string // until it is known whether there is a log
	known bool
	log   *debugLog // nil: none
}

func (w *warnings) warn(line string) {
	w.mu.Lock()
	switch {
	case !w.known:
		w.early = append(w.early, line)
	case w.log != nil:
		w.log.log("warning", line)
	}
	w.mu.Unlock()
	w.tell(line)
}

// logTo says where warnings are logged; nil: nowhere.
func (w *warnings) logTo(d *debugLog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.log = true, d
	for _, line := range w.early {
		if d != nil {
			d.log("warning", line)
		}
	}
	w.early = nil
}

func (d *debugLog) Close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file = nil
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
