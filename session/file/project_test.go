package file

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/turnwright/turnwright/internal/conform"
	"pgregory.net/rapid"
)

func TestHash(t *testing.T) {
	conform.Covers(t, "K-286", "S-12")
	for path, want := range map[string]string{
		"": "0", "a": "2p", "hello": "1n1e4y",
		"/" + strings.Repeat("x", 250):             "v734pd",
		"/data/" + strings.Repeat("dir_name/", 30): "sg4zee",
	} {
		if got := hash([]rune(path)); got != want {
			t.Errorf("hash(%.20q) = %s, want %s", path, got, want)
		}
	}
}

func TestHashOfLeastValue(t *testing.T) {
	// The one value whose absolute value is no int32: "polygenelubricants".
	if got := hash([]rune("polygenelubricants")); got != "zik0zk" {
		t.Errorf("hash = %s, want 2147483648 in base 36", got)
	}
}

func TestConvertName(t *testing.T) {
	conform.Covers(t, "S-11", "K-283", "K-284", "K-285")
	long := "/" + strings.Repeat("x", 250)
	for _, c := range []struct{ path, want, utf16 string }{
		{"/home/user/my_proj.v2", "-home-user-my-proj-v2", ""},
		{"/Users/me/proj", "-Users-me-proj", ""},
		{"/a/é", "-a--", ""},
		{"/a/🎉b", "-a--b", "-a---b"},
		{`C:\Users\me`, "C--Users-me", ""},
		{"/" + strings.Repeat("y", 199), "-" + strings.Repeat("y", 199), ""},
		{long, "-" + strings.Repeat("x", 199) + "-v734pd", ""},
		{"/data/" + strings.Repeat("dir_name/", 30), ("-data-" + strings.Repeat("dir-name-", 30))[:200] + "-sg4zee", ""},
		// 199 characters and one that counts twice in JavaScript only.
		{strings.Repeat("z", 199) + "🎉", strings.Repeat("z", 199) + "-", strings.Repeat("z", 199) + "--" + "1"},
	} {
		if got := convertName(c.path); got != c.want {
			t.Errorf("convertName(%.40q) = %q, want %q", c.path, got, c.want)
		}
		got := convertUTF16(c.path)
		switch {
		case c.utf16 == "" && got != c.want:
			t.Errorf("convertUTF16(%.40q) = %q, want %q", c.path, got, c.want)
		case len(c.utf16) > 200: // cut: only the beginning is known by hand
			if got[:201] != c.utf16[:200]+"-" {
				t.Errorf("convertUTF16(%.40q) = %q", c.path, got)
			}
		case c.utf16 != "" && got != c.utf16:
			t.Errorf("convertUTF16(%.40q) = %q, want %q", c.path, got, c.utf16)
		}
	}
}

func TestConvertNameProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.String().Draw(t, "path")
		name := convertName(path)
		for _, c := range name {
			if !isAlnum(c) && c != '-' {
				t.Fatalf("name %q has %q", name, c)
			}
		}
		if len([]rune(path)) <= 200 && len(name) != len([]rune(path)) {
			t.Fatalf("a path of %d characters gives a name of %d", len([]rune(path)), len(name))
		}
		if len(name) > 200+1+7 {
			t.Fatalf("name of %d characters", len(name))
		}
	})
}

// Two long paths that share their first 200 characters stay apart.
func TestLongNamesDiffer(t *testing.T) {
	conform.Covers(t, "S-12")
	a := "/" + strings.Repeat("x", 250)
	if convertName(a+"/one") == convertName(a+"/two") {
		t.Error("one name for two projects")
	}
}

func TestProjectNameIsCanonical(t *testing.T) {
	conform.Covers(t, "S-13", "K-283")
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(base, "real")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	want := convertName(real)
	link := filepath.Join(base, "link")
	if err := os.Symlink(real, link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("no right to make symbolic links: ", err)
		}
		t.Fatal(err)
	}
	for _, path := range []string{real, link, link + "/", filepath.Join(real, "..", "link"), real + "/."} {
		if got := ProjectName(path); got != want {
			t.Errorf("ProjectName(%q) = %q, want %q", path, got, want)
		}
	}
	// A part that does not exist is kept, behind the resolved part.
	if got := ProjectName(filepath.Join(link, "gone", "x")); got != want+"-gone-x" {
		t.Errorf("ProjectName of a directory that is gone = %q", got)
	}
	if composed, decomposed := ProjectName(real+"/caf\u00e9"), ProjectName(real+"/cafe\u0301"); composed != decomposed || composed != want+"-caf-" {
		t.Errorf("NFC and NFD differ: %q and %q", composed, decomposed)
	}
}

func TestValidDirName(t *testing.T) {
	conform.Covers(t, "S-15")
	for name, want := range map[string]bool{
		"a": true, "My-Project_2": true, strings.Repeat("x", 64): true, "console": true, "com": true, "COM12": true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a/b": false, "..": false, ".": false, "é": false,
		"con": false, "NUL": false, "Prn": false, "aux": false, "COM1": false, "lpt9": false,
	} {
		if got := validDirName(name); got != want {
			t.Errorf("validDirName(%q) = %v", name, got)
		}
	}
}
