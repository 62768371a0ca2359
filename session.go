package turnwright

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/engine"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
)

// Session is a conversation that takes many messages (O-118). Its methods may
// be called from several goroutines; its messages have one reader at a time.
type Session struct {
	opts Options
	cfg  engine.Config
	set  *live
	eng  *engine.Session
	old  *sweeper // removes old sessions; nil: nothing to do

	reading sync.Mutex // held by the one reader
	mu      sync.Mutex
	pending []string // uuids of inputs that will have a result, in order
	closed  bool
}

// NewSession starts a session. It costs nothing until a message is sent, and
// nothing while it is idle. When ctx ends the session is closed. Every session
// must be closed.
func NewSession(ctx context.Context, o Options) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.AllowedTools, o.DisallowedTools = slices.Clone(o.AllowedTools), slices.Clone(o.DisallowedTools)
	o.AddDirs = slices.Clone(o.AddDirs)
	cfg, set, err := o.build(ctx)
	if err != nil {
		return nil, err
	}
	eng := engine.New(ctx, cfg)
	s := &Session{opts: o, cfg: cfg, set: set, eng: eng, old: o.sweep(&cfg, set), pending: eng.Queued()}
	set.mu.Lock()
	defer set.mu.Unlock()
	set.rehook = s.rehook
	return s, nil
}

// rehook gives the session the hooks of settings as they are now.
func (s *Session) rehook() (news []string) {
	s.mu.Lock()
	callbacks := s.opts.Hooks
	s.mu.Unlock()
	hooks, err := s.opts.hookSet(callbacks, s.set, func(line string) { news = append(news, line) })
	if err != nil {
		return append(news, err.Error())
	}
	s.eng.UseHooks(hooks)
	return news
}

// ID returns the session's id (S-3).
func (s *Session) ID() string { return s.cfg.Loop.SessionID }

// Send queues a message and returns its uuid. While a turn runs the message
// waits, and then starts a turn of its own (L-188, L-189).
func (s *Session) Send(ctx context.Context, in Input) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	li, err := in.toLoop()
	if err != nil {
		return "", err
	}
	if limit := s.opts.MaxBufferSize; limit > 0 {
		size := 0
		for _, b := range li.Content.Blocks() {
			size += len(b.Raw())
		}
		if size > limit {
			return "", &InputSizeError{Size: size, Limit: limit}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", ErrClosed
	}
	if err := s.eng.Send(li); err != nil {
		return "", err
	}
	if !li.NoQuery {
		s.pending = append(s.pending, li.ID)
	}
	return li.ID, nil
}

func (in Input) toLoop() (loop.Input, error) {
	li := loop.Input{ID: in.UUID, NoQuery: in.NoQuery, Steer: in.Steer, Synthetic: in.Synthetic}
	if li.ID == "" {
		li.ID = engine.NewID()
	} else if !uuidForm.MatchString(li.ID) {
		return li, &OptionError{Option: "Input.UUID", Value: strconv.Quote(in.UUID), Reason: "is not a UUID"}
	}
	switch {
	case in.Human:
		li.Origin = &message.Origin{Kind: message.OriginHuman}
	case in.Synthetic:
		li.Origin = &message.Origin{Kind: message.OriginUnclassified} // M-43
	}
	if len(in.Blocks) == 0 {
		li.Content = message.TextContent(in.Text)
		return li, nil
	}
	var blocks []Block
	if in.Text != "" {
		blocks = append(blocks, message.NewText(in.Text))
	}
	li.Content = message.BlockContent(append(blocks, in.Blocks...)...)
	return li, nil
}

// Messages yields everything that the session emits, until the session is
// closed or ctx ends. It may be called again after it was left; two readers at
// once get ErrOneReader.
func (s *Session) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if !s.reading.TryLock() {
			yield(nil, ErrOneReader)
			return
		}
		defer s.reading.Unlock()
		for {
			m, ok, err := s.eng.Next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if !ok {
				return
			}
			s.settle(m)
			if !yield(m, nil) {
				return
			}
		}
	}
}

// settle keeps track of which input a result belongs to: results come in the
// order of the inputs, and an absorbed input shares the running turn's.
func (s *Session) settle(m Message) (answered string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.(type) {
	case *ResultMessage:
		if len(s.pending) > 0 && !m.Origin.Injected() {
			answered = s.pending[0]
			s.pending = s.pending[1:]
		}
	case *UserMessage:
		if !m.IsReplay && len(s.pending) > 1 {
			if i := slices.Index(s.pending[1:], m.UUID); i >= 0 {
				s.pending = slices.Delete(s.pending, i+1, i+2)
			}
		}
	}
	return answered
}

