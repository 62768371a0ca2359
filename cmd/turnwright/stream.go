package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/wire"
	"github.com/turnwright/turnwright/message"
)

// commandWait bounds the wait for a session that does not react to an
// interrupt, within what clients wait for an answer (W-81).
const commandWait = 30 * time.Second

// client is the process at the other end of stream-json input and what it is
// served with: one session.
type client struct {
	conn *wire.Conn
	s    *turnwright.Session // written once, under mu
	sdk  bool                // an official client started this process (W-264)

	begun  bool // initialize was answered; used by the reader alone
	hooked bool // it brought hooks; likewise

	mu       sync.Mutex
	warnings []string             // until the first init was written
	inited   bool                 // it was
	once     map[string]int       // lines that came on one of two ways so far, see first
	calls    map[string]*openCall // by id

	interrupted atomic.Bool // by a signal; the turn's result is still to come
	ending      atomic.Bool // the process ends without a result
	over        atomic.Bool // the session has ended
}

// runStream serves a client process: user messages and control requests come
// in through stdin, every message goes out as a line (docs/contract/wire-protocol.md).
func runStream(f *flags, stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	o, err := f.options()
	if err != nil {
		return fail(err)
	}
	c := &client{
		conn: wire.New(stdin, stdout), calls: map[string]*openCall{}, once: map[string]int{},
		sdk: strings.HasPrefix(os.Getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk-"),
	}
	defer interrupts(c.interrupt, c.terminate)()
	o.Stderr, o.ReplayUserMessages = func(line string) { c.warn(inFlags(line)) }, f.replay
	if f.promptTool != nil {
		o.CanUseTool = c.approve
	}
	s, err := turnwright.NewSession(context.Background(), o)
	switch {
	case badFlag(err):
		return fail(named(err))
	case err != nil:
		return c.startFailed(o, named(err))
	}
	c.start(s)
	go func() { // ends with the process when stdin stays open
		if err := c.conn.Serve(c); err != nil {
			c.notice(err.Error())
		}
		s.EndInput()
	}()
	go func() { // a reader that goes away ends the session also while it is silent
		<-c.conn.Gone()
		_ = s.Close()
	}()
	go func() { // the last messages need not wait for a slow reader, nor the process for ever
		<-s.Done()
		c.conn.Ending()
	}()
	code := c.pump()
	if c.ending.Load() {
		select {} // the signal's handler ends the process
	}
	c.over.Store(c.hadTurn()) // the last result is written: nothing may follow it (W-283)
	if err := s.Close(); err != nil {
		code = 1
	}
	c.tell() // without a turn nothing else has
	c.over.Store(true)
	if err := c.conn.Drain(); err != nil {
		code = 1
	}
	return code
}

// pump writes the session's messages to their end and returns the exit code,
// that of the last result (K-200, K-201).
func (c *client) pump() (code int) {
	ctx := context.Background()
	for m, err := range c.s.Messages(ctx) {
		if err != nil || c.ending.Load() {
			return 1
		}
		if u, ok := m.(*turnwright.UserMessage); ok {
			c.settle(u)
		}
		if i, ok := m.(*message.Informational); ok {
			told := *i
			told.Content = inFlags(i.Content)
			if c.toldAlready(told.Content) {
				continue
			}
			m = &told
		}
		if c.sdk {
			m = forClients(m)
		}
		if err := c.conn.Write(ctx, m); err != nil {
			select {
			case <-c.conn.Gone():
				return 1
			default:
			}
			c.notice(fmt.Sprintf("A message could not be written: %v", err))
		}
		switch m := m.(type) {
		case *turnwright.InitMessage:
			c.tell()
		case *turnwright.AssistantMessage:
			c.show(m)
		case *turnwright.ResultMessage:
			c.interrupted.Store(false)
			code = 0
			if m.IsError {
				code = 1
			}
		}
	}
	return code
}

// interrupt is a SIGINT: it ends the turn, and the process when nothing runs
// or the one before is still being handled (K-205).
func (c *client) interrupt() (end bool) {
	s := c.session()
	if s == nil || c.interrupted.Swap(true) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandWait)
	defer cancel()
	r, err := s.Interrupt(ctx)
	return err != nil || !r.Running
}

// terminate ends the session without a result (W-382).
func (c *client) terminate() {
	c.ending.Store(true)
	if s := c.session(); s != nil {
		_ = s.Terminate()
	}
}

