package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// ErrNewerFormat tells that a newer version wrote the journal.
var ErrNewerFormat = errors.New("the session was written by a newer version of turnwright")

// chainLine is a chain line as anybody may have written it.
type chainLine struct {
	Type       string          `json:"type"`
	Subtype    string          `json:"subtype"`
	UUID       string          `json:"uuid"`
	Sidechain  bool            `json:"isSidechain"`
	Timestamp  string          `json:"timestamp"`
	CWD        string          `json:"cwd"`
	Message    json.RawMessage `json:"message"`
	ToolResult json.RawMessage `json:"toolUseResult"`
	Meta       bool            `json:"isMeta"`
	Summary    bool            `json:"isCompactSummary"`
	Synthetic  bool            `json:"isSynthetic"`
	Origin     *message.Origin `json:"origin"`
	APIError   bool            `json:"isApiErrorMessage"`
	Error      string          `json:"error"`
	Aborted    bool            `json:"aborted"`
	CopiedFrom string          `json:"copiedFrom"`
	Compact    struct {
		Trigger   string `json:"trigger"`
		PreTokens int64  `json:"preTokens"`
	} `json:"compactMetadata"`
}

// Decode returns the entry of a line; ok is false for lines that are not ours
// to read: metadata of the clients, foreign types, side chains. A line that
// cannot be read is an error; the caller skips it with a warning (S-21),
// except for ErrNewerFormat, which refuses the session.
func Decode(line []byte) (e loop.Entry, ok bool, err error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return e, false, fmt.Errorf("journal line: %w", err)
	}
	switch head.Type {
	case "user", "assistant", "system":
		return decodeChain(line)
	case "turnwright":
		return decodeOwn(line)
	}
	return e, false, nil
}

func decodeChain(line []byte) (e loop.Entry, ok bool, err error) {
	var l chainLine
	if err := json.Unmarshal(line, &l); err != nil {
		return e, false, fmt.Errorf("journal line: %w", err)
	}
	if l.Sidechain || l.UUID == "" {
		return e, false, nil
	}
	e.Kind, e.UUID = loop.EntryKind(l.Type), l.UUID
	e.Time, _ = time.Parse(time.RFC3339Nano, l.Timestamp) // foreign lines may lack it
	switch e.Kind {
	case loop.KindUser:
		var body message.UserBody
		if err := json.Unmarshal(l.Message, &body); err != nil {
			return e, false, fmt.Errorf("journal line %s: message: %w", l.UUID, err)
		}
		u := &loop.UserEntry{
			Content: body.Content, Meta: l.Meta, Summary: l.Summary, Synthetic: l.Synthetic,
			Origin: l.Origin, Structured: l.ToolResult, CopiedFrom: l.CopiedFrom,
		}
		if l.CopiedFrom == "" && !body.Content.IsText() {
			for _, b := range body.Content.Blocks() {
				if r, isResult := b.ToolResult(); isResult {
					u.ToolUseID = r.ToolUseID
					break
				}
			}
		}
		e.User = u
	case loop.KindAssistant:
		a := &loop.AssistantEntry{
			Notice: l.APIError, Error: message.ErrorCategory(l.Error), Aborted: l.Aborted, CopiedFrom: l.CopiedFrom,
		}
		if err := json.Unmarshal(l.Message, &a.Message); err != nil {
			return e, false, fmt.Errorf("journal line %s: message: %w", l.UUID, err)
		}
		e.Assistant = a
	case loop.KindSystem:
		if l.Subtype != "compact_boundary" {
			return e, false, nil
		}
		e.System = &loop.SystemEntry{Trigger: l.Compact.Trigger, PreTokens: l.Compact.PreTokens}
	}
	return e, true, nil
}

func decodeOwn(line []byte) (e loop.Entry, ok bool, err error) {
	var l ownLine
	if err := json.Unmarshal(line, &l); err != nil {
		return e, false, fmt.Errorf("journal line: %w", err)
	}
	e.Kind = loop.EntryKind(l.Kind)
	e.Time, _ = time.Parse(time.RFC3339Nano, l.At)
	switch e.Kind {
	case loop.KindOpen:
		if l.Open == nil {
			return e, false, errNoField("open")
		}
		if l.Open.Format > Format {
			return e, false, fmt.Errorf("%w (journal format %d, this one reads up to %d)", ErrNewerFormat, l.Open.Format, Format)
		}
		e.Open = l.Open
	case loop.KindInput:
		e.Input = new(loop.InputEntry)
		err = l.Input.into("input", e.Input)
	case loop.KindCall:
		e.Call = &loop.CallEntry{Op: loop.CallOp(l.Op), Calls: l.Calls, Key: l.Key, Reason: l.Reason}
		if l.Final != nil {
			e.Call.Input = []byte(*l.Final)
		}
		if l.Denial != nil {
			e.Call.Denial = new(message.PermissionDenial)
			err = l.Denial.into("denial", e.Call.Denial)
		}
	case loop.KindTurn:
		if l.Turn == nil {
			return e, false, errNoField("turn")
		}
		e.Turn = &loop.TurnEntry{Turn: *l.Turn}
		if l.Result != nil {
			m, derr := message.Decode([]byte(*l.Result))
			r, isResult := m.(*message.Result)
			if derr != nil {
				return e, false, fmt.Errorf("journal line: result: %w", derr)
			}
			if !isResult {
				return e, false, fmt.Errorf("journal line: result: %T is no result", m)
			}
			e.Turn.Result = r
		}
	case loop.KindElide:
		e.Elide = &loop.ElideEntry{UUIDs: l.UUIDs}
	case loop.KindState:
		if l.Value == nil {
			return e, false, errNoField("value")
		}
		e.State = &loop.StateNote{Key: l.Key, Value: []byte(*l.Value)}
	default:
		return e, false, nil // a kind of a later version of the same format
	}
	return e, err == nil, err
}

func errNoField(name string) error {
	return fmt.Errorf("journal line: no %q", name)
}

func (t *text) into(name string, v any) error {
	if t == nil {
		return errNoField(name)
	}
	if err := json.Unmarshal([]byte(*t), v); err != nil {
		return fmt.Errorf("journal line: %s: %w", name, err)
	}
	return nil
}
