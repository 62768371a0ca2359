package history

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/turnwright/turnwright/message"
)

// FuzzScan compares the scanner with encoding/json on valid JSON, and wants no
// panic on anything else.
func FuzzScan(f *testing.F) {
	for _, s := range oddBlocks {
		f.Add([]byte(s))
	}
	for _, s := range []string{`{`, `{"`, `{"a`, `{"a":`, `{"a":"\`, `{"a":1,`, `[[],{}`, `{"a":[1,"]",{"b":"}"}],"c":-1.5e3,"a":null}`, `{"\"":"\\"}`, `[]]`, `{"a"}`, `{"a":}`, `[,]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for range members(data) {
		}
		for range elements(data) {
		}
		without(data, "a")
		raw, err := message.Canonical(data)
		if err != nil {
			return
		}
		var obj map[string]json.RawMessage
		if json.Unmarshal(raw, &obj) == nil && len(obj) > 0 {
			for name, want := range obj {
				if got := member(raw, name); !bytes.Equal(got, want) {
					t.Fatalf("member %q of %s: got %s, want %s", name, raw, got, want)
				}
				rest := without(raw, name)
				var left map[string]json.RawMessage
				if err := json.Unmarshal(rest, &left); err != nil {
					t.Fatalf("without %q: %s: %v", name, rest, err)
				}
				if _, still := left[name]; still || len(left) != len(obj)-1 {
					t.Fatalf("without %q of %s: %s", name, raw, rest)
				}
			}
			if without(raw, "no such member") != nil {
				t.Fatal("a change without a member")
			}
		}
		var arr []json.RawMessage
		if json.Unmarshal(raw, &arr) == nil {
			i := 0
			for e := range elements(raw) {
				if i >= len(arr) || !bytes.Equal(e, arr[i]) {
					t.Fatalf("element %d of %s: %s", i, raw, e)
				}
				i++
			}
			if i != len(arr) {
				t.Fatalf("%d elements of %s, want %d", i, raw, len(arr))
			}
		}
	})
}
