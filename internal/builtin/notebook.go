package builtin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/turnwright/turnwright/message"
)

// maxNotebook is the size up to which a notebook is read (T-55).
const maxNotebook = 100 << 20

// notebook is a Jupyter notebook of format 4: the text and where its cells are.
type notebook struct {
	text     []byte // without byte-order mark
	mark     []byte // the byte-order mark, if there is one
	layout   layout
	array    part // the list of cells
	cells    []part
	hasIDs   bool // its format has ids of cells
	language string
}

// cell is what the tools know of a cell.
type cell struct {
	Type           string          `json:"cell_type"`
	ID             string          `json:"id"`
	Source         textLines       `json:"source"`
	ExecutionCount json.RawMessage `json:"execution_count"`
	Outputs        []cellOutput    `json:"outputs"`
}

// cellOutput is one output of a code cell, of any of the four kinds.
type cellOutput struct {
	Type      string                     `json:"output_type"`
	Text      textLines                  `json:"text"` // stream
	Data      map[string]json.RawMessage `json:"data"` // display_data, execute_result
	Name      string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// textLines is a text that is stored as one string or as a list of lines.
type textLines struct {
	text   string
	single bool // stored as one string
}

func (t *textLines) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &t.text) == nil {
		t.single = !bytes.Equal(raw, []byte("null"))
		return nil
	}
	var lines []string
	if err := json.Unmarshal(raw, &lines); err != nil {
		return errors.New("a text is neither a string nor a list of strings")
	}
	t.text = strings.Join(lines, "")
	return nil
}

// encode stores text in the same form.
func (t textLines) encode(text string) ([]byte, error) {
	if t.single {
		return message.Encode(text)
	}
	lines := splitLines(text)
	if lines == nil {
		lines = []string{}
	}
	return message.Encode(lines)
}

// parseNotebook finds the cells. The error reads on after the name of the file.
func parseNotebook(data []byte) (*notebook, error) {
	n := &notebook{text: bytes.TrimPrefix(data, []byte(byteOrderMark))}
	n.mark = data[:len(data)-len(n.text)]
	if err := json.Unmarshal(n.text, new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("is not a valid notebook: %w", err)
	}
	var head struct {
		Major    int `json:"nbformat"`
		Minor    int `json:"nbformat_minor"`
		Metadata struct {
			Info struct {
				Name string `json:"name"`
			} `json:"language_info"`
			Kernel struct {
				Language string `json:"language"`
			} `json:"kernelspec"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(n.text, &head); err != nil {
		return nil, fmt.Errorf("is not a valid notebook: %w", err)
	}
	if head.Major != 4 {
		return nil, fmt.Errorf("is a notebook of format %d; only format 4 is known: convert it with a shell command such as jupyter nbconvert --to notebook", head.Major)
	}
	n.hasIDs = head.Minor >= 5
	if n.language = head.Metadata.Info.Name; n.language == "" {
		n.language = head.Metadata.Kernel.Language
	}
	if n.language == "" {
		n.language = "python"
	}
	whole := part{len(n.text) - len(bytes.TrimLeft(n.text, " \t\r\n")), len(n.text)}
	list, err := members(n.text, whole)
	if err != nil {
		return nil, fmt.Errorf("is not a valid notebook: %w", err)
	}
	m, ok := find(list, "cells")
	if !ok || n.text[m.value.from] != '[' {
		return nil, errors.New("is not a valid notebook: it has no list of cells")
	}
	n.layout, n.array = layoutOf(n.text, list[0].at.from), m.value
	if n.cells, err = elements(n.text, n.array); err != nil {
		return nil, fmt.Errorf("is not a valid notebook: %w", err)
	}
	return n, nil
}

// cell decodes a cell, counted from 0. One without an id is called "cell-N".
func (n *notebook) cell(i int) (cell, error) {
	var c cell
	if err := json.Unmarshal(n.cells[i].of(n.text), &c); err != nil {
		return c, fmt.Errorf("has a cell %d that is not valid: %w", i+1, err)
	}
	if c.ID == "" {
		c.ID = fmt.Sprintf("cell-%d", i)
	}
	return c, nil
}

// index finds a cell by its id, or by its number in the form "cell-N".
func (n *notebook) index(id string) (int, error) {
	var ids []string
	for i := range n.cells {
		c, err := n.cell(i)
		if err != nil {
			return 0, err
		}
		if c.ID == id {
			return i, nil
		}
		ids = append(ids, c.ID)
	}
	var i int
	if _, err := fmt.Sscanf(id, "cell-%d", &i); err == nil && i >= 0 && i < len(n.cells) && id == fmt.Sprintf("cell-%d", i) {
		return i, nil
	}
	text := "it has no cells"
	if len(ids) > 0 {
		text = "it has " + strings.Join(ids[:min(len(ids), 20)], ", ")
		if len(ids) > 20 {
			text += fmt.Sprintf(" and %d more", len(ids)-20)
		}
	}
	return 0, fmt.Errorf("has no cell with the id %q; %s", id, text)
}
