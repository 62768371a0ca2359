package turnwright

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/turnwright/turnwright/internal/replay"
)

// What Replay finds. The JSON forms are those of `turnwright replay --json`.
type (
	ReplayReport     = replay.Report
	ReplayDifference = replay.Difference
	ReplayField      = replay.Field
)

// ErrNothingToReplay tells that a session has no lines of Turnwright, since another
// program wrote it.
var ErrNothingToReplay = replay.ErrNothing

// Replay feeds a session's journal through this version's agent loop and reports
// the first line that it would not have written: where turns are counted, caps and
// budgets end a run, calls are ordered and paired, and results come about in another
// way than when the session was recorded. It is for regression tests on stored
// sessions.
//
// What came from outside is taken from the journal: messages, responses, decisions
// on calls, their outcomes, what hooks said, times and ids. Neither the model nor a
// tool is asked. What no event explains is a difference too, also a line that was
// changed by hand.
//
// It is a pure function of the session's lines, as session.Journal.Load and
// session.Finder.Read yield them; id is only quoted. It takes no lock and changes
// nothing. Lines that cannot be read are counted in ReplayReport.Skipped. The error
// is ErrNothingToReplay for sessions of other programs, that of a journal of a newer
// format, or one of lines. A difference is no error.
func Replay(id string, lines iter.Seq2[[]byte, error]) (*ReplayReport, error) {
	return replay.Journal(id, lines)
}

// ReplaySession finds a session by id or title as Options.Resume does and replays
// it. Of the options it uses Store, CWD and Env; the error is *NoConversationError
// when there is none.
func ReplaySession(ctx context.Context, idOrTitle string, o Options) (*ReplayReport, error) {
	finder, info, err := o.find(ctx, idOrTitle)
	if err != nil {
		return nil, err
	}
	r, err := Replay(info.ID, finder.Read(ctx, info))
	switch {
	case errors.Is(err, ErrNothingToReplay):
		return nil, fmt.Errorf("session %s: %w", info.ID, err)
	case err != nil:
		return nil, fmt.Errorf("session %s cannot be read: %w", info.ID, err)
	}
	return r, nil
}
