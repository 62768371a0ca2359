package journal

import (
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
)

// Reflected is the line of a call or turn entry as encoding/json writes it.
func (w *Writer) Reflected(e loop.Entry) ([]byte, error) {
	l := ownLine{
		Type: "turnwright", Kind: string(e.Kind), V: 1, Session: w.SessionID,
		At: e.Time.UTC().Format(time.RFC3339Nano),
	}
	switch {
	case e.Call != nil:
		l.Op, l.Calls, l.Key, l.Reason = string(e.Call.Op), e.Call.Calls, e.Call.Key, e.Call.Reason
		if e.Call.Input != nil {
			l.Final = new(text(e.Call.Input))
		}
		if e.Call.Denial != nil {
			denial, err := asText(e.Call.Denial)
			if err != nil {
				return nil, err
			}
			l.Denial = denial
		}
	case e.Turn != nil:
		l.Turn = &e.Turn.Turn
		if e.Turn.Result != nil {
			raw, err := message.Marshal(e.Turn.Result)
			if err != nil {
				return nil, err
			}
			l.Result = new(text(raw))
		}
	}
	return message.Encode(l)
}
