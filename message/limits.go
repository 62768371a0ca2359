package message

// APIRetry announces a retried model request, before the wait (M-76).
type APIRetry struct {
	Attempt      int           `json:"attempt"`        // 1 is the first retry
	MaxRetries   int           `json:"max_retries"`    // the retries allowed
	RetryDelayMS int64         `json:"retry_delay_ms"` // the wait that follows, in milliseconds
	ErrorStatus  *int          `json:"error_status"`   // null: no HTTP status
	Error        ErrorCategory `json:"error"`
	Header
}

// Kind implements Message.
func (*APIRetry) Kind() (typ, subtype string) { return "system", "api_retry" }

// PermissionDenied tells of a call that was denied without a prompt (M-78).
type PermissionDenied struct {
	ToolName           string `json:"tool_name"`
	ToolUseID          string `json:"tool_use_id"`
	AgentID            string `json:"agent_id,omitempty"`
	DecisionReasonType string `json:"decision_reason_type,omitempty"`
	DecisionReason     string `json:"decision_reason,omitempty"`
	Message            string `json:"message"`
	Header
}

// Kind implements Message.
func (*PermissionDenied) Kind() (typ, subtype string) { return "system", "permission_denied" }

// RateLimitEvent tells that the state of a rate limit changed (M-77).
type RateLimitEvent struct {
	Info RateLimitInfo `json:"rate_limit_info"`
	Header
}

// RateLimitInfo is the state of a rate limit. Fields that a provider's service
// adds beside these are kept as unknown keys.
type RateLimitInfo struct {
	Status                string   `json:"status"`                                   // allowed, allowed_warning, rejected
	ResetsAt              *int64   `json:"resetsAt,omitempty" wire:"lenient"`        // seconds since the Unix epoch
	RateLimitType         string   `json:"rateLimitType,omitempty"`                  // which limit
	Utilization           *float64 `json:"utilization,omitempty" wire:"lenient"`     // 0 to 1
	OverageStatus         string   `json:"overageStatus,omitempty"`                  // as Status
	OverageResetsAt       *int64   `json:"overageResetsAt,omitempty" wire:"lenient"` // seconds since the Unix epoch
	OverageDisabledReason string   `json:"overageDisabledReason,omitempty"`
}

// Kind implements Message.
func (*RateLimitEvent) Kind() (typ, subtype string) { return "rate_limit_event", "" }

// AuthStatus tells of a login in progress (M-80).
type AuthStatus struct {
	IsAuthenticating bool     `json:"isAuthenticating"`
	Output           []string `json:"output"`
	Error            string   `json:"error,omitempty"`
	Header
}

// Kind implements Message.
func (*AuthStatus) Kind() (typ, subtype string) { return "auth_status", "" }
