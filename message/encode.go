package message

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// Encode returns v in the canonical form: compact JSON, plain UTF-8 without
// HTML escapes, U+0085, U+2028 and U+2029 escaped (K-302), invalid UTF-8
// replaced by U+FFFD, no trailing newline.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	// A MarshalJSON or json.RawMessage inside v may bring in bytes that
	// encoding/json does not look at.
	return escapeBreaks(validUTF8(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))), nil
}

// Canonical returns the JSON text raw in the canonical form without changing
// its meaning: key order, number forms and unknown keys are kept. The result
// shares no memory with raw.
func Canonical(raw []byte) ([]byte, error) {
	return appendCanonical(make([]byte, 0, len(raw)), raw)
}

// appendCanonical appends the canonical form of raw to dst. dst is unchanged
// up to its length when it fails.
func appendCanonical(dst, raw []byte) ([]byte, error) {
	raw = escapeBreaks(validUTF8(raw))
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, raw); err != nil {
		return dst, err
	}
	return buf.Bytes(), nil
}

// validUTF8 replaces every invalid byte by U+FFFD, as decoders do, so that the
// text reads the same before and after.
func validUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return []byte(string([]rune(string(b))))
}

// escapeBreaks escapes the three line breaks that some readers split lines at.
// In valid JSON they can only stand inside strings.
func escapeBreaks(b []byte) []byte {
	if !bytes.Contains(b, []byte("\u0085")) && !bytes.Contains(b, []byte("\u2028")) && !bytes.Contains(b, []byte("\u2029")) {
		return b
	}
	b = bytes.ReplaceAll(b, []byte("\u0085"), []byte(`\u0085`))
	b = bytes.ReplaceAll(b, []byte("\u2028"), []byte(`\u2028`))
	return bytes.ReplaceAll(b, []byte("\u2029"), []byte(`\u2029`))
}

const hexDigits = "0123456789abcdef"

// plain holds the bytes that stand for themselves in a JSON string.
var plain = func() (p [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		p[c] = c != '"' && c != '\\'
	}
	return p
}()

// appendString appends s as a JSON string: the bytes that Encode gives, without
// its detours.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		var escape string
		switch {
		case r == utf8.RuneError && n == 1:
			escape = `\ufffd`
		case r == '\u0085':
			escape = `\u0085`
		case r == '\u2028':
			escape = `\u2028`
		case r == '\u2029':
			escape = `\u2029`
		default:
			i += n
			continue
		}
		dst = append(append(dst, s[start:i]...), escape...)
		i += n
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// appendFloat appends f as encoding/json writes numbers; ok is false for the
// values that JSON has no form for.
func appendFloat(dst []byte, f float64) (_ []byte, ok bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, false
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst = append(dst[:n-2], dst[n-1]) // e-09 to e-9
	}
	return dst, true
}
