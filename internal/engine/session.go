package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/history"
	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// ErrClosed is returned for commands to a closed session.
var ErrClosed = errors.New("the session is closed")

// Session drives one machine.
type Session struct {
	cfg       Config
	machine   *loop.Machine     // owned by the actor goroutine while active
	tools     *tool.Registry    // that may be called
	assembler history.Assembler // owned by the actor
	out       *output
	rules     rules
	asking    chan struct{} // holds a token while somebody is asked: one at a time (P-121)
	jour      *journalWriter
	state     *tool.State
	beats     beats

	instructed  instructed
	checkpoints checkpoints

	shownTools *tool.Registry     // what the model sees (owned by the actor)
	shownBy    *permission.Policy // by these rules

	base   context.Context // parent of all work; ends when the session is closed
	cancel context.CancelFunc

	mu      sync.Mutex
	inbox   []posted
	active  bool // some goroutine is the actor
	ended   bool // the machine is closed and nothing runs
	replies map[string]chan loop.Reply
	over    chan struct{} // closed with ended

	running    map[loop.Effect]context.CancelFunc // owned by the actor
	held       []loop.Entry                       // entries that go with the next write (owned by the actor)
	started    []task                             // effects that wait for a goroutine (owned by the actor)
	recovering bool                               // the session of another process, before its first event (owned by the actor)
	used       bool                               // something was said or done, so there is something to keep (owned by the actor)
	aborted    bool                               // Strict: the journal failed (owned by the actor)
	killed     atomic.Bool                        // the process is told to end
	stop       func() bool                        // ends the watch on the caller's context

	tasks      *tasks
	hooks      hooks
	outputs    outputs
	approvals  approvals
	inputEnded bool         // nothing more will be sent (s.mu)
	drained    bool         // the machine was told so (s.mu)
	grace      *time.Timer  // waits for background tasks; nil: nothing to wait for (s.mu)
	closeTools func() error // ends what tools hold for the session, once
}

// posted is an event in the mailbox; effect is set for outcomes. Without an
// event it only wakes the actor.
type posted struct {
	effect loop.Effect
	ev     loop.Event
}

// New starts a session. It costs nothing until something is sent. When ctx
// ends the session is closed.
func New(ctx context.Context, cfg Config) *Session {
	cfg.fill()
	cfg.Loop.BatchHooks, cfg.Loop.StopHooks = cfg.Hooks.Has(hook.PostToolBatch), cfg.Hooks.Has(hook.Stop)
	s := &Session{
		cfg:     cfg,
		machine: loop.New(cfg.Loop),
		out:     newOutput(cfg.QueueBytes),
		state:   new(tool.State),
		asking:  make(chan struct{}, 1),
		replies: map[string]chan loop.Reply{},
		over:    make(chan struct{}),
		running: map[loop.Effect]context.CancelFunc{},
	}
	s.rules.mode = cfg.Mode
	s.tools = s.offered()
	s.tasks = &tasks{s: s}
	s.closeTools = sync.OnceValue(s.closeEach)
	s.base, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.jour = newJournalWriter(&s.cfg)
	s.newHooks()
	if cfg.Resume != nil {
		s.resume(cfg.Resume)
	}
	s.inbox = append(s.inbox, posted{ev: loop.Configure{Model: cfg.ModelName, Mode: string(cfg.Mode)}})
	s.stop = context.AfterFunc(ctx, func() { _ = s.post(loop.Close{}) })
	return s
}

// post hands an event to the actor. When nobody is the actor the caller is,
// for as long as there are events; what they start runs on goroutines.
func (s *Session) post(ev loop.Event) error {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended {
		return ErrClosed
	}
	s.deliver(posted{ev: ev}, false)
	return nil
}

// deliver puts p into the mailbox and, when nobody is the actor, acts. With
// stay the caller is a goroutine whose effect has ended: it gets the next
// effect to run, so that a turn goes on without a change of goroutine.
func (s *Session) deliver(p posted, stay bool) (next *task) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil
	}
	s.inbox = append(s.inbox, p)
	if s.active {
		s.mu.Unlock()
		return nil
	}
	s.active = true
	s.mu.Unlock()
	return s.act(stay)
}

// act owns the machine until the mailbox is empty.
func (s *Session) act(stay bool) (next *task) {
	defer s.crashed()
	for {
		s.mu.Lock()
		batch := s.inbox
		s.inbox = nil
		if len(batch) == 0 {
			if end := s.drain(); end != nil {
				s.mu.Unlock()
				s.step(posted{ev: end})
				continue
			}
			if n := len(s.started); stay && n > 0 {
				next = &s.started[n-1]
				s.spawn(s.started[:n-1])
			} else {
				s.spawn(s.started)
			}
			s.started = nil
			s.rest()
			s.mu.Unlock()
			return next
		}
		s.mu.Unlock()
		for _, p := range batch {
			s.step(p)
		}
	}
}

