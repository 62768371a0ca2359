package model

import (
	"net/http"
	"strings"
)

// KindOf returns what an error answer of the Messages API means, from the HTTP
// status (0 for an error event inside a stream), the error type and the
// message (L-99 to L-101, L-108). Providers that speak the API share it.
func KindOf(status int, typ, msg string) ErrorKind {
	low := strings.ToLower(msg)
	switch {
	case typ == "billing_error" || status == http.StatusPaymentRequired || strings.Contains(low, "credit balance"):
		return KindBilling
	case status == 529 || typ == "overloaded_error":
		return KindOverloaded
	case status == http.StatusTooManyRequests || typ == "rate_limit_error":
		return KindRateLimit
	case status == http.StatusUnauthorized || status == http.StatusForbidden ||
		typ == "authentication_error" || typ == "permission_error":
		return KindAuthentication
	case status == http.StatusNotFound || typ == "not_found_error":
		if strings.Contains(low, "model") {
			return KindModelNotFound
		}
		return KindInvalidRequest
	case status == http.StatusRequestTimeout:
		return KindTimeout
	case status >= 500:
		return KindServer
	case status >= 400 || typ == "invalid_request_error" || typ == "request_too_large":
		return kindOfInvalid(low)
	case status >= 300:
		return KindMalformed
	case typ == "api_error" || typ == "timeout_error":
		return KindServer
	}
	return KindUnknown
}

// kindOfInvalid tells apart the refused requests that the loop can mend. The
// API has no types for them, only these words.
func kindOfInvalid(low string) ErrorKind {
	switch {
	case strings.Contains(low, "max_tokens") && strings.Contains(low, "exceed context limit"):
		return KindMaxTokensTooLarge
	case strings.Contains(low, "prompt is too long"), strings.Contains(low, "input is too long"),
		strings.Contains(low, "exceed context limit"):
		return KindTooLong
	case strings.Contains(low, "could not process image"),
		strings.Contains(low, "image") && (strings.Contains(low, "exceeds") || strings.Contains(low, "dimension")):
		return KindImage
	}
	return KindInvalidRequest
}
