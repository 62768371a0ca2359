package hookrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnwright/turnwright/hook"
	"github.com/turnwright/turnwright/internal/proc"
	"github.com/turnwright/turnwright/message"
)

// Config is what a Runner needs of its session. All functions may be called
// from several goroutines.
type Config struct {
	SessionID  string
	ProjectDir string          // where the session began (H-28)
	Environ    func() []string // of the runtime; nil: none
	Emit       func(message.Message)
	Show       bool                                                    // hook events are asked for (O-93)
	Debug      func(text string)                                       // nil: nobody looks
	Save       func(name string, data []byte) (path string, err error) // large outputs (H-53); nil: they are cut
	NewID      func() string                                           // of a run of a hook
	EnvFile    func() string                                           // CLAUDE_ENV_FILE of the events that have one (H-30); nil: none
	Wake       func(text string)                                       // tells the model at once (H-69); nil: never
	// Client sends the requests of HTTP hooks; it must follow no redirect, since
	// settings limit which addresses are asked (H-34). nil: no such hook can run.
	Client func() (*http.Client, error)
	// Ask puts a question to a model and returns its answer (H-36). It returns
	// soon after ctx ended. nil: no such hook can run.
	Ask func(ctx context.Context, q Question) (string, error)
}

// Question is what a hook asks a model.
type Question struct {
	Model string // a name or an alias; "": a small one
	Text  string // with the event
	Agent bool   // the model may look at files before it answers (H-38)
}

// Runner runs the hooks of one session. It holds nothing while none runs.
type Runner struct {
	cfg    Config
	set    atomic.Pointer[hook.Set]
	family *proc.Family

	stop       context.CancelFunc // ends what runs in the background
	background context.Context
	wait       sync.WaitGroup

	mu   sync.Mutex
	ran  map[any]bool  // of handlers that run once
	late []hook.Result // what background commands said
	end  bool
}

// New returns a runner without hooks.
func New(cfg Config) *Runner {
	r := &Runner{cfg: cfg, family: proc.NewFamily(), ran: map[any]bool{}}
	r.background, r.stop = context.WithCancel(context.Background())
	return r
}

// Use takes the hooks that run from now on (H-9).
func (r *Runner) Use(s *hook.Set) { r.set.Store(s) }

// Has reports whether anything may run at the event.
func (r *Runner) Has(ev hook.Event) bool { return r.set.Load().Has(ev) }

// Empty reports whether there are no hooks at all.
func (r *Runner) Empty() bool { return r.set.Load().Empty() }

// EndTimeout is what the hooks of SessionEnd have together (H-63).
func (r *Runner) EndTimeout() time.Duration { return r.set.Load().EndTimeout() }

// Call is what a run knows of the event beside its input.
type Call struct {
	ToolUseID string                 // of the call that the event is about; "": none
	Dir       string                 // where commands run, absolute (H-27)
	Matches   func(rule string) bool // whether the call is one that a handler's "if" names (H-22); nil: none is
}

// Run runs what matches the event and waits for all of it (H-57). When ctx ends
// it comes back at once; nothing that still runs has an effect then.
func (r *Runner) Run(ctx context.Context, in hook.Input, c Call) hook.Merged {
	handlers := r.due(in, c)
	if len(handlers) == 0 {
		return hook.Merged{}
	}
	raw, err := hook.Encode(in)
	if err != nil {
		return hook.Merge(in.Event(), []hook.Result{{Name: hook.Name(in), Failure: fmt.Errorf("the event cannot be encoded: %w", err)}})
	}
	results := make([]hook.Result, len(handlers))
	var done atomic.Int64
	var all sync.WaitGroup
	for i, h := range handlers {
		all.Go(func() {
			res := r.one(ctx, h, in, raw, c)
			res.Name, res.Done = hook.Name(in), int(done.Add(1))
			if ctx.Err() != nil && errors.Is(res.Fault, context.Canceled) {
				res.Fault = nil // it was called off, for which nobody is to blame
			}
			results[i] = res
		})
	}
	all.Wait()
	return hook.Merge(in.Event(), results)
}

// due are the handlers that run for the input.
func (r *Runner) due(in hook.Input, c Call) (due []hook.Handler) {
	for _, h := range r.set.Load().Match(in) {
		if h.If != "" && (c.Matches == nil || !c.Matches(h.If)) {
			continue
		}
		if h.Once && h.Source == hook.SourceSkill && !r.first(h) { // H-12
			continue
		}
		due = append(due, h)
	}
	return due
}

func (r *Runner) first(h hook.Handler) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var own any = h.Command
	switch {
	case h.HTTP != nil:
		own = h.HTTP
	case h.Prompt != nil:
		own = h.Prompt
	}
	again := r.ran[own]
	r.ran[own] = true
	return !again
}

// TimeoutError is a hook that took longer than it may.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("it did not finish within %v (its timeout)", e.Limit)
}

// one runs one handler to its result.
func (r *Runner) one(ctx context.Context, h hook.Handler, in hook.Input, raw []byte, c Call) (res hook.Result) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, &TimeoutError{h.Timeout})
	defer cancel()
	switch {
	case h.Command != nil:
		return r.command(ctx, h, in, raw, c)
	case h.HTTP != nil:
		return r.reply(ctx, in, func() ([]byte, hook.Output, error) { return r.post(ctx, h.HTTP, in.Event(), raw) })
	case h.Prompt != nil:
		return r.reply(ctx, in, func() ([]byte, hook.Output, error) { return r.ask(ctx, h.Prompt, in.Event(), raw) })
	}
	life := r.begin(in, false)
	out, err := call(ctx, h.Func, in, c.ToolUseID)
	life.finish(nil, nil, err)
	switch {
	case err != nil:
		r.debug(in, err.Error())
		return hook.Result{Failure: err}
	case out.Async: // H-71
		return hook.Result{}
	}
	r.bound(&out)
	return hook.Result{Output: out}
}

// call calls a callback. The wait ends with ctx, whether it heeds that or not.
func call(ctx context.Context, f hook.Func, in hook.Input, id string) (hook.Output, error) {
	type outcome struct {
		out hook.Output
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: errors.New("the callback ended its goroutine")} // runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				o = outcome{err: fmt.Errorf("the callback panicked: %v", p)}
			}
			done <- o
		}()
		out, err := f(ctx, in, id)
		if err == nil {
			err = out.Check()
		}
		o = outcome{out, err}
	}()
	select {
	case o := <-done:
		if o.err != nil && ctx.Err() != nil {
			return hook.Output{}, context.Cause(ctx)
		}
		return o.out, o.err
	case <-ctx.Done():
		return hook.Output{}, context.Cause(ctx)
	}
}

func (r *Runner) debug(in hook.Input, text string) {
	if r.cfg.Debug != nil && text != "" {
		r.cfg.Debug(hook.Name(in) + ": " + text)
	}
}

// Late returns what background commands have said since it was asked before:
// contexts for the model and notices for the user (H-68).
func (r *Runner) Late() hook.Merged {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := r.late
	r.late = nil
	return hook.Merge("", late)
}

// Close kills every process that a hook started and waits for it (H-70). No
// command runs afterwards.
func (r *Runner) Close() {
	r.mu.Lock()
	r.end = true
	r.mu.Unlock()
	r.stop()
	r.wait.Wait()
	r.family.End()
}
