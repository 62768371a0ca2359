package builtin

import (
	"bytes"
	"errors"

	"github.com/turnwright/turnwright/tool"
)

func isPDF(head []byte) bool { return bytes.HasPrefix(head, []byte("%PDF-")) }

func (r *reading) pdf() (*tool.Result, error) { return nil, errors.New("PDF") }
