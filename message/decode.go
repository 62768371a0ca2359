package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/rawjson"
)

// Decode returns the message that line, one JSON object, describes. White
// space around it is ignored. A type or a subtype that this package does not
// know gives an *Unknown; a result is a *Result whatever its subtype, because
// readers wait for it. Unknown keys and unknown enum values are kept (M-2).
//
// The message encodes back byte for byte as long as it is not changed, if line
// was one line of valid UTF-8; otherwise it encodes back to the canonical form
// of line. Numbers with a fraction where whole ones belong are rounded in the
// Go value.
//
// It fails with a *DecodeError: ErrNotObject, ErrNoType, or a cause with the
// path of the field that has a value of the wrong type. Decode keeps no
// reference to line.
func Decode(line []byte) (Message, error) {
	line, err := objectLine(line)
	if err != nil {
		return nil, err
	}
	typ, subtype, err := head(line)
	if err != nil {
		return nil, err
	}
	m := newMessage(typ, subtype)
	if err := decodeInto(m, line); err != nil {
		return nil, err
	}
	return m, nil
}

// unmarshal decodes line into m, which must be of the type that line names.
func unmarshal(line []byte, m Message) error {
	line, err := objectLine(line)
	if err != nil {
		return err
	}
	typ, subtype, err := head(line)
	if err != nil {
		return err
	}
	made := newMessage(typ, subtype)
	if reflect.TypeOf(made) != reflect.TypeOf(m) {
		return &DecodeError{
			Kind: kindString(typ, subtype), Value: excerpt(line),
			Err: fmt.Errorf("%w than %T", ErrOtherType, m),
		}
	}
	if err := decodeInto(made, line); err != nil {
		return err
	}
	reflect.ValueOf(m).Elem().Set(reflect.ValueOf(made).Elem())
	return nil
}

// objectLine returns a copy of the object in line, fit to be written again.
func objectLine(line []byte) ([]byte, error) {
	line = bytes.Trim(line, " \t\r\n")
	if !rawjson.IsObject(line) || !json.Valid(line) {
		err := ErrNotObject
		var syntax *json.SyntaxError
		if rawjson.IsObject(line) && errors.As(json.Unmarshal(line, new(json.RawMessage)), &syntax) {
			err = fmt.Errorf("%w: %w at byte %d", ErrNotObject, syntax, syntax.Offset)
		}
		return nil, &DecodeError{Value: excerpt(line), Err: err}
	}
	if bytes.IndexByte(line, '\n') >= 0 || bytes.IndexByte(line, '\r') >= 0 || !utf8.Valid(line) {
		return Canonical(line)
	}
	return bytes.Clone(line), nil
}

func head(obj []byte) (typ, subtype string, err error) {
	for k, v := range rawjson.Members(obj) {
		if string(k) != "type" && string(k) != "subtype" {
			continue
		}
		s := ""
		if v[0] == '"' {
			s = rawjson.Unquote(v)
		}
		if string(k) == "type" {
			typ = s
		} else {
			subtype = s
		}
	}
	if typ == "" {
		return "", "", &DecodeError{Value: excerpt(obj), Err: ErrNoType}
	}
	return typ, subtype, nil
}

func decodeInto(m Message, obj []byte) error {
	m.Head().original = obj
	if err := decodeMembers(obj, reflect.ValueOf(m).Elem()); err != nil {
		return &DecodeError{Kind: kindString(m.Kind()), Field: err.path, Value: err.value, Err: err.err}
	}
	return nil
}

func excerpt(line []byte) string { return fault(line, nil).value }

func decodeMembers(obj []byte, v reflect.Value) *fieldError {
	p := planOf(v.Type())
	for k, raw := range rawjson.Members(obj) {
		i, known := p.byName[string(k)]
		if !known {
			continue
		}
		f := &p.fields[i]
		fv := f.of(v)
		fv.SetZero() // of a key given twice the last counts
		if err := decodeValue(raw, fv); err != nil {
			if f.lenient {
				fv.SetZero()
				continue
			}
			return err.in("." + string(k))
		}
	}
	return nil
}

func decodeValue(raw []byte, v reflect.Value) *fieldError {
	switch v.Type() {
	case rawType:
		v.SetBytes(bytes.Clone(raw))
		return nil
	case blockType:
		b, err := ParseBlock(raw)
		if err != nil {
			return fault(raw, err)
		}
		v.Set(reflect.ValueOf(b))
		return nil
	case contentType:
		c, err := parseContent(raw)
		if err == nil {
			v.Set(reflect.ValueOf(c))
		}
		return err
	}
	if rawjson.IsNull(raw) {
		return nil // as in encoding/json: no value
	}
	switch k := v.Kind(); {
	case k == reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		if err := decodeValue(raw, elem.Elem()); err != nil {
			return err
		}
		v.Set(elem)
	case k == reflect.String && raw[0] == '"':
		v.SetString(rawjson.Unquote(raw))
	case k == reflect.Bool && (raw[0] == 't' || raw[0] == 'f'):
		v.SetBool(raw[0] == 't')
	case (k == reflect.Int || k == reflect.Int64) && isNumber(raw):
		n, ok := wholeNumber(string(raw))
		if !ok {
			return fault(raw, errors.New("number out of range"))
		}
		v.SetInt(n)
	case k == reflect.Float64 && isNumber(raw):
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return fault(raw, errors.New("number out of range"))
		}
		v.SetFloat(n)
	case k == reflect.Struct && raw[0] == '{':
		if v.Type() == originType && rawjson.Member(raw, "kind") == nil {
			return fault(raw, errors.New(`no "kind"`))
		}
		return decodeMembers(raw, v)
	case k == reflect.Slice && raw[0] == '[':
		return decodeSlice(raw, v)
	case k == reflect.Map && raw[0] == '{':
		return decodeMap(raw, v)
	default:
		return fault(raw, fmt.Errorf("want %s", jsonName(k)))
	}
	return nil
}

func jsonName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

// wholeNumber reads 4, 4.0, 4e0 and, rounded, 4.2: writers in other languages
// do not tell whole numbers from others.
func wholeNumber(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if f = math.Round(f); err != nil || f < -1<<63 || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

func decodeSlice(raw []byte, v reflect.Value) *fieldError {
	list := reflect.MakeSlice(v.Type(), 0, 4)
	i := 0
	for e := range rawjson.Elements(raw) {
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := decodeValue(e, elem); err != nil {
			return err.in("[" + strconv.Itoa(i) + "]")
		}
		list = reflect.Append(list, elem)
		i++
	}
	v.Set(list)
	return nil
}

func decodeMap(raw []byte, v reflect.Value) *fieldError {
	m := reflect.MakeMap(v.Type())
	for k, e := range rawjson.Members(raw) {
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := decodeValue(e, elem); err != nil {
			return err.in("." + string(k))
		}
		m.SetMapIndex(reflect.ValueOf(string(k)), elem)
	}
	v.Set(m)
	return nil
}
