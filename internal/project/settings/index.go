package settings

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnwright/turnwright/internal/gitdir"
)

// tracked reports whether git tracks a file of a repository, by its index: git
// itself is not started, since a repository can make it run commands. Where the
// index cannot be understood the answer is yes, because the file may then have
// come with the repository.
func tracked(repo, file string) bool {
	rel, err := filepath.Rel(repo, file)
	if err != nil {
		return true
	}
	doc, err := readIndex(repo)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false // nothing was ever added
	case err != nil:
		return true
	}
	for _, hash := range []int{20, 32} { // SHA-1 and SHA-256 repositories
		if found, ok := indexHas(doc, hash, filepath.ToSlash(rel)); ok {
			return found
		}
	}
	return true
}

// maxIndex bounds the index, in bytes.
const maxIndex = 256 << 20

func readIndex(repo string) ([]byte, error) {
	dir, err := gitdir.At(repo)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, errors.New("the git directory is not there")
	}
	path := filepath.Join(dir, "index")
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return readFile(path, info, maxIndex)
}

// indexHas looks a path up in an index of versions 2 to 4, whatever the case of
// its letters; ok is false when the index is not understood. A directory that a
// sparse index names in place of its files counts as all of them.
func indexHas(doc []byte, hash int, path string) (found, ok bool) {
	const header, stat = 12, 40
	if len(doc) < header+hash || string(doc[:4]) != "DIRC" {
		return false, false
	}
	version, count := binary.BigEndian.Uint32(doc[4:]), binary.BigEndian.Uint32(doc[8:])
	if version < 2 || version > 4 {
		return false, false
	}
	end := len(doc) - hash // the checksum
	i, name := header, ""
	for range count {
		start := i
		if i += stat + hash + 2; i > end {
			return false, false
		}
		flags := binary.BigEndian.Uint16(doc[i-2:])
		if flags&0x4000 != 0 {
			if i += 2; version < 3 || i > end {
				return false, false
			}
		}
		if version == 4 {
			drop, n := indexOffset(doc[i:end])
			if n == 0 || drop > len(name) {
				return false, false
			}
			i, name = i+n, name[:len(name)-drop]
		} else {
			name = ""
		}
		size := bytes.IndexByte(doc[i:end], 0)
		if size < 0 {
			return false, false
		}
		name += string(doc[i : i+size])
		if length := int(flags & 0xfff); length < 0xfff && length != len(name) || name == "" {
			return false, false
		}
		i += size + 1
		if version < 4 { // entries are padded to multiples of 8
			i = start + (i-start+7)&^7
		}
		found = found || strings.EqualFold(name, path) ||
			strings.HasSuffix(name, "/") && len(path) > len(name) && strings.EqualFold(path[:len(name)], name)
	}
	for i+8 <= end { // the extensions
		if string(doc[i:i+4]) == "link" { // the rest of the index is in another file
			return false, false
		}
		i += 8 + int(binary.BigEndian.Uint32(doc[i+4:]))
	}
	return found && i == end, i == end
}

// indexOffset reads the number of a version 4 entry: how many bytes of the name
// before are not part of this one. n is 0 when it is cut off or too large.
func indexOffset(b []byte) (value, n int) {
	for n < len(b) && n < 4 {
		c := b[n]
		n++
		value |= int(c & 0x7f)
		if c&0x80 == 0 {
			return value, n
		}
		value = (value + 1) << 7
	}
	return 0, 0
}
