package builtin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/pdf"
)

// samplePDF makes a PDF of n pages.
func samplePDF(n int) string {
	kids, pages := "", ""
	for i := range n {
		kids += fmt.Sprintf("%d 0 R ", i+3)
		pages += fmt.Sprintf("%d 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d 100]>>\nendobj\n", i+3, i+1)
	}
	return fmt.Sprintf("%%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Count %d/Kids[%s]>>\nendobj\n%strailer\n<</Root 1 0 R>>\n%%%%EOF\n", n, kids, pages)
}

// TestReadPDF also shows that pages come as a PDF of their own. So of the types
// of output that T-41 lists, "parts", for pages as files in a directory, is one
// that Read never gives.
func TestReadPDF(t *testing.T) {
	conform.Covers(t, "T-40", "T-41", "T-54")
	s := newSession(t)
	for _, test := range []struct {
		pages any // in the file
		ask   any
		want  int    // pages shown; 0: refused
		text  string // of the note, or of the error
	}{
		{1, nil, 1, ""},
		{10, nil, 10, ""},
		{11, nil, 0, `11 pages; at most 10 are shown at once without pages: set pages to a range of up to 20, such as "1-11"`},
		{11, "1-11", 11, ""},
		{40, "3", 1, "Pages 3 to 3 of 40"},
		{40, "3-7", 5, "Pages 3 to 7 of 40"},
		{40, " 21 - 40 ", 20, "Pages 21 to 40 of 40"},
		{40, "39-", 2, "Pages 39 to 40 of 40"},
		{40, "39-99", 2, "Pages 39 to 40 of 40"},
		{40, "1-21", 0, "21 pages; at most 20"},
		{40, "1-", 0, "40 pages; at most 20"},
		{40, "41", 0, "only 40 pages"},
		{40, "0-3", 0, "rising range from 1"},
		{40, "5-3", 0, "rising range from 1"},
		{40, "a-b", 0, `such as "1-5"`},
		{40, "1,3", 0, `such as "1-5"`},
		{"%PDF-1.7\nnothing", nil, 0, "no pages were found"},
		{"%PDF-", nil, 0, "no pages were found"},
		{strings.Replace(samplePDF(3), "/Root", "/Encrypt 9 0 R/Root", 1), nil, 0, "encrypted"},
	} {
		content, isText := test.pages.(string)
		if !isText {
			content = samplePDF(test.pages.(int))
		}
		path := s.write("f.dat", content) // by its bytes, not by its name
		input := in{"file_path": path}
		if test.ask != nil {
			input["pages"] = test.ask
		}
		if test.want == 0 {
			s.fails("Read", input, test.text)
			continue
		}
		r, err := s.call("Read", input)
		if err != nil {
			t.Errorf("%v of %v: %v", test.ask, test.pages, err)
			continue
		}
		var block struct {
			Type   string
			Source struct {
				Type, Data string
				MediaType  string `json:"media_type"`
			}
		}
		if err := json.Unmarshal(r.Content[0].Raw(), &block); err != nil || block.Type != "document" || block.Source.Type != "base64" || block.Source.MediaType != "application/pdf" {
			t.Errorf("block %.200s", r.Content[0].Raw())
		}
		data, err := base64.StdEncoding.DecodeString(block.Source.Data)
		if err != nil {
			t.Fatal(err)
		}
		if doc, err := pdf.Parse(data); err != nil || doc.Pages() != test.want {
			t.Errorf("%v of %v: %v", test.ask, test.pages, err)
		}
		if note := ""; test.text != "" {
			if len(r.Content) > 1 {
				note = r.Content[1].Text()
			}
			if !strings.Contains(note, test.text) {
				t.Errorf("%v: note %q", test.ask, note)
			}
		} else if len(r.Content) != 1 || string(data) != content {
			t.Errorf("%v: %d blocks, %d bytes of %d", test.ask, len(r.Content), len(data), len(content))
		}
		want := fmt.Sprintf(`{"type":"pdf","file":{"filePath":%s,"base64":%q,"originalSize":%d}}`, quote(path), block.Source.Data, len(content))
		if string(r.Structured) != want {
			t.Errorf("output %.300s", r.Structured)
		}
	}
	path := s.write("f.pdf", samplePDF(2))
	s.fails("Read", in{"file_path": path, "limit": 3}, "PDF", "pages")
	s.fails("Edit", edit(path, "Type", "x"), "has not been read")
	big := s.write("big.pdf", samplePDF(2)+strings.Repeat("%\n", maxPDFBytes/2))
	s.fails("Read", in{"file_path": big}, "too large", "pdftotext")
	if r, err := s.call("Read", in{"file_path": big, "pages": "2"}); err != nil || len(r.Content) != 2 {
		t.Errorf("one page of a large one: %v", err)
	}
	if err := os.Truncate(big, maxPDFFile+1); err == nil {
		s.fails("Read", in{"file_path": big}, "more than", "pdftotext")
	}
}
