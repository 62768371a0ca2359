package turnwright

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/session"
)

// NoConversationError tells that there is no session with this id or title, or
// that a title is that of several (S-37, K-461).
type NoConversationError struct {
	Value  string   // as given
	Titled []string // ids of the sessions that have it as their title
}

func (e *NoConversationError) Error() string {
	if len(e.Titled) > 1 {
		return fmt.Sprintf("Several conversations are titled %q: %s", e.Value, strings.Join(e.Titled, ", "))
	}
	return "No conversation found with session ID: " + e.Value
}

// Is lets errors.Is find session.ErrNotFound where nothing was found.
func (e *NoConversationError) Is(target error) bool {
	return target == session.ErrNotFound && len(e.Titled) < 2
}

// NoMessageError tells that the session has no message that
// Options.ResumeSessionAt could mean (S-62).
type NoMessageError struct {
	UUID      string // as given
	SessionID string
}

func (e *NoMessageError) Error() string {
	return "No message found with message.uuid of: " + e.UUID
}

// DropsTurnError tells that Options.ResumeSessionAt would drop something else
// than the one turn that Options.ResumeDropsTurn allows to drop (S-63).
type DropsTurnError struct {
	UUID   string // of the turn's prompt, as given
	Reason string
}

func (e *DropsTurnError) Error() string {
	return "Resume rejected by --resume-drops-turn: " + e.Reason
}

// resumeWait is how long resuming waits for another holder of the session (S-27).
const resumeWait = 5 * time.Second

// buildResume finds the session that goes on and reads it. store is where
// sessions are; cfg.Store is nil when nothing is to be kept.
func (o *Options) buildResume(ctx context.Context, cfg *engine.Config, store session.Store) error {
	if err := o.checkResumeAt(); err != nil {
		return err
	}
	if o.Resume == "" && !o.Continue {
		if o.ForkSession {
			cfg.Warn("ForkSession changes nothing without Resume or Continue.")
		}
		return nil
	}
	if o.SessionID != "" && !o.ForkSession {
		return &OptionError{Option: "SessionID", Value: strconv.Quote(o.SessionID), Reason: "cannot be chosen with Resume or Continue, except for a fork (ForkSession)"}
	}
	finder, ok := store.(session.Finder)
	if !ok {
		return &OptionError{Option: "Store", Value: fmt.Sprintf("%T", store), Reason: "cannot look sessions up: it is no session.Finder"}
	}
	var info session.Info
	var err error
	if o.Resume != "" {
		info, err = findResumed(ctx, finder, o.Resume, cfg.Dir)
	} else if info, ok, err = newest(ctx, finder, cfg.Dir, o.ContinueAdded); err == nil && !ok {
		return nil // nothing to continue: a new session (S-55)
	}
	if err != nil {
		return err
	}
	r := &engine.Resume{Source: info.ID}
	lines := finder.Read(ctx, info)
	if !o.ForkSession {
		cfg.Loop.SessionID = info.ID
		if cfg.Store != nil {
			j, err := cfg.Store.Open(ctx, info.ID, session.OpenOptions{Dir: cfg.Dir, Project: info.Project, Wait: resumeWait})
			switch {
			case errors.Is(err, session.ErrNotFound): // all that it had was a torn line
				return &NoConversationError{Value: info.ID}
			case err != nil:
				return fmt.Errorf("Resume: %w", err)
			}
			r.Journal, lines = j, j.Load(ctx)
		}
	}
	if r.Transcript, err = o.readResumed(lines, info.ID); err != nil {
		if r.Journal != nil {
			err = errors.Join(err, r.Journal.Close())
		}
		return err
	}
	if r.Journal != nil {
		// An idle session holds no lock and no handle.
		if err := r.Journal.Release(); err != nil {
			cfg.Warn(fmt.Sprintf("Session %s: %v", info.ID, err))
		}
	}
	if n := r.Transcript.Skipped; n > 0 {
		cfg.Warn(fmt.Sprintf("Session %s: %d lines could not be read and were left out.", info.ID, n))
	}
	cfg.Resume = r
	return nil
}

