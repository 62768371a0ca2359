package message

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/turnwright/turnwright/internal/rawjson"
)

var (
	errNil       = errors.New("nil")
	errZeroBlock = errors.New("the zero Block has no JSON form")
	errNotFinite = errors.New("not a finite number")

	home = reflect.TypeFor[Header]().PkgPath()
)

// Marshal returns m as one line of JSON without the newline, "type" and
// "subtype" first (M-1, M-13).
//
// A message that came from Decode and was not changed gives the bytes that it
// came from (see Header.Raw). One that was changed gives its known fields in
// the canonical form and after them the unknown keys that it came with, in
// nested objects as well.
//
// It fails with an *EncodeError for a nil message, for one that is not of this
// package, for an Unknown without type, and for values that have no JSON form:
// a json.RawMessage that is not valid JSON, a number that is not finite, the
// zero Block.
func Marshal(m Message) ([]byte, error) { return Append(nil, m) }

// Append appends what Marshal returns to dst. When it fails it returns dst as
// it was.
func Append(dst []byte, m Message) ([]byte, error) {
	v := reflect.ValueOf(m)
	switch {
	case m == nil || v.Kind() == reflect.Pointer && v.IsNil():
		return dst, &EncodeError{Err: errNil}
	case v.Kind() != reflect.Pointer || v.Type().Elem().PkgPath() != home:
		return dst, &EncodeError{Err: fmt.Errorf("%T is not a message of package message", m)}
	}
	typ, subtype := m.Kind()
	if typ == "" {
		return dst, &EncodeError{Err: ErrNoType}
	}
	orig := m.Head().original
	if orig != nil {
		// The header may have been copied from a message of another type.
		switch fresh, err := Decode(orig); {
		case err != nil || reflect.TypeOf(fresh) != v.Type():
			orig = nil
		case reflect.DeepEqual(fresh, m):
			return append(dst, orig...), nil
		}
	}
	in := dst
	if dst == nil {
		dst = make([]byte, 0, sizeHint(m))
	}
	dst = rawjson.AppendString(append(dst, `{"type":`...), typ)
	written := headKeys[:1]
	if subtype != "" || typ == "result" {
		dst = rawjson.AppendString(append(dst, `,"subtype":`...), subtype)
		written = headKeys[:]
	}
	dst, ferr := appendMembers(dst, v.Elem(), orig, written)
	if ferr != nil {
		return in, &EncodeError{Kind: kindString(typ, subtype), Field: ferr.path, Err: ferr.err}
	}
	return append(dst, '}'), nil
}

// sizeHint returns a capacity that the canonical form of m mostly fits in.
func sizeHint(m Message) int {
	n := 512
	switch m := m.(type) {
	case *Assistant:
		n += 512
		for _, b := range m.Message.Content {
			n += len(b.raw) + 1
		}
	case *User:
		n += len(m.Message.Content.text) + len(m.ToolUseResult)
		for _, b := range m.Message.Content.blocks {
			n += len(b.raw) + 1
		}
	case *StreamEvent:
		n += len(m.Event)
	case *Result:
		n += 1024 + 400*len(m.ModelUsage) + len(m.StructuredOutput)
		if m.Result != nil {
			n += len(*m.Result)
		}
	}
	return n
}

