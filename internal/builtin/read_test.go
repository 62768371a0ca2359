package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnwright/turnwright/internal/conform"
)

func TestReadSchema(t *testing.T) {
	conform.Covers(t, "T-40")
	var schema struct {
		Type       string
		Properties map[string]struct {
			Type        string
			Description string
			Minimum     *float64
		}
		Required             []string
		AdditionalProperties *bool
	}
	if err := json.Unmarshal(NewRead().Spec().InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Type != "object" || len(schema.Required) != 1 || schema.Required[0] != "file_path" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Errorf("schema %+v", schema)
	}
	want := map[string]string{"file_path": "string", "offset": "integer", "limit": "integer", "pages": "string"}
	for name, typ := range want {
		if p := schema.Properties[name]; p.Type != typ || p.Description == "" || (p.Minimum != nil) != (typ == "integer") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if len(schema.Properties) != len(want) {
		t.Errorf("fields %v", schema.Properties)
	}
	s := newSession(t)
	path := s.write("f.txt", "one\ntwo\nthree\n")
	if text := s.text("Read", in{"file_path": path, "offset": 2.0, "limit": 1.0}); !strings.HasPrefix(text, "     2\ttwo") || strings.Contains(text, "three") {
		t.Errorf("offset and limit: %q", text)
	}
	s.fails("Read", in{"offset": 1}, "file_path")
	s.fails("Read", in{"file_path": path, "offset": -1}, "offset")
	s.fails("Read", in{"file_path": path, "limit": 0}, "limit")
	s.fails("Read", in{"file_path": path, "limit": 1.5}, "limit")
	s.fails("Read", in{"file_path": path, "pages": 1.5}, "pages")
	s.fails("Read", in{"file_path": path, "lines": 1}, "lines")
}

type readOutput struct {
	Type string `json:"type"`
	File struct {
		FilePath            string `json:"filePath"`
		Content             string `json:"content"`
		NumLines            int    `json:"numLines"`
		StartLine           int    `json:"startLine"`
		TotalLines          int    `json:"totalLines"`
		TruncatedByTokenCap bool   `json:"truncatedByTokenCap"`
	} `json:"file"`
}

func (s *session) read(input in) (text string, out readOutput) {
	s.t.Helper()
	r, err := s.call("Read", input)
	if err != nil {
		s.t.Fatalf("Read %v: %v", input, err)
	}
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		s.t.Fatal(err)
	}
	return r.Content[0].Text(), out
}

