package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/rawjson"
)

// Content is the content of an API message: a string or a list of blocks. A
// prompt given as a string stays one (K-312). The zero value is no content.
type Content struct {
	text   string
	blocks []Block
	isText bool
}

// TextContent returns content given as a string.
func TextContent(s string) Content { return Content{text: s, isText: true} }

// BlockContent returns content given as blocks. A zero Block is no block and
// is left out. The caller must not change the list afterwards.
func BlockContent(blocks ...Block) Content {
	if blocks == nil {
		blocks = []Block{}
	}
	if slices.ContainsFunc(blocks, Block.IsZero) {
		blocks = slices.DeleteFunc(slices.Clone(blocks), Block.IsZero)
	}
	return Content{blocks: blocks}
}

// IsZero reports whether there is no content at all (no key in JSON).
func (c Content) IsZero() bool { return !c.isText && c.blocks == nil }

// IsText reports whether the content is a string; Text is then that string.
func (c Content) IsText() bool { return c.isText }

// Blocks returns the content as blocks: a string as one text block, an empty
// string as none.
func (c Content) Blocks() []Block {
	if c.isText {
		if c.text == "" {
			return nil
		}
		return []Block{NewText(c.text)}
	}
	return c.blocks
}

// Text returns the string, or the text blocks joined without separator.
func (c Content) Text() string {
	if c.isText {
		return c.text
	}
	return joinText(c.blocks)
}

// append appends the JSON form, null for no content.
func (c Content) append(dst []byte) []byte {
	if c.IsZero() {
		return append(dst, "null"...)
	}
	dst, _ = appendContent(dst, &c) // a Content holds no zero Block
	return dst
}

// MarshalJSON writes a string or an array; no content is null.
func (c Content) MarshalJSON() ([]byte, error) {
	n := len(c.text) + 8
	for _, b := range c.blocks {
		n += len(b.raw) + 1
	}
	return c.append(make([]byte, 0, n)), nil
}

// UnmarshalJSON reads a string, an array of blocks or null.
func (c *Content) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		return fmt.Errorf("content: not valid JSON: %.60q", raw)
	}
	p, err := parseContent(raw)
	if err != nil {
		return err
	}
	*c = p
	return nil
}

// parseContent reads valid JSON.
func parseContent(raw []byte) (Content, *fieldError) {
	switch {
	case rawjson.IsNull(raw):
		return Content{}, nil
	case raw[0] == '"':
		return TextContent(rawjson.Unquote(raw)), nil
	case raw[0] != '[':
		return Content{}, fault(raw, errors.New("want a string or a list"))
	}
	blocks := []Block{}
	for e := range rawjson.Elements(raw) {
		b, err := ParseBlock(e)
		if err != nil {
			return Content{}, fault(e, err).in("[" + strconv.Itoa(len(blocks)) + "]")
		}
		blocks = append(blocks, b)
	}
	return Content{blocks: blocks}, nil
}

func joinText(blocks []Block) string {
	switch len(blocks) {
	case 0:
		return ""
	case 1:
		return blocks[0].Text()
	}
	var s strings.Builder
	for _, b := range blocks {
		s.WriteString(b.Text())
	}
	return s.String()
}