// session is nil until there is one.
func (c *client) session() *turnwright.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}

// badFlag reports a start error that is in the value of a flag alone, and not
// in what was found: such a one is told like a bad flag (W-386, K-30).
func badFlag(err error) bool {
	var bad *turnwright.OptionError
	return errors.As(err, &bad) && flagOf[bad.Option] != "" && bad.Err == nil
}

// startFailed tells the client in a result why there is no session. The first
// line is read before, or the client would not see it (W-384).
func (c *client) startFailed(o turnwright.Options, err error) int {
	c.conn.First()
	id := o.SessionID
	if id == "" {
		id = uuid.NewString()
	}
	c.conn.Post(&message.Result{
		Subtype: message.ErrorDuringExecution, IsError: true, Errors: []string{err.Error()},
		TotalCostUSD: new(0.0), Usage: &message.Usage{}, ModelUsage: map[string]message.ModelUsage{},
		Header: message.Header{UUID: uuid.NewString(), SessionID: id},
	})
	_ = c.conn.Drain()
	return 1
}

// start takes the session.
func (c *client) start(s *turnwright.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s = s
}

// warn takes the session's diagnostics: a client is told in the stream (C-17),
// behind the first init, which begins the first turn (W-220).
func (c *client) warn(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.inited {
		c.warnings = append(c.warnings, line)
		return
	}
	if c.first(line, +1) {
		c.notice(line)
	}
}

// first reports whether a line has not come on the other way already: what goes
// wrong with settings while the session runs is told in its stream and to its
// Stderr, and a client is to see it once. way is +1 or -1. It needs c.mu.
func (c *client) first(line string, way int) bool {
	n := c.once[line] * way
	if c.once[line] += way; c.once[line] == 0 {
		delete(c.once, line)
	}
	return n >= 0
}

func (c *client) toldAlready(line string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.first(line, -1)
}

// hadTurn reports whether there was a turn, and so a result.
func (c *client) hadTurn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inited
}

// tell passes on what was warned of so far.
func (c *client) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inited = true
	for _, w := range c.warnings {
		if c.first(w, +1) {
			c.notice(w)
		}
	}
	c.warnings = nil
}

func (c *client) notice(text string) {
	if c.ending.Load() || c.over.Load() {
		return
	}
	c.conn.Post(&message.Informational{
		Content: text, Level: "warning",
		Header: message.Header{UUID: uuid.NewString(), SessionID: c.s.ID()},
	})
}

// Ignored implements wire.Handler (K-174).
func (c *client) Ignored(err *wire.LineError) { c.notice("L" + err.Error()[1:] + ".") }

// User implements wire.Handler: the message starts a turn, or waits for the
// end of the one that runs (W-324).
func (c *client) User(m *message.User) {
	in := turnwright.Input{
		UUID: m.UUID, NoQuery: m.ShouldQuery != nil && !*m.ShouldQuery, Synthetic: m.IsSynthetic,
		Human: m.Origin != nil && m.Origin.Kind == message.OriginHuman, // other kinds are not a client's to give (W-46)
	}
	if m.Message.Content.IsText() {
		in.Text = m.Message.Content.Text()
	} else {
		in.Blocks = m.Message.Content.Blocks()
	}
	if _, err := uuid.Parse(m.UUID); m.UUID != "" && (err != nil || len(m.UUID) != 36) {
		c.notice(fmt.Sprintf("The uuid %.40q of a user message is not a UUID; it has got another one.", m.UUID))
		in.UUID = ""
	}
	if _, err := c.s.Send(context.Background(), in); err != nil && !errors.Is(err, turnwright.ErrClosed) {
		c.notice(fmt.Sprintf("A user message was not accepted: %v", err))
	}
}

// forClients gives the result of a turn that ended on an API failure the shape
// that the official clients rely on (W-264).
func forClients(m turnwright.Message) turnwright.Message {
	r, ok := m.(*turnwright.ResultMessage)
	if !ok || r.Subtype != turnwright.ErrorDuringExecution || r.TerminalReason != message.TerminalAPIError {
		return m
	}
	as := *r
	as.Subtype, as.IsError, as.Errors = turnwright.Success, true, nil
	as.Result = new(strings.Join(r.Errors, "\n"))
	return &as
}
