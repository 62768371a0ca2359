package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

// Every message fits into a line, and keeps what readers need.
func TestFit(t *testing.T) {
	head := message.Header{UUID: "u-1", SessionID: "s-1"}
	long := strings.Repeat("äöü€", 400_000)
	many := json.RawMessage("[" + strings.Repeat(`1,`, 600_000) + "1]")
	result := func(text string) message.UserBody {
		return message.UserBody{Content: message.BlockContent(message.NewToolResult("toolu_1", message.TextContent(text), false))}
	}
	for name, tt := range map[string]struct {
		m    message.Message
		want []string
	}{
		"short":                {&message.Informational{Content: "x", Header: head}, []string{`"content":"x"`}},
		"just short enough":    {&message.Informational{Content: strings.Repeat("ä", MaxLine-100), Header: head}, []string{strings.Repeat("ä", MaxLine-100) + `"`}},
		"structured output":    {&message.User{Message: result("the model's text"), ToolUseResult: json.RawMessage(`{"stdout":"` + long + `","interrupted":false}`), Header: head}, []string{"the model's text", `"stdout":"äöü€`, `"interrupted":false`, "characters left out]"}},
		"much structure":       {&message.User{Message: result("the model's text"), ToolUseResult: many, Header: head}, []string{"the model's text", `"tool_use_id":"toolu_1"`, "characters left out"}},
		"tool result":          {&message.User{Message: result(long), Header: head}, []string{`"tool_use_id":"toolu_1"`, "characters left out]"}},
		"replay":               {&message.User{Message: message.UserBody{Content: message.TextContent(long)}, IsReplay: true, Header: head}, []string{`"isReplay":true`}},
		"image":                {&message.User{Message: message.UserBody{Content: message.BlockContent(message.NewImage("image/png", strings.Repeat("A", 2*MaxLine)))}, Header: head}, []string{`"data":""`, `"media_type":"image/png"`}},
		"response":             {&message.Assistant{Message: message.APIMessage{ID: "msg_1", Model: "m", Content: []message.Block{message.NewText(long), message.NewText("end")}}, Header: head}, []string{`"id":"msg_1"`, `"text":"äöü`, `"text":"end"`}},
		"call":                 {&message.Assistant{Message: message.APIMessage{ID: "msg_1", Model: "m", Content: []message.Block{message.NewToolUse("toolu_1", "T", json.RawMessage(`{"a":`+string(many)+`}`))}}, Header: head}, []string{`"id":"toolu_1","name":"T"`, "characters left out"}},
		"result":               {&message.Result{Subtype: message.Success, Result: &long, Header: head}, []string{`"result":"äöü€`, `"is_error":false`}},
		"result with output":   {&message.Result{Subtype: message.Success, Result: new("text"), StructuredOutput: many, Header: head}, []string{`"result":"text\n[`}},
		"failed result":        {&message.Result{Subtype: message.ErrorDuringExecution, IsError: true, Errors: []string{long, long, long}, Header: head}, []string{`"errors":["äöü€`}},
		"result with failures": {&message.Result{Subtype: message.ErrorDuringExecution, IsError: true, Errors: strings.Split(strings.Repeat("e,", 600_000), ","), Header: head}, []string{`"errors":["e","e"`}},
		"event":                {&message.StreamEvent{Event: json.RawMessage(`{"type":"content_block_delta","delta":{"text":"` + long + `"}}`), Header: head}, []string{`"delta":{"text":"äöü€`}},
		"other":                {&message.StreamEvent{Event: json.RawMessage(`{"a":` + string(many) + `}`), Header: head}, []string{`"subtype":"informational"`}},
	} {
		t.Run(name, func(t *testing.T) {
			conform.Covers(t, "W-24")
			line, err := Fit(tt.m)
			if err != nil {
				t.Fatal(err)
			}
			if n := characters(line); n > MaxLine {
				t.Errorf("%d characters", n)
			}
			if _, err := message.Decode(line); err != nil {
				t.Errorf("%v: %.200s", err, line)
			}
			for _, want := range append(tt.want, `"uuid":"u-1"`, `"session_id":"s-1"`) {
				if !strings.Contains(string(line), want) {
					t.Errorf("there is no %.80s in %.300s … %s", want, line, line[max(0, len(line)-200):])
				}
			}
		})
	}
}
