package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/permission"
	"github.com/turnwright/turnwright/tool"
)

// NotebookEdit replaces, inserts or deletes a cell of a Jupyter notebook (T-85
// to T-88). Every byte of the file outside of what changes stays as it is.
type NotebookEdit struct{}

// NewNotebookEdit returns the NotebookEdit tool.
func NewNotebookEdit() *NotebookEdit { return &NotebookEdit{} }

const notebookEditSchema = `{"type":"object","properties":{` +
	`"notebook_path":{"type":"string","description":"Path of the notebook (.ipynb); absolute, or relative to the working directory"},` +
	`"new_source":{"type":"string","description":"The new source of the cell; not used by delete"},` +
	`"cell_id":{"type":"string","description":"Id of the cell, as Read shows it. With insert the new cell comes after it; without it, at the top"},` +
	`"cell_type":{"type":"string","enum":["code","markdown"],"description":"Type of the cell; needed by insert, otherwise as it is"},` +
	`"edit_mode":{"type":"string","enum":["replace","insert","delete"],"default":"replace","description":"What to do"}},` +
	`"required":["notebook_path","new_source"],"additionalProperties":false}`

// Spec describes the tool.
func (*NotebookEdit) Spec() tool.Spec {
	return tool.Spec{
		Name: "NotebookEdit",
		Description: "Replaces the source of a cell of a Jupyter notebook, inserts a new cell or deletes one. " +
			"Outputs of a code cell whose source is replaced are cleared.",
		InputSchema: json.RawMessage(notebookEditSchema),
	}
}

type notebookEditInput struct {
	Path      string `json:"notebook_path"`
	NewSource string `json:"new_source"`
	CellID    string `json:"cell_id"`
	CellType  string `json:"cell_type"`
	Mode      string `json:"edit_mode"`
}

// Normalize makes notebook_path absolute (T-22).
func (*NotebookEdit) Normalize(env *tool.Env, input json.RawMessage) (json.RawMessage, error) {
	return normalizePath(env, input, "notebook_path")
}

// Accesses returns the notebook, which is written. A Read deny rule does not
// forbid that (T-88).
func (*NotebookEdit) Accesses(input json.RawMessage) ([]permission.Access, error) {
	var in notebookEditInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("NotebookEdit: %w", err)
	}
	a, err := permission.NewPathAccess(permission.Write, in.Path)
	if err != nil {
		return nil, fmt.Errorf("notebook_path: %w", err)
	}
	return []permission.Access{a}, nil
}

// The values of edit_mode.
const (
	modeReplace = "replace"
	modeInsert  = "insert"
	modeDelete  = "delete"
)

// check finds the faults that need no file (T-86).
func (in *notebookEditInput) check() error {
	if in.Mode == "" {
		in.Mode = modeReplace
	}
	switch {
	case in.Mode == modeInsert && in.CellType == "":
		return errors.New("cell_type: required when edit_mode is insert: code or markdown")
	case in.Mode != modeInsert && in.CellID == "":
		return fmt.Errorf("cell_id: required when edit_mode is %s", in.Mode)
	}
	return nil
}

