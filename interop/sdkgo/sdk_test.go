package sdkgo

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/turnwright/turnwright/agenttest"
)

const testModel = "claude-sonnet-4-5"

// client is the SDK pointed at the server, as its users set it up.
func client(srv *agenttest.Server, options ...option.RequestOption) anthropic.Client {
	return anthropic.NewClient(append([]option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(srv.URL()), option.WithAPIKey("any"),
		option.WithHTTPClient(srv.Client()), option.WithMaxRetries(0),
	}, options...)...)
}

func params(messages ...anthropic.MessageParam) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: testModel, MaxTokens: 4096, Messages: messages,
		System: []anthropic.TextBlockParam{{Text: "Be brief.", CacheControl: anthropic.NewCacheControlEphemeralParam()}},
		Tools: []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
			Properties: map[string]any{"command": map[string]any{"type": "string"}}, Required: []string{"command"},
		}, "Bash")},
	}
}

func ask(text string) anthropic.MessageParam {
	return anthropic.NewUserMessage(anthropic.NewTextBlock(text))
}

// send makes one request, streamed or not, and returns the whole message.
func send(t *testing.T, c anthropic.Client, p anthropic.MessageNewParams, stream bool) (*anthropic.Message, error) {
	t.Helper()
	if !stream {
		return c.Messages.New(t.Context(), p)
	}
	events := c.Messages.NewStreaming(t.Context(), p)
	defer func() { _ = events.Close() }()
	var msg anthropic.Message
	for events.Next() {
		if err := msg.Accumulate(events.Current()); err != nil {
			return nil, fmt.Errorf("accumulate: %w", err)
		}
	}
	return &msg, events.Err()
}

// both runs a test streamed and not.
func both(t *testing.T, run func(t *testing.T, stream bool)) {
	t.Run("stream", func(t *testing.T) { run(t, true) })
	t.Run("whole", func(t *testing.T) { run(t, false) })
}

func TestMessage(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		srv := agenttest.NewServer(t, agenttest.ID(agenttest.Usage(agenttest.Blocks(
			agenttest.Thinking("Let me see.", "c2lnbmF0dXJl"), agenttest.Redacted("ZGF0YQ=="), agenttest.Text("Grüße, 世界 \u2028 <b>"),
			agenttest.CallID("toolu_a", "Bash", `{"command":"ls \"x\"","n":1.50}`), agenttest.CallID("toolu_b", "List", `{}`),
		), 7, 9, 3, 4, 5), "msg_x"))
		msg, err := send(t, client(srv), params(ask("hello")), stream)
		if err != nil {
			t.Fatal(err)
		}
		if msg.ID != "msg_x" || msg.Model != testModel || msg.StopReason != anthropic.StopReasonToolUse || len(msg.Content) != 5 {
			t.Fatalf("message %s", msg.RawJSON())
		}
		if th := msg.Content[0].AsThinking(); th.Thinking != "Let me see." || th.Signature != "c2lnbmF0dXJl" {
			t.Errorf("thinking %+v", th)
		}
		if r := msg.Content[1].AsRedactedThinking(); r.Data != "ZGF0YQ==" {
			t.Errorf("redacted %+v", r)
		}
		if x := msg.Content[2].AsText(); x.Text != "Grüße, 世界 \u2028 <b>" {
			t.Errorf("text %q", x.Text)
		}
		if u := msg.Content[3].AsToolUse(); u.ID != "toolu_a" || u.Name != "Bash" || string(u.Input) != `{"command":"ls \"x\"","n":1.50}` {
			t.Errorf("call %+v", u)
		}
		if u := msg.Content[4].AsToolUse(); string(u.Input) != `{}` {
			t.Errorf("call without arguments has input %s", u.Input)
		}
		u := msg.Usage
		if u.InputTokens != 7 || u.OutputTokens != 9 || u.CacheCreationInputTokens != 7 || u.CacheReadInputTokens != 5 ||
			u.CacheCreation.Ephemeral5mInputTokens != 3 || u.CacheCreation.Ephemeral1hInputTokens != 4 {
			t.Errorf("usage %+v", u)
		}
	})
}

