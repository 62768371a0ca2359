package model

import (
	"strconv"
	"strings"
	"time"

	"github.com/turnwright/turnwright/message"
)

// ErrorKind is what a failure means for the loop.
type ErrorKind int

// The kinds, from outside to inside.
const (
	KindUnknown           ErrorKind = iota
	KindConnection                  // no connection, or it was lost
	KindTLS                         // certificate validation failed: never retried (L-98)
	KindTimeout                     // API_TIMEOUT_MS ran out
	KindStalled                     // the idle watchdog ended the attempt (L-105)
	KindAuthentication              // 401, 403
	KindBilling                     // 402, credit text
	KindRateLimit                   // 429
	KindOverloaded                  // 529
	KindServer                      // other 5xx
	KindModelNotFound               // 404 naming the model
	KindInvalidRequest              // other 4xx
	KindTooLong                     // the prompt does not fit the window (L-100)
	KindMaxTokensTooLarge           // input + max_tokens over the window (L-99)
	KindImage                       // an image cannot be processed
	KindMalformed                   // the answer is not what the API promises
	KindEmpty                       // no blocks and no output tokens (L-68)
	KindAborted                     // the caller's context ended
)

// Progress is how far a response had come when it failed (L-90 to L-94).
type Progress int

// The steps, in order.
const (
	ProgressNone         Progress = iota // no block of the response, at most its message_start
	ProgressStarted                      // a block begun, but none finished
	ProgressThinkingDone                 // finished thinking only, nothing else started
	ProgressBlock                        // a finished text or tool block, or one started after finished thinking
)

// Error is a failed attempt, or after Call, the failure that ended the request.
type Error struct {
	Kind        ErrorKind
	Status      int           // HTTP status, 0: none
	Type        string        // the API's error type, such as overloaded_error
	Message     string        // the API's or the transport's own words
	RetryAfter  time.Duration // from the retry-after header; 0: none
	ShouldRetry *bool         // the x-should-retry header; nil: none
	RequestID   string
	Progress    Progress
	Host        string // where the request went, for hints
	Text        string // the rendered text of L-95, L-100 or L-109, set by Call
	Attempts    int    // the requests made, set by Call
	Err         error  // the cause, for errors.Is and As
}

// Category returns the stream's category for the error (L-108).
func (e *Error) Category() message.ErrorCategory {
	switch e.Kind {
	case KindAuthentication:
		return message.CategoryAuthenticationFailed
	case KindBilling:
		return message.CategoryBillingError
	case KindRateLimit:
		return message.CategoryRateLimit
	case KindOverloaded:
		return message.CategoryOverloaded
	case KindServer:
		return message.CategoryServerError
	case KindModelNotFound:
		return message.CategoryModelNotFound
	case KindInvalidRequest, KindTooLong, KindMaxTokensTooLarge, KindImage:
		return message.CategoryInvalidRequest
	}
	return message.CategoryUnknown
}

// Error returns Text when set, else the message with status and request id.
func (e *Error) Error() string {
	if e.Text != "" {
		return e.Text
	}
	s := e.Message
	if e.Status != 0 {
		s = strings.TrimSpace(strconv.Itoa(e.Status) + " " + s)
	}
	if s == "" {
		s = "model request failed"
	}
	if e.RequestID != "" {
		s += " (request id " + e.RequestID + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