// Call edits the notebook.
func (*NotebookEdit) Call(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	var in notebookEditInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("NotebookEdit: %w", err)
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	ch, err := openChange(ctx, c, "notebook_path", in.Path, "")
	if err != nil {
		return nil, err
	}
	defer ch.unlock()
	if !isNotebook(ch.path) {
		return nil, fmt.Errorf("%s is not a notebook (its name does not end in .ipynb); change it with Edit", ch.path)
	}
	data, info, err := readForEdit(ch.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; create a notebook with Write", err)
	case err != nil:
		return nil, err
	}
	n, err := parseNotebook(data)
	if err != nil {
		return nil, fmt.Errorf("%s %w", ch.path, err)
	}
	e, err := n.edit(in, c.Key)
	if err != nil {
		return nil, fmt.Errorf("%s %w", ch.path, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := ch.announce(c); err != nil {
		return nil, err
	}
	if err := replaceFile(ch.target, e.data, info, c.Key); err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", ch.path, err)
	}
	if ch.known && !ch.before.Partial && ch.before.same(recordOf(info, data)) {
		ch.remember(c, e.data) // else the session has not seen the whole of it
	}
	return e.result(ch.path, in, data, n.language)
}

// notebookChange is an edit of a notebook that fits.
type notebookChange struct {
	data      []byte // the new content of the file
	id, typ   string // of the cell
	oldSource *string
}

// edit makes the edit. The error reads on after the name of the file.
func (n *notebook) edit(in notebookEditInput, key string) (*notebookChange, error) {
	at := -1
	if in.CellID != "" {
		i, err := n.index(in.CellID)
		if err != nil {
			return nil, err
		}
		at = i
	}
	e := &notebookChange{typ: in.CellType}
	var text []byte
	var err error
	switch in.Mode {
	case modeInsert:
		text, err = n.insert(at, in, key, e)
	case modeDelete:
		old, oldErr := n.cell(at)
		e.id, e.typ, e.oldSource, err = old.ID, old.Type, &old.Source.text, oldErr
		text = dropPart(n.text, n.array, n.cells, at)
	default:
		text, err = n.replace(at, in, e)
	}
	if err != nil {
		return nil, err
	}
	e.data = append(n.mark[:len(n.mark):len(n.mark)], text...)
	if _, err := parseNotebook(e.data); err != nil {
		return nil, fmt.Errorf("cannot be edited: the result %w", err)
	}
	return e, nil
}

// depth of the members of a cell, of the cells and of their list.
const (
	depthMember = 3
	depthCell   = 2
	depthList   = 1
)

func (n *notebook) replace(at int, in notebookEditInput, e *notebookChange) ([]byte, error) {
	old, err := n.cell(at)
	if err != nil {
		return nil, err
	}
	e.id, e.oldSource = old.ID, &old.Source.text
	if e.typ == "" {
		e.typ = old.Type
	}
	source, err := old.Source.encode(in.NewSource)
	if err != nil {
		return nil, err
	}
	obj := n.cells[at].of(n.text)
	set := func(key string, value []byte) {
		if err == nil {
			obj, err = setMember(obj, key, n.layout.set(value, depthMember))
		}
	}
	drop := func(key string) {
		if err == nil {
			obj, err = dropMember(obj, key)
		}
	}
	if e.typ != old.Type {
		set("cell_type", []byte(quoted(e.typ)))
	}
	set("source", source)
	if e.typ == "code" {
		set("execution_count", []byte("null"))
		set("outputs", []byte("[]"))
	} else if old.Type == "code" {
		drop("execution_count")
		drop("outputs")
	}
	if err != nil {
		return nil, err
	}
	return splice(n.text, n.cells[at], obj), nil
}

// insert adds a cell after the one at that index, or at the top for -1.
func (n *notebook) insert(at int, in notebookEditInput, key string, e *notebookChange) ([]byte, error) {
	var form textLines
	if len(n.cells) > 0 {
		if first, err := n.cell(0); err == nil {
			form = first.Source
		}
	}
	source, err := form.encode(in.NewSource)
	if err != nil {
		return nil, err
	}
	// The keys in the order in which Jupyter writes them.
	obj := `{"cell_type":` + quoted(in.CellType)
	if in.CellType == "code" {
		obj += `,"execution_count":null`
	}
	e.id = fmt.Sprintf("cell-%d", at+1)
	if n.hasIDs {
		e.id = n.freshID(key)
		obj += `,"id":` + quoted(e.id)
	}
	obj += `,"metadata":{}`
	if in.CellType == "code" {
		obj += `,"outputs":[]`
	}
	obj += `,"source":` + string(source) + `}`
	added := string(n.layout.set([]byte(obj), depthCell))
	switch {
	case len(n.cells) == 0:
		return splice(n.text, part{n.array.from + 1, n.array.to - 1}, []byte(n.layout.line(depthCell)+added+n.layout.line(depthList))), nil
	case at < 0:
		first := n.cells[0].from
		space := string(n.text[n.array.from+1 : first])
		return splice(n.text, part{first, first}, []byte(added+","+space)), nil
	}
	space := string(n.text[n.array.from+1 : n.cells[0].from])
	end := n.cells[at].to
	return splice(n.text, part{end, end}, []byte(","+space+added)), nil
}

// freshID makes the id of a new cell from the call's key, so that it is the
// same when the call is repeated.
func (n *notebook) freshID(key string) string {
	taken := map[string]bool{}
	for i := range n.cells {
		if c, err := n.cell(i); err == nil {
			taken[c.ID] = true
		}
	}
	for i := 0; ; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", key, i))
		if id := hex.EncodeToString(sum[:4]); !taken[id] {
			return id
		}
	}
}

func quoted(s string) string {
	raw, err := message.Encode(s)
	if err != nil {
		return `""` // cannot happen: every string has a JSON form
	}
	return string(raw)
}

// result is the output of T-87. The file's texts are left out where they are
// too large to be shown.
func (e *notebookChange) result(path string, in notebookEditInput, original []byte, language string) (*tool.Result, error) {
	out := struct {
		NewSource    string  `json:"new_source"`
		OldSource    *string `json:"old_source,omitempty"`
		CellID       string  `json:"cell_id"`
		CellType     string  `json:"cell_type"`
		Language     string  `json:"language"`
		Mode         string  `json:"edit_mode"`
		Path         string  `json:"notebook_path"`
		OriginalFile *string `json:"original_file"`
		UpdatedFile  *string `json:"updated_file"`
	}{in.NewSource, e.oldSource, e.id, e.typ, language, in.Mode, path, nil, nil}
	if max(len(original), len(e.data)) <= maxOriginal {
		out.OriginalFile, out.UpdatedFile = new(string(original)), new(string(e.data))
	}
	raw, err := message.Encode(out)
	if err != nil {
		return nil, err
	}
	text := map[string]string{modeReplace: "has been replaced", modeInsert: "has been inserted", modeDelete: "has been deleted"}[in.Mode]
	return &tool.Result{Content: []message.Block{message.NewText(fmt.Sprintf("The cell %s of %s %s.", e.id, path, text))}, Structured: raw}, nil
}

var _ interface {
	tool.Tool
	tool.Accesser
	tool.Normalizer
} = (*NotebookEdit)(nil)
