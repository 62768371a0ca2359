package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"pgregory.net/rapid"
)

// sampleNotebook is as Jupyter writes it, with keys that no tool knows.
const sampleNotebook = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {"tags": [ "x" ],   "odd": 1.0e2},
   "source": [
    "# Title\n",
    "text <b>"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "calc",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "hello\n",
      "\u001b[31mred\u001b[0m\n"
     ]
    },
    {
     "data": {
      "text/plain": "42"
     },
     "execution_count": 3,
     "metadata": {},
     "output_type": "execute_result"
    },
    {
     "ename": "ValueError",
     "evalue": "bad",
     "output_type": "error",
     "traceback": ["\u001b[0;31mTraceback\u001b[0m", "ValueError: bad"]
    }
   ],
   "source": "print('hello')\n42",
   "unknown_key": [1,  2]
  }
 ],
 "metadata": {
  "language_info": {
   "name": "python"
  },
  "vendor": {"keep":   true}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func nbEdit(path, mode, id, typ, source string) in {
	input := in{"notebook_path": path, "new_source": source}
	for key, value := range map[string]string{"edit_mode": mode, "cell_id": id, "cell_type": typ} {
		if value != "" {
			input[key] = value
		}
	}
	return input
}

func TestNotebookEdit(t *testing.T) {
	conform.Covers(t, "T-85", "T-86")
	const codeKeys = `"execution_count": null,
   "id": %q,
   "metadata": {},
   "outputs": [],
   "source": [
    "a\n",
    "b"
   ]
  }`
	const intro = `  {
   "cell_type": "markdown",
   "id": "intro",`
	calc := sampleNotebook[strings.Index(sampleNotebook, `  {
   "cell_type": "code"`):strings.Index(sampleNotebook, "\n ],\n \"metadata\"")]
	for _, test := range []struct {
		name  string
		input in
		pairs []string // old, new, … in the text; %q in new is the id of the output
	}{
		{"replace", nbEdit("", "", "intro", "", "new\n\"text\""), []string{`"# Title\n",
    "text <b>"`, `"new\n",
    "\"text\""`}},
		{"replace code", nbEdit("", "replace", "calc", "", "1\n2"), []string{
			`"source": "print('hello')\n42"`, `"source": "1\n2"`, `"execution_count": 3,
   "id"`, `"execution_count": null,
   "id"`,
			calc[strings.Index(calc, `"outputs": [`)+11 : strings.Index(calc, `,
   "source"`)], "[]",
		}},
		{"replace by nothing", nbEdit("", "", "intro", "", ""), []string{`[
    "# Title\n",
    "text <b>"
   ]`, "[]"}},
		{"by number", nbEdit("", "", "cell-0", "", "x"), []string{`"# Title\n",
    "text <b>"`, `"x"`}},
		{"to code", nbEdit("", "", "intro", "code", "x"), []string{
			`"cell_type": "markdown"`, `"cell_type": "code"`, `"# Title\n",
    "text <b>"
   ]`, `"x"
   ],
   "execution_count": null,
   "outputs": []`,
		}},
		{"insert after", nbEdit("", "insert", "intro", "code", "a\nb"), []string{"  },\n  {\n   \"cell_type\": \"code\"", "  },\n  {\n   \"cell_type\": \"code\",\n   " + codeKeys + ",\n  {\n   \"cell_type\": \"code\""}},
		{"insert at the end", nbEdit("", "insert", "calc", "markdown", "x"), []string{"\n ],\n \"metadata\"", `,
  {
   "cell_type": "markdown",
   "id": %q,
   "metadata": {},
   "source": [
    "x"
   ]
  }
 ],
 "metadata"`}},
		{"insert at the top", nbEdit("", "insert", "", "code", "a\nb"), []string{intro, "  {\n   \"cell_type\": \"code\",\n   " + codeKeys + ",\n" + intro}},
		{"delete", nbEdit("", "delete", "calc", "", ""), []string{",\n" + calc, ""}},
		{"delete the first", nbEdit("", "delete", "intro", "", ""), []string{sampleNotebook[strings.Index(sampleNotebook, intro):strings.Index(sampleNotebook, calc)], ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, form := range []struct{ before, after string }{{"", ""}, {byteOrderMark, ""}, {"", "\r"}} {
				s := newSession(t)
				as := func(text string) string {
					if form.after != "" {
						text = strings.ReplaceAll(text, "\n", "\r\n")
					}
					return form.before + text
				}
				path := s.write("n.ipynb", as(sampleNotebook))
				test.input["notebook_path"] = path
				r, err := s.call("NotebookEdit", test.input)
				if err != nil {
					t.Fatal(err)
				}
				var out struct {
					CellID string `json:"cell_id"`
				}
				if err := json.Unmarshal(r.Structured, &out); err != nil {
					t.Fatal(err)
				}
				want := sampleNotebook
				for i := 0; i < len(test.pairs); i += 2 {
					by := test.pairs[i+1]
					if strings.Contains(by, "%q") {
						by = fmt.Sprintf(by, out.CellID)
					}
					if strings.Count(want, test.pairs[i]) != 1 {
						t.Fatalf("%q is there %d times", test.pairs[i], strings.Count(want, test.pairs[i]))
					}
					want = strings.Replace(want, test.pairs[i], by, 1)
				}
				if got := s.content("n.ipynb"); got != as(want) {
					t.Errorf("got\n%s\nwant\n%s", got, as(want))
				}
			}
		})
	}
}

func TestNotebookEditOneLine(t *testing.T) {
	conform.Covers(t, "T-86")
	s := newSession(t)
	path := s.write("n.ipynb", `{"nbformat":4,"nbformat_minor":4,"cells":[],"metadata":{"kernelspec":{"language":"julia"}}}`)
	s.text("NotebookEdit", nbEdit(path, "insert", "", "markdown", "one"))
	s.text("NotebookEdit", nbEdit(path, "insert", "cell-0", "code", "two\n"))
	s.text("NotebookEdit", nbEdit(path, "replace", "cell-0", "", "1"))
	want := `{"nbformat":4,"nbformat_minor":4,"cells":[{"cell_type":"markdown","metadata":{},"source":["1"]},` +
		`{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":["two\n"]}],"metadata":{"kernelspec":{"language":"julia"}}}`
	if got := s.content("n.ipynb"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.text("NotebookEdit", nbEdit(path, "replace", "cell-1", "markdown", "x"))
	s.text("NotebookEdit", nbEdit(path, "delete", "cell-0", "", ""))
	s.text("NotebookEdit", nbEdit(path, "delete", "cell-0", "", ""))
	if got := s.content("n.ipynb"); got != `{"nbformat":4,"nbformat_minor":4,"cells":[],"metadata":{"kernelspec":{"language":"julia"}}}` {
		t.Errorf("got\n%s", got)
	}
	path = s.write("m.ipynb", "{\n \"cells\": [],\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}")
	s.text("NotebookEdit", nbEdit(path, "insert", "", "markdown", "x"))
	if got, want := s.content("m.ipynb"), "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \"x\"\n   ]\n  }\n ],\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNotebookEditOutput(t *testing.T) {
	conform.Covers(t, "T-87")
	s := newSession(t)
	path := s.write("n.ipynb", sampleNotebook)
	var out struct {
		NewSource    string  `json:"new_source"`
		OldSource    *string `json:"old_source"`
		CellID       string  `json:"cell_id"`
		CellType     string  `json:"cell_type"`
		Language     string  `json:"language"`
		Mode         string  `json:"edit_mode"`
		Path         string  `json:"notebook_path"`
		OriginalFile string  `json:"original_file"`
		UpdatedFile  string  `json:"updated_file"`
	}
	r, err := s.call("NotebookEdit", nbEdit("n.ipynb", "", "intro", "", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		t.Fatal(err)
	}
	if out.NewSource != "x" || out.OldSource == nil || *out.OldSource != "# Title\ntext <b>" || out.CellID != "intro" || out.CellType != "markdown" ||
		out.Language != "python" || out.Mode != "replace" || out.Path != path || out.OriginalFile != sampleNotebook || out.UpdatedFile != s.content("n.ipynb") {
		t.Errorf("output %s", r.Structured)
	}
}

func TestNotebookEditRefuses(t *testing.T) {
	conform.Covers(t, "T-85", "T-86", "T-88")
	s := newSession(t)
	path := s.write("n.ipynb", sampleNotebook)
	s.fails("NotebookEdit", nbEdit(path, "insert", "", "", "x"), "cell_type: required")
	s.fails("NotebookEdit", nbEdit(path, "", "", "", "x"), "cell_id: required", "replace")
	s.fails("NotebookEdit", nbEdit(path, "delete", "", "", "x"), "cell_id: required", "delete")
	s.fails("NotebookEdit", nbEdit(path, "", "none", "", "x"), path, `"none"`, "intro, calc")
	s.fails("NotebookEdit", nbEdit(path, "", "cell-2", "", "x"), "cell-2")
	s.fails("NotebookEdit", nbEdit(path, "move", "intro", "", "x"), "edit_mode")
	s.fails("NotebookEdit", nbEdit(path, "", "intro", "raw", "x"), "cell_type")
	s.fails("NotebookEdit", in{"notebook_path": path}, "new_source: required")
	s.fails("NotebookEdit", nbEdit(s.path("none.ipynb"), "", "x", "", "x"), "does not exist", "Write")
	s.fails("NotebookEdit", nbEdit(s.write("f.json", sampleNotebook), "", "intro", "", "x"), "not a notebook", "Edit")
	for name, text := range map[string]string{
		"torn": sampleNotebook[:300], "list": "[]", "null": "null", "old": `{"nbformat":3,"worksheets":[]}`, "none": `{"nbformat":4}`,
		"odd": `{"nbformat":4,"cells":{}}`, "cell": `{"nbformat":4,"cells":[7]}`, "source": `{"nbformat":4,"cells":[{"id":"x","source":7}]}`,
	} {
		bad := s.write(name+".ipynb", text)
		s.fails("NotebookEdit", nbEdit(bad, "", "cell-0", "", "x"), bad)
		if got := s.content(name + ".ipynb"); got != text {
			t.Errorf("%s: refused, but the file is %q", name, got)
		}
	}
	// A Read deny rule is no hindrance; the rules for writing are.
	s.env.ReadDenied = func(string) bool { return true }
	s.text("NotebookEdit", nbEdit(path, "", "intro", "", "x"))
	a, err := NewNotebookEdit().Accesses([]byte(`{"notebook_path":` + quote(path) + `,"new_source":""}`))
	if err != nil || len(a) != 1 || a[0].Kind != "write" || a[0].Target != path {
		t.Errorf("accesses %+v, %v", a, err)
	}
}

// TestNotebookEditRecord keeps what the session knows: a notebook that it has
// read whole may be overwritten after an edit, another one not.
func TestNotebookEditRecord(t *testing.T) {
	conform.Covers(t, "T-63", "T-79")
	s := newSession(t)
	path := s.write("n.ipynb", sampleNotebook)
	s.text("NotebookEdit", nbEdit(path, "", "intro", "", "x"))
	s.fails("Write", file(path, "{}"), "has not been read")
	s.text("Read", in{"file_path": path})
	s.text("NotebookEdit", nbEdit(path, "", "intro", "", "y"))
	s.text("Write", file(path, sampleNotebook))
}

// TestNotebookEditKeeps edits notebooks of any layout: all values that the edit
// does not touch stay, in their order, and so do the bytes around the cell.
func TestNotebookEditKeeps(t *testing.T) {
	conform.Covers(t, "T-85", "T-86")
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\r\n\t"})
		ws := func() string { return space.Draw(t, "space") }
		value := rapid.SampledFrom([]string{`1.50`, `"x, \"{[\\"`, `{ "b":1,"a" : [ ] }`, `[]`, `null`, `"é\u00e9"`, `-0e1`})
		object := func(fields ...string) string {
			for i := range rapid.IntRange(0, 3).Draw(t, "extra") {
				at := rapid.IntRange(0, len(fields)).Draw(t, "at")
				extra := fmt.Sprintf(`"k%d"%s:%s%s`, i, ws(), ws(), value.Draw(t, "value"))
				fields = append(fields[:at:at], append([]string{extra}, fields[at:]...)...)
			}
			text := "{" + ws()
			for i, f := range fields {
				if i > 0 {
					text += ws() + "," + ws()
				}
				text += f
			}
			return text + ws() + "}"
		}
		n := rapid.IntRange(1, 4).Draw(t, "cells")
		list := "["
		for i := range n {
			if i > 0 {
				list += ","
			}
			source := rapid.SampledFrom([]string{`"a\nb"`, `["a\n", "b"]`, `[]`}).Draw(t, "source")
			list += ws() + object(`"cell_type":"`+rapid.SampledFrom([]string{"code", "markdown", "raw"}).Draw(t, "type")+`"`,
				`"source":`+source, fmt.Sprintf(`"id":"c%d"`, i)) + ws()
		}
		text := ws() + object(`"cells":`+list+"]", `"nbformat":4`, `"nbformat_minor":5`) + ws()
		at := rapid.IntRange(0, n-1).Draw(t, "cell")
		input := notebookEditInput{
			NewSource: rapid.SampledFrom([]string{"", "x", "x\ny\n", "\"\\\u2028"}).Draw(t, "new"), CellID: fmt.Sprintf("c%d", at),
			CellType: rapid.SampledFrom([]string{"code", "markdown"}).Draw(t, "to"), Mode: rapid.SampledFrom([]string{"replace", "insert", "delete"}).Draw(t, "mode"),
		}
		before, err := parseNotebook([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		e, err := before.edit(input, "key")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		after, err := parseNotebook(e.data)
		if err != nil {
			t.Fatal(err)
		}
		// Cells beside the edited one have the same bytes.
		shift, edited := 0, at
		switch input.Mode {
		case "insert":
			shift, edited = 1, at+1
		case "delete":
			shift, edited = -1, -1
		}
		if len(after.cells) != n+shift {
			t.Fatalf("%d cells of %d: %s", len(after.cells), n, e.data)
		}
		for i := range n {
			j := i
			if i > at {
				j += shift
			}
			if i == at && input.Mode != "insert" {
				continue
			}
			if a, b := before.cells[i].of(before.text), after.cells[j].of(after.text); !bytes.Equal(a, b) {
				t.Fatalf("cell %d was %s and is %s", i, a, b)
			}
		}
		if head := text[:before.cells[at].from]; input.Mode != "delete" && !strings.HasPrefix(string(e.data), head) {
			t.Fatalf("what is before the cell has changed: %s → %s", text, e.data)
		}
		if tail := text[before.cells[at].to:]; (input.Mode != "delete" || n > 1 && at > 0) && !strings.HasSuffix(string(e.data), tail) {
			t.Fatalf("what is after the cell has changed: %s → %s", text, e.data)
		}
		if edited < 0 {
			return
		}
		c, err := after.cell(edited)
		if err != nil || c.Source.text != input.NewSource || c.Type != input.CellType || c.ID != e.id {
			t.Fatalf("the cell is %+v, %v", c, err)
		}
		if input.Mode == "replace" { // unknown keys keep value and order
			unknown := func(n *notebook) (keys string) {
				list, err := members(n.text, n.cells[at])
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range list {
					if m.key[0] == 'k' {
						keys += string(m.at.of(n.text)) + ";"
					}
				}
				return keys
			}
			if a, b := unknown(before), unknown(after); a != b {
				t.Fatalf("unknown keys %s became %s", a, b)
			}
		}
	})
}

func FuzzNotebook(f *testing.F) {
	f.Add([]byte(sampleNotebook), "intro", "x\n", uint8(0))
	f.Add([]byte(`{"nbformat":4,"cells":[{"cell_type":"code","source":null,"source":"x"}]}`), "cell-0", "", uint8(1))
	f.Add([]byte(`{"nbformat":4,"cells":[ ]}`), "", "é", uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, id, source string, mode uint8) {
		n, err := parseNotebook(data)
		if err != nil {
			return
		}
		if v, err := n.view("n.ipynb", selection{first: 1, budget: 1000}); err == nil {
			if r, err := v.result("n.ipynb"); err != nil || len(r.Content) == 0 || !json.Valid(r.Structured) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		source = strings.ToValidUTF8(source, "?")
		input := notebookEditInput{NewSource: source, CellID: id, CellType: "code", Mode: []string{"replace", "insert", "delete"}[mode%3]}
		if input.check() != nil {
			return
		}
		e, err := n.edit(input, "key")
		if err != nil {
			return
		}
		after, err := parseNotebook(e.data)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(n.cells) + map[string]int{"insert": 1, "delete": -1}[input.Mode]; len(after.cells) != want {
			t.Fatalf("%d cells, want %d: %s", len(after.cells), want, e.data)
		}
	})
}
