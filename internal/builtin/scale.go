package builtin

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// scaleDown returns img with at most side pixels on its longer side. It halves
// the size as often as it can, which needs little memory and loses no pixel's
// share, and then takes the last step.
func scaleDown(img image.Image, side int) image.Image {
	size := img.Bounds().Size()
	to := func(w, h int) {
		dst := image.NewRGBA(image.Rect(0, 0, max(1, w), max(1, h)))
		draw.ApproxBiLinear.Scale(dst, dst.Bounds(), img, img.Bounds(), draw.Src, nil)
		img = dst
	}
	final := size
	if size.X >= size.Y {
		final.X, final.Y = side, (size.Y*side+size.X/2)/size.X
	} else {
		final.X, final.Y = (size.X*side+size.Y/2)/size.Y, side
	}
	for max(size.X, size.Y) >= 2*side {
		size = image.Pt(max(1, size.X/2), max(1, size.Y/2))
		to(size.X, size.Y)
	}
	to(final.X, final.Y)
	return img
}

// encode makes img the picture that is shown. What is not a JPEG is encoded
// without loss first; what is too large for that becomes a JPEG of the same
// size. The encoding that the picture has already, if any, is kept where the
// new one is not smaller.
func (p *picture) encode(img image.Image, orientation int) error {
	var b bytes.Buffer
	if p.typ != "image/jpeg" && p.data == nil {
		if err := png.Encode(&b, img); err != nil {
			return err
		}
		p.set("image/png", b.Bytes(), img)
		if b.Len() <= maxPlainImage {
			return nil
		}
	}
	flat := image.NewRGBA(image.Rectangle{Max: img.Bounds().Size()})
	draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
	if p.typ == "image/jpeg" && orientation > 1 {
		flat = upright(flat, orientation)
	}
	for _, quality := range []int{85, 60, 30} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, flat, &jpeg.Options{Quality: quality}); err != nil {
			return err
		}
		if p.data == nil || b.Len() < len(p.data) {
			p.set("image/jpeg", b.Bytes(), flat)
		}
		if len(p.data) <= maxImageBytes {
			break
		}
	}
	return nil
}

func (p *picture) set(typ string, data []byte, img image.Image) {
	size := img.Bounds().Size()
	p.typ, p.data, p.toWidth, p.toHeight = typ, data, size.X, size.Y
}

// exifOrientation reads how a JPEG has to be turned to stand upright, 1 (not
// at all) to 8: a new encoding has no place for the tag that says it.
func exifOrientation(data []byte) int {
	for at := 2; at+4 <= len(data) && data[at] == 0xFF; {
		marker, size := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == 0xDA || size < 2 || at+2+size > len(data) {
			break // the picture itself begins, or the file is odd
		}
		if tiff, ok := bytes.CutPrefix(data[at+4:at+2+size], []byte("Exif\x00\x00")); marker == 0xE1 && ok {
			return tiffOrientation(tiff)
		}
		at += 2 + size
	}
	return 1
}

func tiffOrientation(b []byte) int {
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(b[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 1
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			break
		}
		if order.Uint16(entries) == 0x0112 {
			if v := int(order.Uint16(entries[8:])); v >= 1 && v <= 8 {
				return v
			}
			break
		}
		entries = entries[12:]
	}
	return 1
}

// upright turns and mirrors img, which begins at 0,0, as an EXIF orientation
// says.
func upright(img *image.RGBA, orientation int) *image.RGBA {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	size := image.Pt(w, h)
	if orientation >= 5 {
		size = image.Pt(h, w)
	}
	dst := image.NewRGBA(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			sx, sy := x, y
			switch orientation {
			case 2:
				sx = w - 1 - x
			case 3:
				sx, sy = w-1-x, h-1-y
			case 4:
				sy = h - 1 - y
			case 5:
				sx, sy = y, x
			case 6:
				sx, sy = y, h-1-x
			case 7:
				sx, sy = w-1-y, h-1-x
			case 8:
				sx, sy = w-1-y, x
			}
			to, from := dst.PixOffset(x, y), img.PixOffset(sx, sy)
			copy(dst.Pix[to:to+4], img.Pix[from:from+4])
		}
	}
	return dst
}