func lines(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestReadText(t *testing.T) {
	conform.Covers(t, "T-41", "T-42", "T-43", "T-49", "B-082", "B-083", "B-091")
	for _, test := range []struct {
		name, content string
		offset, limit any
		text          string
		file          string // content in the output
		num, start    int
		total         int
	}{
		{"plain", "a\nb\n", nil, nil, "     1\ta\n     2\tb", "a\nb\n", 2, 1, 2},
		{"no final newline", "a\nb", nil, nil, "     1\ta\n     2\tb", "a\nb", 2, 1, 2},
		{"empty", "", nil, nil, "The file %s exists and is empty.", "", 0, 1, 0},
		{"one newline", "\n", nil, nil, "     1\t", "\n", 1, 1, 1},
		{"blank lines", "\n\nx\n\n", nil, nil, "     1\t\n     2\t\n     3\tx\n     4\t", "\n\nx\n\n", 4, 1, 4},
		{"CR LF", "a\r\nb\r\n", nil, nil, "     1\ta\n     2\tb", "a\nb\n", 2, 1, 2},
		{"lone CR stays", "a\rb\n\rc\r", nil, nil, "     1\ta\rb\n     2\t\rc\r", "a\rb\n\rc\r", 2, 1, 2},
		{"CR CR LF", "a\r\r\nb", nil, nil, "     1\ta\r\n     2\tb", "a\r\nb", 2, 1, 2},
		{"byte-order mark", "\uFEFFé\n", nil, nil, "     1\té", "é\n", 1, 1, 1},
		{"only a mark", "\uFEFF", nil, nil, "The file %s exists and is empty.", "", 0, 1, 0},
		{"offset", lines(5), 4, nil, "     4\tline 4\n     5\tline 5", "line 4\nline 5\n", 2, 4, 5},
		{"limit", lines(5), nil, 2, "     1\tline 1\n     2\tline 2", "line 1\nline 2\n", 2, 1, 5},
		{"both", lines(5), 2, 2, "     2\tline 2\n     3\tline 3", "line 2\nline 3\n", 2, 2, 5},
		{"limit past the end", lines(3), 3, 100, "     3\tline 3", "line 3\n", 1, 3, 3},
		{"offset 0 is the start", lines(2), 0, nil, "     1\tline 1\n     2\tline 2", lines(2), 2, 1, 2},
		{"offset past the end", lines(200), 300, nil, "The file %s has 200 lines; offset 300 is past its end.", "", 0, 300, 200},
		{"just past the end", "x", 2, nil, "The file %s has 1 line; offset 2 is past its end.", "", 0, 2, 1},
		{"strings and 2.0", lines(3), "2", json.RawMessage("1.0"), "     2\tline 2", "line 2\n", 1, 2, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSession(t)
			path := s.write("f.txt", test.content)
			input := in{"file_path": path}
			if test.offset != nil {
				input["offset"] = test.offset
			}
			if test.limit != nil {
				input["limit"] = test.limit
			}
			text, out := s.read(input)
			want := test.text
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, path)
			}
			if text != want {
				t.Errorf("text %q\nwant %q", text, want)
			}
			f := out.File
			if out.Type != "text" || f.FilePath != path || f.Content != test.file || f.NumLines != test.num || f.StartLine != test.start || f.TotalLines != test.total || f.TruncatedByTokenCap {
				t.Errorf("output %+v", out)
			}
		})
	}
}

func TestReadBadNumbers(t *testing.T) {
	conform.Covers(t, "B-091")
	s := newSession(t)
	path := s.write("f.txt", lines(3))
	s.fails("Read", in{"file_path": path, "offset": -1}, "offset", "at least 0")
	s.fails("Read", in{"file_path": path, "offset": 1, "limit": 0}, "limit", "at least 1")
	s.fails("Read", in{"file_path": path, "offset": 1.5}, "offset", "integer")
	s.fails("Read", in{"file_path": path, "offset": 1e300}, "offset")
	s.fails("Read", in{"file_path": path, "pages": "1-5"}, "pages", path, "is not a PDF")
	s.fails("Read", in{"file_path": ""}, "file_path", "empty")
	s.fails("Read", in{"file_path": "a\x00b"}, "file_path", "NUL")
	s.fails("Read", in{"path": path}, "file_path: required", "path: unknown property")
}

