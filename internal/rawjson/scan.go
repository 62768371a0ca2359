package rawjson

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// Members yields the keys, decoded, and the values of the object obj in order.
// Values have no white space around them. Both may share obj's memory.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
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
			key := unquoted(obj[i:end])
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

// Elements yields the values of the array arr in order.
func Elements(arr []byte) iter.Seq[[]byte] {
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

// Member returns the value of key in the object obj, nil if there is none. Of
// several the last counts.
func Member(obj []byte, key string) []byte {
	var found []byte
	for k, v := range Members(obj) {
		if string(k) == key {
			found = v
		}
	}
	return found
}

// IsObject reports whether raw begins as an object does.
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// IsNull reports whether raw is null.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// IsString reports whether raw begins as a string does.
func IsString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// Unquote returns the string that the JSON string raw stands for.
func Unquote(raw []byte) string { return string(unquoted(raw)) }

// unquoted returns what the JSON string raw stands for; it may share raw's
// memory.
func unquoted(raw []byte) []byte {
	inner := raw[1 : len(raw)-1 : len(raw)-1]
	escape, ascii := -1, true
	for i, c := range inner {
		if c == '\\' && escape < 0 {
			escape = i
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	switch {
	case !ascii && !utf8.Valid(inner):
		var s string
		_ = json.Unmarshal(raw, &s) // valid by the contract of this package
		return []byte(s)
	case escape < 0:
		return inner
	}
	return unescape(inner, escape)
}

// unescape decodes the escapes in s, the first of which is at i.
func unescape(s []byte, i int) []byte {
	out := append(make([]byte, 0, len(s)), s[:i]...)
	for i < len(s) {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		c := s[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(s[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				second := rune(utf8.RuneError)
				if i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
					second = hex4(s[i+2:])
				}
				if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		out = append(out, c)
	}
	return out
}

func hex4(s []byte) (r rune) {
	for _, c := range s[:4] {
		switch {
		case c <= '9':
			c -= '0'
		case c <= 'F':
			c -= 'A' - 10
		default:
			c -= 'a' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
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
