package builtin

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/pdf"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

const (
	maxPDFFile = 100 << 20 // bytes that are taken into memory
	// maxPDFBytes is what one Read may show: a request of the API has room for
	// 32 MB, and the document stays in the history.
	maxPDFBytes   = 10 << 20
	maxWholePages = 10 // of a PDF that is shown whole (T-54)
	maxSomePages  = 20 // in one call with pages
)

func isPDF(head []byte) bool { return bytes.HasPrefix(head, []byte("%PDF-")) }

// pdf shows a PDF as a document, whole or the pages that were asked for as a
// PDF of their own (T-54). One that cannot be parsed is an error: the API would
// refuse it, and every later request with it.
func (r *reading) pdf() (*tool.Result, error) {
	if r.in.Offset > 0 || r.in.Limit > 0 {
		return nil, fmt.Errorf("offset, limit: %s is a PDF, which has no lines; choose pages with pages", r.path)
	}
	data, err := io.ReadAll(io.LimitReader(r.body, maxPDFFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", r.path, err)
	case len(data) > maxPDFFile:
		return nil, fmt.Errorf("%s is a PDF of more than %d bytes, too large to be read; extract its text with a shell command such as pdftotext", r.path, maxPDFFile)
	}
	doc, err := pdf.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is a PDF that cannot be shown: %w; try a shell command such as pdftotext or qpdf", r.path, err)
	}
	shown, note := data, ""
	switch n := doc.Pages(); {
	case r.in.Pages != "":
		first, last, err := pageRange(r.in.Pages, n)
		if err != nil {
			return nil, fmt.Errorf("pages: %q: %w", r.in.Pages, err)
		}
		if first > 1 || last < n {
			if shown, err = doc.Subset(first, last); err != nil {
				return nil, fmt.Errorf("%s is a PDF whose pages cannot be taken out: %w", r.path, err)
			}
			note = fmt.Sprintf("[Pages %d to %d of %d of %s.]", first, last, n, r.path)
		}
	case n > maxWholePages:
		return nil, fmt.Errorf("%s is a PDF of %d pages; at most %d are shown at once without pages: set pages to a range of up to %d, such as \"1-%d\"", r.path, n, maxWholePages, maxSomePages, min(n, maxSomePages))
	}
	if len(shown) > maxPDFBytes {
		return nil, fmt.Errorf("%s: %d bytes of PDF are too large to be shown; choose fewer pages with pages, or extract its text with a shell command such as pdftotext", r.path, len(shown))
	}
	storeRecord(r.call.Env.State, r.target, recordOf(r.info, data))
	return pdfResult(r.path, shown, len(data), note)
}

// pageRange reads "3", "3-7" or "3-" for a document of n pages.
func pageRange(text string, n int) (first, last int, err error) {
	from, to, isRange := strings.Cut(strings.TrimSpace(text), "-")
	if first, err = strconv.Atoi(strings.TrimSpace(from)); err == nil {
		switch to = strings.TrimSpace(to); {
		case !isRange:
			last = first
		case to == "":
			last = n
		default:
			last, err = strconv.Atoi(to)
		}
	}
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("is not a page or a range of pages such as \"1-5\"")
	case first < 1 || last < first:
		return 0, 0, fmt.Errorf("is not a rising range from 1")
	case first > n:
		return 0, 0, fmt.Errorf("the document has only %s", plural(int64(n), "page"))
	}
	last = min(last, n)
	if last-first >= maxSomePages {
		return 0, 0, fmt.Errorf("are %d pages; at most %d can be read at once", last-first+1, maxSomePages)
	}
	return first, last, nil
}

// pdfResult is the output of T-41 for a PDF.
func pdfResult(path string, data []byte, originalSize int, note string) (*tool.Result, error) {
	encoded := base64.StdEncoding.EncodeToString(data)
	type source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	raw, err := message.Encode(struct {
		Type   string `json:"type"`
		Source source `json:"source"`
	}{message.TypeDocument, source{"base64", "application/pdf", encoded}})
	if err != nil {
		return nil, err
	}
	document, err := message.ParseBlock(raw)
	if err != nil {
		return nil, err
	}
	type file struct {
		FilePath     string `json:"filePath"`
		Base64       string `json:"base64"`
		OriginalSize int    `json:"originalSize"`
	}
	structured, err := message.Encode(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"pdf", file{path, encoded, originalSize}})
	if err != nil {
		return nil, err
	}
	content := []message.Block{document}
	if note != "" {
		content = append(content, message.NewText(note))
	}
	return &tool.Result{Content: content, Structured: structured}, nil
}
