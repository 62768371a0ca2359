package builtin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/internal/apiblock"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

const (
	// maxOutputText bounds what is shown of one output of a cell, in bytes.
	maxOutputText = 10_000
	// maxOutputImages bounds the images of one notebook that are shown.
	maxOutputImages = 20
)

// shownCell is a cell in the output of T-41.
type shownCell struct {
	CellType       string          `json:"cellType"`
	Source         string          `json:"source"`
	CellID         string          `json:"cell_id"`
	Language       string          `json:"language,omitempty"`
	ExecutionCount json.RawMessage `json:"execution_count,omitempty"`
	Outputs        []shownOutput   `json:"outputs,omitempty"`
}

type shownOutput struct {
	Type  string       `json:"output_type"`
	Text  string       `json:"text,omitempty"`
	Image *outputImage `json:"image,omitempty"`
}

type outputImage struct {
	Data      string `json:"image_data"`
	MediaType string `json:"media_type"`
}

// notebookView is what is shown of a notebook.
type notebookView struct {
	cells     []shownCell
	content   []message.Block
	text      strings.Builder // of the block that is being written
	size      int             // bytes of text so far
	images    int
	truncated bool
}

// view renders the selected cells with their outputs (T-55); offset and limit
// count cells. The error reads on after the name of the file.
func (n *notebook) view(path string, sel selection) (*notebookView, error) {
	v := &notebookView{cells: []shownCell{}}
	first := min(sel.first-1, int64(len(n.cells)))
	last := int64(len(n.cells))
	if sel.count > 0 {
		last = min(last, first+sel.count)
	}
	for i := first; i < last; i++ {
		c, err := n.cell(int(i))
		if err != nil {
			return nil, err
		}
		shown, text := n.render(c, v.images)
		size := 0
		for _, t := range text {
			size += len(t.text)
		}
		if v.size+size > sel.budget {
			if sel.explicit {
				return nil, fmt.Errorf("has a cell %d that does not fit any more: %w; use a smaller limit, or take out a part with a shell command such as jq '.cells[%d].source' FILE", i+1, errTooLarge, i)
			}
			v.truncated = true
			last = i
			break
		}
		v.add(shown, text, size)
	}
	switch {
	case len(n.cells) == 0:
		v.text.WriteString("The notebook " + path + " exists and has no cells.")
	case len(v.cells) == 0 && !v.truncated:
		fmt.Fprintf(&v.text, "The notebook %s has %s; offset %d is past its end.", path, plural(int64(len(n.cells)), "cell"), sel.first)
	case v.truncated && last == 0:
		fmt.Fprintf(&v.text, "[PARTIAL view of %s: not even the first of %s fits. Take out a part with a shell command such as jq '.cells[0].source' FILE.]", path, plural(int64(len(n.cells)), "cell"))
	case v.truncated:
		fmt.Fprintf(&v.text, "[PARTIAL view of %s: cells 1 to %d of %d are shown, because the notebook is larger than one Read may show. Go on with offset %d and a limit of about %d.]",
			path, last, len(n.cells), last+1, last)
	}
	v.flush()
	return v, nil
}

// piece is a piece of a rendered cell: text or an image.
type piece struct {
	text  string
	image *outputImage
}

func (v *notebookView) add(c shownCell, pieces []piece, size int) {
	v.cells = append(v.cells, c)
	v.size += size
	for _, p := range pieces {
		if p.image == nil {
			v.text.WriteString(p.text)
			continue
		}
		v.flush()
		v.content = append(v.content, message.NewImage(p.image.MediaType, p.image.Data))
		v.images++
	}
}

func (v *notebookView) flush() {
	if text := strings.TrimRight(v.text.String(), "\n"); text != "" {
		v.content = append(v.content, message.NewText(text))
	}
	v.text.Reset()
}

