package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
)

// histories are the lengths, in turns, at which a turn is measured.
var histories = []int{10, 100, 1000}

// span is how many turns one conversation is measured for: the history grows
// by a tenth meanwhile.
func span(history int) int { return max(history/10, 10) }

// The answers: one call of a read-only tool with about 200 bytes of input, so
// that 1,000 turns are a history of some 700 KB; and the last text.
var (
	toolAnswer = sse("toolu_%d", `{"type":"tool_use","id":"toolu_%d","name":"look","input":{}}`,
		`{"type":"input_json_delta","partial_json":"{\"text\":\"`+strings.Repeat("abcdefghij", 20)+`\"}"}`, "tool_use")
	textAnswer = sse("", `{"type":"text","text":""}`, `{"type":"text_delta","text":"done"}`, "end_turn")
)

// sse is the body of a streamed answer; %d stands for the request's number.
func sse(_, block, delta, stop string) string {
	return "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_%d\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":" + block + "}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":" + delta + "}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" + stop + "\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":20}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
}

func answer(n int, last bool) []byte {
	text := toolAnswer
	if last {
		text = textAnswer
	}
	return []byte(strings.ReplaceAll(text, "%d", fmt.Sprint(n)))
}

// server answers with tool calls until stop requests were made, then with a
// text. It reads each request to its end and looks at nothing.
type server struct {
	url    string
	mu     sync.Mutex
	n      int
	stop   int
	onTurn func(n int, body []byte)
	keep   bool
}

func newServer(b *testing.B) *server {
	s := &server{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	h := &http.Server{Handler: s}
	go func() { _ = h.Serve(l) }()
	b.Cleanup(func() { _ = h.Close() })
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if s.keep {
		body, _ = io.ReadAll(r.Body)
	} else {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	s.mu.Lock()
	n := s.n
	s.n++
	onTurn := s.onTurn
	s.mu.Unlock()
	if onTurn != nil {
		onTurn(n, body)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(answer(n, n >= s.stop))
}

// between restarts the server's script and lets the benchmark's clock run from
// the request that has so many turns behind it, for so many turns.
func (s *server) between(b *testing.B, history, turns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.stop = 0, history+turns
	s.onTurn = func(n int, _ []byte) {
		switch n {
		case history:
			b.StartTimer()
		case history + turns:
			b.StopTimer()
		}
	}
}

func look() turnwright.Tool {
	return turnwright.NewTool("look", "Looks.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return in.Text, nil
	}, turnwright.ReadOnly())
}

// options are the defaults of a user, journal on, with everything in temporary
// folders.
func options(b *testing.B, url string) turnwright.Options {
	return turnwright.Options{
		Model: "claude-sonnet-4-5", CWD: b.TempDir(),
		CustomTools: []turnwright.Tool{look()}, AllowedTools: []string{"look"},
		Env: map[string]string{
			"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_CUSTOM_HEADERS": "",
			"CLAUDE_CONFIG_DIR": b.TempDir(), "CLAUDE_CODE_MAX_TURNS": "", "CLAUDE_CODE_EXTRA_BODY": "",
		},
	}
}

// run makes one whole conversation.
func run(b *testing.B, o turnwright.Options) {
	for m, err := range turnwright.Query(b.Context(), "go", o) {
		if err != nil {
			b.Fatal(err)
		}
		if r, ok := m.(*turnwright.ResultMessage); ok && r.Subtype != turnwright.Success {
			b.Fatal(r.Subtype)
		}
	}
}

// BenchmarkLoopback is one turn (request, streamed answer, tool, journal) at a
// given length of history. Beside it stand a bare client that makes the same
// requests and runs the same function: net/http, a line scanner and
// encoding/json, without journal, stream, permissions, retries or watchdog;
// and, as the floor, the same bytes replayed by a client that reads nothing.
func BenchmarkLoopback(b *testing.B) {
	for _, history := range histories {
		b.Run(fmt.Sprintf("replay/%d", history), func(b *testing.B) { replay(b, history) })
		b.Run(fmt.Sprintf("bare/%d", history), func(b *testing.B) { bare(b, history) })
		b.Run(fmt.Sprintf("turnwright/%d", history), func(b *testing.B) { loopback(b, history) })
	}
}

func loopback(b *testing.B, history int) {
	srv := newServer(b)
	o := options(b, srv.url)
	b.ReportAllocs()
	b.StopTimer()
	for left := b.N; left > 0; {
		turns := min(left, span(history))
		left -= turns
		srv.between(b, history, turns)
		run(b, o)
	}
}

// replay posts the request bodies of a real run and counts the events.
func replay(b *testing.B, history int) {
	srv := newServer(b)
	srv.keep = true
	bodies := [][]byte{}
	turns := span(history)
	srv.stop = history + turns
	srv.onTurn = func(n int, body []byte) {
		if n >= history {
			bodies = append(bodies, body)
		}
	}
	run(b, options(b, srv.url))
	srv.keep, srv.onTurn, srv.stop = false, nil, 1<<62
	client := &http.Client{}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		post(b, client, srv.url, bodies[i%len(bodies)])
	}
}

// post makes one request and reads its events.
func post(b *testing.B, client *http.Client, url string, body []byte) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	events := 0
	sc := bufio.NewScanner(resp.Body)
	for sc.Scan() {
		if bytes.HasPrefix(sc.Bytes(), []byte("data: ")) {
			events++
		}
	}
	if sc.Err() != nil || events != 6 {
		b.Fatal(sc.Err(), events)
	}
}

// inProcess is a model without HTTP.
type inProcess struct {
	n, stop int
	onTurn  func(n int)
}

func (m *inProcess) Stream(_ context.Context, r *model.Request, _ func(model.Event)) (*model.Response, error) {
	n := m.n
	m.n++
	m.onTurn(n)
	u := message.Usage{InputTokens: 10, OutputTokens: 20}
	resp := &model.Response{ID: fmt.Sprintf("msg_%d", n), Model: r.Model, Usage: u, StartUsage: u, StopReason: "end_turn"}
	if n >= m.stop {
		resp.Blocks = []model.Block{{Block: message.NewText("done"), Done: true}}
		return resp, nil
	}
	resp.StopReason = "tool_use"
	resp.Blocks = []model.Block{{Block: message.NewToolUse(fmt.Sprintf("toolu_%d", n), "look", []byte(`{"text":"hello"}`)), Done: true}}
	return resp, nil
}

// BenchmarkTurnInProcess is one turn without HTTP: machine, engine, tool,
// journal, stream.
func BenchmarkTurnInProcess(b *testing.B) {
	for _, history := range histories {
		b.Run(fmt.Sprint(history), func(b *testing.B) {
			o := options(b, "http://127.0.0.1:1")
			b.ReportAllocs()
			b.StopTimer()
			for left := b.N; left > 0; {
				turns := min(left, span(history))
				left -= turns
				m := &inProcess{stop: history + turns}
				m.onTurn = func(n int) {
					switch n {
					case history:
						b.StartTimer()
					case history + turns:
						b.StopTimer()
					}
				}
				o.ModelClient = m
				run(b, o)
			}
		})
	}
}
