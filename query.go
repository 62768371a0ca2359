package turnwright

import (
	"context"
	"iter"
)

// Query runs one prompt and yields every message when it happens. After an
// error result it yields a *ResultError (L-202); a run that could not start
// yields only its error. Leaving the loop early ends the run and frees
// everything. The empty prompt runs nothing.
func Query(ctx context.Context, prompt string, o Options) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s, err := NewSession(ctx, o)
		if err != nil {
			yield(nil, err)
			return
		}
		if prompt != "" {
			if _, err := s.Send(ctx, Input{Text: prompt}); err != nil {
				_ = s.Close()
				yield(nil, err)
				return
			}
		}
		s.EndInput()
		s.drain(ctx, func() error { return nil }, yield)
	}
}

// QueryInputs runs a stream of messages in one session (streaming input,
// L-187): each starts a user turn of its own with its own result, and the
// iterator ends when the source has ended and the last turn has its result. An
// error of the source is yielded after the turns that were queued before it
// (L-199). A failed turn does not end the session (L-203); if the last one
// failed, its *ResultError is yielded after it.
//
// The source runs on a goroutine of its own, which ends when the source does;
// a source that waits should heed ctx.
func QueryInputs(ctx context.Context, inputs Inputs, o Options) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s, err := NewSession(ctx, o)
		if err != nil {
			yield(nil, err)
			return
		}
		fed := make(chan error, 1)
		go func() {
			fed <- s.feed(ctx, inputs)
			s.EndInput()
		}()
		s.drain(ctx, func() error {
			select {
			case err := <-fed:
				return err
			default:
				return nil // the session ended before its source
			}
		}, yield)
	}
}

// feed sends what the source yields until it ends, fails or the session is
// closed.
func (s *Session) feed(ctx context.Context, inputs Inputs) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &SourceError{Value: p}
		}
	}()
	for in, inErr := range inputs {
		if inErr != nil {
			return inErr
		}
		if _, err := s.Send(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// drain yields the session's messages to their end, closes it, and yields what
// went wrong.
func (s *Session) drain(ctx context.Context, sourceErr func() error, yield func(Message, error) bool) {
	left := false
	defer func() {
		if left {
			s.eng.Abandon()
		}
		_ = s.Close()
	}()
	left = true // also when yield panics
	var last error
	for m, err := range s.Messages(context.WithoutCancel(ctx)) {
		if err != nil {
			left = !yield(nil, err)
			return
		}
		if r, ok := m.(*ResultMessage); ok {
			last = resultError(r)
		}
		if !yield(m, nil) {
			return
		}
	}
	left = false
	switch err := sourceErr(); {
	case ctx.Err() != nil:
		yield(nil, context.Cause(ctx))
	case err != nil:
		yield(nil, err)
	case last != nil:
		yield(nil, last)
	}
}
