package pdf

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

// sample makes a PDF of n pages in two branches; packed puts what can be into
// an object stream, as newer programs do.
func sample(n int, packed bool) []byte {
	var objects []string // objects[i] is object i+1
	add := func(text string) int {
		objects = append(objects, text)
		return len(objects)
	}
	add("<< /Type /Catalog /Pages 2 0 R >>")
	add("") // the tree
	add("") // its first branch, which has what the pages inherit
	font := add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	var branch, top []string
	for i := range n {
		content := fmt.Sprintf("BT /F1 24 Tf 72 700 Td (page %d \\( endobj 9 0 obj) Tj ET", i+1)
		length := add(fmt.Sprint(len(content)))
		stream := add(fmt.Sprintf("<< /Length %d 0 R >>\nstream\n%s\nendstream", length, content))
		parent, own := 3, ""
		if i%2 == 1 {
			parent, own = 2, fmt.Sprintf("/MediaBox [0 0 612 792] /Resources << /Font << /F1 %d 0 R >> >>", font)
		}
		p := add(fmt.Sprintf("<< /Type /Page /Parent %d 0 R /Contents %d 0 R %s /Odd#20Key (a\\)b) /Next %d 0 R >>", parent, stream, own, stream+4))
		if parent == 3 {
			branch = append(branch, fmt.Sprintf("%d 0 R", p))
		} else {
			top = append(top, fmt.Sprintf("%d 0 R", p))
		}
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [ 3 0 R %s ] >>", n, strings.Join(top, " "))
	objects[2] = fmt.Sprintf("<< /Type /Pages /Parent 2 0 R /Count %d /Kids [%s] /MediaBox [0 0 300 400] /Resources << /Font << /F1 %d 0 R >> >> >>", len(branch), strings.Join(branch, " "), font)

	var out bytes.Buffer
	out.WriteString("%PDF-1.5\n%\xE2\xE3\xCF\xD3\n")
	var index, body bytes.Buffer
	for i, text := range objects {
		if packed && !strings.Contains(text, "stream") {
			fmt.Fprintf(&index, "%d %d ", i+1, body.Len())
			body.WriteString(text + " ")
			continue
		}
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, text)
	}
	if packed {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, _ = w.Write(append(index.Bytes(), body.Bytes()...))
		_ = w.Close()
		fmt.Fprintf(&out, "%d 0 obj\n<</Type/ObjStm/N %d/First %d/Filter[/FlateDecode]/Length %d>>stream\r\n%s\r\nendstream\nendobj\n",
			len(objects)+1, strings.Count(index.String(), " ")/2, index.Len(), z.Len(), z.Bytes())
		fmt.Fprintf(&out, "%d 0 obj\n<</Type/XRef/Size %d/Root 1 0 R/W[1 2 1]/Length 0>>\nstream\n\nendstream\nendobj\n", len(objects)+2, len(objects)+3)
	} else {
		fmt.Fprintf(&out, "xref\n0 0\ntrailer\n<< /Size %d /Root 1 0 R >>\n", len(objects)+1)
	}
	out.WriteString("startxref\n0\n%%EOF\n")
	return out.Bytes()
}

func TestSubset(t *testing.T) {
	conform.Covers(t, "T-54")
	for _, packed := range []bool{false, true} {
		for _, n := range []int{1, 2, 7, 30} {
			d, err := Parse(sample(n, packed))
			if err != nil || d.Pages() != n {
				t.Fatalf("packed %v: %d pages of %d, %v", packed, d.Pages(), n, err)
			}
			for first := 1; first <= n; first += 3 {
				last := min(n, first+4)
				data, err := d.Subset(first, last)
				if err != nil {
					t.Fatal(err)
				}
				sub, err := Parse(data)
				if err != nil || sub.Pages() != last-first+1 {
					t.Fatalf("packed %v, pages %d to %d: %v\n%s", packed, first, last, err, data)
				}
				// The branch comes first in the tree: pages 1, 3, 5 …, then 2, 4 …
				for i, p := range sub.pages {
					at := first + i
					number, box := 2*at-1, "[0 0 300 400]"
					if odd := (n + 1) / 2; at > odd {
						number, box = 2*(at-odd), "[0 0 612 792]"
					}
					node := sub.objects[p.num].val.(dict)
					content := sub.objects[node.get("Contents").(ref).num]
					if !bytes.Contains(content.stream, fmt.Appendf(nil, "page %d ", number)) {
						t.Errorf("page %d has %q, want page %d", at, content.stream, number)
					}
					if i := node.index("MediaBox"); string(node[i].text) != box {
						t.Errorf("page %d has the box %s", at, node[i].text)
					}
					resources := node.get("Resources").(dict).get("Font").(dict).get("F1")
					if sub.resolve(resources) == nil || node.get("Odd Key") == nil {
						t.Errorf("page %d lost its resources or a key: %v", at, node)
					}
				}
				checkOffsets(t, data)
			}
		}
	}
	d, err := Parse(sample(3, false))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int{{0, 1}, {2, 1}, {1, 4}, {4, 4}} {
		if _, err := d.Subset(r[0], r[1]); err == nil {
			t.Errorf("pages %v were copied", r)
		}
	}
	// Only what the page needs is copied.
	d, err = Parse(sample(100, false))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := d.Subset(50, 50); err != nil || len(data) > 1500 {
		t.Errorf("%d bytes for one page, %v", len(data), err)
	}
}

