package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/turnwright/turnwright/message"
)

// The top-level types of input lines (W-40).
const (
	typeUser      = "user"
	typeRequest   = "control_request"
	typeResponse  = "control_response"
	typeCancel    = "control_cancel_request"
	typeKeepAlive = "keep_alive"
)

// interrupt is the request that is heard whatever waits to be read.
const interrupt = "interrupt"

// frame is one decoded line; of its fields one is set, or none for a line that
// means nothing here.
type frame struct {
	user     *message.User
	request  *asked
	response *message.ControlAnswer
	cancel   *string // id of the request that is withdrawn
}

// asked is a control request. With a fault it is only answered.
type asked struct {
	id, subtype string
	body        json.RawMessage
	fault       error
}

// decode reads one line. Types that are not known mean nothing (W-40); a
// request of a wrong form is one with a fault, since somebody waits for its
// answer (W-86, M-114).
func decode(line []byte) (f frame, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return f, fmt.Errorf("%w: %w at byte %d", ErrNotObject, err, syntax.Offset)
		}
		return f, fmt.Errorf("%w: %w", ErrNotObject, err)
	}
	typ, ok := text(fields["type"])
	if !ok || typ == "" {
		return f, errors.New(`"type" must be a string`)
	}
	switch typ {
	case typeUser:
		if id := fields["session_id"]; len(id) > 0 && id[0] != '"' {
			// Whatever it is, it is not looked at (W-43).
			delete(fields, "session_id")
			if line, err = json.Marshal(fields); err != nil {
				return f, err
			}
		}
		f.user, err = decodeUser(line)
	case typeRequest:
		f.request = decodeRequest(fields)
	case typeResponse:
		var m message.Message
		if m, err = message.Decode(line); err == nil {
			if r, ok := m.(*message.ControlResponse); ok {
				f.response = &r.Response
			}
		}
	case typeCancel:
		id, ok := text(fields["request_id"])
		if !ok {
			return f, errors.New(`"request_id" must be a string`)
		}
		f.cancel = &id
	case typeKeepAlive: // W-175
	}
	return f, err
}

// text is the string that raw stands for.
func text(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

func decodeRequest(fields map[string]json.RawMessage) *asked {
	a := &asked{}
	var ok bool
	if a.id, ok = text(fields["request_id"]); !ok {
		a.fault = errors.New(`the control request has no "request_id" that is a string`)
		return a
	}
	var body map[string]json.RawMessage
	if json.Unmarshal(fields["request"], &body) != nil || body == nil {
		a.fault = errors.New(`the control request has no "request" that is an object`)
		return a
	}
	if a.subtype, ok = text(body["subtype"]); !ok || a.subtype == "" {
		a.fault = errors.New(`the control request has no "request.subtype" that is a string`)
		return a
	}
	a.body = fields["request"]
	return a
}

// decodeUser reads a user line (W-42 to W-44): only the content is needed.
func decodeUser(line []byte) (*message.User, error) {
	m, err := message.Decode(line)
	if err != nil {
		var bad *message.DecodeError
		if errors.As(err, &bad) { // the line is quoted already
			return nil, fmt.Errorf("the field %q of the user message is wrong: %w", bad.Field, bad.Err)
		}
		return nil, err
	}
	u, ok := m.(*message.User)
	switch {
	case !ok:
		return nil, errors.New(`a user message has no "subtype"`)
	case u.Message.Content.IsZero():
		return nil, errors.New(`the user message has no "message.content"`)
	case u.Message.Role != "" && u.Message.Role != message.RoleUser:
		return nil, fmt.Errorf(`"message.role" is %q, must be "user"`, excerpt([]byte(u.Message.Role)))
	}
	return u, nil
}
