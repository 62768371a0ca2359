package settings

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Problem is something in the settings that is not used as it stands there. It
// ends nothing (C-17).
type Problem struct {
	File string // absolute, or the name of an option; "": Text says all
	Line int    // from 1; 0: the file as a whole
	Col  int    // in characters, from 1
	Key  string // such as permissions.deny[1]; "": the file as a whole
	Text string
}

// String is one line that names file, line, column and key.
func (p Problem) String() string {
	if p.File == "" {
		return p.Text
	}
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d:%d", p.Line, p.Col)
	}
	if p.Key != "" {
		s += ": " + p.Key
	}
	return s + ": " + p.Text
}

// position is the place of an offset in a document.
func position(doc []byte, at int) (line, col int) {
	before := doc[:min(at, len(doc))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}
