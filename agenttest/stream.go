package agenttest

import (
	"bytes"
	"errors"
	"net/http"
	"time"
)

// stream returns the framed body and, for each event sent, where it ends. The
// error event and EndWithout are applied; holds and cuts are the sender's.
func (a answer) stream() (body []byte, ends []mark) {
	events := a.shortened()
	var buf bytes.Buffer
	f := a.step.framing
	for i, ev := range events {
		f.write(&buf, ev, i == len(events)-1)
		ends = append(ends, mark{at: buf.Len(), done: ev.done})
	}
	return buf.Bytes(), ends
}

// mark is the end of an event in a body.
type mark struct{ at, done int }

func (a answer) shortened() []event {
	events := a.events()
	if a.step.fault != nil {
		n := a.step.faultAt.index(events)
		events = append(events[:n:n], event{kind: "error", data: a.step.fault.body(""), done: doneAt(events, n)})
	}
	if a.step.endless != "" {
		for i := len(events) - 1; i >= 0; i-- {
			if events[i].kind == a.step.endless {
				return events[:i]
			}
		}
	}
	return events
}

func doneAt(events []event, n int) int {
	if n == 0 {
		return 0
	}
	return events[n-1].done
}

// index returns how many events come before the point.
func (p Point) index(events []event) int {
	if p >= 0 {
		return min(int(p), len(events))
	}
	blocks := int(-p) - 1
	for i, ev := range events {
		switch {
		case blocks == 0 && (ev.kind == "message_start" || ev.kind == "ping"):
			if i+1 == len(events) || events[i+1].kind != "ping" {
				return i + 1
			}
		case blocks > 0 && ev.done == blocks:
			return i + 1
		}
	}
	return len(events)
}

func (f Framing) write(buf *bytes.Buffer, ev event, last bool) {
	nl, colon := "\n", ": "
	if f.CRLF {
		nl = "\r\n"
	}
	if f.NoSpace {
		colon = ":"
	}
	if f.Comments {
		buf.WriteString(": comment" + nl + nl)
	}
	if f.UnknownEvents && ev.kind != "message_start" {
		buf.WriteString("event" + colon + "turn_weather" + nl + "data" + colon + `{"type":"turn_weather","sky":"blue"}` + nl + nl)
	}
	if !f.DataOnly {
		buf.WriteString("event" + colon + ev.kind + nl)
	}
	data := ev.data
	if f.SplitData && len(data) > 1 && data[0] == '{' {
		// A line break after the first brace is white space in JSON.
		buf.WriteString("data" + colon + "{" + nl)
		data = data[1:]
	}
	buf.WriteString("data" + colon)
	buf.Write(data)
	buf.WriteString(nl)
	if !last || !f.NoFinalBlank {
		buf.WriteString(nl)
	}
}

// sender writes one answer's bytes and knows when to stop.
type sender struct {
	w      http.ResponseWriter
	flush  func()
	gone   <-chan struct{} // the client left
	closed <-chan struct{} // the server closes
}

// The two ways in which an answer ends before its end.
var (
	errGone = errors.New("agenttest: the client is gone or the server closes")
	errCut  = errors.New("agenttest: the script cuts the connection")
)

func (s *sender) wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.gone:
	case <-s.closed:
	}
	return errGone
}

// write sends data in pieces of chunk bytes (0: whole), each flushed.
func (s *sender) write(data []byte, chunk int) error {
	for len(data) > 0 {
		n := len(data)
		if chunk > 0 {
			n = min(chunk, n)
		}
		if _, err := s.w.Write(data[:n]); err != nil {
			return errGone
		}
		s.flush()
		data = data[n:]
	}
	return nil
}

// hold keeps the connection open until the client leaves, with a ping every d
// when d > 0.
func (s *sender) hold(d time.Duration) error {
	for d > 0 {
		if err := s.wait(d); err != nil {
			return err
		}
		if err := s.write([]byte("event: ping\ndata: {\"type\":\"ping\"}\n\n"), 0); err != nil {
			return err
		}
	}
	select {
	case <-s.gone:
	case <-s.closed:
	}
	return errGone
}

// sendStream sends the event stream with its delays, hold and cut.
func (s *sender) sendStream(a answer) error {
	body, ends := a.stream()
	limit, cut := len(body), false
	if p := a.step.cutEvent; p != nil {
		limit, cut = endOf(ends, p.index(a.shortened())), true
	}
	if p := a.step.cutByte; p != nil {
		limit, cut = min(limit, clampCut(*p, len(body))), true
	}
	if p := a.step.hold; p != nil {
		limit = min(limit, endOf(ends, p.index(a.shortened())))
	}
	s.w.WriteHeader(http.StatusOK)
	s.flush()
	if err := s.events(body[:limit], ends, a.step); err != nil {
		return err
	}
	switch {
	case a.step.hold != nil:
		return s.hold(a.step.holdPing)
	case cut:
		return errCut
	}
	return nil
}

func (s *sender) events(body []byte, ends []mark, step Step) error {
	if step.each <= 0 {
		return s.write(body, step.chunk)
	}
	from := 0
	for _, m := range ends {
		if from >= len(body) {
			return nil
		}
		if err := s.wait(step.each); err != nil {
			return err
		}
		to := min(m.at, len(body))
		if err := s.write(body[from:to], step.chunk); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// sendMessage sends the answer as one JSON object.
func (s *sender) sendMessage(a answer) error {
	body := a.message()
	limit, cut := len(body), false
	if a.step.cutEvent != nil || a.step.endless != "" {
		limit, cut = len(body)/2, true
	}
	if p := a.step.cutByte; p != nil {
		limit, cut = clampCut(*p, len(body)), true
	}
	if a.step.hold != nil {
		return s.hold(0)
	}
	s.w.WriteHeader(http.StatusOK)
	if err := s.write(body[:limit], a.step.chunk); err != nil {
		return err
	}
	if cut {
		s.flush() // headers, when nothing was written
		return errCut
	}
	return nil
}

func endOf(ends []mark, n int) int {
	if n == 0 {
		return 0
	}
	return ends[n-1].at
}

func clampCut(n, size int) int {
	if n < 0 {
		n += size
	}
	return min(max(n, 0), size)
}

// sendRaw sends a body given by the script, with its chunks, hold and cut.
func (s *sender) sendRaw(step Step) error {
	body := []byte(step.body)
	if p := step.cutByte; p != nil {
		body = body[:clampCut(*p, len(body))]
	}
	s.flush()
	if err := s.write(body, step.chunk); err != nil {
		return err
	}
	switch {
	case step.hold != nil:
		return s.hold(step.holdPing)
	case step.cutByte != nil:
		return errCut
	}
	return nil
}
