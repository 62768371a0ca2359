package wire

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"
)

// writer puts whole lines on a stream, in order, on a goroutine of its own
// that lives only while there is something to write.
type writer struct {
	w io.Writer

	mu      sync.Mutex
	lines   [][]byte
	bytes   int // of lines, the one being written included
	active  bool
	last    bool // nothing will be made any more: whoever writes need not wait
	err     error
	gone    chan struct{} // closed with err
	changed chan struct{} // closed when something was written; nil: nobody waits
}

// newWriter returns a writer, which fails as soon as w has lost its reader.
func newWriter(w io.Writer) *writer {
	out := &writer{w: w, gone: make(chan struct{})}
	if f, ok := w.(*os.File); ok {
		go func() { // ends with the process when the reader stays
			if hungUp(f) {
				out.mu.Lock()
				defer out.mu.Unlock()
				out.fail(syscall.EPIPE)
			}
		}()
	}
	return out
}

// push queues a line, which must end with a line feed. It never blocks. After
// a failed write everything is dropped.
func (w *writer) push(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.lines = append(w.lines, line)
	w.bytes += len(line)
	if !w.active {
		w.active = true
		go w.run()
	}
}

func (w *writer) run() {
	for {
		w.mu.Lock()
		if len(w.lines) == 0 || w.err != nil {
			w.lines, w.active = nil, false
			w.mu.Unlock()
			return
		}
		line := w.lines[0]
		w.lines[0] = nil
		w.lines = w.lines[1:]
		w.mu.Unlock()

		_, err := w.w.Write(line) // one write a line: nothing is held back

		w.mu.Lock()
		w.bytes -= len(line)
		if err != nil {
			w.fail(err)
		}
		w.wake()
		w.mu.Unlock()
	}
}

// fail drops everything from now on. It needs w.mu.
func (w *writer) fail(err error) {
	if w.err != nil {
		return
	}
	w.err = err
	close(w.gone)
	w.wake()
}

// room waits until at most limit bytes wait to be written, or until ending.
func (w *writer) room(ctx context.Context, limit int) error {
	return w.wait(ctx, func() bool { return w.last || w.bytes <= limit })
}

// below waits until at most limit bytes wait to be written. It fails when
// nothing can be written any more, or ctx ends.
func (w *writer) below(ctx context.Context, limit int) error {
	return w.wait(ctx, func() bool { return w.bytes <= limit })
}

// ending frees those who wait for room, now and later.
func (w *writer) ending() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = true
	w.wake()
}

// pending is how many bytes wait to be written.
func (w *writer) pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

// wake needs w.mu.
func (w *writer) wake() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// wait waits until the condition holds, which is asked for with w.mu.
func (w *writer) wait(ctx context.Context, holds func() bool) error {
	for {
		w.mu.Lock()
		if w.err != nil || holds() {
			defer w.mu.Unlock()
			return w.err
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
