package rawjson_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/turnwright/turnwright/internal/rawjson"
)

var seeds = []string{
	`{}`, ` { "a" : 1 , "b":[ {"c":"]}"} , null ] } `, `{"a":1,"a":2,"A":3}`, `[]`, `[1, "x,y", [], {}]`, `""`,
	`"plain"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\uD83D\uDE00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`,
	`"\ude00\ud83d"`, "\"\xff\\n\"", "\"\u00e9\\u0041\"", `{"\u0061":1}`, "{\"\xff\":1}", `-1.5e-9`, `true`, `null`, `{"a":[[[{"b":{}}]]]}`,
}

// FuzzScan: of any valid JSON the functions say what encoding/json says.
func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		raw = bytes.Trim(raw, " \t\r\n")
		kept := bytes.Clone(raw)
		switch raw[0] {
		case '{':
			var want map[string]json.RawMessage
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			got := map[string]json.RawMessage{}
			for k, v := range rawjson.Members(raw) {
				got[string(k)] = json.RawMessage(v)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("members of %q: %q, want %q", raw, got, want)
			}
			for k, v := range want {
				if m := rawjson.Member(raw, k); !bytes.Equal(m, v) {
					t.Fatalf("member %q of %q: %q, want %q", k, raw, m, v)
				}
			}
		case '[':
			var want []json.RawMessage
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			got := []json.RawMessage{}
			for v := range rawjson.Elements(raw) {
				got = append(got, v)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("elements of %q: %q, want %q", raw, got, want)
			}
		case '"':
			var want string
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if got := rawjson.Unquote(raw); got != want {
				t.Fatalf("unquote of %q: %q, want %q", raw, got, want)
			}
		}
		if !bytes.Equal(raw, kept) {
			t.Fatalf("%q was changed to %q", kept, raw)
		}
	})
}

// FuzzAppend: strings and numbers are written so that encoding/json reads the
// same back, and numbers as it writes them itself.
func FuzzAppend(f *testing.F) {
	f.Add("", 0.0)
	f.Add("a\"\\\b\f\n\r\t\x01\u0085\u2028\u2029\xff é <&>", 1e-7)
	f.Add("x", 1e21)
	f.Fuzz(func(t *testing.T, s string, n float64) {
		var got, want string
		raw := rawjson.AppendString(nil, s)
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if want = string([]rune(s)); got != want { // invalid bytes become U+FFFD
			t.Fatalf("%q reads %q, want %q", raw, got, want)
		}
		num, ok := rawjson.AppendFloat(nil, n)
		if ok == (math.IsNaN(n) || math.IsInf(n, 0)) {
			t.Fatalf("%v: ok is %v", n, ok)
		}
		if own, err := json.Marshal(n); ok && (err != nil || !bytes.Equal(num, own)) {
			t.Fatalf("%v is written %s, want %s (%v)", n, num, own, err)
		}
	})
}

// FuzzWhole: without the halves of surrogate pairs a value is what encoding/json
// reads in it, and nothing changes twice.
func FuzzWhole(f *testing.F) {
	for _, s := range []string{`"a\ud800b"`, `"\ud83d\ude00"`, `"\\ud800"`, `"\\\ud800\u0041"`, `{"\udc00":["\ud800\ud800\udc00"]}`, `"\uD800"`, `"\ud800`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		whole := rawjson.WholeText(raw)
		var want, got any
		if json.Unmarshal(raw, &want) != nil {
			return // a number out of range
		}
		if err := json.Unmarshal(whole, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %q: %v", raw, whole, err)
		}
		if again := rawjson.WholeText(whole); !bytes.Equal(again, whole) {
			t.Errorf("%q, then %q", whole, again)
		}
	})
}
