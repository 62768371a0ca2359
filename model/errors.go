package model

import (
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
	ProgressNone         Progress = iota // nothing of the response
	ProgressStarted                      // deltas, but no finished block
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
	Text        string // the rendered text of L-109, set by Call
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
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
