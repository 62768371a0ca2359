package turnwright_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // what Read may make of a heavy image
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/turnwright/turnwright"
	"github.com/turnwright/turnwright/agenttest"
	"github.com/turnwright/turnwright/internal/conform"
)

// TestContractParallelEdits changes one file several times in one response, by
// its name and through a link: every change is there, in the order of the
// calls, also where a change builds on the one before.
func TestContractParallelEdits(t *testing.T) {
	conform.Covers(t, "B-089", "T-32", "T-79", "L-131", "L-133")
	var numbers strings.Builder
	for i := range 100 {
		fmt.Fprintf(&numbers, "%d\n", i+1)
	}
	edit := func(path, old, new string) agenttest.Step {
		return agenttest.Call("Edit", fmt.Sprintf(`{"file_path":%q,"old_string":%q,"new_string":%q}`, path, old, new))
	}
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		srv := agenttest.NewServer(t, agenttest.Script(
			agenttest.Call("Read", `{"file_path":"f.txt"}`),
			agenttest.Blocks(
				edit("f.txt", "\n50\n", "\nFIFTY\n"), edit("link", "\n75\n", "\nSEVENTYFIVE\n"), edit("f.txt", "FIFTY", "five-o"),
				edit("./f.txt", "99", "ninety-nine"), edit("link", "five-o", "50!"), edit("f.txt", "gone", "x"), edit("f.txt", "\n1\n", "\none\n"),
				agenttest.Call("Write", `{"file_path":"new.txt","content":"a"}`), edit("new.txt", "a", "b"),
				edit("f.txt", "50!", "end"),
			),
			agenttest.Text("done"),
		))
		o := base(t, srv)
		file := filepath.Join(o.CWD, "f.txt")
		if err := os.WriteFile(file, []byte("0\n"+numbers.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("f.txt", filepath.Join(o.CWD, "link")); err != nil {
			t.Skip("no symbolic links here:", err)
		}
		o.AllowedTools = []string{"Edit", "Write"}
		if out := query(t, "go", o); out.err != nil {
			t.Fatal(out.err)
		}
		for i, r := range srv.Last().LastToolResults() {
			if r.IsError != (i == 5) {
				t.Errorf("call %d: %+v", i, r)
			}
		}
		want := "0\n" + strings.NewReplacer("\n50\n", "\nend\n", "\n75\n", "\nSEVENTYFIVE\n", "\n99\n", "\nninety-nine\n").Replace(numbers.String())
		want = strings.Replace(want, "\n1\n", "\none\n", 1)
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Fatalf("an edit is lost or out of order:\n%s", got)
		}
		if got, err := os.ReadFile(filepath.Join(o.CWD, "new.txt")); err != nil || string(got) != "b" {
			t.Fatalf("new.txt is %q, %v", got, err)
		}
	}
}