// rest gives up being the actor. It needs s.mu.
func (s *Session) rest() {
	s.active = false
	if len(s.running) > 0 {
		return
	}
	s.beats.rest()
	s.jour.release()
	if s.machine.State() == loop.Closed && !s.ended {
		s.ended = true
		close(s.over)
		s.out.end()
	}
}

func (s *Session) spawn(tasks []task) {
	for i := range tasks {
		go s.work(&tasks[i])
	}
}

// task is one effect that is to be run.
type task struct {
	effect loop.Effect
	ctx    context.Context
	do     func(context.Context) loop.Event
}

// work runs an effect, and then those that its outcome leads to, one after the
// other.
func (s *Session) work(t *task) {
	for t != nil {
		t = s.deliver(posted{t.effect, s.runTask(t)}, true)
	}
}

// runTask runs one effect to its outcome. A callback that ends its goroutine
// (runtime.Goexit, as testing's FailNow does) is given up like one that does
// not come back: its outcome is posted from another goroutine.
func (s *Session) runTask(t *task) (ev loop.Event) {
	if instant(t.effect.Kind) {
		return t.do(t.ctx)
	}
	unguard := s.guard(t.ctx, t.effect)
	returned := false
	defer func() {
		unguard()
		if !returned {
			out := posted{t.effect, s.givenUp(t.ctx, t.effect)}
			go func() { s.work(s.deliver(out, true)) }()
		}
	}()
	ev = safely(t)
	returned = true
	return ev
}

// guard gives an effect up that does not come back within a grace time after
// the end of ctx: its outcome is posted without it, and what it returns later
// is dropped.
func (s *Session) guard(ctx context.Context, eff loop.Effect) (unguard func()) {
	var grace atomic.Pointer[time.Timer]
	stop := context.AfterFunc(ctx, func() {
		grace.Store(time.AfterFunc(stopGrace, func() {
			s.work(s.deliver(posted{eff, s.givenUp(ctx, eff)}, true))
		}))
	})
	return func() {
		if !stop() {
			if timer := grace.Load(); timer != nil {
				timer.Stop()
			}
		}
	}
}

// givenUp is the outcome of an effect that did not heed its cancellation.
func (s *Session) givenUp(ctx context.Context, eff loop.Effect) loop.Event {
	switch eff.Kind {
	case loop.DoCheck:
		return loop.Decided{Key: eff.ID, Content: message.TextContent("Not executed: the request was interrupted.")}
	case loop.DoRun:
		f := loop.Finished{Key: eff.ID, IsError: true, Content: message.TextContent(interrupted(ctx, nil).Error())}
		s.noteKill(ctx, &f)
		return f
	}
	return loop.Cancelled{ID: eff.ID}
}

// crashed ends the session with a last result when the machine itself failed
// (L-205), so that no panic reaches the user and nobody waits for ever.
func (s *Session) crashed() {
	p := recover()
	if p == nil {
		return
	}
	s.emit(&message.Result{
		Subtype: message.ErrorDuringExecution, IsError: true,
		Errors: []string{fmt.Sprintf("The session failed: %v", p)},
	})
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = false
	if !s.ended {
		s.ended = true
		close(s.over)
		s.out.end()
	}
}

// step feeds one event to the machine and does what it owes, in order: write,
// emit, reply, work.
func (s *Session) step(p posted) {
	if p.ev == nil {
		return
	}
	if p.effect != (loop.Effect{}) {
		cancel, ok := s.running[p.effect]
		if !ok {
			return // it was given up before it came back
		}
		cancel()
		delete(s.running, p.effect)
	}
	s.rejoin(p.ev)
	if s.recovering {
		s.recover()
	}
	s.do(s.machine.Step(s.stamp(), p.ev))
}

func (s *Session) stamp() loop.Stamp {
	// UTC without a monotonic reading, so that a replay gives the same bytes.
	return loop.Stamp{Time: s.cfg.Now().UTC().Round(0), UUID: s.cfg.NewUUID()}
}

