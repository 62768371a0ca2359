package history

import (
	"bytes"
	"iter"

	"github.com/turnwright/turnwright/message"
)

// The functions here read the compact, valid JSON of a message.Block in place.
// Decoding would cost a copy of every tool output for each look at its id. On
// bytes that are not such JSON they stop early and never panic.

// members yields the members of the object obj: the key without quotes, as
// written, and the value's bytes.
func members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, val []byte) bool) {
		if len(obj) < 2 || obj[0] != '{' {
			return
		}
		for i := 1; i < len(obj) && obj[i] == '"'; {
			k := skipString(obj, i)
			if k+1 >= len(obj) || obj[k] != ':' {
				return
			}
			v := skipValue(obj, k+1)
			if !yield(obj[i+1:k-1], obj[k+1:v]) || v >= len(obj) || obj[v] != ',' {
				return
			}
			i = v + 1
		}
	}
}

// elements yields the values of the array arr.
func elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(arr) < 2 || arr[0] != '[' {
			return
		}
		for i := 1; i < len(arr) && arr[i] != ']'; {
			v := skipValue(arr, i)
			if v == i || !yield(arr[i:v]) || v >= len(arr) || arr[v] != ',' {
				return
			}
			i = v + 1
		}
	}
}

// skipString returns the index after the string that starts at b[i].
func skipString(b []byte, i int) int {
	for j := i + 1; j < len(b); j++ {
		n := bytes.IndexByte(b[j:], '"')
		if n < 0 {
			break
		}
		j += n
		odd := false
		for k := j - 1; k > i && b[k] == '\\'; k-- {
			odd = !odd
		}
		if !odd {
			return j + 1
		}
	}
	return len(b)
}

// skipValue returns the index after the value that starts at b[i].
func skipValue(b []byte, i int) int {
	if i < len(b) && b[i] == '"' {
		return skipString(b, i)
	}
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of what holds a number or literal
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(b)
}

// keyIs reports whether the key, as written, means name.
func keyIs(key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	if bytes.IndexByte(key, '\\') < 0 {
		return false
	}
	quoted := append(append([]byte{'"'}, key...), '"')
	s, ok := unquote(quoted)
	return ok && s == name
}

// member returns the value of the last member of that name, nil when there is none.
func member(obj []byte, name string) []byte {
	var found []byte
	for k, v := range members(obj) {
		if keyIs(k, name) {
			found = v
		}
	}
	return found
}

// unquote returns the string that the JSON value val is; ok is false when it
// is another kind of value.
func unquote(val []byte) (s string, ok bool) {
	if len(val) < 2 || val[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(val, '\\') < 0 {
		return string(val[1 : len(val)-1]), true
	}
	b, err := message.ParseBlock(append(append([]byte(`{"type":"text","text":`), val...), '}'))
	if err != nil {
		return "", false
	}
	return b.Text(), true
}

// without returns obj without its members of that name, nil when it has none.
func without(obj []byte, name string) []byte {
	var out []byte
	found, n := false, 0
	for k := range members(obj) {
		found = found || keyIs(k, name)
		n++
	}
	if !found {
		return nil
	}
	out = append(make([]byte, 0, len(obj)), '{')
	for k, v := range members(obj) {
		if keyIs(k, name) {
			continue
		}
		out = appendMember(out, k, v)
	}
	return append(out, '}')
}

// appendMember appends a member to the unfinished object obj.
func appendMember(obj, key, val []byte) []byte {
	if len(obj) > 1 {
		obj = append(obj, ',')
	}
	obj = append(append(obj, '"'), key...)
	return append(append(obj, `":`...), val...)
}
