package model

import (
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/message"
)

func TestErrorTexts(t *testing.T) {
	conform.Covers(t, "L-109", "L-100", "L-95")
	for _, c := range []struct {
		name string
		e    Error
		want string
	}{
		{"5xx", Error{Kind: KindServer, Status: 503, Message: "Service is down"}, "API Error: 503 Service is down"},
		{"5xx without words", Error{Kind: KindServer, Status: 502}, "API Error: 502 Bad Gateway"},
		{"529", Error{Kind: KindOverloaded, Status: 529, Message: "Overloaded"}, "API Error: Repeated 529 Overloaded errors"},
		{"timeout", Error{Kind: KindTimeout}, "Request timed out"},
		{"429", Error{Kind: KindRateLimit, Status: 429}, "API Error: Request rejected (429)"},
		{"429 with words", Error{Kind: KindRateLimit, Status: 429, Message: "Spend limit"}, "API Error: Request rejected (429) · Spend limit"},
		{"too long", Error{Kind: KindTooLong, Status: 400, Message: "prompt is too long: 1 > 0"}, "Prompt is too long"},
		{"id", Error{Kind: KindTooLong, RequestID: "req_1"}, "Prompt is too long (request id req_1)"},
		{"401", Error{Kind: KindAuthentication, Status: 401, Message: "invalid x-api-key", RequestID: "req_2"}, "API Error: 401 invalid x-api-key (request id req_2)"},
		{"connection", Error{Kind: KindConnection, Message: "connection refused"}, "API Error: connection refused"},
		{"vendor's host", Error{Kind: KindServer, Status: 500, Message: "x", Host: vendorHost}, "API Error: 500 x · usually temporary; if it persists see https://status.claude.com"},
		{"own host", Error{Kind: KindServer, Status: 500, Message: "x", Host: "gw.example:8443", RequestID: "req_3"}, "API Error: 500 x · check the endpoint gw.example:8443 (request id req_3)"},
		{"own host, 529", Error{Kind: KindOverloaded, Status: 529, Host: "gw.example"}, "API Error: Repeated 529 Overloaded errors · check the endpoint gw.example"},
		{"lines are joined", Error{Kind: KindServer, Status: 500, Message: "a\n\n  b"}, "API Error: 500 a b"},
		{"nothing known", Error{}, "API Error: unknown error"},
		{"malformed", Error{Kind: KindMalformed, Status: 200}, "API returned an empty or malformed response (HTTP 200)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (&call{}).text(&c.e); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	long := (&call{}).text(&Error{Kind: KindServer, Status: 500, Message: strings.Repeat("é", 50000)})
	if len(long) > maxMessage+100 {
		t.Errorf("a text of %d bytes", len(long))
	}
	for _, k := range []ErrorKind{KindServer, KindOverloaded, KindTimeout, KindConnection, KindTLS} {
		if got := (&call{}).text(&Error{Kind: k, Host: "gw.example"}); strings.Contains(got, "claude.com") || !strings.Contains(got, "gw.example") {
			t.Errorf("kind %d with an own host: %q", k, got)
		}
	}
}

func TestKindsAndCategories(t *testing.T) {
	conform.Covers(t, "L-108", "L-99", "L-100", "L-101", "M-27", "M-28")
	for _, c := range []struct {
		status   int
		typ, msg string
		kind     ErrorKind
		category message.ErrorCategory
	}{
		{400, "invalid_request_error", "messages: bad", KindInvalidRequest, message.CategoryInvalidRequest},
		{400, "invalid_request_error", "Your credit balance is too low to access the API", KindBilling, message.CategoryBillingError},
		{400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", KindTooLong, message.CategoryInvalidRequest},
		{400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2", KindMaxTokensTooLarge, message.CategoryInvalidRequest},
		{400, "invalid_request_error", "Could not process image", KindImage, message.CategoryInvalidRequest},
		{400, "invalid_request_error", "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", KindImage, message.CategoryInvalidRequest},
		{401, "authentication_error", "invalid x-api-key", KindAuthentication, message.CategoryAuthenticationFailed},
		{402, "billing_error", "pay", KindBilling, message.CategoryBillingError},
		{403, "permission_error", "no", KindAuthentication, message.CategoryAuthenticationFailed},
		{404, "not_found_error", "model: claude-nope", KindModelNotFound, message.CategoryModelNotFound},
		{404, "", "Not Found", KindInvalidRequest, message.CategoryInvalidRequest},
		{408, "", "", KindTimeout, message.CategoryUnknown},
		{413, "request_too_large", "Request exceeds the maximum size", KindInvalidRequest, message.CategoryInvalidRequest},
		{422, "", "", KindInvalidRequest, message.CategoryInvalidRequest},
		{429, "rate_limit_error", "slow down", KindRateLimit, message.CategoryRateLimit},
		{500, "api_error", "Internal server error", KindServer, message.CategoryServerError},
		{503, "", "", KindServer, message.CategoryServerError},
		{529, "overloaded_error", "Overloaded", KindOverloaded, message.CategoryOverloaded},
		{0, "overloaded_error", "Overloaded", KindOverloaded, message.CategoryOverloaded},
		{0, "api_error", "x", KindServer, message.CategoryServerError},
		{0, "rate_limit_error", "x", KindRateLimit, message.CategoryRateLimit},
		{0, "invalid_request_error", "x", KindInvalidRequest, message.CategoryInvalidRequest},
		{0, "authentication_error", "x", KindAuthentication, message.CategoryAuthenticationFailed},
		{0, "some_day_error", "x", KindUnknown, message.CategoryUnknown},
	} {
		e := Error{Kind: KindOf(c.status, c.typ, c.msg)}
		if e.Kind != c.kind || e.Category() != c.category {
			t.Errorf("%d %s %q: kind %d, category %s; want %d, %s", c.status, c.typ, c.msg, e.Kind, e.Category(), c.kind, c.category)
		}
	}
}

func TestProgress(t *testing.T) {
	text, use := done(message.NewText("a")), open(message.NewToolUse("t", "Bash", nil))
	for _, c := range []struct {
		blocks []Block
		want   Progress
	}{
		{nil, ProgressNone},
		{[]Block{halfText}, ProgressStarted},
		{[]Block{use}, ProgressStarted},
		{[]Block{thought}, ProgressThinkingDone},
		{[]Block{thought, open(message.NewThinking("", ""))}, ProgressThinkingDone},
		{[]Block{thought, halfText}, ProgressBlock},
		{[]Block{thought, use}, ProgressBlock},
		{[]Block{text}, ProgressBlock},
		{[]Block{halfText, wholeUse}, ProgressBlock},
	} {
		if got := (&Response{Blocks: c.blocks}).Progress(); got != c.want {
			t.Errorf("%v: %d, want %d", c.blocks, got, c.want)
		}
	}
	if (*Response)(nil).Progress() != ProgressNone || (*Response)(nil).Complete() {
		t.Error("a nil response is nothing")
	}
}

func TestErrorWithoutText(t *testing.T) {
	e := &Error{Status: 500, Message: "boom", RequestID: "req_1"}
	if got := e.Error(); got != "500 boom (request id req_1)" {
		t.Error(got)
	}
	if got := (&Error{}).Error(); got == "" {
		t.Error("an error says something")
	}
}
