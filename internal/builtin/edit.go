package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// Edit replaces a text in a file by another (T-68 to T-84).
type Edit struct{}

// NewEdit returns the Edit tool. Calls on the same file run one after the
// other, also when they come from several goroutines (B-089).
func NewEdit() *Edit { return &Edit{} }

const editSchema = `{"type":"object","properties":{` +
	`"file_path":{"type":"string","description":"Path of the file; absolute, or relative to the working directory"},` +
	`"old_string":{"type":"string","description":"The text to replace, exactly as in the file, without line numbers. Empty: create the file"},` +
	`"new_string":{"type":"string","description":"The text to put in its place"},` +
	`"replace_all":{"type":"boolean","default":false,"description":"Replace every occurrence instead of the only one"}},` +
	`"required":["file_path","old_string","new_string"],"additionalProperties":false}`

// Spec describes the tool.
func (*Edit) Spec() tool.Spec {
	return tool.Spec{
		Name: "Edit",
		Description: "Replaces old_string in a file by new_string. The match is literal and must be unique unless " +
			"replace_all is true. The file must have been read before. Line breaks are written as the file has them.",
		InputSchema: json.RawMessage(editSchema),
	}
}

type editInput struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

// Normalize makes file_path absolute (T-22).
func (*Edit) Normalize(env *tool.Env, input json.RawMessage) (json.RawMessage, error) {
	return normalizePath(env, input, "file_path")
}

// Accesses returns the file that is written.
func (*Edit) Accesses(input json.RawMessage) ([]permission.Access, error) {
	var in editInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("Edit: %w", err)
	}
	return pathAccess(permission.Write, in.FilePath)
}

// maxEditSize bounds the files that Edit takes into memory.
const maxEditSize = 256 << 20

// changed is about how many bytes a patch of the edit has, without context.
func (e *textEdit) changed() (n int) {
	for _, s := range e.spans {
		n += s.to - s.from + len(s.text)
	}
	return n
}

// maxOriginal bounds the file content that goes into the structured output;
// beyond it originalFile is null.
const maxOriginal = 1 << 20

// Call edits the file. The checks come in the order of T-71. Text in UTF-16 and
// binary files are refused: what replaces a part of them would be in another
// encoding than the rest.
func (*Edit) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	var in editInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("Edit: %w", err)
	}
	if foldString(in.OldString) == foldString(in.NewString) {
		if in.OldString == "" {
			return nil, errors.New("old_string and new_string are both empty: there is nothing to do")
		}
		return nil, errors.New("old_string and new_string are the same: there is nothing to change")
	}
	ch, err := openChange(ctx, c, "file_path", in.FilePath, "edited")
	if err != nil {
		return nil, err
	}
	defer ch.unlock()
	if isNotebook(ch.path) {
		return nil, fmt.Errorf("%s is a notebook: edit its cells with NotebookEdit", ch.path)
	}
	data, info, err := readForEdit(ch.target)
	if errors.Is(err, fs.ErrNotExist) && in.OldString == "" {
		return create(c, ch, in)
	}
	if err != nil {
		return nil, err
	}
	now := recordOf(info, data)
	switch {
	case !ch.known && ch.needsRead(c.Env):
		return nil, fmt.Errorf("%s has not been read yet in this session; read it first, then edit it", ch.path)
	case ch.before.Partial && ch.needsRead(c.Env):
		return nil, fmt.Errorf("%s has been seen only as a PARTIAL view; read the part to edit with offset and limit first", ch.path)
	}
	if err := refuseBinary(ch.path, data[:min(len(data), sniffSize)], info.Size()); err != nil {
		return nil, err
	}
	changed := ch.known && !ch.before.same(now)

	var edit *textEdit
	if in.OldString == "" {
		edit, err = fillEmpty(data, in)
	} else {
		edit, err = applyEdit(data, in.OldString, in.NewString, in.ReplaceAll)
	}
	switch {
	case err != nil && changed:
		return nil, fmt.Errorf("%s has changed since it was read, and the edit does not fit it as it is now (%w); read it again", ch.path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", ch.path, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := ch.announce(c); err != nil {
		return nil, err
	}
	if err := replaceFile(ch.target, edit.data, info, c.Key); err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", ch.path, err)
	}
	ch.remember(c, edit.data)

	text := fmt.Sprintf("%s has been edited", ch.path)
	if edit.count > 1 {
		text += fmt.Sprintf(" (%d occurrences replaced)", edit.count)
	}
	text += "."
	if changed {
		text += " The file had changed since it was read; the edit was applied to it as it is now."
	}
	return editResult(ch.path, in, data, edit, text)
}

// readForEdit reads the whole file, which must be a regular one.
func readForEdit(target string) ([]byte, fs.FileInfo, error) {
	f, info, err := openRegular(target)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var data []byte
	if info.Size() <= maxEditSize { // the size may lie, in /proc for one
		if data, err = io.ReadAll(io.LimitReader(f, maxEditSize+1)); err != nil {
			return nil, nil, fmt.Errorf("%s cannot be read: %w", target, err)
		}
	}
	if max(info.Size(), int64(len(data))) > maxEditSize {
		return nil, nil, fmt.Errorf("%s is larger than %d bytes, too large for Edit; change it with a shell command", target, int64(maxEditSize))
	}
	return data, info, nil
}

// create makes a new file, with the directories above it (T-82).
func create(c *tool.Call, ch *change, in editInput) (*tool.Result, error) {
	data := []byte(in.NewString)
	if err := ch.announce(c); err != nil {
		return nil, err
	}
	if err := createFile(ch.target, data, c.Key); err != nil {
		return nil, fmt.Errorf("%s cannot be created: %w", ch.path, err)
	}
	ch.remember(c, data)
	edit := &textEdit{data: data, spans: []span{{0, 0, foldString(in.NewString)}}}
	return editResult(ch.path, in, nil, edit, fmt.Sprintf("%s has been created.", ch.path))
}

// fillEmpty is the edit of a file without text by an empty old_string (T-82).
func fillEmpty(data []byte, in editInput) (*textEdit, error) {
	if text := strings.TrimPrefix(string(data), byteOrderMark); text != "" {
		return nil, errors.New("old_string is empty, which creates a file, but the file exists and is not empty")
	}
	return &textEdit{
		data: append(data[:len(data):len(data)], strings.TrimPrefix(in.NewString, byteOrderMark)...), count: 1,
		spans: []span{{0, 0, foldString(in.NewString)}},
	}, nil
}

func editResult(path string, in editInput, original []byte, edit *textEdit, text string) (*tool.Result, error) {
	out := struct {
		FilePath        string  `json:"filePath"`
		OldString       string  `json:"oldString"`
		NewString       string  `json:"newString"`
		OriginalFile    *string `json:"originalFile"`
		StructuredPatch []hunk  `json:"structuredPatch"`
		UserModified    bool    `json:"userModified"`
		ReplaceAll      bool    `json:"replaceAll"`
	}{
		FilePath: path, OldString: in.OldString, NewString: in.NewString,
		StructuredPatch: []hunk{}, ReplaceAll: in.ReplaceAll,
	}
	if edit.changed() <= maxOriginal {
		out.StructuredPatch = structuredPatch(edit.old, edit.spans)
	}
	if len(original) <= maxOriginal {
		out.OriginalFile = new(string(original))
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
} = (*Edit)(nil)
