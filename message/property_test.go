package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/rawjson"
)

// genMessage draws a message of any type in the form that decoding gives:
// lists that are always written are not nil, those that may be left out are
// not empty, what a rule forbids is not set.
func genMessage() *rapid.Generator[Message] {
	all := samples()
	return rapid.Custom(func(t *rapid.T) Message {
		sample := rapid.SampledFrom(all).Draw(t, "kind")
		typ, subtype := sample.Kind()
		m := newMessage(typ, subtype)
		draw(t, reflect.ValueOf(m).Elem())
		switch m := m.(type) {
		case *Unknown:
			m.Type, m.Subtype = typ, subtype
		case *Result:
			m.Subtype = Subtype(subtype)
			if m.Subtype == Success {
				m.Errors = nil
				if m.Result == nil {
					m.Result = new("")
				}
			} else {
				m.Result, m.StructuredOutput, m.DeferredToolUse, m.TTFTMS, m.TTFTStreamMS = nil, nil, nil, nil, nil
				m.UserMessageUUID = ""
				if m.Errors == nil {
					m.Errors = []string{}
				}
			}
			if m.IsError || m.UserMessageUUID == "" || m.RequestSentWallMS == 0 {
				m.UserMessageUUID, m.RequestSentWallMS = "", 0
			}
		case *ControlResponse:
			m.Response.Subtype = rapid.SampledFrom([]string{ControlSuccess, ControlError}).Draw(t, "answer")
			if m.Response.Subtype == ControlSuccess {
				m.Response.Error = ""
			} else {
				m.Response.Response = nil
			}
		}
		return m
	})
}

func draw(t *rapid.T, v reflect.Value) {
	switch v.Type() {
	case rawType:
		c, err := Canonical([]byte(genObject(2).Draw(t, "raw")))
		if err != nil {
			t.Fatal(err)
		}
		v.SetBytes(c)
		return
	case blockType:
		v.Set(reflect.ValueOf(genBlock().Draw(t, "block")))
		return
	case contentType:
		c := TextContent(rapid.String().Draw(t, "text"))
		if rapid.Bool().Draw(t, "blocks") {
			c = BlockContent(rapid.SliceOfN(genBlock(), 0, 3).Draw(t, "content")...)
		}
		v.Set(reflect.ValueOf(c))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float"))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		draw(t, v.Elem())
	case reflect.Slice:
		n := rapid.IntRange(1, 3).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			draw(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 3).Draw(t, "size") {
			elem := reflect.New(v.Type().Elem()).Elem()
			draw(t, elem)
			v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, "key")), elem)
		}
	case reflect.Struct:
		p := planOf(v.Type())
		for i := range p.fields {
			f := &p.fields[i]
			fv := f.of(v)
			optional := f.omit != omitNever || fv.Kind() == reflect.Pointer
			if optional && rapid.Bool().Draw(t, "leave out") {
				continue
			}
			draw(t, fv)
			if f.fallback != "" && fv.Len() == 0 {
				fv.SetString(f.fallback)
			}
			if f.omit == omitNever && fv.Kind() == reflect.Slice && fv.Type() != rawType && rapid.IntRange(0, 4).Draw(t, "empty") == 0 {
				fv.Set(reflect.MakeSlice(fv.Type(), 0, 0))
			}
		}
	}
}

// TestDecodeUndoesMarshal: Decode gives back the very value, and the line is
// one line in canonical form.
func TestDecodeUndoesMarshal(t *testing.T) {
	conform.Covers(t, "M-1", "M-13", "W-25")
	rapid.Check(t, func(t *rapid.T) {
		m := genMessage().Draw(t, "message")
		line, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Canonical(line)
		if err != nil || !bytes.Equal(c, line) {
			t.Fatalf("not canonical: %s, %v", line, err)
		}
		back, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Marshal(back)
		if err != nil || !bytes.Equal(again, line) {
			t.Fatalf("%s became %s, %v", line, again, err)
		}
		if !reflect.DeepEqual(stripped(back), m) {
			t.Fatalf("decoded\n%#v, want\n%#v", back, m)
		}
	})
}

// TestRoughStrings: no string, however broken, makes a line that is not UTF-8
// or not one line.
func TestRoughStrings(t *testing.T) {
	conform.Covers(t, "M-1", "K-302", "W-25")
	rapid.Check(t, func(t *rapid.T) {
		s := roughString().Draw(t, "s")
		m := &Result{
			Subtype: Success, Result: &s, ModelUsage: map[string]ModelUsage{s: {Provider: s}},
			PermissionDenials: []PermissionDenial{{ToolName: s, ToolInput: json.RawMessage("{\"a\":\"\xff\u2028\"}")}},
			Header:            Header{UUID: s, SessionID: s},
		}
		line, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) || !utf8.Valid(line) || bytes.ContainsAny(line, "\r\n\u0085\u2028\u2029") {
			t.Fatalf("line %q", line)
		}
		back, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.(*Result); got.Text() != string([]rune(s)) {
			t.Fatalf("read back %q, want %q", got.Text(), s)
		}
	})
}

