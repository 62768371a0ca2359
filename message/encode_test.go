package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/turnwright/turnwright/internal/conform"
	"github.com/turnwright/turnwright/internal/rawjson"
)

// roughString draws strings that are hard to quote, invalid UTF-8 among them.
func roughString() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "a", "\"", "\\", "<&>", "\u0085", "\u2028", "\u2029", "\u2027", "\x00", "\x1f", "\x7f", "\n\r\t\b\f", "\xff",
			"\xc2", "\xe2\x80", "\xed\xa0\x80", "\ufffd", "\U0001F600", "é", `\u2028`,
		}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 5), func(p []string) string { return strings.Join(p, "") })
}

// TestAppendStringIsEncode: the fast quoting gives what Encode gives.
func TestAppendStringIsEncode(t *testing.T) {
	conform.Covers(t, "K-302")
	rapid.Check(t, func(t *rapid.T) {
		s := roughString().Draw(t, "s")
		want, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		got := rawjson.AppendString([]byte("x"), s)[1:]
		if string(got) != string(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
		if bytes.ContainsAny(got, "\u0085\u2028\u2029\n\r") || !utf8.Valid(got) {
			t.Fatalf("not canonical: %q", got)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != string([]rune(s)) {
			t.Fatalf("read back as %q, %v", back, err)
		}
		if rawjson.Unquote(got) != back {
			t.Fatalf("unquote gives %q", rawjson.Unquote(got))
		}
	})
}

func TestAppendFloatIsEncode(t *testing.T) {
	check := func(t rapid.TB, f float64) {
		want, err := json.Marshal(f)
		got, ok := rawjson.AppendFloat(nil, f)
		if (err == nil) != ok || ok && string(got) != string(want) {
			t.Fatalf("%g: got %s %v, want %s %v", f, got, ok, want, err)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1e-7, -1e-7, 1e-10, 1e21, 1e20, 123456789, 0.1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64} {
		check(t, f)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Float64().Draw(t, "f")) })
}

// genJSON draws a JSON text with odd spacing, keys and numbers.
func genJSON(depth int) *rapid.Generator[string] {
	leaf := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1.50", "1E+3", "12345678901234567890", `"\u0041\u2028"`, `"\ud800"`, "\"\u2028\""}),
		rapid.Map(rapid.String(), quoteAnyway),
	)
	if depth == 0 {
		return leaf
	}
	space := rapid.SampledFrom([]string{"", " ", "\t", "\n"})
	return rapid.OneOf(leaf, rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString("[")
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(space.Draw(t, "space") + genJSON(depth-1).Draw(t, "element") + space.Draw(t, "space"))
		}
		return b.String() + "]"
	}), genObject(depth))
}

func genObject(depth int) *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", " ", "\t", "\n"})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString("{")
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			if i > 0 {
				b.WriteString(",")
			}
			key := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "type", "\u2028", "x\ty"}), rapid.String()).Draw(t, "key")
			b.WriteString(space.Draw(t, "space") + quoteAnyway(key) + space.Draw(t, "space") + ":" +
				space.Draw(t, "space") + genJSON(depth-1).Draw(t, "value") + space.Draw(t, "space"))
		}
		return b.String() + "}"
	})
}

// quoteAnyway quotes s as encoding/json does by default, HTML escapes and all:
// another form than the canonical one.
func quoteAnyway(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func checkCanonical(t rapid.TB, raw []byte) {
	c, err := Canonical(raw)
	if !json.Valid(raw) && json.Valid(bytes.ToValidUTF8(raw, []byte("?"))) {
		return // invalid UTF-8 outside of strings: either way is fine
	}
	if (err == nil) != json.Valid(raw) {
		t.Fatalf("Canonical(%q): %v, but valid is %v", raw, err, json.Valid(raw))
	}
	if err != nil {
		return
	}
	again, err := Canonical(c)
	if err != nil || !bytes.Equal(again, c) {
		t.Fatalf("Canonical is not idempotent: %q, then %q, %v", c, again, err)
	}
	for _, s := range []string{"\u0085", "\u2028", "\u2029", "\n", "\r"} {
		if bytes.Contains(c, []byte(s)) {
			t.Fatalf("%q in %q", s, c)
		}
	}
	if !utf8.Valid(c) {
		t.Fatalf("not UTF-8: %q", c)
	}
	read := func(raw []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v: %q", err, raw)
		}
		return v
	}
	if before, after := read(raw), read(c); !reflect.DeepEqual(before, after) {
		t.Fatalf("Canonical(%q) = %q reads as %v, not %v", raw, c, after, before)
	}
}

func TestCanonical(t *testing.T) {
	conform.Covers(t, "K-302", "M-1")
	rapid.Check(t, func(t *rapid.T) { checkCanonical(t, []byte(genJSON(3).Draw(t, "json"))) })
	for in, want := range map[string]string{
		" { \"b\" : 1.0 ,\n\"a\":\"<\u2028>\" } ": `{"b":1.0,"a":"<\u2028>"}`,
		"\"\xff\xfe\"": "\"\ufffd\ufffd\"",
		"\"\\u003c\"":  `"\u003c"`,
	} {
		got, err := Canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Canonical(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{}`, `[1, 2.50]`, "\"\u2028\xff\"", "{\"a\":\"\\u2028\"}", "nul", "\"\xe2\x80\"", `{"a":1}{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { checkCanonical(t, raw) })
}

func TestEncode(t *testing.T) {
	conform.Covers(t, "K-302")
	got, err := Encode(map[string]any{
		"b": json.RawMessage("[ \"\xff\u2028<\" ]"), "a": "<&>\u0085", "c": NewText("\u2029"),
	})
	if want := `{"a":"<&>\u0085","b":["` + "\ufffd" + `\u2028<"],"c":{"type":"text","text":"\u2029"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := Encode(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func TestEncodeErrors(t *testing.T) {
	bad := json.RawMessage(`{"a"`)
	for _, c := range []struct {
		m     Message
		field string
		is    error
	}{
		{nil, "", errNil},
		{(*Init)(nil), "", errNil},
		{&Unknown{}, "", ErrNoType},
		{&Assistant{Message: APIMessage{Content: []Block{NewText("x"), {}}}}, "message.content[1]", errZeroBlock},
		{&User{ToolUseResult: bad}, "tool_use_result", nil},
		{&StreamEvent{Event: json.RawMessage(`{} {}`)}, "event", nil},
		{&Result{Subtype: Success, TotalCostUSD: new(math.NaN())}, "total_cost_usd", errNotFinite},
		{&Result{Subtype: Success, ModelUsage: map[string]ModelUsage{"m": {CostUSD: math.Inf(1)}}}, "modelUsage.m.costUSD", errNotFinite},
		{&Result{PermissionDenials: []PermissionDenial{{}, {ToolInput: bad}}}, "permission_denials[1].tool_input", nil},
		{&Result{Usage: &Usage{Iterations: bad}}, "usage.iterations", nil},
		{&TranscriptMirror{Entries: []json.RawMessage{bad}}, "entries[0]", nil},
	} {
		dst := []byte("kept")
		got, err := Append(dst, c.m)
		var ee *EncodeError
		if !errors.As(err, &ee) || string(got) != "kept" {
			t.Errorf("%T: got %q, %v", c.m, got, err)
			continue
		}
		if ee.Field != c.field || !strings.Contains(err.Error(), c.field) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%T: got %v, field %q, want field %q", c.m, err, ee.Field, c.field)
		}
		if got, err := Marshal(c.m); got != nil || err == nil {
			t.Errorf("%T: Marshal gives %q, %v", c.m, got, err)
		}
	}
}
