package pdf

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// What keeps a document from being used.
var (
	ErrEncrypted = errors.New("encrypted")
	ErrNoPages   = errors.New("damaged: no pages were found")
)

const (
	maxPages     = 100_000
	maxUnpacked  = 128 << 20 // bytes of all object streams together
	maxObjects   = 2_000_000
	maxObjectNum = math.MaxInt32
)

var errHopeless = errors.New("damaged beyond reading")

// Document is a PDF whose objects have been found. It does not change.
type Document struct {
	data     []byte
	objects  map[int]*object
	pages    []page
	last     int // the highest number of an object
	unpacked int
}

// object is an indirect object.
type object struct {
	gen    int
	val    any
	text   []byte // of the value
	stream []byte // what follows the value, still encoded; nil: nothing
}

// page is a page of the tree, with what it has from the nodes above it.
type page struct {
	num       int // of its object
	inherited dict
}

// Parse finds the objects and pages of a PDF. It goes through the file from
// the start, where the later of two objects of a number counts, so that
// damaged tables of offsets do no harm. The Document keeps data.
func Parse(data []byte) (*Document, error) {
	d := &Document{data: data, objects: map[int]*object{}}
	trailer, err := d.scan()
	if err != nil {
		return nil, err
	}
	if trailer.get("Encrypt") != nil {
		return nil, ErrEncrypted
	}
	root, _ := d.resolve(trailer.get("Root")).(dict)
	if root == nil {
		for _, o := range d.objects {
			if c, ok := o.val.(dict); ok && c.get("Type") == name("Catalog") {
				root = c
			}
		}
	}
	top, _ := root.get("Pages").(ref)
	if err := d.walk(top, nil, map[int]bool{}, 0); err != nil {
		return nil, err
	}
	if len(d.pages) == 0 {
		return nil, ErrNoPages
	}
	return d, nil
}

// Pages returns the number of pages, at least 1.
func (d *Document) Pages() int { return len(d.pages) }

// scan finds all objects, and the last trailer that names a root.
func (d *Document) scan() (trailer dict, err error) {
	use := func(v any) {
		if t, ok := v.(dict); ok && t.get("Root") != nil {
			trailer = t
		}
	}
	// Reading what is no value again and again would take for ever.
	wasted := 0
	try := func(p *parser) (any, error) {
		start := p.pos
		v, err := p.value(0)
		if err == nil {
			return v, nil
		}
		if wasted += p.pos - start; wasted > 1<<20+16*len(d.data) {
			return nil, errHopeless
		}
		return nil, err
	}
	end := 0 // of the last object
	for at := 0; ; {
		i := bytes.Index(d.data[at:], []byte("obj"))
		gap := d.data[end:]
		if i >= 0 {
			gap = d.data[end : at+i]
		}
		num, gen, isHead := 0, 0, false
		if i >= 0 {
			num, gen, isHead = objectHead(d.data[:at+i])
			at += i + len("obj")
		}
		if i >= 0 && !isHead {
			continue
		}
		for { // trailers between two objects
			t := bytes.Index(gap, []byte("trailer"))
			if t < 0 {
				break
			}
			gap = gap[t+len("trailer"):]
			v, err := try(&parser{text: gap})
			if errors.Is(err, errHopeless) {
				return nil, err
			}
			use(v)
		}
		if i < 0 {
			return trailer, nil
		}
		end = at
		p := &parser{text: d.data, pos: at}
		p.space()
		start := p.pos
		v, err := try(p)
		switch {
		case errors.Is(err, errHopeless):
			return nil, err
		case err != nil:
			continue // no object after all, or a damaged one
		}
		o := &object{gen: gen, val: v, text: d.data[start:p.pos]}
		end = p.pos
		head, isDict := v.(dict)
		if p.space(); isDict && p.has("stream") {
			o.stream, end = d.streamAt(p.pos+len("stream"), head)
			if head.get("Type") == name("XRef") {
				use(v)
			}
		}
		at = end
		if err := d.add(num, o); err != nil {
			return nil, err
		}
		if head.get("Type") == name("ObjStm") && o.stream != nil {
			if err := d.unpack(head, o.stream); err != nil {
				return nil, err
			}
		}
	}
}

func (d *Document) add(num int, o *object) error {
	d.objects[num] = o
	d.last = max(d.last, num)
	if len(d.objects) > maxObjects {
		return fmt.Errorf("more than %d objects", maxObjects)
	}
	return nil
}

