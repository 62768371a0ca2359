package turnwright

import (
	"errors"
	"fmt"
	"strings"
)

// OptionError is an option that cannot be used as it is. Nothing was sent.
type OptionError struct {
	Option string // the field of Options
	Value  string // as given, shortened
	Reason string
	Letter string // of docs/roadmap.md, when the option is not built yet
	Err    error  // what was found, for errors.Is and errors.As; may be nil
}

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

func (e *OptionError) Error() string {
	if e.Letter != "" {
		return fmt.Sprintf("option %s is not supported yet (%s of docs/roadmap.md brings it)", e.Option, letterName(e.Letter))
	}
	if e.Value == "" {
		return fmt.Sprintf("option %s: %s", e.Option, e.Reason)
	}
	return fmt.Sprintf("option %s: %s: %s", e.Option, e.Value, e.Reason)
}

func letterName(l string) string {
	if len(l) == 1 {
		return "issue " + l
	}
	return l
}

// ResultError is a run that ended with an error result. Query returns it
// after the result (L-202), Ask beside it.
type ResultError struct {
	Result *ResultMessage
}

func (e *ResultError) Error() string {
	r := e.Result
	text := strings.Join(r.Errors, "; ")
	if text == "" && r.Result != nil {
		text = *r.Result
	}
	return fmt.Sprintf("%s: %s", r.Subtype, text)
}

// resultError returns the error of a result, nil when it is no failure.
func resultError(r *ResultMessage) error {
	if !r.IsError {
		return nil
	}
	return &ResultError{Result: r}
}

// InputSizeError is a message that is larger than Options.MaxBufferSize. It was
// not sent, and changes nothing for those before and after it.
type InputSizeError struct {
	Size, Limit int // bytes
}

func (e *InputSizeError) Error() string {
	return fmt.Sprintf("the message has %d bytes, more than MaxBufferSize allows (%d)", e.Size, e.Limit)
}

// ErrOneReader is returned when a session's messages are read by two at once.
var ErrOneReader = errors.New("the session's messages are being read already: a session has one reader at a time")

// SourceError is a source of inputs that panicked.
type SourceError struct{ Value any }

func (e *SourceError) Error() string {
	return fmt.Sprintf("the source of inputs panicked: %v", e.Value)
}
