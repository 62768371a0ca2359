package message

import "encoding/json"

// Message is one message of the stream. The set of types is closed: those of
// this package, with *Unknown for every type that it does not know.
type Message interface {
	// Kind returns the wire "type" and "subtype" (subtype "" where there is none).
	Kind() (typ, subtype string)
	// Head returns the fields that (nearly) every message has, for reading and setting.
	Head() *Header
}

// Header holds what (nearly) every message has (M-5, M-67).
type Header struct {
	UUID      string `json:"uuid,omitempty"`       // unique per emitted message
	SessionID string `json:"session_id,omitempty"` // the session the message belongs to at that moment
	original  json.RawMessage
}

// Head returns h itself.
func (h *Header) Head() *Header { return h }

// Usage is the token usage of a response or of a user turn (M-62).
type Usage struct {
	InputTokens              int64           `json:"input_tokens"`
	OutputTokens             int64           `json:"output_tokens"`
	CacheCreationInputTokens int64           `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64           `json:"cache_read_input_tokens"`
	CacheCreation            CacheCreation   `json:"cache_creation"`
	ServerToolUse            ServerToolUse   `json:"server_tool_use"`
	ServiceTier              string          `json:"service_tier"`
	Speed                    string          `json:"speed,omitempty"`
	InferenceGeo             string          `json:"inference_geo,omitempty"`
	Iterations               json.RawMessage `json:"iterations,omitempty"`
}

// CacheCreation splits cache writes by life time.
type CacheCreation struct {
	Ephemeral5m int64 `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int64 `json:"ephemeral_1h_input_tokens"`
}

// ServerToolUse counts requests that the provider's own tools made.
type ServerToolUse struct {
	WebSearchRequests int64 `json:"web_search_requests"`
	WebFetchRequests  int64 `json:"web_fetch_requests"`
}

// Add adds the counts of v to u; the string fields of v win where set.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheCreationInputTokens += v.CacheCreationInputTokens
	u.CacheReadInputTokens += v.CacheReadInputTokens
	u.CacheCreation.Ephemeral5m += v.CacheCreation.Ephemeral5m
	u.CacheCreation.Ephemeral1h += v.CacheCreation.Ephemeral1h
	u.ServerToolUse.WebSearchRequests += v.ServerToolUse.WebSearchRequests
	u.ServerToolUse.WebFetchRequests += v.ServerToolUse.WebFetchRequests
	if v.ServiceTier != "" {
		u.ServiceTier = v.ServiceTier
	}
	if v.Speed != "" {
		u.Speed = v.Speed
	}
	if v.InferenceGeo != "" {
		u.InferenceGeo = v.InferenceGeo
	}
}

