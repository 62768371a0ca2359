package message

import "encoding/json"

// Message is one message of the stream (M-10, M-13). Switch on its Go type, or
// on what Kind returns. The set of types is closed: those of this package, with
// *Unknown for every type that it does not know.
type Message interface {
	// Kind returns the wire "type" and "subtype" (subtype "" where there is none).
	Kind() (typ, subtype string)
	// Head returns the fields that (nearly) every message has, for reading and setting.
	Head() *Header
}

// Header holds what (nearly) every message has (M-5, M-67). Empty fields are
// left out of the JSON: control messages have neither.
type Header struct {
	UUID      string `json:"uuid,omitempty"`       // unique per emitted message
	SessionID string `json:"session_id,omitempty"` // the session the message belongs to at that moment
	original  json.RawMessage
}

// Head returns h itself.
func (h *Header) Head() *Header { return h }

// Raw returns the JSON object that the message was decoded from, nil for a
// message made in Go. Changes to the message do not show in it. The caller must
// not change it.
func (h *Header) Raw() json.RawMessage { return h.original }

// Unknown is a message of a type or subtype that this version does not know
// (M-2). Header.Raw has all of it. One made in Go has only its header.
type Unknown struct {
	Type    string `json:"-"`
	Subtype string `json:"-"`
	Header
}

// Kind implements Message.
func (m *Unknown) Kind() (typ, subtype string) { return m.Type, m.Subtype }