// TestContractDocuments reads a notebook with a picture and a PDF over a strict
// server: what Read returns is what the API takes.
func TestContractDocuments(t *testing.T) {
	conform.Covers(t, "T-52", "T-54", "T-55", "B-110")
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Blocks(agenttest.Call("Read", `{"file_path":"n.ipynb"}`), agenttest.Call("Read", `{"file_path":"bad.pdf"}`)),
		agenttest.Call("NotebookEdit", `{"notebook_path":"n.ipynb","cell_id":"cell-0","new_source":"y"}`),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	for name, text := range map[string]string{
		"n.ipynb": `{"nbformat":4,"cells":[{"cell_type":"code","source":"x","outputs":[{"output_type":"display_data","data":{"image/png":"` + pixel + `"}}]}]}`,
		"bad.pdf": "%PDF-1.7\nnothing in here",
	} {
		if err := os.WriteFile(filepath.Join(o.CWD, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o.AllowedTools = []string{"NotebookEdit"}
	out := query(t, "go", o)
	if out.err != nil || out.shape() == "" {
		t.Fatal(out.err)
	}
	text, err := os.ReadFile(filepath.Join(o.CWD, "n.ipynb"))
	if err != nil || string(text) != `{"nbformat":4,"cells":[{"cell_type":"code","source":"y","outputs":[],"execution_count":null}]}` {
		t.Errorf("got %s, %v", text, err)
	}
	results := srv.Requests()[1].LastToolResults()
	if len(results) != 2 || results[0].IsError || !results[1].IsError {
		t.Errorf("results %+v", results)
	}
}

// TestContractBadImages reads what is no image, or one that the API would
// refuse, and goes on: each fails alone, or is made to fit, and nothing that is
// too large gets into the history. The type comes from the bytes, so text named
// .png is text and an empty .jpg an empty file.
func TestContractBadImages(t *testing.T) {
	conform.Covers(t, "B-110", "T-52", "T-53")
	encode := func(m image.Image, level png.CompressionLevel) []byte {
		var b bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: level}).Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	heavy := encode(image.NewRGBA(image.Rect(0, 0, 1400, 1200)), png.NoCompression)
	if len(heavy) < 6<<20 {
		t.Fatalf("%d bytes", len(heavy))
	}
	wide := encode(image.NewGray(image.Rect(0, 0, 9000, 10)), png.DefaultCompression)
	files := []struct {
		name    string
		data    []byte
		isError bool
		image   bool
		text    string
	}{
		{"wide.png", wide, false, true, "9000 by 10"},
		{"heavy.png", heavy, false, true, ""},
		{"text.png", []byte("no image\n"), false, false, "no image"},
		{"empty.jpg", nil, false, false, "is empty"},
		{"torn.png", wide[:len(wide)-20], true, false, "damaged"},
		{"notes.txt", []byte("fine\n"), false, false, "fine"},
	}
	var steps []agenttest.Step
	for _, f := range files {
		steps = append(steps, agenttest.Call("Read", fmt.Sprintf(`{"file_path":%q}`, f.name)))
	}
	srv := agenttest.NewServer(t, agenttest.Script(append(steps, agenttest.Text("done"))...))
	o := base(t, srv)
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(o.CWD, f.name), f.data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := query(t, "go", o)
	if out.err != nil || out.result.Subtype != turnwright.Success {
		t.Fatalf("%+v, %v", out.result, out.err)
	}
	for i, f := range files {
		r := srv.Requests()[i+1].LastToolResults()[0]
		images := 0
		for _, b := range r.Block.Content {
			if b.Type != "image" {
				continue
			}
			images++
			var sent struct{ Source struct{ Data []byte } }
			if err := json.Unmarshal(b.Raw, &sent); err != nil {
				t.Fatal(err)
			}
			data := sent.Source.Data
			if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width > 2000 || c.Height > 2000 || len(data) > 5<<20/4*3 {
				t.Errorf("%s is sent with %d by %d pixels, %d bytes, %v", f.name, c.Width, c.Height, len(data), err)
			}
		}
		if r.IsError != f.isError || (images == 1) != f.image || !strings.Contains(r.Text, f.text) {
			t.Errorf("%s: error %v, %d images, %q", f.name, r.IsError, images, r.Text)
		}
	}
	if n := len(srv.Last().Body); n > 5<<20 {
		t.Errorf("the last request has %d bytes", n)
	}
}

// TestReadDenyText: an edit that a Read deny rule refuses is told in the words
// of the contract, also for a file that does not exist yet.
func TestReadDenyText(t *testing.T) {
	conform.Covers(t, "T-65", "T-76", "P-86")
	srv := agenttest.NewServer(t, agenttest.Script(
		agenttest.Call("Edit", `{"file_path":"secret/a","old_string":"a","new_string":"b"}`),
		agenttest.Call("Write", `{"file_path":"secret/new","content":"b"}`),
		agenttest.Text("done"),
	))
	o := base(t, srv)
	o.AllowedTools, o.DisallowedTools = []string{"Edit", "Write"}, []string{"Read(secret/**)"}
	out := query(t, "go", o)
	var got []string
	for _, m := range out.messages {
		if u, ok := m.(*turnwright.UserMessage); ok {
			got = append(got, u.ToolResults()[0].Content.Text())
		}
	}
	const text = "File is covered by a Read deny rule in your permission settings and cannot be "
	if len(got) != 2 || got[0] != text+"edited." || got[1] != text+"written." {
		t.Errorf("got %q", got)
	}
}
