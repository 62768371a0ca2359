package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"

	"github.com/turnwright/turnwright/internal/journal"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/session"
)

// record is an entry of the journal.
type record struct {
	loop.Entry
	line   int
	parent string // of a chain line
	form   []byte // see formOf; nil: not needed yet
}

// border is a place where another process goes on with what it reads, not with what
// the one before had: a session that goes on from an earlier message, or one with
// branches.
type border struct {
	lines int    // that it reads
	kept  string // uuid of the message that it goes on from; "": the last one

	read *journal.Transcript // nil: not yet
}

// transcript is what the process that goes on there folds.
func (p *player) transcript(b *border) (*journal.Transcript, error) {
	if b.read != nil {
		return b.read, nil
	}
	lines := func(yield func([]byte, error) bool) {
		for _, l := range p.raw[:b.lines] {
			if !yield(l, nil) {
				return
			}
		}
	}
	var err error
	if b.kept != "" {
		b.read, _, err = journal.ReadTo(lines, b.kept)
	} else {
		b.read, err = journal.Read(lines)
	}
	return b.read, err
}

// read collects the entries. Lines that cannot be read are counted; any other error
// of lines, and journal.ErrNewerFormat, is returned.
func (p *player) read(lines iter.Seq2[[]byte, error]) error {
	seen := map[string]bool{}
	for line, err := range lines {
		p.out.Lines++
		var unreadable *session.LineError
		if errors.As(err, &unreadable) {
			p.out.Skipped++
			p.raw = append(p.raw, []byte("{")) // as unreadable as it was
			continue
		}
		if err != nil {
			return err
		}
		p.raw = append(p.raw, bytes.Clone(line))
		if kept, ok := journal.CutAt(line); ok {
			p.borders[len(p.recs)] = &border{lines: p.out.Lines - 1, kept: kept}
			continue
		}
		e, ok, err := journal.Decode(line)
		switch {
		case errors.Is(err, journal.ErrNewerFormat):
			return err
		case err != nil:
			p.out.Skipped++
			continue
		case !ok:
			continue
		}
		r := record{Entry: e, line: p.out.Lines}
		if e.Chain() {
			if seen[e.UUID] {
				continue // written twice: an import that was repeated
			}
			seen[e.UUID] = true
			var l struct {
				Parent *string `json:"parentUuid"`
			}
			if json.Unmarshal(line, &l) == nil && l.Parent != nil {
				r.parent = *l.Parent
			}
		}
		p.recs = append(p.recs, r)
	}
	return nil
}

// given is the number of entries at the beginning that no run of the session
// decided on: the conversation of a fork, or what another program wrote. It is all
// when there is nothing of ours.
func (p *player) given() int {
	for i := range p.recs {
		if e := &p.recs[i]; !e.Chain() && e.Kind != loop.KindState {
			return i
		}
	}
	return len(p.recs)
}
