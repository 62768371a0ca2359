package message

// ErrorCategory classes an API failure (M-27).
type ErrorCategory string

// The categories of M-27. A value that is not listed is treated like
// CategoryUnknown. Overloaded is HTTP 529, rate limit 429 (M-28).
const (
	CategoryAuthenticationFailed ErrorCategory = "authentication_failed"
	CategoryOAuthOrgNotAllowed   ErrorCategory = "oauth_org_not_allowed" // one vendor's service only
	CategoryBillingError         ErrorCategory = "billing_error"
	CategoryRateLimit            ErrorCategory = "rate_limit"
	CategoryOverloaded           ErrorCategory = "overloaded"
	CategoryInvalidRequest       ErrorCategory = "invalid_request"
	CategoryModelNotFound        ErrorCategory = "model_not_found"
	CategoryServerError          ErrorCategory = "server_error"
	CategoryMaxOutputTokens      ErrorCategory = "max_output_tokens"
	CategoryUnknown              ErrorCategory = "unknown"
)
