package agenttest

import "bytes"

// A small JSON walker. It reads the few facts that the server needs of every
// request (model, stream, turn) without decoding a body of perhaps megabytes.
// On text that is not JSON it finds nothing.

// members calls yield for each member of the object in data, key without quotes
// and escapes as written, until yield returns false.
func members(data []byte, yield func(key, value []byte) bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return
	}
	i = skipSpace(data, i+1)
	for i < len(data) && data[i] == '"' {
		end := skipValue(data, i)
		if end < 0 {
			return
		}
		key := data[i+1 : end-1]
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ':' {
			return
		}
		i = skipSpace(data, i+1)
		end = skipValue(data, i)
		if end < 0 || !yield(key, data[i:end]) {
			return
		}
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ',' {
			return
		}
		i = skipSpace(data, i+1)
	}
}

// elements calls yield for each element of the array in data.
func elements(data []byte, yield func(value []byte) bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return
	}
	i = skipSpace(data, i+1)
	for i < len(data) && data[i] != ']' {
		end := skipValue(data, i)
		if end < 0 || !yield(data[i:end]) {
			return
		}
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ',' {
			return
		}
		i = skipSpace(data, i+1)
	}
}

// member returns the value of one member, nil when there is none.
func member(data []byte, name string) (found []byte) {
	members(data, func(key, value []byte) bool {
		if string(key) != name {
			return true
		}
		found = value
		return false
	})
	return found
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i, or -1.
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		depth := 0
		for i < len(data) {
			switch data[i] {
			case '"':
				if i = skipString(data, i); i < 0 {
					return -1
				}
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
		return -1
	case '}', ']', ',', ':':
		return -1
	}
	for i < len(data) && bytes.IndexByte([]byte(",]} \n\r\t"), data[i]) < 0 {
		i++
	}
	return i
}

func skipString(data []byte, i int) int {
	for i++; i < len(data); {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return -1
		}
		end, slashes := i+n, 0
		for end-1-slashes >= i && data[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
	return -1
}