// TestUnknownKeysSurviveChanges puts unknown keys into every object that has a
// Go type, changes a field, and finds them again at the same place.
func TestUnknownKeysSurviveChanges(t *testing.T) {
	conform.Covers(t, "M-2")
	rapid.Check(t, func(t *rapid.T) {
		m := genMessage().Draw(t, "message")
		line, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		odd := addUnknown(t, line, reflect.TypeOf(m).Elem(), &n)
		back, err := Decode(odd)
		if err != nil {
			t.Fatal(err)
		}
		same, err := Marshal(back)
		if err != nil || !bytes.Equal(same, odd) {
			t.Fatalf("unchanged: %s became %s, %v", odd, same, err)
		}
		back.Head().UUID += "changed"
		changed, err := Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(odd, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(changed, &got); err != nil {
			t.Fatal(err)
		}
		want.(map[string]any)["uuid"] = back.Head().UUID
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%s, want\n%s with another uuid", changed, odd)
		}
		if found := bytes.Count(changed, []byte(`"unknown key `)); found != n {
			t.Fatalf("%d of %d unknown keys in %s", found, n, changed)
		}
	})
}

// addUnknown returns the JSON with one more key in each object that typ has a
// struct for, the keys shuffled.
func addUnknown(t *rapid.T, raw []byte, typ reflect.Type, n *int) []byte {
	switch {
	case typ == rawType || typ == blockType || typ == contentType || rawjson.IsNull(raw):
	case typ.Kind() == reflect.Pointer:
		return addUnknown(t, raw, typ.Elem(), n)
	case typ.Kind() == reflect.Struct:
		var list []string
		p := planOf(typ)
		for k, v := range rawjson.Members(raw) {
			if i, ok := p.byName[string(k)]; ok {
				v = addUnknown(t, v, typ.FieldByIndex(p.fields[i].index).Type, n)
			}
			list = append(list, quoteAnyway(string(k))+": "+string(v))
		}
		*n++
		list = append(list, fmt.Sprintf(`"unknown key %d":[{"a" :1}]`, *n))
		return []byte("{" + strings.Join(rapid.Permutation(list).Draw(t, "order"), ",") + " }")
	case typ.Kind() == reflect.Slice:
		list := [][]byte{}
		for e := range rawjson.Elements(raw) {
			list = append(list, addUnknown(t, e, typ.Elem(), n))
		}
		return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))
	case typ.Kind() == reflect.Map:
		list := [][]byte{}
		for k, e := range rawjson.Members(raw) {
			list = append(list, slices.Concat([]byte(quoteAnyway(string(k))+":"), addUnknown(t, e, typ.Elem(), n)))
		}
		return slices.Concat([]byte("{"), bytes.Join(list, []byte(",")), []byte("}"))
	}
	return raw
}

// FuzzDecode: no bytes make Decode or Marshal panic; what was decoded encodes
// back as it came, and still encodes after a change.
func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		line, err := Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	for _, s := range []string{
		"", "{", `{"type":1}`, `{"type":"result","subtype":"success","modelUsage":{"a":{"x":1}},"usage":null}`,
		"{\"type\":\"user\",\n\"message\":{\"content\":\"\xff\u2028\"}}", `{"type":"user","message":{"content":[{"type":"text"}],"content":"x"}}`,
		`{"\u0074ype":"user","a\u2028":1,"uuid":"x","uuid":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := Decode(line)
		if err != nil {
			if m != nil || err.Error() == "" {
				t.Fatalf("%v with %v", m, err)
			}
			return
		}
		out, err := Marshal(m)
		if err != nil {
			t.Fatalf("%q decoded, but: %v", line, err)
		}
		trimmed := bytes.Trim(line, " \t\r\n")
		if utf8.Valid(trimmed) && !bytes.ContainsAny(trimmed, "\r\n") && !bytes.Equal(out, trimmed) {
			t.Fatalf("%q became %q", trimmed, out)
		}
		if !json.Valid(out) || !utf8.Valid(out) || bytes.ContainsAny(out, "\r\n") {
			t.Fatalf("line %q", out)
		}
		m.Head().SessionID += "x"
		changed, err := Marshal(m)
		if err != nil {
			t.Fatalf("%q changed, but: %v", line, err)
		}
		if c, err := Canonical(changed); err != nil || !bytes.Equal(c, changed) {
			t.Fatalf("not canonical: %q, %v", changed, err)
		}
		again, err := Decode(changed)
		if err != nil {
			t.Fatalf("%q: %v", changed, err)
		}
		if reflect.TypeOf(again) != reflect.TypeOf(m) || again.Head().SessionID != m.Head().SessionID {
			t.Fatalf("%q became %T %q", changed, again, again.Head().SessionID)
		}
		touch(m)
	})
}

// touch calls every accessor: none may panic.
func touch(m Message) {
	switch m := m.(type) {
	case *Assistant:
		m.Text()
		m.ToolUses()
	case *User:
		m.Text()
		m.ToolResults()
	case *Result:
		m.Text()
	case *ControlRequest:
		m.Subtype()
	case *ControlResponse:
		m.Response.Payload()
	}
	CountToolTurns([]Message{m, m})
	LastText([]Message{m, m})
}
