package builtin

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/apiblock"
	"github.com/turnwright/turnwright/internal/conform"
)

// noise is a picture that does not compress, with a red corner at its top left.
func noise(w, h int) *image.RGBA {
	rnd := rand.New(rand.NewPCG(1, 2))
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(rnd.Uint32())
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	for y := range h / 4 {
		for x := range w / 4 {
			copy(m.Pix[m.PixOffset(x, y):], []byte{255, 0, 0, 255})
		}
	}
	return m
}

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// turned adds an EXIF orientation to a JPEG.
func turned(data []byte, orientation byte) []byte {
	exif := append([]byte("Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"), orientation, 0, 0, 0, 0, 0, 0)
	app := binary.BigEndian.AppendUint16([]byte{0xFF, 0xE1}, uint16(len(exif)+2))
	return append(append(append([]byte{0xFF, 0xD8}, app...), exif...), data[2:]...)
}

func isRed(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	return r > 0xC000 && g < 0x4000 && b < 0x4000
}

func TestImageFits(t *testing.T) {
	conform.Covers(t, "T-53", "B-110")
	var anim bytes.Buffer
	if err := gif.EncodeAll(&anim, &gif.GIF{Image: []*image.Paletted{
		image.NewPaletted(image.Rect(0, 0, 10, 10), color.Palette{color.Black}), image.NewPaletted(image.Rect(0, 0, 10, 10), color.Palette{color.White}),
	}, Delay: []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	small := pngOf(t, noise(100, 80))
	for _, test := range []struct {
		name string
		data []byte
		typ  string
		w, h int // as shown
		kept bool
	}{
		{"small", small, "image/png", 100, 80, true},
		{"animation", anim.Bytes(), "image/gif", 10, 10, true},
		{"heavy tail", append(bytes.Clone(small), make([]byte, 6<<20)...), "image/jpeg", 100, 80, false},
		{"heavy", pngOf(t, noise(450, 420)), "image/jpeg", 450, 420, false},
		{"wide", pngOf(t, image.NewGray(image.Rect(0, 0, 9000, 10))), "image/png", 2000, 2, false},
		{"tall", pngOf(t, image.NewGray(image.Rect(0, 0, 1, 9000))), "image/png", 1, 2000, false},
		{"wide and heavy", pngOf(t, noise(2100, 105)), "image/jpeg", 2000, 100, false},
		{"photo", jpegOf(t, noise(2500, 100)), "image/jpeg", 2000, 80, false},
		{"photo on its side", turned(jpegOf(t, noise(2500, 100)), 6), "image/jpeg", 80, 2000, false},
		{"heavy photo on its side", turned(jpegOf(t, noise(600, 500)), 8), "image/jpeg", 500, 600, false},
		{"light photo on its side", turned(jpegOf(t, noise(90, 70)), 8), "image/jpeg", 90, 70, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := fitImage(apiblock.ImageType(test.data), test.data)
			if err != nil {
				t.Fatal(err)
			}
			if p.typ != test.typ || p.toWidth != test.w || p.toHeight != test.h || bytes.Equal(p.data, test.data) != test.kept {
				t.Errorf("%s %d by %d, %d bytes of %d", p.typ, p.toWidth, p.toHeight, len(p.data), len(test.data))
			}
			m, err := decodeImage(p.typ, p.data)
			if err != nil || m.Bounds().Size() != image.Pt(test.w, test.h) || apiblock.ImageType(p.data) != p.typ || len(p.data) > maxImageBytes {
				t.Errorf("%v, %v", m.Bounds(), err)
			}
		})
	}
}

// TestImageTurns shows a photo upright, whatever way the camera was held.
func TestImageTurns(t *testing.T) {
	conform.Covers(t, "T-53")
	photo := jpegOf(t, noise(600, 500))
	if len(photo) <= maxPlainImage {
		t.Fatalf("%d bytes are shown as they are", len(photo))
	}
	for o, corner := range map[byte][2]int{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}} {
		p, err := fitImage("image/jpeg", turned(photo, o))
		if err != nil {
			t.Fatal(err)
		}
		m, err := jpeg.Decode(bytes.NewReader(p.data))
		if err != nil {
			t.Fatal(err)
		}
		size := m.Bounds().Size()
		if wide := size.X > size.Y; wide != (o < 5) {
			t.Errorf("orientation %d: %v", o, size)
		}
		for x := range 2 {
			for y := range 2 {
				at := m.At(20+x*(size.X-40), 20+y*(size.Y-40))
				if want := corner == [2]int{x, y}; isRed(at) != want {
					t.Errorf("orientation %d: corner %d,%d is %v", o, x, y, at)
				}
			}
		}
	}
}