func (s *Session) do(r loop.Ready) {
	s.used = s.used || slices.ContainsFunc(r.Entries, isUse)
	s.compacted(r.Entries)
	s.noteCheckpoints(r.Entries)
	if s.canWait(r) || !s.used {
		s.held = append(s.held, r.Entries...)
	} else if len(r.Entries) > 0 {
		entries := r.Entries
		if len(s.held) > 0 {
			entries, s.held = append(s.held, r.Entries...), nil
		}
		if err := s.jour.write(s.base, entries, s.needsSync(entries)); err != nil {
			s.journalFailed(err)
		}
	}
	if len(r.Replies) > 0 {
		s.mu.Lock()
		for _, rep := range r.Replies {
			if ch := s.replies[rep.ID]; ch != nil {
				ch <- rep // buffered, one answer each
				delete(s.replies, rep.ID)
			}
		}
		s.mu.Unlock()
	}
	for _, m := range r.Emit { // after the replies: a receipt precedes the result (M-111)
		s.push(m)
	}
	s.reconcile(r.Want)
}

// reconcile makes the running work equal to what is wanted.
func (s *Session) reconcile(want []loop.Effect) {
	for eff, cancel := range s.running {
		if !contains(want, eff) {
			cancel() // it stays in running until its outcome came
		}
	}
	for _, eff := range want {
		if _, ok := s.running[eff]; !ok {
			s.start(eff)
		}
	}
}

func contains(want []loop.Effect, eff loop.Effect) bool {
	for _, w := range want {
		if w == eff {
			return true
		}
	}
	return false
}

// start begins one effect. Exactly one outcome is posted for it.
func (s *Session) start(eff loop.Effect) {
	ctx, cancel := s.base, context.CancelFunc(func() {})
	if !instant(eff.Kind) {
		ctx, cancel = context.WithCancel(s.base)
	}
	s.running[eff] = cancel
	var do func(context.Context) loop.Event
	switch eff.Kind {
	case loop.DoAdmit:
		do = s.admit(eff.ID)
	case loop.DoModel:
		do = s.callModel(eff.ID)
	case loop.DoCheck:
		do = s.check(eff.ID)
	case loop.DoRun:
		do = s.run(eff.ID)
	case loop.DoBatch:
		do = s.batch(eff.ID)
	case loop.DoStop:
		do = s.stopHooks(eff.ID)
	case loop.DoCompact:
		do = func(context.Context) loop.Event {
			return loop.Compacted{ID: eff.ID, Err: "this version has no summariser"}
		}
	}
	s.started = append(s.started, task{eff, ctx, do})
}

// instant reports whether effects of a kind have nothing to do in this version,
// so that there is nothing to cancel or to give up.
func instant(k loop.EffectKind) bool {
	return k == loop.DoCompact
}

// safely makes a panic in an effect its outcome: a fault in a model client or
// in a tool's description must not take the process down.
func safely(t *task) (ev loop.Event) {
	eff := t.effect
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		text := fmt.Sprintf("internal error in %s: %v", eff.Kind, p)
		switch eff.Kind {
		case loop.DoCheck:
			ev = loop.Decided{Key: eff.ID, Reason: text, Content: message.TextContent("Not executed: " + text)}
		case loop.DoRun:
			ev = loop.Finished{Key: eff.ID, IsError: true, Content: message.TextContent(text)}
		case loop.DoModel:
			ev = loop.Failed{ID: eff.ID, Text: text, Terminal: message.TerminalModelError}
		default:
			ev = loop.Cancelled{ID: eff.ID}
		}
	}()
	return t.do(t.ctx)
}

// Send queues a user message (L-187). Where hooks look at prompts it is not
// absorbed into a running turn: they are asked when its own begins.
func (s *Session) Send(in loop.Input) error {
	if s.hooks.run.Has(hook.UserPromptSubmit) && !isInjected(&in) {
		in.Steer = new(false)
	}
	return s.post(loop.Send{Input: in})
}

// EndInput says that nothing more will be sent: the session closes itself when
// what was sent is done and background tasks have ended or had their grace
// time.
func (s *Session) EndInput() error {
	s.mu.Lock()
	ended := s.ended
	s.inputEnded = true
	s.mu.Unlock()
	if ended {
		return ErrClosed
	}
	s.look()
	return nil
}

// NewID returns a random UUID in text form.
func NewID() string { return uuidText(newUUID()) }

// Interrupt ends the running user turn and returns the receipt (L-194 to L-196).
func (s *Session) Interrupt(ctx context.Context, cancelQueue bool) (loop.Reply, error) {
	id := s.stampID()
	ch := make(chan loop.Reply, 1)
	s.mu.Lock()
	s.replies[id] = ch
	s.mu.Unlock()
	if err := s.post(loop.Interrupt{Reply: id, CancelQueue: cancelQueue}); err != nil {
		return loop.Reply{}, err
	}
	select {
	case rep := <-ch: // whatever else is true by now
		return rep, nil
	default:
	}
	select {
	case rep := <-ch:
		return rep, nil
	case <-s.over:
		select {
		case rep := <-ch:
			return rep, nil
		default:
			return loop.Reply{}, ErrClosed
		}
	case <-ctx.Done():
		return loop.Reply{}, ctx.Err()
	}
}