// checkResumeAt checks the options that say where a session goes on from.
func (o *Options) checkResumeAt() error {
	switch {
	case o.ResumeSessionAt != "" && o.Resume == "" && !o.Continue:
		return &OptionError{Option: "ResumeSessionAt", Value: strconv.Quote(o.ResumeSessionAt), Reason: "says which message of a session to go on from: it needs Resume or Continue"}
	case o.ResumeDropsTurn == "":
		return nil
	case o.ResumeSessionAt == "":
		return &OptionError{Option: "ResumeDropsTurn", Value: strconv.Quote(o.ResumeDropsTurn), Reason: "guards ResumeSessionAt, which is not set"}
	case !uuidForm.MatchString(o.ResumeDropsTurn):
		return &OptionError{Option: "ResumeDropsTurn", Value: strconv.Quote(o.ResumeDropsTurn), Reason: "is not a UUID"}
	}
	return nil
}

// readResumed reads the session that goes on, up to where it does.
func (o *Options) readResumed(lines iter.Seq2[[]byte, error], id string) (t *journal.Transcript, err error) {
	var dropped []journal.Dropped
	if o.ResumeSessionAt == "" {
		t, err = journal.Read(lines)
	} else {
		t, dropped, err = journal.ReadTo(lines, o.ResumeSessionAt)
	}
	switch {
	case errors.Is(err, journal.ErrNoMessage):
		return nil, &NoMessageError{UUID: o.ResumeSessionAt, SessionID: id}
	case err != nil:
		return nil, fmt.Errorf("session %s cannot be read: %w", id, err)
	}
	if o.ResumeDropsTurn != "" {
		if reason := notOneTurn(dropped, o.ResumeDropsTurn); reason != "" {
			return nil, &DropsTurnError{UUID: o.ResumeDropsTurn, Reason: reason}
		}
	}
	return t, nil
}

// notOneTurn says why the dropped messages are not just the turn of this prompt
// (K-480, K-482); "" when they are. Messages that nobody sees count with any.
func notOneTurn(dropped []journal.Dropped, prompt string) string {
	begun := false
	for _, d := range dropped {
		switch {
		case d.Meta || d.Kind == loop.KindSystem:
		case d.Kind == loop.KindUser && d.User.ToolUseID == "" && !begun:
			if begun = strings.EqualFold(d.UUID, prompt); !begun {
				return fmt.Sprintf("the first prompt that would be dropped is %s, not %s", d.UUID, prompt)
			}
		case d.Kind == loop.KindUser && d.User.ToolUseID == "":
			return fmt.Sprintf("message %s would be dropped as well, which is not part of the turn of %s", d.UUID, prompt)
		case !begun:
			return fmt.Sprintf("message %s of an earlier turn would be dropped as well", d.UUID)
		}
	}
	if !begun {
		return fmt.Sprintf("no turn of prompt %s would be dropped", prompt)
	}
	return ""
}

// storedMode is the permission mode that a session keeps when it goes on and
// nothing names another: the last one, except plan and bypassPermissions (P-6).
func storedMode(entries []loop.Entry) permission.Mode {
	for _, e := range slices.Backward(entries) {
		if e.Kind != loop.KindOpen {
			continue
		}
		switch m, err := permission.ParseMode(e.Open.Mode); {
		case err != nil, m == permission.ModePlan, m == permission.ModeBypass, m == permission.ModeAuto:
			return permission.ModeDefault
		default:
			return m
		}
	}
	return permission.ModeDefault
}

