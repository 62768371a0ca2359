package builtin

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestReadNotebook(t *testing.T) {
	conform.Covers(t, "T-55", "T-41")
	s := newSession(t)
	path := s.write("n.ipynb", sampleNotebook)
	r, err := s.call("Read", in{"file_path": path})
	if err != nil {
		t.Fatal(err)
	}
	want := `<cell id="intro" type="markdown">
# Title
text <b>
</cell>

<cell id="calc" type="code" execution_count="3">
print('hello')
42
</cell>
<output>
hello
red
</output>
<output>
42
</output>
<output>
Traceback
ValueError: bad
</output>`
	if got := r.Content[0].Text(); got != want || len(r.Content) != 1 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	wantOut := `{"type":"notebook","file":{"filePath":` + quote(path) + `,"cells":[{"cellType":"markdown","source":"# Title\ntext <b>","cell_id":"intro"},` +
		`{"cellType":"code","source":"print('hello')\n42","cell_id":"calc","language":"python","execution_count":3,"outputs":[{"output_type":"stream","text":"hello\nred\n"},` +
		`{"output_type":"execute_result","text":"42"},{"output_type":"error","text":"Traceback\nValueError: bad"}]}]}}`
	if string(r.Structured) != wantOut {
		t.Errorf("output\n%s\nwant\n%s", r.Structured, wantOut)
	}
	if text := s.text("Read", in{"file_path": path}); !strings.Contains(text, "has not changed") {
		t.Errorf("again: %s", text)
	}
	if text := s.text("Read", in{"file_path": path, "offset": 2, "limit": 1}); strings.Contains(text, "Title") || !strings.Contains(text, "print") {
		t.Errorf("the second cell: %s", text)
	}
	if text := s.text("Read", in{"file_path": path, "offset": 9}); !strings.Contains(text, "has 2 cells; offset 9") {
		t.Errorf("past the end: %s", text)
	}
	if text := s.text("Read", in{"file_path": s.write("empty.ipynb", "")}); !strings.Contains(text, "exists and is empty") {
		t.Errorf("empty: %s", text)
	}
	if text := s.text("Read", in{"file_path": s.write("none.ipynb", `{"nbformat":4,"cells":[]}`)}); !strings.Contains(text, "has no cells") {
		t.Errorf("no cells: %s", text)
	}
	r, err = s.call("Read", in{"file_path": s.write("conflict.ipynb", "<<<<<<< HEAD\n"+sampleNotebook)})
	if err != nil || !strings.HasPrefix(r.Content[0].Text(), "     1\t<<<<<<< HEAD") || !strings.Contains(r.Content[1].Text(), "not a valid notebook") {
		t.Errorf("a broken one: %v, %v", r, err)
	}
	huge := s.write("huge.ipynb", "{}")
	if err := os.Truncate(huge, maxNotebook+1); err == nil {
		s.fails("Read", in{"file_path": huge}, huge, "jq")
	}
}

func TestReadNotebookImages(t *testing.T) {
	conform.Covers(t, "T-55", "T-53")
	s := newSession(t)
	picture := base64.StdEncoding.EncodeToString(pngOf(t, noise(30, 20)))
	wide := base64.StdEncoding.EncodeToString(pngOf(t, noise(2400, 10)))
	output := func(data string) string {
		return `{"output_type":"display_data","metadata":{},"data":` + data + `}`
	}
	path := s.write("n.ipynb", `{"nbformat":4,"nbformat_minor":4,"cells":[{"cell_type":"code","source":"plot()","outputs":[`+strings.Join([]string{
		output(`{"image/png":` + quote(picture[:40]+"\n"+picture[40:]+"\n") + `,"text/plain":["<Figure>"]}`),
		output(`{"image/png":` + quote(wide) + `}`),
		output(`{"image/png":"AAAA"}`), output(`{"image/svg+xml":"<svg/>"}`), output(`{"text/html":["<p>","x"],"text/plain":"` + strings.Repeat("é", 20_000) + `"}`),
	}, ",")+`]}]}`)
	r, err := s.call("Read", in{"file_path": path})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	text := ""
	for _, b := range r.Content {
		kinds = append(kinds, b.Type())
		text += b.Text()
	}
	if got := strings.Join(kinds, " "); got != "text image image text" {
		t.Errorf("blocks %s", got)
	}
	for _, part := range []string{`<cell id="cell-0" type="code">`, "<Figure>", "which is of no known kind", "[an output of type image/svg+xml]", "bytes left out] ..."} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in %.3000s", part, text)
		}
	}
	if strings.ContainsRune(text, '\uFFFD') || len(text) > 12_000 || !strings.Contains(string(r.Structured), `"image":{"image_data":"`+picture[:30]) {
		t.Errorf("%d bytes of text", len(text))
	}

	var cells []string
	for range maxOutputImages + 5 {
		cells = append(cells, `{"cell_type":"code","source":"","outputs":[`+output(`{"image/png":`+quote(picture)+`}`)+`]}`)
	}
	r, err = s.call("Read", in{"file_path": s.write("many.ipynb", `{"nbformat":4,"cells":[`+strings.Join(cells, ",")+`]}`)})
	if err != nil {
		t.Fatal(err)
	}
	images := 0
	for _, b := range r.Content {
		if b.Type() == "image" {
			images++
		}
	}
	if last := r.Content[len(r.Content)-1].Text(); images != maxOutputImages || strings.Count(last, "not shown: there are too many") != 5 {
		t.Errorf("%d images, %s", images, last)
	}
}

func TestReadLargeNotebook(t *testing.T) {
	conform.Covers(t, "T-55", "T-44", "T-45", "T-63")
	s := newSession(t)
	var cells []string
	for i := range 50 {
		cells = append(cells, fmt.Sprintf(`{"cell_type":"markdown","source":"cell %d %s"}`, i+1, strings.Repeat("x", 5000)))
	}
	path := s.write("n.ipynb", `{"nbformat":4,"cells":[`+strings.Join(cells, ",")+`]}`)
	text := s.text("Read", in{"file_path": path})
	if !strings.Contains(text, "PARTIAL view") || !strings.Contains(text, "cells 1 to 19 of 50") || !strings.Contains(text, "offset 20") || len(text) > 101_000 {
		t.Errorf("%d bytes: %s", len(text), text[len(text)-300:])
	}
	s.fails("Write", file(path, "{}"), "PARTIAL view")
	s.fails("Read", in{"file_path": path, "limit": 30}, path, "smaller limit", "jq")
	if text := s.text("Read", in{"file_path": path, "offset": 20, "limit": 19}); !strings.Contains(text, "cell 20 ") {
		t.Errorf("got %.100s", text)
	}
	one := s.write("one.ipynb", `{"nbformat":4,"cells":[{"cell_type":"raw","source":"`+strings.Repeat("x", 200_000)+`"}]}`)
	if text := s.text("Read", in{"file_path": one}); !strings.Contains(text, "PARTIAL view") || !strings.Contains(text, "jq") {
		t.Errorf("got %.100s", text)
	}
}