func TestReadPaths(t *testing.T) {
	conform.Covers(t, "T-22")
	s := newSession(t)
	path := s.write("sub/f.txt", "x\n")
	for _, p := range []string{path, "sub/f.txt", "./sub/../sub/f.txt", "~/sub/f.txt"} {
		if _, out := s.read(in{"file_path": p}); out.File.FilePath != path {
			t.Errorf("%s was read as %s", p, out.File.FilePath)
		}
		raw, err := s.tools.Prepare(s.env, "Read", json.RawMessage(`{"file_path":`+quote(p)+`,"limit":3}`))
		var got struct {
			FilePath string `json:"file_path"`
			Limit    int    `json:"limit"`
		}
		if err := json.Unmarshal(raw, &got); err != nil || got.FilePath != path || got.Limit != 3 {
			t.Errorf("%s prepared as %s, %v", p, raw, err)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if a, err := NewRead().Accesses(json.RawMessage(`{"file_path":"sub/f.txt"}`)); err == nil {
		t.Errorf("a relative path was judged as %+v", a)
	}
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

func TestReadLarge(t *testing.T) {
	s := newSession(t)
	big := s.write("big.txt", strings.Repeat("0123456789012345678901234567890123456789012345678\n", 200_000)) // 10 MB
	t.Run("partial view", func(t *testing.T) {
		conform.Covers(t, "T-44", "T-48", "B-092")
		text, out := s.read(in{"file_path": big})
		if len(text) > 101_000 || len(text) < 90_000 {
			t.Errorf("%d bytes are shown", len(text))
		}
		f := out.File
		if !f.TruncatedByTokenCap || f.TotalLines != 200_000 || strings.Count(f.Content, "\n") != f.NumLines {
			t.Errorf("%d of %d lines, cap %v", f.NumLines, f.TotalLines, f.TruncatedByTokenCap)
		}
		for _, part := range []string{"PARTIAL view", fmt.Sprintf("lines 1 to %d of 200000", f.NumLines), fmt.Sprintf("offset %d", f.NumLines+1)} {
			if !strings.Contains(text, part) {
				t.Errorf("the notice lacks %q: %s", part, text[len(text)-300:])
			}
		}
		// Going on where the notice says shows the next line.
		next, _ := s.read(in{"file_path": big, "offset": f.NumLines + 1, "limit": 1})
		if want := fmt.Sprintf("%6d\t0123", f.NumLines+1); !strings.HasPrefix(next, want) {
			t.Errorf("next %q", next)
		}
	})
	t.Run("explicit selection", func(t *testing.T) {
		conform.Covers(t, "T-45", "T-46", "B-092")
		s.fails("Read", in{"file_path": big, "offset": 10}, "limit", "25000 tokens")
		s.fails("Read", in{"file_path": big, "limit": 100_000}, "smaller limit", "Grep")
		text, _ := s.read(in{"file_path": big, "offset": 199_999, "limit": 2})
		if !strings.HasPrefix(text, "199999\t0123") || strings.Count(text, "\n") != 1 {
			t.Errorf("near the end: %q", text)
		}
	})
	t.Run("limit from the environment", func(t *testing.T) {
		conform.Covers(t, "T-47")
		s.vars["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"] = "100"
		defer delete(s.vars, "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS")
		text, out := s.read(in{"file_path": big})
		if out.File.NumLines != 7 || len(text) > 900 {
			t.Errorf("%d lines, %d bytes", out.File.NumLines, len(text))
		}
		s.vars["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"] = "none"
		if _, out := s.read(in{"file_path": big}); out.File.NumLines < 1000 {
			t.Errorf("a value that is no number gives %d lines", out.File.NumLines)
		}
	})
	t.Run("one endless line", func(t *testing.T) {
		conform.Covers(t, "T-46", "B-092", "B-107")
		path := s.write("line.txt", "x"+strings.Repeat("é", 2_500_000))
		text, out := s.read(in{"file_path": path})
		if !utf8.ValidString(text) || strings.ContainsRune(text, '\uFFFD') || len(text) > 101_000 || !out.File.TruncatedByTokenCap {
			t.Errorf("%d bytes, output %d lines", len(text), out.File.NumLines)
		}
		if !strings.Contains(text, "PARTIAL view") || out.File.NumLines != 1 || out.File.TotalLines != 1 {
			t.Errorf("%d of %d lines: %s", out.File.NumLines, out.File.TotalLines, text[len(text)-300:])
		}
		s.fails("Read", in{"file_path": path, "limit": 1}, "Grep")
	})
	t.Run("no cap on lines", func(t *testing.T) {
		conform.Covers(t, "T-48")
		path := s.write("short.txt", strings.Repeat("\n", 5000)+strings.Repeat("y", 3000)+"\n")
		text, out := s.read(in{"file_path": path})
		if out.File.NumLines != 5001 || out.File.TruncatedByTokenCap || !strings.HasSuffix(text, strings.Repeat("y", 3000)) {
			t.Errorf("%d lines", out.File.NumLines)
		}
	})
}

// TestReadHuge reads the first lines of a file that is far larger than memory
// should be: it has no bytes on disk, so reading it whole would only be slow.
func TestReadHuge(t *testing.T) {
	conform.Covers(t, "T-46")
	s := newSession(t)
	path := s.write("huge.txt", lines(3000)+strings.Repeat("z\n", 8192))
	if err := os.Truncate(path, 64<<30); err != nil {
		t.Skip("no sparse files here:", err)
	}
	text, out := s.read(in{"file_path": path, "limit": 2000})
	if out.File.NumLines != 2000 || out.File.TotalLines < 2001 || !strings.HasSuffix(text, "  2000\tline 2000") {
		t.Errorf("%d lines of %d", out.File.NumLines, out.File.TotalLines)
	}
	// It counts as read, and one that changed as changed.
	r, ok := loadRecord(s.env.State, path)
	if !ok || r.Partial || r.Hash != "" || r.Size != 64<<30 {
		t.Errorf("record %+v", r)
	}
	s.fails("Edit", in{"file_path": path, "old_string": "line 1\n", "new_string": "x\n"}, "too large for Edit")
}

func TestReadRefuses(t *testing.T) {
	s := newSession(t)
	t.Run("directory", func(t *testing.T) {
		conform.Covers(t, "T-50")
		s.fails("Read", in{"file_path": s.env.Dir}, "is a directory", "ls")
	})
	t.Run("binary", func(t *testing.T) {
		conform.Covers(t, "T-51", "B-092")
		s.fails("Read", in{"file_path": s.write("elf", "\x7fELF\x02\x01\x01\x00\x00rest")}, "elf", "binary", "13 bytes")
		s.fails("Read", in{"file_path": s.write("nul.txt", strings.Repeat("a", sniffSize-1)+"\x00")}, "nul.txt", "binary")
		s.fails("Read", in{"file_path": s.write("utf16.txt", "\xff\xfea\x00")}, "UTF-16")
		// A NUL after the first 8 KiB is shown: the file counts as text.
		s.read(in{"file_path": s.write("late.txt", strings.Repeat("a", sniffSize)+"\x00")})
	})
	t.Run("missing", func(t *testing.T) {
		conform.Covers(t, "T-51")
		for _, name := range []string{"config.json", "config.yaml", "konfig.json", "Config.JSON5", "other.txt"} {
			s.write("cfg/"+name, "x")
		}
		s.fails("Read", in{"file_path": s.path("cfg/confg.json")}, s.path("cfg/confg.json"), "does not exist", "config.json", "konfig.json")
		_, err := s.call("Read", in{"file_path": s.path("cfg/config.toml")})
		if err == nil || !strings.Contains(err.Error(), "config.yaml") || strings.Contains(err.Error(), "other.txt") {
			t.Errorf("got %v", err)
		}
		s.fails("Read", in{"file_path": s.path("none/at/all")}, "directory", "does not exist")
		s.fails("Read", in{"file_path": s.path("cfg/other.txt/x")}, "other.txt/x")
		for i := range 20 {
			s.write(fmt.Sprintf("many/file%02d.txt", i), "x")
		}
		_, err = s.call("Read", in{"file_path": s.path("many/file99.txt")})
		if n := strings.Count(fmt.Sprint(err), ".txt") - 1; n != 5 {
			t.Errorf("%d siblings in %v", n, err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		conform.Covers(t, "T-51")
		if os.Geteuid() == 0 {
			t.Skip("the superuser reads everything")
		}
		path := s.write("secret", "x")
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		s.fails("Read", in{"file_path": path}, path, "permission denied")
	})
	t.Run("socket", func(t *testing.T) {
		conform.Covers(t, "B-093")
		path := s.path("s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Skip("no unix socket here:", err)
		}
		defer l.Close()
		s.fails("Read", in{"file_path": path}, "socket")
	})
	t.Run("device", func(t *testing.T) {
		conform.Covers(t, "B-093")
		if _, err := os.Stat("/dev/zero"); err != nil {
			t.Skip("no /dev/zero here")
		}
		s.fails("Read", in{"file_path": "/dev/zero"}, "/dev/zero", "device")
		s.fails("Edit", in{"file_path": "/dev/zero", "old_string": "a", "new_string": "b"}, "device")
	})
}

func TestReadImages(t *testing.T) {
	s := newSession(t)
	picture := func(w, h int) image.Image {
		m := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
		m.SetColorIndex(w/2, h/2, 1)
		return m
	}
	encode := func(f func(*bytes.Buffer) error) string {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	pngData := encode(func(b *bytes.Buffer) error { return png.Encode(b, picture(30, 20)) })
	webp := func(chunk string, body ...byte) string {
		return "RIFF\x00\x00\x00\x00WEBP" + chunk + "\x0a\x00\x00\x00" + string(body) + strings.Repeat("\x00", 30)
	}
	t.Run("kinds", func(t *testing.T) {
		conform.Covers(t, "T-52", "T-41")
		for name, test := range map[string]struct{ data, typ string }{
			"a.txt": {pngData, "image/png"}, // by its bytes, not by its name
			"b.jpg": {encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, picture(30, 20), nil) }), "image/jpeg"},
			"c.gif": {encode(func(b *bytes.Buffer) error { return gif.Encode(b, picture(30, 20), nil) }), "image/gif"},
			"d":     {webp("VP8X", 0, 0, 0, 0, 29, 0, 0, 19, 0, 0), "image/webp"},
			"e":     {webp("VP8 ", 0, 0, 0, 0x9D, 0x01, 0x2A, 30, 0, 20, 0), "image/webp"},
			"f":     {webp("VP8L", 0x2F, 29, 0xC0, 4, 0), "image/webp"},
		} {
			r, err := s.call("Read", in{"file_path": s.write(name, test.data)})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var block struct {
				Type   string
				Source struct {
					MediaType string `json:"media_type"`
					Data      []byte
				}
			}
			if err := json.Unmarshal(r.Content[0].Raw(), &block); err != nil || block.Type != "image" || block.Source.MediaType != test.typ || string(block.Source.Data) != test.data {
				t.Errorf("%s: block of type %s %s, %v", name, block.Type, block.Source.MediaType, err)
			}
			var out struct {
				Type string
				File struct {
					Base64, Type string
					OriginalSize int
					Dimensions   struct{ OriginalWidth, OriginalHeight int }
				}
			}
			if err := json.Unmarshal(r.Structured, &out); err != nil {
				t.Fatal(err)
			}
			if d := out.File.Dimensions; out.Type != "image" || d.OriginalWidth != 30 || d.OriginalHeight != 20 || out.File.OriginalSize != len(test.data) || out.File.Base64 != base64.StdEncoding.EncodeToString([]byte(test.data)) {
				t.Errorf("%s: output %s", name, r.Structured)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		conform.Covers(t, "B-110")
		bomb := []byte(pngData)
		binary.BigEndian.PutUint32(bomb[16:], 60_000)
		binary.BigEndian.PutUint32(bomb[20:], 60_000)
		binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
		s.fails("Read", in{"file_path": s.write("bomb.png", string(bomb))}, "60000 by 60000", "too large")
		s.fails("Read", in{"file_path": s.write("half.png", pngData[:len(pngData)-20])}, "damaged")
		s.fails("Read", in{"file_path": s.write("torn.png", pngData[:12])}, "damaged")
		s.fails("Read", in{"file_path": s.write("torn.webp", webp("VP8 ", 1, 2, 3, 4, 5, 6))}, "damaged")
		// The bytes say what a file is, not its name (T-52): text is text, and an
		// empty file is an empty file, under whatever name. Neither gives the API
		// an image that it would refuse.
		if text, _ := s.read(in{"file_path": s.write("text.png", "no image\n")}); text != "     1\tno image" {
			t.Errorf("text named .png: %q", text)
		}
		if text, _ := s.read(in{"file_path": s.write("empty.jpg", "")}); !strings.Contains(text, "is empty") {
			t.Errorf("empty .jpg: %q", text)
		}
	})
}
