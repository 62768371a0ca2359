package message

import (
	"encoding/json"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestControlEnvelopes(t *testing.T) {
	conform.Covers(t, "M-112", "W-80", "W-84", "W-85")
	for _, c := range []struct {
		m    Message
		want string
	}{
		{&ControlRequest{RequestID: "r1", Request: json.RawMessage(`{"subtype":"interrupt"}`)}, `{"type":"control_request","request_id":"r1","request":{"subtype":"interrupt"}}`},
		{&ControlResponse{Response: ControlAnswer{Subtype: ControlSuccess, RequestID: "r1", Error: "no"}}, `{"type":"control_response","response":{"subtype":"success","request_id":"r1"}}`},
		{&ControlResponse{Response: ControlAnswer{Subtype: ControlSuccess, RequestID: "r1", Response: json.RawMessage(`{}`)}}, `{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{}}}`},
		{&ControlResponse{Response: ControlAnswer{Subtype: ControlError, RequestID: "r1", Response: json.RawMessage(`{}`)}}, `{"type":"control_response","response":{"subtype":"error","request_id":"r1","error":""}}`},
		{&ControlCancelRequest{RequestID: "r1"}, `{"type":"control_cancel_request","request_id":"r1"}`},
	} {
		if got := encode(t, c.m); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	for request, want := range map[string]string{
		`{"hooks":null,"subtype":"initialize"}`: "initialize", `{}`: "", `{"subtype":7}`: "", `[]`: "", `"x"`: "", `null`: "",
	} {
		m := decode[*ControlRequest](t, `{"type":"control_request","request_id":"r","request":`+request+`}`)
		if got := m.Subtype(); got != want {
			t.Errorf("Subtype of %s is %q", request, got)
		}
	}
	for _, bad := range []string{"", "{", " {"} {
		if got := (&ControlRequest{Request: json.RawMessage(bad)}).Subtype(); got != "" {
			t.Errorf("Subtype of %q is %q", bad, got)
		}
	}
	for response, want := range map[string]string{
		`{"subtype":"success","request_id":"r","response":{"a":1}}`: `{"a":1}`,
		`{"subtype":"success","request_id":"r","response":[1]}`:     `{}`,
		`{"subtype":"success","request_id":"r","response":null}`:    `{}`,
		`{"subtype":"success","request_id":"r"}`:                    `{}`,
	} {
		m := decode[*ControlResponse](t, `{"type":"control_response","response":`+response+`}`)
		if got := string(m.Response.Payload()); got != want {
			t.Errorf("Payload of %s is %s", response, got)
		}
	}
}
