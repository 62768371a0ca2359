package file

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/turnwright/turnwright/session/internal/place"
)

// maxProjectName is how many characters of a converted name are kept (K-285).
const maxProjectName = 200

// ProjectName returns the name of the project directory for a working
// directory: absolute, symbolic links resolved as far as the path exists,
// Unicode NFC, then every character (code point) that is no ASCII letter or
// digit replaced by "-". A name of more than 200 characters is cut to 200 and
// gets "-" and a hash of the whole path (K-283 to K-286).
func ProjectName(dir string) string { return convertName(place.Canonical(dir)) }

// convertName converts by code points (K-284).
func convertName(path string) string {
	var units []rune
	for _, c := range path {
		units = append(units, c)
	}
	return convertUnits(units)
}

// convertUTF16 is the name that a JavaScript client makes: characters beyond
// the basic plane count twice. It is only looked up, never written (K-284).
func convertUTF16(path string) string {
	var units []rune
	for _, u := range utf16.Encode([]rune(path)) {
		units = append(units, rune(u))
	}
	return convertUnits(units)
}

func convertUnits(units []rune) string {
	var b strings.Builder
	for _, c := range units {
		if !isAlnum(c) {
			c = '-'
		}
		b.WriteRune(c)
	}
	name := b.String()
	if len(name) <= maxProjectName {
		return name
	}
	return name[:maxProjectName] + "-" + hash(units)
}

// hash is the string hash of K-286, in base 36.
func hash(units []rune) string {
	var h int32
	for _, c := range units {
		h = 31*h + c
	}
	abs := int64(h) // wider, for the one value whose negation does not fit
	if abs < 0 {
		abs = -abs
	}
	return strconv.FormatInt(abs, 36)
}

func isAlnum(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
