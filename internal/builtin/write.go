package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// Write creates a file or replaces the whole of one (T-59 to T-67).
type Write struct{}

// NewWrite returns the Write tool.
func NewWrite() *Write { return &Write{} }

const writeSchema = `{"type":"object","properties":{` +
	`"file_path":{"type":"string","description":"Path of the file; absolute, or relative to the working directory"},` +
	`"content":{"type":"string","description":"The whole content of the file, stored as it is"}},` +
	`"required":["file_path","content"],"additionalProperties":false}`

// Spec describes the tool.
func (*Write) Spec() tool.Spec {
	return tool.Spec{
		Name: "Write",
		Description: "Creates a file with the given content, or replaces the whole content of an existing one; it never appends. " +
			"An existing file must have been read before. Directories above a new file are created. " +
			"For a change of parts of a file use Edit.",
		InputSchema: json.RawMessage(writeSchema),
	}
}

type writeInput struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

// Normalize makes file_path absolute (T-22).
func (*Write) Normalize(env *tool.Env, input json.RawMessage) (json.RawMessage, error) {
	return normalizePath(env, input, "file_path")
}

// Accesses returns the file that is written.
func (*Write) Accesses(input json.RawMessage) ([]permission.Access, error) {
	var in writeInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Write: %w", err)
	}
	return pathAccess(permission.Write, in.FilePath)
}

// Call writes the file. The checks come in the order of T-71.
func (*Write) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	var in writeInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("Write: %w", err)
	}
	ch, err := openChange(ctx, c, "file_path", in.FilePath, "written")
	if err != nil {
		return nil, err
	}
	defer ch.unlock()
	data := []byte(in.Content)

	f, info, err := openRegular(ch.target)
	if errors.Is(err, fs.ErrNotExist) {
		if err := ch.announce(c); err != nil {
			return nil, err
		}
		if err := createFile(ch.target, data, c.Key); err != nil {
			return nil, fmt.Errorf("%s cannot be created: %w", ch.path, err)
		}
		ch.remember(c, data)
		return writeResult(ch.path, "create", in, nil, fmt.Sprintf("%s has been created.", ch.path))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	needed := ch.needsRead(c.Env)
	switch {
	case !ch.known && isNotebook(ch.path):
		return nil, fmt.Errorf("%s is a notebook that has not been read yet in this session; read it before overwriting it", ch.path)
	case !ch.known && needed:
		return nil, fmt.Errorf("%s exists and has not been read yet in this session; read it before overwriting it", ch.path)
	case ch.before.Partial:
		return nil, fmt.Errorf("%s has been seen only as a PARTIAL view; read it with offset and limit before overwriting it", ch.path)
	}
	original, now, err := readOriginal(f, info)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", ch.path, err)
	}
	if ch.known && !ch.before.same(now) {
		return nil, fmt.Errorf("%s has changed since it was read; read it again, then write it", ch.path)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := ch.announce(c); err != nil {
		return nil, err
	}
	closeForRename(f)
	if err := replaceFile(ch.target, data, info, c.Key); err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", ch.path, err)
	}
	ch.remember(c, data)
	return writeResult(ch.path, "update", in, original, fmt.Sprintf("%s has been written.", ch.path))
}

// readOriginal describes the file that is to be replaced, and returns its
// content where that is small enough to be shown; nil otherwise.
func readOriginal(f io.Reader, info fs.FileInfo) (original *string, now fileRecord, err error) {
	head := headBuffer{max: maxOriginal}
	now, err = recordFile(io.TeeReader(f, &head), info)
	if err == nil && info.Size() <= maxOriginal && !head.more {
		original = new(string(head.data))
	}
	return original, now, err
}

// headBuffer keeps the first bytes that are written to it.
type headBuffer struct {
	max  int
	data []byte
	more bool // there were more than max
}

func (h *headBuffer) Write(p []byte) (int, error) {
	room := min(len(p), h.max-len(h.data))
	h.data = append(h.data, p[:room]...)
	h.more = h.more || room < len(p)
	return len(p), nil
}

// writeResult is the output of T-60. For a new file originalFile is null and
// structuredPatch empty, and so they are for an original too large to be shown.
func writeResult(path, typ string, in writeInput, original *string, text string) (*tool.Result, error) {
	out := struct {
		Type            string  `json:"type"`
		FilePath        string  `json:"filePath"`
		Content         string  `json:"content"`
		StructuredPatch []hunk  `json:"structuredPatch"`
		OriginalFile    *string `json:"originalFile"`
		UserModified    bool    `json:"userModified"`
	}{Type: typ, FilePath: path, Content: in.Content, StructuredPatch: []hunk{}, OriginalFile: original}
	if original != nil {
		out.StructuredPatch = linePatch(*original, in.Content)
	}
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewText(text)}, Structured: raw}, nil
}

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Normalizer
} = (*Write)(nil)
