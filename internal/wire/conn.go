package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/turnwright/turnwright/message"
)

const (
	// room is how many bytes of messages may wait for the reader of the
	// output; then Write waits. Answers and requests do not count on it.
	room = 1 << 20
	// maxUnread is how many bytes may wait for the reader of the output before
	// the input gives rise to little more of it: answers, withdrawals and
	// interrupts are heard as ever (W-31), other requests refused, and lines that
	// are no use told of together. Messages alone stop at room: only requests get
	// here, and their answers must be kept, for each has one (W-81). So at twice
	// that much, which is some 200,000 refusals, reading does stop, or a client
	// that asks on and on and never reads would take all memory.
	maxUnread = 32 << 20
)

// ErrUnread is the answer to a request beyond what a client may leave unread.
var ErrUnread = fmt.Errorf("refused: more than %d MiB of the output are unread", maxUnread>>20)

// Handler takes what the client sends, in the order of its lines, on the
// goroutine of Serve. Its methods must not wait for standard output or for the
// client: while they run nothing is read (W-31).
type Handler interface {
	// User takes a user message.
	User(*message.User)
	// Control takes a control request. It has exactly one answer (W-81), given
	// now or later, from any goroutine.
	Control(*Request)
	// Ignored is told of a line that could not be used (K-174), or of several
	// together.
	Ignored(*LineError)
}

// Conn is the binary's side of the protocol. Its methods may be called from
// several goroutines, Serve once.
type Conn struct {
	in  *lines
	out *writer

	order sync.Mutex // held to put a message, or what goes ahead of one, in line

	mu    sync.Mutex
	open  map[string]*Request // requests of the client without answer
	calls map[string]*call    // requests to the client without answer
	ids   int
	ended bool // the input has ended: no answer can come

	unread int // maxUnread
}

// New returns a connection that reads in and writes out. Nothing is read or
// written before it is used. Closing both is the caller's business, but an out
// that is a file must stay open as long as the process, since it is watched.
func New(in io.Reader, out io.Writer) *Conn {
	return &Conn{
		in: newLines(in), out: newWriter(out), unread: maxUnread,
		open: map[string]*Request{}, calls: map[string]*call{},
	}
}

// First reads the first line and does nothing about it. It is for a program
// that cannot start and must not be gone before its client has written
// (W-384).
func (c *Conn) First() { _, _ = c.in.next() }

// Serve reads to the end of the input and hands its lines to h. It returns nil
// at the end, and otherwise why the input could not be read. Calls fail from
// then on (W-378).
func (c *Conn) Serve(h Handler) error {
	defer c.end()
	var untold *LineError // a line that is still to be told of
	for {
		if err := c.out.below(context.Background(), 2*c.unread); err != nil {
			return nil // the client reads no more: it is gone
		}
		line, err := c.in.next()
		full := c.out.pending() > c.unread
		var bad *LineError
		switch {
		case errors.As(err, &bad):
		case err == nil:
			bad = c.take(h, line, full)
		}
		switch {
		case bad != nil && untold != nil:
			untold.More++
		case bad != nil:
			untold = bad
		}
		if untold != nil && (!full || err != nil && bad == nil) {
			h.Ignored(untold)
			untold = nil
		}
		switch {
		case err == nil || bad != nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("reading standard input: %w", err)
		}
	}
}

// take hands on a line, or says why it is of no use.
func (c *Conn) take(h Handler, line []byte, full bool) *LineError {
	f, err := decode(line)
	switch {
	case err != nil:
		return c.in.fault(line, err)
	case full && f.request != nil && f.request.subtype != interrupt:
		f.request.fault = ErrUnread
		c.control(h, f.request)
	case f.user != nil:
		h.User(f.user)
	case f.request != nil:
		c.control(h, f.request)
	case f.response != nil:
		c.answered(f.response)
	case f.cancel != nil:
		c.withdraw(*f.cancel)
	}
	return nil
}

// Write queues a message as a line of at most MaxLine characters (see Fit). It
// waits while much is unread, and fails when ctx ends or nobody reads any more.
func (c *Conn) Write(ctx context.Context, m message.Message) error {
	line, err := Fit(m)
	if err != nil {
		return err
	}
	return c.WriteLine(ctx, line)
}

// WriteLine is Write for a line that is made already, without its line feed.
func (c *Conn) WriteLine(ctx context.Context, line []byte) error {
	if err := c.out.room(ctx, room); err != nil {
		return err
	}
	c.order.Lock()
	defer c.order.Unlock()
	c.out.push(append(line, '\n'))
	return nil
}

// Post queues a message without waiting.
func (c *Conn) Post(m message.Message) {
	if line, err := Fit(m); err == nil {
		c.out.push(append(line, '\n'))
	}
}

// Ahead runs f, and holds every Write until it has returned: what f answers
// stands before the messages that it gives rise to (W-170). f must not Write.
func (c *Conn) Ahead(f func()) {
	c.order.Lock()
	defer c.order.Unlock()
	f()
}

// Flush waits until everything is written. It fails when ctx ends or nobody
// reads any more.
func (c *Conn) Flush(ctx context.Context) error { return c.out.below(ctx, 0) }

// Ending says that nothing happens any more that could give rise to messages:
// those that are still to be written need not wait for the reader.
func (c *Conn) Ending() { c.out.ending() }

// How long Drain waits: as long as a reader of drainRate bytes a second takes,
// within these bounds (W-32).
const (
	drainLeast = 10 * time.Second
	drainMost  = 30 * time.Second
	drainRate  = 64 << 10
)

// Drain is Flush for the end of the process. It waits the longer the more there
// is to write, and fails when a reader does not take it in that time (K-158).
func (c *Conn) Drain() error {
	limit := min(drainLeast+time.Duration(c.out.pending()/drainRate)*time.Second, drainMost)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.Flush(ctx)
}

// Gone is closed when the client reads no more (W-383): when a line could not be
// written, and on Linux, where the output is a pipe or a socket, at once.
func (c *Conn) Gone() <-chan struct{} { return c.out.gone }
