package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/turnwright/turnwright/message"
)

// Why a Call has no answer.
var (
	// ErrInputEnded: the client has closed its side, no answer can come (W-378).
	ErrInputEnded = errors.New("the client has ended its input, so it cannot answer any more")
	// ErrTooLarge: the request does not fit into a line (W-24). It is not cut,
	// since the client would answer something else.
	ErrTooLarge = fmt.Errorf("the request is larger than %d characters, more than a client can read", MaxLine)
)

// CallError is the client's own error answer (W-85).
type CallError struct{ Text string }

func (e *CallError) Error() string { return e.Text }

// call is a request to the client.
type call struct {
	n      int // its place among them
	line   json.RawMessage
	answer chan *message.ControlAnswer // has room for one; closed without one at the end of the input
}

// Call sends the client a control request and waits for its answer, an object
// (W-110, W-84). Fields are those of the request beside its subtype, an object
// or nil. When ctx ends first the request is withdrawn (W-115) and ctx's error
// returned. A *CallError is the client's error answer.
func (c *Conn) Call(ctx context.Context, subtype string, fields any) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	body, err := requestBody(subtype, fields)
	if err != nil {
		return nil, err
	}
	id, ca, err := c.ask(body)
	if err != nil {
		return nil, err
	}
	select {
	case a, ok := <-ca.answer:
		switch {
		case !ok:
			return nil, ErrInputEnded
		case a.Subtype == message.ControlError:
			return nil, &CallError{Text: a.Error}
		}
		return a.Payload(), nil
	case <-ctx.Done():
		c.forget(id)
		c.Ahead(func() { // after the receipt of the interrupt that ended it
			c.Post(&message.ControlCancelRequest{RequestID: id})
		})
		return nil, ctx.Err()
	}
}

// requestBody is the object of fields with the subtype in front.
func requestBody(subtype string, fields any) (json.RawMessage, error) {
	head, err := message.Encode(struct {
		Subtype string `json:"subtype"`
	}{subtype})
	if err != nil || fields == nil {
		return head, err
	}
	rest, err := message.Encode(fields)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", subtype, err)
	case len(rest) < 2 || rest[0] != '{':
		return nil, fmt.Errorf("%s: the request's fields are no object", subtype)
	case string(rest) == "{}":
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), rest[1:]...), nil
}

// ask gives the request an id, notes that it waits and sends it.
func (c *Conn) ask(body json.RawMessage) (id string, ca *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return "", nil, ErrInputEnded
	}
	c.ids++
	id = "req_" + strconv.Itoa(c.ids)
	line, err := message.Marshal(&message.ControlRequest{RequestID: id, Request: body})
	if err != nil {
		return "", nil, err
	}
	if characters(line) > MaxLine {
		return "", nil, ErrTooLarge
	}
	ca = &call{n: c.ids, line: line, answer: make(chan *message.ControlAnswer, 1)}
	c.calls[id] = ca
	c.out.push(append(slices.Clip(line), '\n'))
	return id, ca, nil
}

// forget takes a call out of the table; nil: it is not there (any more).
func (c *Conn) forget(id string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	ca := c.calls[id]
	delete(c.calls, id)
	return ca
}

// answered hands an answer to whoever waits for it; one that nobody waits for
// is dropped (W-116).
func (c *Conn) answered(a *message.ControlAnswer) {
	if ca := c.forget(a.RequestID); ca != nil {
		ca.answer <- a
	}
}

// end fails what waits for the client.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for id, ca := range c.calls {
		delete(c.calls, id)
		close(ca.answer)
	}
}

// unanswered are the requests to the client that wait, in their order.
func (c *Conn) unanswered() []json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	var calls []*call
	for _, ca := range c.calls {
		calls = append(calls, ca)
	}
	slices.SortFunc(calls, func(a, b *call) int { return a.n - b.n })
	var raw []json.RawMessage
	for _, ca := range calls {
		raw = append(raw, ca.line)
	}
	return raw
}
