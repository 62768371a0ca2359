package anthropic

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// decodeUsual reads an event of the usual shape as json.Unmarshal does, without
// its cost: it is done for every piece of an answer. It reports false, and ev
// is of no use then, for whatever is unusual; encoding/json decides on that.
func decodeUsual(data []byte, ev *wireEvent) bool {
	if !rawjson.IsObject(data) || !json.Valid(data) {
		return false
	}
	for k, v := range rawjson.Members(data) {
		ok := true
		switch string(k) {
		case "type":
			ok = setName(&ev.Type, v)
		case "index":
			ok = setInt(&ev.Index, v)
		case "message":
			ok = decodeStart(v, &ev.Message)
		case "content_block":
			ev.ContentBlock = v
		case "delta":
			ok = decodeDelta(v, &ev.Delta)
		case "usage":
			ev.Usage = v
		case "error":
			return false
		case "request_id":
			ok = setString(&ev.RequestID, v)
		default:
			ok = unknownKey(k)
		}
		if !ok {
			return false
		}
	}
	return true
}

func decodeStart(raw []byte, to **wireStart) bool {
	if rawjson.IsNull(raw) {
		*to = nil
		return true
	}
	if !rawjson.IsObject(raw) {
		return false
	}
	if *to == nil {
		*to = new(wireStart)
	}
	for k, v := range rawjson.Members(raw) {
		ok := true
		switch string(k) {
		case "id":
			ok = setString(&(*to).ID, v)
		case "model":
			ok = setString(&(*to).Model, v)
		case "usage":
			(*to).Usage = v
		default:
			ok = unknownKey(k)
		}
		if !ok {
			return false
		}
	}
	return true
}

func decodeDelta(raw []byte, d *wireDelta) bool {
	if rawjson.IsNull(raw) {
		return true
	}
	if !rawjson.IsObject(raw) {
		return false
	}
	for k, v := range rawjson.Members(raw) {
		ok := true
		switch string(k) {
		case "type":
			ok = setName(&d.Type, v)
		case "text":
			ok = setString(&d.Text, v)
		case "partial_json":
			ok = setString(&d.PartialJSON, v)
		case "thinking":
			ok = setString(&d.Thinking, v)
		case "signature":
			ok = setString(&d.Signature, v)
		case "citation":
			d.Citation = v
		case "stop_reason":
			ok = setString(&d.StopReason, v)
		case "stop_sequence":
			d.StopSequence = nil
			if !rawjson.IsNull(v) {
				d.StopSequence = new(string)
				ok = setString(d.StopSequence, v)
			}
		case "stop_details":
			d.StopDetails = bytes.Clone(v) // outlives the event
		default:
			ok = unknownKey(k)
		}
		if !ok {
			return false
		}
	}
	return true
}

// decodeUsage reads a usage of the usual shape into u as json.Unmarshal does.
// When it reports false u is of no use.
func decodeUsage(raw []byte, u *message.Usage) bool {
	if rawjson.IsNull(raw) {
		return true
	}
	if !rawjson.IsObject(raw) {
		return false
	}
	for k, v := range rawjson.Members(raw) {
		ok := true
		switch string(k) {
		case "input_tokens":
			ok = setInt(&u.InputTokens, v)
		case "output_tokens":
			ok = setInt(&u.OutputTokens, v)
		case "cache_creation_input_tokens":
			ok = setInt(&u.CacheCreationInputTokens, v)
		case "cache_read_input_tokens":
			ok = setInt(&u.CacheReadInputTokens, v)
		case "cache_creation":
			ok = decodeCounts(v, "ephemeral_5m_input_tokens", &u.CacheCreation.Ephemeral5m,
				"ephemeral_1h_input_tokens", &u.CacheCreation.Ephemeral1h)
		case "server_tool_use":
			ok = decodeCounts(v, "web_search_requests", &u.ServerToolUse.WebSearchRequests,
				"web_fetch_requests", &u.ServerToolUse.WebFetchRequests)
		case "service_tier":
			ok = setString(&u.ServiceTier, v)
		case "speed":
			ok = setString(&u.Speed, v)
		case "inference_geo":
			ok = setString(&u.InferenceGeo, v)
		case "iterations":
			u.Iterations = bytes.Clone(v) // outlives the event
		default:
			ok = unknownKey(k)
		}
		if !ok {
			return false
		}
	}
	return true
}

func decodeCounts(raw []byte, nameA string, a *int64, nameB string, b *int64) bool {
	if rawjson.IsNull(raw) {
		return true
	}
	if !rawjson.IsObject(raw) {
		return false
	}
	for k, v := range rawjson.Members(raw) {
		ok := true
		switch string(k) {
		case nameA:
			ok = setInt(a, v)
		case nameB:
			ok = setInt(b, v)
		default:
			ok = unknownKey(k)
		}
		if !ok {
			return false
		}
	}
	return true
}

// setString stores a JSON string; null changes nothing, as in encoding/json.
func setString(to *string, raw []byte) bool {
	if !rawjson.IsString(raw) {
		return rawjson.IsNull(raw)
	}
	*to = rawjson.Unquote(raw)
	return true
}

// setName is setString for the names of events and deltas.
func setName(to *string, raw []byte) bool {
	if len(raw) > 2 && rawjson.IsString(raw) {
		if s, ok := names[string(raw[1:len(raw)-1])]; ok {
			*to = s
			return true
		}
	}
	return setString(to, raw)
}

// setInt stores a whole number; null changes nothing. Other forms of numbers
// and great ones are unusual.
func setInt[T int | int64](to *T, raw []byte) bool {
	const most = 9 // digits, of a 32 bit number
	n, err := strconv.ParseUint(string(raw[:min(len(raw), most+1)]), 10, 31)
	if len(raw) > most || err != nil {
		return rawjson.IsNull(raw)
	}
	*to = T(n)
	return true
}

// unknownKey reports whether encoding/json too ignores a key that is not among
// a struct's names: it would take "TYPE" for "type". All names are of lower
// case letters, so that a key without others is just what it seems.
func unknownKey(k []byte) bool {
	for _, c := range k {
		if c >= 0x80 || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

// names holds the usual names of events and deltas, so that they are not made
// anew for each.
var names = func() map[string]string {
	m := make(map[string]string)
	for _, known := range []map[string]bool{knownEvent, knownDelta, {"ping": true}} {
		for name := range known {
			m[name] = name
		}
	}
	return m
}()