// Ask sends a prompt and reads to its result; the messages on the way are
// dropped. For a failed run it returns the result and a *ResultError. When ctx
// ends first the turn is interrupted and ctx's error returned.
func (s *Session) Ask(ctx context.Context, prompt string) (*ResultMessage, error) {
	if !s.reading.TryLock() {
		return nil, ErrOneReader
	}
	defer s.reading.Unlock()
	id, err := s.Send(ctx, Input{Text: prompt})
	if err != nil {
		return nil, err
	}
	for {
		m, ok, err := s.eng.Next(ctx)
		if err != nil {
			_, _ = s.eng.Interrupt(context.WithoutCancel(ctx), false)
			return nil, err
		}
		if !ok {
			return nil, ErrClosed
		}
		if s.settle(m) == id {
			res, _ := m.(*ResultMessage)
			return res, resultError(res)
		}
	}
}

// InterruptOption changes what Interrupt does.
type InterruptOption func(*interruptOptions)

type interruptOptions struct{ cancelQueued bool }

// CancelQueued also empties the queue (L-196).
func CancelQueued() InterruptOption {
	return func(o *interruptOptions) { o.cancelQueued = true }
}

// Receipt says what an interrupt found.
type Receipt struct {
	Running     bool     // a user turn was running; it ends with an error_during_execution result
	StillQueued []string // uuids of messages that will still run
	Cancelled   []string // uuids of messages that were dropped by CancelQueued
}

// Interrupt ends the running user turn: running calls are cancelled, the
// partial text is kept, a result follows and the session stays usable
// (L-194 to L-198). With nothing running it changes nothing.
func (s *Session) Interrupt(ctx context.Context, opts ...InterruptOption) (Receipt, error) {
	var o interruptOptions
	for _, opt := range opts {
		opt(&o)
	}
	rep, err := s.eng.Interrupt(ctx, o.cancelQueued)
	if err != nil {
		return Receipt{}, err
	}
	s.mu.Lock()
	for _, id := range rep.Cancelled {
		if i := slices.Index(s.pending, id); i >= 0 {
			s.pending = slices.Delete(s.pending, i, i+1)
		}
	}
	s.mu.Unlock()
	return Receipt{Running: rep.Running, StillQueued: rep.StillQueued, Cancelled: rep.Cancelled}, nil
}

// CostUSD is the estimated cost of the session so far in US dollars, running
// responses not counted (L-221). After a resume it starts from zero (S-43).
func (s *Session) CostUSD() float64 { return s.cfg.Ledger.Total().USD }

// SetModel changes the model from the next model call on (L-114). "" and
// "default" are the model that the session started with (O-113).
func (s *Session) SetModel(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id := s.cfg.ModelName
	if name != "" && name != "default" {
		var err error
		if id, err = s.opts.resolveModel(&s.cfg, name); err != nil {
			return err
		}
	}
	return s.eng.Configure(id, "")
}

// SetPermissionMode changes the mode from the next call on (P-5). A status
// message tells of the change (M-69).
func (s *Session) SetPermissionMode(ctx context.Context, mode PermissionMode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m, err := permission.ParseMode(string(mode))
	if err != nil {
		return &OptionError{Option: "PermissionMode", Value: strconv.Quote(string(mode)), Reason: err.Error()}
	}
	if m == permission.ModeAuto {
		return &OptionError{Option: "PermissionMode", Value: strconv.Quote(string(mode)), Reason: s.set.noAuto()}
	}
	if by := s.set.reader.Settings().NoBypass(); m == permission.ModeBypass && by != "" {
		return bypassDisabled(by)
	}
	if err := s.opts.bypass(m, s.set.launched); err != nil {
		return err
	}
	return s.eng.Configure("", string(m))
}

// Done is closed when the session has ended and nothing of it runs any more.
// Messages that were emitted can still be read.
func (s *Session) Done() <-chan struct{} { return s.eng.Done() }

// SetHooks replaces the callbacks of Options.Hooks from the next event on; those
// of settings and HookFiles stay. It fails for a table that hook.Table.Check refuses.
func (s *Session) SetHooks(callbacks hook.Table) error {
	hooks, err := s.opts.hookSet(callbacks, s.set, nil)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.opts.Hooks = callbacks
	s.mu.Unlock()
	s.eng.UseHooks(hooks)
	return nil
}

// Close interrupts what runs and frees everything. It returns the first fault
// of closing the journal. Messages that were emitted can still be read.
func (s *Session) Close() error { return s.end(s.eng.Close) }

// Terminate is Close for a program that is told to end, as by SIGTERM: nothing
// new starts, the running user turn has no result, and the calls that run are
// stopped and recorded as killed, so that a resumed session knows (L-208, S-44).
func (s *Session) Terminate() error { return s.end(s.eng.Kill) }

func (s *Session) end(how func() error) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := how()
	s.old.end()
	s.cfg.WaitWarn()
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// EndInput says that nothing more will be sent: when the messages that were
// sent have their results, the session closes itself and Messages ends. Close
// must still be called.
func (s *Session) EndInput() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.eng.EndInput()
}
