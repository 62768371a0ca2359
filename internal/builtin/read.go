package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// Read shows a file to the model (T-40 to T-58): text with line numbers, and
// PNG, JPEG, GIF and WebP images. PDF and notebook rendering come with issue B.
type Read struct{}

// NewRead returns the Read tool.
func NewRead() *Read { return &Read{} }

const readSchema = `{"type":"object","properties":{` +
	`"file_path":{"type":"string","description":"Path of the file; absolute, or relative to the working directory"},` +
	`"offset":{"type":"integer","minimum":0,"description":"Line to start at, counted from 1"},` +
	`"limit":{"type":"integer","minimum":1,"description":"Number of lines to read"},` +
	`"pages":{"type":"string","description":"Page range of a PDF, such as \"1-5\""}},` +
	`"required":["file_path"],"additionalProperties":false}`

// Spec describes the tool.
func (*Read) Spec() tool.Spec {
	return tool.Spec{
		Name: "Read",
		Description: "Reads a file. Text comes with a line number and a tab before every line; " +
			"both are not part of the file. A file that is too large is shown in part: go on with offset and limit. " +
			"Images (PNG, JPEG, GIF, WebP) are shown as images. Directories cannot be read; list them with Bash.",
		InputSchema: json.RawMessage(readSchema),
		Traits:      tool.Traits{ReadOnly: true, Concurrent: true, Repeatable: true},
	}
}

type readInput struct {
	FilePath string  `json:"file_path"`
	Offset   float64 `json:"offset"` // the schema lets 3.0 through as an integer; 0 is as none
	Limit    float64 `json:"limit"`
	Pages    string  `json:"pages"`
}

// Normalize makes file_path absolute (T-22).
func (*Read) Normalize(env *tool.Env, input json.RawMessage) (json.RawMessage, error) {
	return normalizePath(env, input, "file_path")
}

// Accesses returns the file that is read.
func (*Read) Accesses(input json.RawMessage) ([]permission.Access, error) {
	var in readInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Read: %w", err)
	}
	return pathAccess(permission.Read, in.FilePath)
}

const (
	sniffSize = 8 << 10 // a NUL byte in here means binary (T-51)
	// hashLimit is the size up to which a file is read to its end for its hash
	// and its line count, also when the selection ends earlier.
	hashLimit = 64 << 20
	// maxLine bounds line numbers, so that arithmetic with them is exact.
	maxLine = 1 << 52
)

// Call reads the file.
func (*Read) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	var in readInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("Read: %w", err)
	}
	if in.Pages != "" {
		return nil, errors.New("pages: reading PDF pages is not built yet (issue B); leave the field out")
	}
	if in.Offset > maxLine || in.Limit > maxLine {
		return nil, fmt.Errorf("offset and limit: at most %d", int64(maxLine))
	}
	path, err := absolute(c.Env, "file_path", in.FilePath)
	if err != nil {
		return nil, err
	}
	target, err := permission.Resolve(path)
	if err != nil {
		return nil, fmt.Errorf("file_path: %w", err)
	}
	f, info, err := openRegular(target)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	head := make([]byte, sniffSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	head = head[:n]
	if typ := imageType(head); typ != "" {
		r, err := readImage(io.MultiReader(bytes.NewReader(head), f), path, typ)
		if err == nil {
			storeRecord(c.Env.State, target, fileRecord{Size: info.Size(), ModTime: info.ModTime().UnixNano()})
		}
		return r, err
	}
	if err := refuseBinary(path, head, info.Size()); err != nil {
		return nil, err
	}
	sel := selection{
		first:    max(1, int64(in.Offset)),
		count:    int64(in.Limit),
		explicit: in.Offset > 0 || in.Limit > 0,
		budget:   tokenLimit(c.Env) * bytesPerToken,
		scanAll:  info.Size() <= hashLimit,
	}
	v, err := scanText(ctx, io.MultiReader(bytes.NewReader(head), f), sel)
	switch {
	case errors.Is(err, errTooLarge) && sel.count > 0:
		return nil, fmt.Errorf("%s: %w, about %d tokens; use a smaller limit than %d, or search with Grep", path, err, tokenLimit(c.Env), sel.count)
	case errors.Is(err, errTooLarge):
		return nil, fmt.Errorf("%s: %w, about %d tokens; add a limit, or search with Grep", path, err, tokenLimit(c.Env))
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	storeRecord(c.Env.State, target, fileRecord{
		Hash: v.hash, Size: info.Size(), ModTime: info.ModTime().UnixNano(), Partial: v.truncated,
	})
	return v.result(path, sel)
}

// refuseBinary says what the file is and how large, instead of showing it.
func refuseBinary(path string, head []byte, size int64) error {
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return fmt.Errorf("%s is a PDF of %d bytes; reading PDFs is not built yet (issue B); extract its text with a shell command such as pdftotext", path, size)
	case bytes.IndexByte(head, 0) < 0:
		return nil
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return fmt.Errorf("%s is UTF-16 text of %d bytes, which is not shown; convert a copy with a shell command such as iconv -f UTF-16 -t UTF-8", path, size)
	}
	return fmt.Errorf("%s is a binary file of %d bytes and is not shown; look at it with a shell command such as file, strings or xxd", path, size)
}

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Normalizer
} = (*Read)(nil)
