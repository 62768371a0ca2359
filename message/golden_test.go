package message

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
)

var update = flag.Bool("update", false, "write the golden files anew")

// stripped returns m as if it had been made in Go.
func stripped(m Message) Message {
	m.Head().original = nil
	return m
}

func goldenName(m Message) string {
	typ, subtype := m.Kind()
	if typ == "result" {
		subtype = ""
	}
	return strings.TrimSuffix(typ+"."+subtype, ".") + ".jsonl"
}

// TestGolden compares the encoding of every sample with the golden files, one
// a kind, and reads it back.
func TestGolden(t *testing.T) {
	conform.Covers(t, "M-4", "M-13", "M-14", "W-240", "W-241")
	files := map[string][]byte{}
	for _, m := range samples() {
		line, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		name := goldenName(m)
		files[name] = append(append(files[name], line...), '\n')

		back, err := Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Head().Raw(), line) {
			t.Errorf("Raw is %s, want %s", back.Head().Raw(), line)
		}
		if !reflect.DeepEqual(stripped(back), m) {
			t.Errorf("%s: decoded\n%#v, want\n%#v", name, back, m)
		}
	}
	dir := filepath.Join("testdata", "golden")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, got := range files {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%v; run go test -update", err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()] == nil {
			t.Errorf("golden file %s belongs to no sample", e.Name())
		}
	}
}

// TestEveryTypeHasASample finds the message types in the source, so that a new
// one without a sample, a place in kinds or the JSON methods fails.
func TestEveryTypeHasASample(t *testing.T) {
	have := map[string]Message{}
	for _, m := range samples() {
		have[reflect.TypeOf(m).Elem().Name()] = m
	}
	types := messageTypes(t)
	if len(types) < 40 {
		t.Fatalf("found only %d message types in the source", len(types))
	}
	for _, name := range types {
		m, ok := have[name]
		if !ok {
			t.Errorf("message type %s has no sample", name)
			continue
		}
		if made := newMessage(m.Kind()); reflect.TypeOf(made) != reflect.TypeOf(m) {
			t.Errorf("the kind of %s makes a %T", name, made)
		}
		if _, ok := reflect.ValueOf(m).Elem().Interface().(json.Marshaler); !ok {
			t.Errorf("%s is no json.Marshaler", name)
		}
		if _, ok := m.(json.Unmarshaler); !ok {
			t.Errorf("*%s is no json.Unmarshaler", name)
		}
	}
	if want := len(types) - 2; len(kinds) != want { // all but Result and Unknown
		t.Errorf("kinds has %d entries, want %d", len(kinds), want)
	}
}

// messageTypes returns the names of all types with a method Kind.
func messageTypes(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "Kind" {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				names = append(names, star.X.(*ast.Ident).Name)
			}
		}
	}
	return names
}

// TestSamplesAreFull checks that some sample of its type sets every field, so
// that a new field shows in a golden file.
func TestSamplesAreFull(t *testing.T) {
	unset := map[string]bool{}
	set := map[string]bool{}
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				visit(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i))
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				visit(v.MapIndex(k))
			}
		case reflect.Struct:
			if v.Type() == blockType || v.Type() == contentType {
				return
			}
			p := planOf(v.Type())
			for i := range p.fields {
				fv := p.fields[i].of(v)
				name := v.Type().Name() + "." + p.fields[i].name
				// Control messages have no header.
				if strings.HasSuffix(name, ".uuid") || strings.HasSuffix(name, ".session_id") {
					continue
				}
				if fv.IsZero() {
					unset[name] = true
				} else {
					set[name] = true
				}
				visit(fv)
			}
		}
	}
	for _, m := range samples() {
		visit(reflect.ValueOf(m))
	}
	for name := range unset {
		if !set[name] {
			t.Errorf("no sample sets %s", name)
		}
	}
}
