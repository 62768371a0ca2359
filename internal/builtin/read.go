package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/turnwright/turnwright/internal/apiblock"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// Read shows a file to the model (T-40 to T-58): text with line numbers,
// images (PNG, JPEG, GIF, WebP), notebooks by their cells, and PDFs.
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
			"Images (PNG, JPEG, GIF, WebP) are shown as images, Jupyter notebooks (.ipynb) by their cells with outputs, where offset and limit count cells, " +
			"and PDFs as documents; one with more than 10 pages needs pages. Directories cannot be read; list them with Bash.",
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
	if in.Offset > maxLine || in.Limit > maxLine {
		return nil, fmt.Errorf("offset and limit: at most %d", int64(maxLine))
	}
	at, err := locate(c, "file_path", in.FilePath)
	if err != nil {
		return nil, err
	}
	f, info, err := openRegular(at.target)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	head := make([]byte, sniffSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s cannot be read: %w", at.path, err)
	}
	head = head[:n]
	r := &reading{
		place: at, call: c, in: in, info: info, head: head,
		body: io.MultiReader(bytes.NewReader(head), f), sel: in.selection(c.Env, info.Size()),
	}
	typ := apiblock.ImageType(head)
	switch {
	case isPDF(head):
		return r.pdf()
	case in.Pages != "":
		return nil, fmt.Errorf("pages: %s is not a PDF; leave the field out", at.path)
	case typ != "":
		return r.image(typ)
	case isNotebook(at.path):
		return r.notebook(ctx)
	}
	return r.text(ctx)
}

// reading is one call of Read with the file open.
type reading struct {
	place
	call *tool.Call
	in   readInput
	info fs.FileInfo
	head []byte    // the first bytes
	body io.Reader // the file from its start, to be read once
	sel  selection
}

func (in readInput) selection(env *tool.Env, size int64) selection {
	return selection{
		first:    max(1, int64(in.Offset)),
		count:    int64(in.Limit),
		explicit: in.Offset > 0 || in.Limit > 0,
		budget:   tokenLimit(env) * bytesPerToken,
		scanAll:  size <= hashLimit,
	}
}

func (r *reading) image(typ string) (*tool.Result, error) {
	res, err := readImage(r.body, r.path, typ)
	if err == nil {
		storeRecord(r.call.Env.State, r.target, fileRecord{Size: r.info.Size(), ModTime: r.info.ModTime().UnixNano()})
	}
	return res, err
}

// notebook shows a notebook by its cells. One that is not valid is shown as
// text, so that it can be mended.
func (r *reading) notebook(ctx context.Context) (*tool.Result, error) {
	if r.info.Size() > maxNotebook {
		return nil, fmt.Errorf("%s is a notebook of %d bytes; at most %d are read: take out a part with a shell command such as jq '.cells[0]'", r.path, r.info.Size(), int64(maxNotebook))
	}
	data, err := io.ReadAll(io.LimitReader(r.body, maxNotebook+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", r.path, err)
	}
	n, err := parseNotebook(data)
	if err != nil {
		r.body = bytes.NewReader(data)
		res, textErr := r.text(ctx)
		if textErr == nil && len(bytes.TrimSpace(data)) > 0 {
			res.Content = append(res.Content, message.NewText(fmt.Sprintf("[The file %v. It is shown as text.]", err)))
		}
		return res, textErr
	}
	v, err := n.view(r.path, r.sel)
	if err != nil {
		return nil, fmt.Errorf("%s %w", r.path, err)
	}
	if r.remember(recordOf(r.info, data).Hash, v.truncated) {
		return r.unchanged()
	}
	return v.result(r.path)
}

func (r *reading) text(ctx context.Context) (*tool.Result, error) {
	if err := refuseBinary(r.path, r.head, r.info.Size()); err != nil {
		return nil, err
	}
	v, err := scanText(ctx, r.body, r.sel)
	tokens := tokenLimit(r.call.Env)
	switch {
	case errors.Is(err, errTooLarge) && r.sel.count > 0:
		return nil, fmt.Errorf("%s: %w, about %d tokens; use a smaller limit than %d, or search with Grep", r.path, err, tokens, r.sel.count)
	case errors.Is(err, errTooLarge):
		return nil, fmt.Errorf("%s: %w, about %d tokens; add a limit, or search with Grep", r.path, err, tokens)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", r.path, err)
	}
	if r.remember(v.hash, v.truncated) {
		return r.unchanged()
	}
	return v.result(r.path, r.sel)
}

// remember records what has been read (T-57) and reports whether the same
// range of the same content has been shown before (T-56).
func (r *reading) remember(hash string, truncated bool) (shown bool) {
	now := fileRecord{Hash: hash, Size: r.info.Size(), ModTime: r.info.ModTime().UnixNano(), Partial: truncated}
	before, known := loadRecord(r.call.Env.State, r.target)
	if known && hash != "" && before.Hash == hash {
		// What was seen of this content stays seen.
		now.Partial = truncated && before.Partial
		now.Shown = before.Shown
	}
	if hash != "" && !truncated {
		shown = now.addShown(fmt.Sprintf("%d,%d", r.sel.first, r.sel.count))
	}
	storeRecord(r.call.Env.State, r.target, now)
	return shown
}

// unchanged is the result of T-56.
func (r *reading) unchanged() (*tool.Result, error) {
	type file struct {
		FilePath string `json:"filePath"`
	}
	structured, err := message.Encode(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"file_unchanged", file{r.path}})
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("The file %s has not changed since this part of it was read; what was shown then still holds. To see it once more, read it with another limit.", r.path)
	return &tool.Result{Content: []message.Block{message.NewText(text)}, Structured: structured}, nil
}

// refuseBinary says what the file is and how large, instead of showing it or
// changing it as text. Text in UTF-16, known by its mark, is refused too: it
// would have to be written back in the same encoding. In any other encoding
// the bytes that are no UTF-8 are shown as U+FFFD and kept by Edit.
func refuseBinary(path string, head []byte, size int64) error {
	switch {
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return fmt.Errorf("%s is UTF-16 text of %d bytes, which the file tools do not take; convert it with a shell command such as iconv -f UTF-16 -t UTF-8", path, size)
	case bytes.IndexByte(head, 0) < 0:
		return nil
	}
	return fmt.Errorf("%s is a binary file of %d bytes and is not shown; look at it with a shell command such as file, strings or xxd", path, size)
}

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Normalizer
} = (*Read)(nil)