// A tool loop as the SDK's documentation writes it: append ToParam, append the
// results. The server compares every block with what it sent.
func TestToolLoop(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		srv := agenttest.NewServer(
			t, agenttest.StrictEcho(),
			agenttest.Blocks(agenttest.Thinking("plan", "c2ln"), agenttest.Text("Looking."), agenttest.Call("Bash", `{"command":"ls"}`), agenttest.Call("Bash", `{"command":"pwd"}`)),
			agenttest.Check(agenttest.Blocks(agenttest.Thinking("more", "c2ln2"), agenttest.Call("Bash", `{"command":"cat"}`)), func(r *agenttest.Request) error {
				if got := r.LastToolResults(); len(got) != 2 || got[0].Text != `ran {"command":"ls"}` || got[1].Text != `ran {"command":"pwd"}` {
					return fmt.Errorf("results %+v", got)
				}
				return nil
			}),
			agenttest.Text("Done."),
		)
		p := params(ask("look around"))
		p.Thinking = anthropic.ThinkingConfigParamOfEnabled(2048)
		c := client(srv)
		for range 3 {
			msg, err := send(t, c, p, stream)
			if err != nil {
				t.Fatal(err)
			}
			p.Messages = append(p.Messages, msg.ToParam())
			var results []anthropic.ContentBlockParamUnion
			for _, b := range msg.Content {
				if u, ok := b.AsAny().(anthropic.ToolUseBlock); ok {
					results = append(results, anthropic.NewToolResultBlock(u.ID, "ran "+string(u.Input), false))
				}
			}
			if results == nil {
				if msg.StopReason != anthropic.StopReasonEndTurn || msg.Content[0].Text != "Done." {
					t.Errorf("last message %s", msg.RawJSON())
				}
				break
			}
			p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
		}
		if srv.Count() != 3 {
			t.Errorf("%d requests, want 3", srv.Count())
		}
		for _, r := range srv.Requests() {
			RoundTrip(t, r.Body)
		}
	})
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		status int
		kind   anthropic.ErrorType
	}{
		{400, "invalid_request_error"}, {401, "authentication_error"}, {429, "rate_limit_error"}, {500, "api_error"}, {529, "overloaded_error"},
	} {
		both(t, func(t *testing.T, stream bool) {
			srv := agenttest.NewServer(t, agenttest.HTTPError(tt.status, string(tt.kind), "no luck", "retry-after", "3"))
			_, err := send(t, client(srv), params(ask("hello")), stream)
			var api *anthropic.Error
			if !errors.As(err, &api) {
				t.Fatalf("error %v", err)
			}
			if api.StatusCode != tt.status || api.Type() != tt.kind || api.Message != "no luck" || api.RequestID == "" {
				t.Errorf("status %d, type %q, message %q, request id %q", api.StatusCode, api.Type(), api.Message, api.RequestID)
			}
			if got := api.Response.Header.Get("Retry-After"); got != "3" {
				t.Errorf("retry-after %q", got)
			}
		})
	}
}

// The SDK's own retry works against the server.
func TestRetry(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.HTTPError(529, "overloaded_error", "Overloaded", "retry-after-ms", "1"), agenttest.Text("good"))
	msg, err := send(t, client(srv, option.WithMaxRetries(1)), params(ask("hello")), true)
	if err != nil || msg.Content[0].Text != "good" || srv.Count() != 2 {
		t.Errorf("message %+v, error %v, %d requests", msg, err, srv.Count())
	}
}

func TestErrorInStream(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.StreamError(agenttest.Text("half a text"), 3, "overloaded_error", "Overloaded"))
	msg, err := send(t, client(srv), params(ask("hello")), true)
	var api *anthropic.Error
	if !errors.As(err, &api) || api.Type() != "overloaded_error" || api.Message != "Overloaded" {
		t.Fatalf("error %#v", err)
	}
	if len(msg.Content) != 1 || !strings.HasPrefix("half a text", msg.Content[0].Text) || msg.Content[0].Text == "" {
		t.Errorf("content %+v", msg.Content)
	}
}