func (s *Session) stampID() string {
	u := s.cfg.NewUUID()
	return string(u[:])
}

// Next returns the next message of the stream; ok is false at its end.
func (s *Session) Next(ctx context.Context) (message.Message, bool, error) { return s.out.next(ctx) }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.over }

// Abandon says that nobody reads the stream any more (L-63).
func (s *Session) Abandon() { s.out.abandon() }

// Close ends the session: what runs is cancelled, the journal is closed, and
// nothing of the session is left when it returns. A tool that does not heed
// its context is given up after a second.
func (s *Session) Close() error { return s.close(loop.Close{}) }

// Kill is Close for a process that is told to end (L-208): the running user
// turn has no result, and the calls that run are recorded as killed.
func (s *Session) Kill() error {
	s.killed.Store(true) // before the calls are cancelled
	return s.close(loop.Close{Killed: true})
}

func (s *Session) close(how loop.Close) error {
	s.stop()
	s.tasks.close()
	_ = s.post(how)
	<-s.over
	s.endHooks()
	s.cancel()
	s.closeHooks()
	err := errors.Join(s.jour.close(), s.closeTools())
	if s.cfg.DebugClose != nil {
		err = errors.Join(err, s.cfg.DebugClose())
	}
	return err
}

func (s *Session) closeEach() (err error) {
	for _, name := range s.cfg.Tools.Names() {
		if t, _, _ := s.cfg.Tools.Get(name); t != nil {
			if c, ok := t.(tool.Closer); ok {
				err = errors.Join(err, c.Close())
			}
		}
	}
	return err
}

// push puts a message on the stream and into the debug log.
func (s *Session) push(m message.Message) {
	if s.cfg.Debug != nil {
		s.debugMessage(m)
	}
	s.out.push(m)
}

// emit puts a driver's message on the stream: deltas, retries, denials.
func (s *Session) emit(m message.Message) {
	h := m.Head()
	if h.UUID == "" {
		h.UUID = uuidText(s.cfg.NewUUID())
	}
	if h.SessionID == "" {
		h.SessionID = s.cfg.Loop.SessionID
	}
	s.push(m)
}

func (s *Session) journalFailed(err error) {
	if !s.cfg.Strict || s.aborted {
		return
	}
	s.aborted = true
	text := "The session could not be saved: " + err.Error()
	_ = s.post(loop.Abort{Ending: loop.Ending{
		Subtype: message.ErrorDuringExecution, Terminal: message.TerminalTurnSetupFailed,
		Errors: []string{text}, Refusal: "the session could not be saved.",
	}})
}

// canWait reports whether a step's entries may be written with the next ones:
// the permission of a call that is repeatable. Such a call needs no durable
// intent, since it may be run again, and nothing is shown of the step.
func (s *Session) canWait(r loop.Ready) bool {
	if len(r.Emit) > 0 || len(r.Replies) > 0 || len(r.Entries) == 0 || s.cfg.Sync == SyncAlways {
		return false
	}
	for _, e := range r.Entries {
		if e.Kind != loop.KindCall || e.Call.Op != loop.CallAllowed {
			return false
		}
		if c, ok := s.machine.Call(e.Call.Key); !ok || !c.Repeatable {
			return false
		}
	}
	return true
}

// isUse reports an entry with which a session begins to be used: a message for
// it, or a user turn of one that was queued before. One that was only opened
// and closed leaves no file, one that was only resumed does not change it.
func isUse(e loop.Entry) bool {
	return e.Kind == loop.KindInput ||
		e.Kind == loop.KindTurn && e.Turn.Turn.State != loop.Idle && e.Turn.Turn.State != loop.Closed
}

// needsSync applies the sync policy to what is about to be written.
func (s *Session) needsSync(entries []loop.Entry) bool {
	switch s.cfg.Sync {
	case SyncAlways:
		return len(entries) > 0
	case SyncNever:
		return false
	}
	for _, e := range entries {
		switch e.Kind {
		case loop.KindTurn:
			if e.Turn.Result != nil {
				return true
			}
		case loop.KindCall:
			if c, ok := s.machine.Call(e.Call.Key); ok && e.Call.Op == loop.CallAllowed && !c.Repeatable {
				return true
			}
		}
	}
	return false
}

// since is the time from start to now by the session's clock.
func (s *Session) since(start time.Time) time.Duration { return s.cfg.Now().Sub(start) }
