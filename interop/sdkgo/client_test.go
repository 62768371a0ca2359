package sdkgo

import (
	"encoding/json"
	"testing"

	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/model"
	ours "github.com/turnwright/turnwright/model/anthropic"
)

// fullRequest uses every member of a request and every block that a loop makes.
func fullRequest() *model.Request {
	return &model.Request{
		Model: testModel, MaxTokens: 4096,
		System: []message.Block{message.NewText("You are careful."), message.NewText("Be brief. <&> \u2028 ü")},
		Tools: []json.RawMessage{
			json.RawMessage(`{"name":"Bash","description":"Runs a command.","input_schema":{"type":"object","properties":{"command":{"type":"string","minLength":1}},"required":["command"],"additionalProperties":false}}`),
			json.RawMessage(`{"name":"Read","input_schema":{"type":"object"}}`),
		},
		Messages: []model.Message{
			{Role: "user", Blocks: []message.Block{message.NewText("context"), message.NewText("fix it")}},
			{Role: "assistant", Blocks: []message.Block{
				message.NewThinking("hm", "c2ln"), message.NewRedactedThinking("ZA=="), message.NewText("Looking."),
				message.NewToolUse("toolu_a", "Bash", json.RawMessage(`{"command":"ls","n":1.50,"deep":{"a":[null,true]}}`)),
				message.NewToolUse("toolu_b", "Read", json.RawMessage(`{}`)),
			}},
			{Role: "user", Blocks: []message.Block{
				message.NewToolResult("toolu_a", message.BlockContent(message.NewText("out"), message.NewImage("image/png", "iVBORw0KGgo=")), false),
				message.NewToolResult("toolu_b", message.TextContent("no such file"), true),
				message.NewText("and hurry"),
			}},
		},
		Marks: []model.Mark{
			{Where: model.InTools, Index: 1, TTL: "1h"},
			{Where: model.InSystem, Block: 1, TTL: "1h"},
			{Where: model.InMessages, Index: 0, Block: 1, TTL: "5m"},
			{Where: model.InMessages, Index: 2, Block: 2, TTL: "5m"},
		},
		ToolChoice:   json.RawMessage(`{"type":"auto","disable_parallel_tool_use":true}`),
		Thinking:     json.RawMessage(`{"type":"enabled","budget_tokens":2048,"display":"summarized"}`),
		OutputConfig: json.RawMessage(`{"effort":"high"}`),
		Metadata:     json.RawMessage(`{"user_id":"u"}`),
	}
}

// What our client sends is what the SDK understands, and the server accepts it.
func TestOurRequests(t *testing.T) {
	plain := &model.Request{
		Model: testModel, MaxTokens: 1,
		Messages: []model.Message{{Role: "user", Blocks: []message.Block{message.NewText("hello")}}},
	}
	for name, r := range map[string]*model.Request{"plain": plain, "full": fullRequest()} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Text("ok"))
			c, err := ours.New(ours.Config{BaseURL: srv.URL(), APIKey: "any", HTTPClient: srv.Client()})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Stream(t.Context(), r, func(model.Event) {}); err != nil {
				t.Fatal(err)
			}
			p := RoundTrip(t, srv.Last().Body)
			if int(p.MaxTokens) != r.MaxTokens || p.Model != testModel || len(p.Messages) != len(r.Messages) || len(p.Tools) != len(r.Tools) || len(p.System) != len(r.System) {
				t.Errorf("the SDK reads %d messages, %d tools, %d system blocks", len(p.Messages), len(p.Tools), len(p.System))
			}
			for i, m := range r.Messages {
				got := 0
				switch sdk := p.Messages[i]; {
				case sdk.OfUser != nil && m.Role == "user":
					got = len(sdk.OfUser.Content)
				case sdk.OfAssistant != nil && m.Role == "assistant":
					got = len(sdk.OfAssistant.Content)
				}
				if got != len(m.Blocks) {
					t.Errorf("message %d: the SDK reads %d blocks, want %d", i, got, len(m.Blocks))
				}
			}
		})
	}
}
