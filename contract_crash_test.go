package turnwright_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/model"
	"github.com/turnwright/turnwright/session"
)

// faultyStore panics in the nth Append of a journal.
type faultyStore struct {
	session.Store
	at int
}

func (f *faultyStore) Open(ctx context.Context, id string, o session.OpenOptions) (session.Journal, error) {
	j, err := f.Store.Open(ctx, id, o)
	return &faultyJournal{Journal: j, left: f.at}, err
}

type faultyJournal struct {
	session.Journal
	left int
}

func (f *faultyJournal) Append(ctx context.Context, lines [][]byte, sync bool) error {
	if f.left--; f.left == 0 {
		panic("fault in the store")
	}
	return f.Journal.Append(ctx, lines, sync)
}

// TestContractCrash makes the caller's own parts panic: no panic reaches the
// caller, and the last result says what happened.
func TestContractCrash(t *testing.T) {
	for at := 1; at <= 4; at++ {
		synctest.Test(t, func(t *testing.T) {
			conform.Covers(t, "L-205", "L-12", "L-57", "L-59", "L-61", "M-67")
			_, o := inMemory(t, agenttest.ByTurn(noteCall("a"), noteCall("b"), noteCall("c"), agenttest.Text("done")))
			var notes []string
			withNote(&o, &notes)
			o.Store = &faultyStore{session.NewMemory(), at}
			out := query(t, "go", o)
			r := out.result
			if r == nil || len(out.results()) != 1 || r.Subtype != turnwright.ErrorDuringExecution || !strings.Contains(strings.Join(r.Errors, " "), "fault in the store") {
				t.Fatalf("append %d: %s, %+v, %v", at, out.shape(), r, out.err)
			}
			keys := wire(t, r)
			if keys["stop_reason"] != nil || keys["terminal_reason"] != nil || keys["is_error"] != true || r.UUID == "" || len(r.SessionID) != 36 {
				t.Errorf("append %d: %v", at, keys)
			}
			var failed *turnwright.ResultError
			if !errors.As(out.err, &failed) {
				t.Errorf("append %d: the iterator's error is %v", at, out.err)
			}
			s := start(t, o)
			if _, err := s.Ask(t.Context(), "go"); err == nil {
				t.Errorf("append %d: Ask returned no error", at)
			}
			if _, err := s.Ask(t.Context(), "again"); !errors.Is(err, turnwright.ErrClosed) {
				t.Errorf("append %d: after a crash: %v", at, err)
			}
		})
	}
}

// faultyModel fails in its own way with the second request.
type faultyModel struct {
	model.Model
	requests int
	fault    func()
}

func (f *faultyModel) Stream(ctx context.Context, r *model.Request, on func(model.Event)) (*model.Response, error) {
	if f.requests++; f.requests == 2 {
		f.fault()
	}
	return f.Model.Stream(ctx, r, on)
}

// TestContractModelFaults takes a panic of a model client, or its end, as a
// failure of the request: the session goes on.
func TestContractModelFaults(t *testing.T) {
	for name, fault := range map[string]func(){
		"panic":  func() { panic("fault in the model") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conform.Covers(t, "L-12", "L-57", "L-203")
				_, o := inMemory(t, noteCall("a"), agenttest.Text("next"))
				var notes []string
				withNote(&o, &notes)
				o.ModelClient = &faultyModel{Model: o.ModelClient, fault: fault}
				s := start(t, o)
				send(t, s, "go")
				out := readTurn(t, s)
				if r := out.result; r.Subtype != turnwright.ErrorDuringExecution || len(r.Errors) == 0 || r.Errors[0] == "" || r.ToolTurns != 1 {
					t.Errorf("%s: %+v", out.shape(), r)
				}
				send(t, s, "again")
				if r := readTurn(t, s).result; r.IsError || *r.Result != "next" {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}