// findResumed finds a session by id or by title.
func findResumed(ctx context.Context, finder session.Finder, value, dir string) (session.Info, error) {
	if uuidForm.MatchString(value) {
		info, err := finder.Find(ctx, value, dir)
		if errors.Is(err, session.ErrNotFound) {
			err = &NoConversationError{Value: value}
		}
		return info, err
	}
	list, err := finder.List(ctx, dir)
	if err != nil {
		return session.Info{}, err
	}
	var found []session.Info
	var ids []string
	for _, info := range list {
		if head, tail, err := finder.Ends(ctx, info, session.SummaryBytes); err == nil && titleOf(head, tail) == value {
			found, ids = append(found, info), append(ids, info.ID)
		}
	}
	if len(found) != 1 {
		return session.Info{}, &NoConversationError{Value: value, Titled: ids}
	}
	return found[0], nil
}

// titleOf is the last title that a person gave (S-31, S-38), which stands where
// the listing looks for it: near the end, or near the beginning (K-340, K-341,
// K-344). A line that is cut there does not parse.
func titleOf(head, tail []byte) string {
	for _, part := range [][]byte{tail, head} {
		for len(part) > 0 {
			at := bytes.LastIndexByte(part[:len(part)-1], '\n') + 1
			line := part[at:]
			part = part[:at]
			if !bytes.Contains(line, []byte(`"custom-title"`)) {
				continue
			}
			var l struct {
				Type        string `json:"type"`
				CustomTitle string `json:"customTitle"`
			}
			if json.Unmarshal(line, &l) == nil && l.Type == "custom-title" {
				return l.CustomTitle
			}
		}
	}
	return ""
}

// newest is the session of the directory with the latest message (S-51, S-52);
// with added also one of another directory that this one was added to (S-54).
func newest(ctx context.Context, finder session.Finder, dir string, added bool) (best session.Info, ok bool, err error) {
	list, err := finder.List(ctx, dir)
	if err != nil {
		return best, false, err
	}
	own := map[string]bool{} // project and id: a file may grow between two listings
	for _, info := range list {
		own[info.Project+"/"+info.ID] = true
	}
	if added {
		all, err := finder.List(ctx, "")
		if err != nil {
			return best, false, err
		}
		list = session.Newest(append(list, all...))
	}
	var last time.Time
	for _, info := range list {
		if ok && info.Modified.Before(last) {
			break // the rest was changed before the best one's last message
		}
		ours := own[info.Project+"/"+info.ID]
		if !ours && !mayAdd(ctx, finder, info) {
			continue
		}
		t, err := journal.Read(finder.Read(ctx, info))
		switch {
		case errors.Is(err, journal.ErrNewerFormat), errors.Is(err, session.ErrNotFound):
			continue
		case err != nil:
			return best, false, err
		case t.Last == "":
			continue
		}
		here := ours && (t.CWD == "" || sameDir(t.CWD, dir)) || // S-14
			added && slices.ContainsFunc(t.Dirs, func(written string) bool { return sameDir(written, dir) })
		if here && (!ok || t.Time.After(last)) {
			best, last, ok = info, t.Time, true
		}
	}
	return best, ok, nil
}

// mayAdd reports whether a session may have added directories: the line stands
// near its beginning or, like a title, near its end.
func mayAdd(ctx context.Context, finder session.Finder, info session.Info) bool {
	head, tail, err := finder.Ends(ctx, info, session.SummaryBytes)
	return err == nil && (journal.TellsDirs(head) || journal.TellsDirs(tail))
}

// sameDir compares a directory as it was written with a resolved one.
func sameDir(written, dir string) bool {
	if real, err := filepath.EvalSymlinks(written); err == nil {
		written = real
	}
	return filepath.Clean(written) == filepath.Clean(dir)
}

// titleLength is how many characters a title may have (S-82).
const titleLength = 200

// displayTitle makes a title fit to be shown (S-82).
func displayTitle(title string) string {
	title = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.C, r) {
			return ' '
		}
		return r
	}, title))
	if utf8.RuneCountInString(title) > titleLength {
		title = strings.TrimSpace(string([]rune(title)[:titleLength]))
	}
	return title
}
