package agenttest

import "net/http"

// apiError is the error object of the API.
type apiError struct {
	Type, Message string
}

// body is the error envelope, as a response body or as the data of an error event.
func (e *apiError) body(requestID string) []byte {
	tail := "}"
	if requestID != "" {
		tail = `,"request_id":` + quote(requestID) + `}`
	}
	return join(`{"type":"error","error":{"type":`, quote(e.Type), `,"message":`, quote(e.Message), `}`, tail)
}

// status is the HTTP status of the error type.
func (e *apiError) status() int {
	switch e.Type {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "timeout_error":
		return http.StatusGatewayTimeout
	case "overloaded_error":
		return 529
	}
	return http.StatusInternalServerError
}
