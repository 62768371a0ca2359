package engine

import (
	"context"
	"sync"

	"github.com/turnwright/turnwright/message"
)

// output is the session's one stream: everything that is emitted goes through
// it in order. It is bounded in bytes, softly: pushing never blocks, and work
// that would make more waits until the reader has caught up.
type output struct {
	mu     sync.Mutex
	msgs   []message.Message
	sizes  []int
	bytes  int
	limit  int
	closed bool
	more   chan struct{} // signalled when a message or the end came
	room   chan struct{} // closed when bytes fell below the limit; nil: there is room
	gone   bool          // nobody will read: drop everything
}

func newOutput(limit int) *output {
	return &output{limit: limit, more: make(chan struct{}, 1)}
}

func (o *output) push(m message.Message) {
	n := sizeOf(m)
	o.mu.Lock()
	if o.gone || o.closed {
		o.mu.Unlock()
		return
	}
	o.msgs, o.sizes, o.bytes = append(o.msgs, m), append(o.sizes, n), o.bytes+n
	if o.bytes >= o.limit && o.room == nil {
		o.room = make(chan struct{})
	}
	o.mu.Unlock()
	o.signal()
}

func (o *output) signal() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// waitRoom blocks while the queue is over its limit.
func (o *output) waitRoom(ctx context.Context) error {
	o.mu.Lock()
	room := o.room
	o.mu.Unlock()
	if room == nil {
		return nil
	}
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next returns the next message; ok is false at the end of the stream.
func (o *output) next(ctx context.Context) (m message.Message, ok bool, err error) {
	for {
		o.mu.Lock()
		if len(o.msgs) > 0 {
			m, o.bytes = o.msgs[0], o.bytes-o.sizes[0]
			o.msgs[0] = nil
			o.msgs, o.sizes = o.msgs[1:], o.sizes[1:]
			if len(o.msgs) == 0 {
				o.msgs, o.sizes = nil, nil
			}
			o.freeRoom()
			o.mu.Unlock()
			return m, true, nil
		}
		closed := o.closed
		o.mu.Unlock()
		if closed {
			o.signal() // for a reader that comes later
			return nil, false, nil
		}
		select {
		case <-o.more:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// freeRoom needs o.mu.
func (o *output) freeRoom() {
	if o.room != nil && (o.bytes < o.limit || o.closed || o.gone) {
		close(o.room)
		o.room = nil
	}
}

// end closes the stream after what is in it.
func (o *output) end() {
	o.mu.Lock()
	o.closed = true
	o.freeRoom()
	o.mu.Unlock()
	o.signal()
}

// abandon drops what is queued and what will come: the reader is gone (L-63).
func (o *output) abandon() {
	o.mu.Lock()
	o.gone, o.msgs, o.sizes, o.bytes = true, nil, nil, 0
	o.freeRoom()
	o.mu.Unlock()
}

// sizeOf is about the number of bytes that m holds.
func sizeOf(m message.Message) int {
	n := 512
	switch m := m.(type) {
	case *message.Assistant:
		for _, b := range m.Message.Content {
			n += len(b.Raw())
		}
	case *message.User:
		for _, b := range m.Message.Content.Blocks() {
			n += len(b.Raw())
		}
		n += len(m.ToolUseResult)
	case *message.StreamEvent:
		n += len(m.Event)
	case *message.Result:
		if m.Result != nil {
			n += len(*m.Result)
		}
	}
	return n
}
