package apiblock

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turnwright/turnwright/internal/rawjson"
	"github.com/turnwright/turnwright/message"
)

// MaxImage is the API's limit on one image, in characters of base64.
const MaxImage = 5 << 20

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// ImageType returns the media type of an image that the API takes, by its first
// twelve bytes (T-52), and "" for everything else.
func ImageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte{0xFF, 0xD8, 0xFF}):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// image returns an image block whose media type is that of its data, or says why
// the API could not read the image.
func image(b message.Block) (message.Block, string) {
	source, typ, why := sourceOf(b, "base64", "url", "file")
	if why != "" || typ != "base64" {
		return b, why
	}
	media := rawjson.Member(source, "media_type")
	if !rawjson.IsString(media) || !slices.Contains(imageTypes, rawjson.Unquote(media)) {
		return b, "its media type " + shown(media) + " is not one of " + strings.Join(imageTypes, ", ")
	}
	data, why := base64Fault(source)
	if why != "" {
		return b, why
	}
	if len(data) > MaxImage {
		return b, fmt.Sprintf("its %d bytes of base64 are more than the %d that the API takes", len(data), MaxImage)
	}
	head, _ := base64.StdEncoding.DecodeString(data[:min(len(data), 16)])
	switch got := ImageType(head); got {
	case "":
		return b, "its data is no image of a type that the API reads"
	case rawjson.Unquote(media):
		return b, ""
	default:
		typed := func(key string, value []byte) []byte {
			if key == "media_type" {
				return rawjson.AppendString(nil, got)
			}
			return value
		}
		return rebuilt(b, func(key string, value []byte) []byte {
			if key == "source" {
				return object(source, typed)
			}
			return value
		}), ""
	}
}

func documentFault(b message.Block) string {
	source, typ, why := sourceOf(b, "base64", "text", "content", "url", "file")
	if why != "" {
		return why
	}
	media := ""
	if m := rawjson.Member(source, "media_type"); rawjson.IsString(m) {
		media = rawjson.Unquote(m)
	}
	switch typ {
	case "base64":
		if media != "application/pdf" {
			return "its media type " + shown(rawjson.Member(source, "media_type")) + " is not application/pdf"
		}
		_, why = base64Fault(source)
		return why
	case "text":
		if media != "text/plain" {
			return "its media type " + shown(rawjson.Member(source, "media_type")) + " is not text/plain"
		}
		return stringFault(source, "data")
	case "content":
		if text := rawjson.Member(source, "content"); rawjson.IsString(text) {
			return stringFault(source, "content")
		}
		return contentFault(source, inDocument)
	}
	return ""
}

// sourceOf returns the source of a block and its type, which is one of types.
func sourceOf(b message.Block, types ...string) (source []byte, typ, why string) {
	source = rawjson.Member(b.Raw(), "source")
	if !rawjson.IsObject(source) {
		return nil, "", "it has no source"
	}
	t := rawjson.Member(source, "type")
	if rawjson.IsString(t) {
		typ = rawjson.Unquote(t)
	}
	if !slices.Contains(types, typ) {
		return nil, "", "the type " + shown(t) + " of its source is not one of " + strings.Join(types, ", ")
	}
	if key := map[string]string{"url": "url", "file": "file_id"}[typ]; key != "" {
		why = stringFault(source, key)
	}
	return source, typ, why
}

// base64Fault returns the data of a source, or says why it is no base64 as the
// API reads it: padded, without line breaks.
func base64Fault(source []byte) (data, why string) {
	if why := stringFault(source, "data"); why != "" {
		return "", "its " + why
	}
	data = rawjson.Unquote(rawjson.Member(source, "data"))
	if strings.ContainsAny(data, "\r\n") || !isBase64(data) {
		return "", "its data is not base64"
	}
	return data, ""
}

// isBase64 decodes piece by piece, for data is large.
func isBase64(data string) bool {
	const piece = 4096 // a multiple of four
	var buf [piece / 4 * 3]byte
	for len(data) > piece {
		if n, err := base64.StdEncoding.Strict().Decode(buf[:], []byte(data[:piece])); err != nil || n < len(buf) {
			return false
		}
		data = data[piece:]
	}
	_, err := base64.StdEncoding.Strict().Decode(buf[:], []byte(data))
	return err == nil
}

// shown is a value of JSON in a text.
func shown(raw []byte) string {
	switch {
	case raw == nil:
		return "(none)"
	case rawjson.IsString(raw):
		return strconv.Quote(clip(rawjson.Unquote(raw)))
	}
	return clip(string(raw))
}