// render shows a cell to the model and in the output. images is how many the
// notebook has shown already.
func (n *notebook) render(c cell, images int) (shownCell, []piece) {
	shown := shownCell{CellType: c.Type, Source: c.Source.text, CellID: c.ID}
	head := fmt.Sprintf("<cell id=%q type=%q", c.ID, c.Type)
	if c.Type == "code" {
		shown.Language = n.language
		if n.language != "python" {
			head += fmt.Sprintf(" language=%q", n.language)
		}
		if len(c.ExecutionCount) > 0 && string(c.ExecutionCount) != "null" {
			shown.ExecutionCount = c.ExecutionCount
			head += fmt.Sprintf(" execution_count=%q", string(c.ExecutionCount))
		}
	}
	pieces := []piece{{text: head + ">\n" + ended(c.Source.text) + "</cell>\n"}}
	for _, o := range c.Outputs {
		text, image := o.show(images < maxOutputImages)
		out := shownOutput{Type: o.Type, Text: text, Image: image}
		if text != "" {
			pieces = append(pieces, piece{text: "<output>\n" + ended(text) + "</output>\n"})
		}
		if image != nil {
			images++
			pieces = append(pieces, piece{image: image})
		}
		shown.Outputs = append(shown.Outputs, out)
	}
	return shown, append(pieces, piece{text: "\n"})
}

func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// escapes are the sequences that colour a terminal.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// show returns the text and the image of an output. Where it has neither, the
// text says what it has.
func (o cellOutput) show(withImage bool) (text string, image *outputImage) {
	switch o.Type {
	case "stream":
		text = o.Text.text
	case "error":
		text = o.Name + ": " + o.Value
		if len(o.Traceback) > 0 {
			text = strings.Join(o.Traceback, "\n")
		}
	default:
		return o.showData(withImage)
	}
	return shorten(escapes.ReplaceAllString(text, "")), nil
}

func (o cellOutput) showData(withImage bool) (text string, image *outputImage) {
	var notes []string
	for _, typ := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		var encoded textLines
		if json.Unmarshal(o.Data[typ], &encoded) != nil {
			continue
		}
		if !withImage {
			notes = append(notes, fmt.Sprintf("[an image, %s, which is not shown: there are too many]", typ))
			break
		}
		p, err := imageOf(encoded.text)
		if err != nil {
			notes = append(notes, fmt.Sprintf("[an image, %s, which %v]", typ, err))
			break
		}
		image = &outputImage{p.base64(), p.typ}
		break
	}
	for _, typ := range []string{"text/plain", "text/markdown", "text/latex", "text/html", "application/json"} {
		raw, ok := o.Data[typ]
		if !ok {
			continue
		}
		var t textLines
		if json.Unmarshal(raw, &t) != nil {
			t.text = string(raw)
		}
		notes = append(notes, shorten(escapes.ReplaceAllString(t.text, "")))
		break
	}
	if len(notes) == 0 && image == nil && len(o.Data) > 0 {
		notes = append(notes, "[an output of type "+strings.Join(slices.Sorted(maps.Keys(o.Data)), ", ")+"]")
	}
	return strings.Join(notes, "\n"), image
}

// imageOf decodes an image of an output and makes it one that the API takes.
func imageOf(encoded string) (*picture, error) {
	encoded = strings.Join(strings.Fields(encoded), "")
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("is not valid base64: %w", err)
	}
	typ := apiblock.ImageType(data)
	if typ == "" {
		return nil, fmt.Errorf("is of no known kind")
	}
	return fitImage(typ, data)
}

// shorten cuts the middle out of a long text.
func shorten(text string) string {
	if len(text) <= maxOutputText {
		return text
	}
	head := cutUTF8([]byte(text), maxOutputText/2)
	tail := text[len(text)-maxOutputText/2:]
	for len(tail) > 0 && tail[0]&0xC0 == 0x80 { // begins within a character
		tail = tail[1:]
	}
	return fmt.Sprintf("%s\n... [%d bytes left out] ...\n%s", head, len(text)-len(head)-len(tail), tail)
}

// result is the output of T-41 for a notebook.
func (v *notebookView) result(path string) (*tool.Result, error) {
	type file struct {
		FilePath string      `json:"filePath"`
		Cells    []shownCell `json:"cells"`
	}
	structured, err := message.Encode(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"notebook", file{path, v.cells}})
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: v.content, Structured: structured}, nil
}
