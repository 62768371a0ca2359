package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/turnwright/turnwright/message"
)

// Request is a control request of the client (W-80).
type Request struct {
	Subtype string
	Body    json.RawMessage // the object with the subtype

	id     string
	conn   *Conn
	ctx    context.Context
	cancel context.CancelFunc
	done   atomic.Bool // answered, or withdrawn
}

// Context ends when the request is answered or the client withdraws it.
func (r *Request) Context() context.Context { return r.ctx }

// Decode reads the request's fields into v. Fields that v does not have are
// ignored (W-63); one of a wrong type is an error that names it (W-86).
func (r *Request) Decode(v any) error {
	err := json.Unmarshal(r.Body, v)
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		return fmt.Errorf("%s: the field %q cannot be a %s", r.Subtype, typ.Field, typ.Value)
	}
	return err
}

// Succeed answers with an object; nil is {}. Of several answers the first
// counts.
func (r *Request) Succeed(response any) { r.succeed(response, nil) }

// SucceedAgain answers like Succeed and adds the questions to the client that
// have no answer yet, for a client that has begun anew (W-69).
func (r *Request) SucceedAgain(response any) { r.succeed(response, r.conn.unanswered()) }

func (r *Request) succeed(response any, open []json.RawMessage) {
	raw := json.RawMessage("{}")
	if response != nil {
		var err error
		if raw, err = message.Encode(response); err != nil {
			r.Fail(fmt.Errorf("%s: the answer could not be encoded: %w", r.Subtype, err))
			return
		}
		if !bytes.HasPrefix(raw, []byte("{")) {
			r.Fail(fmt.Errorf("%s: the answer is no object", r.Subtype))
			return
		}
	}
	r.answer(message.ControlAnswer{Subtype: message.ControlSuccess, Response: raw, PendingPermissionRequests: open})
}

// Fail answers with an error, whose text the client shows (W-85).
func (r *Request) Fail(err error) {
	r.answer(message.ControlAnswer{Subtype: message.ControlError, Error: err.Error()})
}

func (r *Request) answer(a message.ControlAnswer) {
	if r.done.Swap(true) {
		return
	}
	r.close()
	a.RequestID = r.id
	r.conn.Post(&message.ControlResponse{Response: a})
}

func (r *Request) close() {
	r.cancel()
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[r.id] == r {
		delete(c.open, r.id)
	}
}

// control hands a request to h, or answers it when its form is wrong. A panic
// is an answer too: somebody waits for it.
func (c *Conn) control(h Handler, a *asked) {
	r := &Request{Subtype: a.subtype, Body: a.body, id: a.id, conn: c}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if a.fault != nil {
		r.Fail(a.fault)
		return
	}
	c.mu.Lock()
	c.open[r.id] = r
	c.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			r.Fail(fmt.Errorf("%s: internal error: %v", excerpt([]byte(r.Subtype)), p))
		}
	}()
	h.Control(r)
}

// withdraw ends a request of the client without answer (M-112).
func (c *Conn) withdraw(id string) {
	c.mu.Lock()
	r := c.open[id]
	c.mu.Unlock()
	if r != nil && !r.done.Swap(true) {
		r.close()
	}
}
