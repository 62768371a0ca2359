package message

import (
	"bytes"
	"encoding/json"
	"iter"
)

// The functions of this file walk JSON that is known to be valid. Unlike
// encoding/json they compare keys exactly: "Type" is an unknown key, not "type".

// members yields the keys and values of the object obj in order. Values have
// no white space around them.
func members(obj []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		i := skipSpace(obj, 0) + 1 // the brace
		for {
			i = skipSpace(obj, i)
			switch obj[i] {
			case '}':
				return
			case ',':
				i++
				continue
			}
			end := skipValue(obj, i)
			key := unquote(obj[i:end])
			i = skipSpace(obj, end) + 1 // the colon
			i = skipSpace(obj, i)
			end = skipValue(obj, i)
			if !yield(key, obj[i:end:end]) {
				return
			}
			i = end
		}
	}
}

// elements yields the values of the array arr in order.
func elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(arr, 0) + 1 // the bracket
		for {
			i = skipSpace(arr, i)
			switch arr[i] {
			case ']':
				return
			case ',':
				i++
				continue
			}
			end := skipValue(arr, i)
			if !yield(arr[i:end:end]) {
				return
			}
			i = end
		}
	}
}

// member returns the value of key in the object obj, nil if there is none. Of
// several the last counts.
func member(obj []byte, key string) []byte {
	var found []byte
	for k, v := range members(obj) {
		if k == key {
			found = v
		}
	}
	return found
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

func isNull(raw []byte) bool { return string(raw) == "null" }

// unquote returns the string that the JSON string raw stands for.
func unquote(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	simple := true
	for _, c := range inner {
		if c == '\\' || c >= 0x80 {
			simple = false
			break
		}
	}
	if simple {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(raw, &s) // valid by the contract of this file
	return s
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	if n := bytes.IndexAny(b[i:], ",]} \t\r\n"); n >= 0 {
		return i + n
	}
	return len(b)
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
