package rawjson

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// WholeText returns the JSON value input with U+FFFD for the escapes of lone
// surrogates, which are no text (K-466). Without any it returns input itself.
func WholeText(input []byte) []byte {
	if !bytes.Contains(input, []byte(`\ud`)) && !bytes.Contains(input, []byte(`\uD`)) {
		return input
	}
	surrogate := func(i int) (r rune, ok bool) {
		if i+6 > len(input) || input[i] != '\\' || input[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(input[i+2:i+6]), 16, 16)
		return rune(n), err == nil && utf16.IsSurrogate(rune(n))
	}
	out := make([]byte, 0, len(input))
	changed := false
	for i := 0; i < len(input); {
		if input[i] != '\\' {
			out = append(out, input[i])
			i++
			continue
		}
		first, ok := surrogate(i)
		if !ok {
			n := min(2, len(input)-i) // an escape of another kind
			out = append(out, input[i:i+n]...)
			i += n
			continue
		}
		if second, ok := surrogate(i + 6); ok && utf16.DecodeRune(first, second) != unicode.ReplacementChar {
			out = append(out, input[i:i+12]...)
			i += 12
			continue
		}
		out = append(out, "\uFFFD"...)
		changed = true
		i += 6
	}
	if !changed {
		return input
	}
	return out
}