func TestCutStream(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.CutAfterEvent(agenttest.Text("half"), 3))
	if _, err := send(t, client(srv), params(ask("hello")), true); err == nil {
		t.Error("no error for a cut stream")
	}
}

func TestStops(t *testing.T) {
	for _, tt := range []struct {
		step     agenttest.Step
		reason   anthropic.StopReason
		sequence string
	}{
		{agenttest.StopSequence(agenttest.Text("a"), "END"), anthropic.StopReasonStopSequence, "END"},
		{agenttest.StopReason(agenttest.Text("a"), "max_tokens"), anthropic.StopReasonMaxTokens, ""},
		{agenttest.Refusal(), anthropic.StopReasonRefusal, ""},
		{agenttest.Empty(), anthropic.StopReasonEndTurn, ""},
	} {
		both(t, func(t *testing.T, stream bool) {
			msg, err := send(t, client(agenttest.NewServer(t, tt.step)), params(ask("hello")), stream)
			if err != nil {
				t.Fatal(err)
			}
			if msg.StopReason != tt.reason || msg.StopSequence != tt.sequence {
				t.Errorf("stop_reason %q, sequence %q", msg.StopReason, msg.StopSequence)
			}
		})
	}
}

// All spellings of a stream that the SDK reads mean the same to it.
func TestFramings(t *testing.T) {
	for _, f := range []agenttest.Framing{{CRLF: true}, {NoSpace: true}, {Comments: true}, {SplitData: true}} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			step := agenttest.Chunk(agenttest.Frame(agenttest.Pings(agenttest.Blocks(agenttest.Text("some text"), agenttest.Call("Bash", `{"command":"ls"}`)), 1), f), 5)
			msg, err := send(t, client(agenttest.NewServer(t, step)), params(ask("hello")), true)
			if err != nil {
				t.Fatal(err)
			}
			if msg.Content[0].Text != "some text" || string(msg.Content[1].Input) != `{"command":"ls"}` {
				t.Errorf("content %+v", msg.Content)
			}
		})
	}
}

// RoundTrip fails the test unless the body of a request decodes with the SDK's
// parameter types and encodes to the same meaning again. The stream member,
// which the SDK sets outside of its parameters, is left out.
func RoundTrip(t testing.TB, body []byte) anthropic.MessageNewParams {
	t.Helper()
	p, err := roundTrip(body)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func roundTrip(body []byte) (p anthropic.MessageNewParams, err error) {
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("the SDK does not read the request: %w\n%s", err, body)
	}
	again, err := json.Marshal(p)
	if err != nil {
		return p, fmt.Errorf("the SDK does not write what it read: %w\n%s", err, body)
	}
	got, err := meaning(again)
	if err != nil {
		return p, err
	}
	want, err := meaning(body)
	if err != nil {
		return p, err
	}
	if got != want {
		return p, fmt.Errorf("the SDK understands another request\n got %s\nwant %s", got, want)
	}
	return p, nil
}

// RoundTrip notices what the SDK does not know.
func TestRoundTripFails(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","uuid":"1"}]}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"session_id":"x"}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"tool","content":[{"type":"text","text":"a"}]}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"video","id":"a"}]}]}`,
	} {
		if _, err := roundTrip([]byte(body)); err == nil {
			t.Errorf("no error for %s", body)
		}
	}
}

// meaning is a body with sorted keys, without stream, and with strings that
// stand for one text block written as that block.
func meaning(body []byte) (string, error) {
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		return "", err
	}
	delete(m, "stream")
	if m["system"] = asBlocks(m["system"]); m["system"] == nil {
		delete(m, "system")
	}
	list, _ := m["messages"].([]any)
	for _, msg := range list {
		o, ok := msg.(map[string]any)
		if !ok {
			continue
		}
		o["content"] = asBlocks(o["content"])
		blocks, _ := o["content"].([]any)
		for _, b := range blocks {
			block, _ := b.(map[string]any)
			if c, ok := block["content"]; ok {
				block["content"] = asBlocks(c)
			}
		}
	}
	out, err := json.Marshal(m)
	return string(out), err
}

func asBlocks(v any) any {
	if s, ok := v.(string); ok {
		return []any{map[string]any{"type": "text", "text": s}}
	}
	return v
}