// ModelUsage is what one model cost in a call (M-63).
type ModelUsage struct {
	InputTokens              int64   `json:"inputTokens"`
	OutputTokens             int64   `json:"outputTokens"`
	CacheReadInputTokens     int64   `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int64   `json:"cacheCreationInputTokens"`
	WebSearchRequests        int64   `json:"webSearchRequests"`
	CostUSD                  float64 `json:"costUSD"`
	ContextWindow            int64   `json:"contextWindow"`
	MaxOutputTokens          int64   `json:"maxOutputTokens"`
	CanonicalModel           string  `json:"canonicalModel,omitempty"`
	Provider                 string  `json:"provider,omitempty"`
}

// APIMessage is the API message inside an Assistant (M-25).
type APIMessage struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"` // "message"
	Role         Role    `json:"role"` // "assistant"
	Model        string  `json:"model"`
	Content      []Block `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        Usage   `json:"usage"`
}

// UserBody is the API message inside a User.
type UserBody struct {
	Role    Role    `json:"role"` // "user"
	Content Content `json:"content"`
}

// Origin says who caused a user message (M-95). Kind is one of the Origin
// constants or a value that this version does not know.
type Origin struct {
	Kind         string `json:"kind"`
	Server       string `json:"server,omitempty"`
	Subkind      string `json:"subkind,omitempty"`
	From         string `json:"from,omitempty"`
	FromMode     string `json:"fromMode,omitempty"`
	Name         string `json:"name,omitempty"`
	FromSession  string `json:"fromSession,omitempty"`
	SenderTaskID string `json:"senderTaskId,omitempty"`
	Body         string `json:"body,omitempty"`
}

// Assistant is one model response, or a part of one (M-25 to M-34).
type Assistant struct {
	Message         APIMessage      `json:"message"`
	ParentToolUseID *string         `json:"parent_tool_use_id"`
	Error           ErrorCategory   `json:"error,omitempty"`
	Aborted         bool            `json:"aborted,omitempty"`
	Timestamp       string          `json:"timestamp,omitempty"`
	ContextUsage    json.RawMessage `json:"context_usage,omitempty"`
	Header
}

// User is a tool result, or user input seen in the stream (M-35 to M-43).
type User struct {
	Message         UserBody        `json:"message"`
	ParentToolUseID *string         `json:"parent_tool_use_id"`
	IsSynthetic     bool            `json:"isSynthetic,omitempty"`
	IsReplay        bool            `json:"isReplay,omitempty"`
	ShouldQuery     *bool           `json:"shouldQuery,omitempty"`
	ToolUseResult   json.RawMessage `json:"tool_use_result,omitempty"`
	Origin          *Origin         `json:"origin,omitempty"`
	Timestamp       string          `json:"timestamp,omitempty"`
	Header
}

// StreamEvent is one raw streaming event of the API (M-44 to M-52).
type StreamEvent struct {
	Event           json.RawMessage `json:"event"`
	ParentToolUseID *string         `json:"parent_tool_use_id"`
	TTFTMS          *int64          `json:"ttft_ms,omitempty"`
	Header
}

// Result ends a user turn (M-53 to M-67).
type Result struct {
	Subtype           Subtype               `json:"subtype"`
	IsError           bool                  `json:"is_error"`
	DurationMS        int64                 `json:"duration_ms"`
	DurationAPIMS     int64                 `json:"duration_api_ms"`
	NumTurns          int                   `json:"num_turns"`
	ToolTurns         int                   `json:"tool_turns"`
	Result            *string               `json:"result,omitempty"` // success only
	Errors            []string              `json:"errors,omitempty"` // error subtypes only
	StopReason        *string               `json:"stop_reason"`
	TotalCostUSD      *float64              `json:"total_cost_usd,omitempty"` // nil: unknown (M-65)
	Usage             *Usage                `json:"usage,omitempty"`
	ModelUsage        map[string]ModelUsage `json:"modelUsage,omitempty"`
	PermissionDenials []PermissionDenial    `json:"permission_denials"`
	StructuredOutput  json.RawMessage       `json:"structured_output,omitempty"`
	DeferredToolUse   *ToolUse              `json:"deferred_tool_use,omitempty"`
	APIErrorStatus    *int                  `json:"api_error_status,omitempty"`
	TerminalReason    TerminalReason        `json:"terminal_reason,omitempty"`
	Origin            *Origin               `json:"origin,omitempty"`
	UserMessageUUID   string                `json:"user_message_uuid,omitempty"`
	RequestSentWallMS int64                 `json:"request_sent_wall_ms,omitempty"`
	TTFTMS            *int64                `json:"ttft_ms,omitempty"`
	TTFTStreamMS      *int64                `json:"ttft_stream_ms,omitempty"`
	Header
}

// PermissionDenial is one denied call (M-61).
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
}

// Subtype says how a user turn ended (L-54).
type Subtype string

// The five result subtypes.
const (
	Success                         Subtype = "success"
	ErrorMaxTurns                   Subtype = "error_max_turns"
	ErrorMaxBudgetUSD               Subtype = "error_max_budget_usd"
	ErrorDuringExecution            Subtype = "error_during_execution"
	ErrorMaxStructuredOutputRetries Subtype = "error_max_structured_output_retries"
)

// TerminalReason is the finer cause beside the subtype (L-60).
type TerminalReason string

// The terminal reasons of L-60.
const (
	TerminalCompleted               TerminalReason = "completed"
	TerminalMaxTurns                TerminalReason = "max_turns"
	TerminalBudgetExhausted         TerminalReason = "budget_exhausted"
	TerminalStructuredOutputRetries TerminalReason = "structured_output_retry_exhausted"
	TerminalAbortedStreaming        TerminalReason = "aborted_streaming"
	TerminalAbortedTools            TerminalReason = "aborted_tools"
	TerminalToolDeferred            TerminalReason = "tool_deferred"
	TerminalToolDeferredUnavailable TerminalReason = "tool_deferred_unavailable"
	TerminalHookStopped             TerminalReason = "hook_stopped"
	TerminalStopHookPrevented       TerminalReason = "stop_hook_prevented"
	TerminalPromptTooLong           TerminalReason = "prompt_too_long"
	TerminalImageError              TerminalReason = "image_error"
	TerminalModelError              TerminalReason = "model_error"
	TerminalAPIError                TerminalReason = "api_error"
	TerminalMalformedToolUse        TerminalReason = "malformed_tool_use_exhausted"
	TerminalTurnSetupFailed         TerminalReason = "turn_setup_failed"
	TerminalBlockingLimit           TerminalReason = "blocking_limit"
	TerminalRapidRefillBreaker      TerminalReason = "rapid_refill_breaker"
)

// ErrorCategory classes an API failure (M-27).
type ErrorCategory string

// The categories of M-27.
const (
	CategoryAuthenticationFailed ErrorCategory = "authentication_failed"
	CategoryBillingError         ErrorCategory = "billing_error"
	CategoryRateLimit            ErrorCategory = "rate_limit"
	CategoryOverloaded           ErrorCategory = "overloaded"
	CategoryInvalidRequest       ErrorCategory = "invalid_request"
	CategoryModelNotFound        ErrorCategory = "model_not_found"
	CategoryServerError          ErrorCategory = "server_error"
	CategoryMaxOutputTokens      ErrorCategory = "max_output_tokens"
	CategoryUnknown              ErrorCategory = "unknown"
)

// Kind implements Message.
func (*Assistant) Kind() (string, string)   { return "assistant", "" }
func (*User) Kind() (string, string)        { return "user", "" }
func (*StreamEvent) Kind() (string, string) { return "stream_event", "" }
func (r *Result) Kind() (string, string)    { return "result", string(r.Subtype) }

// Text returns the text blocks joined, "" when there is none.
func (m *Assistant) Text() string { return BlockContent(m.Message.Content...).Text() }
