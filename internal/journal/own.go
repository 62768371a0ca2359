package journal

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/turnwright/turnwright/internal/loop"
	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// The call and turn lines are written several times a turn. They are written
// by hand and give the bytes that encoding/json makes of an ownLine; the tests
// hold the two together.

// begin writes the frame of an own line that has about size bytes more.
func (w *Writer) begin(e loop.Entry, size int) []byte {
	b := append(make([]byte, 0, 160+len(w.SessionID)+size), `{"type":"turnwright"`...)
	b = appendString(b, "kind", string(e.Kind))
	b = append(b, `,"v":1`...)
	b = appendString(b, "sessionId", w.SessionID)
	b = append(appendKey(b, "at"), '"')
	return append(e.Time.UTC().AppendFormat(b, time.RFC3339Nano), '"')
}

func (w *Writer) call(e loop.Entry) ([]byte, error) {
	c := e.Call
	b := appendText(w.begin(e, 64+192*len(c.Calls)+len(c.Key)+len(c.Input)+len(c.Reason)), "op", string(c.Op))
	for i := range c.Calls {
		if i == 0 {
			b = append(appendKey(b, "calls"), '[')
		} else {
			b = append(b, ',')
		}
		b = appendCall(b, &c.Calls[i])
	}
	if len(c.Calls) > 0 {
		b = append(b, ']')
	}
	b = appendText(b, "key", c.Key)
	if c.Input != nil {
		b = appendString(b, "finalInput", string(c.Input))
	}
	b = appendText(b, "reason", c.Reason)
	if c.Denial != nil {
		raw, err := message.Encode(c.Denial)
		if err != nil {
			return nil, err
		}
		b = appendString(b, "denial", string(raw))
	}
	return append(b, '}'), nil
}

func appendCall(b []byte, c *loop.Call) []byte {
	b = rawjson.AppendString(append(b, `{"id":`...), c.ID)
	b = appendString(b, "name", c.Name)
	b = appendFlag(b, "concurrent", c.Concurrent)
	b = appendFlag(b, "repeatable", c.Repeatable)
	b = appendFlag(b, "spawns", c.Spawns)
	b = appendFlag(b, "internal", c.Internal)
	b = appendText(b, "fault", string(c.Fault))
	b = appendText(b, "faultText", c.FaultText)
	b = appendString(b, "key", c.Key)
	b = appendText(b, "status", string(c.Status))
	b = appendFlag(b, "valid", c.Valid)
	return append(b, '}')
}

func (w *Writer) turn(e loop.Entry) ([]byte, error) {
	b, ok := appendTurn(appendKey(w.begin(e, 768+256*len(e.Turn.Turn.Spend.Models)+len(e.Turn.Turn.Text)), "turn"), &e.Turn.Turn)
	if !ok {
		return nil, errNotFinite
	}
	if e.Turn.Result != nil {
		raw, err := message.Marshal(e.Turn.Result)
		if err != nil {
			return nil, err
		}
		b = appendString(b, "result", string(raw))
	}
	return append(b, '}'), nil
}

var errNotFinite = errors.New("the cost is not a finite number")

// appendTurn reports false when the turn has no JSON form.
func appendTurn(b []byte, t *loop.Turn) (_ []byte, ok bool) {
	b = rawjson.AppendString(append(b, `{"state":`...), string(t.State))
	b = appendNumber(b, "seq", t.Seq)
	b = appendText(b, "await", t.Await)
	b = appendText(b, "input", t.Input)
	if t.Origin != nil {
		b = appendField(b, "origin", t.Origin)
	}
	b = appendFlag(b, "synthetic", t.Synthetic)
	b = appendTime(b, "started", t.Started)
	b = appendFlag(b, "inited", t.Inited)
	b = appendCount(b, "toolTurns", t.ToolTurns)
	b = appendFlag(b, "counts", t.Counts)
	b = appendFlag(b, "final", t.Final)
	b = appendCount(b, "continues", t.Continues)
	b = appendCount(b, "pauses", t.Pauses)
	b = appendCount(b, "malformed", t.Malformed)
	b = appendCount(b, "broken", t.Broken)
	b = appendCount(b, "stopBlocks", t.StopBlocks)
	b = appendCount(b, "attempts", t.Attempts)
	b = appendCount(b, "compactFails", t.CompactFails)
	b = appendCount(b, "refills", t.Refills)
	b = appendCount(b, "sinceCompact", t.SinceCompact)
	b = appendFlag(b, "compacted", t.Compacted)
	b = appendFlag(b, "recovering", t.Recovering)
	if t.StopReason != nil {
		b = appendString(b, "stopReason", *t.StopReason)
	}
	b = appendText(b, "text", t.Text)
	if !reflect.ValueOf(&t.Usage).Elem().IsZero() {
		b = appendUsage(appendKey(b, "usage"), &t.Usage)
	}
	b = appendCount(b, "apiTime", t.APITime)
	if t.TTFT != nil {
		b = appendNumber(b, "ttft", *t.TTFT)
	}
	if t.TTFTStream != nil {
		b = appendNumber(b, "ttftStream", *t.TTFTStream)
	}
	b = appendTime(b, "sentAt", t.SentAt)
	b = appendCount(b, "tokens", t.Tokens)
	if t.Spend.USD != 0 || t.Spend.Models != nil {
		if b, ok = appendSpend(appendKey(b, "spend"), &t.Spend); !ok {
			return nil, false
		}
	}
	if t.Deferred != nil {
		b = appendCall(appendKey(b, "deferred"), t.Deferred)
	}
	if t.Ending != nil {
		b = appendField(b, "ending", t.Ending)
	}
	b = appendFlag(b, "closing", t.Closing)
	b = appendFlag(b, "drain", t.Drain)
	return append(b, '}'), true
}

