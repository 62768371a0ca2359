package message

import (
	"errors"
	"fmt"
)

// Causes of a DecodeError, for errors.Is.
var (
	// ErrNotObject: the line is not one JSON object (M-1).
	ErrNotObject = errors.New("not a JSON object")
	// ErrNoType: the object has no "type", or one that is no non-empty string.
	ErrNoType = errors.New(`no "type"`)
	// ErrOtherType: the object is a message of another type than the Go value
	// that it was to be decoded into.
	ErrOtherType = errors.New("a message of another type")
)

// DecodeError says why a line could not be decoded.
type DecodeError struct {
	Kind  string // type and subtype, "system/init"; "" when they could not be read
	Field string // path of the field at fault, "message.content[1]"; "" for the line as a whole
	Value string // the beginning of the value at fault
	Err   error  // the cause
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decoding a message%s: %v: %q", place(e.Kind, e.Field), e.Err, e.Value)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// EncodeError says why a message has no JSON form: a value of it is no valid
// JSON, a number is not finite, or the message is nil.
type EncodeError struct {
	Kind  string // type and subtype, "system/init"
	Field string // path of the field at fault, "usage.iterations"
	Err   error  // the cause
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("encoding a message%s: %v", place(e.Kind, e.Field), e.Err)
}

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return e.Err }

func place(kind, field string) string {
	s := ""
	if kind != "" {
		s += " (" + kind + ")"
	}
	if field != "" {
		s += ", field " + field
	}
	return s
}

// fieldError is an error with the path to it, built from the inside out. It
// becomes a DecodeError or an EncodeError at the top.
type fieldError struct {
	path  string
	value string
	err   error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }

func fault(value []byte, err error) *fieldError {
	const most = 60
	if len(value) > most {
		value = value[:most]
	}
	return &fieldError{value: string(value), err: err}
}

// in puts the error below the field (".name" or "[3]").
func (e *fieldError) in(step string) *fieldError {
	if step[0] == '.' && (e.path == "" || e.path[0] == '[') {
		step = step[1:] + e.path
	} else if step[0] == '.' {
		step = step[1:] + "." + e.path
	} else if e.path != "" && e.path[0] != '[' {
		step += "." + e.path
	} else {
		step += e.path
	}
	e.path = step
	return e
}

func kindString(typ, subtype string) string {
	if subtype == "" {
		return typ
	}
	return typ + "/" + subtype
}
