package pdf

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Subset returns a PDF of the pages first to last, counted from 1, with all
// that they refer to. What belongs to the document as a whole, such as outline
// and forms, is left out, and links to other pages lead nowhere.
func (d *Document) Subset(first, last int) ([]byte, error) {
	if first < 1 || last < first || last > len(d.pages) {
		return nil, fmt.Errorf("pages %d to %d of %d", first, last, len(d.pages))
	}
	chosen := d.pages[first-1 : last]
	s := subset{d: d, need: map[int]bool{}}
	isPage := map[int]bool{}
	for _, p := range d.pages {
		isPage[p.num] = true
	}
	s.skip = func(num int) bool {
		v, _ := d.resolve(ref{num, 0}).(dict)
		t := v.get("Type")
		return isPage[num] || t == name("Catalog") || t == name("Pages")
	}
	for _, p := range chosen {
		s.page(p)
	}
	catalog, tree := d.last+1, d.last+2

	var out bytes.Buffer
	version := "1.7" // has all that the versions before it have
	if bytes.HasPrefix(d.data, []byte("%PDF-2.0")) {
		version = "2.0"
	}
	out.WriteString("%PDF-" + version + "\n%\xE2\xE3\xCF\xD3\n")
	offsets := map[int]int{}
	begin := func(num, gen int) {
		offsets[num] = out.Len()
		fmt.Fprintf(&out, "%d %d obj\n", num, gen)
	}
	kids := ""
	for _, p := range chosen {
		o := d.objects[p.num]
		if offsets[p.num] == 0 {
			begin(p.num, o.gen)
			out.WriteString("<<")
			node, _ := o.val.(dict)
			have := slices.Clone(node)
			for _, e := range p.inherited {
				if node.index(e.key) < 0 {
					have = append(have, e)
				}
			}
			putMembers(&out, have, "Parent")
			fmt.Fprintf(&out, "/Parent %d 0 R>>\nendobj\n", tree)
		}
		kids += fmt.Sprintf(" %d %d R", p.num, o.gen)
	}
	for _, num := range slices.Sorted(maps.Keys(s.need)) {
		o := d.objects[num]
		begin(num, o.gen)
		if head, ok := o.val.(dict); ok && o.stream != nil {
			out.WriteString("<<")
			putMembers(&out, head, "Length")
			fmt.Fprintf(&out, "/Length %d>>\nstream\n", len(o.stream))
			out.Write(o.stream)
			out.WriteString("\nendstream")
		} else {
			out.Write(o.text)
		}
		out.WriteString("\nendobj\n")
	}
	begin(catalog, 0)
	fmt.Fprintf(&out, "<</Type/Catalog/Pages %d 0 R>>\nendobj\n", tree)
	begin(tree, 0)
	fmt.Fprintf(&out, "<</Type/Pages/Count %d/Kids[%s]>>\nendobj\n", len(chosen), kids)

	table := out.Len()
	out.WriteString("xref\n0 1\n0000000000 65535 f \n")
	for _, num := range slices.Sorted(maps.Keys(offsets)) {
		gen := 0
		if o := d.objects[num]; o != nil {
			gen = o.gen
		}
		fmt.Fprintf(&out, "%d 1\n%010d %05d n \n", num, offsets[num], gen)
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n", tree+1, catalog, table)
	return out.Bytes(), nil
}

// putMembers writes the members of a dictionary without one.
func putMembers(out *bytes.Buffer, d dict, without name) {
	for _, e := range d {
		if e.key == without {
			continue
		}
		out.WriteString(encodeName(e.key))
		out.WriteByte(' ')
		out.Write(e.text)
		out.WriteByte('\n')
	}
}

func encodeName(n name) string {
	out := []byte{'/'}
	for _, c := range []byte(n) {
		if c <= ' ' || c > '~' || c == '#' || isDelimiter(c) {
			out = fmt.Appendf(out, "#%02X", c)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// subset collects the objects that pages need.
type subset struct {
	d    *Document
	need map[int]bool
	skip func(num int) bool
}

func (s *subset) page(p page) {
	var todo []any
	node, _ := s.d.objects[p.num].val.(dict)
	for _, list := range []dict{node, p.inherited} {
		for _, e := range list {
			if e.key != "Parent" {
				todo = append(todo, e.val)
			}
		}
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch v := v.(type) {
		case list:
			todo = append(todo, v...)
		case dict:
			for _, e := range v {
				todo = append(todo, e.val)
			}
		case ref:
			if o := s.d.objects[v.num]; o != nil && !s.need[v.num] && !s.skip(v.num) {
				s.need[v.num] = true
				todo = append(todo, o.val)
			}
		}
	}
}