func appendSpend(b []byte, s *loop.Spend) (_ []byte, ok bool) {
	if b, ok = rawjson.AppendFloat(append(b, `{"usd":`...), s.USD); !ok {
		return nil, false
	}
	names := make([]string, 0, 4) // stays on the stack
	for name := range s.Models {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i == 0 {
			b = append(b, `,"models":{`...)
		} else {
			b = append(b, ',')
		}
		b = append(rawjson.AppendString(b, name), ':')
		if b, ok = appendModelUsage(b, s.Models[name]); !ok {
			return nil, false
		}
	}
	if len(s.Models) > 0 {
		b = append(b, '}')
	}
	return append(b, '}'), true
}

func appendModelUsage(b []byte, u message.ModelUsage) (_ []byte, ok bool) {
	b = strconv.AppendInt(append(b, `{"inputTokens":`...), u.InputTokens, 10)
	b = appendNumber(b, "outputTokens", u.OutputTokens)
	b = appendNumber(b, "cacheReadInputTokens", u.CacheReadInputTokens)
	b = appendNumber(b, "cacheCreationInputTokens", u.CacheCreationInputTokens)
	b = appendNumber(b, "webSearchRequests", u.WebSearchRequests)
	if b, ok = rawjson.AppendFloat(appendKey(b, "costUSD"), u.CostUSD); !ok {
		return nil, false
	}
	b = appendNumber(b, "contextWindow", u.ContextWindow)
	b = appendNumber(b, "maxOutputTokens", u.MaxOutputTokens)
	b = appendText(b, "canonicalModel", u.CanonicalModel)
	b = appendText(b, "provider", u.Provider)
	return append(b, '}'), true
}

func appendUsage(b []byte, u *message.Usage) []byte {
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), u.InputTokens, 10)
	b = appendNumber(b, "output_tokens", u.OutputTokens)
	b = appendNumber(b, "cache_creation_input_tokens", u.CacheCreationInputTokens)
	b = appendNumber(b, "cache_read_input_tokens", u.CacheReadInputTokens)
	b = strconv.AppendInt(append(b, `,"cache_creation":{"ephemeral_5m_input_tokens":`...), u.CacheCreation.Ephemeral5m, 10)
	b = append(appendNumber(b, "ephemeral_1h_input_tokens", u.CacheCreation.Ephemeral1h), '}')
	b = strconv.AppendInt(append(b, `,"server_tool_use":{"web_search_requests":`...), u.ServerToolUse.WebSearchRequests, 10)
	b = append(appendNumber(b, "web_fetch_requests", u.ServerToolUse.WebFetchRequests), '}')
	b = appendString(b, "service_tier", u.ServiceTier)
	b = appendText(b, "speed", u.Speed)
	b = appendText(b, "inference_geo", u.InferenceGeo)
	if len(u.Iterations) > 0 {
		b = appendField(b, "iterations", u.Iterations)
	}
	return append(b, '}')
}

// appendText appends a string unless it is empty.
func appendText(b []byte, key, v string) []byte {
	if v == "" {
		return b
	}
	return appendString(b, key, v)
}

// appendPointer appends a string or null.
func appendPointer(b []byte, key string, v *string) []byte {
	if v == nil {
		return append(appendKey(b, key), "null"...)
	}
	return appendString(b, key, *v)
}

func appendNumber(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(appendKey(b, key), n, 10)
}

// appendCount appends a number unless it is zero.
func appendCount[T int | int64 | time.Duration](b []byte, key string, n T) []byte {
	if n == 0 {
		return b
	}
	return appendNumber(b, key, int64(n))
}

// appendTime appends a time unless it is zero.
func appendTime(b []byte, key string, t time.Time) []byte {
	switch y := t.Year(); {
	case t.IsZero():
		return b
	case t.Location() != time.UTC || y < 0 || y > 9999:
		return appendField(b, key, t) // encoding/json checks what may be written
	}
	return append(t.AppendFormat(append(appendKey(b, key), '"'), time.RFC3339Nano), '"')
}