// appendMembers appends the fields of the struct v and then the unknown keys
// of orig, the object that v was decoded from (nil for none). The keys in
// written stand in dst already.
func appendMembers(dst []byte, v reflect.Value, orig []byte, written []string) ([]byte, *fieldError) {
	p := planOf(v.Type())
	if !rawjson.IsObject(orig) {
		orig = nil
	}
	var rules ruler
	if p.ruled {
		rules = v.Addr().Interface().(ruler)
	}
	comma := len(written) > 0
	for i := range p.fields {
		f := &p.fields[i]
		if len(written) > 0 && slices.Contains(written, f.name) {
			continue
		}
		fv := f.of(v)
		r := byTag
		if rules != nil {
			r = rules.keyRule(f.name)
		}
		if r == drop || r == byTag && f.omitted(fv) {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(dst, f.key...)
		if r == force && fv.Kind() == reflect.Pointer && fv.IsNil() {
			fv = reflect.New(fv.Type().Elem()).Elem()
		}
		if f.fallback != "" && fv.Len() == 0 {
			dst = rawjson.AppendString(dst, f.fallback)
			continue
		}
		if f.object && fv.Len() == 0 {
			dst = append(dst, '{', '}')
			continue
		}
		var from []byte
		if orig != nil {
			from = rawjson.Member(orig, f.name)
		}
		var err *fieldError
		if dst, err = appendValue(dst, fv, from); err != nil {
			return dst, err.in("." + f.name)
		}
	}
	if orig == nil {
		return dst, nil
	}
	for key, raw := range rawjson.Members(orig) {
		k := string(key)
		if _, known := p.byName[k]; known || slices.Contains(written, k) {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(rawjson.AppendString(dst, k), ':')
		var err error
		if dst, err = appendCanonical(dst, raw); err != nil {
			return dst, fault(raw, err).in("." + k)
		}
	}
	return dst, nil
}

var headKeys = [2]string{"type", "subtype"}

// appendValue appends one value; from is what it was decoded from, nil if it
// was made in Go.
func appendValue(dst []byte, v reflect.Value, from []byte) ([]byte, *fieldError) {
	switch v.Type() {
	case rawType:
		raw := v.Bytes()
		if len(raw) == 0 {
			return append(dst, "null"...), nil
		}
		dst, err := appendCanonical(dst, raw)
		if err != nil {
			return dst, fault(raw, err)
		}
		return dst, nil
	case blockType:
		return appendBlock(dst, v.Interface().(Block))
	case contentType:
		return appendContent(dst, v.Addr().Interface().(*Content))
	}
	switch v.Kind() {
	case reflect.String:
		return rawjson.AppendString(dst, v.String()), nil
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case reflect.Float64:
		dst, ok := rawjson.AppendFloat(dst, v.Float())
		if !ok {
			return dst, fault(nil, errNotFinite)
		}
		return dst, nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return appendValue(dst, v.Elem(), from)
	case reflect.Struct:
		dst, err := appendMembers(append(dst, '{'), v, from, nil)
		return append(dst, '}'), err
	case reflect.Slice:
		return appendSlice(dst, v, from)
	case reflect.Map:
		return appendMap(dst, v, from)
	}
	// A fault of this package, found by any test that touches the type.
	panic(fmt.Sprintf("message: no JSON form for a field of type %s", v.Type()))
}

func appendSlice(dst []byte, v reflect.Value, from []byte) ([]byte, *fieldError) {
	if v.Type().Elem() == blockType {
		return appendBlocks(dst, *v.Addr().Interface().(*[]Block))
	}
	origins := originsOf(v, from)
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err *fieldError
		if dst, err = appendValue(dst, v.Index(i), origins(i)); err != nil {
			return dst, err.in("[" + strconv.Itoa(i) + "]")
		}
	}
	return append(dst, ']'), nil
}

// originsOf pairs the elements of a list of structs with the elements that
// they were decoded from, so that their unknown keys are kept: by place in a
// list of the same length, else by equality.
func originsOf(v reflect.Value, from []byte) func(int) []byte {
	none := func(int) []byte { return nil }
	if len(from) == 0 || from[0] != '[' || v.Type().Elem().Kind() != reflect.Struct {
		return none
	}
	old := slices.Collect(rawjson.Elements(from))
	if len(old) == v.Len() {
		return func(i int) []byte { return old[i] }
	}
	fresh := reflect.New(v.Type()).Elem()
	if decodeValue(from, fresh) != nil {
		return none
	}
	return func(i int) []byte {
		for j, raw := range old {
			if raw != nil && reflect.DeepEqual(v.Index(i).Interface(), fresh.Index(j).Interface()) {
				old[j] = nil
				return raw
			}
		}
		return nil
	}
}

// appendMap appends a map with string keys, sorted.
func appendMap(dst []byte, v reflect.Value, from []byte) ([]byte, *fieldError) {
	old := map[string][]byte{}
	if rawjson.IsObject(from) {
		for k, raw := range rawjson.Members(from) {
			old[string(k)] = raw
		}
	}
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	elem := reflect.New(v.Type().Elem()).Elem() // map values are not addressable
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendString(dst, k), ':')
		elem.Set(v.MapIndex(reflect.ValueOf(k)))
		var err *fieldError
		if dst, err = appendValue(dst, elem, old[k]); err != nil {
			return dst, err.in("." + k)
		}
	}
	return append(dst, '}'), nil
}

func appendBlock(dst []byte, b Block) ([]byte, *fieldError) {
	if b.IsZero() {
		return dst, fault(nil, errZeroBlock)
	}
	return append(dst, b.raw...), nil
}

func appendBlocks(dst []byte, blocks []Block) ([]byte, *fieldError) {
	dst = append(dst, '[')
	for i, b := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err *fieldError
		if dst, err = appendBlock(dst, b); err != nil {
			return dst, err.in("[" + strconv.Itoa(i) + "]")
		}
	}
	return append(dst, ']'), nil
}

// appendContent appends content; no content is an empty list, because a
// message must have some.
func appendContent(dst []byte, c *Content) ([]byte, *fieldError) {
	if c.isText {
		return rawjson.AppendString(dst, c.text), nil
	}
	return appendBlocks(dst, c.blocks)
}

// marshalPart encodes a part of a message when it is given to encoding/json
// on its own.
func marshalPart(part any) ([]byte, error) {
	dst, err := appendValue(nil, reflect.ValueOf(part).Elem(), nil)
	if err != nil {
		return nil, &EncodeError{Field: err.path, Err: err.err}
	}
	return dst, nil
}
