package agenttest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func goodHeader() http.Header {
	return http.Header{
		"X-Api-Key": {"k"}, "Anthropic-Version": {"2026-10-21"}, "Content-Type": {"application/json"},
	}
}

// with is a request body: the messages, then further members.
func with(messages string, members ...string) string {
	head := `{"model":"test-model","max_tokens":4096,"messages":` + messages
	for _, m := range members {
		head += "," + m
	}
	return head + "}"
}

const (
	hello   = `{"role":"user","content":"hello"}`
	bashDef = `"tools":[{"name":"Bash","input_schema":{"type":"object"}}]`
)

// Parts of a tool round.
func use(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"Bash","input":{"command":"ls"}}`
}

func result(id string) string {
	return `{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}`
}

func assistant(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func user(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func conv(messages ...string) string { return "[" + strings.Join(messages, ",") + "]" }

const thought = `{"type":"thinking","thinking":"hm","signature":"c2ln"}`

func textBlock(s string) string { return string(join(`{"type":"text","text":`, quote(s), `}`)) }

var png = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\nrest"))

func image(media, data string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
}

func marked(block, ttl string) string {
	m := `{"type":"ephemeral"}`
	if ttl != "" {
		m = `{"type":"ephemeral","ttl":"` + ttl + `"}`
	}
	return strings.TrimSuffix(block, "}") + `,"cache_control":` + m + `}`
}

func TestValidateAccepts(t *testing.T) {
	old := goodHeader()
	old.Set("Anthropic-Version", "2023-06-01")
	beta := goodHeader()
	beta.Set("Anthropic-Beta", "context-management-2025-06-27")
	bearer := goodHeader()
	bearer.Del("X-Api-Key")
	bearer.Set("Authorization", "Bearer token")
	bearer.Set("Content-Type", "application/json; charset=utf-8")
	thinking := `"thinking":{"type":"enabled","budget_tokens":1024}`
	for _, tt := range []struct {
		name   string
		body   string
		header http.Header
	}{
		{"text", with(conv(hello)), nil},
		{"bearer token", with(conv(hello)), bearer},
		{"sampling in the old version", with(conv(hello), `"temperature":0.5,"top_p":1,"top_k":3`), old},
		{"document of the assistant in the old version", with(conv(hello, assistant(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`), hello)), old},
		{"beta key with a beta header", with(conv(hello), `"context_management":{}`), beta},
		{"same role twice", with(conv(hello, hello, assistant(textBlock("a")), assistant(textBlock("b")), hello)), nil},
		{"tool round", with(conv(hello, assistant(textBlock("look"), use("t1"), use("t2")), user(result("t1"), result("t2"), textBlock("go on"))), bashDef), nil},
		{"results over two messages", with(conv(hello, assistant(use("t1"), use("t2")), user(result("t2")), user(result("t1"))), bashDef), nil},
		{"system message in the middle", with(conv(hello, `{"role":"system","content":"be short"}`, assistant(textBlock("a")), hello)), nil},
		{"prefill", with(conv(hello, assistant(textBlock("The answer is (")))), nil},
		{"empty final assistant", with(conv(hello, `{"role":"assistant","content":[]}`)), nil},
		{"server tool at the end", with(conv(hello, assistant(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`)), `"model":"claude-opus-4-6"`), nil},
		{"four marks in order", with(conv(user(marked(textBlock("a"), "1h"), marked(textBlock("b"), "5m"))), `"system":[`+marked(textBlock("s"), "1h")+`]`, `"tools":[`+marked(`{"name":"Bash","input_schema":{"type":"object"}}`, "1h")+`]`), nil},
		{"mark on a result", with(conv(hello, assistant(marked(use("t1"), "")), user(marked(result("t1"), ""))), bashDef), nil},
		{"manual thinking in a tool loop", with(conv(hello, assistant(thought, use("t1")), user(result("t1"))), bashDef, thinking), nil},
		{"manual thinking, new turn without thinking", with(conv(hello, assistant(textBlock("a")), hello), thinking), nil},
		{"adaptive thinking, loop without thinking", with(conv(hello, assistant(use("t1")), user(result("t1"))), bashDef, `"thinking":{"type":"adaptive","display":"omitted"}`), nil},
		{"thinking that is not displayed", with(conv(hello, assistant(`{"type":"thinking","thinking":"","signature":"c2ln"}`, textBlock("a")), hello)), nil},
		{"redacted thinking", with(conv(hello, assistant(`{"type":"redacted_thinking","data":"eA=="}`, textBlock("a")), hello)), nil},
		{"result without content", with(conv(hello, assistant(use("t1")), user(`{"type":"tool_result","tool_use_id":"t1"}`)), bashDef), nil},
		{"result with an image", with(conv(hello, assistant(use("t1")), user(`{"type":"tool_result","tool_use_id":"t1","content":[`+image("image/png", png)+`]}`)), bashDef), nil},
		{"result that is white space", with(conv(hello, assistant(use("t1")), user(`{"type":"tool_result","tool_use_id":"t1","content":[`+textBlock("\n")+`]}`)), bashDef), nil},
		{"image", with(conv(user(image("image/png", png), textBlock("what?")))), nil},
		{"pdf", with(conv(user(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}}`))), nil},
		{"image by URL and by file", with(conv(user(`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`, `{"type":"image","source":{"type":"file","file_id":"file_1"}}`))), nil},
		{"documents", with(conv(user(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`, `{"type":"document","source":{"type":"content","content":"x"}}`, `{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}`))), nil},
		{"document in a result", with(conv(hello, assistant(use("t1")), user(`{"type":"tool_result","tool_use_id":"t1","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}]}`)), bashDef), nil},
		{"escaped names", `{"m\u006fdel":"m","max_tokens":1,"messages":[{"role":"us\u0065r","content":"x"}]}`, nil},
		{"white space between", "\n{ \"model\" : \"m\" ,\t\"max_tokens\" : 1 , \"messages\" : [ { \"role\" : \"user\" , \"content\" : [ " + textBlock("a") + " , " + textBlock("b") + " ] } ] }\n", nil},
		{"citations null", with(conv(hello, assistant(`{"type":"text","text":"a","citations":null}`), hello)), nil},
		{"server tool definition", with(conv(hello), `"tools":[{"type":"web_search_20250305","name":"web_search"}]`), nil},
		{"nested choice in a schema", with(conv(hello), `"tools":[{"name":"A","input_schema":{"type":"object","properties":{"x":{"anyOf":[{"type":"string"}]},"y":true},"required":["z"]}}]`), nil},
		{"tool choice", with(conv(hello), bashDef, `"tool_choice":{"type":"tool","name":"Bash","disable_parallel_tool_use":true}`), nil},
		{"tool choice none", with(conv(hello), bashDef, `"tool_choice":{"type":"none"}`), nil},
		{"surrogate pair", with(conv(user(`{"type":"text","text":"\ud83d\ude00 \\ud83d"}`))), nil},
		{"small fields", with(conv(hello), `"stream":true,"metadata":{"user_id":"u"},"stop_sequences":["END"],"service_tier":"auto","output_config":{"effort":"xhigh","format":{"type":"json_schema","schema":{"type":"object"}}},"system":"","cache_control":{"type":"ephemeral"}`), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.header == nil {
				tt.header = goodHeader()
			}
			if err := Validate([]byte(tt.body), tt.header); err != nil {
				t.Errorf("Validate(%s) = %v", tt.body, err)
			}
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	fiveMarks := make([]string, 5)
	for i := range fiveMarks {
		fiveMarks[i] = marked(textBlock("x"), "")
	}
	schema := func(s string) string { return with(conv(hello), `"tools":[{"name":"A","input_schema":`+s+`}]`) }
	named := func(n string) string {
		return with(conv(hello), `"tools":[{"name":"`+n+`","input_schema":{"type":"object"}}]`)
	}
	res := func(r string) string { return with(conv(hello, assistant(use("t1")), user(r)), bashDef) }
	failed := func(content string) string {
		return res(`{"type":"tool_result","tool_use_id":"t1","is_error":true` + content + `}`)
	}
	manual := `"thinking":{"type":"enabled","budget_tokens":2048}`
	for _, tt := range []struct {
		name, body, path, message string
	}{
		{"not JSON", `{"model":`, "", "not valid JSON"},
		{"trailing data", with(conv(hello)) + "{}", "", "not valid JSON"},
		{"not an object", `[]`, "", "valid dictionary"},
		{"null", `null`, "", "valid dictionary"},
		{"invalid UTF-8", with(conv(user(textBlock("a"))), "\"system\":\"\xff\""), "", "invalid UTF-8 at byte"},
		{"half a surrogate pair", with(conv(user(`{"type":"text","text":"a\ud83d"}`))), "", "lone surrogate"},
		{"low surrogate alone", with(conv(user(`{"type":"text","text":"\ude00"}`))), "", "lone surrogate"},
		{"high before another escape", with(conv(user(`{"type":"text","text":"\ud83d\u0041"}`))), "", "lone surrogate"},

		{"no model", `{"max_tokens":1,"messages":[]}`, "model", "Field required"},
		{"empty model", `{"model":"","max_tokens":1,"messages":[` + hello + `]}`, "model", "at least 1 character"},
		{"model null", `{"model":null,"max_tokens":1,"messages":[` + hello + `]}`, "model", "valid string"},
		{"no max_tokens", `{"model":"m","messages":[` + hello + `]}`, "max_tokens", "Field required"},
		{"max_tokens 0", `{"model":"m","max_tokens":0,"messages":[` + hello + `]}`, "max_tokens", "greater than or equal to 1"},
		{"max_tokens a fraction", `{"model":"m","max_tokens":1.5,"messages":[` + hello + `]}`, "max_tokens", "valid integer"},
		{"no messages", `{"model":"m","max_tokens":1}`, "messages", "Field required"},
		{"messages empty", with(`[]`), "messages", "at least one message"},
		{"messages null", with(`null`), "messages", "valid list"},
		{"unknown key", with(conv(hello), `"session_id":"x"`), "session_id", "Extra inputs are not permitted"},
		{"beta key without a beta header", with(conv(hello), `"context_management":{}`), "context_management", "Extra inputs"},
		{"temperature in the new version", with(conv(hello), `"temperature":1`), "temperature", "Extra inputs"},

		{"starts with assistant", with(conv(assistant(textBlock("a")), hello)), "messages", `first message must use the "user" role`},
		{"unknown role", with(conv(`{"role":"tool","content":"x"}`)), "messages.0.role", "Input should be 'user'"},
		{"no role", with(conv(`{"content":"x"}`)), "messages.0.role", "Field required"},
		{"message is a string", with(`["x"]`), "messages.0", "valid dictionary"},
		{"key of ours in a message", with(conv(`{"role":"user","content":"x","uuid":"1"}`)), "messages.0.uuid", "Extra inputs"},
		{"system message after an assistant", with(conv(hello, assistant(textBlock("a")), `{"role":"system","content":"x"}`, hello)), "messages.2", "directly follow"},
		{"no content", with(conv(`{"role":"user"}`)), "messages.0.content", "Field required"},
		{"content a number", with(conv(`{"role":"user","content":1}`)), "messages.0.content", "valid list"},
		{"empty string", with(conv(`{"role":"user","content":""}`)), "messages.0", "non-empty content"},
		{"empty list", with(conv(hello, `{"role":"assistant","content":[]}`, hello)), "messages.1", "non-empty content"},
		{"empty final user", with(conv(hello, assistant(textBlock("a")), `{"role":"user","content":[]}`)), "messages.2", "non-empty content"},
		{"empty text", with(conv(user(textBlock("")))), "messages", "text content blocks must be non-empty"},
		{"white space", with(conv(user(textBlock(" \n")))), "messages", "non-whitespace"},
		{"text missing", with(conv(user(`{"type":"text"}`))), "messages.0.content.0.text.text", "Field required"},
		{"text null", with(conv(user(`{"type":"text","text":null}`))), "messages.0.content.0.text.text", "valid string"},
		{"text with a key of ours", with(conv(user(`{"type":"text","text":"a","id":"b"}`))), "messages.0.content.0.text.id", "Extra inputs"},
		{"unknown block", with(conv(user(`{"type":"video"}`))), "messages.0.content.0", "Input tag 'video'"},
		{"block without type", with(conv(user(`{"text":"a"}`))), "messages.0.content.0.type", "Field required"},
		{"empty system text", with(conv(hello), `"system":[`+textBlock("")+`]`), "system", "non-empty"},
		{"image in system", with(conv(hello), `"system":[`+image("image/png", png)+`]`), "system.0.type", "'text'"},
		{"system a number", with(conv(hello), `"system":3`), "system", "valid string"},

		{"call without result", with(conv(hello, assistant(use("t1")), hello), bashDef), "messages.1", "`tool_use` ids were found without `tool_result` blocks immediately after: t1."},
		{"call at the end", with(conv(hello, assistant(use("t1"))), bashDef), "messages.1", "without `tool_result`"},
		{"one of two results", with(conv(hello, assistant(use("t1"), use("t2")), user(result("t1"))), bashDef), "messages.1", "immediately after: t2."},
		{"result a turn late", with(conv(hello, assistant(use("t1")), hello, assistant(textBlock("a")), user(result("t1"))), bashDef), "messages.1", "without `tool_result`"},
		{"orphan result", with(conv(user(result("t9"))), bashDef), "messages.0.content.0", "unexpected `tool_use_id` found in `tool_result` blocks: t9."},
		{"foreign result", with(conv(hello, assistant(use("t1")), user(result("t1"), result("t2"))), bashDef), "messages.2.content.1", "unexpected `tool_use_id`"},
		{"double result", with(conv(hello, assistant(use("t1")), user(result("t1"), result("t1"))), bashDef), "messages.2.content.1", "single result"},
		{"text before result", with(conv(hello, assistant(use("t1")), user(textBlock("a"), result("t1"))), bashDef), "messages.2.content.1", "must come before other content"},
		{"text message before result", with(conv(hello, assistant(use("t1")), hello, user(result("t1"))), bashDef), "messages.3.content.0", "must come before"},
		{"double call id", with(conv(hello, assistant(use("t1"), use("t1")), user(result("t1"))), bashDef), "messages.1.content.1", "must be unique"},
		{"call id used again later", with(conv(hello, assistant(use("t1")), user(result("t1")), assistant(use("t1")), user(result("t1"))), bashDef), "messages.3.content.0", "must be unique"},
		{"call in a user message", with(conv(user(use("t1")))), "messages.0.content.0", "can only be in `assistant`"},
		{"result in an assistant message", with(conv(hello, assistant(result("t1")), hello)), "messages.1.content.0", "can only be in `user`"},
		{"call id with a dot", with(conv(hello, assistant(use("a.b")), hello)), "messages.1.content.0.tool_use.id", "should match pattern"},
		{"call name with a dot", with(conv(hello, assistant(`{"type":"tool_use","id":"t1","name":"a.b","input":{}}`), hello)), "messages.1.content.0.tool_use.name", "should match pattern"},
		{"input a string", with(conv(hello, assistant(`{"type":"tool_use","id":"t1","name":"A","input":"{}"}`), hello)), "messages.1.content.0.tool_use.input", "valid dictionary"},
		{"input null", with(conv(hello, assistant(`{"type":"tool_use","id":"t1","name":"A","input":null}`), hello)), "messages.1.content.0.tool_use.input", "valid dictionary"},
		{"input missing", with(conv(hello, assistant(`{"type":"tool_use","id":"t1","name":"A"}`), hello)), "messages.1.content.0.tool_use.input", "Field required"},
		{"error without content", failed(""), "messages.2.content.0.tool_result", "cannot be empty if `is_error`"},
		{"error with empty text", failed(`,"content":""`), "messages.2.content.0.tool_result", "cannot be empty if `is_error`"},
		{"error with no blocks", failed(`,"content":[]`), "messages.2.content.0.tool_result", "cannot be empty if `is_error`"},
		{"result with empty text", res(`{"type":"tool_result","tool_use_id":"t1","content":[` + textBlock("") + `]}`), "tool_result", "must be non-empty"},
		{"result with a call inside", res(`{"type":"tool_result","tool_use_id":"t1","content":[` + use("t2") + `]}`), "messages.2.content.0.tool_result.content.0", "Input tag 'tool_use'"},
		{"result content a number", res(`{"type":"tool_result","tool_use_id":"t1","content":1}`), "messages.2.content.0.tool_result.content", "valid list"},
		{"is_error a string", res(`{"type":"tool_result","tool_use_id":"t1","content":"a","is_error":"yes"}`), "messages.2.content.0.tool_result.is_error", "valid boolean"},

		{"tool name with a dot", named("admin.tools.list"), "tools.0.custom.name", "should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{"tool name with a slash", named("a/b"), "tools.0.custom.name", "should match"},
		{"tool name with a space", named("two words"), "tools.0.custom.name", "should match"},
		{"tool name too long", named(strings.Repeat("a", 129)), "tools.0.custom.name", "should match"},
		{"tool name empty", named(""), "tools.0.custom.name", "should match"},
		{"tool twice", with(conv(hello), `"tools":[{"name":"A","input_schema":{"type":"object"}},{"name":"A","input_schema":{"type":"object"}}]`), "tools", "must be unique"},
		{"no schema", with(conv(hello), `"tools":[{"name":"A"}]`), "tools.0.custom.input_schema", "Field required"},
		{"schema null", schema(`null`), "tools.0.custom.input_schema", "valid dictionary"},
		{"schema empty", schema(`{}`), "tools.0.custom.input_schema.type", "Field required"},
		{"schema of a string", schema(`{"type":"string"}`), "tools.0.custom.input_schema.type", "'object'"},
		{"oneOf", schema(`{"type":"object","oneOf":[]}`), "tools.0.custom.input_schema", "does not support oneOf"},
		{"anyOf", schema(`{"type":"object","anyOf":[]}`), "tools.0.custom.input_schema", "at the top level"},
		{"allOf", schema(`{"type":"object","allOf":[]}`), "tools.0.custom.input_schema", "at the top level"},
		{"properties null", schema(`{"type":"object","properties":null}`), "tools.0.custom.input_schema.properties", "valid dictionary"},
		{"property with a space", schema(`{"type":"object","properties":{"a b":{}}}`), "tools.0.custom.input_schema.properties", "Property keys"},
		{"property is a string", schema(`{"type":"object","properties":{"a":"string"}}`), "tools.0.custom.input_schema", "no schema"},
		{"required null", schema(`{"type":"object","required":null}`), "tools.0.custom.input_schema", "required"},
		{"tool with a key of ours", with(conv(hello), `"tools":[{"name":"A","input_schema":{"type":"object"},"annotations":{}}]`), "tools.0.custom.annotations", "Extra inputs"},
		{"unknown tool type", with(conv(hello), `"tools":[{"type":"function","name":"A"}]`), "tools.0", "Input tag 'function'"},
		{"tools null entry", with(conv(hello), `"tools":[null]`), "tools.0", "valid dictionary"},
		{"choice without tools", with(conv(hello), `"tool_choice":{"type":"auto"}`), "tool_choice", "while providing tools"},
		{"choice of an unknown tool", with(conv(hello), bashDef, `"tool_choice":{"type":"tool","name":"Read"}`), "tool_choice", "'Read' not found"},
		{"choice without a name", with(conv(hello), bashDef, `"tool_choice":{"type":"tool"}`), "tool_choice.tool.name", "Field required"},
		{"choice of an unknown type", with(conv(hello), bashDef, `"tool_choice":{"type":"required"}`), "tool_choice.type", "Input should be"},
		{"choice as a string", with(conv(hello), bashDef, `"tool_choice":"auto"`), "tool_choice", "valid dictionary"},
		{"choice with an extra key", with(conv(hello), bashDef, `"tool_choice":{"type":"none","name":"Bash"}`), "tool_choice.none.name", "Extra inputs"},

		{"five marks", with(conv(user(fiveMarks...))), "", "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"the API's own mark is the fifth", with(conv(user(fiveMarks[:4]...)), `"cache_control":{"type":"ephemeral"}`), "", "Found 5."},
		{"long mark after short", with(conv(user(marked(textBlock("a"), "5m"), marked(textBlock("b"), "1h")))), "messages.0.content.1.cache_control.ttl", "must not come after a ttl='5m'"},
		{"long mark after one without ttl", with(conv(user(marked(textBlock("b"), "1h"))), `"system":[`+marked(textBlock("s"), "")+`]`), "messages.0.content.0.cache_control.ttl", "must not come after"},
		{"tools come first", with(conv(hello), `"system":[`+marked(textBlock("s"), "1h")+`]`, `"tools":[`+marked(`{"name":"A","input_schema":{"type":"object"}}`, "5m")+`]`), "system.0.cache_control.ttl", "must not come after"},
		{"mark inside a result", res(`{"type":"tool_result","tool_use_id":"t1","content":[` + marked(textBlock("a"), "2h") + `]}`), "messages.2.content.0.tool_result.content.0.cache_control.ttl", "'5m' or '1h'"},
		{"mark on thinking", with(conv(hello, assistant(marked(thought, ""), textBlock("a")), hello)), "messages.1.content.0.thinking.cache_control", "Extra inputs"},
		{"mark on empty text", with(conv(user(marked(textBlock(""), "")))), "messages.0.content.0.text", "cannot be set for empty text"},
		{"mark of another type", with(conv(user(`{"type":"text","text":"a","cache_control":{"type":"permanent"}}`))), "messages.0.content.0.cache_control.type", "'ephemeral'"},
		{"mark as a string", with(conv(user(`{"type":"text","text":"a","cache_control":"ephemeral"}`))), "messages.0.content.0.cache_control", "valid dictionary"},

		{"thinking without signature", with(conv(hello, assistant(`{"type":"thinking","thinking":"a"}`, textBlock("b")), hello)), "messages.1.content.0.thinking.signature", "Field required"},
		{"thinking with empty signature", with(conv(hello, assistant(`{"type":"thinking","thinking":"a","signature":""}`, textBlock("b")), hello)), "messages.1.content.0", "Invalid `signature`"},
		{"thinking of the user", with(conv(user(thought))), "messages.0.content.0", "can only be in `assistant`"},
		{"redacted without data", with(conv(hello, assistant(`{"type":"redacted_thinking"}`, textBlock("b")), hello)), "messages.1.content.0.redacted_thinking.data", "Field required"},
		{"budget too small", with(conv(hello), `"thinking":{"type":"enabled","budget_tokens":1023}`), "thinking.enabled.budget_tokens", "equal to 1024"},
		{"budget as large as max_tokens", with(conv(hello), `"thinking":{"type":"enabled","budget_tokens":4096}`), "", "must be greater than `thinking.budget_tokens`"},
		{"budget missing", with(conv(hello), `"thinking":{"type":"enabled"}`), "thinking.enabled.budget_tokens", "Field required"},
		{"budget with adaptive", with(conv(hello), `"thinking":{"type":"adaptive","budget_tokens":2048}`), "thinking.adaptive.budget_tokens", "Extra inputs"},
		{"unknown thinking", with(conv(hello), `"thinking":{"type":"auto"}`), "thinking.type", "Input should be"},
		{"thinking true", with(conv(hello), `"thinking":true`), "thinking", "valid dictionary"},
		{"unknown display", with(conv(hello), `"thinking":{"type":"adaptive","display":"full"}`), "thinking.adaptive.display", "'summarized'"},
		{"loop does not start with thinking", with(conv(hello, assistant(use("t1")), user(result("t1"))), bashDef, manual), "messages.1.content.0.type", "Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		{"thinking behind text in a loop", with(conv(hello, assistant(textBlock("a"), thought, use("t1")), user(result("t1"))), bashDef, manual), "messages.1.content.0.type", "but found `text`"},
		{"thinking with a forced tool", with(conv(hello), bashDef, manual, `"tool_choice":{"type":"any"}`), "", "Thinking may not be enabled when tool_choice forces tool use"},
		{"ends with thinking", with(conv(hello, assistant(textBlock("a"), thought))), "messages.1", "The final block in an assistant message cannot be `thinking`."},
		{"ends with white space", with(conv(hello, assistant(textBlock("a ")))), "messages", "trailing whitespace"},
		{"prefill with thinking", with(conv(hello, assistant(textBlock("a"))), manual), "", "does not support assistant message prefill"},
		{"disabled thinking in the last message", with(conv(hello, assistant(thought, textBlock("a"))), `"thinking":{"type":"disabled"}`), "messages.1.content.0", "When thinking is disabled"},

		{"image type", with(conv(user(image("image/bmp", png)))), "messages.0.content.0.image.source.base64.media_type", "'image/jpeg'"},
		{"image of another type", with(conv(user(image("image/jpeg", png)))), "messages.0.content.0.image.source.base64.data", "appears to be a image/png"},
		{"image data not base64", with(conv(user(image("image/png", "not base64!")))), "messages.0.content.0.image.source.base64.data", "Invalid base64"},
		{"image data as a URL", with(conv(user(image("image/png", "data:image/png;base64,"+png)))), "messages.0.content.0.image.source.base64.data", "Invalid base64"},
		{"image data with a line break", with(conv(user(image("image/png", png[:8]+`\n`+png[8:])))), "messages.0.content.0.image.source.base64.data", "Invalid base64"},
		{"image data empty", with(conv(user(image("image/png", "")))), "messages.0.content.0.image.source.base64.data", "cannot be empty"},
		{"image too large", with(conv(user(image("image/png", strings.Repeat("A", maxImageBytes+4))))), "messages.0.content.0.image.source.base64", "image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes"},
		{"image without source", with(conv(user(`{"type":"image"}`))), "messages.0.content.0.image.source", "valid dictionary"},
		{"image from the assistant", with(conv(hello, assistant(image("image/png", png)), hello)), "messages.1.content.0", "not permitted in `assistant`"},
		{"document of the assistant in the new version", with(conv(hello, assistant(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`), hello)), "messages.1.content.0", "not permitted"},
		{"document of another type", with(conv(user(`{"type":"document","source":{"type":"base64","media_type":"text/html","data":"eA=="}}`))), "messages.0.content.0.document.source.base64.media_type", "'application/pdf'"},

		{"image by an empty URL", with(conv(user(`{"type":"image","source":{"type":"url","url":""}}`))), "messages.0.content.0.image.source.url.url", "Field required"},
		{"image by no file", with(conv(user(`{"type":"image","source":{"type":"file"}}`))), "messages.0.content.0.image.source.file.file_id", "Field required"},
		{"image by a path", with(conv(user(`{"type":"image","source":{"type":"path","path":"a.png"}}`))), "messages.0.content.0.image.source", "Input tag 'path'"},
		{"document by a path", with(conv(user(`{"type":"document","source":{"type":"path","path":"a.pdf"}}`))), "messages.0.content.0.document.source", "Input tag 'path'"},
		{"empty text document", with(conv(user(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":""}}`))), "messages.0.content.0.document.source.text.data", "non-empty"},
		{"HTML as a text document", with(conv(user(`{"type":"document","source":{"type":"text","media_type":"text/html","data":"x"}}`))), "messages.0.content.0.document.source.text.media_type", "'text/plain'"},
		{"image of a bad type in a result", res(`{"type":"tool_result","tool_use_id":"t1","content":[` + image("image/tiff", png) + `]}`), "messages.2.content.0.tool_result.content.0.image.source.base64.media_type", "'image/jpeg'"},
		{"key of ours in a result's block", res(`{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","path":"a"}]}`), "messages.2.content.0.tool_result.content.0.image.path", "Extra inputs"},
		{"the API's own long mark after a short one", with(conv(user(marked(textBlock("a"), ""))), `"cache_control":{"type":"ephemeral","ttl":"1h"}`), "cache_control.ttl", "must not come after"},
		{"output_config of ours", with(conv(hello), `"output_config":{"verbosity":1}`), "output_config.verbosity", "Extra inputs"},
		{"output_config a string", with(conv(hello), `"output_config":"high"`), "output_config", "valid dictionary"},
		{"format of another type", with(conv(hello), `"output_config":{"format":{"type":"json"}}`), "output_config.format.type", "'json_schema'"},
		{"stream a string", with(conv(hello), `"stream":"true"`), "stream", "valid boolean"},
		{"metadata of ours", with(conv(hello), `"metadata":{"session":"x"}`), "metadata.session", "Extra inputs"},
		{"stop sequence of white space", with(conv(hello), `"stop_sequences":["\n"]`), "stop_sequences.0", "non-whitespace"},
		{"unknown effort", with(conv(hello), `"output_config":{"effort":"huge"}`), "output_config.effort", "Input should be"},
		{"format without schema", with(conv(hello), `"output_config":{"format":{"type":"json_schema"}}`), "output_config.format.schema", "valid dictionary"},
		{"unknown service tier", with(conv(hello), `"service_tier":"fast"`), "service_tier", "'auto'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate([]byte(tt.body), goodHeader())
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Validate = %v, want an *InvalidError", err)
			}
			if invalid.Path != tt.path || !strings.Contains(invalid.Message, tt.message) {
				t.Errorf("Validate = path %q, message %q; want path %q, message with %q", invalid.Path, invalid.Message, tt.path, tt.message)
			}
			if invalid.Status != http.StatusBadRequest || invalid.Type != "invalid_request_error" {
				t.Errorf("status %d, type %q; want 400, invalid_request_error", invalid.Status, invalid.Type)
			}
		})
	}
}

func TestValidateHeader(t *testing.T) {
	for _, tt := range []struct {
		name    string
		set     func(http.Header)
		status  int
		message string
	}{
		{"no key", func(h http.Header) { h.Del("X-Api-Key") }, 401, "x-api-key header is required"},
		{"empty bearer", func(h http.Header) { h.Del("X-Api-Key"); h.Set("Authorization", "Bearer ") }, 401, "x-api-key"},
		{"no version", func(h http.Header) { h.Del("Anthropic-Version") }, 400, "anthropic-version: header is required"},
		{"unknown version", func(h http.Header) { h.Set("Anthropic-Version", "2024-01-01") }, 400, `"2024-01-01" is not a valid version`},
		{"content type", func(h http.Header) { h.Set("Content-Type", "text/plain") }, 400, "content-type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := goodHeader()
			tt.set(h)
			var invalid *InvalidError
			if err := Validate([]byte(with(conv(hello))), h); !errors.As(err, &invalid) {
				t.Fatalf("Validate = %v, want an *InvalidError", err)
			}
			if invalid.Status != tt.status || !strings.Contains(invalid.Error(), tt.message) {
				t.Errorf("status %d, %q; want %d with %q", invalid.Status, invalid, tt.status, tt.message)
			}
		})
	}
}

func TestValidateSize(t *testing.T) {
	body := with(conv(user(textBlock(strings.Repeat("a", MaxRequestBytes)))))
	var invalid *InvalidError
	if err := Validate([]byte(body), goodHeader()); !errors.As(err, &invalid) || invalid.Status != 413 || invalid.Type != "request_too_large" {
		t.Errorf("Validate of %d bytes = %v, want 413 request_too_large", len(body), err)
	}
	body = with(conv(user(textBlock(strings.Repeat("a", MaxRequestBytes-1000)))))
	if err := Validate([]byte(body), goodHeader()); err != nil {
		t.Errorf("Validate of %d bytes = %v", len(body), err)
	}
}

// Prefill depends on the model; a paused server tool does not count as one.
func TestValidatePrefill(t *testing.T) {
	for model, refused := range map[string]bool{
		"claude-opus-4-6": true, "claude-sonnet-4-6-20260201": true, "claude-opus-5": true, "claude-opus-5-5": true,
		"claude-haiku-4-5-20251001": false, "claude-opus-4-5": false, "claude-sonnet-4-20250514": false,
		"claude-3-5-haiku-20241022": false, "acme-x1": false, "claude-next": false,
	} {
		body := strings.Replace(with(conv(hello, assistant(textBlock("a")))), "test-model", model, 1)
		if err := Validate([]byte(body), goodHeader()); (err != nil) != refused {
			t.Errorf("prefill with %s: %v, want refused = %v", model, err, refused)
		}
		body = strings.Replace(with(conv(hello, assistant(textBlock("a"), `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`))), "test-model", model, 1)
		if err := Validate([]byte(body), goodHeader()); err != nil {
			t.Errorf("paused server tool with %s: %v", model, err)
		}
	}
}

// FuzzValidate holds that no body makes it panic, that it is deterministic, and
// that what it accepts is text that survives a decode and encode.
func FuzzValidate(f *testing.F) {
	f.Add([]byte(with(conv(hello))))
	f.Add([]byte(with(conv(hello, assistant(thought, use("t1")), user(result("t1"))), bashDef)))
	f.Add([]byte(with(conv(hello, assistant(textBlock("a"))), `"thinking":{"type":"enabled","budget_tokens":2048}`)))
	f.Add([]byte(`{"model":"\ud800","max_tokens":1,"messages":[{"role":"user","content":[{}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		err := Validate(body, goodHeader())
		if again := Validate(body, goodHeader()); fmt.Sprint(err) != fmt.Sprint(again) {
			t.Fatalf("first %v, then %v", err, again)
		}
		var m map[string]any
		if err == nil {
			if e := json.Unmarshal(body, &m); e != nil {
				t.Fatalf("accepted, but not JSON: %v", e)
			}
			if bytes.Contains(body, []byte("\xff")) {
				t.Fatal("accepted invalid UTF-8")
			}
		}
	})
}
