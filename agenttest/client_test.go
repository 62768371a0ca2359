package agenttest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A plain client for the tests: net/http and a small reader of event streams.

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func post(t *testing.T, s *Server, body string) reply {
	t.Helper()
	return postContext(t, t.Context(), s, body, goodHeader())
}

func postContext(t *testing.T, ctx context.Context, s *Server, body string, h http.Header) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	res, err := s.Client().Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(data), err: err}
}

func streaming(messages string, members ...string) string {
	return with(messages, append(members, `"stream":true`)...)
}

// sse is one event of a stream.
type sse struct {
	kind string
	data map[string]any
}

// readEvents reads an event stream by the rules of the format: any line end,
// optional space, joined data lines, comments. A last event without its blank
// line counts.
func readEvents(t *testing.T, body string) []sse {
	t.Helper()
	var out []sse
	var kind string
	var data []string
	emit := func() {
		if data == nil {
			kind = ""
			return
		}
		ev := sse{kind: kind}
		if err := json.Unmarshal([]byte(strings.Join(data, "\n")), &ev.data); err != nil {
			t.Fatalf("data of event %q: %v: %q", kind, err, data)
		}
		out = append(out, ev)
		kind, data = "", nil
	}
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if line == "" {
			emit()
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			kind = value
		case "data":
			data = append(data, value)
		}
	}
	emit()
	return out
}

// assemble turns the events of a stream into the message that they mean.
func assemble(t *testing.T, events []sse) map[string]any {
	t.Helper()
	var msg map[string]any
	var content []any
	inputs := map[int]string{}
	for _, ev := range events {
		kind, _ := ev.data["type"].(string)
		index := 0
		if n, ok := ev.data["index"].(float64); ok {
			index = int(n)
		}
		switch kind {
		case "message_start":
			msg = ev.data["message"].(map[string]any)
		case "content_block_start":
			if index != len(content) {
				t.Fatalf("block %d starts when there are %d", index, len(content))
			}
			content = append(content, ev.data["content_block"])
		case "content_block_delta":
			block := content[index].(map[string]any)
			delta := ev.data["delta"].(map[string]any)
			for field, value := range delta {
				switch field {
				case "type":
				case "partial_json":
					inputs[index] += value.(string)
				default:
					block[field] = block[field].(string) + value.(string)
				}
			}
		case "content_block_stop":
			if inputs[index] != "" {
				content[index].(map[string]any)["input"] = json.RawMessage(inputs[index])
			}
		case "message_delta":
			for k, v := range ev.data["delta"].(map[string]any) {
				msg[k] = v
			}
			usage := msg["usage"].(map[string]any)
			for k, v := range ev.data["usage"].(map[string]any) {
				usage[k] = v
			}
		}
	}
	msg["content"] = content
	if content == nil {
		msg["content"] = []any{}
	}
	return msg
}

// same compares two values by their JSON.
func same(t *testing.T, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var w []byte
	if s, ok := want.(string); ok {
		w = []byte(s)
	} else if w, err = json.Marshal(want); err != nil {
		t.Fatal(err)
	}
	if canonicalJSON(t, g) != canonicalJSON(t, w) {
		t.Errorf("got  %s\nwant %s", canonicalJSON(t, g), canonicalJSON(t, w))
	}
}

func canonicalJSON(t *testing.T, data []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// errorOf decodes an error body.
func errorOf(t *testing.T, r reply) (kind, message, requestID string) {
	t.Helper()
	var e struct {
		Type      string   `json:"type"`
		Error     apiError `json:"error"`
		RequestID string   `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Type != "error" {
		t.Fatalf("no error body: %v: %s", err, r.body)
	}
	return e.Error.Type, e.Error.Message, e.RequestID
}

// fakeT records what a server reports to its test.
type fakeT struct {
	mu     sync.Mutex
	errors []string
	ends   []func()
}

func (*fakeT) Helper() {}

func (f *fakeT) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeT) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

func (f *fakeT) Cleanup(end func()) { f.ends = append(f.ends, end) }

func (f *fakeT) close() {
	for _, end := range f.ends {
		end()
	}
}

func (f *fakeT) reported() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.errors...)
}

var errBodyCut = errors.New("body cut")

// partial reads what arrives of a body before the connection breaks.
func partial(r reply) (string, error) {
	if r.err != nil && !errors.Is(r.err, io.ErrUnexpectedEOF) {
		return r.body, r.err
	}
	if r.err != nil {
		return r.body, errBodyCut
	}
	return r.body, nil
}
