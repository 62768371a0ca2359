package session

import (
	"errors"
	"strconv"
)

// More errors of a Store and a Journal, for errors.Is.
var (
	// ErrChanged is the answer of Append when somebody else wrote to the
	// session while it was released. Nothing is written; read the session
	// again with Load (to its end), then append.
	ErrChanged = errors.New("the session was changed by another process")
	// ErrClosed is the answer of a Journal that was closed.
	ErrClosed = errors.New("the session is closed")
)

// IDError is an id that is no UUID in the 8-4-4-4-12 form (S-4).
type IDError struct{ ID string }

func (e *IDError) Error() string {
	return "session id " + strconv.Quote(e.ID) + " is not a UUID (want 8-4-4-4-12 hexadecimal digits)"
}

// OptionError is a value that a Store cannot work with.
type OptionError struct {
	Field  string // the field or parameter, such as "OpenOptions.Dir"
	Value  string
	Reason string // what it must be
}

func (e *OptionError) Error() string {
	return "session: " + e.Field + " " + strconv.Quote(e.Value) + " " + e.Reason
}

// IOError is a failure of the place where sessions are kept.
type IOError struct {
	Op   string // what was tried: "write", "sync", "open", "lock" and so on
	Path string // file that it concerns
	Code string // symbol of the system's error, such as "ENOSPC" (S-24); "" when it has none
	Err  error
}

func (e *IOError) Error() string {
	s := e.Op + " " + e.Path + ": " + e.Err.Error()
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	return s
}

func (e *IOError) Unwrap() error { return e.Err }

// SyncError is the answer of Append when all lines are written, so that they
// survive the process, but the sync failed, so that they may not survive a
// power loss. After any other error of Append none of its lines is there.
type SyncError struct{ Err error }

func (e *SyncError) Error() string {
	return "lines are written but may be lost with the power: " + e.Err.Error()
}

func (e *SyncError) Unwrap() error { return e.Err }

// LineError is an unreadable line of a journal.
type LineError struct {
	Line int // from 1, blank lines counted
	Err  error
}

func (e *LineError) Error() string {
	s := "line " + strconv.Itoa(e.Line) + " is not readable"
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *LineError) Unwrap() error { return e.Err }
