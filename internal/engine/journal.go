package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/session"
)

// lockWait is how long a session waits for another holder (S-27).
const lockWait = 5 * time.Second

// journalWriter writes the entries of one session to its store. The session
// is opened at the first write, so that one which writes nothing leaves
// nothing (K-291).
type journalWriter struct {
	mu      sync.Mutex // tools store large outputs beside the actor's writes
	cfg     *Config
	enc     journal.Writer
	store   session.Store
	open    session.Journal
	exists  bool   // something was written
	end     string // uuid of the last message in the file: that of the chain's end, but where it has branches
	cut     bool   // the session goes on from an earlier message, which no line tells yet
	resting bool   // released: others may have continued it since
	about   metadata
	warned  bool // one warning until a write succeeds again (S-24)
}

func newJournalWriter(cfg *Config) *journalWriter {
	return &journalWriter{cfg: cfg, store: cfg.Store, enc: journal.Writer{
		SessionID: cfg.Loop.SessionID, CWD: cfg.Dir, Version: cfg.Version,
	}}
}

// write appends all entries of a step with one write.
func (w *journalWriter) write(ctx context.Context, entries []loop.Entry, sync bool) error {
	if w.store == nil || len(entries) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.writeOnce(ctx, entries, sync)
	if errors.Is(err, session.ErrChanged) { // it did not wake by a message
		if w.catchUp(ctx) != nil {
			w.cfg.Warn(fmt.Sprintf("Session %s was continued by another program meanwhile; its messages are in the file, but not known to this run.", w.cfg.Loop.SessionID))
		}
		err = w.writeOnce(ctx, entries, sync)
	}
	if err != nil {
		return w.failed(err)
	}
	w.exists, w.warned = true, false
	return nil
}

func (w *journalWriter) writeOnce(ctx context.Context, entries []loop.Entry, sync bool) error {
	last, about := w.enc.Last, w.about
	takeBack := func() { w.enc.Last, w.about = last, about } // the chain goes on where it really ends
	lines := make([][]byte, 0, len(entries)+1)
	size, ended := int64(0), false
	if w.enc.Source != "" && !w.exists {
		line := w.enc.ForkLine()
		lines, size = append(lines, line), int64(len(line))+1
	}
	if w.cut {
		line := w.enc.CutLine(last)
		lines, size = append(lines, line), int64(len(line))+1
	}
	for _, e := range entries {
		if e.Kind == loop.KindUser && isPrompt(e.User) && w.cfg.GitBranch != nil {
			w.enc.GitBranch = w.cfg.GitBranch()
		}
		line, err := w.enc.Encode(e)
		if err != nil {
			takeBack()
			return err
		}
		lines = append(lines, line)
		size += int64(len(line)) + 1
		for _, more := range w.about.lines(w, e) {
			lines = append(lines, more)
			size += int64(len(more)) + 1
		}
		ended = ended || e.Kind == loop.KindTurn && e.Turn.Result != nil
	}
	if ended {
		if more := w.about.again(ctx, w, size); more != nil {
			lines = append(lines, more...)
			size, w.about.since = 0, 0
		}
	}
	w.about.since += size
	err := w.append(ctx, lines, sync)
	var notDurable *session.SyncError
	if err != nil && !errors.As(err, &notDurable) {
		takeBack()
		return err
	}
	w.cut = false
	if w.enc.Last != last {
		w.end = w.enc.Last
	}
	return err
}

// others returns the session as others have continued it since it went idle;
// nil: they have not. It takes the lock, so that it stays as it is.
func (w *journalWriter) others(ctx context.Context) *journal.Transcript {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil || !w.resting {
		return nil
	}
	w.resting = false
	if !errors.Is(w.open.Append(ctx, nil, false), session.ErrChanged) {
		return nil // a fault shows at the next write
	}
	return w.catchUp(ctx)
}

// catchUp reads the session again, so that the chain goes on behind what others
// appended. It returns nil where they appended no message.
func (w *journalWriter) catchUp(ctx context.Context) *journal.Transcript {
	t, err := journal.Read(w.open.Load(ctx))
	if err != nil || t.End == w.end {
		return nil // after an error the next write is refused again
	}
	w.enc.Last, w.end, w.cut = t.Last, t.End, false
	return t
}

func (w *journalWriter) append(ctx context.Context, lines [][]byte, sync bool) error {
	if w.open == nil {
		j, err := w.store.Open(ctx, w.cfg.Loop.SessionID, session.OpenOptions{
			Dir: w.cfg.Dir, Create: !w.exists, Wait: lockWait,
		})
		if err != nil {
			return err
		}
		w.open = j
	}
	return w.open.Append(ctx, lines, sync)
}

// failed warns once and lets the run go on (S-24); with Durability Strict the
// engine ends the turn.
func (w *journalWriter) failed(err error) error {
	if !w.warned {
		w.warned = true
		w.cfg.Warn(fmt.Sprintf("Session %s could not be saved, recent messages may be missing on resume: %v", w.cfg.Loop.SessionID, err))
	}
	return err
}

// path is the file that the session is in; "": none, or not yet.
func (w *journalWriter) path() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, ok := w.open.(interface{ Path() string }); ok {
		return f.Path()
	}
	return ""
}

// title is the session's display title, "" for none.
func (w *journalWriter) title() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.about.title == "" && !w.about.named {
		return w.cfg.Title
	}
	return w.about.title
}

// setTitle names the session with the next write; "" changes nothing.
func (w *journalWriter) setTitle(title string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if title = strings.TrimSpace(title); title != "" {
		w.about.next = title
	}
}

func (w *journalWriter) blob(ctx context.Context, name string, data []byte) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil || w.open == nil {
		return "", errors.New("this session keeps nothing on disk")
	}
	return w.open.PutBlob(ctx, name, data)
}

// release gives back lock and handles of an idle session.
func (w *journalWriter) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		return
	}
	w.resting = true
	if err := w.open.Release(); err != nil {
		w.cfg.Warn(fmt.Sprintf("Session %s: %v", w.cfg.Loop.SessionID, err))
	}
}

func (w *journalWriter) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		return nil
	}
	err := w.open.Close()
	w.open = nil
	return err
}

func uuidText(u [16]byte) string {
	h := hex.EncodeToString(u[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
