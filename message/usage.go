package message

import "encoding/json"

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

// Sub takes the counts of v off; the string fields stay.
func (u *Usage) Sub(v Usage) {
	u.InputTokens -= v.InputTokens
	u.OutputTokens -= v.OutputTokens
	u.CacheCreationInputTokens -= v.CacheCreationInputTokens
	u.CacheReadInputTokens -= v.CacheReadInputTokens
	u.CacheCreation.Ephemeral5m -= v.CacheCreation.Ephemeral5m
	u.CacheCreation.Ephemeral1h -= v.CacheCreation.Ephemeral1h
	u.ServerToolUse.WebSearchRequests -= v.ServerToolUse.WebSearchRequests
	u.ServerToolUse.WebFetchRequests -= v.ServerToolUse.WebFetchRequests
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
