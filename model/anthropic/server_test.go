package anthropic

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// serve starts a server and a client for it.
func serve(t testing.TB, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	tr := newTransport()
	t.Cleanup(tr.CloseIdleConnections)
	c, err := New(Config{BaseURL: srv.URL, APIKey: "test-key", HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// events answers with server-sent events as the API writes them.
func events(bodies ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Request-Id", "req_test")
		_, _ = io.WriteString(w, sse(bodies...))
	}
}

func sse(bodies ...string) string {
	var b strings.Builder
	for _, s := range bodies {
		typ, _, _ := strings.Cut(strings.TrimPrefix(s, `{"type":"`), `"`)
		b.WriteString("event: " + typ + "\ndata: " + s + "\n\n")
	}
	return b.String()
}

// The events of small answers.
const (
	evStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":4,"cache_read_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":3},"output_tokens":1,"service_tier":"standard"}}}`
	evPing  = `{"type":"ping"}`
	evEnd   = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`
	evTools = `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}`
	evStop  = `{"type":"message_stop"}`
)

func blockStart(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func blockDelta(i int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta)
}

func blockStop(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func quote(s string) string {
	b, _ := message.Encode(s)
	return string(b)
}

// text returns the events of a text block, one delta each part.
func text(i int, parts ...string) []string {
	evs := []string{blockStart(i, `{"type":"text","text":""}`)}
	for _, p := range parts {
		evs = append(evs, blockDelta(i, `{"type":"text_delta","text":`+quote(p)+`}`))
	}
	return append(evs, blockStop(i))
}

// call returns the events of a tool_use block.
func call(i int, id, name string, parts ...string) []string {
	evs := []string{blockStart(i, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name))}
	for _, p := range parts {
		evs = append(evs, blockDelta(i, `{"type":"input_json_delta","partial_json":`+quote(p)+`}`))
	}
	return append(evs, blockStop(i))
}

func join(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

var hello = &model.Request{
	Model: "claude-test", MaxTokens: 1000,
	Messages: []model.Message{{Role: message.RoleUser, Blocks: []message.Block{message.NewText("Hello")}}},
}

// show renders a response for comparison.
func show(r *model.Response) string {
	if r == nil {
		return "no response"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s stop=%q in=%d out=%d\n", r.ID, r.Model, r.StopReason, r.Usage.InputTokens, r.Usage.OutputTokens)
	for _, k := range r.Blocks {
		fmt.Fprintf(&b, "%s done=%v bad=%v raw=%q\n", k.Raw(), k.Done, k.BadInput, k.RawInput)
	}
	return b.String()
}

// neverGrace is a grace timer that does nothing in the life of a test.
func neverGrace(time.Duration) *time.Timer { return time.AfterFunc(time.Hour, func() {}) }
