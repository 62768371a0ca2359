package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/session"
)

// Outline says how the lines of a session belong together, without what they
// say: so much memory as there are lines, however long they are.
type Outline struct {
	r    *reader
	leaf int
}

// ReadOutline reads lines as Read does, or as ReadTo with a uuid.
func ReadOutline(lines iter.Seq2[[]byte, error], upTo string) (*Outline, error) {
	r, err := collect(lines, true)
	if err != nil {
		return nil, err
	}
	o := &Outline{r, r.leaf()}
	if upTo != "" {
		if o.leaf, err = r.message(upTo); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Title is the last title that a person gave; "" for none.
func (o *Outline) Title() string { return o.r.t.Title }

// Empty reports that there is no message to go on from.
func (o *Outline) Empty() bool { return o.leaf < 0 }

// Message is a message as the clients' readers show it (S-74, K-372).
type Message struct {
	Type    string // "user" or "assistant"
	UUID    string
	Session string // as the line says it; "" where it does not
	Message json.RawMessage
}

// Messages yields what a resume would see of the lines that the outline is of:
// the chain, without what is hidden from readers (S-75). Of lines it needs as
// many as the outline has.
func (o *Outline) Messages(lines iter.Seq2[[]byte, error]) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		on := map[int]bool{}
		for i, in := range o.r.chain(o.leaf).on {
			if n := o.r.nodes[i]; in && !n.meta && !n.aside && n.entry >= 0 && n.typ != "system" {
				on[n.line] = true
			}
		}
		for i, line := range numbered(lines) {
			switch {
			case line.err != nil:
				yield(Message{}, line.err)
				return
			case !on[i]:
				continue
			}
			m := Message{
				Type: stringOf(line.raw, "type"), UUID: stringOf(line.raw, "uuid"), Session: stringOf(line.raw, "sessionId"),
				Message: json.RawMessage(rawjson.Member(line.raw, "message")),
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// stringOf is the string member of that name; "" where it is none.
func stringOf(line []byte, key string) string {
	if v := rawjson.Member(line, key); rawjson.IsString(v) {
		return rawjson.Unquote(v)
	}
	return ""
}

type numberedLine struct {
	raw []byte // nil: cannot be read
	err error
}

// numbered counts lines as collect does.
func numbered(lines iter.Seq2[[]byte, error]) iter.Seq2[int, numberedLine] {
	return func(yield func(int, numberedLine) bool) {
		i := -1
		for raw, err := range lines {
			i++
			var unreadable *session.LineError
			l := numberedLine{raw, err}
			if errors.As(err, &unreadable) {
				l = numberedLine{}
			}
			if !yield(i, l) || l.err != nil {
				return
			}
		}
	}
}

// Copy says how a session is copied.
type Copy struct {
	Source, Session string // ids of the two
	Title           string // of the copy
	NewID           func() string
	Now             time.Time
}

// notCopied are members that tie a line to its session or to its team (K-395).
var notCopied = map[string]bool{"teamName": true, "agentName": true, "slug": true, "sourceToolAssistantUUID": true}

// Copy yields the lines of a copy (S-60): a line that tells of the source, the
// conversation up to the outline's end under new ids, also what compactions
// replaced, what tools remember, and the title. Branches, lines that others
// leave beside the conversation and our own lines of open calls and queued
// messages are left behind (K-394, K-395, decision 52).
func (o *Outline) Copy(lines iter.Seq2[[]byte, error], c Copy) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		p := o.plan(c)
		w := Writer{SessionID: c.Session, Source: c.Source}
		if !yield(w.ForkLine(), nil) {
			return
		}
		for i, line := range numbered(lines) {
			if line.err != nil {
				yield(nil, line.err)
				return
			}
			out, err := p.line(i, line.raw)
			if out == nil && err == nil {
				continue
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
		if len(p.replaced) > 0 {
			b := appendString([]byte(`{"type":"content-replacement"`), "sessionId", c.Session)
			b = append(append(append(b, `,"replacements":[`...), strings.Join(p.replaced, ",")...), ']')
			if !yield(append(b, '}'), nil) {
				return
			}
		}
		if c.Title != "" {
			yield(TitleLine(c.Session, c.Title), nil)
		}
	}
}

// copyPlan is which lines are copied, and how.
type copyPlan struct {
	Copy
	r        *reader
	node     map[int]int // of a line that is copied
	states   map[int]bool
	step     map[int]int       // of the way up, by node: a loop ends it
	ids      map[string]string // new by old
	last     int               // the last line of the conversation
	replaced []string
}

func (o *Outline) plan(c Copy) *copyPlan {
	p := &copyPlan{Copy: c, r: o.r, node: map[int]int{}, states: map[int]bool{}, step: map[int]int{}, ids: map[string]string{}, last: -1}
	if o.leaf < 0 {
		return p
	}
	for i := range o.r.history(o.leaf) {
		p.step[i] = len(p.step)
		if n := o.r.nodes[i]; n.typ != "progress" && !n.aside {
			p.node[n.line], p.ids[n.uuid], p.last = i, c.NewID(), max(p.last, n.line)
		}
	}
	drop := make([]bool, len(o.r.entries))
	o.r.dropCut(o.r.chain(o.leaf), drop, 0)
	end := o.r.nodes[o.leaf].line
	for i, e := range o.r.entries {
		if at := o.r.lineOf[i]; e.Kind == loop.KindState && !drop[i] && (at < end || o.leaf == o.r.leaf()) {
			p.states[at] = true
		}
	}
	return p
}

// line returns the copy of a line, nil for one that is left behind.
func (p *copyPlan) line(i int, raw []byte) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	if p.states[i] {
		return replace(raw, []member{{"sessionId", quoted(p.Session)}}, nil)
	}
	at, ok := p.node[i]
	if !ok {
		if stringOf(raw, "type") == "content-replacement" { // K-326
			if list := rawjson.Member(raw, "replacements"); len(list) > 0 && list[0] == '[' {
				for v := range rawjson.Elements(list) {
					p.replaced = append(p.replaced, string(v))
				}
			}
		}
		return nil, nil
	}
	n := p.r.nodes[at]
	parent := p.up(at)
	for parent >= 0 && p.ids[p.r.nodes[parent].uuid] == "" {
		parent = p.up(parent) // past progress lines (K-394)
	}
	set := []member{
		{"parentUuid", "null"},
		{"logicalParentUuid", "null"},
		{"isSidechain", "false"},
		{"uuid", quoted(p.ids[n.uuid])},
		{"sessionId", quoted(p.Session)},
		{"forkedFrom", `{"sessionId":` + quoted(p.Source) + `,"messageUuid":` + quoted(n.uuid) + `}`},
	}
	if parent >= 0 {
		set[0].value = quoted(p.ids[p.r.nodes[parent].uuid])
	}
	if id := p.ids[n.logical]; id != "" {
		set[1].value = quoted(id)
	}
	if i == p.last {
		set = append(set, member{"timestamp", quoted(p.Now.UTC().Format(stampForm))})
	}
	if id := p.ids[stringOf(raw, "copiedFrom")]; id != "" {
		set = append(set, member{"copiedFrom", quoted(id)})
	}
	return replace(raw, set, notCopied)
}

// up is the parent's node; -1 at the root, also where the way up would go round.
func (p *copyPlan) up(i int) int {
	if parent := p.r.up(i); parent >= 0 && p.step[parent] > p.step[i] {
		return parent
	}
	return -1
}

// member is a member of an object with its value as JSON.
type member struct{ key, value string }

func quoted(s string) string { return string(rawjson.AppendString(nil, s)) }

// replace returns the object with other values for some of its members, where
// they stand, or behind all others where they do not; some are left out.
func replace(obj []byte, set []member, without map[string]bool) ([]byte, error) {
	b := append(make([]byte, 0, len(obj)+512), '{')
	done := make([]bool, len(set))
	put := func(key string, value []byte) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(rawjson.AppendString(b, key), ':'), value...)
	}
members:
	for k, v := range rawjson.Members(obj) {
		key := string(k)
		for i, m := range set {
			if m.key != key {
				continue
			}
			if !done[i] {
				put(key, []byte(m.value))
			}
			done[i] = true
			continue members
		}
		if !without[key] {
			put(key, v)
		}
	}
	for i, m := range set {
		if !done[i] {
			put(m.key, []byte(m.value))
		}
	}
	out, err := message.Canonical(append(b, '}'))
	if err != nil {
		return nil, fmt.Errorf("copying a line: %w", err)
	}
	return out, nil
}
