package anthropic

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/turnwright/turnwright/message"
)

// usualEvents are events as the API sends them.
var usualEvents = []string{
	`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2},"output_tokens":1,"service_tier":"standard","inference_geo":null}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"ping"}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"H\u00e9llo \"w\" \ud83d\ude00\n"}}`,
	`{"type":"content_block_delta","index":12,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm é"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln+/="}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location"}}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15,"server_tool_use":{"web_search_requests":1}}}`,
	`{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"x","stop_details":{"a":1}},"usage":{"output_tokens":15},"context_management":{"applied_edits":[]}}`,
	`{"type":"message_stop"}`,
}

// unusualEvents are shapes that decodeUsual might take for something else.
var unusualEvents = []string{
	``, `null`, `[]`, ` {"type":"ping"} `, `{"type":"ping"`, `{"TYPE":"ping"}`, `{"\u0074ype":"ping"}`, `{"\u017ftop":1,"delta":{"\u017fignature":"s"}}`,
	`{"type":1}`, `{"type":null,"index":null,"message":null,"delta":null,"usage":null,"content_block":null}`,
	`{"index":-1}`, `{"index":1.0}`, `{"index":1e3}`, `{"index":999999999}`, `{"index":4294967296}`, `{"index":"1"}`, `{"index":1,"index":2,"Index":3}`,
	`{"delta":{"text":"a"},"delta":{"thinking":"b","text":null}}`, `{"delta":[]}`, `{"delta":{"text":[1]}}`, `{"delta":{"stop_sequence":1}}`,
	`{"message":{"id":"a"},"message":{"model":"b"}}`, `{"message":{"id":"a"},"message":null}`, `{"message":[]}`, `{"message":{"ID":"a","usage":null}}`,
	`{"delta":{"stop_sequence":"a"},"delta":{"stop_sequence":null,"citation":null,"stop_details":null}}`,
	"{\"delta\":{\"text\":\"\xff\"}}", `{"delta":{"text":"\ud800"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`,
	`{"usage":{"input_tokens":-1}}`, `{"usage":{"input_tokens":"1"}}`, `{"usage":{"Input_Tokens":1,"iterations":null,"cache_creation":null}}`,
	`{"usage":{"cache_creation":[],"server_tool_use":{"x":1}}}`, `{"usage":{"iterations":[{"a":1}],"speed":"fast","service_tier":null}}`, `{"usage":[]}`,
}

func TestUsualEventsAreDecodedCheaply(t *testing.T) {
	for _, e := range usualEvents {
		var ev wireEvent
		if !decodeUsual([]byte(e), &ev) {
			t.Errorf("needed encoding/json: %s", e)
		}
		if u := new(message.Usage); len(ev.Usage) > 0 && !decodeUsage(ev.Usage, u) {
			t.Errorf("needed encoding/json: %s", ev.Usage)
		}
	}
}

// FuzzDecodeUsual: what is decoded without encoding/json is what encoding/json
// decodes.
func FuzzDecodeUsual(f *testing.F) {
	for _, list := range [][]string{usualEvents, unusualEvents} {
		for _, e := range list {
			f.Add([]byte(e))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want wireEvent
		if !decodeUsual(data, &got) {
			return
		}
		if err := json.Unmarshal(data, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q:\ngot  %+v\nwant %+v (%v)", data, got, want, err)
		}
		usages := []json.RawMessage{got.Usage}
		if got.Message != nil {
			usages = append(usages, got.Message.Usage)
		}
		for _, raw := range usages {
			if len(raw) == 0 {
				continue
			}
			before := message.Usage{InputTokens: 3, ServiceTier: "s", CacheCreation: message.CacheCreation{Ephemeral1h: 4}}
			got, want := before, before
			if !decodeUsage(raw, &got) {
				continue
			}
			if err := json.Unmarshal(raw, &want); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("usage %q:\ngot  %+v\nwant %+v (%v)", raw, got, want, err)
			}
		}
	})
}