// checkOffsets reads the table of offsets as other programs do.
func checkOffsets(t *testing.T, data []byte) {
	t.Helper()
	i := bytes.LastIndex(data, []byte("startxref\n"))
	at := 0
	if _, err := fmt.Sscanf(string(data[i:]), "startxref\n%d", &at); err != nil || !bytes.HasPrefix(data[at:], []byte("xref\n")) {
		t.Fatalf("startxref %d, %v", at, err)
	}
	lines := strings.Split(string(data[at:]), "\n")
	for i := 3; lines[i] != "trailer"; i += 2 {
		var num, offset, gen int
		if _, err := fmt.Sscanf(lines[i]+" "+lines[i+1], "%d 1 %d %d n", &num, &offset, &gen); err != nil || len(lines[i+1]) != 19 {
			t.Fatalf("%q %q: %v", lines[i], lines[i+1], err)
		}
		if !bytes.HasPrefix(data[offset:], fmt.Appendf(nil, "%d %d obj", num, gen)) {
			t.Fatalf("object %d is not at %d", num, offset)
		}
	}
}

func TestParse(t *testing.T) {
	conform.Covers(t, "T-54")
	plain := string(sample(3, false))
	for _, test := range []struct {
		name, data string
		pages      int
		err        error
	}{
		{"later objects count", plain + "2 0 obj\n<</Type/Pages/Count 1/Kids[3 0 R]>>\nendobj\ntrailer\n<</Root 1 0 R>>\n", 2, nil},
		{"no trailer", strings.Replace(plain, "trailer", "failer", 1), 3, nil},
		{"wrong length", strings.Replace(plain, "5 0 obj\n", "5 0 obj\n9", 1), 3, nil},
		{"cut off", plain[:len(plain)-200], 2, nil},
		{"junk before", "junk\r\n" + plain, 3, nil},
		{"no line ends", strings.ReplaceAll(strings.ReplaceAll(plain, "\nendobj\n", " endobj "), " obj\n", " obj"), 3, nil},
		{"encrypted", strings.Replace(plain, "/Root", "/Encrypt 9 0 R /Root", 1), 0, ErrEncrypted},
		{"a tree that is a circle", "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[2 0 R 3 0 R]>>endobj 3 0 obj<</Kids[2 0 R]>>endobj", 0, ErrNoPages},
		{"a reference to itself", "1 0 obj 1 0 R endobj trailer<</Root 1 0 R>>", 0, ErrNoPages},
		{"nothing", "%PDF-1.7\n", 0, ErrNoPages},
		{"empty", "", 0, ErrNoPages},
		{"lists without end", "1 0 obj " + strings.Repeat("[", 100_000), 0, ErrNoPages},
		{"a string that never ends", strings.Repeat("1 0 obj (", 100_000), 0, errHopeless},
		{"trailers that never end", strings.Repeat("trailer (", 100_000), 0, errHopeless},
	} {
		d, err := Parse([]byte(test.data))
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if err == nil && d.Pages() != test.pages {
			t.Errorf("%s: %d pages, want %d", test.name, d.Pages(), test.pages)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample(3, false), 1)
	f.Add(sample(3, true), 2)
	f.Add([]byte("1 0 obj<</Type/Catalog/Pages 2 0 R>>2 0 obj<</Kids[3 0 R 3 0 R]>>3 0 obj<</Rotate 4 0 R>>4 0 obj<</A#00/B>>"), 0)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		before := bytes.Clone(data)
		d, err := Parse(data)
		if err == nil {
			n := d.Pages()
			first := 1 + max(0, at)%n
			last := min(n, first+2)
			sub, err := d.Subset(first, last)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(sub)
			if err != nil || again.Pages() != last-first+1 {
				t.Fatalf("pages %d to %d of %d: %v\n%q", first, last, n, err, sub)
			}
		}
		if !bytes.Equal(before, data) {
			t.Fatal("the data changed")
		}
	})
}
