package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// Format is the number of the journal format that this version writes. A
// journal with a greater one is refused.
const Format = 1

// stampForm is ISO 8601 UTC with three fraction digits (K-310).
const stampForm = "2006-01-02T15:04:05.000Z"

// Writer encodes entries of one session, in order. It links the chain: every
// chain line's parent is the chain line before it (K-374).
type Writer struct {
	SessionID string
	CWD       string
	Version   string
	GitBranch string
	Last      string // uuid of the last chain line, "" for none

	Source string            // of a fork: the session that its history is a copy of
	Origin map[string]string // of a fork: the ids that copied entries had there, by their new ones
}

// Encode returns the line of an entry, without the newline.
func (w *Writer) Encode(e loop.Entry) ([]byte, error) {
	var line []byte
	var err error
	switch e.Kind {
	case loop.KindUser, loop.KindAssistant, loop.KindSystem:
		line, err = w.chain(e)
	default:
		line, err = w.own(e)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding a %s entry: %w", e.Kind, err)
	}
	return line, nil
}

// chain writes a chain line by hand around bytes that are canonical already.
func (w *Writer) chain(e loop.Entry) ([]byte, error) {
	b := make([]byte, 0, 128)
	b = append(b, `{"type":"`...)
	b = append(b, e.Kind...)
	b = append(b, '"')
	var err error
	if e.Kind == loop.KindSystem {
		b = append(b, `,"subtype":"compact_boundary","content":"Conversation compacted"`...)
		b = appendField(b, "compactMetadata", struct {
			Trigger   string `json:"trigger"`
			PreTokens int64  `json:"preTokens"`
		}{e.System.Trigger, e.System.PreTokens})
	}
	if e.Kind == loop.KindSystem || w.Last == "" {
		b = append(b, `,"parentUuid":null`...)
	} else {
		b = appendString(b, "parentUuid", w.Last)
	}
	if e.Kind == loop.KindSystem && w.Last != "" {
		b = appendString(b, "logicalParentUuid", w.Last)
	}
	b = append(b, `,"isSidechain":false`...)
	switch e.Kind {
	case loop.KindUser:
		b, err = appendUser(b, e.User)
	case loop.KindAssistant:
		b, err = appendAssistant(b, e.Assistant)
	}
	if err != nil {
		return nil, err
	}
	b = appendString(b, "uuid", e.UUID)
	b = appendString(b, "timestamp", e.Time.UTC().Format(stampForm))
	b = appendString(b, "cwd", w.CWD)
	b = appendString(b, "sessionId", w.SessionID)
	b = appendString(b, "version", w.Version)
	if w.GitBranch != "" {
		b = appendString(b, "gitBranch", w.GitBranch)
	}
	if old, ok := w.Origin[e.UUID]; ok {
		b = appendField(b, "forkedFrom", forkedFrom{w.Source, old})
	}
	w.Last = e.UUID
	return append(b, '}'), nil
}

// forkedFrom says where an entry of a fork comes from (K-394).
type forkedFrom struct {
	Session string `json:"sessionId"`
	Message string `json:"messageUuid"`
}

func appendUser(b []byte, u *loop.UserEntry) ([]byte, error) {
	content, err := u.Content.MarshalJSON()
	if err != nil {
		return nil, err
	}
	b = append(slices.Grow(b, len(content)+len(u.Structured)+512), `,"message":{"role":"user","content":`...)
	b = append(b, content...)
	b = append(b, '}')
	if u.Structured != nil {
		c, err := message.Canonical(u.Structured)
		if err != nil {
			return nil, fmt.Errorf("tool_use_result: %w", err)
		}
		b = append(append(b, `,"toolUseResult":`...), c...)
	}
	b = appendFlag(b, "isMeta", u.Meta)
	b = appendFlag(b, "isCompactSummary", u.Summary)
	b = appendFlag(b, "isSynthetic", u.Synthetic)
	if u.Origin != nil {
		b = appendField(b, "origin", u.Origin)
	}
	if u.CopiedFrom != "" {
		b = appendString(b, "copiedFrom", u.CopiedFrom)
	}
	return b, nil
}

func appendAssistant(b []byte, a *loop.AssistantEntry) ([]byte, error) {
	m := a.Message
	content, err := message.BlockContent(m.Content...).MarshalJSON()
	if err != nil {
		return nil, err
	}
	b = append(b, `,"message":{"type":"message","role":"assistant"`...)
	b = appendString(b, "id", m.ID)
	b = appendString(b, "model", m.Model)
	b = append(append(slices.Grow(b, len(content)+512), `,"content":`...), content...)
	b = appendPointer(b, "stop_reason", m.StopReason)
	b = appendPointer(b, "stop_sequence", m.StopSequence)
	b = appendUsage(appendKey(b, "usage"), &m.Usage)
	b = append(b, '}')
	b = appendFlag(b, "isApiErrorMessage", a.Notice)
	if a.Error != "" {
		b = appendString(b, "error", string(a.Error))
	}
	b = appendFlag(b, "aborted", a.Aborted)
	if a.CopiedFrom != "" {
		b = appendString(b, "copiedFrom", a.CopiedFrom)
	}
	return b, nil
}

func appendFlag(b []byte, key string, on bool) []byte {
	if on {
		b = append(append(append(b, `,"`...), key...), `":true`...)
	}
	return b
}

func appendString(b []byte, key, v string) []byte {
	return rawjson.AppendString(appendKey(b, key), v)
}

func appendKey(b []byte, key string) []byte {
	return append(append(append(b, `,"`...), key...), `":`...)
}