func TestReadScaledImage(t *testing.T) {
	conform.Covers(t, "T-41", "T-53")
	s := newSession(t)
	r, err := s.call("Read", in{"file_path": s.write("wide.png", string(pngOf(t, image.NewGray(image.Rect(0, 0, 4000, 100)))))})
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		File struct {
			OriginalSize int
			Dimensions   json.RawMessage
		}
	}
	if err := json.Unmarshal(r.Structured, &out); err != nil || string(out.File.Dimensions) != `{"originalWidth":4000,"originalHeight":100,"displayWidth":2000,"displayHeight":50}` {
		t.Errorf("dimensions %s, %v", out.File.Dimensions, err)
	}
	if len(r.Content) != 2 || !strings.Contains(r.Content[1].Text(), "4000 by 100") || !strings.Contains(r.Content[1].Text(), "2000 by 50") {
		t.Errorf("%d blocks", len(r.Content))
	}
}

// TestImageIsRead: an image that was shown may be overwritten, and not when it
// has changed since.
func TestImageIsRead(t *testing.T) {
	conform.Covers(t, "T-57")
	s := newSession(t)
	data := string(pngOf(t, noise(9, 7)))
	path := s.write("a.png", data)
	s.fails("Write", file(path, "text"), "has not been read")
	if _, err := s.call("Read", in{"file_path": path}); err != nil {
		t.Fatal(err)
	}
	s.text("Write", file(path, "text"))
	path = s.write("b.png", data)
	if _, err := s.call("Read", in{"file_path": path}); err != nil {
		t.Fatal(err)
	}
	s.write("b.png", data+"more")
	s.fails("Write", file(path, "text"), "has changed")
}

// TestImageFileTooLarge: an image is not taken into memory whatever its size,
// and one that is cut off there is not shown.
func TestImageFileTooLarge(t *testing.T) {
	conform.Covers(t, "B-110")
	small := pngOf(t, noise(9, 7))
	c := &counter{r: io.MultiReader(bytes.NewReader(small), zeros{})} // without end
	r, err := readImage(c, "big.png", "image/png")
	if err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("%v, %v", r, err)
	}
	if c.n != maxImageFile+1 {
		t.Errorf("read %d bytes", c.n)
	}
}

// zeros reads as zero bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func FuzzImage(f *testing.F) {
	f.Add(pngOf(f, noise(9, 7)))
	f.Add(turned(jpegOf(f, noise(9, 7)), 6))
	f.Add(pngOf(f, image.NewGray(image.Rect(0, 0, 2100, 2))))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f" + strings.Repeat("\x00", 30)))
	f.Fuzz(func(t *testing.T, data []byte) {
		typ := apiblock.ImageType(data)
		if typ == "" {
			return
		}
		if w, h, err := imageSize(typ, data); err == nil && h > 0 && w > 1<<18/h {
			return // would only be slow
		}
		p, err := fitImage(typ, data)
		if err != nil {
			_ = fmt.Sprint(err)
			return
		}
		if len(p.data) > maxImageBytes || apiblock.ImageType(p.data) != p.typ || p.toWidth > maxImagePixels || p.toHeight > maxImagePixels {
			t.Errorf("%s %d by %d, %d bytes", p.typ, p.toWidth, p.toHeight, len(p.data))
		}
	})
}
