package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif"  // decodes dimensions
	_ "image/jpeg" // decodes dimensions
	_ "image/png"  // decodes dimensions
	"io"

	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
)

const (
	maxImageBase64 = 5 << 20 // the API's limit on an image, as base64
	maxImageBytes  = maxImageBase64 / 4 * 3
	maxImagePixels = 8000 // on each side
)

// imageType returns the media type of an image that the API takes, by its
// first bytes (T-52), and "" for everything else.
func imageType(head []byte) string {
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

// readImage returns the image as it is. One that the API would refuse is an
// error, so that it never stands in the history (B-110); scaling it down comes
// with issue B (T-53).
func readImage(f io.Reader, path, typ string, head []byte) (*tool.Result, error) {
	data, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head), f), maxImageBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	case len(data) > maxImageBytes:
		return nil, fmt.Errorf("%s is an image of more than %d bytes, which is too large to be shown; make a smaller copy with a shell command and read that", path, maxImageBytes)
	}
	width, height, err := imageSize(typ, data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s looks like %s but is damaged: %w", path, typ, err)
	case width > maxImagePixels || height > maxImagePixels:
		return nil, fmt.Errorf("%s is an image of %d by %d pixels; at most %d on each side can be shown; make a smaller copy with a shell command and read that", path, width, height, maxImagePixels)
	case width == 0 || height == 0:
		return nil, fmt.Errorf("%s is an image without pixels (%d by %d)", path, width, height)
	}
	encoded := base64.StdEncoding.EncodeToString(data)
	type dimensions struct {
		OriginalWidth  int `json:"originalWidth"`
		OriginalHeight int `json:"originalHeight"`
	}
	type file struct {
		Base64       string     `json:"base64"`
		Type         string     `json:"type"`
		OriginalSize int        `json:"originalSize"`
		Dimensions   dimensions `json:"dimensions"`
	}
	structured, err := message.Encode(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"image", file{encoded, typ, len(data), dimensions{width, height}}})
	if err != nil {
		return nil, err
	}
	return &tool.Result{Content: []message.Block{message.NewImage(typ, encoded)}, Structured: structured}, nil
}

func imageSize(typ string, data []byte) (width, height int, err error) {
	if typ == "image/webp" {
		return webpSize(data)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

// webpSize reads the size from the first chunk of a WebP file, of which there
// are three kinds: lossy, lossless and extended.
func webpSize(data []byte) (width, height int, err error) {
	if len(data) < 30 {
		return 0, 0, io.ErrUnexpectedEOF
	}
	switch body := data[20:]; string(data[12:16]) {
	case "VP8 ":
		if body[3] != 0x9D || body[4] != 0x01 || body[5] != 0x2A {
			return 0, 0, fmt.Errorf("no start code in its VP8 chunk")
		}
		return int(binary.LittleEndian.Uint16(body[6:]) & 0x3FFF), int(binary.LittleEndian.Uint16(body[8:]) & 0x3FFF), nil
	case "VP8L":
		if body[0] != 0x2F {
			return 0, 0, fmt.Errorf("no signature in its VP8L chunk")
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		return int(bits&0x3FFF) + 1, int(bits>>14&0x3FFF) + 1, nil
	case "VP8X":
		u24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return u24(body[4:]) + 1, u24(body[7:]) + 1, nil
	}
	return 0, 0, fmt.Errorf("unknown chunk %q", data[12:16])
}
