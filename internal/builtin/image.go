package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/turnwright/turnwright/internal/apiblock"
	"github.com/turnwright/turnwright/message"
	"github.com/turnwright/turnwright/tool"
	"golang.org/x/image/webp"
)

const (
	maxImageBytes  = apiblock.MaxImage / 4 * 3
	maxImagePixels = 8000 // on each side: the API's limit
	// maxImageSide is what is sent at most on each side: the API's limit on the
	// images of a request that has many of them, for an image stays in the
	// history (T-53).
	maxImageSide = 2000
	// maxPlainImage is the size up to which an image is sent as it is; a larger
	// one becomes a JPEG (T-53).
	maxPlainImage = 500_000
	// maxImageFile and maxDecodePixels bound the memory for scaling down.
	maxImageFile    = 64 << 20
	maxDecodePixels = 50_000_000
)

// picture is an image as it is shown to the model.
type picture struct {
	typ               string // media type
	data              []byte
	width, height     int // of the original
	toWidth, toHeight int // as shown
}

func (p *picture) base64() string { return base64.StdEncoding.EncodeToString(p.data) }

func (p *picture) scaled() bool { return p.width != p.toWidth || p.height != p.toHeight }

// readImage returns the image, made smaller where that is needed. One that the
// API would refuse is an error, so that it never stands in the history (B-110).
func readImage(f io.Reader, path, typ string) (*tool.Result, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxImageFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	case len(data) > maxImageFile:
		return nil, fmt.Errorf("%s is an image of more than %d bytes, which is too large to be shown; make a smaller copy with a shell command and read that", path, maxImageFile)
	}
	p, err := fitImage(typ, data)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	type dimensions struct {
		OriginalWidth  int `json:"originalWidth"`
		OriginalHeight int `json:"originalHeight"`
		DisplayWidth   int `json:"displayWidth"`
		DisplayHeight  int `json:"displayHeight"`
	}
	type file struct {
		Base64       string     `json:"base64"`
		Type         string     `json:"type"`
		OriginalSize int        `json:"originalSize"`
		Dimensions   dimensions `json:"dimensions"`
	}
	encoded := p.base64()
	structured, err := message.Encode(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"image", file{encoded, p.typ, len(data), dimensions{p.width, p.height, p.toWidth, p.toHeight}}})
	if err != nil {
		return nil, err
	}
	content := []message.Block{message.NewImage(p.typ, encoded)}
	if p.scaled() {
		content = append(content, message.NewText(fmt.Sprintf("[The image has %d by %d pixels and is shown with %d by %d.]", p.width, p.height, p.toWidth, p.toHeight)))
	}
	return &tool.Result{Content: content, Structured: structured}, nil
}

// fitImage makes an image that the API takes of data. The error reads on after
// the name of the file.
func fitImage(typ string, data []byte) (*picture, error) {
	width, height, err := imageSize(typ, data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("looks like %s but is damaged: %w", typ, err)
	case width == 0 || height == 0:
		return nil, fmt.Errorf("is an image without pixels (%d by %d)", width, height)
	}
	p := &picture{typ: typ, data: data, width: width, height: height, toWidth: width, toHeight: height}
	tooLarge := func(why string) error {
		return fmt.Errorf("is an image of %d by %d pixels and %d bytes, too large to be shown and not to be scaled down%s; make a smaller copy with a shell command and read that", width, height, len(data), why)
	}
	if width > maxDecodePixels/height {
		return nil, tooLarge("")
	}
	img, err := decodeImage(typ, data)
	switch {
	case err == nil:
	case !unsupported(typ, err):
		return nil, fmt.Errorf("looks like %s but is damaged: %w", typ, err)
	case len(data) <= maxImageBytes && max(width, height) <= maxImagePixels:
		return p, nil // of a kind that is not known here, but may be to the API
	default:
		return nil, tooLarge(" (" + err.Error() + ")")
	}
	if max(width, height) > maxImageSide {
		img, p.data = scaleDown(img, maxImageSide), nil
	} else if len(data) <= maxPlainImage {
		return p, nil
	}
	if err := p.encode(img, exifOrientation(data)); err != nil {
		return nil, fmt.Errorf("cannot be scaled down: %w", err)
	}
	if len(p.data) > maxImageBytes {
		return nil, tooLarge("")
	}
	return p, nil
}

func imageSize(typ string, data []byte) (width, height int, err error) {
	if typ == "image/webp" {
		return webpSize(data)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

// decodeImage returns the picture, the first of an animation.
func decodeImage(typ string, data []byte) (image.Image, error) {
	r := bytes.NewReader(data)
	switch typ {
	case "image/png":
		return png.Decode(r)
	case "image/jpeg":
		return jpeg.Decode(r)
	case "image/gif":
		return gif.Decode(r)
	}
	return webp.Decode(r)
}

// unsupported reports whether err says that the decoder lacks something, and
// not that the image is damaged. That of WebP, which has no animations, does
// not tell the two apart.
func unsupported(typ string, err error) bool {
	switch err.(type) {
	case png.UnsupportedError, jpeg.UnsupportedError:
		return true
	}
	return typ == "image/webp"
}

// webpSize reads the size from the first chunk of a WebP file, of which there
// are three kinds: lossy, lossless and extended. The library's own reader of
// sizes refuses animations.
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
