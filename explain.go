package turnwright

import (
	"context"
	"fmt"
	"iter"

	"github.com/turnwright/turnwright/internal/explain"
	"github.com/turnwright/turnwright/session"
	"github.com/turnwright/turnwright/session/file"
)

// What Explain tells. The JSON forms are those of `turnwright explain --json`.
type (
	Explanation       = explain.Explanation
	ExplainedTurn     = explain.UserTurn
	ExplainedResponse = explain.Response
	ExplainedCall     = explain.Call
	// StopPath is the way a user turn ended, such as StopNatural.
	StopPath = explain.Path
)

// The ways a user turn ends. docs/why-did-it-stop.md has what each means and what
// to do.
const (
	StopNatural      = explain.Natural
	StopRefused      = explain.Refused
	StopCutOff       = explain.CutOff
	StopCap          = explain.Cap
	StopBudget       = explain.Budget
	StopInterrupted  = explain.Interrupted
	StopHook         = explain.Hook
	StopDeferred     = explain.Deferred
	StopSchema       = explain.Schema
	StopAPIError     = explain.APIError
	StopModelError   = explain.ModelError
	StopContext      = explain.Context
	StopImage        = explain.Image
	StopMalformed    = explain.Malformed
	StopSetup        = explain.Setup
	StopLocal        = explain.Local
	StopProcessEnded = explain.ProcessEnded
	StopUnfinished   = explain.Unfinished
	StopUnknown      = explain.Unknown
)

// Explain says of each user turn of a session why it stopped: the way it ended,
// the field and the value that decided it, the responses and calls that led there
// with cost (US dollars) and time (milliseconds), and what to do next. It is a pure
// function of the session's lines, as session.Journal.Load and session.Finder.Read
// yield them; id is only quoted in advice. It takes no lock and changes nothing, so
// a session may be explained while it runs.
//
// Lines that cannot be read are counted in Explanation.Skipped. An error of lines,
// and a journal of a newer format, is returned.
func Explain(id string, lines iter.Seq2[[]byte, error]) (*Explanation, error) {
	return explain.Journal(id, lines)
}

// ExplainSession finds a session by id or title as Options.Resume does and explains
// it. Of the options it uses Store, CWD and Env; the error is *NoConversationError
// when there is none.
func ExplainSession(ctx context.Context, idOrTitle string, o Options) (*Explanation, error) {
	finder, info, err := o.find(ctx, idOrTitle)
	if err != nil {
		return nil, err
	}
	e, err := Explain(info.ID, finder.Read(ctx, info))
	if err != nil {
		return nil, fmt.Errorf("session %s cannot be read: %w", info.ID, err)
	}
	return e, nil
}

// WhyStopped says in one sentence why a run with this result stopped.
func WhyStopped(r *ResultMessage) string { return explain.Why(r) }

// find looks a stored session up by id or title.
func (o *Options) find(ctx context.Context, idOrTitle string) (session.Finder, session.Info, error) {
	store := o.Store
	if store == nil {
		getenv, err := o.environ()
		if err != nil {
			return nil, session.Info{}, err
		}
		if store, err = file.New(file.Config{Getenv: getenv}); err != nil {
			return nil, session.Info{}, err
		}
	}
	finder, ok := store.(session.Finder)
	if !ok {
		return nil, session.Info{}, &OptionError{Option: "Store", Value: fmt.Sprintf("%T", store), Reason: "cannot look sessions up: it is no session.Finder"}
	}
	dir, err := o.workingDir()
	if err != nil {
		return nil, session.Info{}, err
	}
	info, err := findResumed(ctx, finder, idOrTitle, dir)
	return finder, info, err
}
