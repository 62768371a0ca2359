package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// bareClient is the loop that a programmer would write by hand: it keeps the
// messages, sends them all each time, reads the stream and runs the function.
type bareClient struct {
	url      string
	http     *http.Client
	request  map[string]any // what is the same in every request
	messages []bareMessage
}

type bareMessage struct {
	Role    string            `json:"role"`
	Content []json.RawMessage `json:"content"`
}

// bareEvent is what the client needs of an event.
type bareEvent struct {
	Type         string          `json:"type"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage struct {
		OutputTokens int `json:"output_tokens"`
	} `json:"usage"`
}

// turn makes one request and, when the answer is a call, runs it and appends
// both; it reports whether the model wants to go on.
func (c *bareClient) turn(ctx context.Context) (bool, error) {
	c.request["messages"] = c.messages
	body, err := json.Marshal(c.request)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "x")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := c.http.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var block struct {
		Type  string          `json:"type"`
		ID    string          `json:"id,omitempty"`
		Name  string          `json:"name,omitempty"`
		Text  string          `json:"text,omitempty"`
		Input json.RawMessage `json:"input,omitempty"`
	}
	var input []byte
	stop := ""
	sc := bufio.NewScanner(resp.Body)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var ev bareEvent
		if err := json.Unmarshal(data, &ev); err != nil {
			return false, err
		}
		switch ev.Type {
		case "content_block_start":
			if err := json.Unmarshal(ev.ContentBlock, &block); err != nil {
				return false, err
			}
		case "content_block_delta":
			block.Text += ev.Delta.Text
			input = append(input, ev.Delta.PartialJSON...)
		case "message_delta":
			stop = ev.Delta.StopReason
		}
	}
	if err := sc.Err(); err != nil {
		return false, err
	}
	if stop != "tool_use" {
		return false, nil
	}
	block.Input = input
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return false, err
	}
	use, err := json.Marshal(block)
	if err != nil {
		return false, err
	}
	result, err := json.Marshal(map[string]any{"type": "tool_result", "tool_use_id": block.ID, "content": in.Text})
	if err != nil {
		return false, err
	}
	c.messages = append(c.messages,
		bareMessage{"assistant", []json.RawMessage{use}}, bareMessage{"user", []json.RawMessage{result}})
	return true, nil
}

// bare runs whole conversations of the hand-written client and measures the
// turns from history on. Its first request is one that Turnwright made, so
// that system prompt, tools and sizes are the same.
func bare(b *testing.B, history int) {
	first := firstRequest(b)
	srv := newServer(b)
	client := &http.Client{}
	b.ReportAllocs()
	b.StopTimer()
	for left := b.N; left > 0; {
		turns := min(left, span(history))
		left -= turns
		srv.between(b, history, turns)
		c := &bareClient{url: srv.url, http: client}
		if err := json.Unmarshal(first, &c.request); err != nil {
			b.Fatal(err)
		}
		raw, err := json.Marshal(c.request["messages"])
		if err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(raw, &c.messages); err != nil {
			b.Fatal(err)
		}
		for more := true; more; {
			if more, err = c.turn(b.Context()); err != nil {
				b.Fatal(fmt.Errorf("bare client: %w", err))
			}
		}
	}
}

// firstRequest is the body of the first request of a run.
func firstRequest(b *testing.B) (first []byte) {
	srv := newServer(b)
	srv.keep = true
	srv.onTurn = func(n int, body []byte) {
		if n == 0 {
			first = body
		}
	}
	run(b, options(b, srv.url))
	return first
}
