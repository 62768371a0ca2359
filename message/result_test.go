package message

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/rawjson"
)

var subtypes = []Subtype{Success, ErrorMaxTurns, ErrorMaxBudgetUSD, ErrorDuringExecution, ErrorMaxStructuredOutputRetries}

func TestResultPresence(t *testing.T) {
	conform.Covers(t, "M-54", "M-55", "M-56", "L-54", "L-55")
	if len(subtypes) != 5 {
		t.Fatal("five subtypes")
	}
	for _, s := range subtypes {
		for _, r := range []*Result{
			{Subtype: s},
			{Subtype: s, Result: new(""), Errors: []string{}},
			{Subtype: s, Result: new("x"), Errors: []string{"y"}, APIErrorStatus: new(529)},
		} {
			line := []byte(encode(t, r))
			result, errs := rawjson.Member(line, "result"), rawjson.Member(line, "errors")
			if s == Success {
				if len(result) == 0 || result[0] != '"' || errs != nil {
					t.Errorf("%s", line)
				}
			} else if result != nil || len(errs) == 0 || errs[0] != '[' {
				t.Errorf("%s", line)
			}
			if got := rawjson.Member(line, "permission_denials"); string(got) != "[]" {
				t.Errorf("permission_denials %s in %s", got, line)
			}
			if got := rawjson.Member(line, "api_error_status"); (got != nil) != (r.APIErrorStatus != nil) {
				t.Errorf("api_error_status %s in %s", got, line)
			}
			if s.IsError() != (s != Success) {
				t.Errorf("%s.IsError is %v", s, s.IsError())
			}
		}
	}
}

// TestResultText: reading the text of a result never panics, and an error has
// none even if its writer gave one.
func TestResultText(t *testing.T) {
	conform.Covers(t, "L-67")
	for _, s := range subtypes {
		for _, result := range []*string{nil, new(""), new("text")} {
			want := ""
			if s == Success && result != nil {
				want = *result
			}
			if got := (&Result{Subtype: s, Result: result}).Text(); got != want {
				t.Errorf("%s: %q, want %q", s, got, want)
			}
		}
	}
	if got := (*Result)(nil).Text(); got != "" {
		t.Errorf("nil: %q", got)
	}
	if got := decode[*Result](t, `{"type":"result","subtype":"error_max_turns","result":"not for you","errors":[]}`).Text(); got != "" {
		t.Errorf("decoded error: %q", got)
	}
	// The last text is to be had from the messages.
	say := func(id string, parent *string, blocks ...Block) Message {
		return &Assistant{Message: APIMessage{ID: id, Content: blocks}, ParentToolUseID: parent}
	}
	msgs := []Message{
		say("m1", nil, NewText("first")),
		say("m2", nil, NewText("half "), NewThinking("hm", "")), say("m2", nil, NewText("whole")),
		say("s1", new("toolu_0"), NewText("of a subagent")),
		say("m3", nil, NewToolUse("t", "Bash", nil)), &User{}, &Result{Subtype: ErrorMaxTurns},
	}
	if got := LastText(msgs); got != "half whole" {
		t.Errorf("LastText %q", got)
	}
	if got := LastText(nil); got != "" {
		t.Errorf("LastText of nothing %q", got)
	}
	if got := LastText([]Message{say("", nil, NewText("a")), say("", nil, NewText("b"))}); got != "b" {
		t.Errorf("LastText without ids %q", got)
	}
}

// TestUnknownCost: "unknown" is not 0, in Go and on the wire.
func TestUnknownCost(t *testing.T) {
	conform.Covers(t, "M-65")
	unknown := encode(t, &Result{Subtype: ErrorDuringExecution})
	zero := encode(t, &Result{Subtype: ErrorDuringExecution, TotalCostUSD: new(0.0), Usage: &Usage{}, ModelUsage: map[string]ModelUsage{}})
	for _, key := range []string{"total_cost_usd", "usage", "modelUsage"} {
		if strings.Contains(unknown, key) {
			t.Errorf("unknown %s in %s", key, unknown)
		}
		if rawjson.Member([]byte(zero), key) == nil {
			t.Errorf("no %s in %s", key, zero)
		}
	}
	if r := decode[*Result](t, unknown); r.TotalCostUSD != nil || r.Usage != nil || r.ModelUsage != nil {
		t.Errorf("decoded %+v", r)
	}
	if r := decode[*Result](t, zero); *r.TotalCostUSD != 0 || r.Usage == nil || r.ModelUsage == nil {
		t.Errorf("decoded %+v", r)
	}
	if r := decode[*Result](t, `{"type":"result","subtype":"success","total_cost_usd":null,"usage":null,"modelUsage":null}`); r.TotalCostUSD != nil || r.Usage != nil || r.ModelUsage != nil {
		t.Errorf("decoded %+v", r)
	}
}

// TestTimingKeysComeTogether: user_message_uuid and request_sent_wall_ms are
// both there or both absent, and only on a success without failure.
func TestTimingKeysComeTogether(t *testing.T) {
	for _, c := range []struct {
		r    Result
		want bool
	}{
		{Result{Subtype: Success, UserMessageUUID: "u", RequestSentWallMS: 1}, true},
		{Result{Subtype: Success, UserMessageUUID: "u"}, false},
		{Result{Subtype: Success, RequestSentWallMS: 1}, false},
		{Result{Subtype: Success, IsError: true, UserMessageUUID: "u", RequestSentWallMS: 1}, false},
		{Result{Subtype: ErrorMaxTurns, IsError: true, UserMessageUUID: "u", RequestSentWallMS: 1}, false},
	} {
		line := []byte(encode(t, &c.r))
		if a, b := rawjson.Member(line, "user_message_uuid") != nil, rawjson.Member(line, "request_sent_wall_ms") != nil; a != c.want || b != c.want {
			t.Errorf("%s: want %v", line, c.want)
		}
	}
}

func TestUsageAdd(t *testing.T) {
	u := Usage{InputTokens: 1, ServiceTier: "standard"}
	u.Add(Usage{
		InputTokens: 1, OutputTokens: 2, CacheCreationInputTokens: 3, CacheReadInputTokens: 4,
		CacheCreation: CacheCreation{5, 6}, ServerToolUse: ServerToolUse{7, 8}, Speed: "fast", InferenceGeo: "eu",
	})
	want := `{"input_tokens":2,"output_tokens":2,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":6},"server_tool_use":{"web_search_requests":7,"web_fetch_requests":8},"service_tier":"standard","speed":"fast","inference_geo":"eu"}`
	if got, err := json.Marshal(u); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	u.Add(Usage{ServiceTier: "priority"})
	if u.ServiceTier != "priority" || u.Speed != "fast" {
		t.Errorf("got %+v", u)
	}
}