// objectHead reads the two numbers at the end of text, before "obj".
func objectHead(text []byte) (num, gen int, ok bool) {
	number := func() (int, bool) {
		end := len(bytes.TrimRight(text, " \n\r\t\f\x00"))
		start := end
		for start > 0 && text[start-1] >= '0' && text[start-1] <= '9' && end-start < 11 {
			start--
		}
		n, err := strconv.Atoi(string(text[start:end]))
		text = text[:start]
		return n, err == nil && n <= maxObjectNum
	}
	tail := max(0, len(text)-64)
	text = text[tail:]
	blank := len(text) > 0 && isSpace(text[len(text)-1])
	if gen, ok = number(); !ok || !blank || len(text) == 0 || !isSpace(text[len(text)-1]) {
		return 0, 0, false
	}
	num, ok = number()
	return num, gen, ok
}

// streamAt returns the bytes of the stream whose keyword ends at pos, and where
// it ends.
func (d *Document) streamAt(pos int, head dict) (stream []byte, end int) {
	if pos < len(d.data) && d.data[pos] == '\r' {
		pos++
	}
	if pos < len(d.data) && d.data[pos] == '\n' {
		pos++
	}
	const keyword = "endstream"
	// The length may be an object that comes later, or wrong.
	if n, ok := d.resolve(head.get("Length")).(int); ok && n >= 0 && n <= len(d.data)-pos {
		p := &parser{text: d.data, pos: pos + n}
		for p.pos < len(p.text) && isSpace(p.text[p.pos]) {
			p.pos++
		}
		if p.has(keyword) {
			return d.data[pos : pos+n : pos+n], p.pos + len(keyword)
		}
	}
	i := bytes.Index(d.data[pos:], []byte(keyword))
	if i < 0 {
		return d.data[pos:], len(d.data)
	}
	stream = d.data[pos : pos+i : pos+i]
	if s, ok := bytes.CutSuffix(stream, []byte("\n")); ok {
		stream = bytes.TrimSuffix(s, []byte("\r"))
	}
	return stream, pos + i + len(keyword)
}

// unpack adds the objects of an object stream. One that is packed in another
// way than deflate is left out.
func (d *Document) unpack(head dict, stream []byte) error {
	filter := head.get("Filter")
	if l, ok := filter.(list); ok && len(l) == 1 {
		filter = l[0]
	}
	switch filter {
	case nil:
	case name("FlateDecode"):
		z, err := zlib.NewReader(bytes.NewReader(stream))
		if err != nil {
			return nil
		}
		stream, _ = io.ReadAll(io.LimitReader(z, maxUnpacked+1)) // what can be read of a damaged one
	default:
		return nil
	}
	if d.unpacked += len(stream); d.unpacked > maxUnpacked {
		return fmt.Errorf("more than %d bytes of packed objects", maxUnpacked)
	}
	n, _ := head.get("N").(int)
	first, _ := head.get("First").(int)
	if first < 0 || first > len(stream) {
		return nil
	}
	index := &parser{text: stream[:first]}
	for range n {
		num, okNum := mustInt(index)
		offset, okOffset := mustInt(index)
		if !okNum || !okOffset || offset > len(stream)-first || num > maxObjectNum {
			return nil
		}
		p := &parser{text: stream, pos: first + offset}
		p.space()
		start := p.pos
		v, err := p.value(0)
		if err != nil {
			continue
		}
		if err := d.add(num, &object{val: v, text: stream[start:p.pos]}); err != nil {
			return err
		}
	}
	return nil
}

func mustInt(p *parser) (int, bool) {
	p.space()
	n, err := strconv.Atoi(p.word())
	return n, err == nil && n >= 0
}

// resolve follows a reference; other values are returned as they are.
func (d *Document) resolve(v any) any {
	for range maxDepth {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		o := d.objects[r.num]
		if o == nil {
			return nil
		}
		v = o.val
	}
	return nil
}

// inheritable are what a page has from the nodes above it.
var inheritable = []name{"Resources", "MediaBox", "CropBox", "Rotate"}

// walk collects the pages at and below a node of the page tree.
func (d *Document) walk(r ref, inherited dict, seen map[int]bool, depth int) error {
	node, ok := d.resolve(r).(dict)
	if !ok || seen[r.num] {
		return nil
	}
	if depth > maxDepth || len(d.pages) >= maxPages {
		return fmt.Errorf("damaged: its tree of pages is too large")
	}
	seen[r.num] = true
	kids, isNode := d.resolve(node.get("Kids")).(list)
	if !isNode {
		d.pages = append(d.pages, page{r.num, inherited})
		return nil
	}
	below := dict{}
	for _, key := range inheritable {
		for _, from := range []dict{node, inherited} {
			if i := from.index(key); i >= 0 {
				below = append(below, from[i])
				break
			}
		}
	}
	for _, k := range kids {
		if kid, ok := k.(ref); ok {
			if err := d.walk(kid, below, seen, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d dict) index(key name) int {
	for i, e := range d {
		if e.key == key {
			return i
		}
	}
	return -1
}