// appendField appends a value of a type of ours, which always encodes.
func appendField(b []byte, key string, v any) []byte {
	raw, err := message.Encode(v)
	if err != nil {
		raw = []byte("null")
	}
	return append(appendKey(b, key), raw...)
}

// ownLine is the frame of all own lines.
type ownLine struct {
	Type    string `json:"type"`
	Kind    string `json:"kind"`
	V       int    `json:"v"`
	Session string `json:"sessionId"`
	At      string `json:"at"`
	CWD     string `json:"cwd,omitempty"`
	Stamp   string `json:"timestamp,omitempty"`

	Open   *loop.Settings `json:"open,omitempty"`
	Input  *text          `json:"input,omitempty"`
	Op     string         `json:"op,omitempty"`
	Calls  []loop.Call    `json:"calls,omitempty"`
	Key    string         `json:"key,omitempty"`
	Final  *text          `json:"finalInput,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Denial *text          `json:"denial,omitempty"`
	Turn   *loop.Turn     `json:"turn,omitempty"`
	Result *text          `json:"result,omitempty"`
	UUIDs  []string       `json:"uuids,omitempty"`
	Value  *text          `json:"value,omitempty"`
}

// The type of own lines, and the kinds of those that hold no machine's entry:
// the working directories that were added, the message that a session went on
// from, and the session that this one is a copy of.
const (
	ownType  = "turnwright"
	dirsKind = "dirs"
	cutKind  = "cut"
	forkKind = "fork"
)

// ForkLine is the first line of a copy: it tells which session it is a copy of
// (K-468), and that this program began the file.
func (w *Writer) ForkLine() []byte {
	b := []byte(`{"type":"` + ownType + `","kind":"` + forkKind + `","v":1`)
	b = appendString(b, "sessionId", w.SessionID)
	return append(appendString(b, "source", w.Source), '}')
}

// CutLine is the line that tells that the session goes on from an earlier
// message: what stands between that and this line was cut off (K-473).
func (w *Writer) CutLine(kept string) []byte {
	b := []byte(`{"type":"` + ownType + `","kind":"` + cutKind + `","v":1`)
	b = appendString(b, "sessionId", w.SessionID)
	return append(appendString(b, "kept", kept), '}')
}

// CutAt returns the message that a session goes on from, when the line is one of
// CutLine.
func CutAt(line []byte) (kept string, ok bool) {
	if !bytes.Contains(line, []byte(`"`+cutKind+`"`)) {
		return "", false
	}
	var l linkLine
	_ = json.Unmarshal(line, &l)
	return l.Kept, l.Type == ownType && l.Kind == cutKind && l.Kept != ""
}

// TitleLine and TagLine are the lines that the official clients write to rename
// and tag a session. The type comes first, without blanks: they look for these
// bytes (K-303, K-390, K-391).
func TitleLine(session, title string) []byte {
	return metaLine("custom-title", "customTitle", title, session)
}

// TagLine clears the tag with "".
func TagLine(session, tag string) []byte { return metaLine("tag", "tag", tag, session) }

// PromptLine tells listings of the last prompt (K-323).
func PromptLine(session, prompt string) []byte {
	return metaLine("last-prompt", "lastPrompt", prompt, session)
}

// ModeLine tells the permission mode (K-325).
func ModeLine(session, mode string) []byte {
	return metaLine("permission-mode", "permissionMode", mode, session)
}

func metaLine(typ, key, value, session string) []byte {
	b := appendString([]byte(`{"type":"`+typ+`"`), key, value)
	return append(appendString(b, "sessionId", session), '}')
}

// DirsLine is the line that tells of added working directories.
func (w *Writer) DirsLine(dirs []string) []byte {
	b := []byte(`{"type":"` + ownType + `","kind":"` + dirsKind + `","v":1`)
	b = appendString(b, "sessionId", w.SessionID)
	return append(appendField(b, "dirs", dirs), '}')
}

// TellsDirs reports whether a part of a session's text may hold such a line: it
// need not be read otherwise.
func TellsDirs(part []byte) bool { return bytes.Contains(part, []byte(`"kind":"`+dirsKind+`"`)) }

// text is JSON kept as a JSON string.
type text string

func asText(v any) (*text, error) {
	raw, err := message.Encode(v)
	if err != nil {
		return nil, err
	}
	return new(text(raw)), nil
}

func (w *Writer) own(e loop.Entry) ([]byte, error) {
	switch e.Kind {
	case loop.KindCall:
		return w.call(e)
	case loop.KindTurn:
		return w.turn(e)
	}
	l := ownLine{
		Type: "turnwright", Kind: string(e.Kind), V: 1, Session: w.SessionID,
		At: e.Time.UTC().Format(time.RFC3339Nano),
	}
	var err error
	switch e.Kind {
	case loop.KindOpen:
		s := *e.Open
		s.Format, s.Version = Format, w.Version
		l.Open = &s
		// The first prompt may be longer than what a listing reads, and stands in
		// the file twice, so directory and time are told before it (K-348).
		l.CWD, l.Stamp = w.CWD, e.Time.UTC().Format(stampForm)
	case loop.KindInput:
		l.Input, err = asText(e.Input)
	case loop.KindElide:
		l.UUIDs = e.Elide.UUIDs
	case loop.KindState:
		l.Key, l.Value = e.State.Key, new(text(e.State.Value))
	default:
		err = fmt.Errorf("unknown kind %q", e.Kind)
	}
	if err != nil {
		return nil, err
	}
	return message.Encode(l)
}
