package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ParseID checks that id is a UUID in the form 8-4-4-4-12 of hexadecimal
// digits, of any version, and returns it in lower case, as it stands on disk
// (K-282). The error is an *IDError.
func ParseID(id string) (string, error) {
	if len(id) != 36 {
		return "", &IDError{ID: id}
	}
	lower := []byte(id)
	for i, c := range lower {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return "", &IDError{ID: id}
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
		case c >= 'A' && c <= 'F':
			lower[i] = c - 'A' + 'a'
		default:
			return "", &IDError{ID: id}
		}
	}
	return string(lower), nil
}

// CheckLines refuses lines that would break a journal: anything that does not
// begin with "{" and end with "}", or that contains a line break. It looks no
// further. For authors of a Store: call it first in Append. The error is an
// *OptionError.
func CheckLines(lines [][]byte) error {
	for i, line := range lines {
		reason := ""
		switch {
		case len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}':
			reason = "is not a JSON object"
		case bytes.IndexByte(line, '\n') >= 0:
			reason = "contains a line break"
		default:
			continue
		}
		const most = 40
		return &OptionError{Field: fmt.Sprintf("lines[%d]", i), Value: string(line[:min(len(line), most)]), Reason: reason}
	}
	return nil
}

var errNoObject = errors.New("not a JSON object")

// CheckLine says why a line that was read is no JSON object; nil if it is one.
// For authors of a Store: what Load yields inside a *LineError.
func CheckLine(line []byte) error {
	trimmed := bytes.TrimLeft(line, " \t\r")
	if len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(line) {
		return nil
	}
	var v json.RawMessage
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	return errNoObject
}
