package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/turnwright/turnwright/tool"
)

// fileRecord is what the session remembers of a file that was read or written
// (T-57, T-79). It is stored in Env.State under recordKey.
type fileRecord struct {
	Hash    string `json:"hash,omitempty"` // SHA-256 of the content; "" for a file too large to be hashed
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime"`             // nanoseconds since 1970
	Partial bool   `json:"partial,omitempty"` // only a PARTIAL view was shown
	// Shown are the ranges of this very content that Read has shown whole, so
	// that it need not show them again (T-56): "offset,limit" with a blank
	// between two.
	Shown string `json:"shown,omitempty"`
}

// recordKey is the key of the record of a file; target is its path resolved
// through links, so that a file has one record whatever it is called.
func recordKey(target string) string { return "file:" + target }

func loadRecord(s *tool.State, target string) (fileRecord, bool) {
	raw := s.Get(recordKey(target))
	if raw == nil {
		return fileRecord{}, false
	}
	var r fileRecord
	if json.Unmarshal(raw, &r) != nil {
		return fileRecord{}, false // of another format: as if it had not been read
	}
	return r, true
}

func storeRecord(s *tool.State, target string, r fileRecord) {
	raw, err := json.Marshal(r)
	if err != nil {
		return // cannot happen: the fields are plain
	}
	s.Set(recordKey(target), raw)
}

func recordOf(info fs.FileInfo, content []byte) fileRecord {
	sum := sha256.Sum256(content)
	return fileRecord{Hash: hex.EncodeToString(sum[:]), Size: info.Size(), ModTime: info.ModTime().UnixNano()}
}

// recordRead records that the model has seen a file by another way than the
// Read tool, such as a shell command that shows it (T-77). The path may be
// relative to the current directory. The file must be a regular one; one that
// is too large to be hashed is known by size and time.
func recordRead(env *tool.Env, path string) error {
	at, err := locate(&tool.Call{Env: env}, "path", path)
	if err != nil {
		return err
	}
	f, info, err := openRegular(at.target)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := recordFile(f, info)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", at.path, err)
	}
	// What was shown of the same content stays known.
	if before, ok := loadRecord(env.State, at.target); ok && !before.Partial && before.Hash != "" && before.Hash == now.Hash {
		now.Shown = before.Shown
	}
	storeRecord(env.State, at.target, now)
	return nil
}

// recordFile describes an open file. It reads at most hashLimit bytes, none of
// a file that is larger.
func recordFile(f io.Reader, info fs.FileInfo) (fileRecord, error) {
	r := fileRecord{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	if r.Size > hashLimit {
		return r, nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, hashLimit+1))
	if err != nil {
		return r, err
	}
	if n <= hashLimit {
		r.Hash = hex.EncodeToString(sum.Sum(nil))
	}
	return r, nil
}

// maxShown bounds the ranges that a record keeps.
const maxShown = 32

// addShown adds a range to those that were shown and reports whether it is
// among them already.
func (r *fileRecord) addShown(key string) bool {
	list := strings.Fields(r.Shown)
	if slices.Contains(list, key) {
		return true
	}
	list = append(list, key)
	r.Shown = strings.Join(list[max(0, len(list)-maxShown):], " ")
	return false
}

// same reports whether the file still is as the record says: by content, and
// only for a file too large to be hashed by size and time (T-75).
func (r fileRecord) same(now fileRecord) bool {
	if r.Hash == "" {
		return r.Size == now.Size && r.ModTime == now.ModTime
	}
	return r.Hash == now.Hash
}
