package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/internal/wire"
	"github.com/turnwright/turnwright/message"
)

// printer writes the output of a print run. Each line goes out at once; a slow
// reader holds the run, and its end for a bounded time (K-158).
type printer struct{ conn *wire.Conn }

// newPrinter prints what the session says. A reader that goes away ends it also
// while it is silent (K-159).
func newPrinter(s *turnwright.Session, w io.Writer) *printer {
	p := &printer{wire.New(strings.NewReader(""), w)}
	go func() {
		select {
		case <-s.Done():
			p.conn.Ending()
		case <-p.conn.Gone():
			_ = s.Close()
		}
	}()
	return p
}

// message writes one message as one line (M-1).
func (p *printer) message(m turnwright.Message) error {
	line, err := message.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	return p.line(line)
}

func (p *printer) line(line []byte) error {
	return readerGone(p.conn.WriteLine(context.Background(), line))
}

// drain waits until everything is written.
func (p *printer) drain() error { return readerGone(p.conn.Drain()) }

// readerGone says what an error of the output means.
func readerGone(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed):
		return errReaderGone
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the end of the output was not read in time and is lost")
	}
	return fmt.Errorf("writing the output: %w", err)
}
