package message

import (
	"encoding/json"

	"github.com/turnwright/turnwright/internal/rawjson"
)

// ControlRequest asks the other side of the wire for something (M-112, M-113).
// Like all control messages it has no uuid and no session id.
type ControlRequest struct {
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request" wire:"object"` // an object with a "subtype"
	Header
}

// Kind implements Message.
func (*ControlRequest) Kind() (typ, subtype string) { return "control_request", "" }

// Subtype returns what is asked for, such as "interrupt", and "" when Request
// does not say.
func (m *ControlRequest) Subtype() string {
	if !json.Valid(m.Request) || !rawjson.IsObject(m.Request) {
		return ""
	}
	if s := rawjson.Member(m.Request, "subtype"); len(s) > 0 && s[0] == '"' {
		return rawjson.Unquote(s)
	}
	return ""
}

// ControlResponse answers a ControlRequest (M-112).
type ControlResponse struct {
	Response ControlAnswer `json:"response"`
	Header
}

// The subtypes of a ControlAnswer.
const (
	ControlSuccess = "success"
	ControlError   = "error"
)

// ControlAnswer is the answer inside a ControlResponse. Of Response and Error
// only the one that belongs to the subtype is written.
type ControlAnswer struct {
	Subtype                   string            `json:"subtype"` // success, error
	RequestID                 string            `json:"request_id"`
	Response                  json.RawMessage   `json:"response,omitempty"`                    // of a success; see Payload
	Error                     string            `json:"error,omitempty"`                       // of an error
	PendingPermissionRequests []json.RawMessage `json:"pending_permission_requests,omitempty"` // control requests not answered yet (W-69)
}

// Payload returns Response if it is an object, else {} (W-84).
func (a *ControlAnswer) Payload() json.RawMessage {
	if rawjson.IsObject(a.Response) {
		return a.Response
	}
	return json.RawMessage("{}")
}

func (a *ControlAnswer) keyRule(name string) rule {
	switch {
	case name == "response" && a.Subtype == ControlError, name == "error" && a.Subtype == ControlSuccess:
		return drop
	case name == "error" && a.Subtype == ControlError:
		return force
	}
	return byTag
}

// Kind implements Message.
func (*ControlResponse) Kind() (typ, subtype string) { return "control_response", "" }

// ControlCancelRequest withdraws a ControlRequest; there is no answer (M-112,
// W-115).
type ControlCancelRequest struct {
	RequestID string `json:"request_id"`
	Header
}

// Kind implements Message.
func (*ControlCancelRequest) Kind() (typ, subtype string) { return "control_cancel_request", "" }

// KeepAlive may come on standard input and means nothing. It is not written
// (W-175).
type KeepAlive struct{ Header }

// Kind implements Message.
func (*KeepAlive) Kind() (typ, subtype string) { return "keep_alive", "" }
