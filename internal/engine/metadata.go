package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/session"
)

// metadata are the lines that listings of the clients look for: they read the
// last 64 KiB of a session and no more (K-340 to K-345).
type metadata struct {
	title, tag, prompt string
	next               string   // title that the next line gives
	mode               string   // permission mode, as a line says it (K-325)
	dirs               []string // working directories that were added, as lines say it
	since              int64    // bytes that were appended since all of them were written
	named              bool     // the title of the options was written, or is not wanted
}

const (
	// metadataReach is after how many bytes they are written again at the end
	// of a turn: well before the 64 KiB that a listing reads.
	metadataReach = 48 << 10
	lastPromptLen = 1000 // K-323
)

// lines returns what is to be written behind the entry.
func (m *metadata) lines(w *journalWriter, e loop.Entry) (out [][]byte) {
	if !m.named && e.Kind == loop.KindInput {
		m.named = true
		if m.title == "" && w.cfg.Title != "" {
			m.title = w.cfg.Title
			out = append(out, journal.TitleLine(w.enc.SessionID, m.title))
		}
	}
	if m.next != "" {
		m.title, m.next = m.next, ""
		out = append(out, journal.TitleLine(w.enc.SessionID, m.title))
	}
	if dirs := w.cfg.Dirs; !subset(dirs, m.dirs) {
		m.dirs = append(slices.Clone(m.dirs), dirs...)
		out = append(out, w.enc.DirsLine(dirs))
	}
	if e.Kind == loop.KindOpen && e.Open.Mode != "" && e.Open.Mode != m.mode {
		m.mode = e.Open.Mode
		out = append(out, journal.ModeLine(w.enc.SessionID, m.mode))
	}
	if e.Kind == loop.KindUser && isPrompt(e.User) {
		if text := cut(strings.TrimSpace(e.User.Content.Text()), lastPromptLen); text != "" {
			m.prompt = text
			out = append(out, journal.PromptLine(w.enc.SessionID, text))
		}
	}
	return out
}

// again returns all of them when a turn has ended and they are too far from
// the end. What somebody else wrote meanwhile holds (K-345).
func (m *metadata) again(ctx context.Context, w *journalWriter, size int64) (out [][]byte) {
	if m.since+size < metadataReach {
		return nil
	}
	if t, ok := w.open.(session.Tailer); ok {
		if tail, err := t.Tail(ctx, session.SummaryBytes); err == nil {
			m.refresh(tail)
		}
	}
	for _, l := range []struct {
		line  func(session, value string) []byte
		value string
	}{
		{journal.TitleLine, m.title}, {journal.TagLine, m.tag}, {journal.PromptLine, m.prompt},
	} {
		if l.value != "" {
			out = append(out, l.line(w.enc.SessionID, l.value))
		}
	}
	if len(m.dirs) > 0 {
		out = append(out, w.enc.DirsLine(m.dirs))
	}
	return out
}

// subset reports whether all of a is in b.
func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

// refresh takes over title and tag from the end of the session. A line that is
// cut off at the beginning does not parse.
func (m *metadata) refresh(tail []byte) {
	for line := range strings.Lines(string(tail)) {
		var l struct {
			Type        string  `json:"type"`
			CustomTitle *string `json:"customTitle"`
			Tag         *string `json:"tag"`
		}
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		switch {
		case l.Type == "custom-title" && l.CustomTitle != nil:
			m.title = *l.CustomTitle
		case l.Type == "tag" && l.Tag != nil:
			m.tag = *l.Tag
		}
	}
}

// resumed takes over what the session's lines say.
func (m *metadata) resumed(t *journal.Transcript) {
	m.title, m.tag, m.prompt, m.mode, m.since = t.Title, t.Tag, t.LastPrompt, t.Mode, t.Behind
	m.dirs = t.Dirs
}

// isPrompt reports a message that somebody sent.
func isPrompt(u *loop.UserEntry) bool {
	return u.ToolUseID == "" && !u.Meta && !u.Summary && !u.Synthetic && u.CopiedFrom == ""
}

func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
