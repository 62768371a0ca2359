package message

import (
	"bytes"
	"encoding/json"
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
